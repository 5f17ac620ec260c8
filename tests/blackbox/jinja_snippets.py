"""Small templates by theme, for comparing two programs that render them."""

# What the templates see beside the chat. Every snippet is rendered with each.
CONTEXTS = [
    {
        "n": 7, "neg": -3, "f": 2.5, "zero": 0, "s": "Hello, World", "empty": "", "spaced": "  a b\tc \n", "u": "Grüße 東京 👩🏽‍🚀 é",
        "yes": True, "no": False, "xs": [3, 1, 2, 1], "ws": ["b", "A", "c"], "none_list": [],
        "d": {"b": 1, "a": [1, {"c": None}], "é": "ü"}, "q": "it's \"q\" \\ <b>&", "lines": "one\ntwo\r\n\nthree",
        "rows": [{"name": "x", "v": 2, "k": {"z": 1}}, {"name": "y", "v": 1}, {"name": "x", "v": 3}], "nested": [[1, [2]], [3]],
    },
    {
        "n": 0, "neg": -10**12, "f": -0.1, "zero": 0, "s": "ß", "empty": "", "spaced": "\u00a0x\u3000", "u": "İIıi ǆ ΣΑΣ",
        "yes": True, "no": False, "xs": [], "ws": ["z"], "none_list": [], "d": {}, "q": "'", "lines": "",
        "rows": [], "nested": [],
    },
]

OUTPUT = """
{{ n }} {{ neg }} {{ f }} {{ s }} {{ yes }} {{ no }} {{ nil }}|{{ missing }}|
{{ xs }} {{ ws }} {{ d }} {{ rows }} {{ nested }}
{{ q }} {{ [q] }} {{ {"q": q} }}
{{ [u, lines, spaced] }}
{{ 1.0 }} {{ 1e5 }} {{ 1e15 }} {{ 1e16 }} {{ 1e17 }} {{ 1e-4 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1/3 }} {{ 2.50 }} {{ 123456789.123456789 }}
{{ 1e300 * 1e10 }} {{ -0.0 }} {{ 5e-324 }} {{ 100.0 }} {{ 3.14159265358979 }}
{{ 1_000 }} {{ 1_0.5 }}
{{ "a\\nb\\t\\"\\\\ \\u00e9 \\x41 \\'" }}
{{ 'single' "double" 'three' }}
{{ [] }} {{ () }} {{ (1,) }} {{ (1, 2) }} {{ {} }} {{ {"a": 1, 'b': (2, [3])} }}
{{ [1, "a", none, true, 2.0, ["x"]] }}
{{ none }} {{ None }} {{ true }} {{ True }} {{ false }} {{ False }}
{{ "" }}{{ missing }}{{ nil }}
{{ range(0) | list }}
{{ ["\\u200b", "\\u00a0", "\\x00", "\\x7f", "é", "👍", "\\ufeff", "\\u2028"] }}
"""

ARITHMETIC = """
{{ n + 1 }} {{ n - 8 }} {{ n * 3 }} {{ n / 2 }} {{ n // 2 }} {{ n % 3 }} {{ n ** 2 }} {{ -n }} {{ +n }}
{{ neg // 2 }} {{ neg % 5 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }}
{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ (-8) ** 2 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ f * 2 }} {{ f + 1 }} {{ f // 1 }} {{ 4 / 2 }} {{ 7 / 7 }}
{{ 1 + 2 * 3 - 4 }} {{ (1 + 2) * 3 }} {{ 10 - 3 - 2 }} {{ 2 * 3 % 4 }} {{ 7 // 2 * 2 }}
{{ true + 1 }} {{ true * 3 }} {{ -true }}
{{ "a" + "b" }} {{ "ab" * 3 }} {{ 3 * "ab" }} {{ "ab" * 0 }} {{ "ab" * -1 }}
{{ [1] + [2] }} {{ [1, 2] * 2 }} {{ (1,) + (2,) }}
{{ "a" ~ 1 ~ none ~ 2.0 ~ [1] }} {{ 1 ~ 2 }} {{ missing ~ "x" }}
{{ "a" + 1 }}
{{ 1 + "a" }}
{{ [1] + "a" }}
{{ none + 1 }}
{{ missing + 1 }}
{{ "%s is %d and %.2f" % (s, n, f) }}
{{ "%5d|%-5d|%05d|%x|%s" % (n, n, n, n, none) }}
{{ "%s" % s }} {{ "%%" % () }}
{{ 9007199254740993 }} {{ 9007199254740993 + 1 }}
{{ 1 - 1.0 }} {{ 3 - -3 }} {{ not n }} {{ not not s }}
"""

