"""Requests that come before the workers have said how large their blocks are: they wait, not for
ever, and never for something that only they can bring about."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from block_sizes import (ENGINES, SOON, check_cache_aware, complaints, not_ready, page, rank,
                         records, said, say, size, start, wait_for_state)
from choices import Asked, complete, follow, ids
from kv_engine import add
from wire import eventually, free_port


def index_of(router, text):
    """Where in the log it is said first."""
    return next(i for i, record in enumerate(records(router)) if text in record)


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_wait_for_the_report_and_are_served(engine, world):
    worker = start(world, engine, 32, report_delay="1s")
    router = world.serve(*SOON, workers=[worker], ready=0)
    waiting = [Asked(router, ids(number)) for number in range(1, 6)]
    assert not_ready(router)["status"] == "starting"
    assert "1 of 1 workers have not reported" in not_ready(router)["reason"]
    assert rank(router, worker)["trust"] == "probing"
    for asked in waiting:
        assert asked.answer().worker == router.worker_id(worker)
    agreed = index_of(router, "Auto-configured KV block size to 32 (from worker reports)")
    assert agreed < index_of(router, "Selected worker")
    eventually(lambda: router.get("/ready").status == 200, "it is ready")
    assert not complaints(router)


def test_a_request_for_a_model_of_a_late_worker_waits_too(world):
    quick = start(world, "vllm", 16)
    late = start(world, "vllm", 32, model="other", report_delay="1s")
    router = world.serve(workers=[quick, late], ready=0)
    answer = complete(router, ids(1), model="other")
    assert answer.worker == router.worker_id(late)


@pytest.mark.parametrize("engine", ENGINES)
def test_after_the_wait_requests_are_served_without_a_report(engine, world):
    worker = start(world, engine, 32, report_delay="1h")
    router = world.serve(*SOON, "--block-size-wait", "300ms", workers=[worker], ready=0)
    complete(router, ids(1))
    say(router, "Worker does not report its KV block size", "INFO")
    assert size(router, worker) == (None, None)
    assert page(router, worker)["state"] == "ready"
    assert router.get("/ready").status == 200


@pytest.mark.parametrize("wait", ["300ms", "1h"])
def test_one_slow_report_does_not_keep_the_others_waiting(wait, world):
    """Not longer than a second from the first report, whatever the limit is."""
    slow, quick = start(world, "vllm", 16, report_delay="1h"), start(world, "vllm", 16)
    router = world.serve("--block-size-wait", wait, workers=[slow, quick], ready=1)
    say(router, "Auto-configured KV block size to 16 (from worker reports)", "INFO")
    eventually(lambda: rank(router, quick)["events"], "its events are followed")
    check_cache_aware(router, quick, 1, 16)


def test_a_report_that_comes_after_the_wait_is_judged_as_that_of_a_late_joiner(world):
    slow, quick = start(world, "vllm", 32, report_delay="1s"), start(world, "vllm", 16)
    router = world.serve("--block-size-wait", "300ms", "--engine-load-interval", "100ms",
                         workers=[slow, quick], ready=0)
    say(router, "Worker is not admitted: its KV block size (32) is not that of the fleet (16)",
        "ERROR")
    wait_for_state(router, slow, "excluded", "block_size_conflict")
    assert page(router, quick)["state"] == "ready"


# --- who only tells by events


@pytest.mark.parametrize("options", [{"engine": "vllm"}, {"engine": "sglang"}, {"engine": "trtllm"},
                                     {"engine": "trtllm", "iter_stats": "off"}], ids=str)
def test_workers_that_tell_only_by_events_are_served_at_once(options, world):
    workers = [start(world, size=32, block_size_report="none", **options) for _ in range(2)]
    # No test is that patient: nothing may wait for an event, which only a request brings about.
    router = world.serve(*SOON, "--block-size-wait", "1h", workers=workers, ready=0)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: complete(router, ids(number, 64)), range(1, 9)))
    assert {answer.worker for answer in answers} <= {router.worker_id(w) for w in workers}
    say(router, "Auto-configured KV block size to 32 (from KV events)", "INFO")
    assert len(said(router, "does not report its KV block size", "INFO")) == 2
    follow(router, 2)
    for number, worker in enumerate(workers, 11):
        check_cache_aware(router, worker, number, 32)
    assert not complaints(router)


# --- who does not answer at all


def test_a_worker_that_is_not_there_is_not_waited_for(world):
    absent = f"http://127.0.0.1:{free_port()}"
    worker = start(world, "trtllm", 32)
    router = world.serve(*SOON, "--block-size-wait", "1h", workers=[absent, worker], ready=1)
    complete(router, ids(1))
    say(router, "Auto-configured KV block size to 32 (from worker reports)", "INFO")


def test_a_worker_that_never_answers_is_waited_for_only_so_long(world):
    with socket.create_server(("127.0.0.1", 0), backlog=128) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        worker = start(world, "trtllm", 32)
        router = world.serve(*SOON, "--block-size-wait", "500ms", "--health-check-timeout", "1h",
                             workers=[url, worker], ready=0)
        complete(router, ids(1))
        assert router.get("/ready").status == 200
        say(router, "Auto-configured KV block size to 32 (from worker reports)", "INFO")


def test_a_worker_that_was_not_there_is_a_late_joiner_when_it_comes(world):
    port = free_port()
    worker = start(world, "vllm", 16)
    router = world.serve(workers=[f"http://127.0.0.1:{port}", worker], ready=1)
    late = start(world, "vllm", 32, port=port)
    wait_for_state(router, late, "excluded", "block_size_conflict")
    assert len(said(router, "Worker is not admitted", "ERROR")) == 1
    assert router.popen.poll() is None


def test_without_workers_there_is_nothing_to_wait_for(world):
    router = world.serve("--block-size-wait", "1h")
    eventually(lambda: not_ready(router)["status"] == "no worker is ready", "the start is over")
    assert "there are no workers" in not_ready(router)["reason"]
    worker = start(world, "trtllm", 32)
    add(router, worker)
    eventually(lambda: router.get("/ready").status == 200, "it is ready")
    say(router, "Auto-configured KV block size to 32 (from worker reports)", "INFO")


# --- who does not wait


def test_clients_may_leave_while_they_wait(world):
    worker = start(world, "vllm", 16, report_delay="1h")
    router = world.serve("--block-size-wait", "1h", workers=[worker], ready=0)
    waiting = [Asked(router, ids(number)) for number in range(1, 4)]
    eventually(lambda: router.metric("fathom_requests_in_flight") == 3, "they wait")
    for asked in waiting:
        asked.leave()
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "nobody waits any more")
    assert worker.stats()["requests"] == 0


def test_the_pages_do_not_wait(world):
    worker = start(world, "vllm", 16, report_delay="1h")
    router = world.serve("--block-size-wait", "1h", workers=[worker], ready=0)
    assert router.get("/live").status == 200
    assert router.get("/health").status == 503 and router.health()["status"] == "down"
    assert router.get("/metrics").status == 200
    assert rank(router, worker)["trust"] == "probing"


def test_a_router_that_waits_can_be_ended(world):
    worker = start(world, "vllm", 16, report_delay="1h")
    router = world.serve("--block-size-wait", "1h", workers=[worker], ready=0)
    waiting = Asked(router, ids(1))
    eventually(lambda: router.metric("fathom_requests_in_flight") == 1, "it waits")
    router.signal(15)
    eventually(lambda: not_ready(router)["status"] == "draining", "it wants to end")
    router.signal(15)  # at once
    assert router.wait() == 0
    waiting.leave()
