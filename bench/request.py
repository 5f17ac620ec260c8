"""What does the router add to a request whose prompt is ids? See bench/README.md."""

import argparse

from _rig import measure, run_main, save


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, nargs="*", default=[8_192, 100_000])
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()

    results = []
    for tokens in options.tokens:
        runs = max(50, 16_000_000 // tokens)
        result = measure("request", f"tokens={tokens}", f"ranks={options.ranks}", f"runs={runs}")
        results.append(result)
        stages = ", ".join(f"{name.replace('_', '+')} {took:.0f}"
                           for name, took in result["stages"].items())
        print(f"{tokens:,} ids ({result['body_bytes']:,} bytes), {options.ranks} ranks: "
              f"{result['request_microseconds']:.0f} us ({stages}), "
              f"{result['allocations']} allocations")
        print(f"  a document parser alone needs {result['document_parser_microseconds']:.0f} us, "
              f"{result['times_faster_than_document_parser']:.1f} times as long")
    save("request", results)


run_main(main)
