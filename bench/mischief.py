"""Do well-behaved clients notice what others do? Memory, errors and the exit, while clients, workers
and publishers misbehave by dice. See bench/README.md."""

import argparse
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from _mischief import Mischief, UnrulyWorker, be_a_client, be_a_publisher
from _rig import Failed, Rig, finish_load, free_port, parse_arguments, run_main, save, start_load

MB = 1 << 20
BODIES, EVENTS, INDEX, TOKENS, TRUST = 64 * MB, 128 * MB, 64 * MB, 16 * MB, 8 * MB
REST = 128 * MB  # code, connections, and what the allocator does not give back at once
BOUND = 2 * BODIES + EVENTS + INDEX + TOKENS + TRUST + REST
DRAIN = 2  # seconds
PACE = 200  # good requests per second


def peak_bytes(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


def leave(fathom):
    """Seconds until the router has ended by itself, with status 0."""
    begun = time.monotonic()
    fathom.process.send_signal(signal.SIGTERM)
    try:
        status = fathom.process.wait(10 * DRAIN)
    except subprocess.TimeoutExpired:
        raise Failed("the router does not end") from None
    if status != 0:
        raise Failed(f"the router ended with {status}:\n{fathom.output()[-4000:]}")
    return time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the dice; default %(default)s")
    options = parse_arguments(parser, seconds=2)
    dice = random.Random(options.seed)
    with Rig() as rig:
        engines = [rig.engine(f"engine-{i}", None)[1] for i in range(2)]
        unruly = UnrulyWorker(random.Random(dice.random()))
        bind = free_port()
        fathom, url = rig.fathom(
            None, [*engines, unruly.url], "--max-body-memory", BODIES, "--kv-events-memory", EVENTS,
            "--index-max-bytes", INDEX, "--tokenize-cache-bytes", TOKENS, "--trust-memory", TRUST,
            "--kv-events-bind", f"tcp://127.0.0.1:{bind}", "--drain-timeout", f"{DRAIN}s",
            "--head-timeout", "2s", "--body-timeout", "2s", "--first-byte-timeout", "5s",
            "--block-size-wait", "1s")
        port = int(url.rpartition(":")[2])
        load = start_load(url, None, stream=1, max_tokens=8, rate=PACE,
                          requests=max(50, round(options.seconds * PACE)))
        troubles = [Mischief(be, random.Random(dice.random()), where)
                    for be, where in [(be_a_client, port)] * 8 + [(be_a_publisher, bind)] * 2]
        report = finish_load(load)
        acts = sum(trouble.stop() for trouble in troubles)
        fathom.check()
        peak = peak_bytes(fathom)
        took = leave(fathom)
    print(f"{report['completed']:,} good requests beside {acts:,} acts of mischief, none failed; "
          f"peak of memory {peak / MB:.0f} MiB of {BOUND / MB:.0f}; the exit took {took:.1f} s")
    save("mischief", {"good": report["completed"], "acts": acts, "peak_bytes": peak,
                      "bound_bytes": BOUND, "exit_seconds": took}, options.smallest)
    if peak > BOUND:
        print("memory is above its bound", file=sys.stderr)
        return 1
    return 0


run_main(main)
