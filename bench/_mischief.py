"""Clients, workers and publishers that misbehave, each by the dice that it is given."""

import contextlib
import json
import socket
import struct
import threading
import time

from _rig import MODEL

OTHER_MODEL = "unruly-model"
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"


def chat(model, stream=True, **more):
    return json.dumps({"model": model, "stream": stream, "max_tokens": 50,
                       "messages": [{"role": "user", "content": "hello"}], **more}).encode()


def request(body, target="/v1/chat/completions", length=None):
    head = (f"POST {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body) if length is None else length}\r\n\r\n")
    return head.encode() + body


# What a client sends; then it reads for a moment, or not at all, and leaves.
CLIENTS = {
    "garbage": lambda dice: dice.randbytes(dice.randrange(1, 4096)),
    "half a head": lambda _: b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-a",
    "half a body": lambda _: request(chat(MODEL), length=100_000),
    "two lengths": lambda _: b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n"
                             b"content-length: 2\r\n\r\nab",
    "long name": lambda dice: request(chat("m" * dice.randrange(4000, 4 << 20))),
    "long head": lambda dice: b"GET /live HTTP/1.1\r\nx: " + b"h" * dice.randrange(1, 1 << 20),
    "ids": lambda dice: request(b'{"model":"%s","prompt":[1%s]}' % (
        MODEL.encode(), b",1" * dice.randrange(1 << 20)), "/v1/completions"),
    "deep": lambda dice: request(b"[" * dice.randrange(1, 10_000)),
    "leaves": lambda _: request(chat(MODEL)),
    "other model": lambda _: request(chat(OTHER_MODEL)),
    "pages": lambda dice: b"GET /%s HTTP/1.1\r\nhost: localhost\r\n\r\n" % dice.choice(
        [b"metrics", b"health", b"debug/decisions?limit=1000", b"debug/index", b"workers"]) * 8,
    "unknown worker": lambda dice: request(b'{"url":"http://127.0.0.1:%d"}' % dice.randrange(1, 9),
                                           "/workers"),
}


def be_a_client(dice, port):
    sent = CLIENTS[dice.choice(list(CLIENTS))](dice)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as client:
        client.settimeout(dice.random())
        client.sendall(sent)
        for _ in range(dice.randrange(3)):
            client.recv(1 << 14)


# What a publisher of events sends after it has introduced itself, or instead.
PUBLISHERS = {
    "garbage": lambda dice: dice.randbytes(dice.randrange(1, 1 << 16)),
    "silence": lambda _: b"",
    "never ends": lambda _: GREETING + READY + b"\x01\xff" * 4096,
    "huge frame": lambda dice: GREETING + READY + b"\x02" + struct.pack(">Q", dice.getrandbits(63)),
    "large frames": lambda _: GREETING + READY + (b"\x03" + struct.pack(">Q", 1 << 20)
                                                  + bytes(1 << 20)) * 8,
    "stray batches": lambda _: GREETING + READY + b"\x01\x01t\x01\x08" + bytes(8) + b"\x00\x01\x90",
}


def be_a_publisher(dice, port):
    sent = PUBLISHERS[dice.choice(list(PUBLISHERS))](dice)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as peer:
        peer.settimeout(1)
        peer.sendall(sent)
        peer.recv(1 << 10)
        time.sleep(dice.random())


class UnrulyWorker(threading.Thread):
    """Healthy, with a model of its own, and every other answer is something else."""

    ANSWERS = {
        "garbage": lambda dice: dice.randbytes(dice.randrange(1, 1 << 16)),
        "silence": lambda _: b"",
        "half a head": lambda _: b"HTTP/1.1 200 OK\r\ncontent-le",
        "half a body": lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc",
        "long head": lambda _: b"HTTP/1.1 200 OK\r\nx: " + b"h" * (1 << 20),
        "long event": lambda _: b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: "
                                + b"x" * (8 << 20),
        "refusal": lambda _: b"HTTP/1.1 500 no\r\ncontent-length: 0\r\n\r\n",
    }

    def __init__(self, dice):
        super().__init__(daemon=True)
        self.dice = dice
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        with peer, contextlib.suppress(OSError):
            peer.settimeout(5)
            asked = peer.recv(1 << 16)
            if asked.startswith(b"GET /health"):
                return peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            if asked.startswith(b"GET /v1/models"):
                page = json.dumps({"data": [{"id": OTHER_MODEL}]}).encode()
                return peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"
                                    % (len(page), page))
            return peer.sendall(self.ANSWERS[self.dice.choice(list(self.ANSWERS))](self.dice))


class Mischief(threading.Thread):
    """One after the other, until it is stopped."""

    def __init__(self, be, dice, port):
        super().__init__(daemon=True)
        self.be, self.dice, self.port, self.done, self.count = be, dice, port, False, 0
        self.start()

    def run(self):
        while not self.done:
            self.be(self.dice, self.port)
            self.count += 1

    def stop(self):
        self.done = True
        self.join()
        return self.count
