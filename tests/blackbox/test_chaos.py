"""Everything goes wrong at once: clients that leave, workers that fail, hang, die and are replaced.
Afterwards nothing is left over."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import wire
from wire import eventually

SECONDS = 4


def one_client(router, dice):
    """Asks for something, and behaves as clients do, or worse."""
    fields = {"max_tokens": dice.randrange(1, 40), "stream": dice.random() < 0.7}
    if dice.random() < 0.1:
        fields["mock_stall_after"] = 2
    if dice.random() < 0.1:
        fields["padding"] = "x" * dice.randrange(1_000_000)
    if dice.random() < 0.1:
        fields["model"] = "unknown"
    request = wire.request_bytes("POST", "/v1/chat/completions", wire.chat_body(**fields),
                                 {"X-Session-ID": str(dice.randrange(5))})
    with wire.Connection(router.port) as connection:
        way = dice.random()
        in_a_hurry = way < 0.1 or dice.random() < 0.2
        connection.socket.settimeout(dice.random() * 0.05 if in_a_hurry else 1)
        try:
            if way < 0.1:
                connection.send(request[:dice.randrange(len(request))])
            else:
                connection.send(request * (dice.randrange(2, 4) if way < 0.2 else 1))
            for count, _ in enumerate(connection.pieces(connection.read_head())):
                if dice.random() < 0.02 * count:
                    break
        except (wire.Truncated, OSError):  # time-outs too
            pass
        if dice.random() < 0.3:
            connection.reset()


def open_files(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def test_nothing_is_left_over(mock, serve):
    steady = [mock(), mock(fail_rate=0.2, hang_rate=0.1), mock(die_after_tokens=9), mock(busy=True)]
    router = serve("--first-byte-timeout", "300ms", "--idle-timeout", "500ms",
                   "--circuit-breaker-open", "50ms", "--max-in-flight", 12, "--max-waiting", 4,
                   "--upstream-keep-alive-timeout", "200ms", workers=steady)
    assert router.chat().status in (200, 500, 503, 504)
    before = open_files(router)
    stop = threading.Event()

    def keep_asking(seed):
        dice = random.Random(seed)
        while not stop.is_set():
            one_client(router, dice)

    with ThreadPoolExecutor(16) as pool:
        clients = [pool.submit(keep_asking, seed) for seed in range(16)]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            mortal = mock()
            added = wire.ask(router.port, "POST", "/workers", {"url": mortal.url}).json()
            time.sleep(0.2)
            mortal.kill()
            assert wire.ask(router.port, "DELETE", f"/workers/{added['id']}").status == 204
        stop.set()
        for client in clients:
            client.result()

    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "nothing is in flight")
    eventually(lambda: router.metric("fathom_worker_in_flight") == 0, "nor at the workers")
    assert router.health()["requests_waiting"] == 0
    for worker in steady:
        eventually(lambda: worker.stats()["in_flight"] == 0, "the workers are idle")
    eventually(lambda: open_files(router) <= before + 8, "its sockets are closed")
    eventually(lambda: router.chat().status == 200, "it serves")
