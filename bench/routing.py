"""What is each way of routing worth? See bench/README.md."""

import argparse
import re
from typing import NamedTuple

import _routing_plots
from _rig import (MODEL, RESULTS, Failed, Rig, fetch, measure, parse_arguments, print_table, run_main,
                  save, unpacked_trace)

HONEST = ["round-robin", "least-loaded", "prefix-hash", "text", "approximate"]
POLICIES = [*HONEST, "kv", "oracle"]
PERCENTILES = ["p50", "p90", "p99"]

# TTFT in ms that a published simulator reports for the same trace, engines and formula of step
# times: round-robin, and its KV router as it comes and tuned.
PUBLISHED = ["round-robin", "default", "tuned"]
COMPARABLE = [
    # blocks, arrivals, (p50, p90, p99) of each
    (16384, 1, [(184, 702, 2049), (169, 558, 1699), (169, 499, 1655)]),
    (16384, 4, [(274, 1174, 2781), (316, 800, 1920), (188, 582, 1758)]),
    (16384, 6, [(1489, 10113, 21428), (409, 1070, 2340), (273, 799, 2017)]),
    (8192, 3, [(270, 1057, 2927), (330, 839, 2000), (201, 633, 1877)]),
    (4096, 1, [(213, 764, 2199), (233, 674, 1853), (187, 608, 1817)]),
]
# More than eight such engines can serve.
OVERLOAD = (16384, 8)
# Engines whose cached context is not free, with the cache that `fathom mock` gives them.
MEASURED = [("h200-llama-3.1-8b", 2), ("h200-qwen3-32b", 0.6)]

# kv, but: what are the caches worth beside the price of work alone, and what is being in time?
EXTRAS = {"kv without credit for caches": {"credit": 0}, "kv, events 20 s late": {"delay_ms": 20000}}

PARITY = 0.05   # how far our round-robin may be from the published one
TIE = 0.02      # what counts as equal
ORACLE = 0.05   # how far kv may be from the oracle
TEXT = 0.05     # how far text, which has no tokens, may be from approximate

# Over sockets: half the engines at half the arrivals, so each has the load of x4 with eight.
SOCKET_ENGINES = 4
SOCKET_ARRIVALS = 2
ROUTERS = {
    "round-robin": ["--router-mode", "round-robin"],
    "least-loaded": ["--router-mode", "least-loaded"],
    "prefix-hash": ["--router-mode", "prefix-hash"],
    "approximate": ["--router-mode", "kv", "--no-router-kv-events"],
    "kv": ["--router-mode", "kv"],
}

# Fleets of eight ranks whose caches have blocks of these sizes; the first is what others are
# compared with.
COHORTS = ["16", "16,32", "16,32,64", "16,32,64,2096", "1,16,32,2096", "1"]
COHORT_TOKENS = [1024, 8192, 32768]


class Size(NamedTuple):
    """How much of everything."""
    trace: int | None = None  # requests, all if None
    comparable: slice = slice(None)
    others: bool = True       # overload and measured engines
    plots: object = _routing_plots.FOLDER  # None draws nothing
    cohort_runs: int = 4000
    trust: dict = {"runs": 8000}
    policies: list = list(ROUTERS)
    socket_requests: int = 1600
    speedup: int = 4          # of the engines over sockets, and of the arrivals with them


FULL = Size()
QUICK = Size(comparable=slice(1, 2), others=False, plots=None, cohort_runs=500, trust={"runs": 1000},
             policies=["round-robin", "kv"], socket_requests=400)
SMALLEST = Size(trace=40, plots=RESULTS / "plots-smallest", cohort_runs=2,
                trust={"runs": 2, "memory-mib": 1}, socket_requests=20, speedup=40)


