"""What is sent is what arrives: bodies byte for byte, headers by their rules."""

import json
import threading

import pytest

import wire
from fake_engine import (DONE_EVENT, LAST_CHUNK, STREAM_HEAD, FakeEngine, Request, chunk,
                         token_event, whole_answer)

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def worker(shared_world):
    return shared_world.mock()


@pytest.fixture(scope="module")
def router(shared_world, worker):
    return shared_world.serve(workers=[worker])


@pytest.fixture
def recorder(engine):
    """An engine that answers everything and keeps what it was sent."""
    return engine(lambda request, connection: connection.sendall(whole_answer('{"ok":true}')))


BODIES = {
    "empty object": b"{}",
    "odd whitespace": b'\r\n\t {\n\n"model"\t:\r\n"mock-model" ,\n"x":[ 1 ,\t2 ]\n}\n  \r\n',
    "unicode": '{"model":"mock-model","input":"h\u00e9 \u4f60\u597d \U0001f600 \u2028"}'.encode(),
    "escapes": rb'{"\u006dodel":"mock-model","a":"\u0000\ud83d\ude00\/\b"}',
    "numbers": b'{"a":1.0,"b":1e400,"c":-0.0,"d":12345678901234567890123,"e":0.1000}',
    "unknown fields": b'{"model":"mock-model","not_yet":{"deep":[[[{"er":null}]]]},"nvext":{}}',
    "repeated keys": b'{"model":"x","model":"mock-model","a":1,"a":2}',
    "a megabyte": b'{"model":"mock-model","input":"' + b"0123456789abcdef" * 65536 + b'"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_arrives_byte_for_byte(router, worker, body):
    routed = wire.ask(router.port, "POST", "/v1/images/some/new/route?and=query", body)
    direct = wire.ask(worker.port, "POST", "/v1/images/some/new/route?and=query", body)
    assert routed.status == 200
    assert routed.json() == direct.json()
    assert routed.json()["bytes"] == len(body)


def test_a_request_arrives_with_its_target_and_its_bytes(recorder, serve):
    router = serve(workers=[recorder])
    body = BODIES["odd whitespace"]
    wire.ask(router.port, "POST", "/v1/chat/completions?a=%20b&c", body, {"X-Own": "kept"})
    (request,) = recorder.requests
    assert (request.method, request.target) == ("POST", "/v1/chat/completions?a=%20b&c")
    assert request.body == body
    assert request.header("x-own") == "kept"
    assert request.header("host") == f"127.0.0.1:{recorder.port}"


def test_a_worker_may_live_below_a_path(recorder, serve):
    router = serve(workers=[recorder.url + "/engines/7"], ready=0)
    wire.eventually(lambda: router.get("/ready").status == 200, "the router is ready")
    wire.ask(router.port, "POST", "/v1/chat/completions", wire.chat_body())
    assert recorder.requests[0].target == "/engines/7/v1/chat/completions"


def test_embeddings_are_passed_through(router):
    body = {"model": "mock-model", "input": ["a", "b", "c"]}
    answer = wire.ask(router.port, "POST", "/v1/embeddings", body)
    assert answer.status == 200
    assert [entry["index"] for entry in answer.json()["data"]] == [0, 1, 2]


def test_responses_are_passed_through(router):
    body = {"model": "mock-model", "input": "hello", "max_output_tokens": 2}
    answer = wire.ask(router.port, "POST", "/v1/responses", body)
    assert answer.status == 200
    assert answer.json()["object"] == "response"


def test_a_form_is_passed_through(recorder, serve):
    router = serve(workers=[recorder])
    body = (b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
            b'RIFF\x00\xff\r\n--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\n'
            b'mock-model\r\n--xyz--\r\n')
    kind = "multipart/form-data; boundary=xyz"
    answer = wire.ask(router.port, "POST", "/v1/audio/transcriptions", body, {"Content-Type": kind})
    assert answer.status == 200
    assert recorder.requests[0].body == body
    assert recorder.requests[0].header("content-type") == kind


@pytest.mark.parametrize("body", [b"", b"hello", b"[]", b'{"a":1', b'{"a":1} x', b'"text"',
                                  b"{a:1}"])
def test_a_body_that_is_no_json_object_is_refused(router, body):
    answer = wire.ask(router.port, "POST", "/v1/chat/completions", body)
    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"


def test_an_answer_arrives_byte_for_byte(engine, serve):
    body = b' {\n"odd" : "\xe4\xbd\xa0 \\u0041" }\r\n' + b"z" * 9000

    def answer(_, connection):
        connection.sendall(whole_answer(body, "418 I am a teapot", "application/x-odd",
                                        [("X-Engine-Says", "hi"), ("retry-after", "7")]))

    router = serve(workers=[engine(answer)])
    got = router.chat()
    assert (got.status, got.reason) == (418, "I am a teapot")
    assert got.body == body
    assert got.header("content-type") == "application/x-odd"
    assert got.header("x-engine-says") == "hi"
    assert got.header("retry-after") == "7"


def test_a_stream_arrives_byte_for_byte(engine, serve):
    comments = b': ping\n\nevent: odd\nid: 7\ndata: {"choices":[{"delta":{"content":"a"}}]}\n\n'

    def answer(_, connection):
        connection.sendall(STREAM_HEAD + b"%x\r\n%s\r\n" % (len(comments), comments))
        # Events do not end where chunks end.
        for byte in token_event("torn")[4:-2]:
            connection.sendall(b"1\r\n%c\r\n" % byte)
        connection.sendall(DONE_EVENT + LAST_CHUNK)

    router = serve(workers=[engine(answer)])
    got = router.chat(stream=True)
    assert got.header("content-type") == "text/event-stream"
    assert got.body == comments + token_event("torn")[4:-2] + b"data: [DONE]\n\n"


def test_a_chunk_that_is_there_is_sent(engine, serve):
    """The client sees a token although nothing follows it."""
    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("one "))
        fake.released.wait(wire.PATIENCE)

    fake = engine(answer)
    stream = wire.Stream(serve(workers=[fake]).port)
    assert wire.texts([stream.next()]) == "one "
    stream.close()


