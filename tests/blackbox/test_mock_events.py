"""The KV events of the simulated engine, read by independent decoders: python3-zmq and
python3-msgpack. What they say must be what the engine then finds in its cache."""

import struct
import time

import msgpack
import pytest
import zmq

import wire
from wire import eventually, free_port

BLOCK = 4
END = b"\xff" * 8
QUIET = 300  # milliseconds without a message that mean there is none

VLLM = ["0.9.0", "0.9.1", "0.10.2", "0.14", "0.17", "0.20", "0.22", "0.24", "0.26", "0.32"]
SGLANG = ["0.5.6", "0.5.9", "0.5.18", "0.5.23"]

# The names of a positional event's elements, in order, and how many of them a release has.
STORED = ["type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id",
          "medium", "lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind",
          "kv_cache_spec_sliding_window"]
REMOVED = ["type", "block_hashes", "medium", "group_idx"]
STORED_LENGTH = {"0.9.0": 6, "0.9.1": 6, "0.10.2": 7, "0.14": 8, "0.17": 9, "0.20": 10, "0.22": 12,
                 "0.5.6": 6, "0.5.9": 7, "0.5.18": 7}


@pytest.fixture
def simulated(mock):
    def start(**options):
        return mock(**{"profile": "h200-llama-3.1-8b", "speedup": 1000, "block_size": BLOCK,
                       **options})
    return start


def complete(process, prompt, headers=(), **fields):
    """The prompt tokens that the engine found in its cache."""
    body = {"model": "mock-model", "prompt": prompt, "max_tokens": 1, **fields}
    answer = wire.ask(process.port, "POST", "/v1/completions", body, headers)
    assert answer.status == 200, answer.text()
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def sources(process):
    return wire.get(process.port, "/kv_event_sources").json()


def local(endpoint):
    """What a wildcard means: the worker's host."""
    return endpoint.replace("*", "127.0.0.1")


class Subscriber:
    def __init__(self, endpoint, topic="", bind=False):
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.linger = 0
        self.socket.subscribe(topic)
        monitor = self.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        if bind:
            self.port = self.socket.bind_to_random_port(endpoint)
        else:
            self.socket.connect(endpoint)
            assert monitor.poll(wire.PATIENCE * 1000), "connected"
            time.sleep(0.1)  # the subscription travels

    def messages(self, count=None):
        """As many as that, or until it is quiet."""
        found = []
        while count is None or len(found) < count:
            if not self.socket.poll(QUIET if count is None else wire.PATIENCE * 1000):
                break
            topic, sequence, payload = self.socket.recv_multipart()
            found.append((topic.decode(), struct.unpack(">Q", sequence)[0],
                          msgpack.unpackb(payload, strict_map_key=False)))
        assert count is None or len(found) == count
        return found

    def batches(self, count=None):
        return [batch for _, _, batch in self.messages(count)]

    def close(self):
        self.socket.disable_monitor()
        self.socket.close()


@pytest.fixture
def subscribe():
    opened = []

    def start(endpoint, topic="", bind=False):
        opened.append(Subscriber(endpoint, topic, bind))
        return opened[-1]

    yield start
    for subscriber in opened:
        subscriber.close()


