"""What does Fathom cost as a reverse proxy, next to nginx and haproxy? See bench/README.md."""

import argparse
import json
import os
import statistics
import subprocess
from typing import NamedTuple

from _nginx import run_nginx, start_nginx
from _rig import (FATHOM, MODEL, Failed, Rig, free_port, parse_arguments, print_table, program,
                  require_binary, run_load, run_main, save)

PROXIES = ("nginx", "haproxy", "fathom")
TOKEN_INTERVAL = 0.02  # streams at 50 chunks per second each
EXTRA_CHUNKS = 3       # of a stream, beside its tokens: role, usage and [DONE]
BODIES = {"100 kB": (100_000, 16), "1 MB": (1_000_000, 8)}  # prompt bytes, connections
SMALL = {"stream": 0, "max_tokens": 16, "prompt_bytes": 200}
PILED_UP = 0.01  # seconds at the 99th percentile
NOISY = 0.05  # share of the time
PERCENTILES = ("p50", "p99", "p999")


class Plan(NamedTuple):
    """How often and how long, in seconds. Many short rounds: noise then hits all alike."""
    rounds: int
    seconds: float
    streams: int = 500
    filling: int = 1000  # requests before each measurement, which fill the pools


def open_loop(plan):
    """The warm-up, in seconds, is until all connections are open."""
    return {"concurrency": 256, "seconds": plan.seconds, "warmup": min(0.3, plan.seconds / 4)}


FULL = {"small": Plan(7, 1.5), "sse": Plan(3, 5), "body": Plan(6, 1), "latency": Plan(6, 1.5)}
QUICK = {"small": Plan(3, 0.8), "sse": Plan(2, 2), "body": Plan(2, 0.7), "latency": Plan(2, 1.2)}
SMALLEST = {"small": Plan(2, 0.1, filling=64), "sse": Plan(1, 0.2, streams=10, filling=64),
            "body": Plan(1, 0.1, filling=64), "latency": Plan(1, 0.2, filling=64)}


# --- the engines ----------------------------------------------------------------------------------

INSTANT = """
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location = /health {{ return 200; }}
    location = /v1/models {{ return 200 '{models}'; }}
    location / {{ return 200 '{answer}'; }}
  }}
"""

MODELS = {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "bench"}]}
ANSWER = {
    "id": "chatcmpl-0123456789abcdef", "object": "chat.completion", "created": 1, "model": MODEL,
    "choices": [{"index": 0, "finish_reason": "stop",
                 "message": {"role": "assistant", "content": "The dog had it coming. " * 4}}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 16, "total_tokens": 56}}


def start_instant_engine(rig, name, core):
    """The cheapest there is, always the same answer: the proxy shall be the limit."""
    port = free_port()
    return run_nginx(rig, name, core, port, INSTANT.format(
        port=port, models=json.dumps(MODELS), answer=json.dumps(ANSWER)))


def start_mock_engine(rig, name, core):
    return rig.mock(name, core, "--first-token-delay", 0, "--token-interval",
                    f"{TOKEN_INTERVAL * 1000:.0f}ms")


# --- the proxies ----------------------------------------------------------------------------------

HAPROXY = """
global
  nbthread 1
  maxconn 8192
defaults
  mode http
  no log
  option http-no-delay
  option http-keep-alive
  http-reuse always
  timeout connect 2s
  timeout client 10m
  timeout server 10m
frontend front
  bind 127.0.0.1:{port}
  default_backend engines
backend engines
  balance roundrobin
  option httpchk GET /health
{servers}
"""


def start_haproxy(rig, core, backends):
    port = free_port()
    config = rig.folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, servers="\n".join(
        f"  server e{i} {b.removeprefix('http://')} check inter 2s"
        for i, b in enumerate(backends))))
    process = rig.start("haproxy", [program("haproxy"), "-db", "-f", config], core)
    process.wait_for_port(port)
    return process, f"http://127.0.0.1:{port}"


def start_fathom(rig, core, backends):
    return rig.fathom(core, backends, "--threads", 1, "--router-mode", "round-robin")


STARTERS = {"nginx": start_nginx, "haproxy": start_haproxy, "fathom": start_fathom}


