"""The chat templates of about seventy current models, each with system messages, tools, tool results, images and
empty contents, beside jinja2. They come from a source archive on PyPI that carries them (llama.cpp, MIT licence)."""

import copy

import pytest

import pypi
from chats import CHATS, NOTHING, PARIS, WEATHER, ZURICH, assistant, prepared_message, result, system, user
from tokenizers import fathom_lines, render, write_model

ARCHIVE = ("llama-cpp-python", "0.3.36", "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
# What Fathom refuses of these, with the reason; the engine is asked instead.
NOT_RENDERED = {}

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
MORE = {
    "an empty question": {"messages": [system(""), user("")]},
    "an empty answer": {"messages": [user("Hi"), assistant(""), user("And?")]},
    "a call without content": {
        "messages": [user("Weather?"), assistant(None, tool_calls=[ZURICH, PARIS]), result("12 °C", 1), result("", 2)],
        "tools": [WEATHER, NOTHING]
    },
    "thoughts": {"messages": [user("Hi"), assistant("Hello", reasoning_content="Greet."), user("And?")]},
    "no thinking": {"messages": [user("Hi")], "chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
    "a developer": {"messages": [{"role": "developer", "content": "Be terse."}, user("Hi")]},
    "a developer and a system": {
        "messages": [system("S"), user("Hi"), {"role": "developer", "content": "D"}, user("And?")]
    },
}
IMAGES = {
    "an image": {"messages": [system("S"), {"role": "user", "content": [{"type": "text", "text": "Look:"}, IMAGE]}]},
    "an image first": {"messages": [{"role": "user", "content": [IMAGE, {"type": "text", "text": "What is it?"}]}]},
}


@pytest.fixture(scope="module")
def templates():
    return pypi.members_of(*ARCHIVE, ".jinja")


def in_parts(message):
    """vLLM gives lists to templates that loop over contents; a tool's text stays a text."""
    if message["role"] == "tool":
        return prepared_message(message)
    content = message["content"]
    seen = prepared_message({**message, "content": ""})
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    seen["content"] = [
        part if part["type"] == "text" else {"type": part["type"].removesuffix("_url")} for part in content or []
    ]
    return seen


def text_of(content):
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content if "text" in part)


def folded(messages, source):
    """What vLLM makes of a developer whom the template does not know."""
    if "'developer'" in source or '"developer"' in source:
        return [{**message, "tools": None} if message["role"] == "developer" else message for message in messages]
    if not any(message["role"] == "developer" for message in messages):
        return messages
    messages = [{**message, "role": "system"} if message["role"] == "developer" else message for message in messages]
    if not any(message["role"] == "system" for message in messages[1:]):
        return messages
    texts = [text_of(message["content"]) for message in messages if message["role"] == "system"]
    return [{"role": "system", "content": "\n\n".join(text for text in texts if text)},
            *(message for message in messages if message["role"] != "system")]


def wanted(source, chat, parts):
    messages = [(in_parts if parts else prepared_message)(message) for message in copy.deepcopy(chat["messages"])]
    return render(source, **TOKENS, messages=folded(messages, source), tools=chat.get("tools"), documents=None,
                  add_generation_prompt=chat.get("add_generation_prompt", True), **chat.get("chat_template_kwargs", {}))


def rendered(folder, source, chats):
    fathom = fathom_lines(write_model(folder, config=TOKENS, template=source))
    answers = fathom.ask(chats)
    fathom.close()
    return answers


def differences(source, chats, answers, parts):
    """Each chat has the text of jinja2, or is refused by both."""
    found = []
    for (name, chat), answer in zip(chats.items(), answers):
        text = wanted(source, chat, parts)
        ours = answer["prompt"] if answer.get("exact") else None
        if ours != text:
            found.append(f"{name}\n      wanted {text!r}\n      got    {ours!r} {answer.get('error', '')}")
    return found


@pytest.mark.slow
def test_published_templates_render_as_jinja2_renders_them(templates, tmp_path):
    chats = {**CHATS, **MORE}
    assert len(templates) >= 60
    failed = {}
    for name, source in templates.items():
        answers = rendered(tmp_path / name, source, list(chats.values()))
        # Which of the two forms contents have follows from the template; it is one for all chats.
        found = min((differences(source, chats, answers, parts) for parts in (False, True)), key=len)
        if found:
            failed[name] = found
    unexpected = {name: found for name, found in failed.items() if name not in NOT_RENDERED}
    assert not unexpected, "\n".join(f"{name}: {len(found)}\n    " + "\n    ".join(found[:2])
                                     for name, found in unexpected.items())
    assert not set(NOT_RENDERED) - set(failed), "these are rendered by now"


def text_with_marks(message):
    """Where contents are texts, engines put what stands for an image before all of them."""
    content = message["content"]
    if isinstance(content, str):
        return message
    texts = [part["text"] for part in content if part["type"] == "text"]
    return {**message, "content": "\ufdd1" + "\n".join(texts)}


@pytest.mark.slow
def test_what_stands_before_an_image_is_what_jinja2_has_there(templates, tmp_path):
    wrong, known = [], 0
    for name, source in templates.items():
        for (what, chat), answer in zip(IMAGES.items(), rendered(tmp_path / name, source, list(IMAGES.values()))):
            assert not answer.get("exact"), (name, what)
            ours = answer.get("prompt") or ""
            marked = {**chat, "messages": [text_with_marks(message) for message in chat["messages"]]}
            texts = [wanted(source, chat, True), wanted(source, marked, False)]
            known += bool(ours)
            if not any(text is not None and text.startswith(ours) for text in texts) and ours:
                wrong.append((name, what, ours))
    assert not wrong
    assert known > len(templates), "most of them say something before the first image"
