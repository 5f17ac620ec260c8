"""Workers that come back with another block size, or whose events say something else than their
pages: what is said last, and what events prove, counts."""

import pytest

from block_sizes import (ENGINES, SOON, check_cache_aware, complaints, dropped, gauge_is,
                         mismatches, page, rank, records, said, say, size, start, wait_for_state,
                         wait_for_trust)
from choices import complete, depth, follow, ids
from kv_engine import add
from wire import eventually


def held(router):
    return router.get("/debug/index").json()["held"]


def shapes(router):
    return [shape["block_size"] for shape in router.get("/debug/index").json()["shapes"]
            if shape["blocks"]]


def come_back(world, router, worker, engine, tokens, seen):
    """Another process in its place. Seen: health checks notice that the first is gone."""
    worker.kill()
    if seen:
        eventually(lambda: page(router, worker)["state"] == "unhealthy", "it is gone")
    return start(world, engine, tokens, port=worker.port)


SEEN = pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])


@SEEN
@pytest.mark.parametrize("engine", ENGINES)
def test_a_lone_worker_may_come_back_with_another_size(engine, seen, world):
    worker = start(world, engine, 32)
    router = world.serve(*SOON, workers=[worker])
    follow(router, 1)
    check_cache_aware(router, worker, 1, 32)
    worker = come_back(world, router, worker, engine, 16, seen)
    eventually(lambda: held(router) == 0, "what the first one held is forgotten")
    wait_for_state(router, worker, "ready")
    follow(router, 1)
    check_cache_aware(router, worker, 2, 16)
    assert depth(router, worker, ids(1, 256) + [1]) == 0
    assert shapes(router) == [16]
    assert size(router, worker) == (16, "events")
    assert gauge_is(router, worker, 16, "events")
    say(router, "Auto-configured KV block size to 32 ", "INFO")
    say(router, "Auto-configured KV block size to 16 ", "INFO")
    assert not records(router, "ERROR")
    assert dropped(router, worker) == 0
    assert router.health()["status"] == "ok"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_size_may_change_from_one_event_to_the_next(engine, world):
    worker = start(world, engine, 32, kv_restart_after=4, kv_restart_block_size=16)
    router = world.serve(*SOON, workers=[worker])
    follow(router, 1)
    for number in range(1, 12):
        complete(router, ids(number, 64))
    wait_for_trust(router, worker, "trusted")
    eventually(lambda: size(router, worker) == (16, "events"), "the new size is known")
    check_cache_aware(router, worker, 20, 16)
    assert shapes(router) == [16]
    assert not records(router, "ERROR")


@SEEN
@pytest.mark.parametrize("engine", ENGINES)
def test_of_two_the_one_that_comes_back_with_another_size_is_refused(engine, seen, world):
    changing, steady = start(world, engine, 32), start(world, engine, 32)
    router = world.serve(*SOON, workers=[changing, steady])
    follow(router, 2)
    check_cache_aware(router, changing, 1, 32)
    check_cache_aware(router, steady, 2, 32)
    changing = come_back(world, router, changing, engine, 16, seen)
    complete(changing, ids(3, 64))  # where nobody noticed, its events tell
    wait_for_state(router, changing, "excluded", "block_size_conflict")
    eventually(lambda: depth(router, changing, ids(1, 256) + [1]) == 0, "its rank is emptied")
    say(router, "Worker is not admitted: its KV block size (16) is not that of the fleet (32)",
        "ERROR")
    assert mismatches(router, changing, 32, 16) >= 1
    assert depth(router, steady, ids(2, 256) + [1]) == 4096, "the other one is not touched"
    check_cache_aware(router, steady, 4, 32)
    assert shapes(router) == [32]
    before = changing.stats()["requests"]
    for number in range(10, 20):
        assert complete(router, ids(number)).worker == router.worker_id(steady)
    assert changing.stats()["requests"] == before
    assert (router.get("/ready").status, router.health()["status"]) == (200, "degraded")
    assert mismatches(router, steady, 0, 0) == 0
    assert len(records(router, "ERROR")) == 1


@SEEN
@pytest.mark.parametrize("engine", ENGINES)
def test_the_other_one_stays_though_it_has_proven_nothing_yet(engine, seen, world):
    changing, steady = start(world, engine, 32), start(world, engine, 32)
    router = world.serve(*SOON, workers=[changing, steady])
    follow(router, 2)
    check_cache_aware(router, changing, 1, 32)
    changing = come_back(world, router, changing, engine, 16, seen)
    eventually(lambda: held(router) == 0, "its rank is emptied")
    complete(changing, ids(2, 64))
    eventually(lambda: said(router, "Worker is not admitted", "ERROR") or
               said(router, "Auto-configured KV block size to 16"), "there is a decision")
    complete(steady, ids(3, 64))
    eventually(lambda: rank(router, steady)["trust"] in ("trusted", "excluded"), "it is judged")
    assert rank(router, steady)["trust"] == "trusted"
    wait_for_state(router, changing, "excluded", "block_size_conflict")
    check_cache_aware(router, steady, 4, 32)
    assert len(said(router, "Auto-configured")) == 1


