"""Bounds: on bodies and heads, on requests in flight, on patience, on memory."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from conftest import run_fathom
from fake_engine import whole_answer
from wire import eventually

MB = 1_000_000


# --- bodies and heads


def test_a_body_that_is_too_long_is_refused_by_its_length(mock, serve):
    worker = mock()
    router = serve("--max-body-size", "64KiB", workers=[worker])
    body = b'{"model":"mock-model","input":"' + b"x" * 65536 + b'"}'
    answer = wire.ask(router.port, "POST", "/v1/score", body)
    assert answer.status == 413
    assert answer.error["code"] == "request_too_large"
    assert worker.stats()["requests"] == 0
    assert wire.ask(router.port, "POST", "/v1/score", body[:31] + b'"}').status == 200


def test_a_body_of_exactly_the_limit_passes(mock, serve):
    router = serve("--max-body-size", "64KiB", workers=[mock()])
    body = b'{"a":"' + b"x" * (65536 - 8) + b'"}'
    assert wire.ask(router.port, "POST", "/v1/score", body).json()["bytes"] == 65536
    assert wire.ask(router.port, "POST", "/v1/score", body + b" ").status == 413


@pytest.mark.parametrize("piece", [1000, 100_000])
def test_a_chunked_body_that_is_too_long_is_refused(mock, serve, piece):
    router = serve("--max-body-size", "64KiB", workers=[mock()])
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        while sent <= 65536:
            connection.send(b"%x\r\n%s\r\n" % (piece, b" " * piece))
            sent += piece
        answer = connection.read_answer()
        assert answer.status == 413
        assert connection.ended()


def test_a_body_of_300_mb_is_refused_before_it_is_sent(mock, serve):
    router = serve(workers=[mock()])
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n")
        answer = connection.read_answer()
        assert answer.status == 413
        assert "300000000" in answer.error["message"]
    # A client that sends without listening first gets to read the answer too.
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 300000000\r\n\r\n" +
                        b"x" * 8 * MB)
        assert connection.read_answer().status == 413


@pytest.mark.slow
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_of_300_mb_passes_in_about_one_copy(engine, serve, framing):
    fake = engine(lambda _, connection: connection.sendall(whole_answer("{}")), keep_bodies=False)
    router = serve("--max-body-size", "400MiB", workers=[fake])
    before = router.memory("VmHWM")
    size = 300 * MB
    opening, piece, ending = b'{"model":"mock-model","input":"', b"x" * MB, b'"}'
    pieces = [opening] + [piece] * ((size - len(opening) - len(ending)) // MB)
    pieces += [b"y" * (size - sum(map(len, pieces)) - len(ending)), ending]
    with wire.Connection(router.port) as connection:
        chunked = framing == "chunked"
        kind = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"
        connection.send(f"POST /v1/score HTTP/1.1\r\nHost: x\r\n{kind}\r\n\r\n".encode())
        for part in pieces:
            connection.send(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
        if chunked:
            connection.send(b"0\r\n\r\n")
        assert connection.read_answer().status == 200
    assert fake.requests[0].size == size
    assert router.memory("VmHWM") - before < 1.6 * size
    eventually(lambda: router.memory() - before < 0.2 * size, "the memory is given back")


def test_a_head_that_is_too_long_is_refused(serve):
    router = serve()
    with wire.Connection(router.port) as connection:
        connection.send(b"GET /live HTTP/1.1\r\nHost: x\r\n")
        connection.send(b"X-Pad: " + b"p" * 8000 + b"\r\n")
        connection.send((b"X-Pad: " + b"p" * 8000 + b"\r\n") * 9)
        answer = connection.read_answer()
        assert answer.status == 431
        assert answer.error["type"] == "invalid_request_error"
        assert connection.ended()


def test_a_head_may_be_as_long_as_the_limit_says(serve):
    router = serve("--max-head-size", "512KiB")
    answer = wire.get(router.port, "/live", {f"X-Pad-{i}": "p" * 8000 for i in range(50)})
    assert answer.status == 200


# --- requests in flight


def test_a_request_too_many_is_refused(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve("--max-in-flight", 1, "--max-waiting", 0, workers=[worker])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    answer = router.chat()
    assert answer.status == 429
    assert answer.error["type"] == "rate_limit_error"
    assert int(answer.header("retry-after")) >= 1
    assert router.metric("fathom_requests_rejected_total", reason="full") == 1
    assert router.get("/health").status == 200  # pages are not requests
    stream.close()
    eventually(lambda: router.chat(max_tokens=1).status == 200, "the place is free again")


def test_a_request_waits_for_its_turn(mock, serve):
    router = serve("--max-in-flight", 1, "--max-waiting", 1, workers=[mock(token_interval="20ms")])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(router.chat, max_tokens=1)
        eventually(lambda: router.health()["requests_waiting"] == 1, "the second one waits")
        assert router.chat().status == 429
        assert not waiting.done()
        stream.close()
        assert waiting.result().status == 200
    assert router.health()["requests_waiting"] == 0


def test_a_request_does_not_wait_for_ever(mock, serve):
    router = serve("--max-in-flight", 1, "--queue-timeout", "200ms",
                   workers=[mock(token_interval="20ms")])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    assert router.chat().status == 429
    stream.close()


def test_a_client_that_leaves_while_it_waits_gives_its_turn_up(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve("--max-in-flight", 1, "--max-waiting", 1, workers=[worker])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    waiting = wire.Stream(router.port)
    eventually(lambda: router.health()["requests_waiting"] == 1, "it waits")
    waiting.close()
    eventually(lambda: router.health()["requests_waiting"] == 0, "it is gone")
    stream.close()
    eventually(lambda: router.health()["requests_in_flight"] == 0, "nothing is in flight")
    assert worker.stats()["requests"] == 1


def test_the_queue_moves_on_one_by_one(mock, serve):
    worker = mock()
    router = serve("--max-in-flight", 2, "--max-waiting", 100, workers=[worker])
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda _: router.chat(max_tokens=2), range(60)))
    assert {answer.status for answer in answers} == {200}
    assert router.health()["requests_in_flight"] == 0


def test_connections_are_bounded(serve):
    router = serve("--max-connections", 5)
    held = [wire.Connection(router.port) for _ in range(5)]
    for connection in held:
        connection.request("GET", "/live")
        assert connection.read_answer().status == 200
    with wire.Connection(router.port) as sixth:
        assert sixth.ended()
    held[0].close()

    def admitted():
        with wire.Connection(router.port) as connection:
            try:
                connection.request("GET", "/live")
                return connection.read_head().status == 200
            except (wire.Truncated, ConnectionError):
                return False

    eventually(admitted, "there is room again")


# --- slow clients


def assert_cut_off(connection, dribble=None, patience=20):
    """The server lets go, with a 408 or without a word, however busy the client looks."""
    connection.socket.settimeout(0.05)
    deadline = time.monotonic() + patience
    while True:
        assert time.monotonic() < deadline, "still connected"
        try:
            if dribble:
                connection.send(dribble)
            if not connection.more():
                break
        except TimeoutError:
            pass
        except ConnectionError:
            break
    assert connection.buffer == b"" or connection.buffer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("start", [b"", b"G", b"GET /live HTTP/1.1\r\nHost: x\r\nX-Slow: "],
                         ids=["nothing", "a letter", "half a head"])
def test_a_client_that_sends_no_head_is_cut_off(serve, start):
    router = serve("--head-timeout", "300ms")
    with wire.Connection(router.port) as connection:
        connection.send(start)
        assert_cut_off(connection)


def test_a_client_that_dribbles_its_head_is_cut_off(serve):
    router = serve("--head-timeout", "500ms")
    with wire.Connection(router.port) as connection:
        connection.send(b"GET /live HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert_cut_off(connection, dribble=b"z")


@pytest.mark.parametrize("framing", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
def test_a_client_that_stops_in_its_body_is_cut_off(mock, serve, framing):
    worker = mock()
    router = serve("--body-timeout", "300ms", workers=[worker])
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
        connection.send(b'100\r\n{"a"' if b"chunked" in framing else b'{"a"')
        assert_cut_off(connection)
    assert worker.stats()["requests"] == 0


def test_a_client_that_dribbles_its_body_is_cut_off(mock, serve):
    """A byte now and then is no progress."""
    router = serve("--body-timeout", "500ms", workers=[mock()])
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
        assert_cut_off(connection, dribble=b" ")


def test_a_client_that_takes_its_time_with_much_is_not_cut_off(mock, serve):
    router = serve("--body-timeout", "500ms", workers=[mock()])
    pieces = [b'{"a":"'] + [b"x" * 100_000] * 20 + [b'"}']
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" %
                        sum(map(len, pieces)))
        for piece in pieces:
            connection.send(piece)
            time.sleep(0.05)
        assert connection.read_answer().json()["bytes"] == 2_000_008


def test_an_idle_connection_is_closed(serve):
    router = serve("--keep-alive-timeout", "300ms")
    with wire.Connection(router.port) as connection:
        connection.request("GET", "/live")
        assert connection.read_answer().status == 200
        assert connection.ended()


def test_a_client_that_does_not_read_is_cut_off(mock, serve):
    worker = mock()
    router = serve("--write-timeout", "500ms", workers=[worker])
    with wire.Connection(router.port, receive_buffer=4096) as connection:
        connection.request("POST", "/v1/completions",
                           {"model": "mock-model", "prompt": "a", "mock_answer_bytes": 100 * MB})
        eventually(lambda: worker.stats()["cancelled"] == 1, "the worker is let go")
        with pytest.raises((wire.Truncated, ConnectionError)):
            connection.read_answer()


@pytest.mark.slow
def test_a_slow_client_with_200_mb_costs_no_memory(mock, serve):
    router = serve(workers=[mock()])
    assert router.chat().status == 200
    before = router.memory()
    size = 200 * MB
    with wire.Connection(router.port, receive_buffer=16384) as connection:
        connection.request("POST", "/v1/completions",
                           {"model": "mock-model", "prompt": "a", "mock_answer_bytes": size})
        head = connection.read_head()
        length = int(head.header("content-length"))
        got, largest = 0, 0
        for count, piece in enumerate(connection.pieces(head)):
            got += len(piece)
            if count % 500 == 0:
                time.sleep(0.02)  # slower than the worker
                largest = max(largest, router.memory())
    assert got == length >= size
    assert largest - before < 50 * MB


@pytest.mark.slow
def test_slow_clients_slow_their_engines(mock, serve):
    """Fifty that do not read at all: what the worker has sent stays in the sockets."""
    router = serve(workers=[mock()])
    assert router.chat().status == 200
    before = router.memory()
    body = wire.request_bytes("POST", "/v1/completions",
                              {"model": "mock-model", "prompt": "a", "mock_answer_bytes": 20 * MB})
    connections = [wire.Connection(router.port, receive_buffer=4096) for _ in range(50)]
    for connection in connections:
        connection.send(body)
    eventually(lambda: router.metric("fathom_requests_in_flight") == 50, "all are in flight")
    for connection in connections:
        connection.socket.recv(1, socket.MSG_PEEK)
    assert router.memory() - before < 50 * MB
    for connection in connections:
        connection.close()
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all are gone")


@pytest.mark.slow
def test_2000_concurrent_streams_complete(mock, serve):
    worker = mock(first_token_delay="2s", token_interval="100ms")
    router = serve(workers=[worker])
    done = run_fathom("bench", "load", router.url, "concurrency=2000", "requests=2000", "stream=1",
                      "max-tokens=10", "model=mock-model")
    assert done.returncode == 0, done.stderr
    eventually(lambda: worker.stats()["completed"] == 2000, "the worker has served them")
    eventually(lambda: router.metric("fathom_requests_total", route="chat", code="200") == 2000,
               "the router has counted them")
    assert worker.stats()["cancelled"] == 0
    assert router.metric("fathom_broken_answers_total") == 0
    assert json.loads(done.stdout)


# --- clients that leave


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_mid_stream_cancels_its_request(mock, serve, leave):
    worker = mock(token_interval="20ms")
    router = serve(workers=[worker])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    getattr(stream.connection, leave)()
    eventually(lambda: worker.stats()["cancelled"] == 1, "the worker is told")
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "nothing is in flight")
    eventually(lambda: router.metric("fathom_client_disconnects_total") == 1, "it is counted")


def test_a_client_that_leaves_before_the_first_byte_cancels_its_request(mock, serve):
    """The worker is silent, so only the client's leaving can end this."""
    workers = [mock(hang_rate=1), mock(hang_rate=1)]
    router = serve(workers=workers)
    stream = wire.Stream(router.port)
    eventually(lambda: sum(worker.stats()["in_flight"] for worker in workers) == 1, "it was sent")
    stream.close()
    eventually(lambda: sum(worker.stats()["cancelled"] for worker in workers) == 1, "it is told")
    assert sum(worker.stats()["requests"] for worker in workers) == 1  # and it is not tried again
    assert router.metric("fathom_retries_total") == 0


def test_a_client_that_leaves_in_its_body_bothers_no_worker(mock, serve):
    worker = mock()
    router = serve(workers=[worker])
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert router.chat().status == 200
    assert worker.stats()["requests"] == 1