LOGIC = """
{{ 1 < 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ "a" == "a" }} {{ "a" != "b" }} {{ true == 1 }} {{ none == false }}
{{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ [1] == [1.0] }} {{ (1,) == [1] }} {{ d == {} }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ missing == missing }} {{ missing == none }} {{ missing != "" }}
{{ n and s }} {{ zero and s }} {{ zero or s }} {{ empty or "x" }} {{ none_list or nil }} {{ nil or empty }}
{{ n if yes else s }} {{ n if no else s }} {{ n if no }}|{{ (n if no) is defined }}
{{ not yes and no }} {{ not (yes and no) }} {{ yes or no and no }} {{ not n == 3 }}
{{ 1 in xs }} {{ 9 in xs }} {{ 1 not in xs }} {{ "ell" in s }} {{ "b" in d }} {{ "" in s }} {{ 1 in (1, 2) }} {{ nil in [none] }}
{{ 1 in s }}
{{ 1 in missing }}
{{ "x" in nil }}
{{ 1 in 5 }}
{{ (1 if n > 3 else 2) + 1 }} {{ "a" if n > 3 else "b" if n < 0 else "c" }}
{{ n is odd and s is string }} {{ not n is odd }} {{ n is not odd }}
"""

TESTS = """
{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ nil is defined }} {{ d.zz is defined }} {{ d["b"] is defined }}
{{ nil is none }} {{ missing is none }} {{ s is none }} {{ nil is not none }}
{{ s is string }} {{ n is string }} {{ n is number }} {{ f is number }} {{ yes is number }} {{ s is number }}
{{ n is integer }} {{ f is integer }} {{ yes is integer }} {{ n is float }} {{ f is float }} {{ yes is boolean }} {{ n is boolean }}
{{ d is mapping }} {{ xs is mapping }} {{ xs is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }}
{{ xs is iterable }} {{ s is iterable }} {{ n is iterable }} {{ d is iterable }} {{ missing is iterable }}
{{ n is even }} {{ n is odd }} {{ n is divisibleby(7) }} {{ n is divisibleby 7 }}
{{ yes is true }} {{ no is false }} {{ 1 is true }} {{ n is eq(7) }} {{ n is equalto(7) }} {{ n is ne 8 }} {{ n is gt 3 }} {{ n is lt 3 }}
{{ n is ge 7 }} {{ n is le 7 }} {{ n is greaterthan 3 }} {{ n is lessthan 3 }} {{ n is sameas n }} {{ nil is sameas none }}
{{ 1 is in xs }} {{ "a" is in(["a"]) }} {{ s is lower }} {{ s is upper }} {{ "ABC" is upper }} {{ "abc" is lower }}
{{ range is callable }} {{ n is callable }}
{{ missing.foo is defined }}
{{ s is nosuchtest }}
{{ missing is not defined and nil is none }} {{ xs is defined and xs }}
{{ n is defined is true }}
"""

