"""A log that nobody reads stops nothing, and what was dropped is reported."""

import fcntl
import os
import re
import signal
import subprocess
import threading

import pytest
import wire
from conftest import FATHOM, clean_environment, parse_metrics
from wire import eventually

REQUESTS = 400


class UnreadRouter:
    """A router whose log is a pipe."""

    def __init__(self, worker, *flags):
        self.port = wire.free_port()
        self.log, end = os.pipe()
        fcntl.fcntl(self.log, fcntl.F_SETPIPE_SZ, 4096)
        self.popen = subprocess.Popen(
            [FATHOM, "serve", "--port", str(self.port), "--worker-urls", worker.url,
             "--health-check-interval", "100ms", *flags],
            env=clean_environment(None), stdin=subprocess.DEVNULL, stdout=end, stderr=end)
        os.close(end)
        eventually(self.is_ready, "ready")

    def is_ready(self):
        try:
            return wire.get(self.port, "/ready").status == 200
        except OSError:
            return False

    def dropped(self):
        series = parse_metrics(wire.get(self.port, "/metrics").text())
        return series["fathom_log_dropped_total", ()]

    def read_log(self):
        """Begins to read; the text is complete after join()."""
        self.text = ""

        def read():
            with os.fdopen(self.log, errors="replace") as pipe:
                for line in pipe:
                    self.text += line
        self.reader = threading.Thread(target=read)
        self.reader.start()


@pytest.fixture
def start(world):
    routers = []

    def make(*flags):
        routers.append(UnreadRouter(world.mock(), *flags))
        return routers[-1]
    yield make
    for router in routers:
        router.popen.kill()
        router.popen.wait()


def test_requests_go_on_though_nobody_reads_the_log(start):
    router = start("--log-requests", "--log-level", "debug")
    for number in range(REQUESTS):
        head = {"x-request-id": f"{number}-" + "x" * 100}
        assert wire.chat(router.port, head).status == 200
    assert wire.get(router.port, "/live").status == 200
    router.popen.send_signal(signal.SIGTERM)
    assert router.popen.wait(wire.PATIENCE) == 0


def test_what_was_dropped_is_counted_and_reported_and_warnings_are_kept(start):
    router = start("--log-requests", "--log-level", "debug")
    number = 0
    while router.dropped() == 0:
        for number in range(number, number + 100):
            assert wire.chat(router.port, {"x-request-id": f"{number}-" + "x" * 4000}).status == 200
    router.read_log()
    eventually(lambda: "Log records were dropped" in router.text, "reported")
    assert wire.chat(router.port, {"x-request-id": "afterwards"}).status == 200
    router.popen.send_signal(signal.SIGTERM)
    assert router.popen.wait(wire.PATIENCE) == 0
    router.reader.join()
    lost = sum(int(n) for n in re.findall(r"Log records were dropped.* records=(\d+)", router.text))
    assert lost >= 1
    assert "request_id=afterwards" in router.text


def test_nothing_is_lost_at_a_normal_exit(start):
    router = start("--log-requests")
    router.read_log()
    for number in range(100):
        assert wire.chat(router.port, {"x-request-id": f"id-{number}"}).status == 200
    router.popen.send_signal(signal.SIGTERM)
    assert router.popen.wait(wire.PATIENCE) == 0
    router.reader.join()
    assert len(set(re.findall(r"request_id=(id-\d+)", router.text))) == 100


def test_the_last_records_survive_a_crash(start):
    router = start("--log-requests")
    router.read_log()
    assert wire.chat(router.port, {"x-request-id": "the-last"}).status == 200
    router.popen.send_signal(signal.SIGABRT)  # sanitizers take the others for themselves
    assert router.popen.wait(wire.PATIENCE) != 0
    router.reader.join()
    assert "request_id=the-last" in router.text
