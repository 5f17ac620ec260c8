"""What does the router add to a request whose prompt is ids? See bench/README.md."""

import argparse

from _rig import measure, parse_arguments, run_main, save


def allocated(result):
    count = result["allocated_bytes"]  # None where jemalloc does not count them
    return "allocated bytes unknown" if count is None else f"{count:,} bytes allocated"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="*", default=[8_192, 100_000])
    parser.add_argument("--ranks", type=int, default=8)
    parser.set_defaults(runs=None)
    options = parse_arguments(parser, tokens=[64, 8_192], runs=2)

    results = []
    for tokens in options.tokens:
        runs = options.runs or max(50, 16_000_000 // tokens)
        result = measure("request", f"tokens={tokens}", f"ranks={options.ranks}", f"runs={runs}")
        results.append(result)
        stages = ", ".join(f"{name.replace('_', '+')} {took:.0f}"
                           for name, took in result["stages"].items())
        print(f"{tokens:,} ids ({result['body_bytes']:,} bytes), {options.ranks} ranks: "
              f"{result['request_microseconds']:.0f} us ({stages}), {allocated(result)}")
        print(f"  a document parser alone needs {result['document_parser_microseconds']:.0f} us, "
              f"{result['times_faster_than_document_parser']:.1f} times as long")
    save("request", results, options.smallest)


run_main(main)
