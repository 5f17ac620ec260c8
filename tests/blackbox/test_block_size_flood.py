"""A hundred thousand events whose blocks have the wrong size cost a few lines and no memory."""

import pytest

from block_sizes import complaints, dropped, mismatch_words, mismatches, rank, records, start
from choices import complete, follow, ids
from kv_engine import KvEngine, Known, add, batch, removed, stored
from kv_engine import follow as listened_to
from wire import eventually

MB = 1 << 20
TOKENS = 32


def bundle(first, events):
    """Stores of one block each, in chains as long as the bundle, with something removed between."""
    said = []
    for number in range(first, first + events):
        said.append(stored([number], [number] * TOKENS, parent=number - 1, block_size=TOKENS))
        if number % 10 == 0:
            said.append(removed([number - 5]))
    return batch(*said)


@pytest.fixture
def flooded(world):
    """An engine that tells of larger blocks than the router was told to expect."""
    engine = KvEngine(tells="vllm", replay=False)
    router = world.serve("--kv-cache-block-size", 16)
    add(router, engine)
    yield router, engine, listened_to(router, engine)[0]
    engine.stop()


def flood(known, first, last, events):
    """Not faster than it is read: what waits in sockets is not what this is about."""
    for number in range(first, last, events):
        known.publisher.send(bundle(number, events), keep=False)
        if number % 2000 == 0:
            known.catch_up()
    known.catch_up()


def check(router, engine, count):
    eventually(lambda: mismatches(router, engine, 16, TOKENS) == count, "all are counted")
    assert dropped(router, engine) == count
    assert f"; {count} stored events skipped" in rank(router, engine)["evidence"]
    index = router.get("/debug/index").json()
    assert (index["held"], index["blocks"], index["orphans"], index["bytes"]) == (0, 0, 0, 0)
    error, = records(router, "ERROR")
    words = mismatch_words("vllm", TOKENS, 16).split("\n")
    assert all(line in error for line in (words[0], words[2]))
    assert len(complaints(router)) <= 3
    assert len(records(router)) < 20


def test_events_of_the_wrong_size_are_counted_and_not_logged(flooded):
    router, engine, known = flooded
    flood(known, 0, 5000, 50)
    check(router, engine, 5000)


@pytest.mark.slow
@pytest.mark.parametrize("events", [10, 1000])
def test_a_hundred_thousand_of_them_need_no_memory(flooded, events):
    router, engine, known = flooded
    flood(known, 0, 20_000, events)
    before = router.memory()
    flood(known, 20_000, 100_000, events)
    check(router, engine, 100_000)
    grown = router.memory() - before
    print(f"{grown} bytes more after 80,000 events")
    assert grown < 8 * MB


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_evictions_of_what_was_left_out_are_not_worth_a_line(engine, world):
    """A cache that is too small for all prompts removes blocks all the time."""
    worker = start(world, engine, 32, num_blocks=130)
    router = world.serve("--kv-events-poll-interval", "20ms", "--kv-cache-block-size", 16,
                         workers=[worker])
    follow(router, 1)
    before = len(records(router))
    for number in range(1, 101):
        complete(worker, ids(number, 64))
    known = Known(router, worker)
    eventually(lambda: mismatches(router, worker, 16, 32) >= 100, "all are counted")
    assert known.state()["blocks"] == 0
    assert len(records(router, "ERROR")) == 1
    assert len(records(router)) - before <= 4, router.log_text()
