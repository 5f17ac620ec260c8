"""With the files of a model the router knows the tokens of a prompt itself: no engine is asked."""

import json

import pytest

import wire
from choices import cached, decision_of, found
from conftest import run_fathom
from model_fleet import (ROUTER, SYSTEM, Conversation, complete, counted, engine, holder, inexact, router_of, seen,
                         tokenized)
from tokenizers import model_folder

KINDS = ["vllm", "sglang", "trtllm"]
QUESTIONS = ["How deep is it at the buoy?", "And at the reef, at low tide?", "¿Y en el puerto? 港は？ 🌊", "Thanks!"]


@pytest.fixture(scope="module")
def harbor(shared_world):
    """A router with the files of its workers' model, for tests that do not disturb each other."""
    workers = [engine(shared_world, "trtllm", "qwen3") for _ in range(3)]
    return router_of(shared_world, workers, "--model-path", model_folder("qwen3")), workers


def decided_by_tokenizer(router, answer):
    """The decision, which must have had the engine's very tokens."""
    decision = decision_of(router, answer)
    assert (decision["tokens_from"], decision["inexact"]) == ("files", None)
    assert decision["prompt_tokens"] == decision["known_tokens"] == len(seen(answer))
    assert answer.json()["usage"]["prompt_tokens"] == len(seen(answer))
    return decision


# --- chats


@pytest.mark.parametrize("model", ["qwen3", "llama3_1"])
def test_chats_with_trtllm_become_cache_aware_and_nobody_is_asked_for_tokens(world, model):
    workers = [engine(world, "trtllm", model) for _ in range(3)]
    router = router_of(world, workers, "--model-path", model_folder(model))
    conversations = [Conversation(router, workers, f"Harbor {i}. " + SYSTEM) for i in range(6)]
    homes = [workers[i % 3] for i in range(6)]
    for conversation, home in zip(conversations, homes):
        conversation.ask("Who is there?", of=home)
    for question in QUESTIONS:
        for conversation, home in zip(conversations, homes):
            answer = conversation.ask(question)
            decided_by_tokenizer(router, answer)
            assert holder(workers, router, answer) is home
            # All but the question, what begins and ends a message, and a block.
            assert cached(answer) == found(answer) > len(seen(answer)) - 32 - 64
    assert counted(workers, "tokenize_calls") == 0
    assert counted(workers, "chat_prompts") == len(conversations) * (len(QUESTIONS) + 1)
    assert tokenized(router, "tokenizer") == len(conversations) * len(QUESTIONS)
    assert tokenized(router, "engine") == 0


def test_without_the_files_chats_with_trtllm_are_routed_by_their_text(world):
    workers = [engine(world, "trtllm", "qwen3") for _ in range(2)]
    router = router_of(world, workers)
    conversation = Conversation(router, workers)
    for question in QUESTIONS:
        answer = conversation.ask(question)
        decision = decision_of(router, answer)
        assert decision["tokens_from"] == "text"
        assert answer.header("x-fathom-cached-tokens") is None, "no token is known"
    assert counted(workers, "tokenize_calls") > 0
    assert tokenized(router, "tokenizer") == 0


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_engines_that_could_be_asked_are_not(world, kind):
    workers = [engine(world, kind, "qwen3") for _ in range(2)]
    router = router_of(world, workers, "--model-path", model_folder("qwen3"))
    conversation = Conversation(router, workers)
    first = conversation.ask(QUESTIONS[0])
    for question in QUESTIONS[1:]:
        answer = conversation.ask(question)
        decided_by_tokenizer(router, answer)
        assert answer.worker == first.worker
        assert cached(answer) == found(answer) > 0
    assert counted(workers, "tokenize_calls") == 0


def test_a_system_prompt_is_found_by_who_has_never_spoken_before(world):
    workers = [engine(world, "trtllm", "llama3_1") for _ in range(2)]
    router = router_of(world, workers, "--model-path", model_folder("llama3_1"))
    Conversation(router, workers).ask("Who was first?")
    answer = Conversation(router, workers).ask("I am the second, and ask something else.")
    assert cached(answer) == found(answer) > 300


