"""Names of workers, with a name server of our own: one that is slow, silent, changing, and names
that have dead addresses beside living ones."""

import re
import socket
import threading
import time

import pytest

import wire
from conftest import run_fathom
from dns_server import SERVFAIL, DnsServer
from fake_engine import FakeEngine, whole_answer
from wire import eventually

@pytest.fixture
def dns():
    server = DnsServer()
    yield server
    server.stop()


@pytest.fixture
def named(world, dns):
    """`serve` that asks our name server. Each request gets a connection of its own, so that each
    needs the worker's address."""
    def start(*args, **options):
        return world.serve("--dns-servers", dns.address, "--router-mode", "round-robin",
                           "--pool-size", 0, *args, **options)
    return start


def url(name, engine):
    return f"http://{name}:{engine.port}"


def states(router):
    entries = router.get("/workers").json()["workers"]
    return {re.sub(r"^http://|:\d+$", "", entry["url"]): entry["state"] for entry in entries}


def chat(router):
    begun = time.monotonic()
    answer = router.chat()
    return answer, time.monotonic() - begun


def test_a_silent_name_delays_neither_requests_nor_probes_of_another(named, dns, mock):
    engine = mock()
    dns.set("silent.test", silent=True)
    dns.set("living.test", "127.0.0.1", ttl=1)
    router = named("--connect-timeout", "30s", "--health-check-timeout", "30s",
                   workers=[url("silent.test", engine), url("living.test", engine)], ready=1)
    assert states(router) == {"silent.test": "probing", "living.test": "ready"}
    eventually(lambda: "silent.test" in dns.asked, "the silent name is asked for")

    slowest = 0
    for _ in range(5):
        answer, took = chat(router)
        assert answer.status == 200, answer.text()
        slowest = max(slowest, took)
    # getaddrinfo(), one name at a time, would take 5 s or more for each.
    assert slowest < 4, f"{slowest} s"

    # It is asked for again and again, as its TTL demands, while the other still waits.
    seen = dns.asked.count("living.test")
    eventually(lambda: chat(router)[0].status == 200 and dns.asked.count("living.test") > seen + 1,
               "the living name is looked up again")
    assert states(router) == {"silent.test": "probing", "living.test": "ready"}

    # A worker that joins now does not wait either.
    dns.set("late.test", "127.0.0.1")
    answer = wire.ask(router.port, "POST", "/workers", {"url": url("late.test", engine)})
    assert answer.status in (200, 201), answer.text()
    eventually(lambda: states(router)["late.test"] == "ready", "it is probed", patience=4)


@pytest.fixture
def silenced(named, dns, mock):
    """A router whose one worker was reached once. Now its name server answers no longer, and no old
    answer is left."""
    def start(*args):
        engine = mock()
        dns.set("a.test", "127.0.0.1", ttl=1)
        router = named("--health-check-interval", "1h", "--engine-load-interval", 0,
                       "--circuit-breaker-failures", 1000, "--retry-attempts", 1, *args,
                       workers=[url("a.test", engine)])
        dns.set("a.test")
        eventually(lambda: chat(router)[0].status != 200, "the name has no address any more")
        dns.set("a.test", silent=True)
        return router
    return start


def test_the_connect_timeout_covers_the_lookup(silenced, dns):
    router = silenced("--connect-timeout", "300ms")
    asked = len(dns.asked)

    def not_answered():
        answer, took = chat(router)
        assert answer.status in (502, 503), answer.text()
        assert took < 5, f"{took} s: as long as the lookup"
        return len(dns.asked) > asked and took > 0.25
    eventually(not_answered, "a request waits for its lookup, for as long as it may connect")


