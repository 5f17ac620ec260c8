"""The router asks engines in streams what they found cached. What a client gets is, byte for byte, what it would have got without the question."""

import json
import re
import subprocess

import pytest

import wire
from fake_engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, chunk, whole_answer
from test_openai_client import openai

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
QUESTION = b'"stream_options":{"include_usage":true},'
TOLD = {"prompt_tokens": 40, "total_tokens": 42, "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 32}}


def event(end="\n\n", **members):
    return ("data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", **members},
                                  separators=(",", ":")) + end).encode()


def choice(text="hi", index=0, **more):
    return {"index": index, "delta": {"content": text}, "finish_reason": None, **more}


DONE = b"data: [DONE]\n\n"
HI = event(choices=[choice()])
CRLF = "\r\n\r\n"
TOOLS = event(choices=[{"index": 0, "delta": {"tool_calls": [
    {"index": 0, "function": {"name": "f", "arguments": '{"usage":{"prompt_tokens":1}}'}}]}}])
LOOKALIKE = event(choices=[choice('{"choices":[],"usage":{"prompt_tokens":7}}'), choice('"usage":{', 1)])
ERROR = event(error={"message": "it broke", "code": 500})

# What an engine says when it is asked for usage, and what it says when it is not.
SHAPES = {
    "event of its own": (HI + HI + event(choices=[], usage=TOLD) + DONE, HI + HI + DONE),
    "beside choices": (HI + event(choices=[choice()], usage=TOLD) + DONE, HI + HI + DONE),
    "nulls in any case": (event(choices=[choice()], usage=None) + event(choices=[], usage=TOLD) + DONE,
                          event(choices=[choice()], usage=None) + DONE),
    "null beside choices": (event(choices=[choice()], usage=None) + event(choices=[choice()], usage=TOLD) + DONE,
                            event(choices=[choice()], usage=None) * 2 + DONE),
    "nulls when asked": (event(choices=[choice()], usage=None) + event(choices=[], usage=TOLD) + DONE, HI + DONE),
    "CR LF and pings": (b": ping\r\n\r\n" + event(CRLF, choices=[choice()]) + event(CRLF, choices=[], usage=TOLD) +
                        b": ping\r\n\r\ndata: [DONE]\r\n\r\n",
                        b": ping\r\n\r\n" + event(CRLF, choices=[choice()]) + b": ping\r\n\r\ndata: [DONE]\r\n\r\n"),
    "tool calls": (TOOLS + event(choices=[], usage=TOLD) + DONE, TOOLS + DONE),
    "lookalikes": (LOOKALIKE + event(choices=[], usage=TOLD) + LOOKALIKE + DONE, LOOKALIKE * 2 + DONE),
    "no end": (HI + event(choices=[], usage=TOLD), HI),
}


def asks(request):
    return (json.loads(request.body).get("stream_options") or {}).get("include_usage") is True


class Teller:
    """Streams one shape, cut as the test says."""

    def __init__(self, asked, unasked, framing="chunked"):
        self.asked, self.unasked, self.framing = asked, unasked, framing
        self.cut = lambda text: [text]

    def __call__(self, request, connection):
        text = self.asked if asks(request) else self.unasked
        if self.framing == "length":
            connection.sendall(whole_answer(b"", content_type="text/event-stream")
                               .replace(b"content-length: 0", b"content-length: %d" % len(text)))
        elif self.framing == "close":
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        else:
            connection.sendall(STREAM_HEAD)
        for piece in self.cut(text):
            connection.sendall(chunk(piece) if self.framing == "chunked" else piece)
        if self.framing == "chunked":
            connection.sendall(LAST_CHUNK)


def stream(router, headers=(), target=CHAT, **fields):
    prompt = {"prompt": [1, 2]} if target == TEXT else {}
    answer = wire.ask(router.port, "POST", target, wire.chat_body(stream=True, **prompt, **fields), headers)
    assert answer.status == 200, answer.text()
    return answer


def asked(router):
    return router.metric("kv_router_usage_asked_total")


def seen(router):
    return router.metric("kv_router_usage_seen_total")