FILTERS = """
{{ s | upper }} {{ s | lower }} {{ s | title }} {{ s | capitalize }} {{ u | upper }} {{ u | lower }} {{ u | title }} {{ u | capitalize }}
{{ "hELLO wORLD's foo-bar (baz) x2y" | title }} {{ "éa ßb" | title }} {{ "ÉA" | capitalize }}
[{{ spaced | trim }}] [{{ "xxaxx" | trim("x") }}] [{{ "xyaxy" | trim("yx") }}]
{{ s | length }} {{ xs | length }} {{ d | length }} {{ u | length }} {{ xs | count }} {{ missing | length }}
{{ n | length }}
{{ nil | length }}
{{ missing | default("x") }} {{ empty | default("x") }}|{{ empty | default("x", true) }} {{ nil | default("x") }} {{ nil | d("x", boolean=true) }} {{ missing | default }}|
{{ xs | first }} {{ xs | last }} {{ s | first }} {{ s | last }} {{ ws | first | upper }}
{{ xs | join }} {{ xs | join(", ") }} {{ ws | join("-") }} {{ rows | join(",", attribute="name") }} {{ s | join("-") }} {{ [1, none, "a", 2.5] | join("|") }}
{{ xs | sort }} {{ ws | sort }} {{ ws | sort(case_sensitive=true) }} {{ xs | sort(reverse=true) }} {{ rows | sort(attribute="v") | map(attribute="v") | list }}
{{ rows | sort(attribute="name,v") | map(attribute="v") | list }}
{{ [1, "a"] | sort }}
{{ xs | unique | list }} {{ ["a", "A", "b"] | unique | list }} {{ xs | reverse | list }} {{ s | reverse }}
{{ xs | max }} {{ xs | min }} {{ xs | sum }} {{ rows | sum(attribute="v") }} {{ ws | max }} {{ [] | max }}|{{ xs | sum(start=10) }}
{{ xs | map("string") | list }} {{ ws | map("upper") | join }} {{ rows | map(attribute="name") | list }} {{ rows | map(attribute="zz", default="-") | list }}
{{ rows | map(attribute="k.z") | list }} {{ nested | map("length") | list }} {{ xs | map("default", 3) | list }}
{{ xs | select("odd") | list }} {{ xs | reject("odd") | list }} {{ xs | select | list }} {{ [0, 1, "", "a", none] | select | list }}
{{ xs | select("gt", 1) | list }} {{ rows | selectattr("v", "ge", 2) | map(attribute="v") | list }} {{ rows | rejectattr("name", "equalto", "x") | list }}
{{ rows | selectattr("k") | list }} {{ rows | selectattr("k", "defined") | list | length }} {{ rows | rejectattr("k", "undefined") | list | length }}
{{ rows | selectattr("name", "in", ["y"]) | list }} {{ xs | select("in", [1]) | list }}
{{ rows | groupby("name") | list | length }}{% for name, group in rows | groupby("name") %} {{ name }}={{ group | length }}{% endfor %}
{{ d | dictsort }} {{ d | items | list }} {{ {"b": 1, "A": 2} | dictsort }} {{ {"b": 1, "a": 2} | dictsort(by="value") }} {{ {"a": 1, "b": 2} | dictsort(reverse=true) }}
{{ xs | list }} {{ s | list }} {{ d | list }} {{ (1, 2) | list }}
{{ "3" | int }} {{ "3.7" | int }} {{ "x" | int }} {{ "x" | int(9) }} {{ "0x1A" | int(0, 16) }} {{ f | int }} {{ yes | int }} {{ nil | int }} {{ " 42 " | int }} {{ "-5" | int }} {{ -2.7 | int }}
{{ "3.5" | float }} {{ "x" | float }} {{ n | float }} {{ "x" | float(1.5) }} {{ "1e3" | float }}
{{ f | round }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.1 | round(0, "ceil") }} {{ 2.9 | round(method="floor") }} {{ 7 | round }} {{ 1234.5 | round(-2) }} {{ -2.5 | round }}
{{ neg | abs }} {{ f | abs }} {{ n | string }} {{ nil | string }} {{ xs | string }} {{ 2.0 | string }}
{{ q | e }} {{ q | escape }} {{ "<a>" | safe }} {{ "<a href='x'>" | e }}
{{ s | replace("l", "L") }} {{ s | replace("l", "L", 1) }} {{ s | replace("", "-") }} {{ "aaa" | replace("aa", "b") }}
{{ lines | indent }} {{ lines | indent(2) }} {{ lines | indent(2, true) }} {{ lines | indent(width=3, first=true, blank=true) }} {{ lines | indent("> ") }}
{{ lines | wordcount }} {{ "a b  c" | wordcount }}
{{ xs | batch(2) | list }} {{ xs | batch(3, 0) | list }} {{ xs | slice(2) | list }} {{ xs | slice(3, 9) | list }}
{{ "%s-%s" | format("a", 1) }} {{ "%(a)s" | format(a=3) }}
{{ s | truncate(5) }} {{ "a long text with words in it" | truncate(12) }} {{ "a long text with words" | truncate(12, true, "~", 0) }}
{{ d | tojson }} {{ xs | tojson }} {{ u | tojson }} {{ q | tojson }} {{ nil | tojson }} {{ f | tojson }} {{ yes | tojson }} {{ lines | tojson }}
{{ d | tojson(indent=2) }} {{ [] | tojson(indent=2) }} {{ {"a": {}, "b": []} | tojson(indent=4) }}
{{ {"b": 1, "a": 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(",", ":")) }} {{ u | tojson(ensure_ascii=true) }}
{{ [1.0, 1e20, 0.1, 1e-7, -0.0] | tojson }} {{ "\\x00\\x1f\\x7f\\u2028</script>" | tojson }} {{ (1, 2) | tojson }}
{{ missing | tojson }}
{{ range(3) | tojson }}
{{ s | nosuchfilter }}
{{ s | upper | lower | title | length }} {{ (s | upper)[0] }} {{ s | upper ~ "!" }} {{ -1 | abs }} {{ not empty | length }}
{{ s | attr("upper") is defined }} {{ d | attr("b") is defined }}
{{ "ab" | center(6) }}|
"""