def test_tools_and_thinking_are_part_of_the_prompt(harbor):
    router, workers = harbor
    tool = {"type": "function", "function": {"name": "sound", "description": "the depth", "parameters": {
        "type": "object", "properties": {"place": {"type": "string"}}}}}
    plain = Conversation(router, workers).ask("How deep?")
    with_tools = Conversation(router, workers, tools=[tool]).ask("How deep?")
    thoughtless = Conversation(router, workers, chat_template_kwargs={"enable_thinking": False}).ask("How deep?")
    for answer in (plain, with_tools, thoughtless):
        decided_by_tokenizer(router, answer)
    assert len(seen(with_tools)) > len(seen(plain)) + 50
    assert seen(thoughtless)[:len(seen(plain))] == seen(plain)
    assert len(seen(thoughtless)) == len(seen(plain)) + 4  # <think>, two line feeds, </think>, two more


# --- texts


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_their_tokens_with_and_without_what_stands_around_them(world, kind):
    worker = engine(world, kind, "llama3_1")
    router = router_of(world, [worker], "--model-path", model_folder("llama3_1"))
    for fields in ({}, {"add_special_tokens": False}):
        answer = complete(router, "How deep is it? <|eot_id|> 港 " * 8, **fields)
        decision = decision_of(router, answer)
        assert (decision["tokens_from"], decision["inexact"]) == ("files", None)
        assert decision["prompt_tokens"] == answer.json()["usage"]["prompt_tokens"]
    assert counted([worker], "tokenize_calls") == 0


def test_ids_are_taken_as_they_are(harbor):
    router, workers = harbor
    complete(router, list(range(100, 200)))
    answer = router.chat(prompt_token_ids=list(range(100, 200)))
    assert decision_of(router, answer)["tokens_from"] == "ids"
    assert answer.json()["usage"]["prompt_tokens"] == 100
    assert tokenized(router, "ids") == counted(workers, "ids_prompts") == 2


# --- what cannot be told in tokens

