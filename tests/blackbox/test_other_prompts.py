"""The engines' own routes, SGLang's /generate and vLLM's /inference/v1/generate, are routed by what the caches hold;
embeddings, rerank and score are not, and are counted as what they are."""

import json

import pytest

import wire
from choices import QUICK, body_of, cached, decided, decision_of, follow, ids, seed
from wire import eventually

ROUTES = {"sglang": "/generate", "vllm": "/inference/v1/generate"}
WITHOUT_PROMPT = {"/v1/embeddings": "embeddings", "/v1/rerank": "rerank", "/rerank": "rerank",
                  "/v1/score": "score", "/score": "score", "/classify": "other"}


def body_for(kind, prompt, tokens=1, **fields):
    """A request in the engine's own form."""
    if kind == "sglang":
        name = "text" if isinstance(prompt, str) else "input_ids"
        return {name: prompt, "sampling_params": {"max_new_tokens": tokens}, **fields}
    return {"model": "mock-model", "token_ids": prompt, "sampling_params": {"max_tokens": tokens}, **fields}


def ask(process, kind, prompt, headers=(), **fields):
    return wire.ask(process.port, "POST", ROUTES[kind], body_for(kind, prompt, **fields), headers)


def generate(process, kind, prompt, headers=(), **fields):
    answer = ask(process, kind, prompt, headers, **fields)
    assert answer.status == 200, answer.text()
    return answer


