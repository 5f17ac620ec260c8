"""The doctor beside a fleet that runs: what it finds, and that it only looks."""

import json
import threading
import time

import pytest

from conftest import run_fathom
from doctor_server import DoctorServer, dynamo_pages, sglang_pages, trtllm_pages, vllm_pages
from trust import ROUTER, Traffic, mock_of, router_of
from wire import ask, eventually, free_port
from wiretap import Wiretap

READ_ONLY_TARGETS = ("/live", "/ready", "/health", "/metrics", "/debug/decisions", "/debug/index", "/v1/models",
                     "/workers", "/version", "/kv_event_sources", "/server_info", "/get_server_info", "/v1/loads",
                     "/prometheus/metrics")


def report(*args, status=None):
    ran = run_fathom("doctor", "--format", "json", *args)
    assert ran.returncode == status if status is not None else ran.returncode in (0, 1), ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def ids(found):
    return [finding["id"] for finding in found["findings"]]


def assert_looked_only(tap):
    """Nothing but questions has passed here."""
    requests = tap.requests()
    assert requests
    for request in requests:
        path = request.target.split("?")[0]
        allowed = (request.method == "GET" and path in READ_ONLY_TARGETS) or \
                  (request.method == "POST" and path == "/tokenize")
        assert allowed, (request.method, request.target)


def fleet(world, **options):
    workers = [mock_of(world, **options) for _ in range(2)]
    router = router_of(world, workers)
    traffic = Traffic(router)
    for _ in range(20):
        prompt = traffic.fresh()
        traffic.send(prompt)
        traffic.send(prompt)
    eventually(lambda: all(r["trust"] == "trusted" for w in router.health()["workers"] for r in w["ranks"]), "trust")
    return router, workers


def test_a_healthy_fleet_is_healthy_from_every_side(world):
    router, workers = fleet(world)
    found = report("--url", router.url, status=0)
    assert found["findings"] == [] and found["status"] == "healthy"
    found = report("--url", router.url, "--worker", *(worker.url for worker in workers), "--listen", "1s")
    assert [f for f in found["findings"] if f["severity"] == "error"] == [], found["findings"]


def test_every_request_only_reads(world):
    router, workers = fleet(world)
    before = [ask(worker.port, "GET", "/mock/stats").json() for worker in workers]
    taps = [Wiretap(router), *(Wiretap(worker) for worker in workers)]
    found = report("--url", taps[0].url, "--worker", *(tap.url for tap in taps[1:]), "--listen", "1s")
    for tap in taps:
        assert_looked_only(tap)
        tap.stop()
    listed = {(sent["method"], sent["target"].split("/", 3)[3]) for sent in found["sent"]}
    passed = {(request.method, request.target[1:]) for tap in taps for request in tap.requests()}
    assert listed == passed, "the report names exactly what was sent"
    after = [ask(worker.port, "GET", "/mock/stats").json() for worker in workers]
    for field in ("requests", "completed", "prompt_tokens"):
        assert [s.get(field) for s in before] == [s.get(field) for s in after], field


@pytest.mark.parametrize("pages, options", [
    (vllm_pages, {}), (sglang_pages, {}), (trtllm_pages, {}),
], ids=["vllm", "sglang", "trtllm"])
def test_engines_are_only_asked_what_takes_nothing_away(pages, options):
    with DoctorServer(pages(**options)) as engine:
        found = report("--worker", engine.url)
        engine.assert_only_read(drains=pages is trtllm_pages)
        assert len(found["sent"]) == len(set(engine.asked()))


def test_trtllm_is_drained_only_when_that_is_asked_for():
    with DoctorServer({**trtllm_pages(), "POST /kv_cache_events": []}) as engine:
        report("--worker", engine.url, "--listen", "1s")
        assert ("POST", "/kv_cache_events") not in engine.asked()
        report("--worker", engine.url, "--listen", "1s", "--drain")
        assert ("POST", "/kv_cache_events") in engine.asked()


def test_dynamo_at_16_and_engines_at_32_are_a_mismatch():
    with DoctorServer(dynamo_pages(block_size=16, stored=10, orphans=90)) as frontend, \
            DoctorServer(trtllm_pages(tokens_per_block=32)) as engine:
        found = report("--dynamo-url", frontend.url, "--worker", engine.url, status=1)
        assert ids(found)[0] == "block-size-mismatch"
        assert any("could not be applied" in line for line in found["findings"][0]["evidence"])
        frontend.assert_only_read()


def test_dynamo_and_engines_that_agree_are_healthy():
    with DoctorServer(dynamo_pages(block_size=32, stored=100)) as frontend, \
            DoctorServer(trtllm_pages(tokens_per_block=32)) as engine:
        assert report("--dynamo-url", frontend.url, "--worker", engine.url)["findings"] == []


# --- engines asked directly, each with its fault


@pytest.mark.parametrize("options, finding", [
    ({"kv_events": "off"}, "no-events"),
    ({"no_prefix_caching": True}, "prefix-caching-off"),
    ({"engine": "sglang", "block_size": 1}, "page-size-one"),
    ({"kv_events_connect": "tcp://127.0.0.1:9"}, "endpoint-connects"),
])
def test_a_fault_that_an_engine_admits_is_found_without_a_router(world, options, finding):
    worker = mock_of(world, **options)
    assert ids(report("--worker", worker.url, status=1))[0] == finding