class Bench:
    """All proxies in front of the same two engines."""

    def __init__(self, rig, cores, start_engine, filling):
        self.filling = filling
        proxy_core, self.load_core, engine_core = cores
        self.engines = [start_engine(rig, f"engine-{i}", engine_core) for i in range(2)]
        urls = [url for _, url in self.engines]
        self.proxies = {name: STARTERS[name](rig, proxy_core, urls) for name in PROXIES}

    def measure(self, name, **load):
        """Puts load on a proxy; returns the load's report with the proxy's CPU time in it."""
        if name == "direct":
            return run_load(self.engines[0][1], self.load_core, **load)
        process, url = self.proxies[name]
        process.check()
        run_load(url, self.load_core, **SMALL, concurrency=64, requests=self.filling)
        before = process.cpu_seconds()
        report = run_load(url, self.load_core, **load)
        report["cpu"], waited = (b - a for a, b in zip(before, process.cpu_seconds()))
        report["busy"] = report["cpu"] / report["seconds"]
        report["waited"] = waited / report["seconds"]
        return report

    def interleaved(self, names, rounds, **load):
        """A B C, C B A, ...: nobody always follows the same one."""
        runs = {name: [] for name in names}
        for number in range(rounds):
            for name in names if number % 2 == 0 else reversed(names):
                runs[name].append(self.measure(name, **load))
        return runs


# --- what is measured -----------------------------------------------------------------------------


def costs(runs, unit, units_of):
    """CPU per unit, and how it compares with nginx's of the same round."""
    def cost(run):
        return run["cpu"] / units_of(run) * 1e6

    found = {}
    for name, own in runs.items():
        ratios = [cost(run) / cost(base) for run, base in zip(own, runs["nginx"])]
        found[name] = {
            f"us_per_{unit}": statistics.median(map(cost, own)),
            "x_nginx": statistics.median(ratios),
            "x_nginx_of_rounds": ratios,
            **shares(own),
            f"{unit}s_per_second": statistics.median(units_of(run) / run["seconds"] for run in own),
        }
    return found


def shares(runs):
    """Of the proxy's core: used, and wanted while somebody else was on it."""
    return {key: statistics.median(run.get(key, 0) for run in runs) for key in ("busy", "waited")}


def completed(run):
    return run["completed"]


def measure_small(bench, plan):
    runs = bench.interleaved(PROXIES, plan.rounds, **SMALL, concurrency=64, seconds=plan.seconds)
    return costs(runs, "request", completed)


def measure_body(bench, plan):
    found = {}
    for label, (size, connections) in BODIES.items():
        runs = bench.interleaved(PROXIES, plan.rounds, stream=0, max_tokens=1, prompt_bytes=size,
                                 concurrency=connections, seconds=plan.seconds)
        found[label] = costs(runs, "request", completed)
    return found


def measure_sse(bench, plan):
    tokens = round(plan.seconds / TOKEN_INTERVAL)
    runs = bench.interleaved(PROXIES, plan.rounds, stream=1, max_tokens=tokens,
                             concurrency=plan.streams, requests=plan.streams,
                             ramp=min(1, plan.seconds))
    for name, own in runs.items():
        for run in own:
            if run["tokens"] != plan.streams * tokens:
                raise Failed(f"{name}: {run['tokens']} tokens instead of {plan.streams * tokens}")
    sent = plan.streams * (tokens + EXTRA_CHUNKS)
    found = costs(runs, "chunk", lambda run: sent)
    for name, own in runs.items():
        # Below 1 when chunks were held back and arrived together.
        found[name]["arrivals_per_chunk"] = statistics.median(
            (run["first_byte"]["count"] + run["between_chunks"]["count"]) / sent for run in own)
    return found


def find_saturation(bench, plan):
    """The highest rate, and how busy Fathom is at it, that does not pile up requests."""
    closed = [bench.measure("fathom", **SMALL, concurrency=128, seconds=plan.seconds)
              for _ in range(plan.rounds)]
    most = max(run["completed"] / run["seconds"] for run in closed)
    for share in (1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5):
        run = bench.measure("fathom", **SMALL, **open_loop(plan), rate=round(most * share))
        if run["unsent"] == 0 and run["total"]["p99"] < PILED_UP:
            break
    return most * share, run["busy"]


def measure_latency(bench, plan):
    most, busy = find_saturation(bench, plan)
    rate = round(0.8 * most)
    runs = bench.interleaved(("direct", *PROXIES), plan.rounds, **SMALL, **open_loop(plan),
                             rate=rate)

    def best(name, what, percentile):  # neighbours only ever add to a latency
        return min(run[what][percentile] for run in runs[name]) * 1e3

    found = {"rate": rate, "busy_at_saturation": busy}
    for name, own in runs.items():
        whole = {p: best(name, "total", p) for p in PERCENTILES}
        found[name] = {
            "total_ms": whole,
            "added_ms": {p: whole[p] - best("direct", "total", p) for p in PERCENTILES},
            "sent_late_p99_ms": best(name, "lag", "p99"),
            "unsent": min(run["unsent"] for run in own),
            **shares(own),
        }
    return found


# --- saying it ------------------------------------------------------------------------------------


