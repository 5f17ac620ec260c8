"""Several routers behind a balancer: they share what they have placed, and no fault of what is between them fails a
request."""

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

import nats_server
import wire
from conftest import run_fathom
from nats_server import NatsClient, NatsServer
from replica_peer import POLLED, Peer
from wire import eventually

pytestmark = pytest.mark.skipif(not nats_server.NATS_SERVER, reason="no nats-server on this machine")

KEY = b"a key that only the group has"


@pytest.fixture
def nats(tmp_path):
    folder = tmp_path / "nats"
    folder.mkdir()
    server = NatsServer(folder)
    yield server
    server.go_on()
    server.kill()


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


def rows(router):
    return {row["id"]: row for row in router.health()["replicas"]}


def meet(*routers):
    """All hear all."""
    def all_hear():
        views = [rows(router) for router in routers]
        return all(len(view) == len(routers) and all(row["hears_us"] for row in view.values()) for view in views)
    eventually(all_hear, "all replicas hear each other")


def carrier(router):
    return router.health()["replica_carrier"]


def busy(router):
    """Requests in flight by replica, as this router sees it."""
    return {name: row["requests"] for name, row in rows(router).items()}


def come_to_rest(*routers):
    """Everything that anybody has placed is over, in everybody's view, exactly."""
    def at_rest():
        return all(row["requests"] == 0 and row["prefill_tokens"] == 0
                   for router in routers for row in rows(router).values())
    eventually(at_rest, "all sums are zero")


class Load:
    """Clients behind a balancer that chooses by chance; a router that is taken out of it is not asked again."""

    def __init__(self, *routers, clients=4):
        self.routers, self.over, self.bad, self.answers = list(routers), threading.Event(), [], 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(clients)]

    def _run(self, seed):
        dice = random.Random(seed)
        while not self.over.is_set():
            router = dice.choice(self.routers)
            text = f"conversation {dice.randrange(20)} " + "and on " * dice.randrange(1, 200)
            try:
                answer = router.chat(messages=[{"role": "user", "content": text}],
                                     headers={"X-Session-ID": str(dice.randrange(9))},
                                     max_tokens=dice.randrange(1, 12), stream=dice.random() < 0.5)
                problem = None if answer.status == 200 else answer.status
            except (OSError, wire.Truncated) as gone:
                problem = gone
            with self.lock:
                self.answers += 1
                if problem and router in self.routers:
                    self.bad.append(problem)

    def take_out(self, router):
        self.routers.remove(router)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.bad, f"{len(self.bad)} of {self.answers} failed: {self.bad[:3]}"
        assert self.answers > 10


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
    workers = [mock(first_token_delay="4s"), mock(first_token_delay="4s")]
    a, b = (replica(name, workers=workers) for name in "ab")
    meet(a, b)
    session = {"X-Session-ID": "one"}
    filled = a.chat(session, max_tokens=1).worker
    streams = [wire.Stream(a.port, session, messages=[{"role": "user", "content": f"{n} " + "words " * 2000}])
               for n in range(2)]
    eventually(lambda: busy(b)["a"] == 2 and rows(b)["a"]["prefill_tokens"] > 2000, "b sees them, and their prefill")
    other = b.chat(max_tokens=1)
    for stream in streams:
        stream.close()
    assert other.worker != filled
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


def test_a_newcomer_learns_sessions_and_the_index(mock, replica):
    workers = [mock(profile="polynomial", kv_events="on") for _ in range(3)]
    a, b = (replica(name, workers=workers) for name in "ab")
    meet(a, b)
    bound = {n: a.chat({"X-Session-ID": f"s{n}"}, messages=[{"role": "user", "content": f"{n} " + "text " * 300}])
             for n in range(8)}
    blocks = eventually(lambda: b.get("/debug/index").json()["blocks"], "b has an index")
    c = replica("c", "--ready-when", "informed", workers=workers, ready=0)
    assert c.get("/ready").status == 503
    eventually(lambda: c.get("/ready").status == 200, "it is informed")
    meet(a, b, c)
    eventually(lambda: c.get("/debug/index").json()["blocks"] == blocks, "c has the same index")
    assert rows(c)["c"]["informed"]
    for n, answer in bound.items():
        assert c.chat({"X-Session-ID": f"s{n}"}).worker == answer.worker


# --- faults: no client sees them

def test_a_router_that_is_killed_is_forgotten(mock, replica):
    workers = [mock() for _ in range(8)]
    routers = [replica(name, workers=workers) for name in "abc"]
    meet(*routers)
    with Load(*routers) as load:
        time.sleep(1)
        load.take_out(routers[2])
        routers[2].kill()
        eventually(lambda: set(busy(routers[0])) == {"a", "b"}, "it is forgotten")
        time.sleep(0.5)
    come_to_rest(*routers[:2])


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


def test_nats_is_killed_stopped_and_comes_back(mock, replica, nats):
    workers = [mock() for _ in range(8)]
    routers = [replica(name, workers=workers) for name in "abc"]
    meet(*routers)
    with Load(*routers):
        nats.kill()
        for router in routers:
            eventually(lambda router=router: carrier(router)["status"] == "down", "it is noticed")
            eventually(lambda router=router: len(rows(router)) == 1, "the others are forgotten")
            assert router.health()["status"] == "degraded" and router.metric("fathom_replica_carrier_up") == 0
        nats.start()
        meet(*routers)
        nats.stop()
        for router in routers:
            eventually(lambda router=router: carrier(router)["status"] == "down", "a stopped server is noticed")
        nats.go_on()
        meet(*routers)
    come_to_rest(*routers)
    for router in routers:
        said = router.log_text().count("Replicas are not reached")
        assert 1 <= said <= 3, said  # once per outage


