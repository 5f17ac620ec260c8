"""Engines in Python that tell of their KV caches, and the questions that a router is then asked.

The publishers are independent of Fathom: python3-zmq and python3-msgpack. They publish on XPUB
sockets, which are PUB sockets that can be asked whether a subscriber is there.
"""

import json
import re
import struct
import threading
import time

import msgpack
import zmq

import wire
from fake_engine import FakeEngine, whole_answer

BLOCK = 4
END = b"\xff" * 8
CLEARED = {"type": "AllBlocksCleared"}

# The elements of a positional event, in order; releases have the first so many of them.
STORED = ["type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
          "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind",
          "kv_cache_spec_sliding_window"]
REMOVED = ["type", "block_hashes", "medium", "group_idx"]


# --- what is said


def stored(hashes, tokens, parent=None, block_size=BLOCK, **fields):
    """As vLLM writes it today; fields add to it, or replace."""
    event = {"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent,
             "token_ids": tokens, "block_size": block_size, "lora_id": None, "medium": "GPU",
             "lora_name": None, "extra_keys": [None] * len(hashes), "group_idx": 0,
             "kv_cache_spec_kind": "full_attention"}
    return {**event, **fields}


def removed(hashes, **fields):
    return {"type": "BlockRemoved", "block_hashes": hashes, "medium": "GPU", "group_idx": 0,
            **fields}


def positional(event, length):
    """The first elements of the event, as older releases write it."""
    if event["type"] == "AllBlocksCleared":
        return ["AllBlocksCleared"]
    names = STORED if event["type"] == "BlockStored" else REMOVED
    return [event.get(name) for name in names[:length]]


def batch(*events, rank=0):
    return msgpack.packb([time.time(), list(events), rank])


def prompt_of(first, blocks, size=BLOCK):
    """Whole blocks that no prompt with another number begins with."""
    return [first * 1000 + i for i in range(blocks * size)]


def chain(first, blocks, **fields):
    """A store of a prompt's blocks from its beginning; block i is named first * 1000 + i."""
    return stored([first * 1000 + i for i in range(blocks)], prompt_of(first, blocks), **fields)


# --- how it is said


def bind(socket, port):
    """Port None picks a free one. One that has just been closed is let go of a little later."""
    if port is None:
        port = wire.free_port(8)  # with room for more ranks

    def attempt():
        try:
            socket.bind(f"tcp://127.0.0.1:{port}")
            return True
        except zmq.ZMQError as error:
            if error.errno != zmq.EADDRINUSE:
                raise
            return False
    wire.eventually(attempt, f"port {port} can be bound")
    return port


class Replayer(threading.Thread):
    """Answers those who want to hear again. `form` is how many frames a batch has: 3, or 4 with the
    topic. `mute` hears and says nothing; while `open` is not set, it says so far nothing. `asked` is
    where askers wanted to begin."""

    def __init__(self, kept, topic, port=None, form=4, mute=False):
        super().__init__(daemon=True)
        self.kept = kept
        self.topic = topic
        self.form = form
        self.mute = mute
        self.asked = []
        self.open = threading.Event()
        self.open.set()
        self.stopped = threading.Event()
        self.socket = zmq.Context.instance().socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.sndhwm = 0
        self.port = bind(self.socket, port)
        self.start()

    def run(self):
        while not self.stopped.is_set():
            if self.socket.poll(20):
                self.answer(self.socket.recv_multipart())
        self.socket.close()

    def answer(self, frames):
        if len(frames) != 3 or frames[1] or len(frames[2]) != 8:
            return  # as the engines do
        begin, = struct.unpack(">Q", frames[2])
        self.asked.append(begin)
        while not self.open.wait(0.02) and not self.stopped.is_set():
            pass
        if self.mute:
            return
        head, topic = [frames[0], b""], [self.topic] if self.form == 4 else []
        for sequence, payload in list(self.kept):
            if sequence >= begin:
                self.socket.send_multipart([*head, *topic, struct.pack(">Q", sequence), payload])
        self.socket.send_multipart([*head, *([b""] if topic else []), END, b""])

    def stop(self):
        self.stopped.set()
        self.join()


