"""Workers that fail: before the first byte somebody else answers, after it the client is told."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from fake_engine import STREAM_HEAD, token_event
from wire import eventually


@pytest.fixture
def serve(serve):
    """Workers take turns, so that those that fail are met for certain."""
    return lambda *args, **options: serve("--router-mode", "round-robin", *args, **options)


def assert_broken_off(events, code="worker_failed"):
    """The stream ends with an error and is not said to be done."""
    assert "[DONE]" not in events
    error = json.loads(events[-1])["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert "127.0.0.1" not in events[-1]


def ask_until(router, worker, **fields):
    """Asks until a request has reached the worker; returns the future of that request's answer."""
    pool = ThreadPoolExecutor(1)
    while True:
        before = worker.stats()["requests"]
        future = pool.submit(router.chat, **fields)
        eventually(lambda: future.done() or worker.stats()["requests"] > before, "it was sent")
        if worker.stats()["requests"] > before:
            return future


# --- after the first byte


def test_a_stream_whose_worker_is_killed_ends_with_an_error(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve(workers=[worker])
    stream = wire.Stream(router.port, max_tokens=100_000)
    seen = [stream.next() for _ in range(4)]
    worker.kill()
    seen += stream.rest()
    assert wire.texts(seen[:-1]).startswith(f"mock-{worker.port}:0 mock-{worker.port}:1 ")
    assert_broken_off(seen)
    assert stream.connection.ended()
    assert router.metric("fathom_broken_answers_total") == 1
    assert "An answer ended before it was complete" in router.log_text()


def test_a_stream_whose_worker_closes_it_ends_with_an_error(mock, serve):
    router = serve(workers=[mock(die_after_tokens=5)])
    stream = wire.Stream(router.port, max_tokens=50)
    events = stream.rest()
    assert len(wire.texts(events[:-1]).split()) == 5
    assert_broken_off(events)


def test_a_stream_that_ends_without_its_last_chunk_ends_with_an_error(engine, serve):
    """A clean close is no better than a reset: the body was not complete."""
    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("a ") + token_event("b ")[:20])

    stream = wire.Stream(serve(workers=[engine(answer)]).port)
    events = stream.rest()
    assert wire.texts(events[:-1]) == "a "  # and nothing of the torn event
    assert_broken_off(events)


def test_a_stream_with_broken_chunks_ends_with_an_error(engine, serve):
    seen = threading.Event()

    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("a "))
        seen.wait(wire.PATIENCE)
        connection.sendall(b"zz\r\nnonsense\r\n")

    stream = wire.Stream(serve(workers=[engine(answer)]).port)
    assert wire.texts([stream.next()]) == "a "
    seen.set()
    assert_broken_off(stream.rest())


def test_an_http_1_0_client_is_told_too(mock, serve):
    router = serve(workers=[mock(die_after_tokens=2)])
    body = json.dumps(wire.chat_body(stream=True, max_tokens=50)).encode()
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        assert_broken_off(list(connection.events(connection.read_head())))


@pytest.mark.parametrize("option", ["--idle-timeout", "--request-timeout"])
def test_a_stream_that_takes_too_long_ends_with_an_error(mock, serve, option):
    router = serve(option, "1s", workers=[mock()])
    stream = wire.Stream(router.port, max_tokens=50, mock_stall_after=3)
    events = stream.rest()
    assert len(wire.texts(events[:-1]).split()) == 3
    assert_broken_off(events)


def test_a_silent_stream_whose_listener_is_gone_ends_with_an_error(engine, serve):
    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("one ") + token_event("two "))
        fake.close_listener()
        fake.released.wait(wire.PATIENCE)

    fake = engine(answer)
    stream = wire.Stream(serve("--silent-stream-grace", "300ms", workers=[fake]).port)
    events = stream.rest()
    assert wire.texts(events[:-1]) == "one two "
    assert_broken_off(events)


