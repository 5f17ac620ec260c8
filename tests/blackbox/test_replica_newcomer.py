"""A router that joins a group knows at once what the others know, though the engines can no longer tell it; and
believes none of it that the engines contradict."""

import json
import time

import pytest

from choices import QUICK, cached, complete, depth, found, follow, ids
from kv_engine import Known, KvEngine, batch, chain
from proxy import Proxy
from replica_mesh import Mesh
from wire import eventually

PROMPTS = range(60)


def snapshots(router, what):
    return router.metric("fathom_replica_snapshots_total", what=what)


def blocks(router):
    """By rank."""
    return {(rank["worker"], rank["rank"]): rank["blocks"] for rank in router.get("/debug/index").json()["ranks"]}


def informed(router):
    return router.health()["replicas"][0]["informed"]


def be_ready(router):
    eventually(lambda: router.get("/ready").status == 200, "it is ready")


def warm(router, workers):
    """Prompts that the workers hold, all of which the router has heard of."""
    for number in PROMPTS:
        worker = workers[number % len(workers)]
        complete(worker, ids(number), {"X-data-parallel-rank": str(number // 2 % 2)})
        eventually(lambda: max(depth(router, worker, ids(number) + [1], rank) for rank in (0, 1)) == len(ids(number)),
                   "it is known")


def test_a_newcomer_knows_what_the_engines_have_forgotten(world):
    # A replay of four batches, of the fifteen that each rank publishes.
    workers = [world.mock(**QUICK, dp_size=2, kv_events_buffer=4) for _ in range(2)]
    group = Mesh(world, "--router-mode", "kv")
    old = group.start("a", "--ready-when", "informed", workers=workers, ready=0)
    be_ready(old)  # nobody is there to ask
    follow(old, 4)
    warm(old, workers)
    known = blocks(old)
    assert sum(known.values()) == len(PROMPTS) * 4

    new = group.start("b", "--ready-when", "informed", workers=workers, ready=0)
    be_ready(new)
    assert informed(new) and blocks(new) == known, "before the first request"
    assert snapshots(new, "taken") == 4 and snapshots(new, "dropped") == 0 and snapshots(new, "without") == 0
    assert snapshots(old, "sent") == 4
    for number in PROMPTS[::20]:
        answer = complete(new, ids(number) + [1])
        assert cached(answer) == found(answer) == len(ids(number))
    # It follows the engines from there.
    for worker in workers:
        complete(worker, ids(100), {"X-data-parallel-rank": "1"})
        for router in (old, new):
            eventually(lambda router=router: depth(router, worker, ids(100) + [1], 1) == len(ids(100)), "it is known")
    eventually(lambda: blocks(new) == blocks(old), "both know the same")
    assert new.metric("kv_router_feed_lost_batches_total") == 0

    # What the engines themselves would have told.
    alone = world.serve("--router-mode", "kv", workers=workers)
    follow(alone, 4)
    assert 0 < sum(blocks(alone).values()) < sum(known.values()) / 2


def test_engines_without_replay_are_taken_over_with_their_next_event(world):
    workers = [world.mock(**QUICK, kv_events_replay_port="off") for _ in range(2)]
    group = Mesh(world, "--router-mode", "kv")
    old = group.start("a", workers=workers)
    follow(old, 2)
    for number in range(10):
        complete(workers[number % 2], ids(number))
    eventually(lambda: sum(blocks(old).values()) == 40, "all is known")
    eventually(lambda: informed(old), "it can be asked")

    new = group.start("b", workers=workers)
    follow(new, 2)
    eventually(lambda: snapshots(old, "sent") == 2, "the index is told")
    assert sum(blocks(new).values()) == 0, "nothing proves yet that the engines are the same"
    def both_know_the_same():
        for worker in workers:
            complete(worker, ids(int(time.monotonic() * 1000) % 1000 + 100))
        return snapshots(new, "taken") == 2
    eventually(both_know_the_same, "both are taken over")
    eventually(lambda: blocks(new) == blocks(old) and sum(blocks(new).values()) >= 40, "both know the same")
    for number in range(10):
        assert depth(new, workers[number % 2], ids(number) + [1]) == len(ids(number))


def test_an_engine_without_events_holds_up_nothing(world):
    """It describes itself on no page, as engines of other kinds, so that the usual port is tried, in vain."""
    worker = world.mock()
    flags = ("--kv-events-replay-wait", "1h", "--kv-events-replay-timeout", "1h", "--ready-when", "informed")
    alone = world.serve(*flags, workers=[worker], ready=0)
    be_ready(alone)
    assert alone.chat().status == 200
    group = Mesh(world, *flags)
    for name in "ab":
        router = group.start(name, workers=[worker], ready=0)
        be_ready(router)
        assert router.chat().status == 200


# --- what does not fit


class Fog(Proxy):
    """Whoever looks through it does not even see that the other side has ended, once it is cut."""

    def _pass(self, one, other):
        try:
            while data := one.recv(1 << 16):
                if not self.cut.is_set():
                    other.sendall(data)
        except OSError:
            pass
        if not self.cut.is_set():
            one.close()
            other.close()


def write_config(world, name, entry):
    path = world.folder / f"{name}.yaml"
    path.write_text(f"workers:\n  - {json.dumps(entry)}\n")
    return path


@pytest.mark.parametrize("published", [1, 12], ids=["few", "more"])
def test_what_is_known_of_an_engine_that_was_restarted_is_dropped(world, published):
    """The old router has not noticed it, so that it tells of a process that is no more."""
    engine = KvEngine()
    stream, replay = Fog(engine.publisher.port), Fog(engine.publisher.replayer.port)
    through = {"url": engine.url, "kv_events": f"tcp://127.0.0.1:{stream.port}",
               "kv_events_replay": f"tcp://127.0.0.1:{replay.port}"}
    group = Mesh(world, "--router-mode", "kv")
    try:
        old = group.start("a", "--config", write_config(world, "old", through))
        be_ready(old)
        engine.publisher.wait_for_subscriber()
        seen = Known(old, engine)
        for number in range(1, 9):
            engine.publisher.publish(chain(number, 2))
        seen.catch_up()
        eventually(lambda: informed(old), "it can be asked")
        stream.cut.set()
        replay.cut.set()
        engine.replace(kept=[batch(chain(50 + number, 2)) for number in range(published)])

        new = group.start("b", "--config", write_config(world, "new", engine.entry()), "--ready-when", "informed")
        be_ready(new)
        known = Known(new, engine)
        known.catch_up()
        assert snapshots(new, "asked") == 1 and snapshots(old, "sent") == 1
        assert snapshots(new, "taken") == 0 and snapshots(new, "dropped") == 1
        assert known.held(*range(1, 9)) == []
        assert known.held(*range(50, 62)) == list(range(50, 50 + published))
        assert seen.held(1, 8) == [1, 8], "the other one still believes it"
    finally:
        engine.stop()
        stream.listener.close()
        replay.listener.close()
