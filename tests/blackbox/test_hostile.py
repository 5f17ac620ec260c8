"""Requests that nobody sends by accident, each in a file of tests/corpus/hostile_requests."""

import random
import time
from pathlib import Path

import pytest

import wire
from conftest import ROOT

FILES = sorted((ROOT / "tests/corpus/hostile_requests").glob("*.http"))
# Which refusal a name announces, where it is not a plain 400.
OTHER_REFUSALS = ["431", "413", "408", "417", "501"]


@pytest.fixture(scope="module")
def worker(shared_world):
    return shared_world.mock()


@pytest.fixture(scope="module")
def router(shared_world, worker):
    return shared_world.serve("--head-timeout", "30s", "--body-timeout", "30s", workers=[worker])


def refusals_of(path):
    announced = {int(code) for code in OTHER_REFUSALS if code in path.stem}
    return announced or {400}


def test_there_are_hostile_requests():
    assert len(FILES) > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: Path(path).stem)
def test_a_hostile_request_gets_one_refusal_and_a_closed_connection(router, worker, path):
    reached = worker.stats()["requests"]
    with wire.Connection(router.port) as connection:
        connection.send(path.read_bytes())
        answer = connection.read_answer()
        assert answer.status in refusals_of(path), answer
        assert answer.error["type"] == "invalid_request_error"
        assert answer.header("connection") == "close"
        assert connection.ended(), f"more came: {connection.buffer!r}"
    assert worker.stats()["requests"] == reached, "it reached the worker"
    assert router.get("/live").status == 200


@pytest.mark.parametrize("path", [f for f in FILES if f.stem in (
    "head-content-length-and-chunked", "body-size-overflow", "head-bare-lf-one-line")],
    ids=lambda path: Path(path).stem)
def test_a_hostile_request_is_refused_byte_by_byte_too(router, path):
    with wire.Connection(router.port) as connection:
        try:
            for byte in path.read_bytes():
                connection.send(bytes([byte]))
        except ConnectionError:
            pass  # it was refused before its end
        assert connection.read_answer().status == 400
        assert connection.ended()


def test_a_hostile_request_behind_a_good_one_is_refused_alone(router, worker):
    good = wire.request_bytes("POST", "/v1/score", {"model": "mock-model"})
    bad = (ROOT / "tests/corpus/hostile_requests/head-content-length-and-chunked.http").read_bytes()
    before = worker.stats()["requests"]
    with wire.Connection(router.port) as connection:
        connection.send(good + bad + good)
        assert connection.read_answer().status == 200
        assert connection.read_answer().status == 400
        assert connection.ended()
    assert worker.stats()["requests"] == before + 1


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
    b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}",
    b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nx : a\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nx: \0\r\ncontent-length: 2\r\n\r\n{}",
    b"HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\n{}",
    b"hello\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 3_000_000,
], ids=["two framings", "two lengths", "bare LF", "folded", "space", "NUL", "status", "greeting",
        "endless head"])
def test_a_hostile_worker_is_not_believed(engine, serve, answer):
    router = serve("--retry-attempts", 1,
                   workers=[engine(lambda _, connection: connection.sendall(answer))])
    got = router.chat()
    assert got.status == 502
    assert got.error["type"] == "server_error"


def test_a_worker_that_says_too_much_taints_no_other_answer(engine, serve):
    """Bytes after the end of an answer must not become the next answer."""
    smuggled = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled"

    def answer(_, connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}" + smuggled)
        fake.released.wait(wire.PATIENCE)

    fake = engine(answer)
    router = serve("--threads", 1, workers=[fake])
    for _ in range(3):
        assert router.chat().body == b"{}"


def garbage(dice):
    """Noise, or a request that something has happened to."""
    if dice.random() < 0.3:
        return dice.randbytes(dice.randrange(1, 400))
    text = bytearray(wire.request_bytes("POST", "/v1/score", {"model": "mock-model"}))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(text))
        damage = dice.randrange(3)
        if damage == 0:
            text[at] = dice.randrange(256)
        elif damage == 1:
            del text[at:at + dice.randrange(1, 9)]
        else:
            text[at:at] = dice.choice([b"\r\n", b"\n", b"\0", b" ", b":", b"chunked", b"\r\n\r\n"])
    return bytes(text)


def test_garbage_on_many_connections_does_no_harm(router):
    """As many as fit into a few seconds, which is 10,000 for a fast build."""
    dice = random.Random(1)
    end = time.monotonic() + 6
    for count in range(10_000):
        if time.monotonic() > end:
            break
        with wire.Connection(router.port) as connection:
            connection.send(garbage(dice))
    assert count > 300
    assert router.chat().status == 200
    wire.eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "nothing is left over")