def replay(trace, policies, **settings):
    words = [f"{name.replace('_', '-')}={value}" for name, value in settings.items()]
    report = measure("routing", trace, f"policies={','.join(policies)}", *words)
    for result in report["policies"]:
        if not result["books_empty"]:
            raise Failed(f"{result['policy']}: load was left in the books")
    return {result["policy"]: result for result in report["policies"]}


# --- judging ---------------------------------------------------------------------------------------


def verdict(ok, text):
    return f"  {'ok  ' if ok else 'MISS'} {text}"


def judge_parity(results, published):
    ours = results["round-robin"]["ttft_ms"]
    off = [ours[p] / theirs - 1 for p, theirs in zip(PERCENTILES, published[0])]
    # "About": in whole percent.
    ok = all(round(abs(share), 2) <= PARITY for share in off)
    return verdict(ok, "round-robin agrees with the published one within about 5 %: "
                   + ", ".join(f"{p} {share:+.1%}" for p, share in zip(PERCENTILES, off)))


def judge_published(results, published):
    ours = results["kv"]["ttft_ms"]
    ratios = [ours[p] / theirs for p, theirs in zip(PERCENTILES, published[2])]
    ok = all(ratio <= 1 + TIE for ratio in ratios)
    words = ["better" if ratio < 1 else "equal within 2 %" if ratio <= 1 + TIE else "WORSE"
             for ratio in ratios]
    return verdict(ok, "kv beats the published tuned router, or ties: " + ", ".join(
        f"{p} {ratio - 1:+.1%} ({word})" for p, ratio, word in zip(PERCENTILES, ratios, words)))


def judge_policies(results):
    p90 = {policy: results[policy]["ttft_ms"]["p90"] for policy in POLICIES}
    best = min(HONEST, key=p90.get)
    return [
        verdict(p90["kv"] < p90[best], f"kv's p90 is below every honest policy's: {p90['kv']:.0f} ms,"
                f" the best of them {best} with {p90[best]:.0f} ms ({p90['kv'] / p90[best] - 1:+.1%})"),
        verdict(p90["kv"] <= p90["oracle"] * (1 + ORACLE), "kv's p90 is within 5 % of the oracle's: "
                f"{p90['oracle']:.0f} ms ({p90['kv'] / p90['oracle'] - 1:+.1%})"),
        verdict(p90["text"] <= p90["approximate"] * (1 + TEXT), "text's p90 is within 5 % of approximate's: "
                f"{p90['text']:.0f} ms ({p90['text'] / p90['approximate'] - 1:+.1%})"),
        verdict(p90["text"] <= p90["least-loaded"], "text's p90 is not above least-loaded's: "
                f"{p90['least-loaded']:.0f} ms ({p90['text'] / p90['least-loaded'] - 1:+.1%})"),
    ]


# --- virtual time ----------------------------------------------------------------------------------

HEAD = ["", "reuse", "missed", "TTFT p50", "p90", "p99", "mean", "per token", "req/s", "imbalance", "waited",
        "us/decision"]


def row(name, result):
    ttft = result["ttft_ms"]
    waits = f"{result['waits']} x {result['wait_mean_ms']:.0f}" if result["waits"] else "-"
    return [name, f"{result['reuse']:.3f}", f"{result['missed']:.3f}",
            *(f"{ttft[p]:.0f}" for p in [*PERCENTILES, "mean"]),
            f"{result['between_tokens_ms']['mean']:.1f}", f"{result['requests_per_second']:.2f}",
            f"{result['imbalance']:.2f}", waits, f"{result['decision_ns']['p50'] / 1e3:.1f}"]


def published_rows(published):
    return [[f"published {name}", "", "", *(str(value) for value in values), "", "", "", "", "", ""]
            for name, values in zip(PUBLISHED, published)]


def show(title, results, extras, published, judgements):
    ideal = next(iter(results.values()))["ideal_reuse"]
    rows = [row(name, result) for name, result in (results | extras).items()]
    print_table(f"{title} (ms; an endless shared cache would reuse {ideal:.3f})", HEAD,
                rows + published_rows(published))
    print("\n".join(judgements), flush=True)


