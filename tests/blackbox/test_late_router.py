"""A router that is late, or short of descriptors, does not blame others for it."""

import resource
import signal
import time

import pytest

import wire
from conftest import FATHOM
from wire import eventually

CLIENTS = 600  # more than the loop takes from the kernel at once


def test_requests_that_came_in_time_are_answered_by_a_router_that_was_late(mock, serve):
    """Stopped, as by a machine that has other things to do, while requests arrive and time-outs pass."""
    router = serve("--head-timeout", "3s", "--threads", 1, "--router-mode", "round-robin",
                   workers=[mock(), mock()])
    begun = time.monotonic()
    clients = [wire.Connection(router.port) for _ in range(CLIENTS)]
    assert router.get("/live").status == 200  # accepted behind all others
    router.signal(signal.SIGSTOP)
    assert time.monotonic() - begun < 3, "this machine is too slow for the test"
    for client in clients:
        client.request("POST", "/v1/chat/completions", wire.chat_body())
    time.sleep(max(0, begun + 3.5 - time.monotonic()))  # all of their time-outs have passed
    router.signal(signal.SIGCONT)
    statuses = [client.read_answer().status for client in clients]
    assert statuses == [200] * CLIENTS
    for client in clients:
        client.close()
    assert router.metric("fathom_worker_errors_total") == 0


@pytest.mark.skipif("build/asan" in FATHOM or "build/tsan" in FATHOM,
                    reason="sanitizers need descriptors themselves")
def test_a_shortage_of_descriptors_does_not_open_the_circuit_breaker(mock, serve):
    worker = mock()
    router = serve("--circuit-breaker-failures", 1, "--pool-size", 0, "--threads", 1,
                   "--router-mode", "round-robin", workers=[worker])
    limit = resource.prlimit(router.pid, resource.RLIMIT_NOFILE)
    with wire.Connection(router.port) as client:
        client.request("GET", "/live")
        assert client.read_answer().status == 200
        resource.prlimit(router.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
        for _ in range(5):
            client.request("POST", "/v1/chat/completions", wire.chat_body())
            answer = client.read_answer()
            assert answer.status == 503, answer.text()
            assert answer.error["code"] == "router_overloaded"
        time.sleep(0.5)  # health checks fail as well, five times
        resource.prlimit(router.pid, resource.RLIMIT_NOFILE, limit)
        client.request("POST", "/v1/chat/completions", wire.chat_body())
        assert client.read_answer().status == 200, "at once: neither ill nor behind an open breaker"
    assert router.metric("fathom_worker_errors_total") == 0
    assert "not healthy" not in router.log_text()
    eventually(lambda: router.health()["workers_ready"] == 1, "it stays ready")
