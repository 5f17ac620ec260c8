"""Prompts that are routed without their prefix are never a silent matter: /health, /ready, the log, /metrics and the
doctor say so, while every rank is trusted and every request succeeds."""

import json

import pytest

import wire
from conftest import run_fathom
from doctor_server import DoctorServer
from model_fleet import SYSTEM, blind_router, engine, router_of
from test_tokenize_busy import keep_busy
from test_waste import WASTED, Fleet
from tokenizers import write_model
from wire import ask, eventually

UNREAD = "kv_router_prompts_unread_total"


def chat(router, number, **fields):
    answer = router.chat(messages=[{"role": "user", "content": f"How deep is it at buoy {number}? " * 10}], **fields)
    assert answer.status == 200, answer.text()
    return answer


def model_of(router):
    [model] = router.health()["models"]
    return model


def turns(router, count=8, conversation=0, **fields):
    """A conversation in which every turn is longer than the one before it."""
    messages = [{"role": "system", "content": f"Conversation {conversation}. {SYSTEM}"}]
    for turn in range(count):
        messages.append({"role": "user", "content": f"And how deep is it at buoy {turn}? " * 8})
        answer = router.chat(messages=messages, max_tokens=4, **fields)
        assert answer.status == 200, answer.text()
        messages.append({"role": "assistant", "content": "About four fathoms."})


def doctor(*args, status):
    ran = run_fathom("doctor", "--format", "json", *args)
    assert ran.returncode == status, ran.stderr + ran.stdout
    return json.loads(ran.stdout)


def unread_finding(report):
    found = [finding for finding in report["findings"] if finding["id"] == "prompts-unread"]
    assert len(found) == 1, report["findings"]
    return found[0]


def trtllm_fleet(world, *args):
    """The setting of the seeds: TensorRT-LLM, chats, nothing configured."""
    return blind_router(world, [engine(world, "trtllm", None) for _ in range(2)], *args)


def test_the_setting_of_the_seeds_is_not_silent(world):
    router = trtllm_fleet(world, "--ready-when", "trusted")
    assert model_of(router)["status"] == "ok"
    for i in range(5):
        chat(router, i)
    assert model_of(router)["status"] == router.health()["status"] == "ok", "a few are normal"
    assert router.metric("kv_router_unread_models") == 0
    chat(router, 5)
    model = model_of(router)
    assert (model["status"], model["cause"], model["reason"]) == ("degraded", "prompts_unread", "no_tokenizer")
    assert (model["route"], model["engine"], model["share"]) == ("chat", "trtllm", 1)
    assert "--model-path" in model["fix"] and model["docs"] == "fathom docs prompts-unread"
    assert router.health()["status"] == "degraded"
    ready = router.get("/ready")
    assert (ready.status, ready.json()["status"]) == (503, "prompts unread")
    assert router.metric(UNREAD, route="chat", reason="no_tokenizer") == 6
    assert router.metric("kv_router_unread_models") == 1
    eventually(lambda: "prompts_unread" in router.log_text(), "it is logged")
    assert router.log_text().count("cause=prompts_unread") == 1
    decisions = router.get("/debug/decisions").json()["decisions"]
    assert {decision["tokens_from"] for decision in decisions} == {"none"}


def test_the_page_that_is_named_is_there():
    shown = run_fathom("docs", "prompts-unread")
    assert shown.returncode == 0 and "Prompts are routed without their prefix" in shown.stdout


# --- the doctor