def test_many_silent_streams_all_end_with_an_error(engine, serve):
    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("one "))
        fake.released.wait(wire.PATIENCE)

    fake = engine(answer)
    router = serve("--silent-stream-grace", "100ms", "--max-in-flight", 20, "--max-waiting", 20,
                   workers=[fake])
    streams = [wire.Stream(router.port) for _ in range(20)]
    for stream in streams:
        assert wire.texts([stream.next()]) == "one "
    waiting = [wire.Stream(router.port) for _ in range(10)]
    eventually(lambda: router.health()["requests_waiting"] == 10, "ten more wait")
    fake.close_listener()
    for stream in streams:
        assert_broken_off(stream.rest())
    for stream in waiting:
        assert stream.head.status in (502, 503)


def test_a_stream_that_still_speaks_outlives_its_listener(engine, serve):
    """An engine that is draining closes its listener and finishes what it has."""
    def answer(_, connection):
        connection.sendall(STREAM_HEAD + token_event("0 "))
        fake.close_listener()
        for i in range(1, 20):
            fake.released.wait(0.1)
            connection.sendall(token_event(f"{i} "))
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    fake = engine(answer)
    stream = wire.Stream(serve("--silent-stream-grace", "1s", workers=[fake]).port)
    events = stream.rest()
    assert wire.texts(events) == "".join(f"{i} " for i in range(20))
    assert events[-1] == "[DONE]"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_truncated_answer_is_not_presented_as_complete(engine, serve, framing):
    def answer(_, connection):
        body = b'{"choices":[' + b" " * 9000
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        if framing == "length":
            connection.sendall(head + b"content-length: 20000\r\n\r\n" + body)
        else:
            connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n"
                               b"%x\r\n%s\r\n" % (len(body), body))

    worker = engine(answer)
    router = serve("--retry-answer-size", "8KiB", workers=[worker])
    with pytest.raises(wire.Truncated):
        router.chat()
    assert router.metric("fathom_broken_answers_total") == 1
    held = serve(workers=[worker])
    assert (held.chat().status, held.metric("fathom_broken_answers_total")) == (502, 0)


def test_a_broken_short_answer_is_had_from_somebody_else(engine, mock, serve):
    def answer(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                           b"content-length: 200\r\n\r\n{\"choices\":[")

    router = serve(workers=[engine(answer), mock()])
    for _ in range(4):
        assert router.chat().json()["object"] == "chat.completion"


# --- before the first byte


def test_a_request_whose_worker_is_killed_is_answered_by_another(mock, serve):
    doomed, other = mock(hang_rate=1), mock()
    router = serve(workers=[doomed, other])
    future = ask_until(router, doomed)
    doomed.kill()
    answer = future.result()
    assert answer.status == 200
    assert answer.worker == router.worker_id(other)
    assert router.metric("fathom_retries_total") == 1


def test_a_dead_worker_costs_no_request(mock, serve):
    """Not even while its death is unnoticed, with kept connections to it in the pool."""
    mortal, immortal = mock(), mock()
    router = serve("--health-check-interval", "1h", workers=[mortal, immortal])
    assert {router.chat().status for _ in range(6)} == {200}
    mortal.kill()
    assert {router.chat().status for _ in range(10)} == {200}


def test_a_whole_answer_that_breaks_off_is_had_from_somebody_else(mock, serve):
    router = serve(workers=[mock(die_after_tokens=2), mock()])
    for _ in range(6):
        answer = router.chat(max_tokens=10)
        assert answer.status == 200
        assert len(answer.json()["choices"][0]["message"]["content"].split()) == 10


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", [{"fail_rate": 1}, {"busy": True}, {"drain_abort": True}],
                         ids=["fails", "busy", "drains"])
