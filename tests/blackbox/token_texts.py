"""Texts that tokenizers get wrong: all of Unicode, code, spaces, special tokens, random strings.

The same texts every time. Characters are those that this Python's Unicode knows: of one that was
added later, two programs may rightly have different opinions.
"""

import functools
import random
import sys
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

WHITE = [
    chr(c) for c in (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
                     0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
]
# Not spaces, though they look like nothing: zero widths, joiners, directions, old space, byte order.
INVISIBLE = [
    chr(c) for c in (0x200B, 0x200C, 0x200D, 0x2060, 0x180E, 0xFEFF, 0xAD, 0x34F, 0x200E, 0x200F,
                     *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x115F, 0x3164)
]
NONCHARACTERS = [chr(c) for c in (0xFDD0, 0xFDEF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x1FFFF, 0x10FFFF)]
PRIVATE = [chr(c) for c in (0xE000, 0xE001, 0xF8FF, 0xF0000, 0xFFFFD, 0x100000, 0x10FFFD)]
RESERVED = [chr(c) for c in (0x378, 0x530, 0x2FE0, 0xFFFFF - 0x10, 0xE0080)]

EMOJI = [
    "👨‍👩‍👧‍👦",
    "👩🏽‍🚀",
    "🏳️‍🌈",
    "🏴‍☠️",
    "🇩🇪🇯🇵🇧🇷",
    "🇦",
    "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "1️⃣2️⃣#️⃣*️⃣",
    "👍👍🏻👍🏿",
    "❤️❤",
    "☺︎☺️",
    "🧑🏻‍❤️‍💋‍🧑🏿",
    "👁️‍🗨️",
    "🫱🏼‍🫲🏾",
    "©️®️™️",
    "🤷🏽‍♀️ 🤷🏽‍♀️",
]

# What Unicode normalization has to do: compose, leave alone, reorder, replace.
COMPOSED = [
    "e\u0301 é a\u030a Å \u212b \u2126 \u212a",
    "\u1100\u1161\u11a8 \uac00\u11a8 각",
    "\u0958 \u0915\u093c",
    "a\u0323\u0307 a\u0307\u0323",
    "q\u0307\u0323 q\u0323\u0307",
    "\u0344 \u0308\u0301",
    "\uf900\ufa0e\U0002f800",
    "\u03b1\u0313\u0300\u0345 \u1f82",
    "\u0b47\u0b56\u0b57 \u0b48",
    "\u1e9b\u0323",
    "\ufb01 ﬀ ² ½ Ⅷ ㌀ ﷺ",
    "o\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309" * 3,
    "\u0301\u0301 \u0301a",
    "\u2adc \u2add\u0338",
    "Z\u0351\u036b\u0343\u036a\u0302A\u0334\u0335L\u031b\u0327\u0328G\u0359\u0349O\u0321\u0322",
]

CONTRACTIONS = [
    "I'm you're he's we'll they'd I've can't",
    "I'M YOU'RE HE'S WE'LL THEY'D I'VE CAN'T",
    "'s't're've'm'll'd",
    "'S'T'RE'VE'M'LL'D",
    "'Re'rE 'vE'Ve",
    "''s '' 's  's'",
    "o'clock d'être l'été rock'n'roll",
    "’s ’t I’m",
    "'\u017f '\u017ft x'\u017f '\u212a",
    "'sa 'tb 'rec 'ved 'me 'llf 'dg",
    "'1 '\n's\n't",
    "it's5 5's 5'S",
]

CODE = [
    "int main(int argc, char** argv) {\n\tfor (auto& [k, v] : m) { std::cout << k << \"=\" << v << '\\n'; }\n}\n",
    "def f(x: int = 0x1F, *, y=1e-9) -> None:\r\n    return {**x, 'a': [1_000, -2.5], \"b\": None}\r\n",
    "SELECT t.id, COUNT(*) FROM t WHERE t.a <> 'x''y' AND b LIKE '%_%' GROUP BY 1;\n-- ----------\n/* *** */",
    "<div class=\"a b-c\"><!-- <p>&nbsp;&#x2014;</p> --><br/></div>\n",
    "#!/bin/sh\nx=${y:-$(z | awk '{print $1}')} && exit $?\n",
    "{\"a\":[1,2.0,-3e+10,true,null],\"b\":{\"c\":\"\\u00e9\\n\"}}",
    "https://example.org:8080/a/b?c=d&e=%20#f me@example.org",
    "fn f<'a, T: 'a + ?Sized>(x: &'a T) -> Box<dyn Fn(&T) + 'a> { |y| y }",
    "λ x. ∀ y ∈ ℝ: x² ≤ y³ ⇒ ∃ ε > 0 … ∑∞",
    "if(x){return;}else{while(1){}}////\n//\n/\n\\\\\\\n###\n",
    "\t\tif x:\n\t\t\tpass\n\n\n        else:\n  \tfoo()\n",
    "0 00 000 0000 00000 1234567890 3.14159 1,234,567.89 0xDEADBEEF 1e1000 ٣٤٥ १२३ ①② ½ Ⅻ 𝟘𝟙 ୨",
    "HTTPServerError camelCaseIDs XMLHttpRequest snake_case_name SCREAMING_CASE kebab-case PascalCase iPhone15Pro ÉCOLE Straße ǅungla",
]


@functools.cache
def assigned():
    """Every character that there is, without surrogates and private ones."""
    return [
        chr(c)
        for c in range(sys.maxunicode + 1)
        if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")
    ]


def row_texts(characters):
    """What one row of Unicode looks like alone, in a word, in front of one, with marks, in numbers."""
    run = "".join(characters)
    return [
        run,
        " ".join(characters),
        " " + run + " ",
        "".join(f"a{c}b" for c in characters),
        "".join(f"1{c}2 " for c in characters),
        "".join(f"{c}\u0301" for c in characters),
        "\n".join(characters),
        "".join(f"'{c}" for c in characters),
        "".join(f" {c}{c}. " for c in characters),
        (run.upper() + run.lower() + run.title()),
    ]


def unicode_texts(most=6):
    """Rows of 128, each by a few of its characters; long scripts (Han, Hangul) by every eighth row."""
    rows = {}
    for character in assigned():
        rows.setdefault(ord(character) >> 7, []).append(character)
    texts = []
    for row, characters in rows.items():
        dull = unicodedata.category(characters[0]) == "Lo" and row >= 0x3400 >> 7 and row % 8
        if not dull:
            some = random.Random(row).sample(characters, min(most, len(characters)))
            texts += row_texts(some)
    return texts


def odd_texts():
    odd = WHITE + INVISIBLE + NONCHARACTERS + PRIVATE + RESERVED + [
        chr(c) for c in (*range(32), *range(0x7F, 0xA0))
    ]
    texts = [
        text for c in odd for text in (c, c + c, f"a{c}b", f" {c} ", f"a {c}", f"{c}1", f"\n{c}\n",
                                       f"'{c}s", f".{c}.", f"a{c}\u0301")
    ]
    for emoji in EMOJI:
        texts += [emoji, f"a{emoji}b", f" {emoji} {emoji}", emoji * 3, emoji[1:], emoji[:-1]]
    for text in COMPOSED + CONTRACTIONS:
        texts += [
            text, text * 2,
            text.upper(), f"x{text}", f" {text}\n",
            unicodedata.normalize("NFD", text)
        ]
    return texts + [
        "", "\u202eabc\u202c \u2067אבג\u2069 שלום العربية 12 abc", "مَرْحَبًا بِكُمْ",
        "नमस्ते दुनिया", "สวัสดีชาวโลก", "ကမ္ဘာ"
    ]


def space_texts():
    texts = []
    for space in WHITE:
        for count in (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, 127, 1000):
            texts += [
                space * count, f"a{space * count}b", space * count + "x", f".{space * count}1"
            ]
    rng = random.Random(7)
    for _ in range(400):
        run = "".join(rng.choices(" \t\n\r\n \u00a0\u3000\v", k=rng.randrange(1, 40)))
        texts += [run, f"a{run}", f"{run}b", f"({run})"]
    return texts


def code_texts(most=None):
    """Own samples, and the sources and pages of the repository: whole, and line by line for a few."""
    texts = [
        text for sample in CODE
        for text in (sample, sample.upper(), sample.replace(" ", "  "), sample.strip())
    ]
    files = sorted((ROOT / "src").rglob("*.cc")) + sorted((ROOT / "docs").rglob("*.md"))
    files += sorted((ROOT / "tests/blackbox").glob("*.py")) + [ROOT / "dev", ROOT / "README.md"]
    chosen = files if most is None else random.Random(3).sample(files, most)
    whole = [path.read_text() for path in chosen]
    return texts + whole + [line for text in whole[:3] for line in text.splitlines(keepends=True)]


def token_texts(tokens):
    """Every added token in the text of a user."""
    texts = []
    for i, token in enumerate(tokens):
        other = tokens[(i * 7 + 1) % len(tokens)]
        texts += [
            token,
            token + token,
            f"a{token}b",
            f" {token} ",
            f"  {token}\n\n{token}  ",
            f"x {token} y",
            token + other,
            f"{other} {token}{other}",
            token[:-1],
            token[1:],
            token[:-1] + token,
            token.upper(),
            f"1{token}'s",
            f"é{token}\u0301",
            f"<{token}>",
            f"{token[:len(token) // 2]}{token}",
        ]
    return texts


# --- random strings

WORDS = """the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you
were all her she there would their we him been has when who will no more if out so up said what its about than into them can only
other time new some could these two may first then do any like my now over such our man me even most made after also did many
tokenization ununderstandable Ünïcödé naïve coöperate façade Zürich Москва привет 東京 世界 你好 안녕하세요 γειά שלום مرحبا""".split(
)
SOUP = list("  \t\n\r\n'\"`.,;:!?-_/\\|()[]{}<>@#$%^&*+=~aAzZ09sSdDlL") + [
    "'s", "'ll", "\u00a0", "\u3000", "\r\n", "  ", "\u2028", "é"
]
MARKS = [
    chr(c) for c in (*range(0x300, 0x330), 0x345, 0x591, 0x5B0, 0x64B, 0x651, 0x93C, 0x94D, 0x9CD,
                     0xE31, 0x1100, 0x1112, 0x1161, 0x1175, 0x11A8, 0x11C2, 0x200D, 0xFE0F, 0x20E3,
                     0x1F3FB, 0x1F468, 0x1F1E9, 0x1F1EA)
]
BASES = list("aeionrAEIO αωи가각कകがカ") + ["ş", "ạ", "ﬁ"]


def random_ascii(rng):
    return "".join(map(chr, rng.choices(range(32, 127), k=rng.randrange(1, 40))))


def random_words(rng):
    words = (rng.choice((str, str.title, str.upper, str.lower))(rng.choice(WORDS))
             for _ in range(rng.randrange(1, 12)))
    return "".join(
        word +
        rng.choice((" ", " ", " ", ", ", ". ", "'s ", "\n", "-", str(rng.randrange(10**6)), ""))
        for word in words)


def random_unicode(rng):
    return "".join(rng.choices(assigned(), k=rng.randrange(1, 14)))


def random_soup(rng):
    return "".join(rng.choices(SOUP, k=rng.randrange(1, 40)))


def random_marks(rng):
    return "".join(
        rng.choice(BASES) + "".join(rng.choices(MARKS, k=rng.randrange(4)))
        for _ in range(rng.randrange(1, 8)))


def random_script(rng):
    """Neighbours in Unicode, as in real words."""
    everything = assigned()
    start = rng.randrange(len(everything) - 64)
    return "".join(" " if rng.random() < 0.15 else everything[start + rng.randrange(64)]
                   for _ in range(rng.randrange(1, 25)))


def random_repeats(rng):
    unit = rng.choice(
        (random_ascii, random_soup, random_marks, random_words))(rng)[:rng.randrange(1, 6)]
    return (unit or "a") * rng.randrange(1, 60)


def random_texts(count, pieces, tokens, seed):
    """Several kinds in turn. `pieces` are entries of the vocabulary: gluing them finds wrong merges."""
    rng = random.Random(seed)

    def glued(rng):
        return "".join(rng.choices(pieces, k=rng.randrange(1, 10)))

    def with_tokens(rng):
        return "".join(
            rng.choice((rng.choice(tokens), random_words(rng), random_soup(rng), " "))
            for _ in range(rng.randrange(1, 5)))

    kinds = (random_ascii, random_words, random_unicode, random_soup, random_marks, random_script,
             random_repeats, glued, glued, with_tokens)
    return [kinds[i % len(kinds)](rng) for i in range(count)]
