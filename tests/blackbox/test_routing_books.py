"""Whatever becomes of requests, what was booked for them is taken off again: exactly."""

import random
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from choices import QUICK, Asked, body_of, decisions, follow, ids, loads, wait_until_idle
from fake_engine import STREAM_HEAD, token_event, whole_answer
from wire import eventually

MODES = {
    "kv": (),
    "guessing": ("--no-router-kv-events",),
    "prefix-hash": ("--router-mode", "prefix-hash"),
}
RETRYING = ("--retry-budget", 1, "--circuit-breaker-failures", 1000, "--retry-attempts", 3,
            "--router-belief-ttl", "200ms")


# --- what clients do


def finish(router, prompt, stream):
    wire.ask(router.port, "POST", "/v1/completions", body_of(prompt, max_tokens=8, stream=stream))


def leave_early(router, prompt, events):
    """After so many events of an answer that would be long."""
    with wire.Connection(router.port) as connection:
        connection.request("POST", "/v1/completions",
                           body_of(prompt, max_tokens=2000, stream=True))
        if events:
            head = connection.read_head()
            stream = connection.events(head) if head.status == 200 else iter(())
            for _ in range(events):
                next(stream, None)


def leave_badly(router, prompt):
    connection = wire.Connection(router.port)
    connection.request("POST", "/v1/completions", body_of(prompt, max_tokens=2000))
    connection.reset()


def half_a_request(router, prompt):
    with wire.Connection(router.port) as connection:
        whole = wire.request_bytes("POST", "/v1/completions", body_of(prompt))
        connection.send(whole[:len(whole) // 2])


def talk(router, prompt):
    """Text, which has to be tokenized first."""
    router.chat(max_tokens=2, messages=[{"role": "user", "content": "word " * len(prompt)}])


def nonsense(router, prompt):
    wire.ask(router.port, "POST", "/v1/completions", body_of(prompt, model="nobody's"))
    wire.ask(router.port, "POST", "/v1/completions", body_of(prompt),
             {"x-fathom-routing": "nonsense"})


def act(router, number):
    chance = random.Random(number)
    # Some share their beginning, and some are new.
    prompt = ids(chance.randrange(6), chance.choice([2, 16, 64])) + ids(100 + number, 2)
    deeds = [lambda: finish(router, prompt, True), lambda: finish(router, prompt, False),
             lambda: leave_early(router, prompt, 0), lambda: leave_early(router, prompt, 1),
             lambda: leave_early(router, prompt, 5), lambda: leave_badly(router, prompt),
             lambda: half_a_request(router, prompt), lambda: talk(router, prompt),
             lambda: nonsense(router, prompt)]
    try:
        deeds[number % len(deeds)]()
    except (OSError, wire.Truncated, AssertionError):
        pass  # answers that break off are part of it


def mix(router, count, mortal=None, threads=12):
    """So many clients; a mortal worker dies under them."""
    def one(number):
        if mortal is not None and number == count // 2:
            mortal.kill()
        act(router, number)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(count)))


# --- what workers do


def refuse(_, connection):
    connection.sendall(whole_answer('{"error": {}}', "500 Internal Server Error"))


def be_busy(_, connection):
    connection.sendall(whole_answer('{"error": {}}', "503 Service Unavailable"))


def break_off(_, connection):
    connection.sendall(STREAM_HEAD + token_event("word"))


def say_nothing(_, connection):
    connection.shutdown(socket.SHUT_RDWR)


def books_are_empty(router):
    wait_until_idle(router)
    eventually(lambda: router.metric("kv_router_sent_marks") == 0, "nothing is believed any more")
    assert loads(router) == {}
    assert router.metric("fathom_worker_in_flight") == 0
    assert router.metric("kv_router_queue_waiting") == 0


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_left_over(mock, serve, engine, mode):
    mortal, *others = [mock(**{**QUICK, "speedup": 20}) for _ in range(3)]
    broken = [engine(answer) for answer in (refuse, be_busy, break_off, say_nothing)]
    router = serve(*MODES[mode], *RETRYING, workers=[mortal, *others, *broken])
    mix(router, 180, mortal)
    books_are_empty(router)
    assert router.metric("fathom_retries_total") > 0
    assert router.metric("fathom_client_disconnects_total") > 0
    assert router.metric("kv_router_decisions_total") >= 100