def run_setting(title, label, trace, settings, extras=None, published=()):
    results = replay(trace, POLICIES, **settings)
    more = {name: replay(trace, ["kv"], **settings, **changed)["kv"]
            for name, changed in (extras or {}).items()}
    judgements = judge_policies(results)
    if published:
        judgements = [judge_parity(results, published), judge_published(results, published),
                      *judgements]
    show(title, results, more, published, judgements)
    return {"title": title, "label": label, "settings": settings, "results": results, "extras": more,
            "published": dict(zip(PUBLISHED, published)), "judgements": judgements}


def run_virtual(trace, size):
    runs = []
    for blocks, arrivals, published in COMPARABLE[size.comparable]:
        extras = EXTRAS if blocks == 16384 else {}
        runs.append(run_setting(
            f"8 engines, polynomial, {blocks} blocks of 64, arrivals x{arrivals}",
            f"polynomial\n{blocks} blocks, x{arrivals}", trace,
            {"profile": "polynomial", "blocks": blocks, "arrivals": arrivals}, extras, published))
    if not size.others:
        return runs
    blocks, arrivals = OVERLOAD
    runs.append(run_setting(
        f"overload: 8 engines, polynomial, {blocks} blocks of 64, arrivals x{arrivals}",
        f"overload\n{blocks} blocks, x{arrivals}", trace,
        {"profile": "polynomial", "blocks": blocks, "arrivals": arrivals},
        {"kv, no request waits in the router": {"queue": 0}}))
    for profile, arrivals in MEASURED:
        runs.append(run_setting(
            f"8 engines, {profile}, 16384 blocks of 16, arrivals x{arrivals}",
            f"{profile}\nx{arrivals}", trace,
            {"profile": profile, "block_size": 16, "blocks": 16384, "arrivals": arrivals}))
    return runs


# --- sockets ---------------------------------------------------------------------------------------


def start_engines(rig, speedup):
    urls = []
    for number in range(SOCKET_ENGINES):
        _, url = rig.engine(f"engine-{number}", None, "--profile", "polynomial", "--speedup", speedup,
                            "--block-size", 64, "--num-blocks", 16384, "--kv-events", "on")
        urls.append(url)
    return urls


def booked_requests(url):
    """Of each rank."""
    booked = re.findall(r"^kv_router_rank_requests\S* (\S+)$", fetch(f"{url}/metrics"), re.M)
    if not booked:
        raise Failed("no metric kv_router_rank_requests")
    return [float(value) for value in booked]


def play(trace, policy, size):
    """One policy in front of engines of its own, whose caches are cold."""
    with Rig() as rig:
        engines = start_engines(rig, size.speedup)
        router, url = rig.fathom(None, engines, *ROUTERS[policy])
        report = measure("trace", url, trace, f"requests={size.socket_requests}", f"model={MODEL}",
                         f"arrivals={SOCKET_ARRIVALS * size.speedup}")
        router.check()
        # A client has its last byte a moment before its request is taken out of the books.
        router.wait(lambda: not any(booked_requests(url)), "empty books (kv_router_rank_requests)")
    # In the engines' own time.
    for times in ("ttft_ms", "total_ms", "lag_ms"):
        report[times] = {name: value * size.speedup for name, value in report[times].items()}
    return report


