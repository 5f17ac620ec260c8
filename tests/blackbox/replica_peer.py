"""A replica that is none of ours: the messages of docs/design/0013-replicas.md, written a second time."""

import hashlib
import hmac
import os
import struct
import threading

import msgpack

PRESENCE, GAUGES, PROMPTS, SESSIONS, PINS, POLLED, CHALLENGE, PROOF, ASK, PIECE = range(1, 11)


def seal(key, message):
    return message + hmac.new(key, message, hashlib.sha256).digest()[:16]


def unseal(key, sealed):
    message, tag = sealed[:-16], sealed[-16:]
    assert hmac.compare_digest(tag, hmac.new(key, message, hashlib.sha256).digest()[:16])
    return msgpack.unpackb(message, raw=False, strict_map_key=False)


class Peer:
    """Answers challenges, and says what it is told to. `minor` and `more` make it a newer release."""

    def __init__(self, client, key, group="fathom", name="python", minor=0, more=()):
        self.client, self.key, self.group, self.name = client, key, group, name
        self.minor, self.more = minor, list(more)
        self.incarnation = struct.unpack("<Q", os.urandom(8))[0]
        self.number, self.proofs = 0, 0
        self.lock = threading.Lock()
        client.on_message = self.heard

    def heard(self, sealed):
        try:
            head = unseal(self.key, sealed)
        except Exception:  # of another key, or garbage
            return
        if head[7] == CHALLENGE and head[8][0] == self.name and head[8][1] == self.incarnation:
            self.proofs += 1
            self.say(PROOF, [head[4], head[8][2]])

    def message(self, kind, content):
        with self.lock:
            self.number += 1
            return seal(self.key, msgpack.packb(["fathom", 1, self.minor, self.group, self.name, self.incarnation,
                                                 self.number, kind, content + self.more]))

    def say(self, kind, content):
        self.client.publish(f"fathom.{self.group}.all", self.message(kind, content))

    def be_present(self, url="", models=()):
        self.say(PRESENCE, [1000, url, list(models), False, "9.9.9", 1, [], 0, False])

    def place(self, worker, requests, queued=0.0):
        """Says what it has on rank 0 of a worker."""
        label = [worker, 0]
        self.say(GAUGES, [None, [[label, queued, queued, 0, 0, requests, requests] + self.more]])
