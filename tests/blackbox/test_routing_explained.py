"""Why a request went where it went: the log line that users know, the headers, the last decisions,
and what would be decided about a request that is not sent."""

import json
import re

import pytest

import wire
from choices import (BLOCK, QUICK, cached, complete, decision_of, decisions, explain, follow, found,
                     ids, loads, seed, send)
from conftest import json_lines
from wire import eventually

A, B, C = ids(1), ids(2), ids(3)
PATIENT = ("--tokenize-timeout", "60s")  # however slow this machine is
LINE = re.compile(r"Selected worker: worker_id=(\d+) dp_rank=(\d+), logit: (\d+\.\d{3}), "
                  r"cached blocks: (\d+), tree size: (\d+)")
CANDIDATE = {"worker", "dp_rank", "url", "cost", "cached_tokens", "cached_tiers", "block_size",
             "believed_tokens", "shared_tokens", "trust", "slowness", "backlog_tokens",
             "queued_tokens", "context_tokens", "requests", "waiting", "reused_tokens",
             "prefill_work", "prefill", "decode"}
DECISION = {"number", "age_seconds", "request_id", "model", "mode", "depths_from", "prompt_tokens",
            "pressure", "waited_seconds", "tree_size", "random", "weights", "worker", "dp_rank",
            "cached_tokens", "believed_tokens", "cost", "margin", "candidates"}


@pytest.fixture
def fleet(mock, serve):
    """A router, and two engines of which the second holds A and B."""
    def start(*args, seeded=True, **options):
        workers = [mock(**{**QUICK, **options}) for _ in range(2)]
        router = serve(*args, workers=workers)
        follow(router, 2)
        if seeded:
            seed(router, workers[1], A + B)
        return router, workers
    return start


# --- the log


def test_the_log_line_has_the_form_that_users_know(fleet):
    router, (_, holder) = fleet()
    answer = complete(router, A + B + C)
    line = router.wait_for_log(LINE.pattern)
    worker, rank, cost, blocks, tree = line.groups()
    decision = decision_of(router, answer)
    assert (worker, rank) == (router.worker_id(holder), "0")
    assert int(blocks) == len(A + B) // BLOCK
    assert int(tree) == decision["tree_size"] == len(A + B) // BLOCK
    assert float(cost) == pytest.approx(decision["cost"], abs=0.001)
    assert f"request_id={answer.header('x-request-id')}" in router.log_text()
    assert " INFO" in router.log_text()[:line.start()].splitlines()[-1]


def test_each_request_has_its_line(fleet):
    router, _ = fleet(seeded=False)
    for number in range(5):
        complete(router, ids(10 + number))
    eventually(lambda: len(LINE.findall(router.log_text())) == 5, "five lines")


def test_the_line_is_a_message_in_json_logs_too(fleet):
    router, _ = fleet("--log-format", "json", seeded=False)
    answer = complete(router, A)
    router.wait_for_log(LINE.pattern)
    (record,) = [r for r in json_lines(router.log_text()) if "Selected worker" in str(r)]
    assert record["request_id"] == answer.header("x-request-id")
    assert record["level"] == "INFO"


def test_the_lines_can_be_turned_off(fleet):
    router, _ = fleet("--no-log-selections")
    complete(router, A)
    assert len(decisions(router)) == 1
    assert "Selected worker" not in router.log_text()


# --- the headers


def test_answers_say_where_they_come_from(fleet):
    router, (_, holder) = fleet()
    answer = complete(router, A + B + C)
    assert answer.worker == router.worker_id(holder)
    assert answer.header("x-fathom-dp-rank") == "0"
    assert cached(answer) == found(answer) == len(A + B)


def test_the_headers_can_be_turned_off(fleet):
    router, _ = fleet("--no-routing-headers")
    answer = complete(router, A + B + C)
    assert [name for name, _ in answer.headers if name.startswith("x-fathom")] == []
    assert answer.header("x-request-id")


