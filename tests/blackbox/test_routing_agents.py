"""Requests of agents, by /v1/messages and /v1/responses, are routed by what the caches hold, as chats are."""

import json

import pytest

import wire
from choices import cached, decision_of
from model_fleet import SYSTEM, counted, engine, router_of
from tokenizers import model_folder
from wire import eventually

KINDS = ["vllm", "sglang", "trtllm"]
TOOL = {"name": "sound", "description": "the depth", "input_schema": {"properties": {"place": {"type": "string"}}}}
FUNCTION = {"type": "function", "name": "sound", "description": "the depth", "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}}}


def ask(router, path, body):
    """The answer, once the router knows what its worker holds of the prompt."""
    answer = wire.ask(router.port, "POST", path, body)
    assert answer.status == 200, answer.text()
    size = decision_of(router, answer)["prompt_tokens"]

    def known():
        explained = wire.ask(router.port, "POST", "/debug/explain", {**body, "stream": False}).json()
        return explained["cached_tokens"] >= (size - 1) // 32 * 32
    eventually(known, "the events of the turn have come")
    return answer


def messages(router, turns, **fields):
    return ask(router, "/v1/messages", {"model": "mock-model", "max_tokens": 8, "messages": turns, **fields})


def responses(router, items, **fields):
    return ask(router, "/v1/responses", {"model": "mock-model", "max_output_tokens": 8, "input": items, **fields})


def message_usage(usage):
    """The tokens of a prompt, and those of them that the engine found."""
    found = usage.get("cache_read_input_tokens", 0)
    return usage["input_tokens"] + found, found


def events(answer):
    return [json.loads(line.removeprefix("data: ")) for line in answer.text().splitlines() if line.startswith("data: {")]


def fleet(world, kind, *options, files=True):
    workers = [engine(world, kind, "qwen3") for _ in range(3)]
    given = ("--model-path", model_folder("qwen3")) if files else ()
    return router_of(world, workers, *given, *options), workers


def agent(turn):
    """The messages of an agent's step, and of the steps before it."""
    turns = [{"role": "user", "content": [{"type": "text", "text": "How deep is it at the reef?"}]}]
    for i in range(turn):
        turns += [{"role": "assistant", "content": [
            {"type": "text", "text": f"Let me look, {i}."},
            {"type": "tool_use", "id": f"t{i}", "name": "sound", "input": {"place": f"reef {i}", "depth": 1e5}}]},
                  {"role": "user", "content": [
                      {"type": "tool_result", "tool_use_id": f"t{i}", "content": "12 m, and rocks " * 20}]}]
    return turns


def thread(turn):
    items = [{"role": "user", "content": [{"type": "input_text", "text": "How deep is it at the reef?"}]}]
    for i in range(turn):
        items += [{"type": "function_call", "call_id": f"c{i}", "name": "sound", "arguments": f'{{"place": "reef {i}"}}'},
                  {"type": "function_call_output", "call_id": f"c{i}", "output": "12 m, and rocks " * 20}]
    return items


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_on_messages_stays_where_its_prefix_is(world, kind):
    router, workers = fleet(world, kind)
    system = [{"type": "text", "text": SYSTEM}]
    first = messages(router, agent(0), system=system, tools=[TOOL])
    for turn in range(1, 4):
        answer = messages(router, agent(turn), system=system, tools=[TOOL])
        decision = decision_of(router, answer)
        size, found = message_usage(answer.json()["usage"])
        assert (decision["tokens_from"], decision["prompt_tokens"]) == ("files", size)
        assert answer.worker == first.worker
        assert cached(answer) == found > 100
    assert counted(workers, "tokenize_calls") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_on_responses_stays_where_its_prefix_is(world, kind):
    router, workers = fleet(world, kind)
    first = responses(router, thread(0), instructions=SYSTEM, tools=[FUNCTION])
    for turn in range(1, 4):
        answer = responses(router, thread(turn), instructions=SYSTEM, tools=[FUNCTION])
        decision = decision_of(router, answer)
        usage = answer.json()["usage"]
        assert (decision["tokens_from"], decision["prompt_tokens"]) == ("files", usage["input_tokens"])
        assert answer.worker == first.worker
        assert cached(answer) == usage["input_tokens_details"]["cached_tokens"] > 100
    assert counted(workers, "tokenize_calls") == 0


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_without_files_an_engine_is_asked_for_the_same_tokens(world, kind):
    router, workers = fleet(world, kind, files=False)
    system = [{"type": "text", "text": SYSTEM}]
    asked = [messages(router, agent(turn), system=system, tools=[TOOL]) for turn in range(3)]
    asked += [responses(router, thread(turn), instructions=SYSTEM, tools=[FUNCTION]) for turn in range(3)]
    for i, answer in enumerate(asked):
        decision = decision_of(router, answer)
        usage = answer.json()["usage"]
        size = message_usage(usage)[0] if i < 3 else usage["input_tokens"]
        assert (decision["tokens_from"], decision["prompt_tokens"]) == ("engine", size)
    assert len({answer.worker for answer in asked[:3]}) == len({answer.worker for answer in asked[3:]}) == 1
    assert counted(workers, "tokenize_calls") >= 6


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_a_stream_tells_what_the_engine_found(world, kind):
    router, _ = fleet(world, kind)
    for send, conversation, last in ((messages, agent, "message_stop"), (responses, thread, "response.incomplete")):
        send(router, conversation(2), tools=[TOOL if send is messages else FUNCTION])
        answer = send(router, conversation(2), tools=[TOOL if send is messages else FUNCTION], stream=True)
        told = events(answer)
        assert told[-1]["type"] == last
        decision = decision_of(router, answer)
        assert decision["found_tokens"] == cached(answer) > 0, decision


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_what_the_assistant_thought_is_in_the_prompt_as_that_engine_writes_it(world, kind):
    options = {"reasoning_parser": "qwen3"} if kind == "sglang" else {}
    workers = [engine(world, kind, "qwen2_5", **options) for _ in range(2)]
    router = router_of(world, workers, "--model-path", model_folder("qwen2_5"))
    turns = [{"role": "user", "content": "How deep?"}, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "I should measure.", "signature": "x"}, {"type": "text", "text": "12 m."}]},
             {"role": "user", "content": "And now?"}]
    answer = messages(router, turns, system="Be brief.")
    size, _ = message_usage(answer.json()["usage"])
    assert decision_of(router, answer)["prompt_tokens"] == size


def test_errors_have_the_shape_of_the_api(world):
    router = world.serve("--api-key", "secret", workers=[world.mock()])
    path = "/v1/messages"

    def refused(body, status, kind, *headers):
        answer = wire.ask(router.port, "POST", path, body, [("x-api-key", "secret"), *headers])
        error = answer.json()
        assert (answer.status, error["type"], error["error"]["type"]) == (status, "error", kind), answer.text()
        return error["error"]["message"]
    refused(b"{", 400, "invalid_request_error")
    refused({"model": 5, "messages": []}, 400, "invalid_request_error")
    assert "nope" in refused({"model": "nope", "max_tokens": 1, "messages": []}, 404, "not_found_error")
    refused({"model": "mock-model", "kv_transfer_params": {}}, 400, "invalid_request_error")
    anonymous = wire.ask(router.port, "POST", path, {"model": "mock-model"})
    assert (anonymous.status, anonymous.json()["error"]["type"]) == (401, "authentication_error")
    path = "/v1/messages/count_tokens"
    refused(b"[]", 400, "invalid_request_error")