class Publisher:
    """The event stream of one rank, for as long as its process lives."""

    def __init__(self, topic="", port=None, replay=True, replay_port=None, form=4, mute=False,
                 dial=None):
        self.topic = topic.encode()
        self.next = 0
        self.kept = []
        self.socket = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.linger = 0
        self.socket.sndhwm = 0
        if dial:
            self.port = None
            self.socket.connect(dial)
        else:
            self.port = bind(self.socket, port)
        self.replayer = Replayer(self.kept, self.topic, replay_port, form, mute) if replay else None

    def wait_for_subscriber(self):
        self._wait_for(b"\1", "somebody subscribes")

    def wait_for_departure(self):
        self._wait_for(b"\0", "the subscriber leaves")

    def _wait_for(self, begin, what):
        assert self.socket.poll(wire.PATIENCE * 1000), what
        said = self.socket.recv()
        assert said[:1] == begin and self.topic.startswith(said[1:]), (what, said)

    def publish(self, *events, rank=0):
        """One batch."""
        self.send(batch(*events, rank=rank))

    def send(self, payload, live=True, keep=True):
        """`live`: it is published. `keep`: it can be replayed."""
        if keep:
            self.kept.append((self.next, payload))
        if live:
            self.send_frames(self.topic, struct.pack(">Q", self.next), payload)
        self.next += 1

    def send_frames(self, *frames):
        self.socket.send_multipart(frames)

    @property
    def last(self):
        return self.next - 1

    def close(self):
        if self.replayer:
            self.replayer.stop()
        self.socket.close()


class PagesEngine(FakeEngine):
    """A worker with nothing but the pages that it is given, as {target: JSON}."""

    def __init__(self, pages=None, answer=None):
        self.pages = dict(pages or {})
        super().__init__(answer or self._refuse)

    @staticmethod
    def _refuse(request, connection):
        connection.sendall(whole_answer("{}", "404 Not Found"))

    def _page(self, target):
        if target in ("/health", "/v1/models"):
            return super()._page(target)
        if target in self.pages:
            page = self.pages[target]
            return whole_answer(page if isinstance(page, str) else json.dumps(page))
        return whole_answer("{}", "404 Not Found")


class PolledEngine(PagesEngine):
    """A worker that hands out its events when it is asked, as TensorRT-LLM does."""

    def __init__(self):
        self.waiting = []
        self.last = -1
        super().__init__(answer=self._hand_out)

    def add(self, *data, window=131072, **fields):
        for one in data:
            self.last += 1
            self.waiting.append({"event_id": self.last, "window_size": window, "data": one,
                                 **fields})

    def _hand_out(self, request, connection):
        if request.target != "/kv_cache_events":
            return self._refuse(request, connection)
        count = len(self.waiting)
        events, self.waiting[:count] = self.waiting[:count], []
        connection.sendall(whole_answer(json.dumps(events)))


class KvEngine(PagesEngine):
    """A worker with one publisher per rank, on consecutive ports.

    With `tells` the engine says itself where its events are, as "vllm" or "sglang" do. Options are
    the publishers'.
    """

    def __init__(self, ranks=1, topic="", replay=True, pages=None, tells=None, **options):
        pages = dict(pages or {})
        self.topic = topic
        self.options = {"topic": topic, "replay": replay, **options}
        self.ranks = self._open(ranks)
        self.replay = replay
        if tells == "sglang":
            pages["/server_info"] = self._as_sglang()
        elif tells == "vllm" or ranks > 1:
            pages["/kv_event_sources"] = self._as_vllm()
        super().__init__(pages)

    def _open(self, count):
        while True:
            first = Publisher(**self.options)
            opened = [first]
            try:
                for rank in range(1, count):
                    opened.append(self._open_next(first, rank))
                return opened
            except zmq.ZMQError:  # the port after it is taken
                for publisher in opened:
                    publisher.close()

    def _open_next(self, first, rank):
        for port in (first.port, first.replayer.port) if first.replayer else (first.port,):
            with zmq.Context.instance().socket(zmq.PUB) as probe:
                probe.bind(f"tcp://127.0.0.1:{port + rank}")
        return Publisher(port=first.port + rank, **self.options,
                         replay_port=first.replayer and first.replayer.port + rank)

    def _as_vllm(self):
        return {str(rank): {"enable_kv_cache_events": True, "publisher": "zmq",
                            "endpoint": f"tcp://*:{publisher.port}",
                            "replay_endpoint": f"tcp://*:{publisher.replayer.port}"
                            if publisher.replayer else None,
                            "buffer_steps": 10000, "hwm": 100000, "max_queue_size": 100000,
                            "topic": self.topic}
                for rank, publisher in enumerate(self.ranks)}

    def _as_sglang(self):
        told = {"publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": self.ranks[0].port,
                "topic": self.topic, "block_size": BLOCK, "dp_size": len(self.ranks)}
        if self.replay:
            told["replay_endpoint_port_base"] = self.ranks[0].replayer.port
        return {"kv_events": told, "dp_size": len(self.ranks)}

    @property
    def publisher(self):
        return self.ranks[0]

    def entry(self):
        """How an operator describes it."""
        first = self.ranks[0]
        entry = {"url": self.url, "kv_events": f"tcp://127.0.0.1:{first.port}"}
        if first.replayer:
            entry["kv_events_replay"] = f"tcp://127.0.0.1:{first.replayer.port}"
        if self.topic:
            entry["kv_events_topic"] = self.topic
        return entry

    def replace(self, rank=0, kept=()):
        """Another process publishes in its place, and has already published `kept`."""
        old = self.ranks[rank]
        old.close()
        self.ranks[rank] = Publisher(port=old.port, **self.options,
                                     replay_port=old.replayer and old.replayer.port)
        for payload in kept:
            self.ranks[rank].send(payload)
        return self.ranks[rank]

    def stop(self):
        super().stop()
        for publisher in self.ranks:
            publisher.close()