METHODS = """
[{{ spaced.strip() }}] [{{ spaced.lstrip() }}] [{{ spaced.rstrip() }}] [{{ "xxaxx".strip("x") }}] [{{ "xyaxy".lstrip("yx") }}] [{{ "abc".rstrip("") }}]
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ s.capitalize() }} {{ s.swapcase() }} {{ u.upper() }} {{ u.lower() }}
{{ s.split() }} {{ s.split(", ") }} {{ s.split("l", 1) }} {{ s.split("o")[-1] }} {{ spaced.split() }} {{ spaced.split(" ") }} {{ empty.split() }} {{ empty.split(",") }}
{{ s.split(maxsplit=1) }} {{ s.split(sep="l", maxsplit=2) }} {{ "a b c".split(none, 1) }} {{ "a,b,c".rsplit(",", 1) }} {{ "a b  c".rsplit(none, 1) }}
{{ s.split("") }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ "a\\x0bb\\x0cc\\x1cd\\x85e\\u2028f" | string }} {{ "a\\x0bb\\u2028c".splitlines() }}
{{ s.startswith("He") }} {{ s.endswith("ld") }} {{ s.startswith(("x", "H")) }} {{ s.startswith("l", 2) }} {{ s.endswith("l", 0, 4) }} {{ s.startswith("") }}
{{ s.startswith(1) }}
{{ s.replace("l", "LL") }} {{ s.replace("l", "", 1) }} {{ s.replace("", "-") }} {{ "aaa".replace("a", "b", 2) }}
{{ s.find("o") }} {{ s.find("zz") }} {{ s.find("o", 5) }} {{ s.rfind("o") }} {{ s.count("l") }} {{ "aaaa".count("aa") }} {{ "abc".count("") }} {{ s.index("W") if "W" in s }}
{{ s.index("zz") }}
{{ "-".join(ws) }} {{ "".join(["a", "b"]) }} {{ ", ".join(s) }}
{{ "-".join(xs) if not xs else "" }}
{{ "-".join([1]) }}
{{ "{} and {}".format(s, n) }} {{ "{0}{1}{0}".format("a", "b") }} {{ "{x}".format(x=n) }} {{ "{:>5}|{:<5}|{:05d}|{:.2f}".format("a", "b", n, f) }} {{ "{{}}".format() }}
{{ "{}".format() }}
{{ "5".isdigit() }} {{ "x".isdigit() }} {{ "²".isdigit() }} {{ "ab".isalpha() }} {{ "a1".isalnum() }} {{ " ".isspace() }} {{ "AB".isupper() }} {{ "ab".islower() }} {{ "".isdigit() }} {{ "é".isascii() }}
{{ "abcabc".removeprefix("abc") }} {{ "abcabc".removesuffix("bc") }} {{ "abc".removeprefix("x") }}
{{ "a=b=c".partition("=") }} {{ "a=b=c".rpartition("=") }} {{ "abc".partition("=") }} {{ "abc".rpartition("=") }}
{{ "42".zfill(5) }} {{ "-42".zfill(5) }} {{ "ab".center(6) }}| {{ "ab".ljust(5) }}| {{ "ab".rjust(5, "*") }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get("b") }} {{ d.get("zz") }} {{ d.get("zz", 5) }} {{ d.items() | length }}
{% for k, v in d.items() %}{{ k }}:{{ v }};{% endfor %}|{% for k in d %}{{ k }};{% endfor %}|{% for v in d.values() %}{{ v }};{% endfor %}
{{ xs.index(1) if xs }} {{ xs.count(1) }} {{ (1, 2, 1).count(1) }}
{{ xs.append(1) }}
{{ d.update({"x": 1}) }}
{{ d.pop("b") }}
{{ d.clear() }}
{{ xs.sort() }}
{{ xs.nosuchmethod() }}
{{ n.nosuchmethod() }}
{{ nil.strip() }}
{{ missing.strip() }}
{{ s.__class__ }}
{{ s.__class__.__mro__ }}
{{ "".__class__.__base__.__subclasses__() }}
{{ d.a }} {{ d["a"] }} {{ d.b }} {{ d["zz"] }}| {{ d.zz }}| {{ d["é"] }}
{{ d.zz.yy }}
{{ d["zz"]["yy"] }}
{{ nil.x }}|
{{ nil["x"] }}|
{{ {"items": 3}.items is defined }} {{ {"items": 3}["items"] }} {{ {"x": {"y": 1}}.x.y }}
"""

