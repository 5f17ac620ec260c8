"""KV event streams that go wrong: what is missing is asked for again, what cannot be had is given
up and said once."""

import random
import re
import socket
import struct
import threading

import pytest

import wire
from kv_engine import (CLEARED, Known, Publisher, Stable, add, batch, chain, join, prompt_of,
                       removed, stored)
from wire import eventually

REPLAY_TIMEOUT = "1s"


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--kv-events-replay-timeout", REPLAY_TIMEOUT)


@pytest.fixture
def stable(router):
    stable = Stable(router)
    yield stable
    stable.end()


@pytest.fixture
def rank_of(stable):
    """Starts an engine with one rank, which the router follows."""
    return stable.rank


# --- gaps


@pytest.mark.parametrize("form", [3, 4])
def test_a_gap_is_repaired_by_replay(rank_of, form):
    rank = rank_of(form=form, topic="kv@m")
    publisher = rank.publisher
    publisher.publish(chain(1, 2))
    publisher.publish(chain(2, 2))
    rank.catch_up()
    publisher.send(batch(chain(3, 2), removed([2000, 2001])), live=False)
    publisher.send(batch(chain(4, 2)), live=False)
    publisher.publish(chain(5, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3, 4, 5) == [1, 3, 4, 5]
    rank.expect(gaps=1, lost_batches=0, resets=0)
    assert rank.state()["repaired_batches"] >= 2
    assert 2 in publisher.replayer.asked, "it asks for what is missing"
    assert rank.complaints() == []


def test_the_very_first_batch_can_be_missing_too(rank_of):
    rank = rank_of()
    rank.wait_for(lambda state: state.get("replays") == 1, "it asks what there is")
    eventually(lambda: rank.publisher.replayer.asked, "nothing")
    rank.publisher.send(batch(chain(1, 2)), live=False)
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [1, 2]


def test_many_gaps_are_repaired_while_the_stream_goes_on(rank_of):
    rank = rank_of()
    rank.publisher.publish(chain(500, 2))  # from here on it listens: what is missing now is a gap
    rank.catch_up()
    chance = random.Random(5)
    expected = set()
    for number in range(1, 400):
        events = [chain(number, 2)]
        expected.add(number)
        if len(expected) > 40:
            victim = chance.choice(sorted(expected))
            expected.remove(victim)
            events.append(removed([victim * 1000, victim * 1000 + 1]))
        rank.publisher.send(batch(*events), live=number == 399 or chance.random() > 0.2)
    rank.catch_up()
    assert rank.held(*range(1, 400)) == sorted(expected)
    rank.expect(blocks=2 * len(expected) + 2)
    assert rank.state()["gaps"] >= 1
    rank.expect(resets=0)


def test_what_the_replay_no_longer_has_empties_the_rank(rank_of):
    rank = rank_of()
    publisher = rank.publisher
    publisher.publish(chain(1, 2))
    rank.catch_up()
    publisher.send(batch(chain(2, 2), removed([1000])), live=False, keep=False)
    publisher.send(batch(chain(3, 2)), live=False)
    publisher.publish(chain(4, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3, 4) == [3, 4], "what is kept fills it again"
    rank.expect(gaps=1, lost_batches=1, resets=1)
    publisher.publish(stored([3002], prompt_of(3, 3)[8:], parent=3001))
    rank.catch_up()
    assert rank.lookup(prompt_of(3, 4)) == 12, "and the stream goes on"
    assert len(eventually(rank.complaints, "it is said")) == 1


def test_a_replay_that_is_never_answered_empties_the_rank(rank_of):
    rank = rank_of()
    publisher = rank.publisher
    publisher.publish(chain(1, 2))
    rank.catch_up()
    publisher.replayer.mute = True
    publisher.send(batch(chain(2, 2)), live=False)
    publisher.publish(chain(3, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3) == [3]
    rank.expect(lost_batches=1)
    assert rank.state()["replay_failures"] >= 1
    publisher.publish(chain(4, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3, 4) == [3, 4]


def test_a_replay_that_is_never_answered_does_not_keep_a_rank_from_joining(rank_of):
    rank = rank_of(mute=True)
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    assert rank.held(1) == [1]


def test_a_replay_that_nobody_listens_for(router, stable):
    engine = stable.start(replay=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    entry = {**engine.entry(), "kv_events_replay": f"tcp://127.0.0.1:{port}"}
    rank, = join(router, engine, entry)
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    rank.publisher.next += 3
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [2]
    rank.expect(lost_batches=3)


def test_without_a_replay_a_gap_empties_the_rank_and_is_said_once(rank_of):
    rank = rank_of(replay=False)
    publisher = rank.publisher
    for first in (1, 11, 21):
        for number in range(first, first + 5):
            publisher.publish(chain(number, 2))
        rank.catch_up()
        publisher.next += 7
    assert rank.held(*range(1, 30)) == [21, 22, 23, 24, 25]
    rank.expect(gaps=2, lost_batches=14, resets=2)
    said = eventually(rank.complaints, "it is said")
    assert len(said) == 1, "once for all gaps"
    assert re.search("7 event batches were lost|14 event batches", said[0]) and "replay_endpoint" in said[0], said


def test_a_stream_full_of_gaps_does_not_fill_the_log(rank_of):
    rank = rank_of(replay=False)
    for number in range(300):
        rank.publisher.publish(chain(number, 1))
        rank.publisher.next += 1
    rank.publisher.next -= 1
    rank.catch_up()
    rank.expect(gaps=299, lost_batches=299, resets=299, blocks=1)
    assert len(eventually(rank.complaints, "it is said")) == 1


def test_lost_batches_are_said_although_something_else_was_said_before(rank_of):
    rank = rank_of(replay=False)
    rank.publisher.send_frames(b"", b"not a batch")
    rank.publisher.publish(chain(1, 2))
    rank.publisher.next += 5
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    rank.expect(stray_messages=1, lost_batches=5)
    eventually(lambda: any("5 event batches" in line for line in rank.complaints()), "it is said")


def test_a_batch_that_comes_twice_is_applied_once(rank_of):
    rank = rank_of(replay=False)
    payloads = [batch(chain(1, 2)), batch(chain(2, 2)), batch(removed([1001]))]
    for payload in payloads:
        rank.publisher.send(payload)
    rank.catch_up()
    for sequence, payload in enumerate(payloads):
        rank.publisher.send_frames(b"", struct.pack(">Q", sequence), payload)
    rank.publisher.publish(removed([2001]))
    rank.catch_up()
    assert [rank.lookup(prompt_of(p, 3)) for p in (1, 2)] == [4, 4]
    rank.expect(duplicate_batches=3, restarts=0, copies=0)


# --- new processes


@pytest.mark.parametrize("replay", [True, False])
def test_a_sequence_that_goes_backwards_is_a_restart(rank_of, replay):
    rank = rank_of(replay=replay)
    publisher = rank.publisher
    for number in range(1, 6):
        publisher.publish(chain(number, 2))
    rank.catch_up()
    publisher.next = 0
    publisher.kept.clear()
    publisher.publish(chain(7, 2))
    publisher.publish(chain(8, 2))
    rank.catch_up()
    assert rank.held(*range(1, 10)) == [7, 8]
    rank.expect(restarts=1)
    publisher.publish(removed([7000, 7001]))
    rank.catch_up()
    assert rank.held(*range(1, 10)) == [8]


@pytest.mark.parametrize("replay", [True, False])
def test_a_new_process_empties_the_rank_before_it_has_said_anything(rank_of, replay):
    rank = rank_of(replay=replay)
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    rank.engine.replace().wait_for_subscriber()
    rank.wait_for(lambda state: state["blocks"] == 0, "the rank is empty")
    assert rank.held(1) == []
    rank.publisher.publish(chain(2, 2))
    rank.catch_up()
    assert rank.held(1, 2) == [2]


def test_a_new_process_whose_numbers_happen_to_go_on_is_noticed(rank_of):
    rank = rank_of()
    for number in range(1, 6):
        rank.publisher.publish(chain(number, 2))
    rank.catch_up()
    # As far as the old one, with other blocks, while nobody listened.
    rank.engine.replace(kept=[batch(chain(number, 2)) for number in range(11, 16)])
    rank.publisher.wait_for_subscriber()
    rank.publisher.publish(chain(16, 2))
    rank.wait_for(lambda s: s["last_sequence"] == 5 and s["restarts"] >= 1, "a restart is seen")
    assert rank.held(*range(1, 20)) == list(range(11, 17))


def test_a_new_process_that_is_ahead_of_the_old_one_is_noticed(rank_of):
    rank = rank_of()
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    rank.engine.replace(kept=[batch(chain(number, 2)) for number in range(11, 21)])
    rank.catch_up()
    assert rank.held(*range(1, 30)) == list(range(11, 21))
    assert rank.state()["restarts"] >= 1


def test_a_batch_that_nobody_stands_by_does_not_make_the_router_ask_forever(rank_of):
    rank = rank_of()
    for number in range(1, 6):
        rank.publisher.publish(chain(number, 2))
    rank.catch_up()
    rank.publisher.send_frames(b"", struct.pack(">Q", 2), batch(chain(9, 2)))
    rank.publisher.publish(chain(6, 2))
    rank.catch_up()
    assert rank.held(*range(1, 10)) == [1, 2, 3, 4, 5, 6]
    assert len(rank.publisher.replayer.asked) < 10


class Cable(threading.Thread):
    """A TCP connection between router and publisher that can be cut."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target = target
        self.ends = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self.ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    @staticmethod
    def carry(one, other):
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.ends = []

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()


def test_a_lost_connection_to_the_same_process_loses_nothing(router, stable):
    engine = stable.start()
    cable = Cable(engine.publisher.port)
    try:
        entry = {**engine.entry(), "kv_events": f"tcp://127.0.0.1:{cable.port}"}
        rank, = join(router, engine, entry)
        rank.publisher.publish(chain(1, 2))
        rank.catch_up()
        cable.cut()
        rank.publisher.wait_for_departure()
        rank.publisher.publish(chain(2, 2), removed([1001]))  # while nobody listens
        rank.publisher.wait_for_subscriber()
        rank.publisher.publish(chain(3, 2))
        rank.catch_up()
        assert [rank.lookup(prompt_of(p, 3)) for p in (1, 2, 3)] == [4, 8, 8]
        rank.expect(reconnects=1, restarts=0, lost_batches=0)
    finally:
        cable.close()


def test_a_worker_that_leaves_takes_its_blocks_along_and_may_come_back(router, rank_of):
    stays, leaves = rank_of(), rank_of()
    for rank in (stays, leaves):
        rank.publisher.publish(chain(1, 2))
        rank.catch_up()
    blocks = router.get("/debug/index").json()["blocks"]
    assert wire.ask(router.port, "DELETE", f"/workers/{leaves.worker}").status == 204
    eventually(lambda: not leaves.state(), "its rank is gone")
    assert wire.ask(router.port, "POST", "/debug/lookup", {"tokens": prompt_of(1, 3)}).status == 200
    assert stays.held(1) == [1]
    assert router.get("/debug/index").json()["blocks"] <= blocks
    leaves.publisher.wait_for_departure()
    leaves.publisher.publish(chain(2, 2))  # nobody listens
    back, = join(router, leaves.engine)
    assert back.worker == leaves.worker
    back.catch_up()
    assert back.held(1, 2) == [1, 2]
    assert stays.held(1, 2) == [1]


def test_an_engine_that_is_there_later_than_the_router(router, stable):
    engine = stable.start()
    port = engine.publisher.port
    engine.publisher.close()
    add(router, engine, engine.entry())
    rank = Known(router, engine)
    eventually(lambda: (rank.worker, 0) in {(r["worker"], r["rank"]) for r in
                                            router.get("/debug/index").json()["ranks"]},
               "the rank is listed")
    assert rank.lookup(prompt_of(1, 3)) == 0
    engine.ranks[0] = Publisher(port=port, replay_port=engine.publisher.replayer.port)
    rank.publisher.wait_for_subscriber()
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    assert rank.held(1) == [1]


# --- what engines may say


def test_several_clears_in_one_batch_are_applied_in_order(rank_of):
    rank = rank_of()
    rank.publisher.publish(chain(1, 2))
    rank.publisher.publish(CLEARED, chain(2, 2), CLEARED, CLEARED, chain(3, 2), chain(1, 1))
    rank.catch_up()
    assert rank.held(1, 2, 3) == [1, 3]
    assert rank.lookup(prompt_of(1, 3)) == 4
    rank.expect(blocks=3, clears=3)


def test_blocks_stored_twice_are_removed_twice(rank_of):
    rank = rank_of()
    rank.publisher.publish(chain(1, 2), chain(1, 2), stored([1001], prompt_of(1, 2)[4:],
                                                            parent=1000))
    rank.publisher.publish(removed([1001]))
    rank.catch_up()
    for left in (8, 4):  # of three copies one is left, then none
        rank.publisher.publish(removed([1001]))
        rank.catch_up()
        assert rank.lookup(prompt_of(1, 3)) == left
    rank.expect(unknown_removed=0, copies=3)


def test_the_removal_of_what_is_not_known_is_counted_and_does_nothing(rank_of):
    rank = rank_of()
    rank.publisher.publish(removed([1, 2, 3]))
    rank.publisher.publish(chain(1, 2), removed([98, 99]))
    rank.publisher.publish(removed([1001, 1001]))
    rank.catch_up()
    assert rank.lookup(prompt_of(1, 3)) == 4
    rank.expect(unknown_removed=6, blocks=1)


def test_blocks_without_a_known_parent_wait_for_it(rank_of):
    rank = rank_of()
    prompt = prompt_of(1, 6)
    rank.publisher.publish(stored([1004, 1005], prompt[16:], parent=1003))
    rank.publisher.publish(stored([1002, 1003], prompt[8:16], parent=1001))
    rank.catch_up()
    assert rank.lookup(prompt + [0]) == 0, "nothing hangs in the air"
    assert rank.lookup(prompt[8:] + [0]) == 0, "and nothing is taken for a beginning"
    rank.expect(orphans=4, blocks=0)
    rank.publisher.publish(removed([1005]))
    rank.publisher.publish(stored([1000, 1001], prompt[:8]))
    rank.catch_up()
    assert rank.lookup(prompt + [0]) == 20
    rank.expect(orphans=0, adopted_blocks=4, blocks=5)


def test_a_hole_in_the_middle_hides_what_follows_until_it_is_filled(rank_of):
    rank = rank_of()
    prompt = prompt_of(1, 5)
    rank.publisher.publish(chain(1, 5))
    rank.publisher.publish(removed([1002]))
    rank.catch_up()
    assert rank.lookup(prompt + [0]) == 8
    rank.publisher.publish(stored([1005], [7, 7, 7, 7], parent=1004))
    rank.catch_up()
    assert rank.lookup(prompt + [7, 7, 7, 7, 0]) == 8
    rank.publisher.publish(stored([1002], prompt[8:12], parent=1001))
    rank.catch_up()
    assert rank.lookup(prompt + [7, 7, 7, 7, 0]) == 24
    rank.expect(blocks=6)


def test_two_ranks_have_two_caches_and_two_sequences(router, stable):
    engine = stable.start(ranks=2, replay=False, topic="dp")
    first, second = join(router, engine)
    first.publisher.publish(chain(1, 2))
    second.publisher.publish(chain(2, 2), rank=1)
    second.publisher.publish(chain(3, 2), rank=1)
    first.catch_up()
    second.catch_up()
    assert (first.held(1, 2, 3), second.held(1, 2, 3)) == ([1], [2, 3])
    second.publisher.next += 1
    second.publisher.publish(chain(4, 2), rank=1)
    second.catch_up()
    assert (first.held(1, 2, 3, 4), second.held(1, 2, 3, 4)) == ([1], [4])
