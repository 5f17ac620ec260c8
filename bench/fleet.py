"""What does a decision cost in a large fleet, and what does the fleet cost at rest? See README.md."""

import argparse
import time

from _rig import (FATHOM, Rig, fetch, free_port, measure, parse_arguments, print_table, run_main,
                  save)


def print_rows(rows):
    def column(name, style):
        return [format(row[name], style) for row in rows]

    columns = {
        "models": column("models", "d"),
        "decision us": column("decision_us", ".1f"),
        "whole us": column("whole_answers_decision_us", ".1f"),
        "idle us": column("idle_decision_us", ".1f"),
        "lookup us": column("lookup_us", ".1f"),
        "join s": column("join_seconds", ".3f"),
        "prove s": column("prove_seconds", ".3f"),
        "books, % of a core": column("idle_cpu_percent", ".2f"),
        "/metrics ms": column("metrics_ms", ".0f"),
        "MB": [format(row["metrics_bytes"] / 1e6, ".1f") for row in rows],
    }
    print_table("Decisions, and what a fleet costs without requests", ["ranks", *columns],
                [[str(row["ranks"]), *cells] for row, cells in zip(rows, zip(*columns.values()))])


def print_growth(rows):
    """How much longer the largest fleet decides than the smallest one of a single model."""
    smallest = min((row for row in rows if row["models"] == min(r["models"] for r in rows)),
                   key=lambda row: row["ranks"])
    largest = max(rows, key=lambda row: (row["ranks"], row["models"]))
    for name in ("decision_us", "whole_answers_decision_us", "idle_decision_us"):
        print(f"{name}: {largest['ranks']:,} ranks of {largest['models']} models take "
              f"{largest[name] / smallest[name]:.1f} times what {smallest['ranks']} ranks take")


def addresses(count):
    """Loopback addresses: one mock answers at all of them, and each is a worker of its own."""
    return [f"127.1.{i // 250}.{i % 250 + 1}" for i in range(count)]


def idle_router(workers, seconds):
    """CPU and page of metrics of a router that checks its workers and has no requests."""
    with Rig() as rig:
        port, events = free_port(), free_port()
        mock = rig.start("mock", [FATHOM, "mock", "--host", "0.0.0.0", "--port", port,
                                  "--kv-events-port", events], None)
        mock.wait_for_port(port)
        router, url = rig.fathom(None, [f"http://{host}:{port}" for host in addresses(workers)],
                                 "--kv-events-port", events)
        begun, (before, _) = time.monotonic(), router.cpu_seconds()
        time.sleep(seconds)
        took, (after, _) = time.monotonic() - begun, router.cpu_seconds()
        begun = time.monotonic()
        page = fetch(f"{url}/metrics")
        return {"workers": workers, "cpu_percent": (after - before) / took * 100,
                "metrics_ms": (time.monotonic() - begun) * 1e3, "metrics_bytes": len(page)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512, 4096])
    parser.add_argument("--models", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--tokens", type=int, default=2048, help="of the prompt")
    parser.add_argument("--runs", type=int, default=5000, help="decisions of each fleet")
    parser.add_argument("--workers", type=int, nargs="*", default=[64, 512],
                        help="of routers with sockets, whose CPU without requests is measured")
    parser.add_argument("--seconds", type=float, default=20, help="that each of them rests")
    options = parse_arguments(parser, ranks=[8, 64], models=[1, 2], runs=10, workers=[3], seconds=1)

    def listed(numbers):
        return ",".join(map(str, numbers))

    rows = measure("fleet", "--json", f"ranks={listed(options.ranks)}",
                   f"models={listed(options.models)}", f"tokens={options.tokens}",
                   f"runs={options.runs}")["rows"]
    print_rows(rows)
    print_growth(rows)
    idle = [idle_router(workers, options.seconds) for workers in options.workers]
    for row in idle:
        print(f"{row['workers']:,} workers, no requests: {row['cpu_percent']:.1f} % of a core with "
              f"health checks and load polls; /metrics {row['metrics_bytes']:,} bytes in "
              f"{row['metrics_ms']:.0f} ms")
    save("fleet", {"rows": rows, "idle": idle}, options.smallest)


run_main(main)
