"""A router joins a group: how soon does it know what its peer knows, and what does the peer's traffic notice?
See bench/README.md."""

import argparse
import json
import os
import sys
import time
import urllib.request

from _rig import (DIRECT, FATHOM, Failed, Rig, answers, fetch, finish_load, free_port, parse_arguments, print_table,
                  run_load, run_main, save, start_load)

ENGINES = 2
PROMPT = 16_000  # tokens, and with SGLang's pages of one token as many blocks
ENOUGH = 0.99    # of the peer's index


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with DIRECT.open(request, timeout=60) as answer:
        return json.loads(answer.read())


def fill(url, blocks, engine):
    """Prompts that have nothing in common."""
    for number in range(-(-blocks // PROMPT)):
        prompt = [100_000 + number, 90_000 + engine] + [token % 50_000 for token in range(PROMPT - 2)]
        post(f"{url}/v1/completions", {"model": "mock-model", "prompt": prompt, "max_tokens": 1})


def indexed(router):
    return sum(rank["blocks"] for rank in json.loads(fetch(f"{router}/debug/index"))["ranks"])


class Group:
    """Two routers that know of each other; the second is started later. Each has a core of its own if there are two,
    and everything else is beside the second."""
    def __init__(self, rig, engines):
        self.rig = rig
        self.engines = engines
        self.doors = [free_port(), free_port()]
        self.key = rig.folder / "replica.key"
        self.key.write_text("a key for two routers on one machine\n")
        self.cores = [0, 1] if (os.cpu_count() or 1) > 1 else [None, None]

    def start(self, number):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = self.rig.start(
            f"router-{number}",
            [FATHOM, "serve", "--port", port, "--threads", 1, "--worker-urls", ",".join(self.engines), "--replica-id",
             f"router-{number}", "--replicas", "zmq://" + ",".join(f"127.0.0.1:{door}" for door in self.doors),
             "--replica-listen", f"127.0.0.1:{self.doors[number]}", "--replica-key-file", self.key,
             "--ready-when", "informed"], self.cores[number])
        process.wait(lambda: answers(f"{url}/live"), "status 200 of /live")
        return process, url


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def spinner(rig, core):
    """Takes the newcomer's core as the newcomer does, and tells the peer nothing."""
    return rig.start("spinner", [sys.executable, "-c", "while True: pass"], core)


def times_of(report):
    return {name: report["total"][name] for name in ("p50", "p99")}


def measure(options):
    with Rig() as rig:
        started = [rig.engine(f"engine-{i}", None, "--engine", "sglang", "--profile", "h200-llama-3.1-8b", "--speedup",
                              100_000, "--block-size", 1, "--num-blocks", options.pairs // ENGINES + 2 * PROMPT,
                              "--kv-events-buffer", 100) for i in range(ENGINES)]
        engines = [url for _, url in started]
        group = Group(rig, engines)
        peer, peer_url = group.start(0)
        peer.wait(lambda: answers(f"{peer_url}/ready"), "status 200 of /ready")
        for number, engine in enumerate(engines):
            fill(engine, options.pairs // ENGINES, number)
        wait_until(lambda: indexed(peer_url) >= options.pairs, 300, f"{options.pairs:,} pairs in the first index")
        pairs = indexed(peer_url)
        traffic = {"stream": 0, "max_tokens": 4, "prompt_bytes": 200, "rate": options.rate,
                   "requests": round(options.rate * options.seconds), "warmup": 1}
        quiet = times_of(run_load(peer_url, group.cores[1], **traffic))
        busy_core = spinner(rig, group.cores[1])
        beside_spinner = times_of(run_load(peer_url, group.cores[1], **traffic))
        busy_core.stop()
        load = start_load(peer_url, group.cores[1], **traffic)
        time.sleep(1.5)
        before = peer.cpu_seconds()[0]
        begun = time.monotonic()
        newcomer, newcomer_url = group.start(1)
        wait_until(lambda: indexed(newcomer_url) >= ENOUGH * pairs, 120, f"{ENOUGH:.0%} of {pairs:,} pairs in the second index")
        took = time.monotonic() - begun
        cost = {"peer": peer.cpu_seconds()[0] - before, "newcomer": newcomer.cpu_seconds()[0]}
        joined = times_of(finish_load(load))
        taken = metric(newcomer_url, 'fathom_replica_snapshots_total{what="taken"}')
        if taken == 0:
            raise Failed("the newcomer took no snapshot: it learned from the engines")
    return {"pairs": pairs, "seconds": took, "cpu_seconds": cost, "ranks_taken": taken,
            "latency": {"quiet": quiet, "beside a spinner": beside_spinner, "while the newcomer joins": joined}}


def metric(url, series):
    for line in fetch(f"{url}/metrics").splitlines():
        if line.startswith(series):
            return float(line.split()[-1])
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="(block, rank) pairs in the index")
    parser.add_argument("--rate", type=float, default=200, help="requests per second to the peer")
    parser.add_argument("--seconds", type=float, default=20, help="of each load")
    options = parse_arguments(parser, pairs=64_000, rate=20, seconds=4)
    result = measure(options)
    print_table(f"A router joins: {result['pairs']:,} (block, rank) pairs", ["", "seconds"],
                [["until the newcomer has 99 %", f"{result['seconds']:.2f}"],
                 ["CPU of the newcomer until then", f"{result['cpu_seconds']['newcomer']:.2f}"],
                 ["CPU of the peer meanwhile, with its requests", f"{result['cpu_seconds']['peer']:.2f}"]])
    print_table("Requests at the peer, milliseconds", ["", "p50", "p99"],
                [[name, f"{times['p50'] * 1e3:.1f}", f"{times['p99'] * 1e3:.1f}"]
                 for name, times in result["latency"].items()])
    save("newcomer", result, options.smallest)


run_main(main)
