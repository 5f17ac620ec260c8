"""The anthropic client and the Responses API of the openai client, as agents use them."""

import json
import subprocess
import time
from pathlib import Path

import pytest

import wire
from conftest import clean_environment
from fake_engine import whole_answer
from model_fleet import engine as simulated

NODE = Path(__file__).parent / "node"
KINDS = ["vllm", "sglang", "trtllm"]
TOOL = {"name": "sound", "description": "the depth", "input_schema": {
    "type": "object", "properties": {"place": {"type": "string"}}}}
FUNCTION = {"type": "function", "name": "sound", "description": "the depth", "strict": False, "parameters": {
    "type": "object", "properties": {"place": {"type": "string"}}}}
# The step of an agent after it has called a tool, in the form of each API.
TOOL_TURN = [{"role": "user", "content": "How deep is it?"},
             {"role": "assistant", "content": [
                 {"type": "text", "text": "Let me look."},
                 {"type": "tool_use", "id": "t1", "name": "sound", "input": {"place": "reef"}}]},
             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "12 m"}]}]
TOOL_ITEMS = [{"role": "user", "content": "How deep is it?"},
              {"type": "function_call", "call_id": "c1", "name": "sound", "arguments": '{"place": "reef"}'},
              {"type": "function_call_output", "call_id": "c1", "output": "12 m"}]


def node(program, router, calls, **environment):
    assert (NODE / "node_modules/@anthropic-ai/sdk").is_dir(), f"run: npm ci --prefix {NODE}"
    return subprocess.Popen(
        ["node", NODE / f"{program}.mjs", router.url, json.dumps(calls)], env=clean_environment(environment),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(program, router, calls, **environment):
    """What came of each call."""
    process = node(program, router, calls, **environment)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def text_of(message):
    return "".join(block["text"] for block in message["content"])


def said(response):
    return "".join(part["text"] for item in response["output"] for part in item["content"])


def in_order(events, first, middle, last):
    """One of these, some of those, and then these."""
    assert events[:len(first)] == first and events[-len(last):] == last, events
    assert set(events[len(first):-len(last)]) == {middle}, events


@pytest.mark.parametrize("kind", KINDS)
def test_the_anthropic_client_is_served(shared_world, kind):
    worker = simulated(shared_world, kind, None)
    router = shared_world.serve(workers=[worker])
    whole, streamed, looped, beta, tools, tools_streamed, count, more, missing, strange = run("anthropic", router, [
        ["create", {"max_tokens": 6}], ["stream", {"max_tokens": 6}], ["events", {"max_tokens": 6}], ["beta", {}],
        ["create", {"messages": TOOL_TURN, "tools": [TOOL]}], ["stream", {"messages": TOOL_TURN, "tools": [TOOL]}],
        ["count", {}], ["count", {"messages": TOOL_TURN, "tools": [TOOL]}],
        ["create", {"model": "nope"}], ["create", {"messages": [{"role": "pilot", "content": "x"}]}]])
    assert (whole["type"], whole["role"], whole["stop_reason"]) == ("message", "assistant", "max_tokens")
    assert whole["usage"]["output_tokens"] == 6
    in_order(streamed["events"], ["message_start", "content_block_start"], "content_block_delta",
             ["content_block_stop", "message_delta", "message_stop"])
    assert looped["events"] == streamed["events"]
    message = streamed["message"]
    assert streamed["text"] == text_of(message) == text_of(whole) != ""
    assert (message["stop_reason"], message["usage"]["output_tokens"]) == ("max_tokens", 6)
    assert beta["type"] == "message"
    assert text_of(tools) == text_of(tools_streamed["message"]) != ""
    usage = whole["usage"]
    assert count["input_tokens"] == usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)
    assert more["input_tokens"] > count["input_tokens"]
    assert (missing["raised"], missing["status"], missing["type"]) == ("NotFoundError", 404, "not_found_error")
    assert (strange["raised"], strange["status"]) == ("BadRequestError", 400)


