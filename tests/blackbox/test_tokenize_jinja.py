"""Chat templates, piece by piece, beside Debian's jinja2: the same text, or both refuse."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import run_fathom
from jinja_snippets import CONTEXTS, THEMES, snippets
from tokenizers import fathom_lines, render, write_model

MESSAGES = [{"role": "user", "content": "hi"}]

# What jinja2 has and no model's template is known to use: refused when the template is read, by name.
NOT_SUPPORTED = {
    "{{ 0x1f }}": "a number must be decimal",
    "{{ 'upper' is filter }}": "'filter'",
    "{{ 'odd' is test }}": "'test'",
    "{{ {1.5: 2} | tojson }}": "key",
    "{{ ws | random | length }}": "'random'",
    "{{ s | urlencode }}": "'urlencode'",
    "{{ s | striptags }}": "'striptags'",
    "{{ s | wordwrap }}": "'wordwrap'",
    "{{ 9 | filesizeformat }}": "'filesizeformat'",
    "{{ d | xmlattr }}": "'xmlattr'",
    "{{ s | pprint }}": "'pprint'",
    "{{ s.casefold() }}": "'casefold'",
    "{{ s.expandtabs() }}": "'expandtabs'",
    "{{ s.istitle() }}": "'istitle'",
    "{{ s.encode() }}": "'encode'",
    "{% set c = cycler(1, 2) %}": "'cycler'",
    "{% set j = joiner() %}": "'joiner'",
    "{% for x in nested recursive %}{% endfor %}": "'recursive'",
}


def expected(source, context):
    return render(source, messages=MESSAGES, tools=None, documents=None, add_generation_prompt=True,
                  **copy.deepcopy(context))


def rendered(folder, source):
    """The prompt for each context; None where it is refused."""
    write_model(folder, template=source)
    requests = [{"messages": MESSAGES, "chat_template_kwargs": context} for context in CONTEXTS]
    fathom = fathom_lines(folder)
    answers = fathom.ask(requests)
    fathom.close()
    return [answer["prompt"] if answer.get("exact") else None for answer in answers]


def difference(folder, source):
    wanted = [expected(source, context) for context in CONTEXTS]
    got = rendered(folder, source)
    return None if got == wanted else f"{source}\n    wanted {wanted}\n    got    {got}"


@pytest.mark.parametrize("theme", [*THEMES, "spaces"])
def test_a_snippet_renders_as_jinja2_renders_it(tmp_path, theme):
    sources = snippets(theme)
    folders = [tmp_path / str(i) for i in range(len(sources))]
    with ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(difference, folders, sources) if text]
    assert not found, f"{len(found)} of {len(sources)}:\n" + "\n".join(found)


@pytest.mark.parametrize("source", NOT_SUPPORTED)
def test_what_is_not_supported_is_refused_by_name(tmp_path, source):
    assert expected(source, CONTEXTS[0]) is not None
    done = chat(write_model(tmp_path, template="first line\n" + source))
    assert done.returncode == 1
    assert NOT_SUPPORTED[source] in done.stderr and "line 2" in done.stderr


@pytest.mark.parametrize(
    "tag", ["include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block b"])
def test_other_templates_cannot_be_reached(tmp_path, tag):
    done = chat(write_model(tmp_path, template="a\nb{% " + tag + " %}{% endblock %}"))
    assert done.returncode == 1
    assert done.stderr.startswith("fathom tokenize: ") and done.stderr.count("\n") == 1
    assert tag.split()[0] in done.stderr and "line 2" in done.stderr


def test_the_words_of_raise_exception_are_told(tmp_path):
    done = chat(write_model(tmp_path, template="{{ raise_exception('only cats may ask') }}"))
    assert done.returncode == 1
    assert "only cats may ask" in done.stderr


def chat(folder):
    return run_fathom("tokenize", "--model-path", folder,
                      stdin='{"messages": [{"role": "user", "content": "hi"}]}')
