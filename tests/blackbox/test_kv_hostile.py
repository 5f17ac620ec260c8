"""Publishers that take more than their share: memory, turns, connections, and the time to leave."""

import signal
import time

import msgpack
import pytest
import zmq

import wire
import zmtp
from conftest import FATHOM
from kv_engine import (CLEARED, Known, PagesEngine, Publisher, Stable, add, batch, chain, stored)
from wire import eventually

MiB = 1 << 20
# Beyond what the router has before: its budget once for messages and once for what they decode to,
# and buffers.
BOUND = 128 * 2 * MiB + 40 * MiB
if any(name in FATHOM for name in ("build/asan", "build/tsan")):
    BOUND += 512 * MiB  # sanitizers keep what was freed for a while
ENDLESS = zmtp.frame(zmtp.MORE, b"x" * 60_000)


@pytest.fixture
def stable(world):
    stables = []

    def of(router):
        stables.append(Stable(router))
        return stables[-1]

    yield of
    for one in stables:
        if one.router.popen.poll() is None:
            one.end()
        else:
            for engine in one.engines:
                engine.stop()


def bound_router(world, *args):
    """A router that engines connect to, and the port for them."""
    port = wire.free_port()
    endpoint = f"tcp://127.0.0.1:{port}"
    router = world.serve("--kv-events-bind", endpoint, "--kv-events-memory", "128MiB", *args)
    return router, port, endpoint


def connect_engine(router, stable, endpoint, **options):
    """An engine that connects to the router, once the router knows it."""
    engine = stable.start(PagesEngine)
    publisher = Publisher(topic="kv@1", dial=endpoint, **options)
    engine.ranks = [publisher]
    add(router, engine, {"url": engine.url, "kv_events_topic": "kv@1",
                         "kv_events_replay": f"tcp://127.0.0.1:{publisher.replayer.port}"})
    assert publisher.socket.recv() == b"\1"
    known = Known(router, engine)
    eventually(lambda: publisher.publish() or known.state(), "the worker is known")
    return known


def close_engine(known):
    known.publisher.close()


# --- memory


def test_a_message_that_never_ends_costs_its_publisher_the_connection(world, stable):
    router, port, endpoint = bound_router(world)
    known = connect_engine(router, stable(router), endpoint)
    before = router.memory()
    peers = [zmtp.RawPublisher(port) for _ in range(4)]
    taken = [peer.flood(ENDLESS, 300 * MiB) for peer in peers]
    assert all(one < 300 * MiB for one in taken), "they are cut off"
    assert router.memory("VmHWM") - before < BOUND
    eventually(lambda: router.metric("kv_router_publishers_refused_total", reason="limit") == 4,
               "they are counted")
    assert "A publisher of KV events was refused" in router.log_text()
    known.publisher.publish(chain(1, 2))
    known.catch_up()
    assert known.held(1) == [1]
    for peer in peers:
        peer.close()
    close_engine(known)


def test_messages_that_are_begun_and_not_finished_do_not_take_all_memory(world, stable):
    router, port, endpoint = bound_router(world)
    known = connect_engine(router, stable(router), endpoint)
    before = router.memory()
    large = zmtp.frame(0, b"x" * (40 * MiB))[:-1]  # one byte is missing
    peers = [zmtp.RawPublisher(port) for _ in range(12)]
    for peer in peers:
        peer.flood(large, len(large))
    eventually(lambda: router.metric("kv_router_publishers_refused_total", reason="limit") >= 9,
               "most are cut off")
    assert router.memory("VmHWM") - before < BOUND
    known.publisher.publish(chain(1, 2))
    known.catch_up()
    assert known.held(1) == [1], "small messages have room of their own"
    for peer in peers:
        peer.close()
    close_engine(known)


