"""Does Fathom's memory stay where it is over a million requests? See bench/README.md."""

import argparse
import json
import re
import socket
import sys
import threading
import time

from _rig import (MODEL, Failed, Rig, fetch, finish_load, parse_arguments, run_main, save,
                  start_load)

STREAMED = 0.09  # share of the requests
ABORTED = 0.01   # share whose client leaves in the middle
FIRST = 0.1      # share after which memory is measured for the first time
GROWTH, SLACK = 0.10, 4 << 20  # what counts as noise
LEAST = 1000     # requests, of which the first part then has one that is aborted

ABORTED_REQUEST = json.dumps({"model": MODEL, "stream": True, "max_tokens": 10_000,
                              "messages": [{"role": "user", "content": "never mind"}]})


def abort_one(host, port):
    """Leaves as soon as the answer has begun."""
    with socket.create_connection((host, port), timeout=30) as client:
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n"
                       f"content-type: application/json\r\n"
                       f"content-length: {len(ABORTED_REQUEST)}\r\n\r\n{ABORTED_REQUEST}".encode())
        answer = client.recv(4096)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise Failed(f"a request to be aborted was answered: {answer[:200]!r}")


class Aborts(threading.Thread):
    """Clients that leave, one after the other."""

    def __init__(self, url, count):
        super().__init__(daemon=True)
        self.host, port = url.removeprefix("http://").split(":")
        self.port, self.count, self.problem = int(port), count, None
        self.start()

    def run(self):
        try:
            for _ in range(self.count):
                abort_one(self.host, self.port)
        except (OSError, Failed) as problem:
            self.problem = problem

    def finish(self):
        self.join()
        if self.problem:
            raise Failed(f"aborting client: {self.problem}")


def send(url, requests):
    """Small requests, streams and aborted streams at the same time, so many in all."""
    streamed, aborted = round(requests * STREAMED), round(requests * ABORTED)
    loads = [start_load(url, None, path="/v1/embeddings", stream=0, concurrency=64,
                        requests=requests - streamed - aborted),
             start_load(url, None, stream=1, concurrency=64, max_tokens=8, requests=streamed)]
    aborts = Aborts(url, aborted)
    done = sum(finish_load(load)["completed"] for load in loads)
    aborts.finish()
    return done + aborted


def metric(url, name):
    values = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", fetch(f"{url}/metrics"), re.MULTILINE)
    if not values:
        raise Failed(f"no metric {name}")
    return sum(map(float, values))


def wait_until_idle(url):
    deadline = time.monotonic() + 10
    while left := metric(url, "fathom_requests_in_flight"):
        if time.monotonic() > deadline:
            raise Failed(f"{left:.0f} requests are still in flight after all clients have left")
        time.sleep(0.1)


def measure(url, fathom, requests):
    begun = time.monotonic()
    done = send(url, requests)
    rate = done / (time.monotonic() - begun)
    wait_until_idle(url)
    fathom.check()
    return rate, fathom.resident_bytes()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000, help="default %(default)s")
    options = parse_arguments(parser, requests=LEAST)
    if options.requests < LEAST:
        parser.error(f"--requests: at least {LEAST}")
    return options


def main():
    options = read_options()
    requests = options.requests
    counts = {"first": round(requests * FIRST)}
    counts["all"] = requests - counts["first"]
    resident = {}
    with Rig() as rig:
        engines = [rig.mock(f"engine-{i}", None, "--first-token-delay", 0,
                            "--token-interval", "1ms") for i in range(2)]
        fathom, url = rig.fathom(None, [engine for _, engine in engines], "--threads", 1)
        resident["idle"] = fathom.resident_bytes()
        print(f"RSS idle: {resident['idle'] / 2**20:.1f} MiB")
        sent = 0
        for name, count in counts.items():
            rate, resident[name] = measure(url, fathom, count)
            sent += count
            print(f"RSS after {sent:,} requests: {resident[name] / 2**20:.1f} MiB "
                  f"({rate:,.0f} requests/s)", flush=True)
    ratio = resident["all"] / resident["first"]
    print(f"ratio: {ratio:.3f}")
    save("soak", {"requests": requests, "resident_bytes": resident, "ratio": ratio},
         options.smallest)
    if options.smallest:
        print("not judged: after so few requests the pools still grow")
    elif resident["all"] > resident["first"] * (1 + GROWTH) + SLACK:
        print(f"memory grew by more than {GROWTH:.0%} and {SLACK >> 20} MiB", file=sys.stderr)
        return 1
    return 0


run_main(main)
