#!/usr/bin/python3
"""Makes raw/ from the full captures of running engines.

usage: tests/captures/trim.py FOLDER [OUT]

FOLDER has one folder per server, with X.events.jsonl (ZeroMQ messages as they arrived),
X.http.jsonl (the calls that caused them) and X.frames.jsonl (replay dialogues). For each server two
files are written to OUT (default: raw/ beside this script), both in the order in which things
happened; README.md says what is in them. Headers, texts, metrics and calls without known token ids
are left out. Messages that were missed live are taken from the replays; where a message is in both,
they must agree.
"""

import json
import struct
import sys
from pathlib import Path

# The captures of a server in the order in which they were made.
SERVERS = {
    "vllm-0.32-bs32": [
        "a_prefixes", "f_chat", "b_eviction", "c_reset", "e_replay_live", "d_restart",
    ],
    "vllm-0.32-duplicates": ["j_duplicate_eviction"],
    "vllm-0.32-hybrid": ["i_hybrid"],
    "vllm-0.32-dp2": ["dp"],
    "sglang-0.5.23-ps16": ["sg"],
}
RANKS = {"vllm-0.32-dp2": {"dp": {"dp.rank0": 0, "dp.rank1": 1}}}
# Replay dialogues of a server.
REPLAYS = {
    "vllm-0.32-bs32": ["e_replay.frames", "d_restart.replay.frames"],
    "vllm-0.32-dp2": ["dp.replay.frames"],
    "sglang-0.5.23-ps16": ["sg.replay.frames"],
}
RESTART = "d_restart.monitor.jsonl"
MARKERS = {"/reset_prefix_cache": "reset", "/flush_cache": "flush"}
END = "ff" * 8


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def engine_time(payload_hex):
    """The engine's own timestamp, the first element of the batch."""
    payload = bytes.fromhex(payload_hex)
    assert payload[1] == 0xCB
    return struct.unpack(">d", payload[2:10])[0]


def live_events(folder, name):
    """(rank, message) of all captures of a server."""
    for capture in SERVERS[name]:
        files = RANKS.get(name, {}).get(capture, {capture: 0})
        for file, rank in files.items():
            for message in lines(folder / f"{file}.events.jsonl"):
                yield rank, {
                    "seq": message["seq"],
                    "t": message["t"],
                    "ts": engine_time(message["payload_hex"]),
                    "rank": rank,
                    "topic_hex": message["topic_hex"],
                    "payload_hex": message["payload_hex"],
                }


def replayed_events(folder, name):
    """The messages that answered requests which began at sequence 0."""
    for file in REPLAYS.get(name, []):
        rank, wanted = -1, False
        for message in lines(folder / f"{file}.jsonl"):
            frames = message.get("frames_hex")
            if frames is None:  # a note that nothing came
                continue
            if message["dir"] == "client->engine":
                wanted = frames == ["", "00" * 8]
                rank += wanted
            elif wanted and frames[-2] != END:
                # The replays of one rank come one after another; only dp has two ranks.
                yield {
                    "seq": int(frames[-2], 16),
                    "t": None,
                    "ts": engine_time(frames[-1]),
                    "rank": rank if name in RANKS else 0,
                    "topic_hex": frames[-3],
                    "payload_hex": frames[-1],
                    "from": "replay",
                }


def events_of(folder, name):
    events = [event for _, event in live_events(folder, name)]
    known = {(e["rank"], e["payload_hex"]): e["seq"] for e in events}
    for event in replayed_events(folder, name):
        key = (event["rank"], event["payload_hex"])
        if key in known:
            assert known[key] == event["seq"], f"{name}: {event['seq']} differs from the live one"
        else:
            known[key] = event["seq"]
            events.append(event)
    return sorted(events, key=lambda e: e["ts"])


def check_sequence(name, events):
    """Every rank counts up without a gap; back to 0 is a restart."""
    last = {}
    for event in events:
        seq, before = event["seq"], last.get(event["rank"], -1)
        assert seq in (before + 1, 0), f"{name}: rank {event['rank']}: {seq} after {before}"
        last[event["rank"]] = seq