def test_an_answer_that_ends_with_its_connection_is_passed_on(engine, serve):
    def answer(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end")

    got = serve(workers=[engine(answer)]).chat()
    assert (got.status, got.body) == (200, b"until the end")


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_answer_may_come_in_any_pieces(engine, serve, size):
    def answer(_, connection):
        text = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" +
                STREAM_HEAD + token_event("one ") + token_event("two ") + DONE_EVENT + LAST_CHUNK)
        for start in range(0, len(text), size):
            connection.sendall(text[start:start + size])

    stream = wire.Stream(serve(workers=[engine(answer)]).port)
    events = stream.rest()
    assert wire.texts(events) == "one two "
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_events_may_end_their_lines_in_any_way(engine, serve, line_end):
    event = b'data: {"choices":[{"delta":{"content":"a"}}]}' + line_end * 2
    seen = threading.Event()

    def answer(_, connection):
        connection.sendall(STREAM_HEAD + chunk(event))
        seen.wait(wire.PATIENCE)
        connection.sendall(chunk(event * 2) + LAST_CHUNK)

    with wire.Connection(serve(workers=[engine(answer)]).port) as connection:
        connection.request("POST", "/v1/chat/completions", wire.chat_body(stream=True))
        pieces = connection.pieces(connection.read_head())
        assert next(pieces) == event
        seen.set()
        assert b"".join(pieces) == event * 2


def test_headers_that_are_repeated_stay_repeated(engine, serve):
    cookies = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    fake = engine(lambda _, connection: connection.sendall(whole_answer("{}", headers=cookies)))
    got = serve(workers=[fake]).chat()
    assert [value for name, value in got.headers if name == "set-cookie"] == ["a=1", "b=2"]


def test_an_answer_without_a_body_is_passed_on(engine, serve):
    fake = engine(lambda _, c: c.sendall(b"HTTP/1.1 204 No Content\r\n\r\n"))
    router = serve(workers=[fake])
    with wire.Connection(router.port) as connection:
        for _ in range(2):
            connection.request("POST", "/v1/score", {})
            assert connection.read_answer().status == 204


def test_an_answer_that_comes_before_the_body_was_taken_is_passed_on(serve):
    """An engine may refuse a long body by its head, and read no further."""
    class Hasty(FakeEngine):
        def _read(self, connection):
            line = connection.recv(4096).split(b"\r\n")[0].decode()
            return Request(*line.split(" ")[:2], headers=[], body=b"", size=0)

    def answer(_, connection):
        connection.sendall(whole_answer('{"error":"too long"}', "413 Too Long"))
        fake.released.wait(wire.PATIENCE)

    fake = Hasty(answer)
    try:
        router = serve("--idle-timeout", "5s", workers=[fake])
        got = wire.ask(router.port, "POST", "/v1/score", {"a": "x" * 30_000_000})
        assert (got.status, got.body) == (413, b'{"error":"too long"}')
    finally:
        fake.stop()


# --- headers


def test_a_trace_is_forwarded(router):
    answer = router.chat({"traceparent": TRACE, "tracestate": "a=b"})
    assert answer.header("x-mock-traceparent") == TRACE


