"""Several routers behind a balancer: they share what they have placed, and believe only each other."""

import os
import random
import signal
import socket
import time

import pytest

import nats_server
import wire
from choices import decisions
from conftest import run_fathom
from nats_server import NatsClient
from replica_load import Load
from replica_mesh import KEY, Mesh, MeshClient
from replica_peer import POLLED, Peer
from replica_views import busy, come_to_rest, meet, placed, rows
from wire import eventually


@pytest.fixture
def nats(tmp_path):
    with nats_server.running(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "replica.key"
    path.write_bytes(KEY + b"\n")
    return path


@pytest.fixture
def replica(serve, nats, key_file):
    """Starts a router of the group."""
    def start(name, *args, workers, url=None, key=None, ready=None):
        return serve("--replicas", url or nats.url, "--replica-id", name, "--replica-key-file", key or key_file,
                     "--replica-timeout", "2s", *args, workers=workers, ready=ready)
    return start


# --- a group that is well

def test_all_see_what_each_has_placed(mock, replica):
    workers = [mock(), mock()]
    a, b, c = (replica(name, workers=workers) for name in "abc")
    meet(a, b, c)
    assert rows(b)["b"]["self"] and not rows(b)["a"]["self"]
    assert list(rows(b))[0] == "b"
    assert b.metric("fathom_replicas") == 3
    streams = [wire.Stream(a.port, max_tokens=100000) for _ in range(3)]
    for stream in streams:
        stream.next()
    for router in (a, b, c):
        eventually(lambda router=router: busy(router) == {"a": 3, "b": 0, "c": 0}, f"all see the three: {busy(router)}")
    for stream in streams:
        stream.close()
    come_to_rest(a, b, c)
    eventually(lambda: rows(a)["b"]["round_trip_seconds"], "the round trip is measured")
    assert a.metric("fathom_replica_messages_dropped_total", reason="key") == 0


def test_a_router_avoids_the_worker_that_another_has_filled(mock, replica):
    workers = [mock(first_token_delay="1h"), mock(first_token_delay="1h")]
    a, b = (replica(name, workers=workers) for name in "ab")
    meet(a, b)
    streams = []
    def chosen(router, number, headers=()):
        before = len(decisions(router))
        streams.append(wire.Stream(router.port, headers,
                                   messages=[{"role": "user", "content": f"{number} " + "words " * 2000}]))
        eventually(lambda: len(decisions(router)) > before, "it is sent")
        return decisions(router)[0]["worker"]
    filled = {chosen(a, number, {"X-Session-ID": "one"}) for number in range(2)}
    assert len(filled) == 1
    eventually(lambda: busy(b)["a"] == 2 and rows(b)["a"]["prefill_tokens"] > 2000, "b sees them, and their prefill")
    assert chosen(b, 2) not in filled
    for stream in streams:
        stream.close()
    come_to_rest(a, b)


def test_a_session_stays_whichever_router_it_meets(mock, replica):
    workers = [mock() for _ in range(4)]
    routers = [replica(name, workers=workers) for name in "abc"]
    meet(*routers)
    for session in range(6):
        header = {"X-Session-ID": f"session {session}"}
        def workers_met(header=header):
            return {router.chat(header).worker for router in routers}
        # For a moment the binding is on its way, and another router makes one of its own; then one of them wins.
        eventually(lambda: len(workers_met()) == 1, "the session is known to all")
        stays = workers_met()
        for _ in range(5):
            assert workers_met() == stays


def test_a_router_that_ends_says_so(mock, serve, nats, key_file):
    worker = mock()
    def start(name):
        return serve("--replicas", nats.url, "--replica-id", name, "--replica-key-file", key_file,
                     "--replica-timeout", "1h", workers=[worker])
    a, b = start("a"), start("b")
    meet(a, b)
    b.signal(signal.SIGTERM)
    assert b.wait() == 0
    eventually(lambda: set(rows(a)) == {"a"}, "it is forgotten long before the time-out")


# --- others on the same subjects

def test_a_group_hears_only_its_own(mock, replica, tmp_path):
    worker = mock()
    other_key = tmp_path / "other.key"
    other_key.write_bytes(b"quite another key, as long as this")
    a = replica("a", workers=[worker])
    b = replica("b", "--replica-group", "elsewhere", workers=[worker])
    c = replica("c", workers=[worker], key=other_key)
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="key") > 0, "c is not believed")
    for router in (a, b, c):
        assert len(rows(router)) == 1


# Nobody is forgotten for being slow where that would be a change.
PATIENT = ("--replica-timeout", "4s")


def drops(router, reason):
    return router.metric("fathom_replica_messages_dropped_total", reason=reason)


def change_nothing(client, worker, a, b):
    """What b has said, said again, changed or made up by one who hears all and has no key. Ends b."""
    def counted(condition, what):
        """And what b has placed is right at all times: a wrong number would be put right within a second."""
        def look():
            assert placed(a) == truth, what
            return condition()
        eventually(look, what)
    stream = wire.Stream(b.port, model="silent")
    eventually(lambda: busy(a)["b"] == 1, "a sees it")
    stream.close()
    come_to_rest(a, b)
    stream = wire.Stream(b.port, model="silent", messages=[{"role": "user", "content": "words " * 100}])
    eventually(lambda: busy(a)["b"] == 1, "a sees it")
    meet(a, b)
    truth, dice = placed(a), random.Random(5)
    recorded = [payload for _, payload in client.heard]
    assert len(recorded) > 5
    old, forged = drops(a, "old"), drops(a, "key")
    for payload in recorded:  # everything that was ever said, again
        client.publish("fathom.fathom.all", payload)
    counted(lambda: drops(a, "old") >= old + 3, "what is old is counted")
    forger = Peer(client, b"not the group's key, of course", name="b")
    for number in range(100):
        forger.be_present()
        forger.place(int(a.worker_id(worker)), number)
        payload = bytearray(dice.choice(recorded))
        payload[dice.randrange(len(payload))] ^= 1 << dice.randrange(8)
        client.publish("fathom.fathom.all", bytes(payload))
        client.publish("fathom.fathom.all", dice.randbytes(dice.randrange(1, 200)))
    counted(lambda: drops(a, "key") >= forged + 400, "what is forged is counted")
    stream.close()
    come_to_rest(a, b)
    # A router that is gone cannot be brought back with what it has said.
    b.kill()
    eventually(lambda: set(rows(a)) == {"a"}, "it is forgotten")
    truth, unproven = placed(a), drops(a, "unproven")
    for payload in recorded:
        client.publish("fathom.fathom.all", payload)
    counted(lambda: drops(a, "unproven") > unproven, "it is challenged")
    for _ in range(5):
        counted(lambda: True, "it stays forgotten")
        time.sleep(0.1)