# --- what the router has understood


def ask(router, method, target, body=None):
    """On a connection that is kept: tests ask thousands of times, and the port of a connection that
    was closed is taken for another minute."""
    for fresh in (False, True):
        if fresh or not hasattr(router, "kept_connection"):
            router.kept_connection = wire.Connection(router.port)
        try:
            router.kept_connection.request(method, target, body)
            return router.kept_connection.read_answer(method)
        except (OSError, wire.Truncated):  # it was idle for too long
            if fresh:
                raise
    return None


class Known:
    """A rank of an engine as a router knows it."""

    def __init__(self, router, engine, rank=0):
        self.router = router
        self.engine = engine
        self.rank = rank
        self.worker = int(router.worker_id(engine))

    @property
    def publisher(self):
        return self.engine.ranks[self.rank]

    def lookup(self, tokens, lora=None, salt=None):
        """The tokens that the prompt would find in the cache."""
        return lookup(self.router, tokens, lora, salt)[self.worker, self.rank]

    def held(self, *numbers):
        """Of which of these prompts of chain() there is something in the cache."""
        return [n for n in numbers if self.lookup(prompt_of(n, 3)) > 0]

    def state(self):
        """What /debug/index says; {} until the rank is known."""
        page = ask(self.router, "GET", "/debug/index").json()
        found = [rank for rank in page["ranks"]
                 if (rank["worker"], rank["rank"]) == (self.worker, self.rank)]
        assert len(found) <= 1, found
        return found[0] if found else {}

    def wait_for(self, condition, what):
        """Polls the state, more often than `eventually` does: tests do this all the time."""
        deadline = time.monotonic() + wire.PATIENCE
        while not condition(state := self.state()):
            assert time.monotonic() < deadline, f"not within {wire.PATIENCE} s: {what}: {state}"
            time.sleep(0.003)
        return state

    def catch_up(self):
        """Waits until everything published is in the index."""
        last = self.publisher.last
        return self.wait_for(lambda s: s.get("last_sequence") == last,
                             f"sequence {last} has been applied")

    def expect(self, **counts):
        """Waits for these counts, which are written a moment after the index is."""
        return self.wait_for(lambda s: counts.items() <= s.items(), counts)

    def complaints(self):
        """What the router's log has to say about the worker."""
        return [line for line in self.router.log_text().splitlines()
                if f"worker_id={self.worker} " in line and re.search("WARN|ERROR", line)]


def lookup(router, tokens, lora=None, salt=None):
    """{(worker, rank): cached tokens} of all ranks."""
    question = {"tokens": tokens}
    if lora is not None:
        question["lora"] = lora
    if salt is not None:
        question["salt"] = salt
    answer = ask(router, "POST", "/debug/lookup", question)
    assert answer.status == 200, answer.text()
    ranks = answer.json()["ranks"]
    found = {(entry["worker"], entry["rank"]): entry["cached_tokens"] for entry in ranks}
    assert len(found) == len(ranks), f"a rank is listed twice: {ranks}"
    return found


def add(router, engine, entry=None):
    """Adds the engine to a running router."""
    answer = wire.ask(router.port, "POST", "/workers", entry or {"url": engine.url})
    assert answer.status == 201, answer.text()


def join(router, engine, entry=None):
    """Adds the engine, as an operator describes it; the ranks, each with a subscription."""
    add(router, engine, entry or engine.entry())
    return follow(router, engine)


def follow(router, engine):
    """The ranks of an engine that the router has been told about, once it listens to them."""
    for publisher in engine.ranks:
        publisher.wait_for_subscriber()
    return [Known(router, engine, rank) for rank in range(len(engine.ranks))]


class Stable:
    """The engines of one test, which leave the router with it."""

    def __init__(self, router):
        self.router = router
        self.engines = []

    def start(self, kind=KvEngine, **options):
        self.engines.append(kind(**options))
        return self.engines[-1]

    def rank(self, **options):
        """The one rank of an engine that the router follows."""
        return join(self.router, self.start(**options))[0]

    def end(self):
        fleet = {entry["url"]: entry["id"] for entry in
                 self.router.get("/workers").json()["workers"]}
        for engine in self.engines:
            if engine.url in fleet:
                wire.ask(self.router.port, "DELETE", f"/workers/{fleet[engine.url]}")
            engine.stop()
