"""What no publisher should send. Nothing of it harms the router, or what is known of others."""

import os
import random
import struct

import pytest

import wire
from kv_engine import CLEARED, Stable, batch, chain, prompt_of, removed, stored
from wire import eventually


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve()


@pytest.fixture
def stable(router):
    stable = Stable(router)
    yield stable
    stable.end()


@pytest.fixture
def rank_of(stable):
    """Starts an engine with one rank, which the router follows."""
    return stable.rank


GARBAGE = {
    "no bytes": b"",
    "no msgpack": b"\xc1" * 40,
    "cut short": batch(chain(1, 2))[:-20],
    "not an array": b"\x81\xa1a\x01",
    "a number": b"\x07",
    "no events": b"\x92\xcb" + bytes(8) + b"\xc0",
    "too deep": b"\x91" * 100_000,
    "a list of four thousand millions": b"\x93\xcb" + bytes(8) + b"\xdd\xff\xff\xff\xff",
    "more to follow": batch(chain(1, 2)) + b"\x01",
}


@pytest.mark.parametrize("what", GARBAGE)
def test_a_batch_that_cannot_be_read_is_counted(rank_of, what):
    rank, other = rank_of(replay=False), rank_of(replay=False)
    for one in (rank, other):
        one.publisher.publish(chain(1, 2))
        one.catch_up()
    before = len(rank.router.log_text().splitlines())
    for _ in range(50):
        rank.publisher.send(GARBAGE[what])
    rank.publisher.publish(CLEARED, chain(2, 2))
    state = rank.catch_up()
    assert rank.held(1, 2) == [2]
    assert state["malformed_batches"] + state["malformed_events"] >= 50, state
    assert len(rank.router.log_text().splitlines()) - before < 20
    assert other.held(1, 2) == [1]
    assert other.state()["malformed_batches"] == 0


def bad(**fields):
    return batch({**chain(1, 2), **fields}, chain(2, 2))


BAD_EVENTS = {
    "hashes that are no list": bad(block_hashes=5),
    "a hash that is a text": bad(block_hashes=["x", "y"]),
    "a hash of seven bytes": bad(block_hashes=[b"1234567", b"1234567"]),
    "tokens that are texts and lists": bad(token_ids=[["a"], {}]),
    "negative tokens": bad(token_ids=[-1] * 8),
    "a block size of nothing": bad(block_size=None),
    "a negative block size": bad(block_size=-4),
    "a huge block size": bad(block_size=1 << 40),
    "more hashes than blocks": bad(token_ids=[1, 2, 3, 4]),
    "a tag that is a number": batch([7, 7], {"type": 7}, chain(2, 2)),
    "no tag": batch([], {}, chain(2, 2)),
    "a store with nothing in it": batch(["BlockStored"], {"type": "BlockStored"}, chain(2, 2)),
    "an event that is a number": batch(5, "x", None, chain(2, 2)),
}


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_an_event_that_makes_no_sense_does_not_spoil_the_others(rank_of, what):
    rank = rank_of(replay=False)
    rank.publisher.send(BAD_EVENTS[what])
    state = rank.catch_up()
    assert rank.held(1, 2) == [2]
    assert state["malformed_events"] + state["ignored_events"] >= 1, state


def test_messages_of_the_wrong_form_are_strays(rank_of):
    rank = rank_of(replay=False)
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    payload, sequence = batch(CLEARED), struct.pack(">Q", 1)
    strays = [[b""], [b"", b""], [b"", sequence], [b"", payload], [b"", b"\0" * 7, payload],
              [b"", b"\0" * 9, payload], [b"", b"", payload], [b"", sequence, payload, b"more"],
              [b""] * 40]
    for frames in strays:
        rank.publisher.send_frames(*frames)
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [1, 2]
    rank.expect(stray_messages=len(strays), gaps=0)


def test_other_topics_are_not_for_us(rank_of):
    rank = rank_of(topic="kv@m", replay=False)
    rank.publisher.publish(chain(1, 2))
    rank.publisher.send_frames(b"kv@", struct.pack(">Q", 1), batch(CLEARED))
    rank.publisher.send_frames(b"other", struct.pack(">Q", 1), batch(CLEARED))
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [1, 2]
    rank.expect(gaps=0)


