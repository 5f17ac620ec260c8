"""Texts, chats, templates and files that want to hurt: bounded time and memory, and a clear word.

The bounds are generous: what is not bounded is off by more.
"""

import json
import resource
import subprocess

import pytest

from conftest import ALARMS, FATHOM, clean_environment
from tokenizers import byte_tokenizer, model_folder, write_model

pytestmark = pytest.mark.vocabulary

SECONDS = 60  # a sanitizer build on a busy machine is slow
MEGABYTE = 1 << 20
CHAT = {"messages": [{"role": "user", "content": "hi"}]}


class Done:
    """One run of `fathom tokenize`, and what it took."""
    def __init__(self, folder, data, *flags):
        command = [FATHOM, "tokenize", "--model-path", str(folder), *flags]
        with subprocess.Popen(command, env=clean_environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, problem = process.communicate(data if isinstance(data, bytes) else data.encode(),
                                               timeout=SECONDS)
        self.status, self.out, self.problem = process.returncode, out.decode(
            errors="replace"), problem.decode(errors="replace")
        assert not ALARMS.search(self.problem), self.problem[-4000:]

    def json(self):
        assert self.status == 0, self.problem[:1000]
        return json.loads(self.out)

    def refusal(self):
        """The one line that says why."""
        assert self.status in (1, 78), (self.status, self.out[:200])
        assert self.problem.startswith("fathom tokenize: "), self.problem[:300]
        assert self.problem.count("\n") == 1 and len(self.problem) < 1000, self.problem[:2000]
        return self.problem


def peak_children():
    """Of all children so far, the largest."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


# --- texts

BAIT = {
    "one letter": "a",
    "pairs": "ab",
    "threes": "aba",
    "a word's pieces": "internationalization",
    "quotes": "'",
    "dots": ".",
    "digits": "7",
    "letters of three bytes": "東",
    "an emoji": "👩🏽‍🚀",
    "contractions": "'ll",
    "underscores": "_a",
    "invisible": "\u200b",
}


@pytest.mark.parametrize("model", ["qwen2_5", "gemma2"])
def test_a_word_of_ten_megabytes_is_refused_or_done(model):
    done = Done(model_folder(model), "x" * (10 * MEGABYTE), "--json", "--as", "text")
    if done.status == 0:
        assert len(done.json()["ids"]) > MEGABYTE // 100
    else:
        assert "10485760 bytes" in done.refusal()


@pytest.mark.parametrize("bait", BAIT)
@pytest.mark.parametrize("model", ["llama3_1", "gemma2"])
def test_repetitions_take_no_square_of_time(model, bait):
    """200 kB: a square of that would be minutes."""
    text = BAIT[bait] * (200_000 // len(BAIT[bait].encode()))
    ids = Done(model_folder(model), text, "--json", "--as", "text").json()["ids"]
    assert len(ids) > 100


def test_spaces_and_combining_marks_take_no_square_of_time():
    for text in (" " * MEGABYTE, "\n" * MEGABYTE, " \n" * (MEGABYTE // 2), "e" + "\u0301" * 100_000,
                 "a " * (MEGABYTE // 2)):
        done = Done(model_folder("qwen3"), text, "--json", "--as", "text")
        assert done.status == 0 or "bytes" in done.refusal()


def test_a_million_special_tokens_are_tokenized():
    count = 200_000
    ids = Done(model_folder("qwen3"), "<|im_end|>" * count, "--json", "--as", "text").json()["ids"]
    assert ids == [151645] * count


def test_bytes_that_are_no_utf8_are_refused_with_their_place(tmp_path):
    folder = write_model(tmp_path)
    for data in (b"\xff", b"a\xffb", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80",
                 b"\xc0\xaf", bytes(range(1, 256))):
        done = Done(folder, data, "--json", "--as", "text")
        assert "is not UTF-8" in done.refusal()
        assert "byte " in done.refusal()


def test_json_with_broken_utf8_or_lone_surrogates_is_refused(tmp_path):
    folder = write_model(tmp_path)
    for line in (b'"\xff"', b'"\\ud800"', b'"\\udc00 \\ud800"', b'{"prompt": "\xc3\x28"}'):
        done = Done(folder, line + b"\n", "--json", "--lines")
        answer = json.loads(done.out)
        assert done.status == 1 and answer.get("error"), (line, answer)


# --- chats


def test_a_chat_of_a_hundred_thousand_messages_is_tokenized_or_refused(tmp_path):
    folder = write_model(tmp_path,
                         template="{% for message in messages %}{{ message.content }}{% endfor %}")
    done = Done(folder, json.dumps({"messages": CHAT["messages"] * 100_000}), "--json")
    assert done.status == 0 and len(done.json()["ids"]) == 200_000 or done.refusal()


DEEP_JSON = {
    "lists": "[" * 100_000 + "]" * 100_000, "objects": '{"a":' * 100_000 + "1" + "}" * 100_000
}


@pytest.mark.parametrize("deep", DEEP_JSON)
def test_deep_json_is_refused(tmp_path, deep):
    folder = write_model(tmp_path, template="{{ tools | tojson }}")
    request = '{"messages": [{"role": "user", "content": "hi"}], "tools": [' + DEEP_JSON[deep] + "]}"
    Done(folder, request, "--json", "--as", "chat").refusal()


# --- templates

DEEP = 100_000
BOMBS = {
    "a loop in loops": "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% endfor %}",
    "a long range": "{{ range(1000000000000) | list | length }}",
    "a doubled text": "{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x | length }}",
    "a doubled list": "{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | length }}",
    "a repeated text": "{{ 'x' * 100000000000 }}",
    "a repeated list": "{{ ([1] * 100000000000) | length }}",
    "a list in itself": "{% set ns = namespace(x=[1]) %}{% for i in range(100000) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | string | length }}",
    "a macro without end": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "two macros without end": "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{{ a() }}{% endmacro %}{{ a() }}",
    "much output": "{% for i in range(100000000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}",
    "a wide format": "{{ '%1000000000d' % 5 }}",
    "another wide format": "{{ '{:>1000000000}'.format(5) }}",
    "much to the side": "{{ 'x'.rjust(100000000000) }}",
    "a deep indent": "{{ ('a\\n' * 1000) | indent(1000000000) }}",
    "a large power": "{{ 9 ** 9 ** 9 }}",
    "a long replacement": "{{ ('a' * 100000).replace('a', 'b' * 100000) | length }}",
    "a long join": "{{ ('x' * 100000).join(['y'] * 100000) | length }}",
    "many batches": "{{ range(10) | batch(100000000000, 'x') | list | length }}",
    "many zeros": "{{ '1'.zfill(100000000000) }}",
    "a long centre": "{{ 'x' | center(100000000000) }}",
    "tabs": "{{ ('\\t' * 100000).expandtabs(1000000) | length }}",
}
TOO_DEEP = {
    "brackets": "{{ " + "(" * DEEP + "1" + ")" * DEEP + " }}",
    "lists": "{{ " + "[" * DEEP + "]" * DEEP + " }}",
    "signs": "{{ " + "-" * DEEP + "1 }}",
    "nots": "{{ " + "not " * DEEP + "1 }}",
    "ifs": "{% if 1 %}" * DEEP + "{% endif %}" * DEEP,
    "loops": "{% for a in b %}" * DEEP + "{% endfor %}" * DEEP,
    "filters": "{{ 1 " + "| string " * DEEP + "}}",
    "attributes": "{{ a" + ".a" * DEEP + " }}",
    "sums": "{{ 1" + " + 1" * DEEP + " }}",
    "conditions": "{{ " + "1 if 1 else " * DEEP + "1 }}",
    "powers": "{{ 1" + " ** 1" * DEEP + " }}",
    "elifs": "{% if 0 %}" + "{% elif 0 %}" * DEEP + "{% endif %}",
    "a large source": "x" * (8 * MEGABYTE),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_template_that_explodes_is_stopped(tmp_path, bomb):
    done = Done(write_model(tmp_path, template=BOMBS[bomb]), json.dumps(CHAT), "--json")
    if done.status == 0:  # inexact, and not a word of it
        answer = done.json()
        assert not answer["exact"] and answer["inexact"] == "template_failed", answer
    else:
        done.refusal()


@pytest.mark.parametrize("shape", TOO_DEEP)
def test_a_template_that_is_too_deep_is_refused_or_rendered(tmp_path, shape):
    done = Done(write_model(tmp_path, template=TOO_DEEP[shape]), json.dumps(CHAT), "--json")
    assert done.status == 0 or done.refusal()


def test_all_of_this_takes_little_memory():
    """Last in the file but for files: the largest vocabulary and everything above."""
    if "sanitizer" not in FATHOM and "asan" not in FATHOM and "tsan" not in FATHOM:
        assert peak_children() < 1536 * MEGABYTE


# --- files


def changed_model(**changes):
    tokenizer = byte_tokenizer()
    tokenizer["model"].update(changes)
    return tokenizer


BROKEN = {
    "no JSON": ("not JSON", None),
    "nothing": ("", None),
    "a list": ([1], None),
    "no model": ({"version": "1.0"}, "model"),
    "a number for a model": (byte_tokenizer(model=5), None),
    "another kind of model": (changed_model(type="WordPiece"), "WordPiece"),
    "yet another kind": (changed_model(type="Unigram"), "Unigram"),
    "a pre-tokenizer that is not known": (byte_tokenizer(pre_tokenizer={"type": "UnicodeScripts"}),
                                          "UnicodeScripts"),
    "one inside a sequence": (byte_tokenizer(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]}),
                              "UnicodeScripts"),
    "a normalizer that is not known": (byte_tokenizer(
        normalizer={"type": "Precompiled", "precompiled_charsmap": ""}), "Precompiled"),
    "a normalizer that nobody knows": (byte_tokenizer(normalizer={"type": "Frobnicate"}),
                                       "Frobnicate"),
    "a merge of unknown tokens": (changed_model(merges=["a b"]), "merge 0"),
    "a merge that is none": (changed_model(merges=["ab"]), None),
    "an id that is taken": (changed_model(vocab={"a": 1, "b": 1}), None),
    "an id that is none": (changed_model(vocab={"a": "x"}), None),
    "a negative id": (changed_model(vocab={"a": -1}), None),
    "a huge id": (changed_model(vocab={"a": 2**31}), None),
    "a pattern that is none": (byte_tokenizer(
        pre_tokenizer={
            "type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated", "invert": False
        }), None),
    "a behavior that is none": (byte_tokenizer(
        pre_tokenizer={
            "type": "Split", "pattern": {"Regex": "a"}, "behavior": "Sideways", "invert": False
        }), "Sideways"),
    "a post-processor that is not known": (byte_tokenizer(post_processor={"type": "Frobnicate"}),
                                           "Frobnicate"),
    "an added token without text": (byte_tokenizer(added_tokens=[{"id": 300}]), None),
    "depth": ("[" * 1_000_000, None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_tokenizer_is_refused_with_what_is_wrong(tmp_path, name):
    content, word = BROKEN[name]
    folder = write_model(tmp_path)
    (folder /
     "tokenizer.json").write_text(content if isinstance(content, str) else json.dumps(content))
    problem = Done(folder, "hi").refusal()
    assert "tokenizer.json" in problem, problem
    assert word is None or word in problem, problem


def test_a_pattern_that_backtracks_is_stopped(tmp_path):
    split = {
        "type": "Split", "pattern": {"Regex": "(a+)+(a+)+(a+)+$|x"}, "behavior": "Isolated",
        "invert": False
    }
    level = byte_tokenizer()["pre_tokenizer"]
    folder = write_model(
        tmp_path,
        byte_tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [split, level]}))
    done = Done(folder, "a" * 5000 + "b", "--json", "--as", "text")
    assert done.status == 0 or done.refusal()


def test_a_folder_without_files_says_which_are_wanted(tmp_path):
    problem = Done(tmp_path, "hi").refusal()
    assert "tokenizer.json" in problem and str(tmp_path) in problem
    assert "tokenizer.json" in Done(tmp_path / "nowhere", "hi").refusal()


@pytest.mark.parametrize(
    "config",
    ["no JSON", "[]", '{"chat_template": 5}', '{"added_tokens_decoder": {"x": {"content": "a"}}}'])
def test_a_broken_configuration_is_refused(tmp_path, config):
    folder = write_model(tmp_path)
    (folder / "tokenizer_config.json").write_text(config)
    assert "tokenizer_config.json" in Done(folder, "hi").refusal()


def test_a_model_without_a_template_still_takes_texts(tmp_path):
    folder = write_model(tmp_path)
    assert Done(folder, "hi", "--json", "--as", "text").json()["ids"] == [104, 105]
    assert "chat template" in Done(folder, json.dumps(CHAT)).refusal()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("{}")
    Done(tmp_path / "file", "hi").refusal()
    write_model(tmp_path / "model")
    (tmp_path / "model/tokenizer.json").unlink()
    (tmp_path / "model/tokenizer.json").mkdir()
    Done(tmp_path / "model", "hi").refusal()