@pytest.mark.parametrize("timeout", ["60s", "20ms"], ids=["patient", "impatient"])
def test_nothing_is_left_over_of_a_line(mock, serve, timeout):
    mortal, *others = [mock(**{**QUICK, "speedup": 1, "fail_rate": 0.2}) for _ in range(3)]
    router = serve("--router-queue-threshold", 0.001, "--router-queue-timeout", timeout, *RETRYING,
                   workers=[mortal, *others])
    mix(router, 180, mortal, threads=24)
    books_are_empty(router)
    assert router.metric("kv_router_queued_total") > 0
    assert router.metric("fathom_retries_total") > 0
    assert router.metric("fathom_client_disconnects_total") > 0


def test_nothing_is_left_over_on_any_rank(mock, serve):
    workers = [mock(**{**QUICK, "speedup": 20, "dp_size": 2}) for _ in range(2)]
    router = serve(*RETRYING, workers=workers)
    follow(router, 4)
    mix(router, 120, workers[0])
    books_are_empty(router)
    ranks = {(d["worker"], d["dp_rank"]) for d in decisions(router)}
    assert len(ranks) == 4, "all of them had something to do"


def test_nothing_is_left_over_of_a_worker_that_leaves(mock, serve):
    workers = [mock(**{**QUICK, "speedup": 1}) for _ in range(2)]
    router = serve(*RETRYING, workers=workers)
    follow(router, 2)
    asked = [Asked(router, ids(number, 16), stream=True, max_tokens=300) for number in range(6)]
    for request in asked:
        assert request.head().status == 200
    leaver = router.worker_id(workers[0])
    assert wire.ask(router.port, "DELETE", f"/workers/{leaver}").status == 204
    for request in asked:
        request.leave()
    books_are_empty(router)
    # It comes back, with clean books.
    assert wire.ask(router.port, "POST", "/workers", {"url": workers[0].url}).status == 201
    eventually(lambda: router.health()["workers_ready"] == 2, "it is back")
    mix(router, 18)
    books_are_empty(router)


def test_the_books_show_what_runs(mock, serve):
    """Or an empty book would prove nothing."""
    router = serve(workers=[mock(**{**QUICK, "speedup": 1})])
    shared = ids(1, 16)
    asked = [Asked(router, shared + ids(10 + number), stream=True, max_tokens=100_000)
             for number in range(3)]
    for request in asked:
        assert request.head().status == 200
    requests, queued, context = (router.metric(f"kv_router_rank_{name}") for name in
                                 ("requests", "queued_prefill_tokens", "context_tokens"))
    assert (requests, queued) == (3, 0)
    one = len(shared + ids(10))
    assert one < context, "each keeps something of its own"
    eventually(lambda: router.metric("kv_router_rank_context_tokens") > context, "answers grow")
    for request in asked:
        request.leave()
    books_are_empty(router)


def test_a_failed_attempt_is_taken_off_before_the_next(mock, serve, engine):
    good, bad = mock(**QUICK), engine(refuse)
    router = serve(*RETRYING, workers=[good, bad])
    for number in range(20):
        assert Asked(router, ids(number)).answer().worker == router.worker_id(good)
    latest = decisions(router)
    tried = [d for d in latest if d["worker"] == int(router.worker_id(bad))]
    assert tried, "the bad one was chosen at times"
    for failed in tried:
        again = next(d for d in latest if d["request_id"] == failed["request_id"])
        assert again["number"] > failed["number"]
        assert [c["worker"] for c in again["candidates"]] == [int(router.worker_id(good))]
    books_are_empty(router)