def test_forged_replayed_and_garbage_messages_change_nothing(mock, replica, nats):
    workers = [mock(), mock(model="silent", first_token_delay="1h")]
    client = NatsClient(nats.port)
    a, b = (replica(name, *PATIENT, workers=workers) for name in "ab")
    meet(a, b)
    change_nothing(client, workers[0], a, b)
    client.close()


def test_a_newer_release_is_understood_as_far_as_it_is_known(mock, replica, nats):
    worker = mock()
    a = replica("a", workers=[worker])
    client = NatsClient(nats.port)
    newer = Peer(client, KEY, name="newer", minor=7, more=["what comes next", {"no": ["body", "knows"]}])
    def joined():
        newer.be_present()
        time.sleep(0.1)
        return "newer" in rows(a)
    eventually(joined, "it is believed after its proof")
    assert newer.proofs > 0 and rows(a)["newer"]["version"] == "9.9.9"
    newer.place(int(a.worker_id(worker)), 17, queued=1000.0)
    eventually(lambda: busy(a)["newer"] == 17, "its numbers are read")
    newer.say(99, ["of a kind that is not known"])
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="unknown") == 1, "it is passed over")
    assert busy(a)["newer"] == 17
    newer.say(POLLED, ["not", "what", "it", "should", "be"])
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="malformed") == 1, "it is counted")
    client.close()
    eventually(lambda: set(rows(a)) == {"a"}, "silence is the end")
    assert a.chat().status == 200


# --- without NATS

def test_routers_connect_to_each_other(world):
    workers = [world.mock() for _ in range(3)]
    mesh = Mesh(world)
    a, b, c = (mesh.start(name, workers=workers) for name in "abc")
    meet(a, b, c)
    with Load(a, b, c) as load:
        load.goes_on()
        load.take_out(b)
        b.signal(signal.SIGSTOP)
        eventually(lambda: set(rows(a)) == set(rows(c)) == {"a", "c"}, "a stopped one is forgotten")
        b.signal(signal.SIGCONT)
        meet(a, b, c)
        load.take_out(c)
        c.kill()
        eventually(lambda: set(rows(a)) == {"a", "b"}, "and a killed one")
        load.goes_on()
    again = mesh.start("c", workers=workers)
    meet(a, b, again)
    come_to_rest(a, b, again)
    # Whoever reaches the port, and does not even speak ZeroMQ.
    with socket.create_connection(("127.0.0.1", mesh.ports["a"])) as stranger:
        stranger.sendall(os.urandom(100_000))
    meet(a, b, again)


def test_forged_and_replayed_messages_over_zeromq_change_nothing(world):
    workers = [world.mock(), world.mock(model="silent", first_token_delay="1h")]
    mesh = Mesh(world)
    with MeshClient(mesh.ports["c"], [mesh.ports["a"], mesh.ports["b"]]) as client:
        a, b = (mesh.start(name, *PATIENT, workers=workers) for name in "ab")
        meet(a, b)
        change_nothing(client, workers[0], a, b)


# --- settings

@pytest.mark.parametrize("flags, words", [
    (["--replicas", "nats://127.0.0.1:4222"], ["--replica-key-file", "--replica-open"]),
    (["--replicas", "http://127.0.0.1:4222", "--replica-open"], ["--replicas", "http://", "nats://"]),
    (["--replicas", "zmq://127.0.0.1:5600", "--replica-open"], ["--replica-listen"]),
    (["--replicas", "nats://127.0.0.1:4222", "--replica-open", "--nats-ca-file", "ca.pem"], ["--nats-ca-file", "tls://"]),
    (["--replicas", "nats://127.0.0.1:4222", "--replica-open", "--replica-url", "http://" + "a" * 1100],
     ["--replica-url", "1024"]),
    (["--replicas", "nats://127.0.0.1:4222", "--replica-open", "--replica-id", "a b"], ["--replica-id", "a b"]),
    (["--replicas", "nats://u:secret@h:1", "--replica-key-file", "/nowhere"], ["/nowhere"]),
    (["--replica-key-file", "/nowhere"], ["--replicas"]),
])
def test_settings_that_do_not_fit_are_refused(flags, words):
    ran = run_fathom("serve", "--port", 0, "--worker-urls", "http://127.0.0.1:1", *flags)
    assert ran.returncode == 78, ran.stderr
    for word in words:
        assert word in ran.stderr
    assert "secret" not in ran.stderr + ran.stdout


def test_a_short_key_is_refused(tmp_path):
    short = tmp_path / "key"
    short.write_text("too short\n")
    ran = run_fathom("serve", "--port", 0, "--replicas", "nats://127.0.0.1:1", "--replica-key-file", short)
    assert ran.returncode == 78 and "16 bytes" in ran.stderr
