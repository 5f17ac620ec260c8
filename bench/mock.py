"""How fast are engines simulated? See bench/README.md."""

import argparse

from _rig import measure, parse_arguments, run_main, save, unpacked_trace


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--engines", type=int, default=8)
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--profile", default="h200-llama-3.1-8b")
    parser.set_defaults(trace_requests=None)
    # More requests than the trace then has, so that it is repeated.
    options = parse_arguments(parser, requests=250, trace_requests=100, engines=2)

    with unpacked_trace(options.trace_requests) as trace:
        result = measure("mock", trace, f"requests={options.requests}",
                         f"engines={options.engines}", f"block-size={options.block_size}",
                         f"profile={options.profile}")
    print(f"{result['requests']:,} requests of the Mooncake conversation trace through "
          f"{result['engines']} virtual engines ({result['profile']}, blocks of "
          f"{result['block_size']}) in {result['seconds']:.1f} s on {result['threads']} threads")
    print(f"  {result['requests_per_second']:,.0f} requests/s, {result['steps']:,} steps, "
          f"{result['prompt_tokens']:,} prompt and {result['generated_tokens']:,} generated tokens")
    print(f"  {result['virtual_engine_hours']:,.0f} engine hours: "
          f"{result['times_real_time']:,.0f} times real time")
    print(f"  {result['reused']:.1%} of prompt tokens reused (round robin), TTFT p50 "
          f"{result['ttft_p50'] * 1e3:.0f} ms, p99 {result['ttft_p99'] * 1e3:.0f} ms, "
          f"{result['preemptions']:,} preemptions, {result['refused']:,} refused")
    save("mock", result, options.smallest)


run_main(main)