class Proxy:
    """Passes bytes on, until it is cut: then it is silent, as a network that loses everything."""

    def __init__(self, target):
        self.target, self.cut = target, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one, other):
        try:
            while data := one.recv(1 << 16):
                if not self.cut.is_set():
                    other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            end.close()


def test_a_partition_heals(mock, replica, nats):
    workers = [mock() for _ in range(3)]
    proxy = Proxy(nats.port)
    a, b = (replica(name, workers=workers) for name in "ab")
    c = replica("c", workers=workers, url=f"nats://127.0.0.1:{proxy.port}")
    meet(a, b, c)
    with Load(a, b, c):
        proxy.cut.set()
        eventually(lambda: set(rows(a)) == set(rows(b)) == {"a", "b"}, "the two go on")
        eventually(lambda: set(rows(c)) == {"c"} and carrier(c)["status"] == "down", "the one is alone")
        proxy.cut.clear()
        meet(a, b, c)
    come_to_rest(a, b, c)


def clock_of_another_day():
    """A prefix for commands whose monotonic clock is days ahead, or None."""
    prefix = ["unshare", "--time", "--monotonic", "200000", "--boottime", "200000"]
    works = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if works else None


@pytest.mark.skipif(not shutil.which("unshare") or not clock_of_another_day(), reason="no time namespaces here")
def test_clocks_may_differ(mock, replica, world, nats, key_file, monkeypatch):
    worker = mock()
    a = replica("a", workers=[worker])
    import conftest
    folder = world.folder / "fathom-of-another-day"
    folder.write_text(f"#!/bin/sh\nexec {' '.join(clock_of_another_day())} {conftest.FATHOM} \"$@\"\n")
    folder.chmod(0o755)
    monkeypatch.setattr(conftest, "FATHOM", str(folder))
    b = replica("b", workers=[worker])
    meet(a, b)
    stream = wire.Stream(b.port, max_tokens=100000)
    stream.next()
    eventually(lambda: busy(a)["b"] == 1, "a sees what b has placed")
    assert rows(a)["b"]["age_seconds"] < 60
    stream.close()
    come_to_rest(a, b)


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


def test_forged_replayed_and_garbage_messages_change_nothing(mock, replica, nats):
    worker = mock()
    client = NatsClient(nats.port)
    a, b = (replica(name, workers=[worker]) for name in "ab")
    meet(a, b)
    stream = wire.Stream(b.port, max_tokens=100000)
    stream.next()
    eventually(lambda: busy(a)["b"] == 1, "a sees it")
    stream.close()
    come_to_rest(a, b)
    recorded = list(client.heard)
    assert len(recorded) > 5
    old = a.metric("fathom_replica_messages_dropped_total", reason="old")
    for _, payload in recorded:  # everything that was ever said, again
        client.publish("fathom.fathom.all", payload)
    forger = Peer(client, b"not the group's key, of course", name="b")
    forger.place(int(a.worker_id(worker)), 500)
    dice = random.Random(5)
    for _ in range(300):
        payload = bytearray(dice.choice(recorded)[1])
        payload[dice.randrange(len(payload))] ^= 1 << dice.randrange(8)
        client.publish("fathom.fathom.all", bytes(payload))
        client.publish("fathom.fathom.all", dice.randbytes(dice.randrange(1, 200)))
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="old") > old, "they are counted")
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="key") >= 300, "forgeries too")
    come_to_rest(a, b)
    meet(a, b)
    # A router that is gone cannot be brought back with what it has said.
    b.kill()
    eventually(lambda: set(rows(a)) == {"a"}, "it is forgotten")
    for _, payload in recorded:
        client.publish("fathom.fathom.all", payload)
    eventually(lambda: a.metric("fathom_replica_messages_dropped_total", reason="unproven") > 0, "it is challenged")
    time.sleep(0.5)
    assert set(rows(a)) == {"a"}
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

def test_routers_connect_to_each_other(mock, serve, key_file):
    workers = [mock() for _ in range(3)]
    ports = {name: wire.free_port() for name in "abc"}
    peers = "zmq://" + ",".join(f"127.0.0.1:{port}" for port in ports.values())
    def start(name):
        return serve("--replicas", peers, "--replica-listen", f"127.0.0.1:{ports[name]}", "--replica-id", name,
                     "--replica-key-file", key_file, "--replica-timeout", "2s", workers=workers)
    routers = {name: start(name) for name in "abc"}
    a, b, c = routers.values()
    meet(a, b, c)
    with Load(a, b, c) as load:
        time.sleep(0.5)
        load.take_out(b)
        b.signal(signal.SIGSTOP)
        eventually(lambda: set(rows(a)) == set(rows(c)) == {"a", "c"}, "a stopped one is forgotten")
        b.signal(signal.SIGCONT)
        meet(a, b, c)
        load.take_out(c)
        c.kill()
        eventually(lambda: set(rows(a)) == {"a", "b"}, "and a killed one")
    again = start("c")
    meet(a, b, again)
    come_to_rest(a, b, again)
    # Whoever reaches the port, and has no key.
    with socket.create_connection(("127.0.0.1", ports["a"])) as stranger:
        stranger.sendall(os.urandom(100_000))
    meet(a, b, again)


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
