"""How long does a worker's replay of KV events take, and what does a lost prefix cost? See bench/README.md."""

import argparse
import csv
import json
import time
import urllib.request

from _rig import (DIRECT, FATHOM, ROOT, Failed, Rig, answers, fetch, free_port, parse_arguments, print_table,
                  run_main, save)

BLOCK = 16
PREFIXES = (2048, 8192, 32768)  # tokens


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with DIRECT.open(request, timeout=60) as answer:
        return json.loads(answer.read())


def fill(url, blocks, per_prompt):
    """Prompts of which each leaves so many new blocks in the engine's cache."""
    for first in range(0, blocks, per_prompt):
        begin = first * BLOCK % 120_000
        prompt = [first // per_prompt + 1] * BLOCK + [begin + i % 997 for i in range((per_prompt - 1) * BLOCK)]
        post(f"{url}/v1/completions", {"model": "mock-model", "prompt": prompt, "max_tokens": 1})


def indexed_blocks(router):
    ranks = json.loads(fetch(f"{router}/debug/index"))["ranks"]
    return ranks[0]["blocks"] if ranks else 0


def replay_seconds(rig, engine, blocks):
    """From the moment that a running router gets the worker until the index has its blocks."""
    port = free_port()
    router = f"http://127.0.0.1:{port}"
    process = rig.start("fathom", [FATHOM, "serve", "--port", port], None)
    process.wait(lambda: answers(f"{router}/live"), "status 200 of /live")
    begun = time.monotonic()
    post(f"{router}/workers", {"url": engine})
    while (indexed := indexed_blocks(router)) < blocks:
        if time.monotonic() - begun > 120:
            raise Failed(f"the index has {indexed} of {blocks} blocks after two minutes")
        time.sleep(0.002)
    seconds = time.monotonic() - begun
    process.stop()
    return seconds


def prefill_seconds(tokens):
    """Measured on one H200, Llama 3.1 8B, nothing cached."""
    with (ROOT / "src/lab/mock/profiles/h200_prefill.csv").open() as table:
        for row in csv.DictReader(table):
            if (row["model"], int(row["new_tokens"]), int(row["cached_tokens"])) == ("llama-3.1-8b", tokens, 0):
                return float(row["ms"]) / 1e3
    raise Failed(f"no prefill of {tokens} tokens was measured")


def measure(blocks, per_prompt, runs):
    with Rig() as rig:
        _, engine = rig.engine("engine", None, "--profile", "h200-llama-3.1-8b", "--speedup", 100_000,
                               "--num-blocks", blocks + per_prompt + 1000, "--block-size", BLOCK,
                               "--kv-events-buffer", blocks)
        fill(engine, blocks, per_prompt)
        return min(replay_seconds(rig, engine, blocks) for _ in range(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--prompt-blocks", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    options = parse_arguments(parser, blocks=[200], prompt_blocks=100, runs=1)
    seconds = {blocks: measure(blocks, min(options.prompt_blocks, blocks), options.runs)
               for blocks in options.blocks}
    prefill = {tokens: prefill_seconds(tokens) for tokens in PREFIXES}
    print_table("A worker joins: until the index has its blocks", ["blocks", "tokens", "seconds"],
                [[f"{blocks:,}", f"{blocks * BLOCK:,}", f"{took:.3f}"] for blocks, took in seconds.items()])
    print_table("A prefix that is prefilled again (H200, Llama 3.1 8B)", ["tokens", "seconds"],
                [[f"{tokens:,}", f"{took:.3f}"] for tokens, took in prefill.items()])
    save("catch_up", {"seconds": seconds, "prefill_seconds": prefill}, options.smallest)


run_main(main)
