"""Workers that come when the fleet has agreed: one that differs is not admitted, and the others do
not notice."""

import pytest

import wire
from block_sizes import (ENGINES, SETTINGS, SOON, check_cache_aware, complaints, gauge_is,
                         mismatches, page, rank, records, restart, said, say, size, start,
                         wait_for_state, wait_for_trust)
from choices import complete, depth, follow, ids
from kv_engine import add
from wire import eventually


@pytest.fixture
def fleet(world):
    """Two workers with blocks of 16, and the router that knows one cache."""
    workers = [start(world, "vllm", 16), start(world, "sglang", 16)]
    router = world.serve(*SOON, workers=workers)
    follow(router, 2)
    check_cache_aware(router, workers[0], 1, 16)
    return router, workers


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joiner_that_agrees_is_admitted(engine, fleet, world):
    router, _ = fleet
    joiner = start(world, engine, 16)
    add(router, joiner)
    wait_for_state(router, joiner, "ready")
    follow(router, 3)
    check_cache_aware(router, joiner, 5, 16)
    assert len(said(router, "Auto-configured")) == 1
    assert not complaints(router)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joiner_that_differs_is_not_admitted(engine, fleet, world):
    router, workers = fleet
    joiner = start(world, engine, 32)
    add(router, joiner)
    record = say(router, "Worker is not admitted: its KV block size (32) is not that of the fleet "
                         "(16)", "ERROR")
    fix = (f"configure {SETTINGS[engine].format(16)} on this worker, or start the router with "
           "--block-size-conflict=mixed")
    assert f"url={joiner.url} model=mock-model " in record and fix in record
    wait_for_state(router, joiner, "excluded", "block_size_conflict")
    shown = rank(router, joiner)
    assert (shown["trust"], shown["cause"]) == ("excluded", "block_size_conflict")
    assert shown["evidence"] == "blocks of 32 tokens by its own report, 16 in the rest of the fleet"
    assert shown["fix"] == fix
    assert size(router, joiner) == (32, "report")
    assert gauge_is(router, joiner, 32, "report")
    assert mismatches(router, joiner, 16, 32) >= 1
    check_fleet(router, workers)
    assert joiner.stats()["requests"] == 0
    assert len(records(router, "ERROR")) == 1


def check_fleet(router, workers):
    """It serves on, and knows what it knew."""
    health = router.health()
    assert (health["status"], health["workers_ready"]) == ("degraded", len(workers))
    assert router.get("/ready").status == 200
    for number in range(20, 30):
        assert complete(router, ids(number)).worker in [router.worker_id(w) for w in workers]
    held = ids(1, 256)
    assert depth(router, workers[0], held + [1]) == len(held)
    for number, worker in enumerate(workers, 2):
        check_cache_aware(router, worker, number, 16)
    for worker in workers:
        assert mismatches(router, worker, 0, 0) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_joiner_whose_events_differ_is_taken_out(engine, fleet, world):
    router, workers = fleet
    joiner = start(world, engine, 32, block_size_report="none")
    add(router, joiner)
    wait_for_state(router, joiner, "ready")
    follow(router, 3)
    complete(joiner, ids(5, 64))
    say(router, "Worker is not admitted: its KV block size (32) is not that of the fleet (16)",
        "ERROR")
    wait_for_state(router, joiner, "excluded", "block_size_conflict")
    assert "by its KV events" in rank(router, joiner)["evidence"]
    assert size(router, joiner) == (32, "events")
    check_fleet(router, workers)
    complete(joiner, ids(6, 64))  # nobody listens any more, or what is heard changes nothing
    assert len(records(router, "ERROR")) == 1
    assert router.get("/debug/index").json()["shapes"][0]["block_size"] == 16


def test_a_joiner_that_is_asked_to_leave_can_come_back_with_the_right_size(fleet, world):
    router, _ = fleet
    joiner = start(world, "trtllm", 32)
    add(router, joiner)
    wait_for_state(router, joiner, "excluded", "block_size_conflict")
    assert wire.ask(router.port, "DELETE", f"/workers/{router.worker_id(joiner)}").status == 204
    eventually(lambda: router.health()["status"] == "ok", "nobody is excluded")
    assert not router.metric("kv_router_block_size_mismatch_total"), "who left is not counted"
    joiner = restart(world, joiner, "trtllm", 16)
    add(router, joiner)
    wait_for_state(router, joiner, "ready")
    follow(router, 3)
    check_cache_aware(router, joiner, 5, 16)


