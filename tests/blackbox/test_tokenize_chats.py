"""Chats of real models: the text that their template makes of them, and its tokens.

The text is that of Debian's jinja2 and of a JavaScript implementation, the tokens are those of
another JavaScript implementation.
"""

import datetime

import pytest

from chats import CHATS, prepared, with_tokens
from tokenizers import (MODELS, added_tokens, fathom_lines, model_folder, node_lines, render,
                        special_tokens, tokenizer_config, write_model)

pytestmark = pytest.mark.vocabulary

# Gemma's package has no template; this one is ours.
OWN_TEMPLATE = """{{ bos_token }}{% for message in messages %}
{% if (message.role == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message.role %}{% endif %}
{{ '<start_of_turn>' + role + '\n' + message.content | trim + '<end_of_turn>\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""

# JavaScript's selectattr("tool_calls", "undefined") selects nothing, so that the template does not
# see that the roles do not alternate, and answers where jinja2 raises what the template says.
JS_DOES_NOT_REFUSE = {
    "mistral_nemo": {"two questions in a row", "an answer first", "calls without tools"}
}


class Pair:
    def __init__(self, model, folder):
        self.model = model
        config = tokenizer_config(model)
        self.names = special_tokens(config)
        self.template = config.get("chat_template") or OWN_TEMPLATE
        model_path = model_folder(model)
        template_file = []
        if not config.get("chat_template"):
            (folder / "chat_template.jinja").write_text(OWN_TEMPLATE)
            for name in ("tokenizer.json", "tokenizer_config.json"):
                (folder / name).symlink_to(model_path / name)
            model_path, template_file = folder, [folder / "chat_template.jinja"]
        self.ours = fathom_lines(model_path)
        self.theirs = node_lines(model_path, *template_file)

    def close(self):
        self.theirs.close()
        assert self.ours.close() in (0, 1)  # 1: some chat was refused

    def compare(self, chats):
        ours = self.ours.ask(chats)
        wanted = [render(self.template, **self.names, **prepared(chat)) for chat in chats]
        tokens = self.theirs.ask([{"text": text or "", "add_special_tokens": False}
                                  for text in wanted])
        for chat, our, text, their in zip(chats, ours, wanted, tokens):
            if text is None:
                assert our.get("error", "").startswith("template_"), (chat, our)
            else:
                assert our.get("exact"), (chat, our)
                assert our["prompt"] == text, chat
                assert our["ids"] == their["ids"], chat

    def compare_with_their_template(self, chats):
        ours = self.ours.ask(chats)
        theirs = self.theirs.ask([prepared(chat) for chat in chats])
        for chat, our, their in zip(chats, ours, theirs):
            assert our.get("exact", False) == ("error" not in their), (chat, our, their)
            if "error" not in their:
                assert (our["prompt"], our["ids"]) == (their["prompt"], their["ids"]), chat


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    pair = Pair(request.param, tmp_path_factory.mktemp(request.param))
    yield pair
    pair.close()


def test_a_chat_becomes_the_same_prompt(pair):
    pair.compare(list(CHATS.values()))


def test_special_tokens_in_the_text_of_users_are_what_the_other_side_makes_of_them(pair):
    tokens = added_tokens(pair.model)
    pair.compare(with_tokens(tokens[::max(1, len(tokens) // 50)]))


@pytest.mark.slow
def test_all_special_tokens_in_the_text_of_users_are_what_the_other_side_makes_of_them(pair):
    pair.compare(with_tokens(added_tokens(pair.model)))


def test_the_template_engine_of_javascript_agrees(pair):
    wrong = JS_DOES_NOT_REFUSE.get(pair.model, ())
    pair.compare_with_their_template([chat for name, chat in CHATS.items() if name not in wrong])


def test_today_is_in_the_prompt(tmp_path):
    form = "%d %B %Y, %A, %j, %y-%m, %b %a %%"
    fathom = fathom_lines(write_model(tmp_path, template="{{ strftime_now('" + form + "') }}"))
    before, answer, after = datetime.datetime.now(), fathom.ask([CHATS["one question"]
                                                                 ])[0], datetime.datetime.now()
    assert answer["prompt"] in (before.strftime(form), after.strftime(form))
    assert fathom.close() == 0
