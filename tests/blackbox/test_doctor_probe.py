"""fathom doctor --probe: conversations through a live router, to see whether follow-ups are fast."""

import json

import pytest

from conftest import FATHOM, run_fathom


def probe(router, *args):
    """The report, and how many chats the probe says that it has sent."""
    done = run_fathom("doctor", "--url", router.url, "--format", "json", *args)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    report = json.loads(done.stdout)
    return report, sum(entry["times"] for entry in report["sent"]
                       if entry["method"] == "POST" and entry["target"].endswith("/completions"))


def ids(report):
    return {finding["id"] for finding in report["findings"]}


def engines(mock, count=3):
    """Engines whose prefill takes long enough to be seen."""
    return [mock(profile="h200-llama-3.1-8b", engine="vllm") for _ in range(count)]


@pytest.fixture
def workers(mock):
    return engines(mock)


@pytest.fixture
def cached(serve, workers):
    return serve("--router-mode", "kv", workers=workers)


def test_nothing_is_sent_without_the_option(cached, workers):
    _, chats = probe(cached)
    assert chats == 0
    assert sum(worker.stats()["requests"] for worker in workers) == 0


@pytest.mark.skipif("build/asan" in FATHOM or "build/tsan" in FATHOM,
                    reason="a sanitizer's build takes longer than the prefill that is saved")
def test_follow_ups_are_faster_where_the_router_finds_the_cache(cached):
    report, chats = probe(cached, "--probe", 2)
    assert chats == 2 * 4 * 4  # levels, conversations, turns
    assert "follow-ups-slow" not in ids(report)
    assert "32 requests" in json.dumps(report)


def test_what_the_probe_says_that_it_sent_is_what_arrived(mock, serve):
    workers = engines(mock, 2)
    router = serve("--router-mode", "kv", workers=workers)
    _, chats = probe(router, "--probe", 1)
    assert chats == 16
    assert sum(worker.stats()["requests"] for worker in workers) == 16


def test_a_probe_of_a_healthy_fleet_finds_nothing_while_it_listens(mock, serve):
    router = serve("--router-mode", "kv", workers=engines(mock, 2))
    report, _ = probe(router, "--probe", 2, "--listen", "3s")
    assert report["findings"] == [], json.dumps(report["findings"])
    heard, = [t for s in report["sections"] for t in s["tables"] if t["title"] == "KV events received"]
    assert any(float(row[3]) > 0 for row in heard["rows"]), "what the probe makes the engines store is heard"


def test_a_probe_makes_a_silent_engine_give_itself_away(mock, serve):
    router = serve("--router-mode", "kv", workers=[mock(profile="h200-llama-3.1-8b", kv_silent=True)])
    report, _ = probe(router, "--probe", 2, "--listen", "6s")
    first = report["findings"][0]
    assert first["id"] == "no-events", json.dumps(report["findings"])
    assert any("the router predicted 0" in line for line in first["evidence"]), first["evidence"]


def test_a_router_that_scatters_turns_is_found(mock, serve):
    """Four engines in turn, four turns: every turn of a conversation meets another engine."""
    router = serve("--router-mode", "round-robin", workers=engines(mock, 4))
    report, _ = probe(router, "--probe", 1)
    first = report["findings"][0]
    assert first["id"] == "router-mode-missing", json.dumps(report)
    assert any("Follow-up turns take" in line for line in first["evidence"]), "what it does is evidence of the cause"


def test_a_model_that_nobody_has_is_said(cached):
    done = run_fathom("doctor", "--url", cached.url, "--probe", 4, "--probe-model", "no-such-model",
                      "--format", "json")
    report = json.loads(done.stdout)
    chats = [entry for entry in report["sent"] if entry["target"].endswith("/completions")]
    assert sum(entry["times"] for entry in chats) == 1  # the first refusal ends it
    assert "stopped at 1 conversations at once" in json.dumps(report)