SLICES = """
{{ s[0] }} {{ s[-1] }} {{ s[1:3] }} {{ s[:2] }} {{ s[-3:] }} {{ s[:-1] }} {{ s[::2] }} {{ s[::-1] }} {{ s[5:1] }} {{ s[1:100] }} {{ s[-100:2] }} {{ s[10:0:-3] }}
{{ u[0] }} {{ u[6:9] }} {{ u[::-1] }} {{ u[-1] }}
{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ xs[::2] }} {{ xs[5:] }} {{ xs[-2:] }} {{ xs[1:3][0] if xs }}
{{ xs[99] }}| {{ xs[-99] }}| {{ xs[0] if xs }} {{ (1, 2, 3)[1:] }} {{ xs["a"] }}|
{{ xs[::0] }}
{{ s[::0] }}
{{ n[0] }}|
{{ xs[99].foo }}
{{ s[99] }}|
{{ xs[:n] }} {{ xs[n:] }} {{ s[n:] }} {{ xs[none:2] }} {{ xs[true:] }} {{ s[: -1 : 2] }} {{ xs[1.0] }}|
{{ xs[1.5:] }}
{{ nested[0][1][0] if nested }} {{ rows[0].name if rows }} {{ rows[0]["k"]["z"] if rows }} {{ rows[-1].v if rows }}
{{ messages[0].role }} {{ messages[0]["content"] }} {{ messages | length }} {{ messages[-1:] | length }}
{{ range(10)[2:5] | list }} {{ range(10)[3] }} {{ range(1, 10, 3) | list }} {{ range(5, 0, -2) | list }}
"""

