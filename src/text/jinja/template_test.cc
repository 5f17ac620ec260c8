#include "text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Refusal(std::string_view source) {
  const Result<Template> parsed = Template::Parse(source);
  return parsed ? "" : parsed.error().what;
}

bool LoopsOverContent(std::string_view source) {
  const Result<Template> parsed = Template::Parse(source);
  return parsed && parsed->loops_over_content();
}

TEST(Template, DropsTheNewlineAfterAStatementAndTheBlanksBeforeIt) {
  EXPECT_EQ(Rendered("  {% if t %}\n  x\n  {% endif %}\ny"), "  x\ny");
  EXPECT_EQ(Rendered("a\n  {{ n }}  \nb"), "a\n  5  \nb");
  EXPECT_EQ(Rendered(" x {% set a = 1 %}\ny"), " x y");
  EXPECT_EQ(Rendered("a{# c #}\nb"), "ab");
}

TEST(Template, ObeysTheSignsOfWhitespaceControl) {
  EXPECT_EQ(Rendered("a \n {{- n -}} \n b"), "a5b");
  EXPECT_EQ(Rendered("a\n  {%+ if t %}b{% endif %}"), "a\n  b");
  EXPECT_EQ(Rendered("{% if t +%}\nx{% endif %}"), "\nx");
  EXPECT_EQ(Rendered("a {#- c -#} b"), "ab");
}

TEST(Template, DropsOneNewlineAtTheEndAndReadsEveryKindOfThem) {
  EXPECT_EQ(Rendered("x\n\n"), "x\n");
  EXPECT_EQ(Rendered("x\r\n{% if t %}\r\ny\r{% endif %}\r\nz"), "x\ny\nz");
}

TEST(Template, LeavesRawTextAlone) {
  EXPECT_EQ(Rendered("{% raw %}{{ x }}{% if %}{% endraw %}"), "{{ x }}{% if %}");
  EXPECT_EQ(Rendered("{% raw -%}  {{ x }}  {%- endraw %}z"), "{{ x }}z");
}

TEST(Template, KnowsWhereALoopIs) {
  EXPECT_EQ(Rendered("{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                     "{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};"
                     "{% endfor %}"),
            "1032TrueFalse3;2121FalseFalse3;3210FalseTrue3;");
  EXPECT_EQ(
      Rendered("{% for i in l %}{{ loop.previtem }}-{{ i }}-{{ loop.nextitem }};{% endfor %}"),
      "-3-1;3-1-2;1-2-;");
  EXPECT_EQ(Rendered("{% for i in l %}{{ loop.cycle('a','b') }}{% endfor %}"), "aba");
  EXPECT_EQ(Rendered("{% for i in [1,1,2] %}{{ loop.changed(i) }}{% endfor %}"), "TrueFalseTrue");
}

TEST(Template, TestsTheItemsOfALoopOneByOne) {
  EXPECT_EQ(
      Rendered("{% for i in l if i > 1 %}{{ i }}{{ loop.length }}{{ loop.last }}{% endfor %}"),
      "32False22True");
  EXPECT_EQ(Rendered("{% for i in l if i > 5 %}x{% else %}none{% endfor %}"), "none");
  // What the body changes is seen by the next test.
  EXPECT_EQ(Rendered("{% set ns = namespace(on=true) %}{% for i in [1,2,3,4] if ns.on %}{{ i }}"
                     "{% if i == 2 %}{% set ns.on = false %}{% endif %}{% endfor %}"),
            "12");
}