def learned(router, target=CHAT):
    """The router has seen a stream that nobody had asked in."""
    before = asked(router)
    stream(router, target=target)
    assert asked(router) == before


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_client_sees_nothing_of_the_question(engine, serve, shape, framing):
    teller = Teller(*SHAPES[shape], framing)
    fake = engine(teller)
    router = serve(workers=[fake])
    learned(router)
    for size in (1, 3, 100, 1 << 20):
        teller.cut = lambda text, size=size: [text[i:i + size] for i in range(0, len(text), size)]
        answer = stream(router)
        assert asks(fake.requests[-1])
        assert answer.body == teller.unasked
        assert answer.header("content-length") is None
    assert (asked(router), seen(router)) == (4, 4)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_stream_may_be_cut_anywhere(engine, serve, shape):
    teller = Teller(*SHAPES[shape])
    router = serve(workers=[engine(teller)])
    learned(router)
    for at in range(1, len(teller.asked)):
        teller.cut = lambda text, at=at: [piece for piece in (text[:at], text[at:]) if piece]
        assert stream(router).body == teller.unasked, at


def test_the_question_is_all_that_is_added(engine, serve):
    fake = engine(Teller(*SHAPES["event of its own"]))
    router = serve(workers=[fake])
    learned(router)
    body = b' {\n"model" : "mock-model","stream":true ,\t"messages":[{"role":"user","content":"\\u0041"}]}\n'
    wire.ask(router.port, "POST", CHAT, body, {"Accept-Encoding": "gzip"})
    assert fake.requests[-1].body == body.replace(b"{", b"{" + QUESTION, 1)
    codings = [value for name, value in fake.requests[-1].headers if name == "accept-encoding"]
    assert codings == ["identity"]
    declined = {"stream": True, "stream_options": {"include_usage": False}, "messages": [], "model": "mock-model"}
    wire.ask(router.port, "POST", CHAT, declined)
    assert json.loads(fake.requests[-1].body) == {**declined, "stream_options": {"include_usage": True}}


