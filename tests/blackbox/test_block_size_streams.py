"""Nothing is configured but the workers' URLs: where their events are, on how many ranks, under
which topic and in blocks of which size, the engines say themselves."""

import re

import pytest

from block_sizes import (ENGINES, SOON, check_cache_aware, check_unaware, complaints, gauge_is,
                         mismatch_words, page, rank, say, size, start, wait_for_state,
                         wait_for_trust)
from choices import cached, complete, depth, follow, ids
from kv_engine import add
from test_kv_end_to_end import WIRES
from wire import eventually, free_port

SIZES = {"vllm": 16, "sglang": 1, "trtllm": 32}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_is_understood_from_its_url_alone(engine, world):
    worker = start(world, engine, 0, kv_events_topic="kv@some.host@mock-model")
    router = world.serve(*SOON, workers=[worker])
    follow(router, 1)
    source = rank(router, worker)["events"]
    if engine == "trtllm":
        assert source == worker.url + "/kv_cache_events"
    else:  # it listens on all addresses, and is spoken to at its own
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", source)
        assert "topic=kv@some.host@mock-model" in say(router, f"endpoint={source} ", "INFO")
    shown = page(router, worker)
    assert (shown["engine"], shown["models"]) == (engine, ["mock-model"])
    assert size(router, worker) == (SIZES[engine], "report")
    assert shown["kv_tokens"] // 1000 == 262 and shown["kv_blocks"] * SIZES[engine] // 1000 == 262
    check_cache_aware(router, worker, 1, SIZES[engine], blocks=64)
    assert not complaints(router)


def written(world, engine, version, *args, **options):
    """A worker that writes its events so, and a router that follows them."""
    entry = {}
    if version == "stream":  # TensorRT-LLM does not say where
        options["kv_events_port"] = free_port()
        entry["kv_events"] = f"tcp://127.0.0.1:{options['kv_events_port']}"
    worker = start(world, engine, 32, wire=version, **options)
    router = world.serve(*SOON, *args)
    add(router, worker, {"url": worker.url, **entry})
    wait_for_state(router, worker, "ready")
    follow(router, 1)
    return router, worker


@pytest.mark.parametrize("engine, version", WIRES)
def test_however_events_are_written_they_tell_the_size(engine, version, world):
    router, worker = written(world, engine, version, block_size_report="none")
    check_cache_aware(router, worker, 1, 32)
    say(router, "Auto-configured KV block size to 32 (from KV events)", "INFO")
    assert size(router, worker) == (32, "events")


@pytest.mark.parametrize("engine, version", WIRES)
def test_however_events_are_written_a_wrong_size_is_an_error(engine, version, world):
    router, _ = written(world, engine, version, "--kv-cache-block-size", 16)
    complete(router, ids(1, 64))
    say(router, mismatch_words(engine, 32, 16, "--kv-cache-block-size="), "ERROR")
    check_unaware(router, 2)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_rank_is_followed_and_has_its_size(engine, world):
    worker = start(world, engine, 32, dp_size=3)
    router = world.serve(workers=[worker])
    follow(router, 3)
    sources = [rank(router, worker, number)["events"] for number in range(3)]
    first = int(sources[0].rsplit(":", 1)[1])
    assert sources == [f"tcp://127.0.0.1:{first + number}" for number in range(3)]
    for number in range(3):
        prompt = ids(number + 1, 64)
        complete(worker, prompt, {"X-data-parallel-rank": str(number)})
        eventually(lambda: depth(router, worker, prompt + [1], number) == len(prompt),
                   "it is known")
        wait_for_trust(router, worker, "trusted", number)
        assert gauge_is(router, worker, 32, "events", number)
        answer = complete(router, prompt + ids(number + 100))
        assert answer.header("x-fathom-dp-rank") == str(number)
        assert cached(answer) == len(prompt)
    assert not complaints(router)
