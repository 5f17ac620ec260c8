"""`fathom listen`: what an independent publisher (python3-zmq, python3-msgpack) says is what is
shown, in text and in JSON."""

import json
import socket
import struct
import subprocess
import threading
import time

import msgpack
import pytest
import zmq

import wire
from conftest import FATHOM, ROOT, clean_environment, json_lines, run_fathom
from fake_engine import whole_answer

CAPTURES = ROOT / "tests/captures/raw"
SECRET_TOKENS = list(range(777700, 777732))


def stored(hashes, parent=None, tokens=None, **more):
    tokens = SECRET_TOKENS[:16 * len(hashes)] if tokens is None else tokens
    return {"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent,
            "token_ids": tokens, "block_size": 16, "lora_id": None, "medium": "GPU",
            "lora_name": None, **more}


def batch(*events, rank=0):
    return msgpack.packb([time.time(), list(events), rank])


CLEARED = {"type": "AllBlocksCleared"}


class Publisher:
    """A PUB socket that waits until somebody subscribes."""

    def __init__(self, topic=b""):
        self.topic = topic
        self.socket = zmq.Context.instance().socket(zmq.XPUB)
        self.socket.linger = 0
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{self.port}"

    def await_subscriber(self):
        assert self.socket.poll(wire.PATIENCE * 1000), "subscribed"
        return self.socket.recv()[1:]

    def send(self, sequence, payload, topic=None):
        self.socket.send_multipart([self.topic if topic is None else topic,
                                    struct.pack(">Q", sequence), payload])

    def close(self):
        self.socket.close()


@pytest.fixture
def publish():
    made = []

    def start(topic=b""):
        made.append(Publisher(topic))
        return made[-1]

    yield start
    for publisher in made:
        publisher.close()


class Listener:
    def __init__(self, *args):
        self.popen = subprocess.Popen([FATHOM, "listen", *map(str, args)], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      stdin=subprocess.DEVNULL, env=clean_environment())

    def end(self, status=0):
        out, self.notes = self.popen.communicate(timeout=wire.PATIENCE)
        assert self.popen.returncode == status, self.notes
        return out


@pytest.fixture
def listen():
    started = []

    def start(*args):
        started.append(Listener(*args))
        return started[-1]

    yield start
    for listener in started:
        if listener.popen.poll() is None:
            listener.popen.kill()
            listener.popen.communicate()


def without_time(text):
    """Lines without the time that each of them begins with."""
    return [line.split(" ", 1)[1] for line in text.splitlines()]


def test_text_shows_each_event(publish, listen):
    engine = publish(b"kv")
    listener = listen(engine.endpoint, "--count", 3)
    assert engine.await_subscriber() == b""
    engine.send(41, batch(stored([1, -2], parent=0x9f3a, lora_name="ada")))
    engine.send(42, batch({"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU"}, CLEARED))
    engine.send(43, batch(["Surprise", 1], stored([3], block_size="x"), ["BlockRemoved", []]))
    lines = without_time(listener.end())
    assert lines[0] == f"rank 0  connected to {engine.endpoint}"
    assert lines[1] == ("rank 0 seq 41  +2 blocks x16 0000000000000001 fffffffffffffffe after "
                        "0000000000009f3a  device group 0 full  lora ada")
    assert lines[2:4] == ["rank 0 seq 42  -1 block 0000000000000001  host group 0",
                          "rank 0 seq 42  cleared"]
    assert lines[4] == "rank 0 seq 43  2 malformed events left out: event 0: the type 'Surprise' is not known"
    assert lines[5] == "rank 0 seq 43  1 event without blocks"
    assert lines[6].startswith("in all ")
    assert "3 batches  +2 -1 blocks  1 clear" in lines[6]
    assert len(lines) == 7


def test_token_ids_and_salts_are_not_shown_unless_asked_for(publish, listen):
    for flags, shown in [([], False), (["--json"], False), (["--tokens"], True),
                         (["--json", "--tokens"], True)]:
        engine = publish()
        listener = listen(engine.endpoint, "--count", 1, *flags)
        engine.await_subscriber()
        engine.send(0, batch(stored([1], cache_salt="tenant-secret")))
        out = listener.end()
        assert ("777700" in out) == shown
        assert "tenant-secret" not in out
        assert "salted" in out