def test_a_worker_that_fails_costs_no_request(mock, serve, fault, stream):
    good = mock()
    router = serve(workers=[mock(**fault), good])
    answers = [router.chat(stream=stream, max_tokens=3) for _ in range(12)]
    assert [answer.status for answer in answers] == [200] * 12
    assert {answer.worker for answer in answers} == {router.worker_id(good)}
    assert all(b'"abort"' not in answer.body for answer in answers)
    eventually(lambda: good.stats()["completed"] == 12, "each was served once")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_draining_worker_costs_no_completion(mock, serve, stream):
    good = mock()
    router = serve(workers=[mock(drain_abort=True), good])
    body = {"model": "mock-model", "prompt": "x", "max_tokens": 2, "stream": stream}
    for _ in range(4):
        answer = wire.ask(router.port, "POST", "/v1/completions", body)
        assert answer.worker == router.worker_id(good)
        assert b'"abort"' not in answer.body


def test_a_stream_is_retried_after_a_silent_death_without_tokens(engine, mock, serve):
    def answer(_, connection):
        connection.sendall(STREAM_HEAD)  # a head is not an answer
        fake.close_listener()
        fake.released.wait(wire.PATIENCE)

    fake, good = engine(answer), mock()
    router = serve("--silent-stream-grace", "300ms", workers=[fake, good])
    for _ in range(2):
        answer = router.chat(stream=True)
        assert answer.body.endswith(b"data: [DONE]\n\n")
        assert answer.worker == router.worker_id(good)


def test_a_worker_that_hangs_costs_no_request(mock, serve):
    good = mock()
    router = serve("--first-byte-timeout", "300ms", workers=[mock(hang_rate=1), good])
    for _ in range(4):
        assert router.chat().worker == router.worker_id(good)
    assert router.metric("fathom_retries_total", reason="timeout") >= 1


def test_a_client_error_is_not_retried(mock, serve):
    workers = [mock(), mock()]
    router = serve(workers=workers)
    assert router.chat(max_tokens=-1).status == 400
    assert sum(worker.stats()["requests"] for worker in workers) == 1


# --- nobody can answer


def test_a_fleet_that_hangs_times_out(mock, serve):
    router = serve("--first-byte-timeout", "200ms", workers=[mock(hang_rate=1), mock(hang_rate=1)])
    answer = router.chat()
    assert answer.status == 504
    assert answer.error["code"] == "worker_timeout"


def test_a_fleet_that_drains_is_no_empty_success(mock, serve):
    router = serve(workers=[mock(drain_abort=True), mock(drain_abort=True)])
    for stream in (False, True):
        answer = router.chat(stream=stream)
        assert answer.status == 503
        assert answer.error["type"] == "server_error"


def test_a_fleet_that_fails_passes_its_error_on(mock, serve):
    router = serve(workers=[mock(fail_rate=1), mock(fail_rate=1)])
    answer = router.chat()
    assert (answer.status, answer.json()["error"]["message"]) == (500, "mock failure")
    busy = serve(workers=[mock(busy=True)])
    assert busy.chat().status == 503


def test_a_fleet_that_is_busy_passes_its_error_on_also_when_no_retry_is_left(mock, serve):
    """Ten retries are a reserve; then the budget is empty."""
    workers = [mock(busy=True), mock(busy=True)]
    own = wire.chat(workers[0].port).body
    router = serve("--retry-budget", 0, workers=workers)
    answers = [router.chat() for _ in range(15)]
    assert {(answer.status, answer.body) for answer in answers} == {(503, own)}
    assert router.metric("fathom_retries_denied_total") == 5


def test_a_fleet_that_is_down_gives_no_address_away(mock, serve):
    workers = [mock(), mock()]
    router = serve(workers=workers)
    for worker in workers:
        worker.kill()
    first = router.chat()
    eventually(lambda: router.get("/ready").status == 503, "the router is not ready")
    for answer in (first, router.chat(), router.chat(stream=True)):
        assert answer.status in (502, 503)
        assert answer.error["type"] == "server_error"
        seen = answer.text() + str(answer.headers)
        assert "127.0.0.1" not in seen
        assert not any(str(worker.port) in seen for worker in workers)
    assert router.health()["status"] == "down"