def test_ten_thousand_messages_of_garbage(rank_of):
    rank, other = rank_of(), rank_of()
    for one in (rank, other):
        one.publisher.publish(chain(1, 2))
        one.catch_up()
    before = len(rank.router.log_text().splitlines())
    chance = random.Random(11)
    sound = batch(*[chain(number, 3) for number in range(50, 60)])
    for number in range(10_000):
        payload = chance.randbytes(chance.randrange(200))
        if number % 2:
            payload = damaged(sound, chance)
        if number % 3:
            rank.publisher.send(payload)
        else:
            rank.publisher.send_frames(*[payload] * (1 + number % 5))
    # A message with a sound form and a wild number is believed, until sound ones follow.
    # It may also cause a replay, and with it a moment in which the rank holds nothing.
    eventually(lambda: rank.publisher.publish(CLEARED, chain(2, 2)) or
               rank.state().get("last_sequence") == rank.publisher.last and rank.held(1, 2) == [2],
               "it follows again")
    state = rank.expect(blocks=2)
    assert state["malformed_batches"] > 1000 and state["stray_messages"] > 1000, state
    assert other.held(1, 2) == [1]
    other.expect(batches=1, malformed_batches=0, stray_messages=0)
    assert len(rank.router.log_text().splitlines()) - before < 100, "the log does not stream"


def damaged(payload, chance):
    payload = bytearray(payload)
    for _ in range(8):
        payload[chance.randrange(len(payload))] = chance.randrange(256)
    return bytes(payload)


def test_huge_messages(rank_of):
    rank, other = rank_of(replay=False), rank_of(replay=False)
    other.publisher.publish(chain(1, 2))
    rank.publisher.send(os.urandom(32 << 20))
    rank.publisher.send(b"\xdd\xff\xff\xff\xff" + bytes(32 << 20))
    blocks = 50_000
    long = list(range(4 * blocks))
    rank.publisher.publish(CLEARED, stored(list(range(blocks)), long))
    rank.catch_up()
    assert rank.lookup(long + [1]) == 4 * blocks
    other.catch_up()
    assert other.held(1) == [1]


def test_a_message_beyond_all_measure_costs_the_connection_and_nothing_else(rank_of):
    rank, other = rank_of(), rank_of()
    for one in (rank, other):
        one.publisher.publish(chain(1, 2))
        one.catch_up()
    rank.publisher.send_frames(b"", bytes(8), bytes(80 << 20))
    rank.publisher.wait_for_departure()
    rank.publisher.wait_for_subscriber()
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert (rank.held(1, 2), other.held(1, 2)) == ([1, 2], [1])


def test_a_flood_is_not_dropped(rank_of):
    rank = rank_of(replay=False)
    for number in range(30_000):
        rank.publisher.publish(chain(number, 1))
        if number >= 1000:
            rank.publisher.publish(removed([(number - 1000) * 1000]))
    rank.catch_up()
    rank.expect(blocks=1000, gaps=0, lost_batches=0, batches=59_000)


def test_replayed_garbage_is_survived(rank_of):
    rank = rank_of()
    publisher = rank.publisher
    publisher.publish(chain(1, 2))
    rank.catch_up()
    for payload in (b"\xc1" * 9, b"", os.urandom(500)):
        publisher.send(payload, live=False)
    publisher.publish(CLEARED, chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [2]


# --- questions that make no sense


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"tokens": 5}', '{"tokens": ["a"]}',
                                  '{"tokens": [-1]}', '{"tokens": [4294967296]}',
                                  '{"tokens": [1.5]}', '{"tokens": [1], "lora": 5}',
                                  '{"tokens": [1], "salt": []}'])
def test_a_wrong_question_is_refused(router, body):
    answer = wire.ask(router.port, "POST", "/debug/lookup", body)
    assert answer.status == 400, answer.text()
    assert answer.error["message"]


def test_a_question_about_no_tokens_finds_nothing(router, rank_of):
    rank = rank_of(replay=False)
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    assert rank.lookup([]) == 0
    assert rank.lookup(prompt_of(1, 1)) == 0, "the last token is always computed"
