"""What running engines published and then found in their caches (tests/captures/raw), and the
obvious model of such a cache."""

import json
from collections import Counter
from dataclasses import dataclass

import msgpack

from conftest import ROOT

RAW = ROOT / "tests/captures/raw"
FULL = {None, "full_attention", "mla_attention"}


@dataclass
class Message:
    """One batch of events as it was published."""
    rank: int
    payload: bytes
    clears: bool  # it begins with AllBlocksCleared

    def events(self):
        return msgpack.unpackb(self.payload, strict_map_key=False)[1]

    def split(self):
        """The clears at its beginning, and the rest, as payloads of their own."""
        head, events, *tail = msgpack.unpackb(self.payload, strict_map_key=False)
        count = 0
        while count < len(events) and events[count]["type"] == "AllBlocksCleared":
            count += 1
        return [msgpack.packb([head, part, *tail])
                for part in (events[:count], events[count:]) if part]


@dataclass
class Call:
    """A request, and what its engine found."""
    note: str
    rank: int | None  # None: the engine chose, and did not show which
    tokens: list
    salt: str | None
    lora: str | None
    cached: int
    sequential: bool  # what it found is decided by the events before it
    cleared_late: bool  # ... and the clears that the next message begins with


class Restart:
    """The engine's process ended, and another one began."""


class Capture:
    """The timeline of one server: messages, calls and restarts."""

    def __init__(self, name):
        self.name = name
        events = [(e["t"] or e["ts"], e) for e in read(f"{name}.events.jsonl")]
        calls = read(f"{name}.requests.jsonl")
        self.topic = bytes.fromhex(events[0][1]["topic_hex"]).decode()
        self.ranks = 1 + max(event["rank"] for _, event in events)
        steps = [(t, message_of(event)) for t, event in events]
        steps += [(c["t_start"], self._call(c, events)) for c in calls if c.get("status") == 200]
        steps += [(c["t_start"], Restart()) for c in calls if c.get("marker") == "restart"]
        self.timeline = [step for _, step in sorted(steps, key=lambda timed: timed[0])]

    def _call(self, call, events):
        rank = call["rank"]
        if rank is None:  # the one that published because of it was chosen
            during = {e["rank"] for t, e in events if call["t_start"] <= t <= call["t_end"]}
            rank = during.pop() if len(during) == 1 else 0 if self.ranks == 1 else None
        return Call(call["note"], rank, call["tokens"], call["salt"], call["lora"],
                    call["cached_tokens"], not call["concurrent"], call["cleared_late"])

    def calls(self):
        return [step for step in self.timeline if isinstance(step, Call)]

    def lives(self):
        """The messages of each process, by rank."""
        lives = [[[] for _ in range(self.ranks)]]
        for step in self.timeline:
            if isinstance(step, Restart):
                lives.append([[] for _ in range(self.ranks)])
            elif isinstance(step, Message):
                lives[-1][step.rank].append(step)
        return lives


def read(file):
    return [json.loads(line) for line in (RAW / file).read_text().splitlines()]


def message_of(event):
    message = Message(event["rank"], bytes.fromhex(event["payload_hex"]), False)
    message.clears = message.events()[0]["type"] == "AllBlocksCleared"
    return message


class CacheModel:
    """A cache as its events describe it: how many copies of which prefix each group holds."""

    def __init__(self, events=()):
        self.size = 0
        self.windows = {}  # group -> tokens, 0 for full attention
        self.prefixes = {}  # hash -> (namespace, all tokens up to the block's end)
        self.copies = {}  # group -> Counter of hashes
        for event in events:
            self.apply(event)

    def apply(self, event):
        if event["type"] == "AllBlocksCleared":
            self.copies = {group: Counter() for group in self.copies}
        elif event["type"] == "BlockRemoved":
            self.copies[event.get("group_idx") or 0].subtract(event["block_hashes"])
        else:
            self.store(event)

    def store(self, event):
        self.size = event["block_size"]
        group = event.get("group_idx") or 0
        full = event.get("kv_cache_spec_kind") in FULL
        self.windows[group] = 0 if full else event["kv_cache_spec_sliding_window"]
        copies = self.copies.setdefault(group, Counter())
        before = (namespace_of(event), ())
        if event["parent_block_hash"] is not None:
            before = self.prefixes[event["parent_block_hash"]]
        namespace, prefix = before
        prefix += tuple(event["token_ids"])
        hashes = event["block_hashes"]
        for back, name in enumerate(reversed(hashes)):  # a window group names the last ones
            self.prefixes[name] = (namespace, prefix[:len(prefix) - back * self.size])
            copies[name] += 1

    def held(self):
        """group -> the prefixes of which it holds the last block."""
        return {group: {self.prefixes[name] for name, count in copies.items() if count > 0}
                for group, copies in self.copies.items()}

    def depth(self, tokens, salt=None):
        if not self.size:
            return 0
        held = self.held()
        ends = range(self.size, len(tokens), self.size)  # the last token is always computed
        has = {group: [(salt, tuple(tokens[:end])) in prefixes for end in ends]
               for group, prefixes in held.items()}
        return max((end for i, end in enumerate(ends, 1)
                    if all(self.reaches(has[g], i, self.windows[g]) for g in has)), default=0)

    def reaches(self, has, blocks, window):
        """Whether a group has what is needed to go on after so many blocks."""
        needed = blocks if window == 0 else min(blocks, -(-(window - 1) // self.size))
        return all(has[blocks - needed:blocks])


def namespace_of(event):
    """The salt, which vLLM puts into the first block's extra keys."""
    if event.get("cache_salt"):
        return event["cache_salt"]
    extra = (event.get("extra_keys") or [None])[0]
    return extra[0] if extra else None
