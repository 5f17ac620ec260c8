"""Routers that find each other by one name, with a name server of our own."""

import pytest

import wire
from dns_server import SERVFAIL, DnsServer
from replica_mesh import KEY
from replica_views import carrier, meet, rows

NAME = "fathom-peers.test"


@pytest.fixture
def dns():
    server = DnsServer()
    yield server
    server.stop()


def test_routers_find_each_other_by_one_name(mock, serve, dns, tmp_path):
    worker, port, key_file = mock(), wire.free_port(), tmp_path / "replica.key"
    key_file.write_bytes(KEY)
    def start(name, address):
        return serve("--replicas", f"dns+zmq://{NAME}:{port}", "--replica-listen", f"{address}:{port}", "--replica-id",
                     name, "--replica-key-file", key_file, "--replica-timeout", "2s", "--dns-servers", dns.address,
                     workers=[worker])
    dns.set(NAME, "127.0.0.1", "127.0.0.2", ttl=1)
    a, b = start("a", "127.0.0.1"), start("b", "127.0.0.2")
    meet(a, b)
    assert carrier(a)["kind"] == "zmq" and carrier(a)["error"] is None
    # Another one comes, and the name has its address a moment later.
    c = start("c", "127.0.0.3")
    assert set(rows(c)) == {"c"}, "the others do not know where it is"
    dns.set(NAME, "127.0.0.1", "127.0.0.2", "127.0.0.3", ttl=1)
    meet(a, b, c)
    # The name server fails: who is known stays known.
    dns.set(NAME, rcode=SERVFAIL)
    for router in (a, b, c):
        line = router.wait_for_log(".*Lookup of the replicas failed; keeping those that are known.*").group()
        assert " WARN " in line and f"{NAME}:{port}" in line
    meet(a, b, c)
    dns.set(NAME, "127.0.0.1", "127.0.0.2", "127.0.0.3", ttl=1)
    for router in (a, b, c):
        router.wait_for_log("Lookup of the replicas works again")
    meet(a, b, c)