def test_gaps_restarts_and_garbage_are_shown(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint, "--count", 5)
    engine.await_subscriber()
    engine.send(43, batch(CLEARED))
    engine.send(47, batch(CLEARED))
    engine.send(48, b"\xc1\x1b[2J")
    engine.send(0, batch(CLEARED))
    engine.socket.send_multipart([b"", b"short"])
    text = listener.end()
    assert "seq 44..46 missing (3 batches)" in text
    assert "rank 0 seq 48  malformed: " in text
    assert "seq went back from 48 to 0" in text
    assert "malformed: no sequence number of 8 bytes (5 bytes)" in text
    assert "3 batches missing in 1 gap  1 restart  2 malformed" in text.splitlines()[-1]
    assert "\x1b" not in text, "no colour on a pipe"


def test_json_is_one_object_per_line_and_nothing_else(publish, listen):
    engine = publish(b"kv@m")
    listener = listen(engine.endpoint, "--json", "--count", 3)
    engine.await_subscriber()
    big = 2**63 + 5
    engine.send(1, batch(stored([big], parent=None), CLEARED, rank=3))
    engine.send(3, batch({"type": "BlockRemoved", "block_hashes": [big]}, rank=3))
    engine.send(4, b"nonsense")
    lines = json_lines(listener.end())
    assert [line["kind"] for line in lines] == ["connected", "batch", "gap", "batch", "malformed",
                                                "summary"]
    first = lines[1]
    assert (first["rank"], first["seq"], first["topic"]) == (3, 1, "kv@m")
    assert first["source"] == engine.endpoint
    assert abs(first["time"] - first["timestamp"]) < wire.PATIENCE
    assert first["events"][0] == {
        "type": "stored", "hashes": ["8000000000000005"], "parent": None, "block_size": 16,
        "token_count": 16, "tier": "device", "group": 0, "group_kind": "full", "window": 0,
        "lora": None, "salted": False, "pairs": False, "extra_keys": 0}
    assert first["events"][1] == {"type": "cleared"}
    assert (lines[2]["first"], lines[2]["last"]) == (2, 2)
    assert lines[3]["events"][0]["hashes"] == ["8000000000000005"]
    assert lines[4]["seq"] == 4
    last = lines[-1]
    assert last["final"]
    assert (last["batches"], last["blocks_stored"], last["blocks_removed"]) == (2, 1, 1)
    assert (last["gaps"], last["missing"], last["malformed"]) == (1, 1, 1)


def test_json_lines_leave_at_once(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint, "--json")
    engine.await_subscriber()
    engine.send(0, batch(CLEARED))
    assert json.loads(listener.popen.stdout.readline())["kind"] == "connected"
    assert json.loads(listener.popen.stdout.readline())["kind"] == "batch"
    listener.popen.terminate()
    last = json_lines(listener.end())[-1]
    assert last["kind"] == "summary" and last["final"]


def test_an_interrupt_ends_it_with_a_summary(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint)
    engine.await_subscriber()
    listener.popen.send_signal(2)
    assert listener.end().splitlines()[-1].startswith("== in all ")


def test_summaries_come_at_an_interval(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint, "--interval", "100ms", "--for", "1s")
    engine.await_subscriber()
    engine.send(0, batch(CLEARED))
    summaries = [line for line in listener.end().splitlines() if line.startswith("-- 0.")]
    assert len(summaries) >= 3
    assert any("no gaps  lag " in line for line in summaries)


def test_only_the_topic_is_shown(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint, "--topic", "kv@a", "--count", 1)
    assert engine.await_subscriber() == b"kv@a"
    engine.send(0, batch(CLEARED), topic=b"kv@b")
    engine.send(7, batch(CLEARED), topic=b"kv@a-1")
    assert "seq 7  cleared" in listener.end()


def test_engines_can_dial_in(listen):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    listener = listen("--bind", f"tcp://127.0.0.1:{port}", "--count", 2)
    engines = []
    for name in (b"kv@a", b"kv@b"):
        engine = Publisher(name)
        engine.socket.connect(f"tcp://127.0.0.1:{port}")
        engine.await_subscriber()
        engine.send(5, batch(CLEARED, rank=1))
        engines.append(engine)
    text = listener.end()
    for engine in engines:
        engine.close()
    assert text.count("rank 1 seq 5  cleared") == 2
    assert "restarted" not in text, "each engine counts for itself"