def test_streams_carry_the_headers_too(fleet):
    router, (_, holder) = fleet()
    with wire.Connection(router.port) as connection:
        body = {"model": "mock-model", "prompt": A + B + C, "max_tokens": 4, "stream": True}
        connection.request("POST", "/v1/completions", body)
        head = connection.read_head()
        assert (head.worker, cached(head)) == (router.worker_id(holder), len(A + B))
        assert list(connection.events(head))[-1] == "[DONE]"


# --- the last decisions


def test_a_decision_lists_every_candidate(fleet):
    router, workers = fleet()
    answer = complete(router, A + B + C)
    decision = decision_of(router, answer)
    assert set(decision) >= DECISION
    assert decision["mode"] == "kv" and decision["depths_from"] == "events"
    assert decision["model"] == "mock-model"
    assert decision["prompt_tokens"] == len(A + B + C)
    assert (str(decision["worker"]), decision["cached_tokens"]) == (answer.worker, cached(answer))
    assert decision["waited_seconds"] == 0 <= decision["age_seconds"]
    best, other = decision["candidates"]
    assert set(best) == set(other) >= CANDIDATE
    assert {c["url"] for c in (best, other)} == {worker.url for worker in workers}
    assert (best["cached_tokens"], other["cached_tokens"]) == (len(A + B), 0)
    assert (best["reused_tokens"], other["reused_tokens"]) == (len(A + B), 0)
    assert best["cached_tiers"] == {"device": len(A + B), "host": 0, "disk": 0, "external": 0}
    assert best["block_size"] == BLOCK
    assert best["prefill_work"] < other["prefill_work"]
    assert best["cost"] == decision["cost"] < other["cost"]
    assert decision["margin"] == pytest.approx(other["cost"] - best["cost"])


def test_a_decision_shows_the_load_at_its_time(fleet):
    router, _ = fleet(seeded=False, speedup=1)
    streams = [wire.Stream(router.port, max_tokens=100_000) for _ in range(2)]
    for stream in streams:
        stream.next()
    decision = decision_of(router, complete(router, A))
    assert sum(c["requests"] for c in decision["candidates"]) == 2
    assert sum(c["context_tokens"] for c in decision["candidates"]) > 0
    for stream in streams:
        stream.close()


def test_the_newest_decision_comes_first(fleet):
    router, _ = fleet(seeded=False)
    asked = [complete(router, ids(10 + n)).header("x-request-id") for n in range(7)]
    page = router.get("/debug/decisions").json()
    assert page["count"] == 7
    assert [d["request_id"] for d in page["decisions"]] == asked[::-1]
    assert [d["number"] for d in page["decisions"]] == list(range(7, 0, -1))
    assert [d["request_id"] for d in decisions(router, 3)] == asked[:-4:-1]
    assert decisions(router, 0) == []
    assert len(decisions(router, 10**18)) == 7


def test_so_many_decisions_are_kept(fleet):
    router, _ = fleet("--decisions-kept", 3, seeded=False)
    asked = [complete(router, ids(10 + n)).header("x-request-id") for n in range(8)]
    assert [d["request_id"] for d in decisions(router)] == asked[:-4:-1]
    assert router.get("/debug/decisions").json()["count"] == 8


def test_no_decisions_need_be_kept(fleet):
    router, _ = fleet("--decisions-kept", 0, seeded=False)
    complete(router, A)
    assert decisions(router) == []


# --- what would be decided


def test_an_explanation_is_what_then_happens(fleet):
    router, _ = fleet()
    told = explain(router, A + B + C)
    answer = complete(router, A + B + C)
    done = decision_of(router, answer)
    assert set(told) >= DECISION
    assert (told["number"], told["request_id"]) == (None, "")
    for key in ("worker", "dp_rank", "cached_tokens", "prompt_tokens", "cost", "margin"):
        assert told[key] == done[key], key


def test_an_explanation_leaves_no_trace(fleet):
    router, workers = fleet()
    before = [worker.stats()["requests"] for worker in workers]
    for _ in range(5):
        explain(router, A + B + C)
    assert [worker.stats()["requests"] for worker in workers] == before
    assert router.get("/debug/decisions").json() == {"count": 0, "decisions": []}
    assert loads(router) == {}
    for name in ("decisions_total", "sent_marks", "prompt_tokens_total", "cached_tokens_total"):
        assert router.metric(f"kv_router_{name}") == 0, name
    assert "Selected worker" not in router.log_text()
    assert explain(router, A + B + C)["believed_tokens"] == 0


