"""What docs/compatibility.md says of engines that are newer than Fathom: fields that it does not know are read past;
an event that it cannot use is left out, with a line in the log and a count; and the events around it count."""

import pytest

from kv_engine import CLEARED, Known, PolledEngine, Stable, add, batch, chain, positional, prompt_of
from wire import eventually

SKIPPED = "A malformed KV event was skipped"


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--kv-events-poll-interval", "20ms")


@pytest.fixture
def stable(router):
    stable = Stable(router)
    yield stable
    stable.end()


def counted(rank, reason):
    found = [value for (name, labels), value in rank.router.metrics().items()
             if name == "kv_router_dropped_events_total" and dict(labels)["worker"] == str(rank.worker)
             and dict(labels)["reason"] == reason]
    return sum(found)


@pytest.mark.parametrize("later", [
    {**chain(1, 2), "added_later": {"a": [1, None]}, "locality": "REMOTE"},
    [*positional(chain(1, 2), 12), "added later", {"x": [1, 2]}],
], ids=["map", "array"])
def test_fields_that_are_not_known_are_read_past(stable, later):
    rank = stable.rank()
    rank.publisher.publish(later)
    rank.catch_up()
    rank.expect(blocks=2, malformed_events=0, ignored_events=0)
    assert rank.lookup(prompt_of(1, 3)) == 8
    assert rank.complaints() == []


@pytest.mark.parametrize("event, problem", [
    ({"type": "BlockMoved", "block_hashes": [1]}, "the type 'BlockMoved' is not known"),
    (["BlockMoved", [1]], "the type 'BlockMoved' is not known"),
    ({key: value for key, value in chain(9, 2).items() if key != "token_ids"}, "BlockStored: has no token_ids"),
    ({"type": "BlockRemoved", "hashes": [1]}, "BlockRemoved: has no block_hashes"),
    ({**chain(9, 2), "block_hashes": [{"algorithm": "x"}, 2]}, "BlockStored: block_hashes: not a hash"),
], ids=["unknown type", "unknown type in an array", "missing field", "renamed field", "hash of a new form"])
def test_an_event_that_cannot_be_used_is_reported_and_those_around_it_count(stable, event, problem):
    rank = stable.rank()
    rank.publisher.publish(chain(1, 2), event, chain(2, 2))
    rank.catch_up()
    rank.expect(blocks=4, malformed_events=1, ignored_events=0)
    assert rank.held(1, 2) == [1, 2]
    lines = eventually(rank.complaints, "it is reported")
    assert len(lines) == 1 and SKIPPED in lines[0] and problem in lines[0] and "fix=" in lines[0], lines
    assert counted(rank, "malformed") == 1


def test_a_batch_with_more_elements_is_read(stable):
    rank = stable.rank()
    envelope = batch(CLEARED, chain(1, 2))
    assert envelope[0] == 0x93  # an array of three
    rank.publisher.send(bytes([0x95]) + envelope[1:] + b"\xa1x\x01")
    rank.catch_up()
    assert rank.held(1) == [1]
    assert rank.complaints() == []


def test_a_polled_event_of_an_unknown_type_is_reported(stable, router):
    engine = stable.start(PolledEngine)
    engine.ranks = [engine]
    engine.add({"type": "created", "num_blocks_per_cache_level": [8, 0]}, {"type": "defragmented"})
    add(router, engine)
    rank = Known(router, engine)
    rank.catch_up()
    lines = eventually(lambda: [line for line in rank.complaints() if SKIPPED in line], "it is reported")
    assert "event 1: the type 'defragmented' is not known" in lines[0]
    assert counted(rank, "malformed") == 1
