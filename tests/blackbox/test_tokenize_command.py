"""`fathom tokenize`: what goes in, what comes out, and what it says when it cannot."""

import json
import re
import select
import subprocess

import pytest

from conftest import FATHOM, clean_environment, json_lines, run_fathom
from tokenizers import byte_tokenizer, fathom_lines, key_chain, model_folder, write_model

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"
CHAT = {"messages": [{"role": "user", "content": "hi"}]}
BOS = {
    "id": 256, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
    "normalized": False, "special": True
}
WITH_BOS = byte_tokenizer(
    added_tokens=[BOS], post_processor={
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                 {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}
    })


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Each byte is a token, and a prompt begins with <s>."""
    return write_model(tmp_path_factory.mktemp("model"), WITH_BOS, {"bos_token": "<s>"}, TEMPLATE)


def tokenize(folder, *args, stdin=None):
    return run_fathom("tokenize", "--model-path", folder, *args, stdin=stdin)


def answer(folder, *args, stdin=None):
    done = tokenize(folder, "--json", *args, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def refusal(done, status=78):
    assert done.returncode == status, (done.returncode, done.stdout[:300], done.stderr[:300])
    assert done.stderr.startswith("fathom tokenize: "), done.stderr
    return done.stderr


def exactly(prompt, ids):
    """Of less than a block."""
    return {
        "prompt": prompt, "ids": ids, "block_size": 16, "keys": [], "exact": True, "inexact": None
    }


def ids_of(text, bos=True):
    return [256] * bos + list(text.encode())


# --- input


def test_text_comes_from_a_file_or_from_standard_input(folder, tmp_path):
    path = tmp_path / "text"
    path.write_text("héllo\n")
    wanted = exactly("héllo\n", ids_of("héllo\n"))
    assert answer(folder, path) == wanted
    assert answer(folder, stdin="héllo\n") == wanted
    assert answer(folder, "-", stdin="héllo\n") == wanted


def test_a_chat_comes_from_a_file_or_from_standard_input(folder, tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT, indent=2))
    wanted = exactly("<user>hi>", ids_of("<user>hi>", bos=False))
    assert answer(folder, path) == wanted
    assert answer(folder, stdin=json.dumps(CHAT)) == wanted


def test_a_completion_is_its_prompt(folder):
    assert answer(folder, stdin='{"prompt": "hi"}')["ids"] == ids_of("hi")
    assert answer(folder, stdin='{"prompt": "hi", "add_special_tokens": false}')["ids"] == ids_of(
        "hi", bos=False)
    given = answer(folder, stdin='{"prompt": [5, 6, 7]}')
    assert (given["ids"], given["prompt"], given["exact"]) == ([5, 6, 7], None, True)


def test_special_tokens_are_added_as_asked(folder):
    assert answer(folder, "--no-special-tokens", stdin="hi")["ids"] == ids_of("hi", bos=False)
    assert answer(folder, stdin=json.dumps({**CHAT, "add_special_tokens": True
                                            }))["ids"] == ids_of("<user>hi>")
    assert answer(folder, stdin="<s>")["ids"] == [256, 256]


def test_what_the_input_is_can_be_said(folder):
    request = json.dumps(CHAT)
    assert answer(folder, "--as", "text", stdin=request)["prompt"] == request
    assert answer(folder, "--as", "chat", stdin=request)["prompt"] == "<user>hi>"
    assert answer(folder, "--as", "auto", stdin='{"neither": 1}')["prompt"] == '{"neither": 1}'
    assert answer(folder, stdin='{"messages": broken')["prompt"] == '{"messages": broken'
    refusal(tokenize(folder, "--as", "chat", stdin="hi"), status=1)


def test_nothing_is_a_text(folder):
    assert answer(folder, stdin="") == exactly("", [256])


def test_a_tokenizer_can_lie_elsewhere(folder, tmp_path):
    other = write_model(tmp_path / "other")
    assert answer(folder, "--tokenizer-path", other, stdin="hi")["ids"] == [104, 105]
    assert answer(folder, "--tokenizer-path", other / "tokenizer.json",
                  stdin="hi")["ids"] == [104, 105]
    assert answer(folder, "--tokenizer-path", other / "tokenizer.json",
                  stdin=json.dumps(CHAT))["prompt"] == "<user>hi>"


def test_a_template_may_be_in_the_configuration(tmp_path):
    folder = write_model(tmp_path, config={"chat_template": "config {{ messages | length }}"})
    assert answer(folder, stdin=json.dumps(CHAT))["prompt"] == "config 1"
    (folder / "chat_template.jinja").write_text("file {{ messages | length }}")
    assert answer(folder, stdin=json.dumps(CHAT))["prompt"] == "file 1"


def test_of_several_templates_the_one_for_tools_is_used_with_tools(tmp_path):
    templates = [{"name": "default", "template": "plain"},
                 {"name": "tool_use", "template": "tools {{ tools | length }}"}]
    folder = write_model(tmp_path, config={"chat_template": templates})
    tool = {"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}
    assert answer(folder, stdin=json.dumps(CHAT))["prompt"] == "plain"
    assert answer(folder, stdin=json.dumps({**CHAT, "tools": [tool]}))["prompt"] == "tools 1"


# --- keys


@pytest.mark.parametrize("block_size", [1, 4, 16, 64, 100])
def test_keys_are_those_of_complete_blocks(folder, block_size):
    said = answer(folder, "--block-size", block_size, stdin="x" * 150)
    assert len(said["keys"]) == 151 // block_size
    assert said["keys"] == key_chain(said["ids"], block_size)


def test_blocks_have_sixteen_tokens_unless_told(folder):
    said = answer(folder, stdin="abc" * 30)
    assert said["keys"] == key_chain(said["ids"], 16) and len(said["keys"]) == 5


def test_keys_are_the_published_ones(folder):
    ids = list(range(1, 13))
    said = answer(folder, "--block-size", 4, stdin=json.dumps({"prompt": ids}))
    assert [int(key, 16) for key in said["keys"]
            ] == [14643705804678351452, 4945711292740353085, 12583592247330656132]


def test_adapters_and_salts_have_keys_of_their_own(folder):
    text = "some text of several blocks, long enough"
    plain = answer(folder, stdin=text)
    for flags, names in ((["--lora", "adapter-a"], {"lora": "adapter-a"}),
                         (["--cache-salt", "tenant-a"], {"salt": "tenant-a"}),
                         (["--lora", "adapter-a", "--cache-salt",
                           "tenant-a"], {"lora": "adapter-a", "salt": "tenant-a"})):
        said = answer(folder, *flags, stdin=text)
        assert said["ids"] == plain["ids"]
        assert said["keys"] == key_chain(plain["ids"], 16, **names) != plain["keys"]


def test_a_salt_in_the_request_counts(folder):
    request = {"prompt": "some text of several blocks", "cache_salt": "tenant-a"}
    said = answer(folder, stdin=json.dumps(request))
    assert said["keys"] == key_chain(said["ids"], 16, salt="tenant-a")


# --- lines


def test_lines_are_answered_in_order(folder):
    questions = ["one", CHAT, {"prompt": "two"}, "line\u2028separator\u0085"]
    fathom = fathom_lines(folder)
    assert [said["prompt"] for said in fathom.ask(questions)
            ] == ["one", "<user>hi>", "two", "line\u2028separator\u0085"]
    assert fathom.close() == 0


def test_a_line_is_answered_before_the_next_is_there(folder):
    command = [FATHOM, "tokenize", "--lines", "--json", "--model-path", str(folder)]
    with subprocess.Popen(command, env=clean_environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdin.write(b'"hi"\n')
        process.stdin.flush()
        came, _, _ = select.select([process.stdout], [], [], 20)
        process.stdin.close()
        assert came, "no answer while the input is open"


def test_a_bad_line_is_told_and_the_next_is_answered(folder):
    lines = [
        '"one"', "not JSON", "5", "[]", "{}", '{"messages": 5}', '{"prompt": {"a": 1}}', '"two"'
    ]
    done = tokenize(folder, "--lines", "--json", stdin="\n".join(lines) + "\n")
    said = json_lines(done.stdout)
    assert len(said) == len(lines) and done.returncode == 1
    assert said[0]["prompt"] == "one" and said[-1]["prompt"] == "two"
    assert all("error" in answer or answer["exact"] is False for answer in said[1:-1]), said


def test_the_last_line_need_not_end(folder):
    done = tokenize(folder, "--lines", "--json", stdin='"one"\n"two"')
    assert [said["prompt"] for said in json_lines(done.stdout)] == ["one", "two"]
    assert done.returncode == 0


def test_a_line_may_be_long():
    fathom = fathom_lines(model_folder("qwen3"))
    text = "word " * 400_000
    said = fathom.ask([text])[0]
    assert said["prompt"] == text and len(said["ids"]) > 400_000
    assert fathom.close() == 0


# --- what is no text


@pytest.mark.parametrize("part, reason", [
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "image"),
    ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "audio"),
    ({"type": "video_url", "video_url": {"url": "http://example.org/a.mp4"}}, "video"),
    ({"type": "file", "file": {"file_id": "x"}}, "file"),
    ({"type": "hologram", "hologram": 1}, "unknown_part"),
])
def test_what_comes_before_a_part_that_is_no_text_is_exact(tmp_path, part, reason):
    """Up to a special token at least: what follows a text may change its last tokens."""
    folder = write_model(tmp_path, WITH_BOS, {"bos_token": "<s>"},
                         TEMPLATE.replace("<{{", "{{ bos_token }}<{{"))
    content = [{"type": "text", "text": "Look at this:"}, part, {"type": "text", "text": "What?"}]
    messages = [{"role": "system", "content": "See."}, {"role": "user", "content": content}]
    said = answer(folder, "--block-size", 4, stdin=json.dumps({"messages": messages}))
    assert (said["exact"], said["inexact"]) == (False, reason)
    before = [256, *b"<system>See.", 256]
    longest = [*before, *b"<user>Look at this:"]
    assert said["ids"][:len(before)] == before and said["ids"] == longest[:len(said["ids"])]
    assert said["keys"] == key_chain(said["ids"], 4)


def test_a_chat_whose_template_refuses_it_says_so(tmp_path):
    folder = write_model(tmp_path, template="{{ raise_exception('no cats here') }}")
    done = tokenize(folder, "--json", stdin=json.dumps(CHAT))
    assert "no cats here" in done.stdout + done.stderr
    assert done.returncode == 1


# --- for people


def test_people_see_the_prompt_the_pieces_and_the_keys(folder):
    done = tokenize(folder, "--block-size", 4, stdin="héy you")
    assert (done.returncode, done.stderr) == (0, "")
    assert "héy you" in done.stdout
    for number in ids_of("héy you"):
        assert re.search(rf"\b{number}\b", done.stdout), number
    for key in key_chain(ids_of("héy you"), 4):
        assert key in done.stdout
    assert "<s>" in done.stdout


def test_pieces_of_a_real_vocabulary_are_shown():
    done = tokenize(model_folder("llama3_1"), stdin="Hello world\n")
    assert done.returncode == 0
    for word in ("128000", "<|begin_of_text|>", "9906", "Hello", "1917", " world"):
        assert word in done.stdout, done.stdout


def test_pieces_are_shown_without_control_characters(folder):
    done = tokenize(folder, stdin="a\x1b[31mred\x07\x00b")
    assert done.returncode == 0
    pieces = done.stdout.split("\nids:", 1)[1]
    assert "\x1b" not in pieces and "\x00" not in pieces


# --- wrong usage


@pytest.mark.parametrize("flags, word", [
    (["--block-size", "0"], "block-size"),
    (["--block-size", "x"], "block-size"),
    (["--block-size", "-4"], "block-size"),
    (["--as", "poem"], "poem"),
    (["--nosuchflag"], "nosuchflag"),
    (["--jsom"], "json"),
    (["a", "b"], "b"),
])
def test_wrong_flags_are_named(folder, flags, word):
    done = tokenize(folder, *flags, stdin="hi")
    assert done.returncode == 78
    assert word in done.stderr and done.stdout == ""


def test_a_model_must_be_named():
    done = run_fathom("tokenize", stdin="hi")
    assert "--model-path" in refusal(done) and "tokenizer.json" in done.stderr


def test_missing_files_are_wrong_usage(folder, tmp_path):
    assert "tokenizer.json" in refusal(tokenize(tmp_path, stdin="hi"))
    refusal(tokenize(folder, tmp_path / "nowhere"))


def test_help_is_there():
    done = run_fathom("tokenize", "--help")
    assert done.returncode == 0
    for flag in ("--model-path", "--tokenizer-path", "--block-size", "json", "lines", "--as",
                 "special-tokens", "--lora", "--cache-salt"):
        assert flag in done.stdout