@pytest.mark.parametrize("name", ["vllm-0.32-bs32", "vllm-0.32-hybrid", "sglang-0.5.23-ps16"])
def test_everything_that_a_real_engine_said_is_understood(publish, listen, name):
    lines = (CAPTURES / f"{name}.events.jsonl").read_text().splitlines()
    messages = [json.loads(line) for line in lines]
    engine = publish()
    listener = listen(engine.endpoint, "--json", "--count", len(messages))
    engine.await_subscriber()
    for message in messages:
        engine.send(message["seq"], bytes.fromhex(message["payload_hex"]),
                    bytes.fromhex(message["topic_hex"]))
    shown = [line for line in json_lines(listener.end()) if line["kind"] == "batch"]
    assert [line["seq"] for line in shown] == [message["seq"] for message in messages]
    kinds = {"BlockStored": "stored", "BlockRemoved": "removed", "AllBlocksCleared": "cleared"}
    for line, message in zip(shown, messages):
        payload = msgpack.unpackb(bytes.fromhex(message["payload_hex"]), strict_map_key=False)
        assert line["malformed"] == line["ignored"] == 0
        assert [event["type"] for event in line["events"]] == [
            kinds[event["type"]] for event in payload[1]]
        for event, said in zip(line["events"], payload[1]):
            wanted = [f"{value % 2**64:016x}" for value in said.get("block_hashes", [])]
            assert event.get("hashes", []) == wanted


# --- asking a worker where its events are


class Worker:
    """Answers GETs from a table of pages, and POST /kv_cache_events from a list."""

    def __init__(self, pages, polls=None):
        self.pages = pages
        self.polls = polls
        self.posts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _answer(self, method, path):
        if path == "/kv_cache_events" and self.polls is not None:
            if method != "POST":
                return whole_answer("{}", status="405 Method Not Allowed")
            self.posts += 1
            return whole_answer(json.dumps(self.polls.pop(0) if self.polls else []))
        page = self.pages.get(path)
        if page is None:
            return whole_answer('{"detail":"Not Found"}', status="404 Not Found")
        return whole_answer(page if isinstance(page, str) else json.dumps(page))

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(1 << 16)
                method, path, _ = data.split(b"\r\n")[0].decode().split(" ")
                connection.sendall(self._answer(method, path))

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def worker():
    made = []

    def start(pages, polls=None):
        made.append(Worker(pages, polls))
        return made[-1]

    yield start
    for started in made:
        started.stop()


def test_vllm_is_asked_for_all_its_ranks(publish, listen, worker):
    ranks = [publish(b"kv@tiny"), publish(b"kv@tiny")]
    asked = worker({"/kv_event_sources": {
        str(rank): {"enable_kv_cache_events": True, "publisher": "zmq", "topic": "kv@tiny",
                    "endpoint": f"tcp://*:{engine.port}", "replay_endpoint": None}
        for rank, engine in enumerate(ranks)}})
    listener = listen(asked.url, "--count", 2)
    for rank, engine in enumerate(ranks):
        assert engine.await_subscriber() == b"kv@tiny"
        engine.send(9, msgpack.packb([time.time(), [CLEARED]]))  # 0.9.0 names no rank
    text = listener.end()
    assert "rank 0 seq 9  cleared" in text
    assert "rank 1 seq 9  cleared" in text
    assert f"rank 1 {ranks[1].endpoint}, topic kv@tiny" in listener.notes


def test_sglang_is_asked_too(publish, listen, worker):
    engine = publish(b"sg")
    asked = worker({"/server_info": {"kv_events": {
        "publisher": "zmq", "endpoint_host": "*", "endpoint_port_base": engine.port, "topic": "sg",
        "dp_size": 1}}})
    listener = listen(asked.url, "--count", 1)
    assert engine.await_subscriber() == b"sg"
    engine.send(1, batch(CLEARED))
    assert "seq 1  cleared" in listener.end()
    assert "SGLang reports where its events are" in listener.notes


@pytest.mark.parametrize("pages,problem", [
    ({"/kv_event_sources": {"0": {"enable_kv_cache_events": False}}}, "vLLM's KV events are off"),
    ({"/kv_event_sources": {}}, "vLLM's KV events are off"),
    ({"/server_info": {"kv_events": None, "kv_events_config": None}}, "SGLang's KV events are off"),
    ({"/kv_event_sources": {"0": {"endpoint": "tcp://*:99999"}}}, "'tcp://*:99999' is not an endpoint"),
    ({"/kv_event_sources": "garbage"}, "/kv_event_sources: "),
])
def test_a_worker_without_events_is_said(worker, pages, problem):
    ended = run_fathom("listen", worker(pages).url)
    assert ended.returncode == 1
    assert problem in ended.stderr


def test_a_worker_that_is_not_there_is_said():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ended = run_fathom("listen", f"http://127.0.0.1:{port}")
    assert ended.returncode == 1
    assert f"http://127.0.0.1:{port}: " in ended.stderr
    assert "refused" in ended.stderr


def test_the_convention_is_tried_last(worker, listen):
    listener = listen(worker({}).url, "--for", "300ms")
    listener.end()
    assert "trying tcp://127.0.0.1:5557" in listener.notes