def test_a_request_id_is_kept_and_forwarded(router):
    answer = router.chat({"X-Request-ID": "my-own-id-1"})
    assert answer.header("x-request-id") == "my-own-id-1"
    assert answer.header("x-mock-request-id") == "my-own-id-1"
    assert len([name for name, _ in answer.headers if name == "x-request-id"]) == 1


def test_a_request_id_is_made_where_there_is_none(router):
    first, second = router.chat(), router.chat()
    assert len(first.header("x-request-id")) >= 16
    assert first.header("x-request-id") == first.header("x-mock-request-id")
    assert first.header("x-request-id") != second.header("x-request-id")


def test_a_request_id_stands_on_errors_and_streams_too(router):
    named = {"x-request-id": "abc"}
    assert router.chat(named, model="unknown").header("x-request-id") == "abc"
    assert router.chat(named, stream=True).header("x-request-id") == "abc"


@pytest.mark.parametrize("body", [b"no json", b'{"model":7}'])
def test_a_request_id_stands_on_refusals(router, body):
    answer = wire.ask(router.port, "POST", "/v1/completions", body, {"x-request-id": "abc"})
    assert (answer.status, answer.header("x-request-id")) == (400, "abc")


def test_an_overlong_request_id_is_replaced(router):
    answer = router.chat({"x-request-id": "i" * 5000})
    assert 16 <= len(answer.header("x-request-id")) <= 256


def test_the_answer_says_who_served_it(router, worker):
    assert router.chat().worker == router.worker_id(worker)


def test_hop_by_hop_headers_stay_on_their_hop(recorder, serve):
    router = serve(workers=[recorder])
    hop = {"Connection": "keep-alive, X-Private", "X-Private": "secret", "Keep-Alive": "timeout=5",
           "TE": "trailers", "Proxy-Authorization": "Basic x", "Proxy-Connection": "keep-alive",
           "Upgrade": "h2c", "Trailer": "X-T"}
    assert router.chat(hop).status == 200
    got = {name for name, _ in recorder.requests[0].headers}
    assert not got & ({name.lower() for name in hop} - {"connection"})
    assert recorder.requests[0].header("connection") in (None, "keep-alive")


def test_hop_by_hop_headers_of_an_answer_stay_on_their_hop(engine, serve):
    def answer(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nconnection: close, x-private\r\n"
                           b"x-private: secret\r\nkeep-alive: timeout=5\r\nx-kept: 1\r\n"
                           b"content-length: 2\r\n\r\n{}")

    with wire.Connection(serve(workers=[engine(answer)]).port) as connection:
        for _ in range(2):  # the worker's "close" is not the client's
            connection.request("POST", "/v1/chat/completions", wire.chat_body())
            got = connection.read_answer()
            assert got.status == 200
            assert got.header("x-kept") == "1"
            assert got.header("x-private") is None
            assert got.header("keep-alive") is None


def test_a_worker_cannot_pretend_to_be_another(engine, serve):
    def answer(_, connection):
        connection.sendall(whole_answer("{}", headers=[("x-fathom-worker", "1"),
                                                       ("x-request-id", "other")]))

    fake = engine(answer)
    router = serve(workers=[fake])
    got = router.chat({"x-request-id": "mine"})
    assert [v for k, v in got.headers if k == "x-fathom-worker"] == [router.worker_id(fake)]
    assert [v for k, v in got.headers if k == "x-request-id"] == ["mine"]


# --- keys


def test_a_clients_key_is_passed_on_when_the_router_asks_for_none(recorder, serve):
    serve(workers=[recorder]).chat({"Authorization": "Bearer engine-key"})
    assert recorder.requests[0].header("authorization") == "Bearer engine-key"


def test_the_routers_keys_do_not_reach_the_workers(recorder, serve):
    router = serve("--api-key", "sesame", workers=[recorder])
    assert router.chat({"Authorization": "Bearer sesame"}).status == 200
    assert recorder.requests[0].header("authorization") is None


def test_a_workers_own_key_comes_from_the_environment(mock, serve, tmp_path):
    worker = mock(api_key="engine-secret")
    config = tmp_path / "fathom.yaml"
    entry = {"url": worker.url, "api_key_env": "ENGINE_KEY"}
    config.write_text(json.dumps({"workers": [entry]}))
    router = serve("--config", config, env={"ENGINE_KEY": "engine-secret"}, ready=1)
    answer = router.chat({"Authorization": "Bearer whatever"})
    assert answer.status == 200
    assert "engine-secret" not in str(answer) + router.get("/workers").text() + router.log_text()


def test_a_worker_that_wants_a_key_is_said_to_want_one(mock, serve):
    router = serve(workers=[mock(api_key="engine-secret")], ready=0)
    router.wait_for_log("api_key_env")
    assert router.get("/ready").status == 503