STATEMENTS = """
{% if n > 3 %}big{% elif n == 0 %}zero{% else %}small{% endif %}
{% if missing %}x{% endif %}{% if not missing %}y{% endif %}{% if xs %}z{% endif %}{% if d %}w{% endif %}{% if "0" %}v{% endif %}{% if 0.0 %}t{% endif %}
{% for x in xs %}{{ x }},{% else %}none{% endfor %}
{% for x in xs if x != 1 %}{{ loop.index }}:{{ x }};{% else %}none{% endfor %}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle("a", "b", "c") }} {{ loop.changed(x) }};{% endfor %}
{% for x in ws %}{% for y in xs %}{{ loop.depth }}{{ x }}{{ y }}{% if loop.last %}!{% endif %}{% endfor %}{{ loop.index }}{% endfor %}
{% for a, b in [(1, 2), (3, 4)] %}{{ a }}-{{ b }} {% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}
{% for c in u %}[{{ c }}]{% endfor %}
{% for k in d %}{{ k }}{% endfor %}{% for x in missing %}a{% else %}b{% endfor %}{% for x in empty %}a{% else %}c{% endfor %}
{% for x in n %}{{ x }}{% endfor %}
{% for x in nil %}{{ x }}{% endfor %}
{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in xs %}{% set y = x %}{{ y }}{% endfor %}{{ y is defined }}
{% set y = 1 %}{% for x in xs %}{% set y = y + x %}{{ y }},{% endfor %}{{ y }}
{% set ns = namespace(y=1, z="a") %}{% for x in xs %}{% set ns.y = ns.y + x %}{% endfor %}{{ ns.y }}{{ ns.z }}{{ ns.missing }}|
{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = a, b %}{{ c }}
{% set a, b = [1, 2, 3] %}{{ a }}
{% set text %}block {{ n }} text{% endset %}[{{ text }}]{% set loud | upper %}x{{ n }}{% endset %}{{ loud }}
{% if yes %}{% set inner = 5 %}{% endif %}{{ inner }}{% if no %}{% set never = 5 %}{% endif %}{{ never is defined }}
{% with a = n, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}
{% filter upper %}abc {{ s }}{% endfilter %}
{% raw %}{{ not }} {% rendered %}{% endraw %}
{# comment {{ x }} #}a{#- c -#} b
{% macro m(a, b=2) %}({{ a }},{{ b }}){% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}
{% macro m(a) %}{{ a }}{% if a > 0 %}{{ m(a - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% macro m(a) %}{{ a | upper }}{% endmacro %}{{ m("x") ~ m("y") }} {{ m("q") | length }} {{ m.name }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, zz=2) }}
{% macro outer() %}{{ n }}{{ later }}{% endmacro %}{% set later = 3 %}{{ outer() }}
{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y is defined }}
{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}in{{ n }}{% endcall %}
{% macro each() %}{{ caller(1) }}{{ caller(2) }}{% endmacro %}{% call(x) each() %}[{{ x }}]{% endcall %}
{% for m in rows %}{% if loop.first %}{{ m.name }}{% elif loop.last %}-{{ m.name }}{% else %},{% endif %}{% endfor %}
{% set x = namespace(found=false) %}{% for i in range(3) %}{% if not x.found %}{{ i }}{% set x.found = true %}{% endif %}{% endfor %}
{% set n = 99 %}{{ n }}{% for n in xs %}{{ n }}{% endfor %}{{ n }}
{{ dict(a=1, b="x") }} {{ dict(a=1).a }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, a=2) }}
{% do xs.append(1) %}
{% set loop_messages = messages %}{% for message in loop_messages %}{{ message.role }}{% endfor %}
{{ raise_exception("no " ~ n) }}
{% if n == 7 %}{{ raise_exception("seven") }}{% endif %}fine
{% if no %}{{ raise_exception("never") }}{% endif %}fine
{{ undefined_function() }}
{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ tools is defined }}
{{ strftime_now("%%Y") }}
"""