def polled(number, data):
    return {"event_id": number, "data": data, "window_size": 4096}


def blocks(*hashes):
    tokens = [{"token_id": 777700 + i, "token_extra_id": 0} for i in range(4)]
    return {"type": "stored", "parent_hash": None,
            "blocks": [{"block_hash": h, "tokens": tokens, "cache_level": 0} for h in hashes]}


def test_tensorrt_llm_is_not_drained_unless_asked_for(worker):
    asked = worker({}, polls=[])
    ended = run_fathom("listen", asked.url)
    assert ended.returncode == 1
    assert "--drain" in ended.stderr
    assert asked.posts == 0


def test_tensorrt_llm_is_polled(worker, listen):
    asked = worker({}, polls=[[polled(0, {"type": "created", "num_blocks_per_cache_level": [9, 0]}),
                               polled(1, blocks(1, 2))],
                              [polled(4, {"type": "removed", "block_hashes": [2]})]])
    listener = listen(asked.url, "--drain", "--count", 3)
    lines = without_time(listener.end())
    assert lines[:4] == [
        "rank 0 seq 0  nothing about blocks",
        "rank 0 seq 1  +2 blocks x4 0000000000000001 0000000000000002 from the start  device "
        "group 0 full",
        "rank 0  seq 2..3 missing (2 batches)",
        "rank 0 seq 4  -1 block 0000000000000002  device group 0"]
    assert "does not get" in listener.notes, "it is said before it is done"


# --- replay


@pytest.mark.parametrize("wire_version", ["0.25", "0.32"])
def test_what_was_kept_is_shown_first(mock, listen, wire_version):
    engine = mock(profile="h200-llama-3.1-8b", speedup=1000, block_size=4, wire=wire_version)

    def complete(first):
        body = {"model": "mock-model", "prompt": list(range(first, first + 9)), "max_tokens": 1}
        assert wire.ask(engine.port, "POST", "/v1/completions", body).status == 200

    complete(0)
    complete(100)
    listener = listen(engine.url, "--replay", "--json", "--count", 3)
    shown = []
    while len(shown) < 2:
        line = json.loads(listener.popen.stdout.readline())
        shown += [line] if line["kind"] == "batch" else []
    complete(200)
    shown += [line for line in json_lines(listener.end()) if line["kind"] == "batch"]
    assert [(line["seq"], line["replayed"]) for line in shown] == [(0, True), (1, True), (2, False)]
    assert "replayed 2 batches" in listener.notes


# --- when it cannot be


def test_nothing_within_the_wait_is_a_failure_with_a_hint(publish):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ended = run_fathom("listen", f"tcp://127.0.0.1:{port}", "--wait", "300ms")
    assert ended.returncode == 1
    assert "is not connected: check host and port" in ended.stderr
    engine = publish()
    ended = run_fathom("listen", engine.endpoint, "--wait", "500ms", "--topic", "kv", "--json")
    assert ended.returncode == 1
    assert "is connected, and only topics that begin with 'kv' are shown" in ended.stderr
    assert json_lines(ended.stdout)[-1]["kind"] == "summary"


@pytest.mark.parametrize("args,problem", [
    ([], "no endpoint given"),
    (["worker:5557"], "'worker:5557' is not an endpoint"),
    (["tcp://*:5557"], "--bind tcp://*:5557 to wait for engines"),
    (["tcp://worker"], "must be tcp://HOST:PORT"),
    (["tcp://worker:99999"], "must be tcp://HOST:PORT"),
    (["http://a b"], "http"),
    (["tcp://h:1", "--replay"], "give --replay-endpoint"),
    (["http://h:1", "--replay-endpoint", "tcp://h:2"], "exactly one"),
    (["--bind", "5557"], "must be an endpoint"),
    (["tcp://h:1", "--intervall", "3s"], "did you mean --interval?"),
])
def test_wrong_usage_is_refused(args, problem):
    ended = run_fathom("listen", *args)
    assert ended.returncode == 78
    assert problem in ended.stderr
    assert ended.stdout == ""


def test_a_reader_that_leaves_ends_it(publish, listen):
    engine = publish()
    listener = listen(engine.endpoint)
    engine.await_subscriber()
    engine.send(0, batch(CLEARED))
    assert "connected" in listener.popen.stdout.readline()
    listener.popen.stdout.close()
    for sequence in range(1, 200):
        engine.send(sequence, batch(CLEARED))
        if listener.popen.poll() is not None:
            break
        time.sleep(0.01)
    assert listener.popen.wait(wire.PATIENCE) == 0