def test_a_followed_publisher_that_never_ends_a_message_is_cut_and_tried_again(world, stable):
    router = world.serve("--kv-events-memory", "128MiB")
    herd = stable(router)
    engine = herd.start()
    raw = zmtp.RawEngine(ENDLESS)
    before = router.memory()
    add(router, engine, {"url": engine.url, "kv_events": f"tcp://127.0.0.1:{raw.port}"})
    known = Known(router, engine)
    known.wait_for(lambda state: state.get("cut_connections", 0) >= 3, "it is cut three times")
    healthy = herd.rank()
    healthy.publisher.publish(chain(1, 2))
    healthy.catch_up()
    assert healthy.held(1) == [1]
    assert router.memory("VmHWM") - before < BOUND
    cut = known.state()["cut_connections"]
    assert raw.subscribers <= cut + 2, "no more connections than were cut"
    complaints = [line for line in known.complaints() if "was cut" in line]
    assert len(complaints) == 1 and "too many frames" in complaints[0], complaints
    raw.stop()


def test_messages_do_not_pile_up_while_a_gap_is_repaired(world, stable):
    router = world.serve("--kv-events-memory", "128MiB", "--kv-events-replay-timeout", "2s")
    rank = stable(router).rank()
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    before = router.memory()
    rank.publisher.replayer.mute = True
    rank.publisher.send(batch(chain(2, 2)), live=False)
    rank.publisher.publish(chain(3, 2))
    eventually(lambda: len(rank.publisher.replayer.asked) >= 2, "the gap is asked for")
    for _ in range(60):
        rank.publisher.send(b"\xc1" * (10 * MiB), keep=False)
    rank.publisher.publish(chain(4, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3, 4) == [4]
    assert router.memory("VmHWM") - before < BOUND
    rank.expect(malformed_batches=60, cut_connections=0)


def test_what_was_missed_while_a_stream_was_cut_is_replayed(world, stable):
    router = world.serve()
    rank = stable(router).rank()
    rank.publisher.publish(chain(1, 2))
    rank.catch_up()
    rank.publisher.socket.send_multipart([b"kv", b"x" * (65 * MiB)])
    rank.expect(cut_connections=1)
    rank.publisher.publish(chain(2, 2))
    rank.publisher.publish(chain(3, 2))
    rank.catch_up()
    assert rank.held(1, 2, 3) == [1, 2, 3]
    rank.expect(cut_connections=1, lost_batches=0, malformed_batches=0)


# --- turns


def large_batch(events=1):
    """Blocks that are stored and cleared again: much work, and small in the index."""
    blocks, size = 50_000, 16
    event = stored(list(range(blocks)), list(range(blocks * size)), block_size=size)
    return msgpack.packb([time.time(), [CLEARED, event] * events, 0])


def test_a_publisher_of_large_batches_does_not_delay_the_others(world, stable):
    router = world.serve()
    herd = stable(router)
    hog, healthy = herd.rank(replay=False), herd.rank(replay=False)
    payload = large_batch()
    for _ in range(8):
        hog.publisher.send(payload)
    hog.wait_for(lambda state: state.get("batches", 0) >= 1, "the first was applied")
    for number in range(3):
        healthy.publisher.publish(chain(number, 2))
        healthy.catch_up()
    state = hog.state()
    assert state["batches"] < 8, f"the healthy rank waited for all of the other's: {state}"
    hog.catch_up()
    hog.expect(batches=8, malformed_batches=0)


def test_a_large_batch_is_applied_as_a_whole_would_be(world, stable):
    router = world.serve()
    rank = stable(router).rank()
    blocks = 20_000
    tokens = list(range(4 * blocks))
    hashes = list(range(1, blocks + 1))
    rank.publisher.publish(CLEARED, stored(hashes, tokens), {"type": "Unknown"},
                           stored(hashes[:2], tokens[:7]))
    rank.catch_up()
    rank.expect(blocks=blocks, batches=1, ignored_events=0, malformed_events=2, parked_blocks=0)
    assert rank.lookup(tokens + [1]) == 4 * blocks
    more = [100_000 + i for i in range(4 * blocks)]
    rank.publisher.publish(stored([h + blocks for h in hashes], more, parent=hashes[-1]),
                           {"type": "BlockRemoved", "block_hashes": hashes[5000:], "medium": "GPU",
                            "group_idx": 0})
    rank.catch_up()
    assert rank.lookup(tokens + [1]) == 4 * 5000
    rank.publisher.send(batch(stored(hashes, tokens)) + b"\xc0")  # bytes after the batch
    state = rank.expect(malformed_batches=1, blocks=0)
    assert state["batches"] == 2
    rank.publisher.publish(chain(3, 2))
    rank.catch_up()
    assert rank.held(3) == [3]


# --- who may publish


def connect_publisher(endpoint, **options):
    """A publisher with these socket options."""
    socket = zmq.Context.instance().socket(zmq.XPUB)
    socket.linger = 0
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(endpoint)
    return socket


def test_only_allowed_networks_may_publish(world, stable):
    router, port, endpoint = bound_router(world, "--kv-events-bind-allow", "10.0.0.0/8")
    peer = zmtp.RawPublisher(port)
    assert peer.ended()
    eventually(lambda: router.metric("kv_router_publishers_refused_total", reason="address") >= 1,
               "it is counted")
    peer.close()
    assert "reason=address" in router.log_text()
    router, port, endpoint = bound_router(world, "--kv-events-bind-allow", "10.0.0.0/8,127.0.0.0/8")
    known = connect_engine(router, stable(router), endpoint)
    known.publisher.publish(chain(1, 2))
    known.catch_up()
    close_engine(known)


def test_only_those_with_the_key_may_publish(world):
    router, port, endpoint = bound_router(world, "--kv-events-bind-key", "open sesame")
    wrong = [connect_publisher(endpoint),
             connect_publisher(endpoint, plain_username=b"engine", plain_password=b"open says me")]
    eventually(lambda: router.metric("kv_router_publishers_refused_total", reason="key") >= 2,
               "they are refused")
    right = connect_publisher(endpoint, plain_username=b"engine", plain_password=b"open sesame")
    assert right.poll(wire.PATIENCE * 1000) and right.recv() == b"\1"
    assert not any(socket.poll(0) for socket in wrong)
    assert "open sesame" not in router.log_text()
    for socket in [right, *wrong]:
        socket.close()


def test_a_port_that_is_open_to_all_is_named(world):
    open_to_all = "Anyone who reaches this port can publish KV events"
    bind = ["--kv-events-bind", f"tcp://*:{wire.free_port()}"]
    assert open_to_all in world.serve(*bind).log_text()
    for closed in (["--kv-events-bind-allow", "127.0.0.1"], ["--kv-events-bind-key", "k"]):
        bind = ["--kv-events-bind", f"tcp://*:{wire.free_port()}"]
        assert open_to_all not in world.serve(*bind, *closed).log_text()
    assert open_to_all not in bound_router(world)[0].log_text(), "on loopback it is not open"


# --- the end


@pytest.mark.parametrize("streams", [0, 3])
def test_the_router_leaves_in_time_with_event_streams_open(world, stable, streams):
    router = world.serve("--drain-timeout", "1s", workers=[world.mock(token_interval="20ms")])
    herd = stable(router)
    held = [wire.Stream(router.port, max_tokens=100_000) for _ in range(streams)]
    assert all(stream.next() for stream in held)
    hogs = [herd.rank(replay=False) for _ in range(8)]  # each turn of the loop takes long
    payload = large_batch()
    for _ in range(3):
        for hog in hogs:
            hog.publisher.send(payload)
    hogs[0].wait_for(lambda state: state.get("clears", 0) >= 1, "it has begun")
    begun = time.monotonic()
    router.signal(signal.SIGTERM)
    assert router.wait() == 0
    # One second to drain and one to stop; a busy machine may take some more.
    assert time.monotonic() - begun < 2 + wire.PATIENCE / 4
    assert "FATAL" not in router.log_text()
    del held


def test_a_second_signal_does_not_wait_for_events(world, stable):
    router = world.serve("--drain-timeout", "1h", workers=[world.mock(token_interval="20ms")])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    hog = stable(router).rank(replay=False)
    payload = large_batch(events=4)
    for _ in range(10):
        hog.publisher.send(payload)
    router.signal(signal.SIGTERM)
    router.wait_for_log("Draining")
    router.signal(signal.SIGTERM)
    assert router.wait() == 0