def test_an_engine_that_lists_no_event_source_publishes_none():
    """vLLM 0.32 without --kv-events-config."""
    with DoctorServer({**vllm_pages(), "/kv_event_sources": {}}) as engine:
        found = report("--worker", engine.url, status=1)
        first = found["findings"][0]
        assert (first["id"], first["severity"]) == ("no-events", "error")
        setting = first["fixes"][0]["setting"]
        assert all(f'"{part}"' in setting for part in ("publisher", "endpoint", "replay_endpoint")), setting


def test_a_mixed_fleet_is_not_advised_to_be_mixed(world):
    workers = [mock_of(world, block_size=16), mock_of(world, block_size=32)]
    router = world.serve(*ROUTER, "--block-size-conflict", "mixed", workers=workers)
    eventually(lambda: all(w["state"] == "ready" and w["block_size"] for w in router.health()["workers"]), "both serve")
    found = report("--url", router.url, "--worker", *(worker.url for worker in workers))
    assert "block-size-conflict" not in ids(found)


def test_a_late_worker_of_another_size_is_not_blamed_on_a_setting(world):
    first, late = mock_of(world, block_size=16), mock_of(world, block_size=32)
    router = router_of(world, [first])
    eventually(lambda: router.get("/ready").status == 200, "it serves")
    assert ask(router.port, "POST", "/workers", {"url": late.url}).status in (200, 201)
    eventually(lambda: any(w["cause"] == "block_size_conflict" for w in router.health()["workers"]), "it is refused")
    found = report("--url", router.url, status=1)
    assert ids(found)[0] == "block-size-conflict" and "block-size-mismatch" not in ids(found)
    advice = " ".join(fix["what"] + fix["setting"] for fix in found["findings"][0]["fixes"])
    assert "Remove the block size" not in advice and "KV_CACHE_BLOCK_SIZE" not in advice
    assert not [fix for fix in found["findings"][0]["fixes"] if not fix["what"][0].isupper()]


def test_engines_of_different_sizes_are_a_conflict(world):
    workers = [mock_of(world, block_size=16), mock_of(world, block_size=32)]
    assert ids(report("--worker", *(w.url for w in workers), status=1))[0] == "block-size-conflict"


def test_listening_measures_what_comes(world):
    worker = mock_of(world)
    router = router_of(world, [worker])
    traffic = Traffic(router)

    def keep_busy():
        end = time.monotonic() + 4
        while time.monotonic() < end:
            traffic.send()
    busy = threading.Thread(target=keep_busy)
    busy.start()
    found = report("--worker", worker.url, "--listen", "2s")
    busy.join()
    heard, = [t for s in found["sections"] for t in s["tables"] if t["title"] == "KV events received"]
    row = dict(zip(heard["columns"], [c["text"] if isinstance(c, dict) else c for c in heard["rows"][0]]))
    assert float(row["stored/s"]) > 0 and row["gaps"] == "0"
    assert row["sizes"] == "16"


def test_a_wrong_setting_of_a_running_router_is_found_with_what_mends_it(world):
    worker = mock_of(world)
    router = world.serve(*ROUTER, "--kv-cache-block-size", "32", workers=[worker])
    traffic = Traffic(router)
    for _ in range(5):
        traffic.send()
    eventually(lambda: router.health()["workers"][0]["ranks"][0]["cause"] == "block_size_mismatch", "it is named")
    first = report("--url", router.url, "--worker", worker.url, status=1)["findings"][0]
    assert first["id"] == "block-size-mismatch"
    assert any("--kv-cache-block-size" in fix["setting"] + fix["what"] for fix in first["fixes"])


def test_a_router_that_looks_at_no_cache_is_found(world):
    workers = [mock_of(world) for _ in range(2)]
    router = world.serve("--router-mode", "round-robin", workers=workers)
    Traffic(router).send()
    assert "router-mode-missing" in ids(report("--url", router.url))


def test_an_admin_key_that_is_missing_is_asked_for(world):
    worker = mock_of(world)
    router = world.serve("--admin-key", "hush", workers=[worker])
    ran = run_fathom("doctor", "--url", router.url)
    assert ran.returncode == 2, "nothing of its workers was seen"
    assert "--admin-key" in ran.stdout
    seen = run_fathom("doctor", "--url", router.url, "--admin-key", "hush")
    assert seen.returncode == 0 and "hush" not in seen.stdout


def test_a_port_without_the_admin_pages_is_not_taken_for_a_healthy_fleet(world):
    admin = free_port()
    router = world.serve("--admin-listen", f"127.0.0.1:{admin}", workers=[mock_of(world)])
    ran = run_fathom("doctor", "--format", "json", "--url", router.url)
    assert ran.returncode == 2 and json.loads(ran.stdout)["status"] == "unseen"
    assert "--admin-listen" in ran.stdout
    assert run_fathom("doctor", "--url", f"http://127.0.0.1:{admin}").returncode == 0