def test_the_doctor_finds_it_where_every_rank_is_trusted(world):
    router = trtllm_fleet(world)
    for conversation in range(3):
        turns(router, conversation=conversation)
    report = doctor("--url", router.url, status=1)
    assert report["findings"][0]["id"] == "prompts-unread", "it explains the rest"
    finding = unread_finding(report)
    assert (finding["severity"], finding["subject"]) == ("error", "model mock-model")
    evidence = "\n".join(finding["evidence"])
    for part in ("route chat", "engine trtllm", "reason no_tokenizer", "100 % of the last", "prompt tokens",
                 "24 prompts of all models"):
        assert part in evidence, part
    assert "--model-path" in finding["fixes"][0]["what"] and finding["fixes"][1]["setting"] == "--model-path DIR"
    text = run_fathom("doctor", "--url", router.url)
    assert text.returncode == 1 and "No problem was found" not in text.stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_doctor_finds_it_in_the_log(world, tmp_path, form):
    router = trtllm_fleet(world, "--log-format", form)
    for i in range(6):
        chat(router, i)
    eventually(lambda: "prompts_unread" in router.log_text(), "it is logged")
    log = tmp_path / "serve.log"
    log.write_text(router.log_text())
    finding = unread_finding(doctor("--logs", log, status=1))
    assert finding["subject"] == "model mock-model"
    assert any("6 of the last 6 unread; the latest: route chat, engine trtllm, reason no_tokenizer" in line
               for line in finding["evidence"]), finding["evidence"]
    assert "--model-path" in finding["fixes"][0]["what"]


def test_prompts_that_are_compared_by_text_are_a_note(world):
    model = {"model": "m", "status": "ok", "cause": "prompts_by_text", "share": 1, "reason": None, "route": None,
             "engine": None, "cost_tokens": 0, "fix": "give the router files"}
    health = {"status": "ok", "version": "0.1.0", "router_mode": "kv", "workers_ready": 1, "workers_total": 1,
              "models": [model],
              "workers": [{"id": 1, "url": "http://10.0.0.1:8000", "state": "ready", "ranks": []}]}
    with DoctorServer({"/health": health, "/ready": {"status": "ready"}}) as router:
        report = doctor("--url", router.url, status=0)
        assert report["findings"] == []
        lines = [line for section in report["sections"] for line in section["lines"]]
        assert any("100 % of the last prompts of model m were routed by their text" in line
                   and "give the router files" in line for line in lines), lines


# --- waste


def test_what_is_prefilled_again_is_charged_to_it(world):
    """As the engines themselves count what one computes though another has it."""
    fleet = Fleet(world, 3, engine="trtllm", block_size=32)
    router = blind_router(world, fleet.urls, follows=3)
    for conversation in range(4):
        turns(router, conversation=conversation)
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all requests have ended")
    ours, theirs = router.metric(WASTED, cause="prompts_unread"), fleet.recomputed()
    assert theirs > 0, "the scenario wastes something"
    assert abs(ours - theirs) < 0.15 * theirs, (ours, theirs)
    assert ours == router.metric(WASTED), "nothing else is to blame"
    assert router.metric("kv_router_prompt_tokens_total") > ours
    wasted = [decision["wasted_tokens"] for decision in router.get("/debug/decisions?limit=100").json()["decisions"]]
    assert sum(entry.get("prompts_unread", 0) for entry in wasted) == ours


def test_streams_are_charged_too(world):
    router = trtllm_fleet(world)
    turns(router, count=16, stream=True)
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all requests have ended")
    assert router.metric(WASTED, cause="prompts_unread") > 0


def test_one_worker_cannot_be_the_wrong_one(world):
    router = blind_router(world, [engine(world, "trtllm", None)])
    turns(router)
    assert model_of(router)["cause"] == "prompts_unread"
    assert router.metric(WASTED) == 0


# --- reasons


def test_engines_that_tokenize_too_late(world):
    worker = engine(world, "vllm", None, speedup=1, tokenize_delay="8s")
    router = world.serve("--router-mode", "kv", "--tokenize-timeout", "20ms", "--no-text-fallback", workers=[worker])
    stream = keep_busy(worker.port)
    for i in range(6):
        chat(router, i, max_tokens=1)
    stream.close()
    model = model_of(router)
    assert (model["cause"], model["reason"], model["engine"]) == ("prompts_unread", "timeout", "vllm")
    assert "--tokenize-timeout" in model["fix"]
    assert router.metric(UNREAD, reason="timeout") == router.metric(UNREAD) == 6


