"""Prompts whose tokens are not known are routed by their text: to the worker that got the same beginning before.
What is assumed so is shown as what it is, never reported as cached, and corrected by what engines report."""

import json

import pytest

import wire
from choices import decided, decision_of, found, wait_until_idle
from model_fleet import engine, router_of, tokenized
from trust import mend
from wire import eventually

SYSTEM = "You are the pilot of harbor {}. Say how deep the water is, and say it briefly. "
BILLING = "x-anthropic-billing-header: cc_version=2.1.{}; cch={};"


def opening(number, repeat=20):
    return [{"role": "system", "content": SYSTEM.format(number) * repeat},
            {"role": "user", "content": f"How deep is it at buoy {number}?"}]


def chat(router, messages, headers=(), **fields):
    body = {"model": "mock-model", "max_tokens": 4, "messages": messages, **fields}
    answer = wire.ask(router.port, "POST", "/v1/chat/completions", body, headers)
    assert answer.status == 200, answer.text()
    return answer


def follow_up(messages, answer, question="And at low tide?"):
    said = answer.json()["choices"][0]["message"]["content"]
    return [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": question}]


def explain(router, messages, path="/debug/explain", **fields):
    answer = wire.ask(router.port, "POST", path, {"model": "mock-model", "messages": messages, **fields})
    assert answer.status == 200, answer.text()
    return answer.json()


def depths(decision):
    """By text, of each worker that has any."""
    return {rank["worker"]: rank["text_depth"] for rank in decision["candidates"] if rank["text_depth"]}


def trtllm(world, count=3, **options):
    return [engine(world, "trtllm", None, **options) for _ in range(count)]


def spread_out(router, count, repeat=20):
    """Conversations that began on more than one worker: {number: answer}."""
    began = {number: chat(router, opening(number, repeat)) for number in range(count)}
    assert len({answer.worker for answer in began.values()}) > 1
    return began


def test_the_setting_of_the_seeds_uses_its_caches(world):
    """TensorRT-LLM, chats, nothing configured."""
    router = router_of(world, trtllm(world))
    for number, first in spread_out(router, 12).items():
        second = chat(router, follow_up(opening(number), first))
        assert second.worker == first.worker
        assert found(second) > 0.8 * first.json()["usage"]["prompt_tokens"], "the engine had it cached"
        assert second.header("x-fathom-cached-tokens") is None, "an assumption is no cached token"
        decision = decision_of(router, second)
        assert (decision["tokens_from"], decision["depths_from"]) == ("text", "texts of earlier prompts")
        assert decision["cached_tokens"] == decision["known_tokens"] == 0
        assert depths(decision)[int(second.worker)] == decision["believed_tokens"] > 300
    wait_until_idle(router)
    assert tokenized(router, "text") == 24 and tokenized(router, "none") == 0
    assert decided(router, "text") >= 12 and decided(router, "no_tokens") == 0
    for name in ("kv_router_cached_tokens_total", "kv_router_predicted_cached_tokens_total"):
        assert router.metric(name) == 0, name
    assert router.metric("kv_router_prompt_tokens_total") > 0, "what could have been cached is counted"
    assert 0 < router.metric("kv_router_text_assumed_tokens_total")
    assert 0 < router.metric("kv_router_text_found_tokens_total")
    assert 0 < router.metric("kv_router_text_index_bytes") < 128 << 20
    [model] = router.health()["models"]
    assert (model["status"], model["cause"], model["share"]) == ("ok", "prompts_by_text", 1)
    assert (model["reason"], model["engine"], model["cost_tokens"]) == ("no_tokenizer", "trtllm", 0)
    assert "--model-path" in model["fix"]
    assert router.health()["status"] == "ok" and router.get("/ready").status == 200


@pytest.mark.parametrize("mode", [["--no-router-kv-events"],
                                  ["--router-mode", "prefix-hash", "--router-prefix-hash-bound", 1000]],
                         ids=["guess", "hash"])
def test_it_works_in_every_mode_that_reads_prompts(world, mode):
    router = world.serve(*mode, workers=trtllm(world))
    for number, first in spread_out(router, 12, repeat=80).items():
        second = chat(router, follow_up(opening(number, repeat=80), first))
        assert second.worker == first.worker and found(second) > 0
        assert second.header("x-fathom-cached-tokens") is None
        wait_until_idle(router)


def test_without_it_prompts_are_unread(world):
    router = router_of(world, trtllm(world, 2), "--no-text-fallback")
    for number in range(8):
        chat(router, opening(number))
    assert tokenized(router, "text") == 0 and decided(router, "no_tokens") == 8
    assert router.health()["models"][0]["cause"] == "prompts_unread"
    assert router.metric("kv_router_text_index_bytes") == 0


def messages_body(number, request, extra=()):
    system = [{"type": "text", "text": BILLING.format(request, request * 7919)},
              {"type": "text", "text": SYSTEM.format(number) * 20, "cache_control": {"type": "ephemeral"}}]
    return {"model": "mock-model", "max_tokens": 4, "system": system,
            "messages": [{"role": "user", "content": "How deep is it?"}, *extra]}


def responses_body(number, request, extra=()):
    return {"model": "mock-model", "max_output_tokens": 4, "instructions": SYSTEM.format(number) * 20,
            "input": [{"role": "user", "content": "How deep is it?"}, *extra], "metadata": {"n": str(request)}}


def completion_body(number, request, extra=()):
    prompt = SYSTEM.format(number) * 20 + json.dumps(list(extra))
    return {"model": "mock-model", "max_tokens": 4, "prompt": prompt, "user": str(request)}


@pytest.mark.parametrize("path,body", [("/v1/messages", messages_body), ("/v1/responses", responses_body),
                                       ("/v1/completions", completion_body)], ids=["messages", "responses", "text"])
def test_other_apis_are_read_by_their_text_too(world, path, body):
    router = router_of(world, trtllm(world))
    served = {}
    for number in range(12):
        answer = wire.ask(router.port, "POST", path, body(number, number))
        assert answer.status == 200, answer.text()
        served[number] = answer.worker
    assert len(set(served.values())) > 1
    extra = [{"role": "assistant", "content": "Deep."}, {"role": "user", "content": "How deep?"}]
    for number, worker in served.items():
        answer = wire.ask(router.port, "POST", path, body(number, 100 + number, extra))
        assert (answer.status, answer.worker) == (200, worker)
        assert decision_of(router, answer)["tokens_from"] == "text"
        assert answer.header("x-fathom-cached-tokens") is None


def test_a_response_that_is_continued_is_not_read(world):
    router = router_of(world, trtllm(world, 1))
    first = wire.ask(router.port, "POST", "/v1/responses", responses_body(1, 1)).json()["id"]
    body = {**responses_body(1, 2), "previous_response_id": first}
    assert wire.ask(router.port, "POST", "/debug/explain", body).json()["tokens_from"] == "none"


def test_the_text_before_an_image_counts(world):
    router = router_of(world, trtllm(world))
    def pictured(number):
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 400}{number}"}}
        return [{"role": "system", "content": SYSTEM.format(7) * 20},
                {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]
    first = chat(router, opening(7))
    decision = explain(router, pictured(1))
    assert decision["tokens_from"] == "text" and set(depths(decision)) == {int(first.worker)}
    only = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]
    assert explain(router, only)["tokens_from"] == "none"


