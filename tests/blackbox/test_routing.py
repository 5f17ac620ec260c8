"""Which worker gets a request."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from wire import eventually


TURNS = ("--router-mode", "round-robin")


def spread(router, requests, headers=(), **fields):
    """How many of the requests each worker answered."""
    answers = [router.chat(headers, max_tokens=1, **fields) for _ in range(requests)]
    assert {answer.status for answer in answers} == {200}
    return Counter(answer.worker for answer in answers)


def test_round_robin_alternates(mock, serve):
    router = serve(*TURNS, workers=[mock(), mock(), mock()])
    served = [router.chat(max_tokens=1).worker for _ in range(9)]
    assert len(set(served[:3])) == 3
    assert served == served[:3] * 3


@pytest.mark.parametrize("mode", ["random", "power-of-two", "least-loaded"])
def test_an_idle_fleet_is_used_evenly(mock, serve, mode):
    router = serve("--router-mode", mode, "--seed", 7, workers=[mock(), mock(), mock()])
    counts = spread(router, 60)
    assert len(counts) == 3
    assert min(counts.values()) >= 5


def test_routers_with_the_same_seed_make_different_request_ids(mock, serve):
    worker = mock()
    routers = [serve("--seed", 7, workers=[worker]) for _ in range(2)]
    assert len({router.chat().header("x-request-id") for router in routers}) == 2


@pytest.mark.parametrize("mode", ["power-of-two", "least-loaded"])
def test_a_busy_worker_is_spared(mock, serve, mode):
    router = serve("--router-mode", mode, workers=[mock(token_interval="50ms") for _ in range(2)])
    session = {"X-Session-ID": "busy"}  # holds the streams together
    (busy,) = spread(router, 1, session)
    eventually(lambda: router.chat(session, max_tokens=1).worker == busy, "the session is known")
    streams = [wire.Stream(router.port, session, max_tokens=100_000) for _ in range(3)]
    assert {stream.head.worker for stream in streams} == {busy}
    assert busy not in spread(router, 10)
    for stream in streams:
        stream.close()


def test_direct_goes_to_the_worker_that_is_named(mock, serve):
    workers = [mock(), mock()]
    router = serve("--router-mode", "direct", workers=workers)
    for worker in workers:
        name = router.worker_id(worker)
        assert spread(router, 5, {"x-fathom-worker": name}) == {name: 5}
        assert worker.stats()["requests"] == 5


@pytest.mark.parametrize("headers", [{}, {"x-fathom-worker": "12345"}, {"x-fathom-worker": "ada"},
                                     {"x-fathom-worker": ""}])
def test_direct_without_a_worker_is_refused(mock, serve, headers):
    router = serve("--router-mode", "direct", workers=[mock()])
    answer = router.chat(headers)
    assert answer.status == 400
    assert "x-fathom-worker" in answer.error["message"]


def test_direct_to_a_model_that_nobody_serves_is_not_found(mock, serve):
    worker = mock()
    router = serve("--router-mode", "direct", workers=[worker])
    answer = router.chat({"x-fathom-worker": router.worker_id(worker)}, model="unknown")
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")


def test_the_name_of_a_worker_means_nothing_in_other_modes(mock, serve):
    workers = [mock(), mock()]
    router = serve(*TURNS, workers=workers)
    assert len(spread(router, 4, {"x-fathom-worker": router.worker_id(workers[0])})) == 2


def test_a_session_stays_with_its_worker(mock, serve):
    router = serve(*TURNS, workers=[mock(), mock(), mock()])
    for session in ("a", "b", "c", "d"):
        assert len(spread(router, 6, {"X-Session-ID": session})) == 1
    assert len(spread(router, 6)) == 3


def test_a_session_that_has_its_first_answer_has_its_worker(mock, serve):
    """However fast it asks again, and whichever thread of the router it reaches."""
    router = serve(workers=[mock(first_token_delay="0ms") for _ in range(3)])

    def served(session):
        with wire.Connection(router.port) as first, wire.Connection(router.port) as second:
            body, headers = wire.chat_body(max_tokens=1), {"X-Session-ID": f"session-{session}"}
            workers = set()
            for connection in (first, second):
                connection.request("POST", "/v1/chat/completions", body, headers)
                workers.add(connection.read_answer().worker)
        return workers

    with ThreadPoolExecutor(8) as pool:
        scattered = [workers for workers in pool.map(served, range(800)) if len(workers) > 1]
    assert scattered == []


def test_a_session_moves_when_its_worker_dies_and_then_stays(mock, serve):
    workers = [mock(), mock(), mock()]
    router = serve(workers=workers)
    session = {"X-Session-ID": "conversation-1"}
    (first,) = spread(router, 3, session)
    next(w for w in workers if router.worker_id(w) == first).kill()
    (second,) = spread(router, 6, session)
    assert second != first


def test_a_session_is_forgotten_after_its_time(mock, serve):
    router = serve("--session-affinity-ttl", "10ms", workers=[mock(), mock()])
    session = {"X-Session-ID": "s"}
    first = router.chat(session).worker
    eventually(lambda: router.chat(session).worker != first, "the session has moved")


def test_affinity_can_be_turned_off(mock, serve):
    router = serve(*TURNS, "--session-affinity-ttl", "0", workers=[mock(), mock()])
    assert len(spread(router, 4, {"X-Session-ID": "s"})) == 2


# --- models


def test_a_request_goes_only_where_its_model_is_served(mock, serve):
    small, large, both = mock(model="small"), mock(model="large"), mock(model="small,large")
    router = serve(*TURNS, workers=[small, large, both])
    for model, workers in (("small", (small, both)), ("large", (large, both))):
        assert set(spread(router, 6, model=model)) == {router.worker_id(w) for w in workers}


def test_a_model_that_nobody_serves_is_not_found(mock, serve):
    router = serve(workers=[mock()])
    answer = router.chat(model="gpt-unknown")
    assert answer.status == 404
    assert answer.error["code"] == "model_not_found"
    assert answer.error["param"] == "model"
    assert "gpt-unknown" in answer.error["message"]
    assert answer.worker is None


def test_a_model_whose_workers_are_all_down_is_not_unknown(mock, serve):
    large, small = mock(model="large"), mock(model="small")
    router = serve(workers=[large, small])
    large.kill()
    eventually(lambda: router.health()["workers_ready"] == 1, "the death is noticed")
    answer = router.chat(model="large")
    assert answer.status == 503
    assert answer.header("retry-after")


def test_the_last_of_two_models_counts_as_it_does_for_engines(mock, serve):
    router = serve(workers=[mock()])
    body = b'{"model":"unknown","prompt":"x","max_tokens":1,"model":"mock-model"}'
    assert wire.ask(router.port, "POST", "/v1/completions", body).status == 200


def test_a_request_without_a_model_goes_to_anybody(mock, serve):
    router = serve(*TURNS, workers=[mock(model="a"), mock(model="b")])
    counts = Counter(wire.ask(router.port, "POST", "/v1/completions", {"prompt": "a", "max_tokens": 1}).worker
                     for _ in range(4))
    assert list(counts.values()) == [2, 2]


def test_models_are_merged_from_the_workers(mock, serve):
    router = serve(workers=[mock(model="b,a"), mock(model="c,b", engine="sglang")])
    listed = router.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [card["id"] for card in listed["data"]] == ["a", "b", "c"]
    assert router.get("/v1/models/c").json()["owned_by"] == "sglang"
    assert router.get("/v1/models/d").error["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["meta/llama-3", "meta%2Fllama-3", "meta%2fllama%2D3"])
def test_a_model_with_a_slash_is_found(mock, serve, path):
    """The openai client writes %2F."""
    router = serve(workers=[mock(model="meta/llama-3")])
    answer = router.get(f"/v1/models/{path}")
    assert (answer.status, answer.json().get("id")) == (200, "meta/llama-3")


def test_models_of_a_dead_worker_are_not_listed(mock, serve):
    mortal, immortal = mock(model="a"), mock(model="b")
    router = serve(workers=[mortal, immortal])
    mortal.kill()
    eventually(lambda: [card["id"] for card in router.get("/v1/models").json()["data"]] == ["b"],
               "its model is gone")