def test_a_joiner_that_is_started_again_with_the_right_size_is_admitted(fleet, world):
    router, _ = fleet
    joiner = start(world, "vllm", 32)
    add(router, joiner)
    wait_for_state(router, joiner, "excluded", "block_size_conflict")
    joiner = restart(world, joiner, "vllm", 16)
    wait_for_state(router, joiner, "ready")
    eventually(lambda: rank(router, joiner)["events"], "its events are followed")
    check_cache_aware(router, joiner, 5, 16)
    shown = rank(router, joiner)
    assert (shown["cause"], shown["evidence"], shown["fix"]) == (None, None, None)
    assert router.health()["status"] == "ok"


def test_a_fleet_whose_only_worker_left_takes_any_size(world):
    first = start(world, "vllm", 16)
    router = world.serve(*SOON, workers=[first])
    follow(router, 1)
    check_cache_aware(router, first, 1, 16)
    assert wire.ask(router.port, "DELETE", f"/workers/{router.worker_id(first)}").status == 204
    second = start(world, "trtllm", 32)
    add(router, second)
    wait_for_state(router, second, "ready")
    say(router, "Auto-configured KV block size to 32 (from worker reports)", "INFO")
    follow(router, 1)
    check_cache_aware(router, second, 2, 32)
    assert not complaints(router)


def test_a_joiner_that_serves_another_model_may_have_any_size(world):
    worker = start(world, "vllm", 16)
    router = world.serve(workers=[worker])
    other = start(world, "vllm", 32, model="other")
    add(router, other)
    wait_for_state(router, other, "ready")
    assert complete(router, ids(1), model="other").worker == router.worker_id(other)
    assert not complaints(router)


def test_with_a_size_set_a_joiner_that_differs_is_routed_to_by_load(world):
    worker = start(world, "vllm", 16)
    router = world.serve("--kv-cache-block-size", 16, workers=[worker])
    joiner = start(world, "vllm", 32)
    add(router, joiner)
    wait_for_state(router, joiner, "ready")
    say(router, "Worker reports KV block size 32, but 16 is configured.", "WARN")
    follow(router, 2)
    complete(joiner, ids(5, 64))
    wait_for_trust(router, joiner, "doubted")
    check_cache_aware(router, worker, 1, 16)
    assert page(router, joiner)["state"] == "ready"


def test_a_joiner_with_a_size_of_its_own_is_a_cohort_in_a_mixed_fleet(world):
    worker = start(world, "vllm", 16)
    router = world.serve(*SOON, "--block-size-conflict", "mixed", workers=[worker])
    say(router, "Workers with KV block size 16 form a separate cohort", "INFO")
    joiner = start(world, "trtllm", 32)
    add(router, joiner)
    wait_for_state(router, joiner, "ready")
    say(router, "Workers with KV block size 32 form a separate cohort", "INFO")
    follow(router, 2)
    check_cache_aware(router, worker, 1, 16)
    check_cache_aware(router, joiner, 2, 32)
    assert not complaints(router)


def test_who_was_refused_is_admitted_when_nobody_who_differs_is_left(world):
    worker = start(world, "vllm", 16)
    router = world.serve(workers=[worker])
    joiner = start(world, "vllm", 32)
    add(router, joiner)
    wait_for_state(router, joiner, "excluded", "block_size_conflict")
    number = router.worker_id(worker)
    assert wire.ask(router.port, "DELETE", f"/workers/{number}").status == 204
    wait_for_state(router, joiner, "ready")
    assert complete(router, ids(1)).worker == router.worker_id(joiner)
    say(router, "Worker is admitted: its KV block size now matches the fleet",
        "INFO")
    add(router, worker)
    wait_for_state(router, worker, "excluded", "block_size_conflict")
    assert page(router, joiner)["state"] == "ready"