# One per entry: whitespace is what they are about.
SPACES = [
    "a\n{% if yes %}\nb\n{% endif %}\nc\n", "a\n  {% if yes %}\n  b\n  {% endif %}\n  c", "a\n  {%- if yes -%}  \n b  \n{%- endif -%}\n c",
    "a {%+ if yes %} b {%+ endif %} c", "a\n  {%+ if yes +%}\n b\n{% endif +%}\nc", "x  {{- n -}}  y  {{ n }}  z", "x\n{{- n }}\n{{ n -}}\ny", "a\n\n\n{% if yes -%}\n\n b{% endif %}\n\n",
    "{# c #}\na\n  {# c #}\nb {#- c -#} d", "line\n", "line\n\n", "\nline", "\r\na\r\n{% if yes %}\r\nb{% endif %}\r\nc\r\n", "{% for x in ws %}\n  {{ x }}\n{% endfor %}\nend",
    "  {% for x in ws %}\n    {% if x %}\n      {{ x }}\n    {% endif %}\n  {% endfor %}\n", "{%- for x in ws -%} {{ x }} {%- endfor -%}", "\t{% set a = 1 %}\t\nx{{ a }}",
    "text {% set a = 1 %} more", "  {{ n }}\n  {{ n }}", "a\n\t {% raw %}\n {{ x }} \n{% endraw %}\nb", "a {%- raw -%} {{ x }} {%- endraw -%} b", "{% if yes %}a{% endif %}\n\nb",
    "{{ 'a\n b' }}", "{% set a = 'x\n  y' %}{{ a }}", "{{\n  n\n}}{{\n'}}'\n}}", "{%\n if yes\n%}z{%\nendif\n%}", "{{ '{{' }} {{ '%}' }} {{ \"{#\" }} { { } } {% raw %}{%{% endraw %}",
    "a{% if yes %}b{% endif %}{# x #}{{ n }}", "{{ n }}{# multi\nline #}\n{{ n }}", "   {#- x #}\n y", "é  {%- if yes %}ü{% endif -%}  ß\u00a0{%- if yes %}x{% endif %}",
]

WRONG = """
{{ }}
{{ n
{% if %}
{% if n %}
{% endif %}
{% for %}
{% for x in %}{% endfor %}
{% for x xs %}{% endfor %}
{% else %}
{% unknown %}
{{ n n }}
{{ n | }}
{{ n. }}
{{ [1, 2 }}
{{ {1: } }}
{{ "unclosed }}
{{ 'a' + }}
{{ n is }}
{{ (n }}
{{ n) }}
{% set %}
{% set x %}
{% set 1 = 2 %}
{% set none = 2 %}
{% set a.b = 2 %}
{% macro %}{% endmacro %}
{% macro m(a, a=1) %}{% endmacro %}{{ m(1) }}
{% macro m(a=1, b) %}{% endmacro %}
{{ m( }}
{{ n ** }}
{{ 1..2 }}
{{ @ }}
{{ $ }}
{{ a? }}
{{ not }}
{{ n not 3 }}
{# unclosed
{% raw %} unclosed
{% endfor %}
{{ x = 1 }}
{% break %}
{{ 1 if }}
{{ f(**) }}
{{ f(a=1, 2) }}
{{ n < }}
{{ n <> 3 }}
{{ !n }}
{{ n && s }}
{{ s | upper( }}
{{ "\\
"""

