"""What the simulated engine tells about its blocks: the truth, nothing, something else, or late."""

import time

import pytest

import wire
from conftest import parse_metrics

ENGINES = ["vllm", "sglang", "trtllm"]
DEFAULTS = {"vllm": 16, "sglang": 1, "trtllm": 32}


@pytest.fixture
def simulated(mock):
    def start(**options):
        return mock(**{"profile": "h200-llama-3.1-8b", "speedup": 50, "num_blocks": 65, **options})
    return start


def complete(process, tokens=100, first=1, **fields):
    body = {"model": "mock-model", "prompt": list(range(first, first + tokens)), "max_tokens": 1,
            **fields}
    answer = wire.ask(process.port, "POST", "/v1/completions", body)
    assert answer.status == 200
    return answer.json()


def metrics(worker, path="/metrics"):
    return parse_metrics(worker.get(path).text())


def gauge(worker, name, path="/metrics"):
    return next((value for (series, _), value in metrics(worker, path).items() if series == name),
                None)


def vllm_sizes(worker):
    info = worker.get("/server_info").json()["vllm_config"]["cache_config"]
    labels = [dict(labels) for (series, labels) in metrics(worker)
              if series == "vllm:cache_config_info"]
    return [int(labels[0]["block_size"]) if labels else None, info["block_size"]]


def sglang_sizes(worker):
    info = worker.get("/server_info").json()
    old = worker.get("/get_server_info").json()
    return [info["page_size"], info["kv_events"].get("block_size"), old["page_size"],
            gauge(worker, "sglang:page_size")]


def trtllm_sizes(worker):
    complete(worker)  # it says nothing before
    iterations = worker.get("/metrics").json()
    assert iterations
    return [iterations[-1]["kvCacheStats"].get("tokensPerBlock"),
            gauge(worker, "trtllm_kv_cache_tokens_per_block", "/prometheus/metrics")]


def sizes(engine, worker):
    """What each place says where a block size could be."""
    return {"vllm": vllm_sizes, "sglang": sglang_sizes, "trtllm": trtllm_sizes}[engine](worker)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pages_tell_the_truth_unless_they_are_told_otherwise(engine, simulated):
    assert set(sizes(engine, simulated(engine=engine))) == {DEFAULTS[engine]}
    assert set(sizes(engine, simulated(engine=engine, block_size=64))) == {64}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pages_can_claim_another_block_size_than_the_cache_has(engine, simulated):
    worker = simulated(engine=engine, block_size=16, block_size_report=32)
    assert set(sizes(engine, worker)) == {32}
    complete(worker, first=1000)
    again = complete(worker, first=1000)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 96, "blocks are what they are"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_pages_can_leave_the_block_size_out(engine, simulated):
    worker = simulated(engine=engine, block_size=16, block_size_report="none")
    assert set(sizes(engine, worker)) == {None}
    # The rest is still there.
    if engine == "trtllm":
        assert gauge(worker, "trtllm_kv_cache_max_blocks", "/prometheus/metrics") == 64
    else:
        assert any(series.startswith(f"{engine}:") for series, _ in metrics(worker))


@pytest.mark.parametrize("text", ["some", "0", "-1", "65537", "16 "])
def test_what_the_pages_shall_claim_must_make_sense(text, world):
    process = world.start("mock", "--port", 0, f"--block-size-report={text}")
    assert process.wait() == 78
    assert "--block-size-report" in process.log_text()


REPORTS = ["/metrics", "/server_info", "/get_server_info", "/prometheus/metrics",
           "/kv_event_sources"]


def test_reports_can_be_late_and_only_they_are(simulated):
    worker = simulated(engine="trtllm", report_delay="300ms")

    def seconds(path):
        begun = time.monotonic()
        worker.get(path)
        return time.monotonic() - begun
    assert all(seconds(path) >= 0.3 for path in REPORTS)
    complete(worker)
    assert min(seconds("/health") for _ in range(20)) < 0.3


def test_a_late_report_keeps_nobody_from_leaving(simulated):
    worker = simulated(report_delay="1h")
    with wire.Connection(worker.port) as client:
        client.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert worker.get("/health").status == 200
        worker.signal(15)
        assert worker.wait() == 0


# --- TensorRT-LLM says nothing before it has run


def test_a_health_check_makes_trtllm_run_one_iteration(simulated):
    worker = simulated(engine="trtllm")
    assert worker.get("/metrics").json() == []
    assert gauge(worker, "trtllm_kv_cache_tokens_per_block", "/prometheus/metrics") is None
    assert worker.get("/health_generate").status == 200
    iterations = worker.get("/metrics").json()
    assert [it["kvCacheStats"]["tokensPerBlock"] for it in iterations] == [32]
    assert gauge(worker, "trtllm_kv_cache_tokens_per_block", "/prometheus/metrics") == 32
    assert worker.get("/metrics").json() == [], "asking takes them away"


def test_trtllm_without_statistics_of_iterations_has_an_empty_list(simulated):
    worker = simulated(engine="trtllm", iter_stats="off")
    assert worker.get("/health_generate").status == 200
    complete(worker)
    assert worker.get("/metrics").json() == []
    assert gauge(worker, "trtllm_kv_cache_tokens_per_block", "/prometheus/metrics") == 32


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_only_engines_that_have_it_answer_a_health_check_that_generates(engine, simulated):
    status = simulated(engine=engine).get("/health_generate").status
    assert status == (200 if engine == "sglang" else 404)


# --- restarts


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_can_have_another_size_after_a_restart(engine, simulated):
    worker = simulated(engine=engine, block_size=16, kv_restart_after=3, kv_restart_block_size=32)
    assert set(sizes(engine, worker)) == {16}
    for first in (1000, 2000, 3000):
        complete(worker, first=first)
    assert set(sizes(engine, worker)) == {32}
    complete(worker, first=9000)
    again = complete(worker, first=9000)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 96


def test_a_restart_that_says_another_size_is_not_heard_on_pages_that_claim_one(simulated):
    worker = simulated(block_size=16, kv_restart_after=1, kv_restart_block_size=32,
                       block_size_report=16)
    complete(worker)
    complete(worker, first=1000)
    assert set(sizes("vllm", worker)) == {16}


def test_a_restart_with_smaller_blocks_forgets_nobody(simulated):
    worker = simulated(engine="trtllm", block_size=64, num_blocks=5, kv_restart_after=1,
                       kv_restart_block_size=16)
    answer = complete(worker, tokens=200, max_tokens=40)
    assert answer["usage"]["completion_tokens"] == 40
    events = [event["data"] for event in
              wire.ask(worker.port, "POST", "/kv_cache_events", {}).json()]
    created = [data for data in events if data["type"] == "created"]
    assert [data["num_blocks_per_cache_level"][0] for data in created] == [16], "as many tokens"
    stored = [block for data in events if data["type"] == "stored" for block in data["blocks"]]
    assert {len(block["tokens"]) for block in stored} == {16}
