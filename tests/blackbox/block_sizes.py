"""What a router says about block sizes, and whether it knows the caches afterwards."""

import re

from choices import QUICK, cached, complete, depth, ids
from kv_engine import lookup
from wire import eventually

ENGINES = ["vllm", "sglang", "trtllm"]
# How each engine is told its block size.
SETTINGS = {"vllm": "--block-size {}", "sglang": "--page-size {}", "trtllm": "tokens_per_block={}"}
# TensorRT-LLM's events are asked for.
SOON = ("--kv-events-poll-interval", "20ms")


def start(world, engine, size, **options):
    """A simulated engine with blocks of that size."""
    return world.mock(**{**QUICK, "engine": engine, "block_size": size, **options})


def restart(world, worker, engine, size, **options):
    """Another process in the place of the worker."""
    worker.kill()
    return start(world, engine, size, port=worker.port, **options)


# --- the log


def records(router, level="[A-Z]+"):
    """Of that level, each with all its lines."""
    begin = re.compile(r"^(?=\S+Z (?:DEBUG|INFO|WARN|ERROR) )", re.MULTILINE)
    return [record.rstrip("\n") for record in begin.split(router.log_text())
            if re.match(rf"\S+Z {level} ", record)]


def said(router, text, level="[A-Z]+"):
    """The records that contain the text."""
    return [record for record in records(router, level) if text in record]


def say(router, text, level="[A-Z]+"):
    """Waits until it is said; the one record."""
    eventually(lambda: said(router, text, level), f"'{text}' at {level} in {router.log}")
    record, = said(router, text, level)
    return record


def complaints(router):
    return records(router, "WARN") + records(router, "ERROR")


def both_fixes(engine, worker, frontend, setting="DYN_KV_CACHE_BLOCK_SIZE="):
    return (f"Set {setting}{worker} on the frontend or configure "
            f"{SETTINGS[engine].format(frontend)} on workers.")


def unset_fix(engine, frontend, setting="DYN_KV_CACHE_BLOCK_SIZE"):
    return (f"Unset {setting} on the frontend, which then detects it, or configure "
            f"{SETTINGS[engine].format(frontend)} on workers.")


def mismatch_words(engine, worker, frontend, setting="DYN_KV_CACHE_BLOCK_SIZE="):
    """The three lines that are said at the first event."""
    return (f"Frontend KV block size ({frontend}) does not match worker block size ({worker}).\n"
            f"{both_fixes(engine, worker, frontend, setting)}\n"
            "KV-aware routing will not function until block sizes match.")


def selections(router):
    """(cached blocks, tree size) of each choice."""
    return [(int(blocks), int(size)) for blocks, size in
            re.findall(r"Selected worker: .*cached blocks: (\d+), tree size: (\d+)",
                       router.log_text())]


# --- the pages


def page(router, worker):
    """What /health says of a worker."""
    return next(entry for entry in router.health()["workers"] if entry["url"] == worker.url)


def rank(router, worker, number=0):
    return next(entry for entry in page(router, worker)["ranks"] if entry["rank"] == number)


def size(router, worker):
    """The block size, and how it is known; (None, None) if it is not."""
    shown = page(router, worker)
    return shown["block_size"], shown["block_size_source"]


def wait_for_state(router, worker, state, cause=None):
    eventually(lambda: (page(router, worker)["state"], page(router, worker)["cause"]) ==
               (state, cause), f"{worker.url} is {state} ({cause})")


def wait_for_trust(router, worker, trust, number=0):
    eventually(lambda: rank(router, worker, number)["trust"] == trust,
               f"rank {number} of {worker.url} is {trust}")


def of(router, worker, name, **labels):
    """A metric of one worker."""
    return router.metric(name, worker=router.worker_id(worker), **labels)


def gauge_is(router, worker, tokens, source, number=0):
    """The metric says so, and nothing else, of that rank."""
    labels = {"worker": router.worker_id(worker), "dp_rank": str(number)}
    series = {dict(has)["source"]: value for (name, has), value in router.metrics().items()
              if name == "kv_router_block_size" and labels.items() <= dict(has).items()}
    return series == {source: tokens}


def mismatches(router, worker, configured, reported):
    """By the metric, of these sizes; there are no others. Each known size has one that may be 0."""
    own = ("worker", router.worker_id(worker))
    counts = {(dict(has)["configured"], dict(has)["reported"]): value
              for (name, has), value in router.metrics().items()
              if name == "kv_router_block_size_mismatch_total" and own in has}
    assert {sizes for sizes, count in counts.items() if count} <= {(str(configured), str(reported))}, counts
    return sum(counts.values())


def dropped(router, worker, reason="block_size_mismatch"):
    return of(router, worker, "kv_router_dropped_events_total", reason=reason)


def not_ready(router):
    """What /ready says, which must not be that it is."""
    answer = router.get("/ready")
    assert answer.status == 503, answer.text()
    assert set(answer.json()) == {"status", "reason"}
    return answer.json()


# --- choices


def check_cache_aware(router, worker, number, tokens, blocks=256):
    """A prompt that the worker holds, and something more, goes there again with credit for it."""
    prompt = ids(number, blocks)
    whole = len(prompt) // tokens * tokens
    complete(worker, prompt)
    eventually(lambda: depth(router, worker, prompt + [1]) == whole,
               f"{whole} tokens are known on {worker.url}")
    answer = complete(router, prompt + ids(number + 10_000))
    assert (answer.worker, cached(answer)) == (router.worker_id(worker), whole)
    blocks, tree = selections(router)[-1]
    assert blocks == whole // tokens
    assert tree >= blocks
    wait_for_trust(router, worker, "trusted")


def check_unaware(router, number, blocks=256):
    """A conversation's second turn finds nothing, because nothing is in the index."""
    prompt = ids(number, blocks)
    complete(router, prompt)
    answer = complete(router, prompt + ids(number + 10_000))
    assert cached(answer) == 0
    assert set(selections(router)[-2:]) == {(0, 0)}
    assert set(lookup(router, prompt).values()) == {0}
    assert router.get("/debug/index").json()["held"] == 0