OWN = [{"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}, {},
       {"include_usage": False, "continuous_usage_stats": True}]


@pytest.mark.parametrize("options", OWN, ids=json.dumps)
def test_a_client_that_says_what_it_wants_gets_what_the_engine_says(engine, serve, options):
    text = event(choices=[choice()], usage=TOLD) + event(choices=[], usage=TOLD) + DONE
    fake = engine(Teller(text, HI + DONE))
    router = serve(workers=[fake])
    learned(router)
    stream(router)
    body = json.dumps(wire.chat_body(stream=True, stream_options=options), indent=1).encode()
    answer = wire.ask(router.port, "POST", CHAT, body, {"Accept-Encoding": "gzip"})
    assert fake.requests[-1].body == body
    assert fake.requests[-1].header("accept-encoding") == "gzip"
    assert answer.body == (text if asks(fake.requests[-1]) else HI + DONE)
    assert asked(router) == 1
    assert seen(router) == (2 if asks(fake.requests[-1]) else 1)


def test_an_engine_that_tells_unasked_is_not_asked_and_its_clients_lose_nothing(engine, serve):
    text = SHAPES["event of its own"][0]
    fake = engine(Teller(text, text))
    router = serve(workers=[fake])
    for _ in range(5):
        assert stream(router).body == text
    assert not any(asks(request) for request in fake.requests)
    assert (asked(router), seen(router)) == (0, 5)


def test_an_engine_that_tells_no_details_is_seldom_asked(engine, serve):
    bare = event(choices=[], usage={"prompt_tokens": 40, "prompt_tokens_details": None})
    fake = engine(Teller(HI + bare + DONE, HI + DONE))
    router = serve(workers=[fake])
    for _ in range(100):
        assert stream(router).body == HI + DONE
    assert 8 <= sum(asks(request) for request in fake.requests) <= 12


def test_chats_and_texts_are_learned_apart(engine, serve):
    """As TensorRT-LLM does, which writes null in the events of texts only."""
    null = event(choices=[{"text": "a"}], usage=None)

    def answer(request, connection):
        text = null if request.target == TEXT else HI
        Teller(text + event(choices=[], usage=TOLD) + DONE, text + DONE)(request, connection)

    fake = engine(answer)
    router = serve(workers=[fake])
    for target, text in ((CHAT, HI), (TEXT, null)):
        learned(router, target)
        assert stream(router, target=target).body == text + DONE
        assert asks(fake.requests[-1])


def test_the_option_turns_the_question_off(engine, serve):
    fake = engine(Teller(*SHAPES["event of its own"]))
    router = serve("--ask-usage=false", workers=[fake])
    for _ in range(3):
        assert stream(router).body == HI + HI + DONE
    assert not any(asks(request) for request in fake.requests)
    stream(router, stream_options={"include_usage": True})
    assert (asked(router), seen(router)) == (0, 1)


def test_modes_that_do_not_look_at_prompts_do_not_ask(engine, serve):
    fake = engine(Teller(*SHAPES["event of its own"]))
    router = serve("--router-mode", "round-robin", workers=[fake])
    for _ in range(3):
        stream(router)
    assert not any(asks(request) for request in fake.requests)
    assert seen(router) == 0


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_old_client_gets_it_until_the_end_of_the_connection(engine, serve, framing):
    teller = Teller(*SHAPES["event of its own"], framing)
    fake = engine(teller)
    router = serve(workers=[fake])
    learned(router)
    body = json.dumps(wire.chat_body(stream=True)).encode()
    with wire.Connection(router.port) as connection:
        connection.send(b"POST %s HTTP/1.0\r\ncontent-length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body))
        answer = connection.read_answer()
        assert connection.ended()
    assert asks(fake.requests[-1])
    assert answer.body == teller.unasked
    assert answer.header("transfer-encoding") is None and answer.header("content-length") is None


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_stream_that_breaks_off_ends_with_an_error_and_tells_no_usage(engine, serve, framing):
    def answer(request, connection):
        if not asks(request):
            return Teller(b"", HI + DONE)(request, connection)
        text = HI + event(choices=[], usage=TOLD) + b"data: {"
        if framing == "chunked":
            return connection.sendall(STREAM_HEAD + chunk(text))
        head = whole_answer(b"", content_type="text/event-stream")
        return connection.sendall(head.replace(b"content-length: 0", b"content-length: 9999") + text)

    router = serve(workers=[engine(answer)])
    learned(router)
    body = stream(router).body
    assert body.startswith(HI)
    (error,) = re.findall(rb"data: (.*)\n\n", body[len(HI):])
    assert json.loads(error)["error"]["code"] == "worker_failed"
    assert b"usage" not in body


@pytest.mark.parametrize("text", [ERROR, HI + ERROR + DONE])
def test_an_error_in_a_stream_arrives_and_teaches_nothing(engine, serve, text):
    fake = engine(Teller(text, text))
    router = serve(workers=[fake])
    for _ in range(3):
        assert stream(router).body == text
    assert not any(asks(request) for request in fake.requests)
    fake.answer = Teller(text, HI + DONE)
    learned(router)
    assert stream(router).body == text
    assert asks(fake.requests[-1])


def test_an_event_of_a_megabyte_is_filtered_too(engine, serve):
    long = event(choices=[choice("x" * 1_000_000)], usage=TOLD)
    teller = Teller(HI + long + DONE, HI + event(choices=[choice("x" * 1_000_000)]) + DONE)
    router = serve(workers=[engine(teller)])
    learned(router)
    assert stream(router).body == teller.unasked


def test_an_event_that_is_too_long_to_be_held_passes_as_it_is(engine, serve):
    teller = Teller(HI + event(choices=[choice("x" * 5_000_000)]) + event(choices=[], usage=TOLD) + DONE,
                    HI + event(choices=[choice("x" * 5_000_000)]) + DONE)
    router = serve(workers=[engine(teller)])
    learned(router)
    assert stream(router).body == teller.unasked


def test_an_answer_that_is_encoded_all_the_same_passes_as_it_is(engine, serve):
    def answer(request, connection):
        if not asks(request):
            return Teller(b"", HI + DONE)(request, connection)
        return connection.sendall(whole_answer(b"\x1f\x8b odd \"usage\":{", content_type="text/event-stream",
                                               headers=[("content-encoding", "gzip")]))

    router = serve(workers=[engine(answer)])
    learned(router)
    assert stream(router).body == b"\x1f\x8b odd \"usage\":{"


@pytest.mark.parametrize("size", [1, 5000])
def test_a_whole_answer_is_read_as_it_passes(engine, serve, size):
    body = json.dumps({"id": "x", "choices": [{"message": {"content": 'a "usage": {' * size}}], "usage": TOLD,
                       "more": [{"usage": 1}]}).encode()
    fake = engine(lambda _, connection: connection.sendall(whole_answer(body)))
    router = serve(workers=[fake])
    assert router.chat().body == body
    assert seen(router) == 1
    assert b"stream_options" not in fake.requests[-1].body


def test_answers_that_say_nothing_about_their_prompt_are_not_counted(engine, serve):
    answers = iter([whole_answer('{"usage":null}'), whole_answer("[]"), whole_answer("odd", content_type="text/plain"),
                    whole_answer(json.dumps({"usage": TOLD}), "400 Bad Request")])
    router = serve(workers=[engine(lambda _, connection: connection.sendall(next(answers)))])
    for _ in range(4):
        router.chat()
    assert seen(router) == 0


# --- the mock, and clients that others wrote


FAST = {"profile": "h200-llama-3.1-8b", "speedup": 1000}

def plain(body):
    """Without what differs from one answer to the next."""
    return re.sub(rb'"(id|created)":("[^"]*"|\d+)', b"", body)


@pytest.mark.parametrize("kind", ["vllm", "sglang", "trtllm"])
def test_a_simulated_engines_stream_is_what_it_is_without_a_router(mock, serve, kind):
    worker = mock(engine=kind, **FAST)
    router = serve(workers=[worker])
    learned(router)
    for fields in ({}, {"n": 2}, {"max_tokens": 1}, {"stop": ["a"]}):
        routed, direct = stream(router, seed=1, **fields), stream(worker, seed=1, **fields)
        assert plain(routed.body) == plain(direct.body), fields
    assert (asked(router), seen(router)) == (4, 4)


def test_a_restarted_engine_is_learned_anew(mock, serve):
    options = {"port": wire.free_port(), **FAST}
    worker = mock(**options)
    router = serve(workers=[worker])
    learned(router)
    assert b"usage" not in stream(router).body
    assert asked(router) == 1
    worker.kill()
    wire.eventually(lambda: router.health()["workers_ready"] == 0, "the router has noticed")
    mock(**options, force_usage=True)
    wire.eventually(lambda: router.health()["workers_ready"] == 1, "it is back")
    for _ in range(3):
        assert b'"usage":{' in stream(router).body
    assert asked(router) == 1


@pytest.mark.parametrize("with_choices", [False, True])
def test_the_openai_client_and_curl_see_no_usage_unless_they_ask(mock, serve, with_choices):
    worker = mock(**FAST, **({"usage_with_choices": True} if with_choices else {}))
    router = serve(workers=[worker])
    learned(router)
    learned(router, TEXT)
    for command in ("chat-stream", "completions-stream"):
        chunks = openai(router, command, max_tokens=3)["chunks"]
        assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks), chunks
        chunks = openai(router, command, max_tokens=3, stream_options={"include_usage": True})["chunks"]
        assert chunks[-1]["usage"]["completion_tokens"] == 3
    done = subprocess.run(["curl", "-sN", "--compressed", router.url + CHAT, "-H", "content-type: application/json",
                           "-d", json.dumps(wire.chat_body(stream=True))], capture_output=True, timeout=60, check=True)
    assert done.stdout.endswith(b"data: [DONE]\n\n") and b"usage" not in done.stdout
    assert asked(router) == 3


def test_an_engine_that_refuses_the_question_gets_the_request_without_it(engine, serve):
    teller = Teller(*SHAPES["event of its own"])

    def picky(request, connection):
        if b"stream_options" in request.body:
            body = b'{"error":{"message":"stream_options: extra fields not permitted","code":400}}'
            return connection.sendall(whole_answer(body).replace(b"200 OK", b"400 Bad Request"))
        return teller(request, connection)
    router = serve(workers=[engine(picky)])
    learned(router)
    for _ in range(5):
        assert stream(router).body == teller.unasked
    assert asked(router) == 1, "it is not asked again"
    assert router.metric("fathom_retries_total", reason="question") == 1


def test_what_is_the_clients_own_fault_is_told_to_it(engine, serve):
    teller = Teller(*SHAPES["event of its own"])
    bad = b'{"error":{"message":"temperature must be positive","code":400}}'

    def strict(request, connection):
        if b'"temperature"' in request.body:
            return connection.sendall(whole_answer(bad).replace(b"200 OK", b"400 Bad Request"))
        return teller(request, connection)
    router = serve(workers=[engine(strict)])
    learned(router)
    answer = wire.ask(router.port, "POST", CHAT, wire.chat_body(stream=True, temperature=-1))
    assert (answer.status, answer.body) == (400, bad)
    assert stream(router).body == teller.unasked
    assert asked(router) == 2, "the next one is asked as before"