def test_adapters_and_salts_are_kept_apart(world):
    router = router_of(world, trtllm(world))
    chat(router, opening(1), cache_salt="a")
    assert depths(explain(router, opening(1), cache_salt="a"))
    assert not depths(explain(router, opening(1))) and not depths(explain(router, opening(1), cache_salt="b"))


def test_sessions_and_retries_use_it(world):
    workers = trtllm(world)
    router = router_of(world, workers)
    first = chat(router, opening(1), {"X-Session-ID": "buoy"})
    again = chat(router, follow_up(opening(1), first), {"X-Session-ID": "buoy"})
    assert again.worker == first.worker and decision_of(router, again)["tokens_from"] == "text"
    # Its worker fails: another one gets the conversation, and has it from then on.
    holder = next(worker for worker in workers if router.worker_id(worker) == first.worker)
    mend(holder, busy=True)
    moved = chat(router, follow_up(opening(1), first))
    assert moved.worker != first.worker
    assert int(moved.worker) in depths(explain(router, follow_up(opening(1), first)))


def test_what_was_evicted_is_forgotten(world):
    """A cache that holds a few of these prompts, and an engine that says so."""
    [worker] = trtllm(world, 1, num_blocks=64)
    router = router_of(world, [worker])
    def shared(number):
        """They have a little in common, which stays cached."""
        system, question = opening(number)
        return [{**system, "content": SYSTEM.format("all") * 3 + system["content"]}, question]
    def depth(number):
        return depths(explain(router, shared(number))).get(int(answer.worker), 0)
    for number in range(12):
        answer = chat(router, shared(number))
    little = depth(99)
    assert 0 < little < 100 and all(depth(number) > 300 for number in range(12))
    # The engine has evicted most of the second. Then it has evicted the first as well, which is older.
    answer = chat(router, shared(1))
    assert 0 < found(answer) < 0.3 * answer.json()["usage"]["prompt_tokens"]
    eventually(lambda: depth(0) == little, "what is older is forgotten with it")
    assert depth(11) > 300, "what is newer stays"
    assert depth(1) > 300, "and this one was computed again"


def test_a_rank_whose_texts_do_not_come_true_is_doubted_and_believed_again(world):
    """A cache so small that nothing lasts; then one prompt that comes again and again."""
    [worker] = trtllm(world, 1, num_blocks=40)
    router = router_of(world, [worker])
    def credit():
        return router.metric("kv_router_rank_text_credit")
    assert credit() == 1
    for _ in range(8):
        for number in range(4):
            chat(router, opening(number))
    wait_until_idle(router)
    eventually(lambda: credit() == 0, "it is doubted")
    [rank] = explain(router, opening(0))["candidates"]
    assert rank["trust"] == 0 == rank["reused_tokens"]
    for _ in range(40):
        chat(router, opening(0))
    eventually(lambda: credit() > 0.5, "it is believed again")


def test_engines_that_report_nothing_are_believed(world):
    router = router_of(world, trtllm(world, 2, no_cached_tokens_report=True))
    first = chat(router, opening(1))
    assert chat(router, follow_up(opening(1), first)).worker == first.worker
    wait_until_idle(router)
    assert router.metric("kv_router_text_assumed_tokens_total") == 0


def test_prompts_that_were_read_are_found_by_text(world):
    """Where some prompts of a model have no tokens, those that have some are remembered by their text as well."""
    router = router_of(world, trtllm(world))
    def with_ids(number):
        answer = chat(router, opening(number), prompt_token_ids=list(range(1000 * number, 1000 * number + 400)))
        assert decision_of(router, answer)["tokens_from"] == "ids"
        return answer
    with_ids(1)
    assert router.metric("kv_router_text_index_bytes") == 0, "prompts that are all read cost nothing more"
    assert not depths(explain(router, opening(1)))
    chat(router, opening(2))
    for number in (3, 4, 5):
        assert set(depths(explain(router, opening(number)))) == set()
        answer = with_ids(number)
        assert set(depths(explain(router, opening(number)))) == {int(answer.worker)}
