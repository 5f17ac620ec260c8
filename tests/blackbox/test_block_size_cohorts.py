"""Mixed fleets: workers with blocks of different sizes serve one model side by side, and what they
hold is compared in tokens."""

import itertools

import pytest

from block_sizes import (ENGINES, SOON, check_cache_aware, complaints, dropped, gauge_is,
                         mismatches, rank, restart, said, say, selections, size, start,
                         wait_for_state)
from choices import cached, complete, depth, explain, follow, found, ids
from wire import eventually

MIXED = (*SOON, "--block-size-conflict", "mixed")
# A hybrid model's blocks are as large as its states.
FLEET = [("vllm", 16), ("trtllm", 32), ("sglang", 1), ("vllm", 2096)]


@pytest.fixture
def fleet(world):
    workers = [start(world, engine, tokens) for engine, tokens in FLEET]
    router = world.serve(*MIXED, workers=workers)
    follow(router, len(FLEET))
    return router, workers


def test_every_size_is_a_cohort_and_all_know_their_caches(fleet):
    router, workers = fleet
    for (_, tokens), worker in zip(FLEET, workers):
        record = say(router, f"Workers with KV block size {tokens} form a separate cohort "
                             "(from worker reports)", "INFO")
        assert "model=mock-model workers=1" in record
        assert size(router, worker) == (tokens, "report")
    for number, ((_, tokens), worker) in enumerate(zip(FLEET, workers), 1):
        check_cache_aware(router, worker, number, tokens, blocks=300)
        assert gauge_is(router, worker, tokens, "events")
        assert (mismatches(router, worker, 0, 0), dropped(router, worker)) == (0, 0)
    shapes = {shape["block_size"] for shape in router.get("/debug/index").json()["shapes"]}
    assert shapes == {tokens for _, tokens in FLEET}
    assert router.health()["status"] == "ok" and router.get("/ready").status == 200
    assert len(said(router, "form a separate cohort")) == len(FLEET)
    assert not complaints(router) and not said(router, "Auto-configured")


def seed(router, worker, prompt, tokens):
    """Puts the beginning of a prompt into the worker's cache, and waits until the router knows."""
    complete(worker, prompt)
    whole = len(prompt) // tokens * tokens
    eventually(lambda: depth(router, worker, prompt + [1]) == whole, "its events have come")
    return whole


@pytest.mark.parametrize("deepest", range(len(FLEET)), ids=[f"{e}-{t}" for e, t in FLEET])
def test_who_holds_most_tokens_wins_whatever_its_blocks(deepest, fleet):
    router, workers = fleet
    prompt = ids(1, 600)  # 9600 tokens
    # Each in turn holds a little less than the next, and the smaller the blocks the more of them.
    depths = {deepest: 8400}
    for less, other in enumerate(i for i in range(len(FLEET)) if i != deepest):
        depths[other] = 6300 - less * 2100
    held = {i: seed(router, workers[i], prompt[:depths[i]], FLEET[i][1]) for i in depths}
    assert max(held, key=held.get) == deepest
    answer = complete(router, prompt)
    assert answer.worker == router.worker_id(workers[deepest])
    assert cached(answer) == held[deepest] <= found(answer)
    assert selections(router)[-1][0] == held[deepest] // FLEET[deepest][1]


def test_the_depths_of_a_choice_are_in_tokens(fleet):
    router, workers = fleet
    prompt = ids(1, 300)
    for worker, (_, tokens) in zip(workers, FLEET):
        assert seed(router, worker, prompt, tokens) == len(prompt) // tokens * tokens
    told = {entry["worker"]: entry for entry in explain(router, prompt + [1])["candidates"]}
    depths = [told[int(router.worker_id(worker))]["cached_tokens"] for worker in workers]
    assert depths == [4800, 4800, 4800, 4192]


@pytest.mark.parametrize("pair", itertools.permutations(FLEET[:3], 2), ids=str)
def test_conversations_stay_where_they_began(pair, world):
    workers = [start(world, engine, tokens) for engine, tokens in pair]
    router = world.serve(*MIXED, workers=workers)
    follow(router, 2)
    for number in range(1, 7):
        prompt = ids(number, 128)
        first = complete(router, prompt)
        worker = next(w for w in workers if router.worker_id(w) == first.worker)
        eventually(lambda: depth(router, worker, prompt + [1]) == len(prompt), "it is known")
        later = complete(router, prompt + ids(100 + number))
        assert (later.worker, cached(later)) == (first.worker, len(prompt))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_that_cannot_report_joins_its_cohort_with_its_events(engine, world):
    workers = [start(world, engine, 32, block_size_report="none"), start(world, "vllm", 16)]
    router = world.serve(*MIXED, workers=workers)
    follow(router, 2)
    assert size(router, workers[0]) == (None, None)
    check_cache_aware(router, workers[0], 1, 32)
    check_cache_aware(router, workers[1], 2, 16)
    say(router, "Workers with KV block size 32 form a separate cohort (from KV events)", "INFO")
    assert len(said(router, "does not report")) == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_one_whose_report_is_wrong_is_in_the_cohort_of_its_events(engine, world):
    workers = [start(world, engine, 32, block_size_report=64), start(world, "vllm", 16)]
    router = world.serve(*MIXED, workers=workers)
    follow(router, 2)
    check_cache_aware(router, workers[0], 1, 32)
    say(router, "KV events have blocks of 32 tokens, the worker's own report says 64: using the "
                "size from the events", "WARN")
    say(router, "Workers with KV block size 32 form a separate cohort (from KV events)", "INFO")
    check_cache_aware(router, workers[1], 2, 16)
    assert len(complaints(router)) == 1


def test_one_that_comes_back_with_another_size_changes_its_cohort(world):
    workers = [start(world, "vllm", 16), start(world, "trtllm", 32)]
    router = world.serve(*MIXED, workers=workers)
    follow(router, 2)
    check_cache_aware(router, workers[0], 1, 16)
    check_cache_aware(router, workers[1], 2, 32)
    workers[0] = restart(world, workers[0], "vllm", 32)
    eventually(lambda: depth(router, workers[0], ids(1, 256) + [1]) == 0, "its rank is emptied")
    wait_for_state(router, workers[0], "ready")
    follow(router, 2)
    check_cache_aware(router, workers[0], 3, 32)
    assert rank(router, workers[0])["cause"] is None
    assert depth(router, workers[1], ids(2, 256) + [1]) == 4096
    assert len(said(router, "form a separate cohort")) == 2, "nothing new"