def test_a_chat_can_be_explained(fleet):
    router, _ = fleet(*PATIENT, seeded=False)
    body = wire.chat_body(messages=[{"role": "user", "content": "a question " * 50}])
    answer = wire.ask(router.port, "POST", "/debug/explain", body)
    assert answer.status == 200
    assert answer.json()["prompt_tokens"] > 50
    assert answer.json()["depths_from"] == "events"


@pytest.mark.parametrize("body", ["", "no json", "[1]", '{"model": 1'])
def test_what_is_no_request_is_not_explained(shared, body):
    answer = wire.ask(shared.port, "POST", "/debug/explain", body)
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


@pytest.fixture(scope="module")
def shared(shared_world):
    worker = shared_world.mock(**QUICK)
    return shared_world.serve(workers=[worker])


def test_pages_say_what_they_do_not_have(shared):
    unknown = wire.ask(shared.port, "POST", "/debug/explain", {"model": "x", "prompt": [1]})
    assert (unknown.status, unknown.error["code"]) == (404, "model_not_found")
    assert shared.get("/debug/explain").status == 405
    assert wire.ask(shared.port, "POST", "/debug/decisions", {}).status == 405
    for limit in ("x", "-1", "", "1.5", "99999999999999999999"):
        answer = shared.get(f"/debug/decisions?limit={limit}")
        assert (answer.status, answer.error["code"]) == (400, "bad_limit"), limit


def test_a_mode_that_does_not_look_at_prompts_has_nothing_to_explain(mock, serve):
    router = serve("--router-mode", "round-robin", workers=[mock()])
    assert send(router, A).status == 200
    answer = wire.ask(router.port, "POST", "/debug/explain", {"prompt": A})
    assert (answer.status, answer.error["code"]) == (404, "not_by_prompt")
    assert decisions(router) == []


def test_without_workers_there_is_nothing_to_choose(serve):
    answer = wire.ask(serve().port, "POST", "/debug/explain", {"prompt": A})
    assert (answer.status, answer.error["code"]) == (503, "no_workers")


def test_the_pages_are_the_operators(mock, serve):
    router = serve("--admin-key", "secret", workers=[mock(**QUICK)])
    assert router.get("/debug/decisions").status == 401
    assert wire.ask(router.port, "POST", "/debug/explain", {"prompt": A}).status == 401
    key = {"Authorization": "Bearer secret"}
    assert router.get("/debug/decisions", key).status == 200
    assert wire.ask(router.port, "POST", "/debug/explain", {"prompt": A}, key).status == 200


# --- never the prompt


def test_nobody_repeats_a_prompt(fleet):
    canary = "quicksilver-heron"
    router, _ = fleet(*PATIENT, "--log-level", "debug", "--log-requests", seeded=False)
    chat = wire.chat_body(messages=[{"role": "user", "content": f"{canary} " * 30}], max_tokens=1)
    text = {"model": "mock-model", "prompt": f"{canary} " * 30, "max_tokens": 1}
    for _ in range(2):
        assert wire.ask(router.port, "POST", "/v1/chat/completions", chat).status == 200
        assert wire.ask(router.port, "POST", "/v1/completions", text).status == 200
    explained = [wire.ask(router.port, "POST", "/debug/explain", body) for body in (chat, text)]
    assert {answer.status for answer in explained} == {200}
    broken = wire.ask(router.port, "POST", "/debug/explain", json.dumps(text)[:-1])
    assert broken.status == 400
    latest = decisions(router)
    assert [d["depths_from"] for d in latest] == ["events"] * 4, "the texts were tokenized"
    pages = [answer.text() for answer in (*explained, broken, router.get("/metrics"))]
    for page in (*pages, json.dumps(latest), router.log_text()):
        assert "quicksilver" not in page and "heron" not in page
