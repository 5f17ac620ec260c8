"""How fast is the index of cached prefixes, is it right, and what does it cost? See README.md."""

import argparse

from _rig import measure, parse_arguments, print_table, run_main, save, unpacked_trace


def print_reports(reports):
    rows = []

    def row(name, value, style):
        rows.append([name, *(format(value(report), style) for report in reports)])

    row("million block operations", lambda r: r["block_operations"] / 1e6, ".1f")
    row("million per second", lambda r: r["block_operations_per_second"] / 1e6, ".1f")
    row("times the plain index", lambda r: r["times_baseline"], ".1f")
    row("CPU ns per operation", lambda r: r["cpu_ns_per_operation"], ".0f")
    row("ns per key asked", lambda r: r["ns_per_query_key"], ".1f")
    row("ns per block stored", lambda r: r["ns_per_stored_block"], ".0f")
    row("ns per block removed", lambda r: r["ns_per_removed_block"], ".0f")
    for percentile in ("p50", "p99", "p999", "max"):
        row(f"lookup {percentile} us", lambda r, p=percentile: r["lookup_microseconds"][p], ".1f")
    row("found", lambda r: r["found"], ".1%")
    row("live entries", lambda r: r["live_entries"], ",")
    row("MB", lambda r: r["bytes"] / 1e6, ".1f")
    row("bytes per (block, rank)", lambda r: r["bytes_per_entry"], ".1f")
    print_table("Index of the Mooncake conversation trace",
                ["", *(f"{r['ranks']} ranks, {r['threads']} thr." for r in reports)], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 128])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--blocks", type=int, default=16384, help="that each rank's cache can hold")
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--assign", choices=("round-robin", "sticky"), default="round-robin")
    parser.add_argument("--generated", action="store_true", help="store the answers' blocks too")
    parser.add_argument("--runs", type=int, default=3, help="of which the best counts")
    # So few requests still fill the caches of two ranks, so that blocks are removed too.
    parser.set_defaults(requests=None, key_runs=500)
    options = parse_arguments(parser, requests=100, ranks=[2], runs=1, key_runs=2)
    kinds = [(options.assign, options.generated)]
    if options.smallest:
        kinds = [("round-robin", False), ("sticky", True)]

    with unpacked_trace(options.requests) as trace:
        reports = [
            measure("index", trace, f"ranks={ranks}", f"threads={threads}",
                    f"blocks={options.blocks}", f"block-size={options.block_size}",
                    f"assign={assign}", f"generated={int(generated)}", f"runs={options.runs}")
            for assign, generated in kinds
            for ranks in options.ranks for threads in options.threads]
    keys = measure("keys", f"block-size={options.block_size}", f"runs={options.key_runs}")
    print_reports(reports)
    print(f"\nkeys of {keys['tokens']:,} tokens in blocks of {keys['block_size']}: "
          f"{keys['keys_microseconds']:.0f} us, {keys['tokens_per_second'] / 1e6:,.0f} million "
          f"tokens/s; one hash over the same bytes {keys['one_hash_microseconds']:.0f} us "
          f"(ratio {keys['times_one_hash']:.1f}), a copy {keys['copy_microseconds']:.0f} us")
    save("index", {"index": reports, "keys": keys}, options.smallest)


run_main(main)
