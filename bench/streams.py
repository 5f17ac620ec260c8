"""Do thousands of streams that begin at once all hold, and what does each cost while it is idle? See
bench/README.md."""

import argparse
import re
import resource
import time
from pathlib import Path

from _nginx import start_nginx
from _rig import (Failed, Rig, finish_load, parse_arguments, print_table, run_main, save,
                  start_load)

SPARE = 400  # descriptors of a proxy beside those of its streams
PAUSE = 8  # seconds between two tokens of a stream: idle, while the memory is read
TOKENS = 3


def most_streams():
    """A proxy needs two descriptors for each."""
    return (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - SPARE) // 2


def nginx_connections(streams):
    """It closes connections that it takes for idle once less than a sixteenth is free."""
    return 2 * streams * 9 // 8 + SPARE


def memory_of(process):
    """Resident bytes of the process and its children."""
    pids, total = [process.pid], 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += [int(child) for child in (task / "children").read_text().split()]
        status = Path(f"/proc/{pid}/status").read_text()
        total += int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024
    return total


def open_sockets(process):
    """Of the process and its children."""
    pids, total = [process.pid], 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += [int(child) for child in (task / "children").read_text().split()]
        total += len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return total


def idle_memory(process, streams, load):
    """What the proxy needs once all streams are open; they are then between two tokens."""
    while open_sockets(process) < 2 * streams:
        if load.poll() is not None:
            return None  # too quick, or the report says what was wrong
        time.sleep(0.05)
    return memory_of(process)


def measure(process, url, streams, ramp, pause, may_fail):
    before = memory_of(process)
    load = start_load(url, None, stream=1, max_tokens=TOKENS, concurrency=streams,
                      requests=streams, ramp=ramp, prompt_bytes=200)
    idle = idle_memory(process, streams, load)
    report = finish_load(load, may_fail)
    if not may_fail and report["tokens"] != streams * TOKENS:
        raise Failed(f"{report['tokens']} tokens instead of {streams * TOKENS}")
    return {"streams": streams, "begun_over_seconds": ramp, "token_pause_seconds": pause,
            "lost": report["errors"], "first_byte": report["first_byte"],
            "bytes_per_idle_stream": None if idle is None else (idle - before) / streams,
            "resident_bytes": idle}


def cells(name, found):
    each = found["bytes_per_idle_stream"]
    return [name, str(found["streams"]), str(found["lost"]),
            "-" if each is None else f"{each / 1024:.1f} KiB",
            f"{found['first_byte']['p50']:.2f} s", f"{found['first_byte']['p99']:.2f} s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=min(10_000, most_streams()))
    parser.add_argument("--ramp", type=float, default=1, help="seconds over which they begin")
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two tokens")
    parser.add_argument("--rounds", type=int, default=3)
    options = parse_arguments(parser, streams=50, pause=0.3, rounds=1)
    if options.streams > most_streams():
        raise Failed(f"{options.streams} streams need {2 * options.streams + SPARE} descriptors; "
                     "raise the limit with ulimit -n")
    results = []
    with Rig() as rig:
        engines = [rig.mock(f"engine-{i}", None, "--first-token-delay", 0, "--token-interval",
                            f"{options.pause * 1000:.0f}ms")[1] for i in range(2)]
        for number in range(options.rounds):
            # A process of its own each time: memory that was used before is not given back.
            for name in ("nginx", "fathom"):
                if name == "nginx":
                    process, url = start_nginx(rig, None, engines,
                                               connections=nginx_connections(options.streams))
                else:
                    process, url = rig.fathom(None, engines, "--router-mode", "round-robin")
                found = measure(process, url, options.streams, options.ramp, options.pause,
                                may_fail=name != "fathom")
                results.append({"round": number, "proxy": name, **found})
                process.stop()
                rig.processes.remove(process)
    print_table(f"Streams that begin within {options.ramp:g} s",
                ["proxy", "streams", "lost", "per idle stream", "first byte p50", "p99"],
                [cells(row["proxy"], row) for row in results])
    save("streams", {"runs": results}, options.smallest)


run_main(main)