def test_the_query_of_the_beta_api_reaches_the_engine(engine, serve):
    worker = engine(lambda request, connection: connection.sendall(whole_answer(json.dumps(
        {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn", "usage": {}}))))
    router = serve(workers=[worker])
    assert run("anthropic", router, [["beta", {}]])[0]["type"] == "message"
    assert worker.requests[-1].target == "/v1/messages?beta=true"
    assert worker.requests[-1].header("anthropic-version")


def test_errors_are_classes_of_the_anthropic_client(world):
    router = world.serve("--api-key", "secret", workers=[world.mock(abort_after_tokens=2)])
    refused, counted = run("anthropic", router, [["create", {}], ["count", {}]], KEY="wrong")
    assert (refused["raised"], refused["status"], refused["type"]) == (
        "AuthenticationError", 401, "authentication_error")
    assert counted["raised"] == "AuthenticationError"
    # The engine is being stopped, and no other is left: come again.
    stopped, = run("anthropic", router, [["create", {"max_tokens": 50}]], KEY="secret")
    assert (stopped["raised"], stopped["status"], stopped["type"]) == ("InternalServerError", 503, "overloaded_error")


@pytest.mark.parametrize("kind", KINDS)
def test_the_responses_client_is_served(shared_world, kind):
    worker = simulated(shared_world, kind, None)
    router = shared_world.serve(workers=[worker])
    whole, streamed, looped, tools, tools_streamed, after, stored, missing, unknown = run("responses", router, [
        ["create", {}], ["stream", {}], ["events", {}],
        ["create", {"input": TOOL_ITEMS, "tools": [FUNCTION]}],
        ["stream", {"input": TOOL_ITEMS, "tools": [FUNCTION]}],
        ["create", {"after": 1, "input": "And now?"}], ["retrieve", {"of": 5}],
        ["create", {"model": "nope"}], ["create", {"previous_response_id": "resp_nope"}]])
    assert (whole["object"], whole["status"]) == ("response", "completed")
    in_order(streamed["events"],
             ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"],
             "response.output_text.delta",
             ["response.output_text.done", "response.content_part.done", "response.output_item.done",
              "response.completed"])
    assert looped["events"] == streamed["events"]
    response = streamed["response"]
    assert response["status"] == "completed"
    assert said(response) == said(whole) == whole["output_text"] != ""
    assert said(tools) == said(tools_streamed["response"]) != ""
    # With the turns before it.
    assert after["usage"]["input_tokens"] > whole["usage"]["input_tokens"] + whole["usage"]["output_tokens"]
    assert stored["id"] == after["id"] and said(stored) == said(after)
    assert (missing["raised"], missing["status"], missing["code"]) == ("NotFoundError", 404, "model_not_found")
    assert (unknown["raised"], unknown["status"]) == ("NotFoundError", 404)


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_is_gone_on_from_at_the_worker_that_has_it(world, kind):
    workers = [simulated(world, kind, None) for _ in range(2)]
    router = world.serve("--router-mode", "round-robin", workers=workers)
    chain = [["stream" if i % 2 else "create", {"after": i - 1, "input": f"And then, {i}?"} if i else {}]
             for i in range(6)]
    answers = run("responses", router, chain + [["retrieve", {"of": i}] for i in range(6)])
    assert not [answer for answer in answers if "raised" in answer]
    assert [answer["id"] for answer in answers[6:]] == [answer["id"] for answer in answers[:6]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_is_cancelled_or_deleted_where_its_engine_can(world, kind):
    router = world.serve(workers=[simulated(world, kind, None) for _ in range(2)])
    made, cancelled, deleted, after = run("responses", router, [
        ["create", {}], ["cancel", {"of": 0}], ["delete", {"of": 0}], ["retrieve", {"of": 0}]])
    expected = {
        "vllm": ("BadRequestError", "APIError"), "sglang": (None, "APIError"), "trtllm": ("NotFoundError", None)}
    assert (cancelled.get("raised"), deleted.get("raised")) == expected[kind]
    if kind == "trtllm":
        assert after["raised"] == "NotFoundError"
    else:
        assert after["id"] == made["id"]


def event(name, data):
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"


MESSAGE = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "mock-model",
           "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 0}}
RESPONSE = {"id": "r", "object": "response", "status": "in_progress", "output": [], "model": "mock-model", "usage": None}
CALL = {"type": "function_call", "id": "f", "call_id": "c", "name": "sound", "arguments": ""}
# Text, and the call of a tool, in pieces: whole streams of the two APIs.
TOOL_STREAMS = {
    "anthropic": "".join([
        event("message_start", {"message": MESSAGE}),
        event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "Let me \"message_stop\"."}}),
        event("content_block_stop", {"index": 0}),
        event("content_block_start", {"index": 1, "content_block": {
            "type": "tool_use", "id": "t", "name": "sound", "input": {}}}),
        *[event("content_block_delta", {"index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}})
          for piece in ('{"pla', 'ce": "\\u00e9', ' reef"}')],
        event("content_block_stop", {"index": 1}),
        event("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
        event("message_stop", {})]),
    "responses": "".join([
        event("response.created", {"response": RESPONSE, "sequence_number": 0}),
        event("response.output_item.added", {"output_index": 0, "item": CALL, "sequence_number": 1}),
        *[event("response.function_call_arguments.delta", {
            "output_index": 0, "item_id": "f", "delta": piece, "sequence_number": 2 + i})
          for i, piece in enumerate(('{"pla', 'ce": "\\u00e9', ' reef"}'))],
        event("response.completed", {"sequence_number": 5, "response": {
            **RESPONSE, "status": "completed", "output": [{**CALL, "arguments": '{"place": "\\u00e9 reef"}'}],
            "usage": {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16}}})])}
CLOSING = {"anthropic": "event: message_stop", "responses": "event: response.completed"}
PATHS = {"anthropic": "/v1/messages", "responses": "/v1/responses"}
APIS = pytest.mark.parametrize("api", ["anthropic", "responses"])
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


class Cutter:
    """Ends its next stream after so many bytes: as a crash does, or with a regular end of its body."""

    def __init__(self, stream):
        self.stream = stream.encode()
        self.ends = []  # (bytes, framing), the next one last

    def __call__(self, request, connection):
        size, framing = self.ends.pop()
        part = self.stream[:size]
        if framing == "close":
            connection.sendall(STREAM_HEAD + b"connection: close\r\n\r\n" + part)
            return
        head = STREAM_HEAD + b"transfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + (b"%x\r\n%s\r\n" % (len(part), part) if part else b""))
        if framing == "chunks":
            time.sleep(0.02)  # so that the events before it are on their way
            connection.sendall(b"0\r\n\r\n")


@pytest.fixture
def cutter(engine, serve):
    def start(api):
        answer = Cutter(TOOL_STREAMS[api])
        return answer, serve("--circuit-breaker-failures", 1000, workers=[engine(answer)])
    return start


@APIS
def test_the_call_of_a_tool_arrives_whole(cutter, api):
    worker, router = cutter(api)
    worker.ends = [(len(worker.stream), "chunks"), (len(worker.stream), "close")]
    streamed, looped = run(api, router, [["stream", {}], ["events", {}]])
    assert looped["events"] == streamed["events"]
    if api == "anthropic":
        text, call = streamed["message"]["content"]
        assert text["text"] == 'Let me "message_stop".'
        assert (call["name"], call["input"]) == ("sound", {"place": "é reef"})
        assert streamed["message"]["usage"] == {"input_tokens": 9, "output_tokens": 7}
    else:
        assert json.loads(streamed["response"]["output"][0]["arguments"]) == {"place": "é reef"}


def selection(stream):
    """Every boundary of an event, the bytes around it, and some within events."""
    text = stream.encode()
    ends = [i + 2 for i in range(len(text)) if text.startswith(b"\n\n", i)]
    around = {end + step for end in ends for step in (-3, -2, -1, 0, 1, 8)}
    # Without its last byte only a blank line is missing.
    return sorted(at for at in around | set(range(0, len(text), 97)) if at < len(text) - 1)


@APIS
@pytest.mark.parametrize("framing", ["close", "chunks", "torn"])
def test_no_cut_stream_looks_complete(cutter, api, framing):
    worker, router = cutter(api)
    for size in selection(TOOL_STREAMS[api]):
        worker.ends = [(size, framing)]
        answer = wire.ask(router.port, "POST", PATHS[api], {
            "model": "mock-model", "max_tokens": 5, "messages": [], "input": "x", "stream": True})
        if answer.status == 502:
            assert "error" in answer.json()
            continue
        assert answer.status == 200
        told, error = answer.text().split("event: error\n")
        assert TOOL_STREAMS[api].startswith(told) and told.endswith("\n\n") and len(told.encode()) <= size
        assert CLOSING[api] not in told
        failure = json.loads(error.removeprefix("data: "))
        assert failure["type"] == "error"
        if api == "anthropic":
            assert failure["error"]["type"] == "api_error"
        else:
            assert failure["code"] == failure["error"]["code"] == "worker_failed"
            assert failure["sequence_number"] == told.count("event: ")
    assert router.metric("fathom_broken_answers_total") > 5


@APIS
def test_the_clients_raise_for_a_cut_stream(cutter, api):
    worker, router = cutter(api)
    whole = len(worker.stream)
    sizes = [0, 3, whole // 3, whole // 2, TOOL_STREAMS[api].index(CLOSING[api]), whole - 9]
    ends = [(size, framing) for size in sizes for framing in ("close", "chunks", "torn")]
    worker.ends = [end for end in ends for _ in range(2)]
    failures = run(api, router, [[call, {}] for _ in ends for call in ("stream", "events")])
    assert [failure for failure in failures if "raised" not in failure] == []
    assert {failure["raised"] for failure in failures} <= {"APIError", "InternalServerError"}


@APIS
@pytest.mark.parametrize("kind", KINDS)
def test_the_clients_raise_when_the_worker_is_killed_in_a_stream(world, api, kind):
    worker = simulated(world, kind, None, speedup=0.1)
    router = world.serve(workers=[worker])
    long = {"max_tokens": 2000} if api == "anthropic" else {"max_output_tokens": 2000}
    process = node(api, router, [["stream", long], ["events", long]], CONCURRENT="1")
    try:
        assert process.stderr.readline() == "begun\n"
        worker.kill()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    failures = json.loads(out)
    assert [failure["raised"] for failure in failures] == ["APIError"] * 2, err
    router.wait_for_log("An answer ended before it was complete")


@APIS
def test_a_worker_that_dies_before_the_first_event_costs_nothing(engine, serve, api):
    """What announces an answer is not yet one."""
    dies, lives = Cutter(TOOL_STREAMS[api]), Cutter(TOOL_STREAMS[api])
    announced = TOOL_STREAMS[api].index("\n\n") + 2
    dies.ends = [(size, framing) for size in (0, 5, announced) for framing in ("close", "chunks", "torn")]
    lives.ends = [(len(lives.stream), "chunks")] * 20
    router = serve("--circuit-breaker-failures", 1000, "--retry-budget", 1, "--router-mode", "round-robin",
                   workers=[engine(dies), engine(lives)])
    answers = [wire.ask(router.port, "POST", PATHS[api], {
        "model": "mock-model", "max_tokens": 5, "messages": [], "input": "x", "stream": True}) for _ in range(9)]
    assert [answer.text() for answer in answers] == [TOOL_STREAMS[api]] * 9
    assert router.metric("fathom_retries_total", reason="broken") > 0