@SEEN
@pytest.mark.parametrize("engine", ENGINES)
def test_one_that_comes_back_as_it_was_is_learnt_anew(engine, seen, world):
    workers = [start(world, engine, 32) for _ in range(2)]
    router = world.serve(*SOON, workers=workers)
    follow(router, 2)
    check_cache_aware(router, workers[0], 1, 32)
    check_cache_aware(router, workers[1], 2, 32)
    workers[0] = come_back(world, router, workers[0], engine, 32, seen)
    eventually(lambda: depth(router, workers[0], ids(1, 256) + [1]) == 0, "its rank is emptied")
    wait_for_state(router, workers[0], "ready")
    follow(router, 2)
    check_cache_aware(router, workers[0], 3, 32)
    assert depth(router, workers[1], ids(2, 256) + [1]) == 4096
    assert not records(router, "ERROR")
    assert len(said(router, "Auto-configured")) == 1


# --- pages that say something else than events


@pytest.mark.parametrize("engine", ENGINES)
def test_events_count_more_than_reports(engine, world):
    worker = start(world, engine, 32, block_size_report=16)
    router = world.serve(*SOON, workers=[worker])
    say(router, "Auto-configured KV block size to 16 (from worker reports)", "INFO")
    follow(router, 1)
    check_cache_aware(router, worker, 1, 32)
    record = say(router, "KV events have blocks of 32 tokens, the worker's own report says 16: using "
                         "the size from the events", "WARN")
    assert f"url={worker.url} dp_rank=0 " in record
    say(router, "Auto-configured KV block size to 32 (from KV events)", "INFO")
    assert size(router, worker) == (32, "events") and gauge_is(router, worker, 32, "events")
    for number in range(2, 8):
        check_cache_aware(router, worker, number, 32)
    assert len(complaints(router)) == 1, "it is said once"
    assert dropped(router, worker) == 0
    assert router.health()["status"] == "ok"


@pytest.mark.parametrize("engine", ENGINES)
def test_reports_that_are_wrong_everywhere_refuse_nobody(engine, world):
    workers = [start(world, engine, 32, block_size_report=16) for _ in range(3)]
    router = world.serve(*SOON, workers=workers[:2])
    follow(router, 2)
    for number, worker in enumerate(workers[:2], 1):
        check_cache_aware(router, worker, number, 32)
    add(router, workers[2])
    wait_for_state(router, workers[2], "ready")
    follow(router, 3)
    check_cache_aware(router, workers[2], 3, 32)
    for number, worker in enumerate(workers, 11):
        check_cache_aware(router, worker, number, 32)
    assert not records(router, "ERROR")
    assert len(said(router, "using the size from the events", "WARN")) == 3, "once for each of them"


def test_a_report_that_was_right_for_others_does_not_help_one_whose_events_differ(world):
    workers = [start(world, "vllm", 16), start(world, "vllm", 32, block_size_report=16)]
    router = world.serve(workers=workers)
    follow(router, 2)
    check_cache_aware(router, workers[0], 1, 16)
    complete(workers[1], ids(2, 64))
    wait_for_state(router, workers[1], "excluded", "block_size_conflict")
    say(router, "using the size from the events", "WARN")
    say(router, "Worker is not admitted: its KV block size (32) is not that of the fleet (16)",
        "ERROR")
    check_cache_aware(router, workers[0], 3, 16)
    assert "by its KV events" in rank(router, workers[1])["evidence"]


@pytest.mark.parametrize("used", [4, 0], ids=["used", "unused"])
@pytest.mark.parametrize("engine", ENGINES)
def test_no_request_reaches_a_process_of_another_size_in_a_worker_s_place(engine, used, world):
    """Health checks are too rare to see it: what ended and what was refused tells."""
    workers = [start(world, engine, 16), start(world, engine, 16)]
    router = world.serve("--health-check-interval", "1h", "--engine-load-interval", "1h",
                         "--router-mode", "kv", workers=workers)
    follow(router, 2)
    for number in range(used):
        complete(router, ids(number))
    workers[0].kill()
    other = start(world, engine, 32, port=workers[0].port)
    served = [complete(router, ids(number)).worker for number in range(40, 80)]
    assert set(served) == {router.worker_id(workers[1])}
    wait_for_state(router, other, "excluded", "block_size_conflict")
