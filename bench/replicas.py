"""Do several routers choose like one, and what does it cost them? See bench/README.md."""

import argparse
from pathlib import Path
from typing import NamedTuple

import _replica_plots
from _rig import (RESULTS, Failed, measure, parse_arguments, print_table, run_main, save,
                  unpacked_trace)

PERCENTILES = ["p50", "p90", "p99"]
CLAIM = 0.05  # how far p90 of the most replicas may be from one router's, with a delay of 10 ms
CLAIMED_DELAY = 10


class Size(NamedTuple):
    """How much of everything."""
    trace: int | None = None  # requests, all if None
    arrivals: tuple = (1, 4)
    replicas: str = "1,2,4,8"
    delays: str = "0,10,100,1000"  # ms
    losses: str = "0,1,10"         # percent
    parts: bool = True             # also with loads alone, and without drawing among near ties
    large: dict | None = {"workers": 10_000, "blocks": 2048, "copies": 1250, "requests": 120}
    exchange: dict = {"replicas": "2,8,32", "ranks": 1000, "rate": 4000, "seconds": 10}
    plots: Path = _replica_plots.FOLDER


FULL = Size()
QUICK = Size(arrivals=(4,), replicas="1,8", delays="10", losses="0", large=None)
SMALLEST = Size(trace=40, arrivals=(4,), replicas="1,2", delays="10", losses="0,10", parts=False,
                large={"workers": 64, "blocks": 512, "copies": 4, "requests": 20},
                exchange={"replicas": "2", "ranks": 16, "rate": 100, "seconds": 1},
                plots=RESULTS / "plots-smallest")


def words_of(settings):
    return [f"{name.replace('_', '-')}={value}" for name, value in settings.items()]


def replay(trace, **settings):
    runs = measure("replicas", trace, *words_of(settings))["runs"]
    for run in runs:
        if not run["result"]["books_empty"]:
            raise Failed(f"load was left in the books: {name_of(run)}")
    return runs


def name_of(run):
    if run["replicas"] == 1:
        return "1 router"
    if not run["exchange"]:
        return f"{run['replicas']} replicas, nothing told"
    loss = f", {run['loss_percent']:.0f} % lost" if run["loss_percent"] else ""
    return f"{run['replicas']} replicas, {run['delay_ms']:.0f} ms{loss}"


HEAD = ["", "TTFT p50", "p90", "p99", "p90 beside one", "reuse", "imbalance", "bytes/request",
        "us/decision"]


def show(title, runs):
    one = runs[0]["result"]["ttft_ms"]["p90"]
    rows = []
    for run in runs:
        result = run["result"]
        ttft = result["ttft_ms"]
        rows.append([name_of(run), *(f"{ttft[p]:.0f}" for p in PERCENTILES), f"{ttft['p90'] / one - 1:+.1%}",
                     f"{result['reuse']:.3f}", f"{result['imbalance']:.2f}", f"{run['bytes_per_request']:.0f}",
                     f"{result['decision_ns']['p50'] / 1e3:.1f}"])
    print_table(f"{title} (ms)", HEAD, rows)


def judge(runs):
    """The claim, for the most replicas."""
    one = runs[0]["result"]["ttft_ms"]["p90"]
    claimed = [run for run in runs if run["exchange"] and run["delay_ms"] == CLAIMED_DELAY
               and run["loss_percent"] == 0]
    most = max(claimed, key=lambda run: run["replicas"])
    off = most["result"]["ttft_ms"]["p90"] / one - 1
    verdict = f"  {'ok  ' if off <= CLAIM else 'MISS'} {name_of(most)}: p90 is within 5 % of one router's ({off:+.1%})"
    print(verdict, flush=True)
    return verdict


def run_trace(trace, size, arrivals):
    settings = {"arrivals": arrivals, "replicas": size.replicas, "delays_ms": size.delays, "losses": size.losses}
    runs = replay(trace, **settings)
    show(f"8 engines, polynomial, 16384 blocks of 64, arrivals x{arrivals}", runs)
    report = {"arrivals": arrivals, "runs": runs, "judgement": judge(runs)}
    if size.parts:
        alone = {"arrivals": arrivals, "replicas": f"1,{size.replicas.split(',')[-1]}", "delays_ms": CLAIMED_DELAY,
                 "losses": 0, "silent": 0}
        for name, changed in {"loads_alone": {"prompts": 0}, "prompts_alone": {"loads": 0},
                              "lowest_cost_only": {"ties": 0}}.items():
            report[name] = replay(trace, **alone, **changed)
            show(f"{name.replace('_', ' ')}, arrivals x{arrivals}", report[name])
    return report


def run_large(trace, size):
    """Many ranks: the decision's cost, and what it is worth."""
    settings = size.large | {"replicas": "1,8", "delays_ms": CLAIMED_DELAY, "losses": 0, "silent": 0, "threads": 1}
    runs = replay(trace, **settings)
    show(f"{size.large['workers']} engines, {size.large['copies']} copies of the trace's first "
         f"{size.large['requests']} requests", runs)
    few = replay(trace, **(size.large | {"workers": 8, "copies": 1, "replicas": 1}))
    show("8 engines with one copy", few)
    return {"settings": size.large, "runs": runs, "eight": few}


def run_exchange(size):
    report = measure("exchange", *words_of(size.exchange))
    rows = [[run["replicas"], f"{run['telling_us']:.1f}", f"{run['hearing_us']:.1f}",
             f"{run['replica_us_per_own_request']:.0f}", f"{run['core_percent']:.1f}", f"{run['messages']:.2f}",
             f"{run['bytes']:.0f}"] for run in report["runs"]]
    print_table(f"the exchange: {report['ranks']} ranks, {report['rate']} requests/s of all replicas together, "
                f"prompts of {report['tokens']} tokens, sealed messages",
                ["replicas", "to tell, us", "to hear, us", "replica's us per own request", "% of a core",
                 "messages/request", "bytes/request"], [[str(cell) for cell in row] for row in rows])
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["trace", "large", "exchange"])
    parser.add_argument("--quick", dest="size", action="store_const", const=QUICK, default=FULL,
                        help="one setting")
    options = parse_arguments(parser, size=SMALLEST)
    size = options.size
    results = {}
    with unpacked_trace(size.trace) as trace:
        if options.only in (None, "trace"):
            results["traces"] = [run_trace(trace, size, arrivals) for arrivals in size.arrivals]
        if options.only in (None, "large") and size.large:
            results["large"] = run_large(trace, size)
    if options.only in (None, "exchange"):
        results["exchange"] = run_exchange(size)
    for path in _replica_plots.draw(results.get("traces", []), size.plots):
        print(f"drawn: {path}")
    save("replicas", results, options.smallest)


run_main(main)