MARKUP = """
{{ q | safe }} {{ q | e }} {{ q | escape | e }} {{ q | safe | forceescape }} {{ "<" + q | safe }}
{{ d | tojson | safe }}{{ d | tojson | safe ~ q }}|{{ q ~ (d | tojson | safe) }}
{% set v = d | tojson | safe if d is mapping else s | string %}<parameter>{{ v }}</parameter>
{% set v = q | safe %}{{ v + "<" }} {{ "<" + v }} {{ v ~ "<" }} {{ v * 2 + "<" }} {{ [v, "<"] | join("&") }}
{{ (q | safe) == q }} {{ q | safe in [q] }} {{ (q | safe) | length }} {{ q | safe is string }} {{ q | safe is escaped }} {{ q is escaped }}
{{ (q | safe).upper() + "<" }} {{ (q | safe) | lower + "<" }} {{ (q | safe) | trim + "<" }} {{ (q | safe) | title + "<" }}
{{ (q | safe)[1:] + "<" }} {{ (q | safe)[:1] + "<" }} {{ (q | safe) | replace("q", "<") + "<" }} {{ (q | safe) | string + "<" }}
{{ [q | safe, q] }} {{ {"k": q | safe} }} {{ [q | safe] | tojson }} {{ rows | map("string") | map("safe") | join("<") }}
{{ "%s<" % (q | safe) }} {{ "{}<".format(q | safe) }} {{ (q | safe).startswith("i") }} {{ (q | safe) | default("<") + "<" }}
{% macro m() %}<{% endmacro %}{{ m() + q | safe }} {{ (s + "<") + ("&" | safe) + "<" + s }}
{% set x %}<{% endset %}{{ x + (q | safe) }} {% filter safe %}<{{ q }}{% endfilter %}
{% for c in q | safe %}{{ c + "<" }}{% endfor %} {{ (q | safe) | first + "<" }} {{ (q | safe) | list }}
"""

KEYS = """
{{ {0: 1, 512: "a", "0": 2, none: 3} }} {{ {1: 2} | tojson }} {{ {none: 1} | tojson }}
{% set b = {0: 0, 512: 128, 1024: 256, 2048: 512} %}{% for k, v in b | dictsort %}{% if n <= k %}{{ k }}:{{ v }} {% endif %}{% endfor %}
{% set b = {0: 0, 7: 1} %}{{ b[n] }} {{ b.get(n) }} {{ b.get(8, "x") }} {{ n in b }} {{ "7" in b }} {{ b[8] is defined }}
{% set b = {3: 0, 1: 1} %}{{ b.keys() | list }} {{ b.items() | list }} {{ b | list }} {{ b | items | list }} {{ b | length }} {{ b == {1: 1, 3: 0} }}
{% set b = {3: "c", 1: "a"} %}{% for k in b %}{{ k + 1 }}{{ b[k] }}{% endfor %} {{ b | dictsort(reverse=true) }} {{ b | dictsort(by="value") }}
{{ dict({1: 2}, a=3) }} {{ {1: 2}[1] }} {{ {1: {2: 3}}[1][2] }} {{ {-1: "m"}[-1] }}
"""

BRANCHES = """
{% if no %}{{ s | markdown }}{% endif %}a
{% if no %}{{ s is shiny }}{% elif no %}{{ s | markdown }}{% else %}a{% endif %}
{{ s | markdown if no else "a" }}
{{ "a" if yes else (s | markdown) }}
{{ "a" if not no else s is shiny }}
{% if yes %}{{ s | markdown }}{% endif %}
{{ s | markdown if yes else "a" }}
{{ s | markdown }}
"""

THEMES = {
    "markup": MARKUP, "keys": KEYS, "branches": BRANCHES,
    "output": OUTPUT, "arithmetic": ARITHMETIC, "logic": LOGIC, "tests": TESTS, "filters": FILTERS, "methods": METHODS,
    "slices": SLICES, "statements": STATEMENTS, "wrong": WRONG,
}


def snippets(theme):
    if theme == "spaces":
        return SPACES
    # Engines leave out what is null in a request.
    return ["{% set nil = none %}" + line for line in THEMES[theme].split("\n") if line]
