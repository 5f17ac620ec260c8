"""The tokens of real vocabularies, beside those of an independent implementation: equal.

Where the other side is wrong, the Rust library that engines use has the last word; see JS_SPACES.
"""

import os

import pytest

import token_texts
from tokenizers import (MODELS, added_tokens, ask_both, fathom_lines, model_folder, node_lines,
                        vocabulary_pieces)

pytestmark = pytest.mark.vocabulary
THOROUGH = bool(os.environ.get("TEST_THOROUGH"))

# JavaScript's \s has the byte order mark and lacks U+0085; Unicode, Oniguruma and with them the Rust
# library have it the other way round. It shows where such a character touches a space or the end.
JS_SPACES = "\u0085\ufeff"
# What the Rust library (tokenizers 0.23) makes of them.
RUST_IDS = {
    "a \u0085b": {
        "llama3_1": [64, 220, 116360, 65], "qwen2_5": [64, 220, 126, 227, 65],
        "qwen3": [64, 220, 126, 227, 65], "deepseek_v3": [67, 223, 129, 230, 68],
        "gemma2": [235250, 235248, 251878, 235268], "mistral_nemo": [1097, 1032, 1194, 1133, 1098]
    },
    "a \u0085": {"deepseek_v3": [67, 1203, 230]},
    "a  \ufeffb": {
        "llama3_1": [64, 220, 76880, 65], "qwen2_5": [64, 220, 75780, 65],
        "qwen3": [64, 220, 75780, 65], "deepseek_v3": [67, 223, 223, 15251,
                                                       68], "gemma2": [235250, 139, 235705, 235268],
        "mistral_nemo": [1097, 1032, 42120, 1187, 1191, 1098]
    },
}


class Pair:
    """One model, run by both."""
    def __init__(self, model):
        self.model = model
        self.ours = fathom_lines(model_folder(model))
        self.theirs = node_lines(model_folder(model))

    def close(self):
        self.theirs.close()
        assert self.ours.close() == 0

    def agrees(self, text):
        """Whether JavaScript can be asked about this text."""
        return self.model == "gemma2" or not any(space in text for space in JS_SPACES)

    def compare(self, texts, special=False):
        texts = [text for text in texts if self.agrees(text)]
        ours, theirs = ask_both(self.ours, self.theirs,
                                [{"prompt": text, "add_special_tokens": special} for text in texts],
                                [{"text": text, "add_special_tokens": special} for text in texts])
        for text, our, their in zip(texts, ours, theirs):
            assert our.get("ids") == their["ids"], f"{ascii(text[:200])}: {our.get('error')}"
            assert our["exact"] and our["prompt"] == text


@pytest.fixture(scope="module", params=MODELS)
def pair(request):
    pair = Pair(request.param)
    yield pair
    pair.close()


def test_all_scripts_have_the_same_tokens(pair):
    pair.compare(token_texts.unicode_texts())


def test_marks_emoji_controls_and_spaces_have_the_same_tokens(pair):
    pair.compare(token_texts.odd_texts())


def test_spaces_that_javascript_splits_otherwise_are_those_of_the_rust_library(pair):
    known = {text: ids[pair.model] for text, ids in RUST_IDS.items() if pair.model in ids}
    answers = pair.ours.ask([{"prompt": text, "add_special_tokens": False} for text in known])
    assert [answer["ids"] for answer in answers] == list(known.values())


def test_runs_of_spaces_have_the_same_tokens(pair):
    pair.compare(token_texts.space_texts())


def test_code_has_the_same_tokens(pair):
    pair.compare(token_texts.code_texts(most=12))


def test_added_tokens_inside_text_have_the_same_tokens(pair):
    pair.compare(token_texts.token_texts(added_tokens(pair.model)))


def test_what_is_put_around_a_prompt_is_the_same(pair):
    pair.compare(token_texts.odd_texts()[::20] + ["Hello world", ""], special=True)


def test_random_strings_have_the_same_tokens(pair):
    pair.compare(random_texts(pair.model, 5_000 // len(MODELS), seed=1))


# The other implementation takes minutes for them: TEST_THOROUGH=1 has ten times as many.
@pytest.mark.slow
def test_many_random_strings_have_the_same_tokens(pair):
    for seed in range(10 if THOROUGH else 1):
        pair.compare(random_texts(pair.model, 10_000, seed=100 + seed))


@pytest.mark.slow
def test_sources_of_the_repository_have_the_same_tokens(pair):
    pair.compare(token_texts.code_texts(most=None if THOROUGH else 60))


def random_texts(model, count, seed):
    return token_texts.random_texts(count, vocabulary_pieces(model), added_tokens(model), seed)
