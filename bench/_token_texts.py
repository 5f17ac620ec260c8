"""Texts to be tokenized: prose, code, and many scripts. The same on every run of one clone."""

import random
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LICENSES = Path("/usr/share/common-licenses")  # every Debian has them

# Sentences about nothing in particular, in many languages; their words are shuffled.
LANGUAGES = """
Der schnelle braune Fuchs springt über den faulen Hund, während die Straßenbahn pünktlich um 17:45 Uhr zum Hauptbahnhof fährt.
Für die Überprüfung größerer Änderungen benötigen wir möglichst früh die Rückmeldung der zuständigen Behörde.
L'été dernier, nous avons traversé la forêt jusqu'à l'église, où quelqu'un jouait déjà de l'orgue près du chœur.
Les élèves ont demandé s'il fallait vraiment réécrire toute la leçon avant la rentrée de septembre.
El niño pequeño preguntó si mañana habría sol, y su abuela contestó que sólo el viento lo sabe.
¿Cuántas veces has escuchado aquella canción española antes de aprender las letras? ¡Demasiadas!
A reunião começou às nove horas e terminou com uma discussão sobre a construção da nova ponte.
Lungo il fiume c'è una città antica, perché già i Romani cercavano un luogo sicuro più a nord.
Szybki zając przeskoczył przez źródło, żeby zdążyć na śniadanie u pięknej księżniczki Małgorzaty.
Příliš žluťoučký kůň úpěl ďábelské ódy, ačkoli večer byl tichý a hvězdy svítily nad městem.
Hızlı tilki, üşüyen köpeğin üzerinden atladı; çocuklar bahçede gülüyor, İstanbul'da ışıklar yanıyordu.
Nhanh lên, chúng ta phải đến trường trước khi trời mưa, vì hôm nay có buổi học tiếng Việt đầu tiên.
Быстрая лиса перепрыгнула через ленивую собаку, а поезд на Москву отправился в половине восьмого утра.
Если завтра будет хорошая погода, мы обязательно поедем за город и возьмём с собой всех друзей.
Швидка лисиця перестрибнула через ледачого собаку, і ввечері всі сіли їсти гарячий борщ із пампушками.
Η γρήγορη αλεπού πήδηξε πάνω από το τεμπέλικο σκυλί, ενώ ο ήλιος έδυε πίσω από την παλιά εκκλησία.
השועל המהיר קפץ מעל הכלב העצלן, ובערב ישבו כולם סביב השולחן ודיברו על מזג האוויר.
قفز الثعلب السريع فوق الكلب الكسول، وفي المساء جلس الجميع حول المائدة يتحدثون عن السفر القادم.
روباه سریع از روی سگ تنبل پرید و کودکان در باغ کنار رودخانه آواز می‌خواندند.
तेज़ लोमड़ी आलसी कुत्ते के ऊपर से कूद गई और शाम को सब लोग नदी के किनारे बैठकर चाय पीने लगे।
দ্রুত শিয়াল অলস কুকুরের উপর দিয়ে লাফিয়ে গেল এবং সন্ধ্যায় সবাই নদীর ধারে গান গাইল।
வேகமான நரி சோம்பேறி நாயின் மீது குதித்தது, மாலையில் அனைவரும் ஆற்றங்கரையில் அமர்ந்தனர்.
สุนัขจิ้งจอกกระโดดข้ามสุนัขขี้เกียจ และในตอนเย็นทุกคนนั่งริมแม่น้ำคุยกันเรื่องอาหาร
敏捷的棕色狐狸跳过了懒狗，傍晚时分大家坐在河边，一边喝茶一边谈论明天的天气和旅行计划。
如果模型已经处理过这段文字，那么路由器应该把请求发送到缓存里保存着它的那台服务器。
素早い茶色の狐は怠け者の犬を飛び越え、夕方になるとみんなが川のそばに座ってお茶を飲みながら話をした。
東京の天気は今日も晴れですが、明日からは雨が降るかもしれないので、傘を持っていきましょう。
빠른 갈색 여우가 게으른 개를 뛰어넘었고, 저녁이 되자 모두가 강가에 앉아 차를 마시며 이야기했다.
모델이 이미 이 글을 처리했다면 요청을 그 서버로 보내는 것이 가장 빠르다고 한다.
სწრაფი მელა გადაახტა ზარმაც ძაღლს და საღამოს ყველა მდინარის პირას იჯდა.
Արագ աղվեսը ցատկեց ծույլ շան վրայով, և երեկոյան բոլորը նստեցին գետի ափին։
∀ x ∈ ℝ: x² ≥ 0, ∑ᵢ aᵢ ≤ ∞, α → β ⇒ ¬γ, 3 × 10⁻⁹ ≈ ½ · π, “quoted” — and so on… № 42, €1.234,56 ≠ £9.99.
👩🏽‍🚀🚀 Launch day! 🎉🎉 1️⃣ fuel ✅ 2️⃣ crew 👨‍👩‍👧‍👦 3️⃣ weather ☀️ 🇩🇪🇯🇵🇧🇷 ❤️‍🔥 see you ☕️ soon 🙌🏿
""".strip().split("\n")


def prose(size, seed=1):
    """Shuffled sentences of documentation and licenses, in paragraphs."""
    files = sorted((ROOT / "docs").rglob("*.md")) + [
        ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md"
    ]
    if LICENSES.is_dir():
        files += sorted(path for path in LICENSES.iterdir()
                        if path.is_file() and not path.is_symlink())
    sentences = []
    for path in files:
        text = re.sub(r"```.*?```", "", path.read_text(errors="ignore"), flags=re.S)
        lines = [
            line.strip()
            for line in text.splitlines()
            if not line.lstrip().startswith(("|", "#", "    "))
        ]
        sentences += [
            found for found in re.split(r"(?<=[.!?])\s+", " ".join(lines)) if 20 < len(found) < 400
        ]
    rng = random.Random(seed)
    return _repeat(lambda: " ".join(rng.choices(sentences, k=rng.randrange(3, 9))) + "\n\n", size)


def code(size, seed=1):
    """Sources of this repository, file by file."""
    files = [
        path for folder, pattern in (("src", "*.cc"), ("src", "*.h"), ("tests/blackbox", "*.py"),
                                     ("bench", "*.py"))
        for path in sorted((ROOT / folder).rglob(pattern)) if "node_modules" not in path.parts
    ]
    random.Random(seed).shuffle(files)
    texts = iter(files * 100)
    return _repeat(lambda: next(texts).read_text(), size)


def scripts(size, seed=1):
    """Words of many languages, each sentence in one of them."""
    rng = random.Random(seed)

    def sentence():
        line = rng.choice(LANGUAGES)
        words = line.split(" ") if line.count(" ") > 4 else [line[:rng.randrange(8, len(line))]]
        return " ".join(rng.sample(words, len(words))) + rng.choice(
            (" ", " ", "\n", " 😀 ", " (2026) "))

    return _repeat(sentence, size)


def _repeat(piece, size):
    """Pieces until there are so many bytes."""
    parts, have = [], 0
    while have < size:
        parts.append(piece())
        have += len(parts[-1].encode())
    return "".join(parts)


def documents(text, size=32_768):
    """Cut at ends of lines, into what a long prompt looks like."""
    found, part, have = [], [], 0
    for line in text.splitlines(keepends=True):
        part.append(line)
        have += len(line.encode())
        if have >= size:
            found.append("".join(part))
            part, have = [], 0
    return found + (["".join(part)] if part else [])
