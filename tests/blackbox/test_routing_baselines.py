"""Cache-aware routing without the engines' help, to compare with: guesses from what was sent, and
hashing of how prompts begin."""

from collections import Counter

import pytest

from choices import (QUICK, Asked, cached, complete, decision_of, decisions, explain, found, ids)
from wire import eventually

GUESSING = ("--no-router-kv-events",)
HASHING = ("--router-mode", "prefix-hash")
# An answer may reach its client a moment before the router has closed its books.
UNBOUNDED = (*HASHING, "--router-prefix-hash-bound", 1000)
FIRST = 16  # blocks


@pytest.fixture
def fleet(mock, serve):
    """Engines that tell nothing."""
    def start(count, *args, **options):
        workers = [mock(**{**QUICK, "kv_events": "off", **options}) for _ in range(count)]
        return serve(*args, workers=workers), workers
    return start


def running(router, prompts):
    """How many of these, all at once, each worker got. Each is decided before the next one comes,
    or two threads could fill the same place."""
    asked = []
    for prompt in prompts:
        asked.append(Asked(router, prompt, stream=True, max_tokens=100_000))
        eventually(lambda: len(decisions(router)) == len(asked), "it is decided")
    counts = Counter(request.head().worker for request in asked)
    for request in asked:
        request.leave()
    return counts


# --- guesses


def test_a_guess_brings_follow_ups_back(fleet):
    router, _ = fleet(3, *GUESSING)
    served = {number: complete(router, ids(number, FIRST)).worker for number in range(12)}
    assert len(set(served.values())) > 1
    for number, worker in served.items():
        answer = complete(router, ids(number, FIRST) + ids(100 + number))
        assert answer.worker == worker
        assert found(answer) == FIRST * QUICK["block_size"], "it was a good guess"


def test_a_guess_is_not_reported_as_cached(fleet):
    router, _ = fleet(2, *GUESSING)
    complete(router, ids(1, FIRST))
    answer = complete(router, ids(1, FIRST) + ids(2))
    assert found(answer) > 0 and cached(answer) == 0
    decision = decision_of(router, answer)
    assert decision["depths_from"] == "own decisions"
    assert decision["cached_tokens"] == 0 < decision["believed_tokens"]
    assert router.metric("kv_router_cached_tokens_total") == 0
    assert router.metric("kv_router_decisions_total", by="belief") == 1
    assert "cached blocks: 0, tree size: 4" in router.log_text(), "in blocks of 64 tokens"


def test_events_are_not_asked_for(fleet):
    router, _ = fleet(1, *GUESSING, kv_events="on")
    complete(router, ids(1, FIRST))
    assert router.get("/debug/index").status == 404
    assert router.metric("kv_router_feed_connected") == 0


@pytest.mark.parametrize("args,env", [
    (["--kv-events", "off"], {}),
    ([], {"DYN_ROUTER_USE_KV_EVENTS": "false"}),
    ([], {"DYN_USE_KV_EVENTS": "false"}),
], ids=["not-followed", "variable", "older-variable"])
def test_guessing_has_several_names(mock, serve, args, env):
    router = serve(*args, workers=[mock(**QUICK)], env=env)
    assert explain(router, ids(1))["depths_from"] == "own decisions"


def test_a_guess_is_forgotten(fleet):
    router, _ = fleet(2, *GUESSING, "--router-ttl", "300ms", "--router-belief-ttl", "0")

    def believed():
        decision = explain(router, ids(1, FIRST) + [1])
        return any(c["believed_tokens"] for c in decision["candidates"])

    def is_guessed():
        """Again, should this machine have slept for longer than a guess lasts."""
        complete(router, ids(1, FIRST))
        return believed()
    eventually(is_guessed, "where it went it is")
    # Nothing is sent meanwhile: it is time alone that ends it.
    eventually(lambda: not believed(), "it is too long ago")


def test_guesses_spread_load(fleet):
    router, _ = fleet(3, *GUESSING, speedup=1)
    counts = running(router, [ids(number, FIRST) for number in range(12)])
    assert len(counts) == 3
    assert max(counts.values()) <= 6


# --- hashes


def test_prompts_that_begin_alike_stay_together(fleet):
    router, _ = fleet(3, *UNBOUNDED, "--router-prefix-hash-tokens", 128)
    homes = {}
    for number in range(60):
        beginning = ids(number, 8)
        served = {complete(router, beginning + ids(1000 + end)).worker for end in range(2)}
        assert len(served) == 1
        homes[number] = served.pop()
    assert len(set(homes.values())) == 3


def test_only_the_beginning_counts(fleet):
    router, _ = fleet(3, *UNBOUNDED, "--router-prefix-hash-tokens", 16)
    assert len({complete(router, ids(1, 1) + ids(2 + end)).worker for end in range(20)}) == 1
    router, _ = fleet(3, *UNBOUNDED, "--router-prefix-hash-tokens", 17)
    assert len({complete(router, ids(1, 1) + ids(2 + end)).worker for end in range(40)}) > 1


def test_a_worker_that_dies_moves_only_its_own(fleet):
    router, workers = fleet(3, *UNBOUNDED)

    def homes():
        return {number: complete(router, ids(number)).worker for number in range(40)}
    before = homes()
    assert homes() == before
    dead = router.worker_id(workers[0])
    workers[0].kill()
    eventually(lambda: router.health()["workers_ready"] == 2, "the death is noticed")
    after = homes()
    assert {n: w for n, w in after.items() if before[n] != dead} == \
        {n: w for n, w in before.items() if w != dead}
    assert dead not in after.values()


@pytest.mark.parametrize("same", [True, False], ids=["one-prefix", "many-prefixes"])
def test_hashes_are_bounded_by_load(fleet, same):
    router, _ = fleet(3, *HASHING, "--router-prefix-hash-bound", 1.25, speedup=1)
    counts = running(router, [ids(1 if same else number, FIRST) for number in range(12)])
    assert len(counts) == 3
    assert max(counts.values()) <= 5, "1.25 times the mean"


def test_a_hash_says_so(fleet):
    router, _ = fleet(2, *HASHING, kv_events="on")
    answer = complete(router, ids(1, FIRST))
    decision = decision_of(router, answer)
    assert decision["mode"] == "prefix-hash"
    assert len(decision["candidates"]) == 2