PARTS = {
    "image": {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    "audio": {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": "http://localhost/x.mp4"}},
    "file": {"type": "file", "file": {"file_id": "x"}},
    "unknown_part": {"type": "hologram", "hologram": "x"},
}


@pytest.mark.parametrize("reason", PARTS)
def test_what_is_no_text_is_said_and_counted_and_the_prompt_before_it_decides(harbor, reason):
    router, workers = harbor
    conversation = Conversation(router, workers, f"About {reason}. " + SYSTEM)
    first = conversation.ask(QUESTIONS[0])
    before = len(seen(first)) + 50
    answer = conversation.ask([{"type": "text", "text": "What is this?"}, PARTS[reason]])
    decision = decision_of(router, answer)
    assert (decision["tokens_from"], decision["inexact"]) == ("files", reason)
    # What begins the message is known, and nothing of what is in it.
    assert before <= decision["known_tokens"] <= before + 8
    assert answer.worker == first.worker
    assert before - 32 - 8 < cached(answer) <= found(answer)
    assert inexact(router, reason) == 1
    # Whatever is said later comes after it.
    later = conversation.ask("And now?")
    assert later.worker == first.worker
    assert decision_of(router, later)["known_tokens"] == decision["known_tokens"]
    assert inexact(router, reason) == 2
    assert counted(workers, "tokenize_calls") == 0


def test_a_chat_that_the_template_refuses_is_refused_by_the_engine(world):
    worker = engine(world, "vllm", "mistral_nemo")
    router = router_of(world, [worker], "--model-path", model_folder("mistral_nemo"))
    two = [{"role": "user", "content": "One"}, {"role": "user", "content": "Two"}]
    answer = router.chat(messages=two)
    assert answer.status == 400
    assert inexact(router, "template_refused") == 1


# --- files


def folder_with(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.json").write_text(text)
    return tmp_path


def start_with(path, *args):
    return run_fathom("serve", "--port", 0, "--worker-urls", "http://127.0.0.1:1", "--model-path", path, *args)


def test_files_that_are_not_there_end_the_start(tmp_path):
    ended = start_with(tmp_path / "nowhere")
    assert ended.returncode == 78
    assert "nowhere: no such folder" in ended.stderr and "tokenizer.json" in ended.stderr
    ended = start_with(tmp_path)
    assert ended.returncode == 78
    assert "no tokenizer.json in it" in ended.stderr and "snapshots" in ended.stderr


@pytest.mark.parametrize("files", [{"tokenizer": "{"}, {"tokenizer": "[]"}, {"tokenizer": '{"model": {"type": "BPE"}}'}], ids=str)
def test_files_that_are_broken_end_the_start(tmp_path, files):
    ended = start_with(folder_with(tmp_path, **files))
    assert ended.returncode == 78
    assert str(tmp_path / "tokenizer.json") in ended.stderr
    mock = run_fathom("mock", "--port", 0, "--model-path", tmp_path)
    assert mock.returncode == 78
    assert "tokenizer.json" in mock.stderr


def test_a_broken_configuration_ends_the_start(tmp_path):
    tokenizer = (model_folder("qwen3") / "tokenizer.json").read_text()
    ended = start_with(folder_with(tmp_path, tokenizer=tokenizer, tokenizer_config="{"))
    assert ended.returncode == 78
    assert "tokenizer_config.json" in ended.stderr


def test_two_folders_for_one_model_end_the_start():
    ended = start_with(f"a={model_folder('qwen3')},a={model_folder('llama3_1')}")
    assert ended.returncode == 78
    assert "two paths for a" in ended.stderr


def test_a_tokenizer_that_is_not_supported_is_left_to_the_engine(world, tmp_path):
    wordpiece = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
                 "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                           "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}}
    worker = engine(world, "vllm", None)
    router = router_of(world, [worker], "--model-path", folder_with(tmp_path, tokenizer=json.dumps(wordpiece)))
    assert "WARN" in router.log_text() and "WordPiece" in router.log_text()
    answer = router.chat()
    assert answer.status == 200
    assert decision_of(router, answer)["tokens_from"] == "engine"
    assert counted([worker], "tokenize_calls") == 1


def test_a_model_without_a_template_tokenizes_texts_and_leaves_chats_to_the_engine(world, tmp_path):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).symlink_to(model_folder("gemma2") / name)
    (tmp_path / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    worker = engine(world, "vllm", None, model_path=tmp_path)
    router = router_of(world, [worker], "--model-path", model_folder("gemma2"))
    assert "but not chats" in router.log_text()
    answer = router.chat()
    assert decision_of(router, answer)["tokens_from"] == "engine"
    assert inexact(router, "no_template") == 1
    assert counted([worker], "tokenize_calls") == 1
    text = wire.ask(router.port, "POST", "/v1/completions", {"model": "mock-model", "prompt": "hi there", "max_tokens": 1})
    assert decision_of(router, text)["tokens_from"] == "files"
    assert counted([worker], "tokenize_calls") == 1


# --- several models


def test_every_model_has_its_own_files(world):
    workers = {"a": engine(world, "trtllm", "qwen3", model="a"), "b": engine(world, "trtllm", "llama3_1", model="b"),
               "c": engine(world, "vllm", None, model="c")}
    paths = f"a={model_folder('qwen3')},b={model_folder('llama3_1')}"
    router = world.serve(*ROUTER, "--block-size-conflict", "mixed", "--model-path", paths, workers=list(workers.values()))
    for name in ("a", "b"):
        answer = router.chat(model=name, return_token_ids=True)
        decided_by_tokenizer(router, answer)
        assert workers[name].stats()["tokenize_calls"] == 0
    answer = router.chat(model="c")
    assert decision_of(router, answer)["tokens_from"] == "engine"
    assert workers["c"].stats()["tokenize_calls"] == 1


def test_a_folder_without_a_name_is_for_all_models_that_have_none(world):
    workers = {"a": engine(world, "trtllm", "qwen3", model="a"), "b": engine(world, "trtllm", "llama3_1", model="b")}
    paths = f"{model_folder('llama3_1')},a={model_folder('qwen3')}"
    router = world.serve(*ROUTER, "--model-path", paths, workers=list(workers.values()))
    for name in workers:
        decided_by_tokenizer(router, router.chat(model=name, return_token_ids=True))


def test_a_tokenizer_of_another_place_replaces_the_one_in_the_folder(world):
    worker = engine(world, "trtllm", "llama3_1")
    router = router_of(world, [worker], "--model-path", model_folder("qwen3"), "--tokenizer-path", model_folder("llama3_1"))
    answer = complete(router, "How deep is it?")
    assert decision_of(router, answer)["prompt_tokens"] == answer.json()["usage"]["prompt_tokens"]
    assert holder([worker], router, answer) is worker