def usage_of(kind, answer):
    """Prompt tokens, and those of them that the engine found."""
    if kind == "sglang":
        meta = answer["meta_info"]
        return meta["prompt_tokens"], meta["cached_tokens"]
    usage = answer["usage"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def events(answer):
    lines = [line.removeprefix("data: ") for line in answer.text().splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


@pytest.fixture
def fleet(world):
    def start(kind, *options, workers=3):
        engines = [world.mock(engine=kind, **QUICK) for _ in range(workers)]
        router = world.serve(*options, workers=engines)
        follow(router, workers)
        return router, engines
    return start


def judged(router):
    """Requests whose prediction was compared with the engine's count."""
    return router.metric("kv_router_usage_seen_total")


@pytest.mark.parametrize("kind", ROUTES)
def test_ids_are_routed_by_the_caches(fleet, kind):
    router, engines = fleet(kind)
    for number, engine in enumerate(engines):
        seed(router, engine, ids(number))
    for number, engine in enumerate(engines):
        answer = generate(router, kind, ids(number) + ids(50 + number))
        assert answer.worker == router.worker_id(engine)
        assert cached(answer) == 64
        assert usage_of(kind, answer.json()) == (128, 64)
        decision = decision_of(router, answer)
        assert (decision["tokens_from"], decision["cached_tokens"]) == ("ids", 64)
    assert decided(router, "cache") == 3
    eventually(lambda: judged(router) == 3, "the engines' counts are read")
    assert router.metric("kv_router_actual_cached_tokens_total") == 3 * 64
    name = {"sglang": "generate", "vllm": "inference_generate"}[kind]
    assert router.metric("fathom_requests_total", route=name, code="200") == 3


@pytest.mark.parametrize("kind", ROUTES)
def test_a_stream_passes_unchanged_and_its_usage_is_read(fleet, kind):
    router, engines = fleet(kind)
    seed(router, engines[1], ids(1))
    options = {"stream_options": {"include_usage": True}} if kind == "vllm" else {}
    request = {"tokens": 5, "stream": True, "headers": {"x-request-id": "same"}, **options}
    answer = generate(router, kind, ids(1) + ids(2), **request)
    assert answer.worker == router.worker_id(engines[1])
    assert answer.header("content-type").startswith("text/event-stream")
    said = events(answer)
    assert usage_of(kind, said[-1]) == (128, 64)
    eventually(lambda: router.metric("kv_router_actual_cached_tokens_total") == 64, "its usage is read")
    direct = generate(engines[1], kind, ids(1) + ids(2), **request)
    assert len(events(direct)) == len(said)
    if kind == "sglang":
        assert [len(event["output_ids"]) for event in said] == [1, 2, 3, 4, 5], "the whole text so far"
    else:
        assert [len(event["choices"][0]["token_ids"]) for event in said[:-1]] == [1] * 5
        assert said[-1]["choices"] == []


def test_vllm_is_not_asked_for_usage_that_the_client_does_not_want(fleet):
    router, _ = fleet("vllm")
    said = events(generate(router, "vllm", ids(1), tokens=3, stream=True))
    assert [event["usage"] for event in said] == [None] * 3
    assert router.metric("kv_router_usage_asked_total") == 0


def test_text_is_tokenized_as_a_completion_is(fleet):
    router, engines = fleet("sglang")
    text = "The depth is measured in fathoms, the speed in knots. " * 20
    first = wire.ask(router.port, "POST", "/v1/completions", body_of(text))
    assert first.status == 200, first.text()
    size = decision_of(router, first)["prompt_tokens"]
    whole = (size - 1) // 16 * 16
    for prompt in (text, text + "And then?", [text + "One", "Two"]):
        def known(prompt=prompt):
            explained = wire.ask(router.port, "POST", "/debug/explain", body_for("sglang", prompt)).json()
            return explained["cached_tokens"] >= whole
        eventually(known, "the events of the prompt have come, and explain reads such bodies")
        answer = generate(router, "sglang", prompt)
        assert answer.worker == first.worker
        assert cached(answer) >= whole
        assert decision_of(router, answer)["tokens_from"] == "engine"
    assert isinstance(generate(router, "sglang", ["One", "Two"]).json(), list)


def test_several_lists_of_ids_go_by_the_first_and_are_not_judged(fleet):
    router, engines = fleet("sglang")
    seed(router, engines[2], ids(1))
    answer = generate(router, "sglang", [ids(1) + ids(2), ids(3)])
    assert answer.worker == router.worker_id(engines[2])
    assert [usage_of("sglang", one) for one in answer.json()] == [(128, 64), (64, 0)]
    said = events(generate(router, "sglang", [ids(1) + ids(4), ids(5)], tokens=2, stream=True))
    assert sorted(event["index"] for event in said) == [0, 0, 1, 1]
    assert router.metric("kv_router_usage_seen_total") == 1, "each sequence of the stream has its own count"
    assert router.metric("kv_router_actual_cached_tokens_total") == 0


def test_a_cache_salt_counts(fleet):
    router, engines = fleet("vllm")
    first = generate(router, "vllm", ids(1), cache_salt="mine")
    turn = body_for("vllm", ids(1) + ids(2), cache_salt="mine")

    def known():
        return wire.ask(router.port, "POST", "/debug/explain", turn).json()["cached_tokens"] == 64
    eventually(known, "its events have come, and explain reads such bodies")
    assert cached(generate(router, "vllm", ids(1) + ids(2))) == 0
    answer = generate(router, "vllm", ids(1) + ids(2), cache_salt="mine")
    assert (answer.worker, cached(answer)) == (first.worker, 64)


@pytest.mark.parametrize("kind", ROUTES)
def test_a_stream_whose_worker_dies_ends_with_an_error(world, kind):
    router = world.serve(workers=[world.mock(engine=kind, die_after_tokens=3, **QUICK)])
    follow(router, 1)
    answer = ask(router, kind, ids(1), tokens=50, stream=True)
    lines = [line for line in answer.text().splitlines() if line]
    assert json.loads(lines[-1].removeprefix("data: "))["error"]["code"] == "worker_failed"
    assert "[DONE]" not in answer.text()


@pytest.mark.parametrize("kind", ROUTES)
def test_an_answer_that_the_engine_ends_early_is_retried(world, kind):
    aborting, other = world.mock(engine=kind, drain_abort=True, **QUICK), world.mock(engine=kind, **QUICK)
    router = world.serve(workers=[aborting, other])
    follow(router, 2)
    for i in range(64):  # equal workers: sooner or later the aborting one is tried first
        assert generate(router, kind, ids(i), tokens=5).worker == router.worker_id(other)
        if router.metric("fathom_retries_total", reason="aborted") > 0:
            return
    pytest.fail("no request was retried")


@pytest.mark.parametrize("kind", ROUTES)
def test_what_the_engine_refuses_is_passed_on(fleet, kind):
    router, engines = fleet(kind)
    for body in ({}, {"sampling_params": {"max_tokens": 1}}, {"text": None, "token_ids": "a"}):
        through = wire.ask(router.port, "POST", ROUTES[kind], body)
        direct = wire.ask(engines[0].port, "POST", ROUTES[kind], body)
        assert (through.status, through.json()) == (direct.status, direct.json()) == (400, direct.json())
    assert router.metric("kv_router_prompts_unread_total", route="generate", reason="no_tokenizer") == 0


def test_media_is_unread_and_said_so(fleet):
    router, _ = fleet("sglang")
    assert generate(router, "sglang", ids(1), image_data="data:image/png;base64,AA==").status == 200
    assert router.metric("kv_router_prompts_unread_total", route="generate", reason="media") == 1


def test_requests_without_a_prompt_are_counted_by_route(fleet):
    router, _ = fleet("vllm")
    for path in WITHOUT_PROMPT:
        answer = wire.ask(router.port, "POST", path, {"model": "mock-model", "input": "a", "query": "q",
                                                      "documents": ["a"], "text_1": "a", "text_2": "b"})
        assert answer.status == 200, (path, answer.text())
    names = list(WITHOUT_PROMPT.values())
    for name in set(names):
        assert router.metric("kv_router_without_prompt_total", route=name) == names.count(name), name
    assert decided(router, "no_prompt") == len(names)
    unread = [value for (name, _), value in router.metrics().items() if name == "kv_router_prompts_unread_total"]
    assert unread and not any(unread), "they are no unread prompts"
    assert router.health()["status"] == "ok"


def test_the_mock_has_each_route_where_its_engine_has_it(world):
    for kind in ("vllm", "sglang", "trtllm"):
        engine = world.mock(engine=kind, **QUICK)
        for owner, path in ROUTES.items():
            answer = wire.ask(engine.port, "POST", path, body_for(owner, ids(1)))
            assert answer.status == (200 if owner == kind else 404), (kind, path, answer.text())
            if owner == kind:
                assert wire.get(engine.port, path).status == 405