def print_costs(title, unit, found):
    def row(name, own):
        spread = own["x_nginx_of_rounds"]
        cells = [name, f"{own[f'us_per_{unit}']:.1f}", f"{own['x_nginx']:.2f}",
                 f"{min(spread):.2f}-{max(spread):.2f}", f"{own['busy']:.0%}",
                 f"{own['waited']:.0%}", f"{own[f'{unit}s_per_second']:,.0f}"]
        return cells + ([f"{own['arrivals_per_chunk']:.2f}"] if unit == "chunk" else [])

    head = ["", f"CPU us/{unit}", "x nginx", "of rounds", "busy", "waited", f"{unit}s/s"]
    head += ["arrivals/chunk"] if unit == "chunk" else []
    print_table(title, head, [row(name, own) for name, own in found.items()])


def print_latency(found):
    rows = []
    for name in ("direct", *PROXIES):
        own = found[name]
        rows.append([name, *(f"{own['total_ms'][p]:.3f}" for p in PERCENTILES),
                     *(f"{own['added_ms'][p]:.3f}" for p in PERCENTILES),
                     f"{own['sent_late_p99_ms']:.3f}", f"{own['busy']:.0%}", f"{own['waited']:.0%}",
                     str(own["unsent"])])
    print_table(
        f"Latency in ms of small requests, open loop at {found['rate']:,} requests/s: 80 % of the "
        f"most that Fathom took (it was {found['busy_at_saturation']:.0%} busy then); best round",
        ["", "p50", "p99", "p99.9", "added p50", "p99", "p99.9", "sent late p99", "busy", "waited",
         "unsent"], rows)


def print_part(part, found, plan):
    if part == "small":
        print_costs("Small requests, 64 connections", "request", found)
    elif part == "sse":
        print_costs(f"Server-sent events, {plan.streams} streams", "chunk", found)
    elif part == "body":
        for label, own in found.items():
            print_costs(f"Requests with a body of {label}, {BODIES[label][1]} connections",
                        "request", own)
    else:
        print_latency(found)


MEASURES = {"small": measure_small, "sse": measure_sse, "body": measure_body,
            "latency": measure_latency}
ENGINES = {"small": start_instant_engine, "sse": start_mock_engine, "body": start_mock_engine,
           "latency": start_instant_engine}


def warn_of_noise(results):
    """Whoever waits for the core shares it with strangers: latencies above all are theirs then."""
    def waits(found):
        for key, value in found.items():
            if key == "waited":
                yield value
            elif isinstance(value, dict):
                yield from waits(value)

    worst = max(waits(results))
    if worst > NOISY:
        print(f"\nThe machine was not quiet: a proxy wanted its core for up to {worst:.0%} of the "
              "time while others were on it. Do not trust the latencies.")


def version_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines()[0]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short rounds: about a minute in all")
    parser.add_argument("--only", choices=list(MEASURES), action="append",
                        help="only this part; may be repeated")
    parser.add_argument("--cores", metavar="PROXY,LOAD[,ENGINES]", default=first_cores(),
                        help="where to pin what (default %(default)s; the engines with the load)")
    parser.set_defaults(plans=FULL)
    options = parse_arguments(parser, plans=SMALLEST)
    if options.quick and not options.smallest:
        options.plans = QUICK
    return options


def first_cores():
    """Two that this process may use. A machine with one core shows in `waited`."""
    cores = sorted(os.sched_getaffinity(0))
    return f"{cores[0]},{cores[min(1, len(cores) - 1)]}"


def parse_cores(text):
    try:
        cores = [int(core) for core in text.split(",")]
    except ValueError:
        cores = []
    if len(cores) not in (2, 3) or not set(cores) <= os.sched_getaffinity(0):
        raise Failed(f"--cores {text}: give two or three of {sorted(os.sched_getaffinity(0))}")
    return (*cores, cores[1])[:3]


def main():
    options = read_options()
    cores = parse_cores(options.cores)
    require_binary()
    versions = {"nginx": version_of([program("nginx"), "-v"]),
                "haproxy": version_of([program("haproxy"), "-v"]),
                "fathom": version_of([FATHOM, "version"])}
    print("\n".join(versions.values()))
    print(f"proxy on core {cores[0]}, load on core {cores[1]}, engines on core {cores[2]}; "
          "medians of interleaved rounds unless it says otherwise")
    results = {"versions": versions, "cores": cores}
    for part, measure in MEASURES.items():
        if not options.only or part in options.only:
            plan = options.plans[part]
            with Rig() as rig:
                bench = Bench(rig, cores, ENGINES[part], plan.filling)
                results[part] = measure(bench, plan)
            print_part(part, results[part], plan)
    warn_of_noise(results)
    save("relay", results, options.smallest)


run_main(main)