def chunks(text):
    """The JSON objects of a stream."""
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line[len("data: "):])


def answers(response):
    if isinstance(response, dict):
        return [response]
    return list(chunks(response)) if isinstance(response, str) else []


def token_ids(call):
    request = call["request"] if isinstance(call["request"], dict) else {}
    for key in ("prompt", "input_ids"):
        value = request.get(key)
        if isinstance(value, list) and value and isinstance(value[0], int):
            return value
    for answer in answers(call["response"]):
        choices = answer.get("choices") or [{}]
        found = answer.get("prompt_token_ids") or choices[0].get("prompt_token_ids")
        if found:
            return found
    return None


def cached_tokens(call):
    for answer in reversed(answers(call["response"])):
        details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
        for found in (details, answer.get("meta_info") or {}):
            if found.get("cached_tokens") is not None:
                return found["cached_tokens"]
    return None


def marker(call):
    name = MARKERS.get(call["url"].split("?")[0])
    if name is None:
        return None
    done = call["response"]
    success = done.get("success", True) if isinstance(done, dict) else call["status"] == 200
    return {
        "marker": name,
        "t_start": call["t_start"],
        "t_end": call["t_end"],
        "note": call["note"],
        "success": success,
    }


def request(call):
    tokens = token_ids(call)
    if tokens is None:
        return None
    headers = {k.lower(): v for k, v in (call["req_headers"] or {}).items()}
    rank = headers.get("x-data-parallel-rank")
    body = call["request"] or {}
    return {
        "t_start": call["t_start"],
        "t_end": call["t_end"],
        "note": call["note"],
        "path": call["url"],
        "rank": None if rank is None else int(rank),
        "salt": body.get("cache_salt"),
        "lora": None if body.get("model", "tiny") == "tiny" else body["model"],
        "status": call["status"],
        "cached_tokens": cached_tokens(call),
        "tokens": tokens,
    }


def restarts(folder):
    path = folder / RESTART
    for event in lines(path) if path.exists() else []:
        if event["name"] == "DISCONNECTED":
            yield {"marker": "restart", "t_start": event["t"], "t_end": event["t"],
                   "note": "the engine's publisher went away", "success": True}


def requests_of(folder, name):
    calls = [c for capture in SERVERS[name] for c in lines(folder / f"{capture}.http.jsonl")]
    found = [marker(c) or request(c) for c in calls]
    found = [f for f in found if f] + list(restarts(folder))
    found.sort(key=lambda f: f["t_start"])
    posts = [c for c in calls if c["method"] == "POST"]
    for one in found:
        if "tokens" in one:
            overlapping = [c for c in posts
                           if c["t_start"] < one["t_end"] and one["t_start"] < c["t_end"]]
            one["concurrent"] = len(overlapping) > 1
    return found


def begins_with_clear(event):
    payload = bytes.fromhex(event["payload_hex"])
    clear, store = payload.find(b"AllBlocksCleared"), payload.find(b"BlockStored")
    return clear >= 0 and (store < 0 or clear < store)


def mark_late_clears(events, requests):
    """vLLM publishes a reset with the next step that runs, that is, with the next call's events."""
    for one in requests:
        if "tokens" not in one:
            continue
        own = [e for e in events
               if one["t_start"] <= (e["t"] or e["ts"]) and one["rank"] in (None, e["rank"])]
        first = own[0] if own else None
        inside = first is not None and first["ts"] <= one["t_end"]
        one["cleared_late"] = inside and begins_with_clear(first)


def write(path, records):
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records))
    print(f"{path.name}: {len(records)} lines, {path.stat().st_size} bytes")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    out = Path(sys.argv[2]) if len(sys.argv) == 3 else Path(__file__).parent / "raw"
    out.mkdir(exist_ok=True)
    for name in SERVERS:
        events = events_of(source / name, name)
        check_sequence(name, events)
        requests = requests_of(source / name, name)
        mark_late_clears(events, requests)
        write(out / f"{name}.events.jsonl", events)
        write(out / f"{name}.requests.jsonl", requests)


if __name__ == "__main__":
    main()
