"""What engines say of themselves: capacity and load, in /health and in the metrics."""

import pytest

import wire
from choices import Asked
from wire import eventually

# What each of them tells of its limits.
ENGINES = {
    "vllm": {},
    "sglang": {"max_running": 7},
    "trtllm": {"max_running": 7},
}


@pytest.fixture
def simulated(mock):
    def start(**options):
        return mock(**{"profile": "h200-llama-3.1-8b", "speedup": 50, "num_blocks": 65,
                       "max_num_seqs": 7, **options})
    return start


def complete(process, headers=(), tokens=40, **fields):
    body = {"model": "mock-model", "prompt": list(range(1, tokens + 1)), "max_tokens": 4, **fields}
    return wire.ask(process.port, "POST", "/v1/completions", body, headers)


def entry(router, worker):
    return next(w for w in router.health()["workers"] if w["url"] == worker.url)


def reported(router, worker, what=lambda said: said["engine"]):
    """Its entry in /health, once it says so much."""
    return eventually(lambda: what(said := entry(router, worker)) and said, "a report")


@pytest.mark.parametrize("engine", ENGINES)
def test_health_shows_what_each_engine_says(engine, simulated, serve):
    worker = simulated(engine=engine, block_size=32)
    router = serve("--engine-load-interval", "50ms", workers=[worker])

    def load(said):
        assert complete(worker).status == 200  # TensorRT-LLM has something to say while it works
        return said["load"]
    said = reported(router, worker, load)
    assert said["engine"] == engine
    assert said["block_size"] == 32
    assert said["block_size_source"] in ("report", "events")
    # One block of the pool is reserved; vLLM counts it all the same.
    assert said["kv_tokens"] in (64 * 32, 65 * 32)
    assert said["max_running"] == ENGINES[engine].get("max_running")
    assert said["prefix_caching"] is (True if engine == "vllm" else None)
    assert set(said["load"]) == {"running", "waiting", "cache_usage"}
    assert said["report_age_seconds"] >= 0
    router.wait_for_log(f"Worker identified.*{engine}")


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_load_follows_the_engine_up_and_down(engine, simulated, serve):
    worker = simulated(engine=engine, block_size=16, speedup=1, num_blocks=16384)
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    number = router.worker_id(worker)
    # Sent past the router: what it did not send itself counts as well. They end when they are left.
    asked = [Asked(worker, list(range(1, 41)), stream=True, max_tokens=100_000) for _ in range(9)]

    def load(said):
        return said["load"] and (said["load"]["running"], said["load"]["waiting"])
    busy = reported(router, worker, lambda said: load(said) == (7, 2))
    assert 0 < busy["load"]["cache_usage"] <= 1
    assert router.metric("kv_router_engine_running", worker=number, dp_rank="0") == 7
    for request in asked:
        request.leave()
    reported(router, worker, lambda said: load(said) == (0, 0))
    eventually(lambda: router.metric("kv_router_engine_cache_usage", worker=number) == 0, "idle")


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_each_rank_has_its_own_metrics(engine, simulated, serve):
    worker = simulated(engine=engine, block_size=16, dp_size=2, speedup=1, num_blocks=16384)
    # At once, because TensorRT-LLM chooses the rank itself, and only ranks that run tell anything.
    asked = [Asked(worker, list(range(1, 41)), {"X-data-parallel-rank": str(number % 2)},
                   stream=True, max_tokens=100_000) for number in range(8)]
    for request in asked:
        assert request.head().status == 200
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    said = reported(router, worker, lambda said: said["load"])
    assert said["kv_tokens"] in (16383 * 16, 16384 * 16), "of one rank, not of both"
    number = router.worker_id(worker)

    def ranks(name):
        return {dict(labels)["dp_rank"] for (series, labels) in router.metrics()
                if series == f"kv_router_engine_{name}" and dict(labels)["worker"] == number}
    for name in ("running", "waiting", "cache_usage"):
        eventually(lambda: ranks(name) == {"0", "1"}, f"both ranks tell {name}")
    for request in asked:
        request.leave()


def test_an_engine_that_cannot_say_serves_all_the_same(mock, serve):
    worker = mock()  # paced: it has none of the pages
    router = serve("--engine-load-interval", "20ms", workers=[worker])
    assert router.chat().status == 200
    said = entry(router, worker)
    assert [said[key] for key in ("engine", "block_size", "block_size_source", "kv_tokens", "load",
                                  "report_age_seconds")] == [None] * 6
    assert not any(series.startswith("kv_router_engine_") for series, _ in router.metrics())


def test_nobody_is_asked_when_it_is_off(simulated, serve):
    worker = simulated()
    router = serve("--engine-load-interval", "0", "--router-mode", "round-robin", workers=[worker])
    assert router.chat().status == 200
    assert entry(router, worker)["engine"] is None
    assert not any(series.startswith("kv_router_engine_") for series, _ in router.metrics())


def test_the_last_report_of_a_worker_that_is_gone_only_ages(simulated, serve):
    worker = simulated(block_size=16)
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    reported(router, worker, lambda said: said["load"])
    worker.kill()
    gone = reported(router, worker, lambda said: said["state"] == "unhealthy")
    assert gone["block_size"] == 16
    later = reported(router, worker,
                     lambda said: said["report_age_seconds"] > gone["report_age_seconds"])
    assert later["load"] == gone["load"]
    assert router.metric("kv_router_engine_running") == 0
    assert not any(series.startswith("kv_router_engine_") for series, _ in router.metrics())


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_worker_says_it_again_after_a_restart_with_another_block_size(engine, simulated, serve):
    first = simulated(engine=engine, block_size=16)
    router = serve("--engine-load-interval", "50ms", workers=[first])
    assert reported(router, first)["block_size"] == 16
    first.kill()
    # It has been asked in vain, which is before the health checks give it up.
    reported(router, first, lambda said: said["report_age_seconds"] > 0.5)
    second = simulated(engine=engine, block_size=64, port=first.port)
    again = reported(router, second, lambda said: said["block_size"] == 64)
    assert again["state"] == "ready"


def test_trtllm_may_tell_its_blocks_on_its_other_page_only(simulated, serve):
    worker = simulated(engine="trtllm", iter_stats="off")
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    assert complete(worker).status == 200  # it knows only once it has run
    said = reported(router, worker, lambda said: said["block_size"])
    assert said["block_size"] == 32
    assert said["kv_tokens"] == 64 * 32
    assert worker.get("/metrics").json() == []


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_an_engine_that_leaves_its_block_size_out_is_known_all_the_same(engine, simulated, serve):
    worker = simulated(engine=engine, block_size=16, block_size_report="none")
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    said = reported(router, worker, lambda said: said["load"])
    assert said["engine"] == engine
    assert said["block_size"] is None
