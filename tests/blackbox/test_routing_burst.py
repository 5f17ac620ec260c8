"""Requests with the same new prefix that come within one prefill: no event can have told of it."""

import pytest

from choices import (BLOCK, QUICK, Asked, cached, complete, decided, decision_of, decisions, depth,
                     explain, follow, ids)
from fake_engine import whole_answer
from wire import eventually

NEW = ids(1, 512)
LASTING = ("--router-belief-ttl", "1h")


@pytest.fixture
def fleet(mock, serve):
    def start(count, *args, **options):
        workers = [mock(**{**QUICK, **options}) for _ in range(count)]
        router = serve(*args, workers=workers)
        follow(router, count)
        return router, workers
    return start


def test_a_burst_does_not_scatter(fleet):
    router, _ = fleet(4, *LASTING, speedup=1, kv_silent=True)
    first, *others = [NEW + ids(10 + number) for number in range(8)]
    asked = [Asked(router, first)]
    # Two threads that know of nothing yet could both be the first.
    eventually(lambda: len(decisions(router)) == 1, "the first is decided")
    asked += [Asked(router, prompt) for prompt in others]
    answers = [request.answer() for request in asked]
    served = {answer.worker for answer in answers}
    assert len(served) <= 2, "each worker more computes the prefix once more"

    assert [cached(answer) for answer in answers] == [0] * 8, "beliefs are not reported as cached"
    latest = decisions(router)
    assert len(latest) == 8
    assert {d["cached_tokens"] for d in latest} == {0}
    believed = [d["believed_tokens"] for d in reversed(latest)]
    assert believed.count(0) == len(served), "but for the first on each worker, all are believed"
    assert all(tokens >= len(NEW) * 15 // 16 for tokens in believed if tokens)
    assert decided(router, "belief") == 8 - len(served)
    assert decided(router, "load") == len(served)
    assert router.metric("kv_router_cached_tokens_total") == 0
    assert "cached blocks: 0," in router.log_text()


def test_events_confirm_what_was_believed(fleet):
    router, workers = fleet(4, *LASTING, kv_delay="300ms")
    first = complete(router, NEW + ids(10))
    holder = next(w for w in workers if router.worker_id(w) == first.worker)
    eventually(lambda: depth(router, holder, NEW + [1]) == len(NEW), "the events have come")
    followup = complete(router, NEW + ids(30))
    assert followup.worker == first.worker
    assert cached(followup) == len(NEW)
    assert (decided(router, "belief"), decided(router, "cache")) == (0, 1)
    assert router.metric("kv_router_cached_tokens_total") == len(NEW)


def test_bursts_of_different_prefixes_spread(fleet):
    # So slow that none has ended before the last one comes.
    router, _ = fleet(4, *LASTING, kv_silent=True, speedup=0.01)
    asked = [Asked(router, ids(40 + number, 256)) for number in range(8)]
    eventually(lambda: len(decisions(router)) == 8, "all are decided")
    assert len({decision["worker"] for decision in decisions(router)}) == 4
    assert decided(router, "belief") == 0
    for request in asked:
        request.leave()


def test_a_belief_that_no_event_confirms_ends(fleet):
    router, _ = fleet(2, "--router-belief-ttl", "1s", kv_silent=True)

    def believed():
        """Again, should this machine have slept for longer than the belief lasts."""
        worker = complete(router, NEW).worker
        decision = explain(router, NEW)
        assert decision["believed_tokens"] == 0 or str(decision["worker"]) == worker
        return decision["believed_tokens"]
    eventually(believed, "what was just sent is believed")
    eventually(lambda: explain(router, NEW)["believed_tokens"] == 0, "nobody believes it any more")
    assert {c["believed_tokens"] for c in explain(router, NEW)["candidates"]} == {0}
    eventually(lambda: router.metric("kv_router_sent_marks") == 0, "it is forgotten")


def test_nothing_is_believed_of_a_request_that_failed(serve, engine):
    broken = engine(lambda _, connection: connection.sendall(
        whole_answer('{"error": {}}', "400 Bad Request")))
    router = serve(*LASTING, workers=[broken])
    answer = Asked(router, NEW).connection.read_answer()
    assert answer.status == 400
    assert decision_of(router, answer)["prompt_tokens"] == len(NEW)
    eventually(lambda: explain(router, NEW)["believed_tokens"] == 0, "it was taken back")
    assert router.metric("kv_router_sent_marks") == 0


def test_a_belief_reaches_no_further_than_the_prompt(fleet):
    router, _ = fleet(1, *LASTING, kv_silent=True)
    shared = NEW[:100 * BLOCK]
    complete(router, shared + ids(2, 100))
    decision = explain(router, shared + ids(3, 100))
    assert len(shared) * 15 // 16 <= decision["believed_tokens"] <= len(shared)
    assert decision["cached_tokens"] == 0