def test_a_template_that_cannot_be_used(world, tmp_path):
    files = write_model(tmp_path / "model", template="{% lighthouse messages %}")
    router = blind_router(world, [engine(world, "trtllm", None)], "--model-path", files)
    for i in range(6):
        chat(router, i)
    model = model_of(router)
    assert (model["cause"], model["reason"], model["engine"]) == ("prompts_unread", "template", "trtllm")
    assert "template" in model["fix"]


def test_each_route_is_named(world):
    router = trtllm_fleet(world)
    message = {"role": "user", "content": "How deep is it? " * 20}
    for _ in range(6):
        body = {"model": "mock-model", "max_tokens": 2, "messages": [message]}
        assert ask(router.port, "POST", "/v1/messages", body).status == 200
    assert model_of(router)["route"] == "messages"
    assert router.metric(UNREAD, route="messages") == 6


# --- what does not count


def test_a_mistake_of_a_client_is_not_blamed_on_workers(world):
    router = blind_router(world, [engine(world, "trtllm", None)])
    path, message = "/v1/chat/completions", {"role": "user", "content": "How deep?"}
    for _ in range(20):
        assert router.chat(model="no-such-model").status == 404
        assert ask(router.port, "POST", path, {"model": "mock-model", "messages": [{"role": 5}]}).status == 400
        assert ask(router.port, "POST", path, {"model": "mock-model", "messages": [message],
                                               "max_tokens": -1}).status == 400
    assert (model_of(router)["status"], model_of(router)["share"]) == ("ok", 0)
    assert router.metric(UNREAD) == router.metric(WASTED) == 0


def test_requests_without_a_prompt_to_cache_do_not_count(world):
    router = trtllm_fleet(world)
    message = {"role": "user", "content": "How deep is it? " * 20}
    for _ in range(20):
        counted = ask(router.port, "POST", "/v1/messages/count_tokens", {"model": "mock-model", "messages": [message]})
        assert counted.status == 200, counted.text()
        ask(router.port, "POST", "/v1/embeddings", {"model": "mock-model", "input": "How deep is it?"})
    assert (model_of(router)["status"], model_of(router)["share"]) == ("ok", 0)
    assert router.metric(UNREAD) == 0


def test_prompts_given_as_ids_are_read(world):
    router = trtllm_fleet(world)
    for i in range(8):
        body = {"model": "mock-model", "prompt": [i] * 100, "max_tokens": 2}
        assert ask(router.port, "POST", "/v1/completions", body).status == 200
    assert (model_of(router)["status"], model_of(router)["cause"]) == ("ok", None)


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_prompts_that_are_read_are_well(world, kind):
    router = router_of(world, [engine(world, kind, None)])
    for i in range(8):
        chat(router, i)
    assert (model_of(router)["status"], model_of(router)["cause"], model_of(router)["share"]) == ("ok", None, 0)
    assert doctor("--url", router.url, status=0)["findings"] == []


# --- the end


def test_a_model_that_has_left_the_fleet_is_forgotten(world):
    blind, other = engine(world, "trtllm", None), engine(world, "vllm", None, model="other")
    router = blind_router(world, [blind, other], follows=2)
    for i in range(6):
        chat(router, i)
    assert router.health()["status"] == "degraded"
    assert wire.ask(router.port, "DELETE", f"/workers/{router.worker_id(blind)}").status == 204
    eventually(lambda: router.health()["status"] == "ok", "only the model that is left counts")
    assert [entry["model"] for entry in router.health()["models"]] == ["other"]
    assert router.metric("kv_router_unread_models") == 0


def test_it_ends_when_prompts_are_read_again(world):
    router = trtllm_fleet(world)
    for i in range(6):
        chat(router, i)
    assert router.health()["status"] == "degraded"
    for i in range(50):
        body = {"model": "mock-model", "prompt": [i] * 40, "max_tokens": 1}
        assert ask(router.port, "POST", "/v1/completions", body).status == 200
    assert (router.health()["status"], model_of(router)["cause"]) == ("ok", None)
    eventually(lambda: "Prompts are read again" in router.log_text(), "its end is logged")
