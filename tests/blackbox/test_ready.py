"""fathom ready: what a health check runs in an image that has no shell."""

import socket

import pytest

from conftest import run_fathom
from fake_engine import FakeEngine, whole_answer
from wire import eventually


def test_it_answers_for_a_router_with_a_worker(mock, serve):
    router = serve(workers=[mock()])
    asked = run_fathom("ready", router.url)
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, f"{router.url}: ready\n", "")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_it_finds_the_router_by_the_variables_of_serve(mock, serve, host):
    router = serve(workers=[mock()])
    asked = run_fathom("ready", env={"FATHOM_HOST": host, "FATHOM_PORT": str(router.port),
                                     "FATHOM_WORKER_URLS": "http://another.invalid"})
    assert asked.returncode == 0, asked.stderr


def test_the_reason_of_a_router_that_is_not_ready_is_one_line(serve):
    router = serve()
    asked = run_fathom("ready", "--port", router.port)
    assert asked.returncode == 1 and asked.stdout == ""
    reason = router.get("/ready").json()["reason"]
    assert asked.stderr == f"fathom ready: {router.url}: not ready: {reason}\n"


def test_a_router_that_is_gone_is_not_ready(mock, serve):
    router = serve(workers=[mock()])
    router.kill()
    asked = run_fathom("ready", router.url)
    assert asked.returncode == 1 and "connection refused" in asked.stderr


def test_it_does_not_wait_longer_than_asked():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = run_fathom("ready", "--port", silent.getsockname()[1], "--timeout", "200ms")
    assert asked.returncode == 1 and asked.stderr.count("\n") == 1 and "time" in asked.stderr


class Stranger(FakeEngine):
    """Answers every GET with the same bytes."""

    def __init__(self, page):
        self.page = page
        super().__init__(answer=None)

    def _page(self, _):
        return self.page


@pytest.mark.parametrize("status,body", [
    ("404 Not Found", "{}"), ("503 X", '{"reason": "\\u001b[31m\\nred"}'), ("503 X", b"\xff" * 5000),
    ("503 X", '{"reason": "' + "x" * 100_000 + '"}')])
def test_what_a_stranger_answers_stays_in_one_line(status, body):
    stranger = Stranger(whole_answer(body, status))
    asked = run_fathom("ready", stranger.url)
    stranger.stop()
    assert asked.returncode == 1 and asked.stdout == ""
    assert asked.stderr.count("\n") == 1 and "\x1b" not in asked.stderr and len(asked.stderr) < 1200


@pytest.mark.parametrize("args", [["http://a", "http://b"], ["nonsense"], ["--port", "0"], ["--prot", "1"],
                                  ["https://localhost", "--ca-file", "/nonexistent"]])
def test_wrong_usage_is_status_78(args):
    asked = run_fathom("ready", *args)
    assert asked.returncode == 78 and asked.stderr.count("\n") == 1


def test_a_drained_router_is_not_ready(mock, serve):
    router = serve(workers=[mock()])
    router.popen.terminate()
    eventually(lambda: run_fathom("ready", router.url).returncode == 1, "the router says that it stops")