TEST(Template, LeavesLoopsEarly) {
  EXPECT_EQ(Rendered("{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}"),
            "32");
  EXPECT_EQ(Rendered("{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "3");
  // As jinja2 has it: no turn came to its end.
  EXPECT_EQ(Rendered("{% for i in l %}{% break %}{% else %}else{% endfor %}"), "else");
}

TEST(Template, TakesPairsApart) {
  EXPECT_EQ(Rendered("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }},{% endfor %}"),
            "a=1,b=2,");
  EXPECT_EQ(Rendered("{% set a, b = 1, 2 %}{{ a }}{{ b }}"), "12");
  EXPECT_EQ(Rendered("{% set a, b = l %}"), "error: line 1: 3 values for 2 names");
}

TEST(Template, ForgetsWhatALoopSets) {
  EXPECT_EQ(
      Rendered("{% set y = 1 %}{% for i in l %}{% set y = y + i %}{{ y }},{% endfor %}{{ y }}"),
      "4,2,3,1");
  EXPECT_EQ(Rendered("{% set ns = namespace(y=1) %}{% for i in l %}{% set ns.y = ns.y + i %}"
                     "{% endfor %}{{ ns.y }}"),
            "7");
}

TEST(Template, GivesAnIfNoScopeOfItsOwn) {
  EXPECT_EQ(Rendered("{% if t %}{% set z = 5 %}{% endif %}{{ z }}"), "5");
  EXPECT_EQ(Rendered("{% if not t %}{% set s = 5 %}{% endif %}{{ s }}"), "Hello World");
  EXPECT_EQ(Rendered("{% if not t %}a{% elif s %}b{% else %}c{% endif %}"), "b");
}

TEST(Template, HidesAValueThatIsSetLaterFromTheLoopBefore) {
  EXPECT_EQ(Rendered("{% for i in l %}[{{ s }}]{% endfor %}{% set s = 1 %}{{ s }}"), "[][][]1");
  EXPECT_EQ(Rendered("{{ s }}{% for i in [1] %}[{{ s }}]{% endfor %}{% set s = 1 %}{{ s }}"),
            "Hello World[Hello World]1");
}

TEST(Template, CallsMacros) {
  EXPECT_EQ(Rendered("{% macro m(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}"
                     "{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}"),
            "[121][131][454][2]");
  EXPECT_EQ(Rendered("{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}"
                     "{{ m(3) }}"),
            "3210");
  EXPECT_EQ(Rendered("{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, z=3) }}"),
            "(1,){'z': 3}");
  EXPECT_THAT(Rendered("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), StartsWith("error: line 1"));
  EXPECT_THAT(Rendered("{% macro m(a) %}{% endmacro %}{{ m(z=2) }}"), StartsWith("error: line 1"));
}

TEST(Template, LetsMacrosSeeWhatIsAroundThemWhenTheyAreCalled) {
  EXPECT_EQ(Rendered("{% set a = 'x' %}{% macro m() %}{{ a }}{% endmacro %}{% set a = 'y' %}"
                     "{{ m() }}{% for i in l %}{% set a = i %}{{ m() }}{% endfor %}"),
            "yyyy");
  EXPECT_EQ(Rendered("{% macro o() %}{% macro i(x) %}i{{ x }}{% endmacro %}{{ i(1) }}{% endmacro %}"
                     "{{ o() }}"),
            "i1");
}

TEST(Template, RefusesAMacroThatOutlivedTheOneAroundIt) {
  EXPECT_EQ(Rendered("{% set ns = namespace() %}{% macro o() %}{% macro i() %}x{% endmacro %}"
                     "{% set ns.i = i %}{% endmacro %}{{ o() }}{{ ns.i() }}"),
            "error: line 1: a macro outlived the one that it was defined in");
}

TEST(Template, PassesABlockToAMacro) {
  EXPECT_EQ(Rendered("{% macro m() %}<{{ caller(1, 2) }}>{% endmacro %}"
                     "{% call(p, q) m() %}{{ p }}{{ q }}{{ s }}{% endcall %}"),
            "<12Hello World>");
}

TEST(Template, SetsAndFiltersBlocks) {
  EXPECT_EQ(Rendered("{% set a | upper %}x{{ n }}y{% endset %}{{ a }}"), "X5Y");
  EXPECT_EQ(Rendered("{% filter replace('a','b') | upper %}aaa{% endfilter %}"), "BBB");
  EXPECT_EQ(Rendered("{% with s = 1, b = s %}{{ s }}{{ b }}{% endwith %}{{ s }}"),
            "1Hello WorldHello World");
  EXPECT_EQ(Rendered("{% generation %}{% set s = 5 %}{{ s }}{% endgeneration %}{{ s }}"),
            "5Hello World");
}

TEST(Template, UsesAnIteratorUp) {
  EXPECT_EQ(Rendered("{% set g = l | select %}{{ g | first }}{{ g | list }}{{ g | list }}"),
            "3[1, 2][]");
}

TEST(Template, SaysWhatTheTemplateRaises) {
  EXPECT_EQ(Rendered("{{ raise_exception('Roles must\nalternate') }}"),
            "error: the template raised an error: Roles must alternate");
}

TEST(Template, TellsTheTimeThatItIsGiven) {
  EXPECT_EQ(Evaluated("strftime_now('%d %b %Y %H:%M')"), "14 Nov 2023 22:13");
}

TEST(Template, NamesWhatIsUndefinedAndItsLine) {
  EXPECT_EQ(Rendered("\n{{ nobody.x }}"), "error: line 2: 'nobody' is undefined");
  EXPECT_EQ(Rendered("{{ d.gone.x }}"), "error: line 1: 'gone' is undefined");
  EXPECT_EQ(Rendered("{{ d['gone']['x'] }}"), "error: line 1: 'gone' is undefined");
  EXPECT_EQ(Rendered("{{ 'a' + d.gone }}"), "error: line 1: 'gone' is undefined");
  EXPECT_EQ(Rendered("{{ nobody() }}"), "error: line 1: 'nobody' is undefined");
}

TEST(Template, KeepsTheValuesOutOfErrors) {
  for (const char* source : {"{{ s + 1 }}", "{{ s.index('q') }}", "{{ s | abs }}", "{{ s % 2 }}",
                             "{{ s < 1 }}", "{{ [s] | sum }}", "{% for a, b in [s] %}{% endfor %}",
                             "{{ d[s].x }}", "{{ s() }}", "{{ {s: 1}[s]() }}"}) {
    const std::string text = Rendered(source);
    EXPECT_THAT(text, StartsWith("error: ")) << source;
    EXPECT_EQ(text.find("Hello"), std::string::npos) << text;
  }
}

TEST(Template, RefusesWhatItDoesNotKnowWithNameAndLine) {
  EXPECT_EQ(Refusal("\n\n{{ x | markdown }}"), "line 3: filter 'markdown' is not supported");
  EXPECT_EQ(Refusal("{{ x is shiny }}"), "line 1: test 'shiny' is not supported");
  EXPECT_EQ(Refusal("{{ x.encode('utf-8') }}"), "line 1: method 'encode' is not supported");
  EXPECT_EQ(Refusal("{% include 'x' %}"), "line 1: statement 'include' is not supported");
  EXPECT_EQ(Refusal("{{ joiner(',') }}"), "line 1: 'joiner' is not supported");
  EXPECT_EQ(Refusal("{{ x | map('markdown') }}"),
            "line 1: filter 'markdown' is not supported by map");
  EXPECT_EQ(Refusal("{{ x | select('shiny') }}"), "line 1: test 'shiny' is not supported");
  EXPECT_EQ(Refusal("{{ {1.5: 2} }}"),
            "line 1: a dict with a key of this kind is not "
            "supported");
  EXPECT_EQ(Refusal("{% for i in l recursive %}{% endfor %}"),
            "line 1: 'recursive' is not supported");
}

TEST(Template, RefusesWhatItDoesNotKnowInABranchOnlyOnceItIsTaken) {
  for (const char* const unknown :
       {"x | markdown", "x is shiny", "'x'.encode('utf-8')", "[1] | map('markdown') | list"}) {
    const std::string print = "{{ " + std::string(unknown) + " }}";
    EXPECT_EQ(Rendered("{% if false %}" + print + "{% endif %}a"), "a");
    EXPECT_EQ(Rendered("{% if true %}a{% elif y %}{% for i in [1] %}" + print +
                       "{% endfor %}{% endif %}"),
              "a");
    EXPECT_EQ(Evaluated("(" + std::string(unknown) + ") if false else 'a'"), "a");
    EXPECT_THAT(Rendered("{% if true %}" + print + "{% endif %}"), StartsWith("error: "));
    EXPECT_THAT(Refusal(print), HasSubstr("not supported"));
  }
}

TEST(Template, EscapesWhatIsAddedToMarkup) {
  EXPECT_EQ(Evaluated("'<' | e"), "&lt;");
  EXPECT_EQ(Evaluated("'<a>' + '<b>' | safe"), "&lt;a&gt;<b>");
  EXPECT_EQ(Evaluated("'<b>' | safe + '\"' + '\\''"), "<b>&#34;&#39;");
  EXPECT_EQ(Evaluated("('<a>' + '<b>' | safe) + '<c>'"), "&lt;a&gt;<b>&lt;c&gt;");
  EXPECT_EQ(Evaluated("'<a>' ~ '<b>' | safe ~ '<c>'"), "<a><b><c>");
  EXPECT_EQ(Rendered("{% set a = {'x': '<'} | tojson | safe %}{{ a }}"), "{\"x\": \"<\"}");
  EXPECT_EQ(Evaluated("(('<' | safe) | upper) + '<'"), "<&lt;");
  EXPECT_EQ(Evaluated("('<' | safe).strip() + '<'"), "<&lt;");
  EXPECT_EQ(Evaluated("('<' | safe) | replace('x', 'y') + '<'"), "<<");
  EXPECT_EQ(Evaluated("['<' | safe]"), "[Markup('<')]");
  EXPECT_THAT(Rendered("{{ ('%s' | safe) % '<' }}"), StartsWith("error: "));
  EXPECT_THAT(Rendered("{{ ('<' | safe).replace('<', '>') }}"), StartsWith("error: "));
}

TEST(Template, HasDictsWithIntegersAndNoneAsKeys) {
  EXPECT_EQ(Evaluated("{512: 'a', 0: 'b', none: 'c', '0': 'd'}"),
            "{512: 'a', 0: 'b', None: 'c', '0': 'd'}");
  EXPECT_EQ(Evaluated("{512: 'a', 0: 'b'}[0]"), "b");
  EXPECT_EQ(Evaluated("{512: 'a'}.get(512)"), "a");
  EXPECT_EQ(Evaluated("512 in {512: 'a'}"), "True");
  EXPECT_EQ(Evaluated("'512' in {512: 'a'}"), "False");
  EXPECT_EQ(Evaluated("{512: 'a', 1: none} | tojson"), "{\"512\": \"a\", \"1\": null}");
  EXPECT_EQ(
      Rendered("{% for k, v in {512: 'a', 64: 'b'} | dictsort %}{{ k + 1 }}{{ v }}{% endfor %}"),
      "65b513a");
  EXPECT_EQ(Rendered("{% for k in {3: 'a'} %}{{ k - 1 }}{% endfor %}"), "2");
}

TEST(Template, RefusesWhatIsNoTemplate) {
  for (const char* source : {"{% endif %}",
                             "{% if t %}",
                             "{{ x",
                             "{{ }}",
                             "{{ (1 }}",
                             "{{ 1) }}",
                             "{{ x. }}",
                             "{{ x| }}",
                             "{{ 'abc }}",
                             "{{ a b }}",
                             "{% set %}",
                             "{% set 1 = 2 %}",
                             "{% set true = 2 %}",
                             "{# open",
                             "{% break %}",
                             "{% raw %}x",
                             "{{ x is }}",
                             "{{ [1, }}",
                             "{{ {'a' 1} }}",
                             "{{ m(a=1, 2) }}",
                             "{{ x[] }}",
                             "{{ @ }}",
                             "{% for loop in l %}{% endfor %}",
                             "{{ '\\ud800' }}",
                             "\xff"}) {
    EXPECT_NE(Refusal(source), "") << source;
  }
}

std::string Repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Template, BoundsWhatIsInEachOther) {
  EXPECT_THAT(Refusal("{{ " + Repeated("(", 2000) + "1" + Repeated(")", 2000) + " }}"),
              HasSubstr("100"));
  EXPECT_THAT(Refusal("{{ " + Repeated("not ", 2000) + "1 }}"), HasSubstr("100"));
  EXPECT_THAT(Refusal("{{ " + Repeated("-", 2000) + "1 }}"), HasSubstr("100"));
  EXPECT_THAT(Refusal("{{ x" + Repeated(".a", 2000) + " }}"), HasSubstr("100"));
  EXPECT_THAT(Refusal("{{ 1" + Repeated(" - 1", 2000) + " }}"), HasSubstr("100"));
  EXPECT_THAT(Refusal("{{ x" + Repeated(" | trim", 2000) + " }}"), HasSubstr("100"));
  EXPECT_THAT(Refusal(Repeated("{% if t %}", 2000) + Repeated("{% endif %}", 2000)),
              HasSubstr("100"));
  EXPECT_EQ(Rendered("{{ 1" + Repeated(" + 1", 2000) + " }}"), "2001");
  EXPECT_EQ(Refusal(std::string(Template::kMaxSource + 1, 'x')),
            "a template of more than 1048576 bytes");
}

TEST(Template, StopsATemplateThatRunsOnAndOn) {
  const RenderOptions options{.limits = {.steps = 100'000}};
  const std::string loops = Repeated("{% for i in range(1000) %}", 4) + Repeated("{% endfor %}", 4);
  EXPECT_EQ(Rendered(loops, options), "error: the template ran for more than 100000 steps");
  const RenderOptions in_no_time{.limits = {.time = Duration(0)}};
  EXPECT_EQ(Rendered(loops, in_no_time), "error: the template ran for more than 0 ms");
  EXPECT_THAT(Rendered("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("macros are nested more than 64 deep"));
}

TEST(Template, StopsATextThatGrowsAndGrows) {
  const RenderOptions options{.limits = {.output = 10'000}};
  for (const char* source :
       {"{{ 'x' * 100000 }}", "{{ '%1000s' % 1 * 100 }}", "{{ 'x'.zfill(99999) }}",
        "{{ 'x'.center(99999) }}", "{{ 'x' | center(99999) }}", "{{ 'a' | indent(99999, true) }}",
        "{{ range(9999) | join(',') }}", "{{ range(9999) | list | string }}",
        "{{ range(9999) | list | tojson }}", "{% for i in range(9999) %}xx{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% "
        "endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
        "endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x | replace('a', 'aaa') %}{% endfor %}",
        "{% set ns = namespace(l=['x']) %}{% for i in range(40) %}{% set ns.l = [ns.l, ns.l] %}"
        "{% endfor %}{{ ns.l }}"}) {
    EXPECT_EQ(Rendered(source, options), "error: the template made a text of more than 10000 bytes")
        << source;
  }
}

TEST(Template, StopsListsThatGrowOrNestWithoutEnd) {
  const RenderOptions options{.limits = {.steps = 1'000'000}};
  EXPECT_THAT(Rendered("{{ [1] * 9999999999 }}", options), HasSubstr("steps"));
  EXPECT_THAT(Rendered("{% set ns = namespace(l=[1]) %}{% for i in range(99) %}"
                       "{% set ns.l = ns.l + ns.l %}{% endfor %}",
                       options),
              HasSubstr("steps"));
  EXPECT_THAT(Rendered("{% set ns = namespace(l=[1]) %}{% for i in range(9999) %}"
                       "{% set ns.l = [ns.l] %}{% endfor %}"),
              HasSubstr("nested too deeply"));
  // Two such trees would be compared leaf by leaf.
  EXPECT_THAT(
      Rendered("{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}"
               "{% for i in range(60) %}{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}"
               "{% endfor %}{{ a.l == b.l }}",
               options),
      HasSubstr("steps"));
}

TEST(Template, LetsGoOfNamespacesThatHoldEachOther) {
  EXPECT_EQ(Rendered("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}"
                     "{% set a.l = [a, b] %}{{ a.b.a.b is sameas b }}"),
            "True");
}

TEST(Template, SeesALoopOverTheContentOfAMessage) {
  EXPECT_TRUE(
      LoopsOverContent("{% for m in messages %}{% for c in m.content %}{% endfor %}{% endfor %}"));
  EXPECT_TRUE(
      LoopsOverContent("{% set rest = messages[1:] %}{% for message in rest %}"
                       "{% for c in message['content'] | list %}{% endfor %}{% endfor %}"));
  EXPECT_TRUE(
      LoopsOverContent("{% for m in messages %}{% set content = m.content %}"
                       "{% for c in content %}{% endfor %}{% endfor %}"));
  EXPECT_FALSE(
      LoopsOverContent("{% for m in messages %}{% set calls = m.content %}"
                       "{% for c in calls %}{% endfor %}{% endfor %}"));
  EXPECT_FALSE(LoopsOverContent("{% for m in messages %}{{ m.content }}{% endfor %}"));
  EXPECT_FALSE(LoopsOverContent(
      "{% for m in messages %}{% for c in m.tool_calls %}{% endfor %}{% endfor %}"));
  EXPECT_FALSE(
      LoopsOverContent("{% for d in documents %}{% for c in d.content %}{% endfor %}{% endfor %}"));
}

}  // namespace
}  // namespace fathom