def run_sockets(trace, size):
    policies, requests = size.policies, size.socket_requests
    virtual = replay(trace, policies, profile="polynomial", blocks=16384, workers=SOCKET_ENGINES,
                     requests=requests, arrivals=SOCKET_ARRIVALS)
    real, rows = {}, []
    for policy in policies:
        real[policy] = play(trace, policy, size)
        for name, result in [(f"{policy}, sockets", real[policy]), ("  virtual", virtual[policy])]:
            ttft = result["ttft_ms"]
            rows.append([name, f"{result['reuse']:.3f}", *(f"{ttft[p]:.0f}" for p in PERCENTILES),
                         f"{ttft['mean']:.0f}",
                         f"{result['lag_ms']['p99']:.0f}" if "lag_ms" in result else ""])
    print_table(f"over sockets: the first {requests} requests, {SOCKET_ENGINES} engines, polynomial, "
                f"arrivals x{SOCKET_ARRIVALS}, {size.speedup} times as fast (ms of the engines' time)",
                ["", "reuse", "TTFT p50", "p90", "p99", "mean", "sent late p99"], rows)
    p90 = {policy: real[policy]["ttft_ms"]["p90"] for policy in policies}
    best = min((policy for policy in policies if policy != "kv"), key=p90.get)
    print(verdict(p90["kv"] < p90[best], f"kv's p90 is below every other policy's: {p90['kv']:.0f} ms,"
                  f" {best} {p90[best]:.0f} ms"), flush=True)
    return {"requests": requests, "real": real, "virtual": virtual}


# --- block sizes -----------------------------------------------------------------------------------


def cohort_cells(result):
    return [f"{result['decision_us']:.1f}", f"{result['times_the_first']:.2f}"]


def run_cohorts(size):
    """Every decision hashes the prompt once per block size in the fleet, as far as a rank holds it."""
    sizes = f"sizes={'/'.join(COHORTS)}"
    reports = [measure("cohorts", sizes, f"tokens={tokens}", f"runs={size.cohort_runs}")
               for tokens in COHORT_TOKENS]
    for part, title in [("held", "every size has a rank that holds the whole prompt"),
                        ("missed", "no rank holds any of it")]:
        head = ["blocks of"]
        for tokens in COHORT_TOKENS:
            head += [f"{tokens} tokens, us", "x"]
        rows = []
        for number, name in enumerate(COHORTS):
            cells = [cohort_cells(report["fleets"][number][part]) for report in reports]
            rows.append([name.replace(",", ", "), *(cell for pair in cells for cell in pair)])
        print_table(f"a decision among 8 ranks by their block sizes: {title}", head, rows)
    return reports


# --- trust -----------------------------------------------------------------------------------------


def run_trust(size):
    """The cost of checking each rank with each request, beside the same decision without."""
    report = measure("trust", *(f"{name}={value}" for name, value in size.trust.items()))
    for part, title in [("until_sent", "until it is sent"), ("whole", "with what follows its answer")]:
        rows = [[prompt["prompt"], *(f"{prompt[part][name]:.1f}" for name in ("on_us", "off_us", "added_us")),
                 f"{prompt[part]['times']:.2f}"] for prompt in report["prompts"]]
        print_table(f"trust, on against off: a request among {report['ranks']} ranks, {title}",
                    ["prompt", "on, us", "off, us", "added, us", "x"], rows)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    only = parser.add_mutually_exclusive_group()
    for part in ("virtual", "cohorts", "trust", "sockets"):
        only.add_argument(f"--only-{part}", dest="only", action="store_const", const=part)
    parser.add_argument("--quick", dest="size", action="store_const", const=QUICK, default=FULL,
                        help="one setting, and few requests")
    options = parse_arguments(parser, size=SMALLEST)
    size = options.size

    results = {}
    with unpacked_trace(size.trace) as trace:
        if options.only in (None, "virtual"):
            results["virtual"] = run_virtual(trace, size)
        if options.only in (None, "cohorts"):
            results["cohorts"] = run_cohorts(size)
        if options.only in (None, "trust"):
            results["trust"] = run_trust(size)
        if options.only in (None, "sockets"):
            results["sockets"] = run_sockets(trace, size)
    if "virtual" in results and size.plots:
        for path in _routing_plots.draw(results["virtual"], size.plots):
            print(f"drawn: {path}")
    save("routing", results, options.smallest)


run_main(main)