def replay(endpoint, start, frames=(b"",), patience=wire.PATIENCE):
    """The raw answers up to the end mark, which is left out; None if there is none at all."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.linger = 0
    socket.connect(endpoint)
    socket.send_multipart([*frames, struct.pack(">Q", start)])
    answers = []
    try:
        while socket.poll(patience * 1000 if frames else QUIET):
            answer = socket.recv_multipart()
            assert answer[0] == b""
            if answer[-2] == END and answer[-1] == b"":
                return answers
            answers.append(answer)
        assert not answers, "an answer without its end"
        return None
    finally:
        socket.close()


def sequences(answers):
    return [struct.unpack(">Q", answer[-2])[0] for answer in answers]


def named(event):
    """An event of either form as a map."""
    if isinstance(event, dict):
        return event
    names = STORED if event[0] == "BlockStored" else REMOVED
    return dict(zip(names, event))


class Cache:
    """What the events say that a rank holds: the tokens of every prefix, counted by hash."""

    def __init__(self, batches=()):
        self.tokens = {}  # of a block and all before it
        self.copies = {}
        for batch in batches:
            self.apply(batch[1])

    def apply(self, events):
        for event in map(named, events):
            if event["type"] == "AllBlocksCleared":
                self.tokens.clear()
                self.copies.clear()
            elif event["type"] == "BlockRemoved":
                for block in event["block_hashes"]:
                    self.copies[block] -= 1
            else:
                self.store(event)

    def store(self, event):
        parent = event["parent_block_hash"]
        before = [] if parent is None else self.tokens[parent]
        size = event["block_size"]
        assert len(event["token_ids"]) == size * len(event["block_hashes"])
        for i, block in enumerate(event["block_hashes"]):
            before = before + event["token_ids"][i * size:(i + 1) * size]
            self.tokens[block] = before
            self.copies[block] = self.copies.get(block, 0) + 1

    def depth(self, prompt, size=BLOCK):
        held = {tuple(self.tokens[b]) for b, n in self.copies.items() if n > 0}
        most = (len(prompt) - 1) // size * size
        depth = 0
        while depth < most and tuple(prompt[:depth + size]) in held:
            depth += size
        return depth


def prompts():
    """Some that share prefixes, enough to evict from a small cache."""
    base = list(range(1, 41))
    yield base[:22]
    yield base
    yield base[:9] + [7000 + i for i in range(20)]
    for i in range(12):
        yield [100 * i + j for j in range(1, 30)]
    yield base
    yield [100 * 11 + j for j in range(1, 30)]


# --- what is said


@pytest.mark.parametrize("engine,version", [("vllm", v) for v in VLLM]
                         + [("sglang", v) for v in SGLANG] + [("trtllm", "stream")])
def test_the_published_events_say_what_the_engine_then_finds(simulated, subscribe, engine, version):
    worker = simulated(engine=engine, wire=version, num_blocks=60, kv_events_topic="kv@m",
                       kv_events_port=free_port())
    events = subscribe(f"tcp://127.0.0.1:{worker_port(worker, engine)}", "kv@")
    cache = Cache()
    said = []
    for prompt in prompts():
        expected = cache.depth(prompt)
        assert complete(worker, prompt) == expected
        computed = len(prompt) // BLOCK * BLOCK > expected  # at least one block
        for topic, _, batch in events.messages(1 if computed else None):
            assert topic == "kv@m"
            cache.apply(batch[1])
            said.append(batch)
    assert len(said) >= 15
    assert any(named(e)["type"] == "BlockRemoved" for batch in said for e in batch[1])
    check_form(engine, version, said)


def worker_port(worker, engine):
    """TensorRT-LLM has no page that tells; the others have, and tell the truth."""
    if engine == "vllm":
        assert sources(worker)["0"]["enable_kv_cache_events"]
        return int(sources(worker)["0"]["endpoint"].rsplit(":", 1)[1])
    if engine == "sglang":
        return wire.get(worker.port, "/server_info").json()["kv_events"]["endpoint_port_base"]
    return int(worker.popen.args[worker.popen.args.index("--kv-events-port") + 1])


def check_form(engine, version, batches):
    maps = engine == "trtllm" or version in ("0.24", "0.26", "0.32", "0.5.23")
    for batch in batches:
        assert len(batch) == (2 if version == "0.9.0" else 3)
        assert abs(batch[0] - time.time()) < wire.PATIENCE
        assert batch[2:] == ([] if version == "0.9.0" else [0])
        for event in batch[1]:
            assert isinstance(event, dict) == maps
            if not maps and event[0] == "BlockStored":
                assert len(event) == STORED_LENGTH[version]
    hashes = [h for batch in batches for e in batch[1] for h in named(e).get("block_hashes", [])]
    assert any(h < 0 for h in hashes) == (engine != "vllm")


def test_hashes_can_be_bytes(simulated, subscribe):
    worker = simulated(wire_hashes="bytes")
    events = subscribe(local(sources(worker)["0"]["endpoint"]))
    complete(worker, list(range(20)))
    stored = events.batches(1)[0][1][0]
    assert [len(h) for h in stored["block_hashes"]] == [32] * 5
    assert all(isinstance(h, bytes) for h in stored["block_hashes"])


def test_an_adapter_and_a_salt_are_named_as_vllm_names_them(simulated, subscribe):
    worker = simulated()
    events = subscribe(local(sources(worker)["0"]["endpoint"]))
    complete(worker, list(range(9)), cache_salt="S")
    assert events.batches(1)[0][1][0]["extra_keys"] == [["S"], None]


def test_a_salt_is_a_field_in_sglang(simulated, subscribe):
    worker = simulated(engine="sglang")
    port = worker_port(worker, "sglang")
    events = subscribe(f"tcp://127.0.0.1:{port}")
    complete(worker, list(range(9)), cache_salt="S")
    complete(worker, list(range(50, 59)))
    salted, plain = (batch[1][0] for batch in events.batches(2))
    assert salted["cache_salt"] == "S"
    assert "cache_salt" not in plain


def test_a_reset_is_told_with_the_next_step(simulated, subscribe):
    worker = simulated()
    events = subscribe(local(sources(worker)["0"]["endpoint"]))
    complete(worker, list(range(9)))
    assert wire.ask(worker.port, "POST", "/reset_prefix_cache", {}).json()["success"]
    assert complete(worker, list(range(9))) == 0
    assert [e["type"] for batch in events.batches(2) for e in batch[1]] == \
        ["BlockStored", "AllBlocksCleared", "BlockStored"]


# --- where it is said


def test_every_rank_has_its_own_stream(simulated, subscribe):
    worker = simulated(dp_size=3)
    told = sources(worker)
    ports = [int(told[str(rank)]["endpoint"].rsplit(":", 1)[1]) for rank in range(3)]
    assert ports == [ports[0], ports[0] + 1, ports[0] + 2]
    assert told["2"]["buffer_steps"] == 10000
    streams = [subscribe(local(told[str(rank)]["endpoint"])) for rank in range(3)]
    complete(worker, list(range(9)), headers=[("X-data-parallel-rank", "2")])
    assert streams[2].batches(1)[0][2] == 2
    assert streams[0].messages() == []


def test_sglang_tells_where_its_events_are(simulated, subscribe):
    worker = simulated(engine="sglang", dp_size=2, kv_events_topic="sg")
    told = wire.get(worker.port, "/server_info").json()["kv_events"]
    base = told.pop("endpoint_port_base")
    replays = told.pop("replay_endpoint_port_base")
    assert told == {"publisher": "zmq", "endpoint_host": "*", "topic": "sg", "block_size": BLOCK,
                    "dp_size": 2}
    events = subscribe(f"tcp://127.0.0.1:{base + 1}", "sg")
    complete(worker, list(range(9)), headers=[("X-Data-Parallel-Rank", "1")])
    assert events.messages(1)[0][1] == 1  # 0 said that the cache was empty
    answers = replay(f"tcp://127.0.0.1:{replays + 1}", 0)
    assert sequences(answers) == [0, 1]
    assert msgpack.unpackb(answers[0][-1])[1] == [{"type": "AllBlocksCleared"}]


def test_a_bound_subscriber_can_be_dialled(simulated, subscribe):
    events = subscribe("tcp://127.0.0.1", bind=True)
    endpoint = f"tcp://127.0.0.1:{events.port}"
    worker = simulated(kv_events_connect=endpoint)
    assert sources(worker)["0"]["endpoint"] == endpoint
    assert events.messages() == []  # time for the subscription to travel
    complete(worker, list(range(9)))
    assert len(events.batches(1)) == 1


def test_events_can_be_off(simulated):
    worker = simulated(kv_events="off")
    assert sources(worker) == {}


# --- replay


@pytest.mark.parametrize("version,frames", [("0.25", 3), ("0.26", 4), ("0.32", 4)])
def test_what_was_published_can_be_replayed(simulated, version, frames):
    worker = simulated(wire=version, kv_events_topic="kv@m", kv_events_buffer=3)
    endpoint = local(sources(worker)["0"]["replay_endpoint"])
    for i in range(5):
        complete(worker, list(range(10 * i, 10 * i + 9)))
    answers = eventually(lambda: [a for a in [replay(endpoint, 0)] if len(a) == 3],
                         "the last batch is there")[0]
    assert sequences(answers) == [2, 3, 4]
    assert all(len(answer) == frames for answer in answers)
    assert frames == 3 or answers[0][1] == b"kv@m"
    assert msgpack.unpackb(answers[-1][-1])[1][0]["token_ids"] == list(range(40, 48))
    assert sequences(replay(endpoint, 4)) == [4]
    assert replay(endpoint, 99) == []
    assert replay(endpoint, 0, frames=()) is None, "a request without the empty frame"


def test_there_need_be_no_replay(simulated):
    worker = simulated(kv_events_replay_port="off")
    assert sources(worker)["0"]["enable_kv_cache_events"]


# --- faults


def publish_five(worker, subscribe):
    told = sources(worker)["0"]
    events = subscribe(local(told["endpoint"]))
    for i in range(5):
        complete(worker, list(range(10 * i, 10 * i + 9)))
    live = [sequence for _, sequence, _ in events.messages()]
    return live, sequences(replay(local(told["replay_endpoint"]), 0))


def test_a_dropped_batch_can_be_replayed_and_a_lost_one_cannot(simulated, subscribe):
    assert publish_five(simulated(kv_drop_every=2), subscribe) == ([0, 2, 4], [0, 1, 2, 3, 4])
    assert publish_five(simulated(kv_lose_every=2), subscribe) == ([0, 2, 4], [0, 2, 4])


def test_a_silent_engine_claims_to_publish(simulated, subscribe):
    worker = simulated(kv_silent=True)
    assert sources(worker)["0"]["enable_kv_cache_events"]
    assert publish_five(worker, subscribe) == ([], [])


def test_events_can_be_late(simulated, subscribe):
    worker = simulated(kv_delay="700ms")
    events = subscribe(local(sources(worker)["0"]["endpoint"]))
    begun = time.monotonic()
    complete(worker, list(range(9)))
    assert len(events.messages(1)) == 1
    assert time.monotonic() - begun >= 0.7


def test_events_can_claim_another_block_size(simulated, subscribe):
    worker = simulated(kv_block_size_label=64)
    events = subscribe(local(sources(worker)["0"]["endpoint"]))
    complete(worker, list(range(9)))
    stored = events.batches(1)[0][1][0]
    assert stored["block_size"] == 64
    assert stored["token_ids"] == list(range(8))
    assert len(stored["block_hashes"]) == 2


def test_a_restart_empties_the_cache_and_begins_at_zero(simulated, subscribe):
    worker = simulated(kv_restart_after=2)
    told = sources(worker)["0"]
    events = subscribe(local(told["endpoint"]))
    prompt = list(range(20))
    assert complete(worker, prompt) == 0
    assert complete(worker, prompt + list(range(50, 60))) == 20
    assert complete(worker, prompt) == 0, "nothing is left"
    assert [sequence for _, sequence, _ in events.messages(2)] == [0, 1]
    # A subscriber that is slow to come back has missed what was published since, as with an engine.
    # A question that met the old socket is lost with it.
    first, = eventually(lambda: replay(local(told["replay_endpoint"]), 0, patience=2), "the new socket answers")
    assert sequences([first]) == [0]
    cache = Cache([msgpack.unpackb(first[-1], strict_map_key=False)])
    assert complete(worker, prompt) == cache.depth(prompt) == 16
    assert sources(worker)["0"] == told
    # It may have missed the first of them, but they do not go on where the engine before it ended.
    assert all(sequence < 2 for _, sequence, _ in events.messages())


# --- polling


def poll(worker):
    return wire.ask(worker.port, "POST", "/kv_cache_events", {}).json()


def test_tensorrt_llm_is_polled(simulated):
    worker = simulated(engine="trtllm", num_blocks=101)
    created, = poll(worker)
    assert created["event_id"] == 0
    assert created["data"] == {"type": "created", "num_blocks_per_cache_level": [100, 0]}
    assert poll(worker) == []
    complete(worker, list(range(1, 10)))
    stored, = poll(worker)
    assert stored["event_id"] == 1
    assert stored["data"]["parent_hash"] is None
    tokens = [[t["token_id"] for t in block["tokens"]] for block in stored["data"]["blocks"]]
    assert tokens == [[1, 2, 3, 4], [5, 6, 7, 8]]
    complete(worker, list(range(1, 14)))
    child, = poll(worker)
    assert child["data"]["parent_hash"] == stored["data"]["blocks"][-1]["block_hash"]


def test_polled_events_show_a_gap_in_their_ids(simulated):
    worker = simulated(engine="trtllm", kv_drop_every=2)
    for i in range(4):
        complete(worker, list(range(10 * i, 10 * i + 9)))
    assert [event["event_id"] for event in poll(worker)] == [0, 1, 3]


# --- what cannot be


@pytest.mark.parametrize("flags,problem", [
    (["--wire", "0.8"], "vllm publishes usable KV events only since 0.9.0"),
    (["--wire", "latest"], "'latest' is not a version of vllm"),
    (["--engine", "sglang", "--wire-hashes", "bytes"], "only vllm 0.10.2 and later"),
    (["--engine", "trtllm", "--wire", "1.0"], "trtllm has poll and stream"),
    (["--kv-events-connect", "tcp:/x"], "'tcp:/x' is not a ZeroMQ endpoint"),
    (["--kv-events-replay-port", "none"], "must be a port, 0 or off"),
])
def test_what_cannot_be_is_refused_with_the_reason(flags, problem):
    from conftest import run_fathom
    ended = run_fathom("mock", "--port", 0, *flags)
    assert ended.returncode == 78
    assert problem in ended.stderr
