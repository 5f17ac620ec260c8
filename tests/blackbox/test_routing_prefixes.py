"""A request goes where most of its prompt is: for every engine, over real sockets, with events that
the engines themselves publish."""

import pytest

import wire
from choices import (BLOCK, QUICK, Asked, cached, complete, decision_of, decisions, explain, follow,
                     found, ids, seed)
from fake_engine import whole_answer
from kv_engine import BLOCK as SMALL_BLOCK
from kv_engine import KvEngine, chain, join, prompt_of

A, B, C, D, E, F, G = (ids(number) for number in range(1, 8))
ENGINES = ["vllm", "sglang", "trtllm"]
POLLING = ("--kv-events-poll-interval", "20ms")


@pytest.fixture
def fleet(mock, serve):
    """A router that follows simulated engines."""
    def start(count, *args, dp_size=1, **options):
        more = {"dp_size": dp_size} if dp_size > 1 else {}
        workers = [mock(**{**QUICK, **more, **options}) for _ in range(count)]
        router = serve(*POLLING, *args, workers=workers)
        follow(router, count * dp_size)
        return router, workers
    return start


def candidate(decision, worker, rank=0):
    return next(c for c in decision["candidates"]
                if (str(c["worker"]), c["dp_rank"]) == (worker, rank))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_longest_prefix_decides(fleet, engine):
    router, (first, second) = fleet(2, engine=engine)
    seed(router, first, A + B)
    seed(router, first, A + C + D)
    seed(router, second, A + C + E)
    ones, twos = router.worker_id(first), router.worker_id(second)
    for prompt, worker, other in ((A + C + D + F, ones, twos), (A + C + E + G, twos, ones)):
        answer = complete(router, prompt)
        assert answer.worker == worker
        assert cached(answer) == found(answer) == len(A + C + D)
        decision = decision_of(router, answer)
        assert candidate(decision, worker)["cached_tokens"] == len(A + C + D)
        assert candidate(decision, other)["cached_tokens"] == len(A + C)
        assert decision["margin"] > 0
    assert cached(complete(router, A + B + G)) == len(A + B)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_ranks_are_candidates_of_their_own(fleet, engine):
    router, (worker,) = fleet(1, engine=engine, dp_size=2)
    seed(router, worker, A + B, rank=1)
    seed(router, worker, A + C + D, rank=1)
    seed(router, worker, A + C + E, rank=0)
    for prompt, rank in ((A + C + D + F, 1), (A + C + E + G, 0)):
        answer = complete(router, prompt)
        assert answer.header("x-fathom-dp-rank") == str(rank)
        # Another rank would have found less: the engine has used the one that was meant.
        assert cached(answer) == found(answer) == len(A + C + D)


def test_ranks_of_several_workers_compete(fleet):
    router, workers = fleet(2, dp_size=2)
    places = [(worker, rank) for worker in workers for rank in (0, 1)]
    for number, (worker, rank) in enumerate(places):
        seed(router, worker, A + ids(20 + number), rank)
    for number, (worker, rank) in enumerate(places):
        answer = complete(router, A + ids(20 + number) + B)
        assert (answer.worker, answer.header("x-fathom-dp-rank")) == \
            (router.worker_id(worker), str(rank))
        assert cached(answer) == found(answer) == 2 * len(A)
        assert len(decision_of(router, answer)["candidates"]) == len(places)


def test_the_rank_that_a_client_names_is_taken(fleet):
    router, (worker,) = fleet(1, dp_size=2)
    seed(router, worker, A + B, rank=0)
    answer = complete(router, A + B + C, {"X-data-parallel-rank": "1"})
    assert answer.header("x-fathom-dp-rank") == "1"
    assert (cached(answer), found(answer)) == (0, 0)


def test_the_engine_is_told_its_rank_once(serve):
    engine = KvEngine(ranks=2)
    engine.answer = lambda _, connection: connection.sendall(whole_answer('{"choices": []}'))
    try:
        router = serve()
        for rank, known in enumerate(join(router, engine)):
            engine.ranks[rank].publish(chain(rank + 1, 3), rank=rank)
            known.catch_up()
        follow(router, 2)
        wire.eventually(lambda: router.health()["workers_ready"] == 1, "it can be routed to")
        for headers in ({}, {"x-data-parallel-rank": "1"}):
            answer = complete(router, prompt_of(2, 3) + [1], headers)
            assert cached(answer) == 3 * SMALL_BLOCK
            told = [value for name, value in engine.requests[-1].headers
                    if name == "x-data-parallel-rank"]
            assert told == ["1"]
    finally:
        engine.stop()


def test_an_engine_without_ranks_is_told_none(serve, engine):
    plain = engine(lambda _, connection: connection.sendall(whole_answer('{"choices": []}')))
    complete(serve(workers=[plain]), A)
    assert plain.requests[-1].header("x-data-parallel-rank") is None


def test_prompts_of_other_salts_share_nothing(fleet):
    router, (first, second) = fleet(2)
    seed(router, first, A + B)
    complete(second, A + B, cache_salt="S")
    # Events come in order: when this is known, so is what came before.
    seed(router, second, C)
    assert complete(router, A + B + D).worker == router.worker_id(first)
    answer = complete(router, A + B + D, cache_salt="S")
    assert answer.worker == router.worker_id(second)
    assert cached(answer) == found(answer) == len(A + B)


def test_the_last_token_is_always_computed(fleet):
    router, (worker,) = fleet(1)
    seed(router, worker, A)
    answer = complete(router, A)
    assert cached(answer) == found(answer) == len(A) - BLOCK


def test_what_an_engine_evicts_does_not_attract(fleet):
    router, (first, second) = fleet(2, num_blocks=40)
    seed(router, first, A + B)
    assert explain(router, A + B + C)["worker"] == int(router.worker_id(first))
    for number in range(30, 36):
        seed(router, first, ids(number, 9))
    decision = explain(router, A + B + C)
    assert [c["cached_tokens"] for c in decision["candidates"]] == [0, 0]


def test_one_prefix_does_not_take_one_worker_down(fleet):
    """A system prompt that everybody shares is computed elsewhere too, once its worker is busy."""
    router, workers = fleet(3, speedup=0.1, max_num_batched_tokens=2048)
    system = ids(40, 16)
    seed(router, workers[0], system)
    asked = [Asked(router, system + ids(50 + number, 128)) for number in range(18)]
    served = {request.answer().worker for request in asked}
    assert len(served) == 3
    assert any(d["cached_tokens"] == 0 for d in decisions(router, 18))
