"""curl, and what else HTTP/1.1 allows a client to do."""

import json
import subprocess

import pytest

import wire
from conftest import clean_environment


@pytest.fixture(scope="module")
def worker(shared_world):
    return shared_world.mock(name="ada")


@pytest.fixture(scope="module")
def router(shared_world, worker):
    return shared_world.serve(workers=[worker])


def curl(*args):
    """What came back, and what curl said of it."""
    done = subprocess.run(["curl", "-sSv", "--max-time", "60", *map(str, args)],
                          env=clean_environment(), capture_output=True, check=True)
    return done.stdout, done.stderr.decode()


def test_a_client_that_expects_100_is_told_to_go_on(router, tmp_path):
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"model": "mock-model", "input": "x" * 100_000}))
    out, said = curl("-H", "Expect: 100-continue", "--expect100-timeout", 50,
                     "--data-binary", f"@{body}", "-H", "Content-Type: application/json",
                     f"{router.url}/v1/score")
    assert json.loads(out)["bytes"] == body.stat().st_size
    assert "< HTTP/1.1 100 Continue" in said
    assert "< HTTP/1.1 200 OK" in said


def test_a_client_that_expects_100_is_refused_before_it_sends(router):
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                        b"Content-Length: 999999999999\r\n\r\n")
        answer = connection.read_answer()
        assert answer.status == 413
        assert answer.error["code"] == "request_too_large"


def test_a_chunked_upload_is_taken(router, tmp_path):
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"model": "mock-model", "input": "y" * 300_000}))
    out, _ = curl("-H", "Transfer-Encoding: chunked", "--data-binary", f"@{body}",
                  "-H", "Content-Type: application/json", f"{router.url}/v1/score")
    assert json.loads(out)["bytes"] == body.stat().st_size


def test_a_chunked_upload_may_come_in_any_pieces(router):
    body = json.dumps(wire.chat_body(max_tokens=2)).encode()
    framed = b"".join(b"%x;ext=1\r\n%c\r\n" % (1, byte) for byte in body) + b"0\r\nX-T: 1\r\n\r\n"
    head = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    with wire.Connection(router.port) as connection:
        for start in range(0, len(head + framed), 7):
            connection.send((head + framed)[start:start + 7])
        assert connection.read_answer().json()["choices"][0]["message"]["content"] == "ada:0 ada:1 "
        connection.request("GET", "/live")  # the next request begins where the last one ended
        assert connection.read_answer().status == 200


def test_a_connection_is_used_again(router):
    out, said = curl(f"{router.url}/live", f"{router.url}/v1/models", f"{router.url}/live")
    assert said.count("Connected to") == 1
    assert "Re-using existing connection" in said
    assert b"mock-model" in out


def test_a_connection_is_closed_when_the_client_asks(router):
    with wire.Connection(router.port) as connection:
        connection.request("GET", "/live", headers={"Connection": "close"})
        assert connection.read_answer().header("connection") == "close"
        assert connection.ended()


def test_pipelined_requests_are_answered_in_their_order(router):
    with wire.Connection(router.port) as connection:
        ask = wire.request_bytes
        connection.send(
            ask("POST", "/v1/chat/completions", wire.chat_body(max_tokens=1)) +
            ask("POST", "/v1/chat/completions", wire.chat_body(max_tokens=3, stream=True)) +
            ask("GET", "/v1/models") +
            ask("POST", "/v1/score", {"model": "mock-model"}) +
            ask("GET", "/nothing") +
            ask("POST", "/v1/completions", {"model": "mock-model", "prompt": "a", "max_tokens": 2}))
        assert connection.read_answer().json()["choices"][0]["message"]["content"] == "ada:0 "
        events = list(connection.events(connection.read_head()))
        assert wire.texts(events) == "ada:0 ada:1 ada:2 "
        assert events[-1] == "[DONE]"
        assert connection.read_answer().json()["object"] == "list"
        assert connection.read_answer().json()["object"] == "echo"
        assert connection.read_answer().status == 404
        assert connection.read_answer().json()["choices"][0]["text"] == "ada:0 ada:1 "


def test_a_pipeline_is_answered_in_full_when_the_client_sends_no_more(router):
    """Many at once, so that requests lie across the edges of buffers."""
    one = wire.request_bytes("POST", "/v1/score", {"model": "mock-model", "pad": "z" * 3001})
    with wire.Connection(router.port) as connection:
        connection.send(one * 50)
        for _ in range(50):
            assert connection.read_answer().status == 200


def test_an_http_1_0_client_gets_a_stream_without_chunks(router):
    out, said = curl("-0", "-d", json.dumps(wire.chat_body(stream=True, max_tokens=3)),
                     "-H", "Content-Type: application/json", f"{router.url}/v1/chat/completions")
    assert "transfer-encoding" not in said.lower().split("< http/1.1 200", 1)[1]
    assert out.endswith(b"data: [DONE]\n\n")
    events = out.decode().replace("data: ", "").split("\n\n")[:-1]
    assert wire.texts(events) == "ada:0 ada:1 ada:2 "


def test_an_http_1_0_client_may_keep_its_connection(router):
    with wire.Connection(router.port) as connection:
        for _ in range(2):
            connection.send(b"GET /live HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            answer = connection.read_answer()
            assert answer.status == 200
            assert answer.header("connection", "").lower() == "keep-alive"


def test_an_http_1_0_connection_is_closed_otherwise(router):
    with wire.Connection(router.port) as connection:
        connection.send(b"GET /live HTTP/1.0\r\n\r\n")
        assert connection.read_answer().status == 200
        assert connection.ended()


@pytest.mark.parametrize("path", ["/live", "/ready", "/health", "/metrics", "/v1/models", "/none"])
def test_head_has_the_headers_of_get_and_no_body(router, path):
    with wire.Connection(router.port) as connection:
        connection.request("HEAD", path)
        head = connection.read_answer("HEAD")
        connection.request("GET", path)
        answer = connection.read_answer()
    assert head.status == answer.status
    assert head.header("content-type") == answer.header("content-type")
    if path != "/metrics":  # whose numbers move
        assert head.header("content-length") == answer.header("content-length")


def test_a_target_may_be_absolute(router):
    out, _ = curl("-x", router.url, "http://some.where/v1/models")
    assert json.loads(out)["data"][0]["id"] == "mock-model"
    answer = wire.ask(router.port, "POST", "http://localhost/v1/score?x=1", {"model": "mock-model"})
    assert answer.json()["path"] == "/v1/score"


@pytest.mark.parametrize("method, path, status, allow", [
    ("GET", "/v1/chat/completions", 405, "POST"),
    ("DELETE", "/v1/chat/completions", 405, "POST"),
    ("POST", "/live", 405, "GET"),
    ("PUT", "/workers", 405, "GET, POST"),
    ("GET", "/workers/1", 405, "DELETE"),
    ("GET", "/", 404, None),
    ("POST", "/v2/chat", 404, None),
])
def test_a_wrong_method_or_path_is_said_to_be_one(router, method, path, status, allow):
    answer = wire.ask(router.port, method, path, "{}" if method == "POST" else None)
    assert answer.status == status
    assert answer.header("allow") == allow
    assert answer.error["type"] in ("invalid_request_error", "not_found_error")