def test_a_fleet_that_was_never_up_is_unavailable(serve):
    """Nobody knows which models it would serve: that is not the same as none."""
    router = serve(workers=["http://127.0.0.1:1"], ready=0)
    router.wait_for_log("not healthy")
    answer = router.chat()
    assert answer.status == 503
    assert answer.header("retry-after")


def test_an_empty_fleet_is_unavailable(serve):
    answer = serve().chat()
    assert answer.status == 503
    assert answer.error["code"] == "no_workers"


# --- load on those that fail


@pytest.mark.parametrize("fault", [{"fail_rate": 1}, {"busy": True}, {"die_after_tokens": 1}],
                         ids=["fails", "busy", "dies"])
def test_a_failing_fleet_does_not_see_its_load_multiplied(mock, serve, fault):
    workers = [mock(**fault) for _ in range(3)]
    router = serve("--retry-budget", 0.2, "--circuit-breaker-failures", 1_000_000, workers=workers)
    requests = 100
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: router.chat(max_tokens=4), range(requests)))
    assert all(answer.status >= 500 for answer in answers)
    sent = sum(worker.stats()["requests"] for worker in workers)
    reserve = 10
    assert requests < sent <= requests * 1.2 + reserve + 2
    assert router.metric("fathom_retries_denied_total") > 0


def test_a_circuit_opens_and_closes_again(mock, serve):
    bad, good = mock(fail_rate=1), mock()
    router = serve("--circuit-breaker-failures", 3, "--circuit-breaker-open", "200ms",
                   workers=[bad, good])
    name = router.worker_id(bad)

    def circuit():
        return router.metric("fathom_worker_circuit_open", worker=name)

    assert circuit() == 0
    eventually(lambda: router.chat().status == 200 and circuit() == 1, "the circuit is open")
    bad.kill()
    mock(port=bad.port)  # a new one in its place, which is well
    eventually(lambda: router.chat().status == 200 and circuit() == 0, "the circuit is closed")
    eventually(lambda: router.chat().worker == name, "it gets requests again")


def test_an_open_circuit_keeps_requests_away(mock, serve):
    bad, good = mock(fail_rate=1), mock()
    router = serve("--circuit-breaker-failures", 2, "--circuit-breaker-open", "1h",
                   workers=[bad, good])
    assert {router.chat().status for _ in range(20)} == {200}
    assert bad.stats()["requests"] == 2


def test_a_worker_comes_back_after_its_restart(mock, serve):
    worker = mock()
    router = serve(workers=[worker])
    for _ in range(2):
        worker.kill()
        eventually(lambda: router.get("/ready").status == 503, "its death is noticed")
        worker = mock(port=worker.port)
        eventually(lambda: router.get("/ready").status == 200, "it is back")
        eventually(lambda: router.chat().status == 200, "it answers")


def test_a_restart_between_two_requests_costs_nothing(mock, serve):
    """The pool holds a connection to the old process."""
    worker = mock()
    router = serve("--health-check-interval", "1h", "--threads", 1, workers=[worker])
    for _ in range(3):
        assert router.chat().status == 200
        worker.kill()
        worker = mock(port=worker.port)
        assert router.chat().status == 200


def test_deaths_under_load_cost_only_what_had_begun(mock, serve):
    """Whole answers are retried: with one worker left standing, every client is answered."""
    workers = [mock(first_token_delay="20ms") for _ in range(3)]
    router = serve("--retry-budget", 1, workers=workers)
    stop = threading.Event()

    def ask_on():
        statuses = []
        while not stop.is_set():
            statuses.append(router.chat(max_tokens=2).status)
        return statuses

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(ask_on) for _ in range(6)]
        for worker in workers[:2]:
            before = worker.stats()["completed"]
            eventually(lambda: worker.stats()["completed"] > before + 5, "it is under load")
            worker.kill()
        before = workers[2].stats()["completed"]
        eventually(lambda: workers[2].stats()["completed"] > before + 10, "the last one serves")
        stop.set()
        statuses = [status for future in futures for status in future.result()]
    assert set(statuses) == {200}