def test_a_client_that_leaves_gives_up_its_place(silenced):
    router = silenced("--connect-timeout", "1h", "--max-in-flight", 1, "--max-waiting", 0)

    def visit():
        """A client that leaves after some time: the answer that it got, or none."""
        with wire.Connection(router.port) as client:
            client.request("POST", "/v1/chat/completions", wire.chat_body())
            client.socket.settimeout(0.3)
            try:
                return client.read_answer().status
            except TimeoutError:
                return None
    eventually(lambda: visit() is None, "the failure is forgotten, the name is asked for again")
    for _ in range(3):
        eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "it has left", patience=5)
        assert visit() != 429, "there is a place for the next"


def test_a_probe_says_that_the_name_server_does_not_answer(named, dns, mock):
    dns.set("a.test", silent=True)
    router = named("--health-check-timeout", "300ms", workers=[url("a.test", mock())], ready=0)
    router.wait_for_log("WARN.*Worker is not healthy.*a.test.*no name server answered in time")


def test_stale_addresses_are_used_while_the_name_server_is_away(named, dns, mock):
    engine = mock()
    dns.set("a.test", "127.0.0.1", ttl=1)
    router = named(workers=[url("a.test", engine)])
    asked = len(dns.asked)
    dns.set("a.test", rcode=SERVFAIL)
    eventually(lambda: len(dns.asked) > asked + 1 and chat(router)[0].status == 200,
               "the answer has expired")
    router.wait_for_log("WARN.*DNS lookup failed; the last known addresses are used.*a.test")
    for _ in range(10):
        assert chat(router)[0].status == 200
    assert router.log_text().count("the last known addresses are used") == 1
    dns.set("a.test", "127.0.0.1", ttl=1)
    router.wait_for_log("DNS lookup works again.*a.test")
    assert states(router) == {"a.test": "ready"}


def test_a_name_that_moves_is_followed(named, dns):
    """The TTL decides, without a restart and without a failed request."""
    def engine(text):
        def answer(_, connection):
            connection.sendall(whole_answer('{"id": "%s"}' % text))
        return FakeEngine(answer)
    first = engine("first")
    second = engine("second")
    second.close_listener()
    second.listener = socket.create_server(("127.0.0.2", first.port), backlog=128)
    threading.Thread(target=second._accept, daemon=True).start()
    try:
        dns.set("a.test", "127.0.0.1", ttl=1)
        router = named(workers=[url("a.test", first)])
        assert chat(router)[0].json()["id"] == "first"
        dns.set("a.test", "127.0.0.2", ttl=1)

        def moved():
            answer, _ = chat(router)
            assert answer.status == 200, answer.text()
            return answer.json()["id"] == "second"
        eventually(moved, "the new address is used")
    finally:
        first.stop()
        second.stop()


@pytest.fixture
def full_listener():
    """Listens on 127.0.0.2 and accepts nothing: its queue is full, so that connecting to it hangs."""
    sockets = []

    def start(port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.2", port))
        listener.listen(0)
        sockets.append(listener)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.2", port))
            sockets.append(filler)

    yield start
    for each in sockets:
        each.close()


@pytest.mark.parametrize("dead", ["refuses", "hangs"])
def test_a_dead_address_does_not_take_the_time_of_the_living(named, dns, mock, full_listener, dead):
    engine = mock()
    if dead == "hangs":
        full_listener(engine.port)
    dns.set("a.test", "127.0.0.2", "127.0.0.1")
    router = named("--connect-timeout", "20s", "--health-check-timeout", "20s", "--retry-attempts", 1,
                   workers=[url("a.test", engine)])
    for _ in range(3):
        answer, took = chat(router)
        assert answer.status == 200, answer.text()
        assert took < 10, "of 20 s"


@pytest.mark.parametrize("value", ["dns.test", "127.0.0.1:0", "127.0.0.1:x"])
def test_name_servers_are_addresses(value):
    done = run_fathom("serve", "--dns-servers", value, "--worker-urls", "http://127.0.0.1:1")
    assert done.returncode == 78
    assert "dns-servers" in done.stderr and value in done.stderr
