"""Tokens and prompts beside the library that engines tokenize and render with. The mock engines of the other tests link
the router's own code, so both could be wrong together; this cannot.

It needs PyPI, and is skipped where that cannot be reached."""

import json
from pathlib import Path

import pytest

import pypi
from chats import CHATS, prepared
from token_texts import EMOJI
from tokenizers import MODELS, Lines, fathom_lines, model_folder, tokenizer_config

# The version that docs/design/0009-tokens.md names.
LIBRARY = ("transformers==5.23.0", "tokenizers==0.23.3", "jinja2==3.1.6")
TEXTS = ["", " ", "  ", "a", " a", "a ", "a b", "  a  b  ", "\n", " \n\n x", "Hello, World!", "Zürich 東京 🌊 é", "it's 12,345.67",
         "def f(x):\n\treturn x  # é\n", "<s>", "</s> a", "a</s>b", " </s> ", "▁a", "a▁b", "\u00a0x\u3000", "𐍈𝔘", *EMOJI]


@pytest.fixture(scope="module")
def library():
    # Isolated: modules of this folder have the names of packages.
    lines = Lines(pypi.python_with(*LIBRARY), "-I", Path(__file__).parent / "transformers_lines.py")
    yield lines.ask
    lines.close()


def ours(folder, questions):
    fathom = fathom_lines(folder)
    answers = fathom.ask(questions)
    fathom.close()
    return answers


def check_texts(library, folder):
    """The ids of texts, with the special tokens that completions get and without."""
    wanted = library([{"folder": str(folder), "text": text, "special": special}
                      for special in (True, False) for text in TEXTS])
    got = ours(folder, [{"prompt": text, "add_special_tokens": special} for special in (True, False) for text in TEXTS])
    differ = [(text, theirs, our.get("ids"), our.get("error"))
              for text, theirs, our in zip(TEXTS * 2, wanted, got) if our.get("ids") != theirs.get("ids")]
    assert not differ, f"{len(differ)} of {len(wanted)}: {differ[:3]}"


# Whose class builds a pipeline of its own, in place of the one in tokenizer.json.
CLASSES = ["llama2", "yi"]


@pytest.mark.slow
@pytest.mark.vocabulary
@pytest.mark.parametrize("model", [*MODELS, *CLASSES])
def test_texts_have_the_tokens_of_the_library(library, model):
    check_texts(library, model_folder(model))


@pytest.mark.slow
@pytest.mark.vocabulary
@pytest.mark.parametrize("changes", [{"legacy": False}, {"add_prefix_space": False}, {"add_bos_token": True},
                                     {"add_eos_token": True}, {"tokenizer_class": "PreTrainedTokenizerFast"}])
@pytest.mark.parametrize("model", CLASSES)
def test_what_the_configuration_says_of_a_class_is_followed(library, tmp_path, model, changes):
    (tmp_path / "tokenizer.json").symlink_to(model_folder(model) / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**tokenizer_config(model), **changes}))
    check_texts(library, tmp_path)


@pytest.mark.slow
@pytest.mark.vocabulary
@pytest.mark.parametrize("model_type", ["llama", "mistral", "internlm2"])
def test_the_kind_of_model_decides_whether_its_class_counts(library, tmp_path, model_type):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).symlink_to(model_folder("yi") / name)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    check_texts(library, tmp_path)


@pytest.mark.slow
@pytest.mark.vocabulary
@pytest.mark.parametrize("model", [model for model in MODELS if tokenizer_config(model).get("chat_template")])
def test_chats_have_the_prompt_and_the_tokens_of_the_library(library, model):
    folder = model_folder(model)
    questions = []
    for chat in CHATS.values():
        values = prepared(chat)
        questions.append({"folder": str(folder), "messages": values.pop("messages"), "tools": values.pop("tools"),
                          "values": {name: value for name, value in values.items() if value is not None}})
    for (name, chat), theirs, our in zip(CHATS.items(), library(questions), ours(folder, list(CHATS.values()))):
        if "error" in theirs:
            assert not our.get("exact"), (name, theirs, our)
        else:
            assert (our.get("prompt"), our.get("ids")) == (theirs["prompt"], theirs["ids"]), name
