"""Weights of the routing cost: set by the operator, under new and old names, and overridden by single requests."""

import pytest

import wire
from choices import (QUICK, complete, decision_of, explain, follow, ids, seed, send)
from fake_engine import whole_answer
from kv_engine import BLOCK, KvEngine, chain, join, prompt_of
from wire import eventually

A, B, C = ids(1), ids(2), ids(3)
DRAWS = 40
USUAL = {"overlap_score_credit": 1, "prefill_load_scale": 64, "decode_active_request_weight": 0,
         "host_cache_hit_weight": 0.75, "disk_cache_hit_weight": 0.25, "router_temperature": 0}


@pytest.fixture
def fleet(mock, serve):
    """A router, and two engines of which the second holds A and B."""
    def start(*args, env=None, **options):
        workers = [mock(**{**QUICK, **options}) for _ in range(2)]
        router = serve(*args, workers=workers, env=env)
        follow(router, 2)
        seed(router, workers[1], A + B)
        return router, int(router.worker_id(workers[1]))
    return start


def override(text):
    return {"x-fathom-routing": text}


def drawn(router, headers=()):
    """Who would be chosen, over and over again."""
    return {explain(router, A + B + C, headers)["worker"] for _ in range(DRAWS)}


def weights(router, *args, **fields):
    return decision_of(router, complete(router, A + B + C, *args, **fields))["weights"]


# --- of a request


def test_a_request_without_an_override_gets_the_usual_weights(fleet):
    router, holder = fleet()
    assert weights(router) == USUAL
    assert drawn(router) == {holder}


def test_a_request_can_ignore_the_caches(fleet):
    router, _ = fleet()
    headers = override("overlap_score_credit=0")
    assert len(drawn(router, headers)) == 2
    decision = explain(router, A + B + C, headers)
    assert [c["reused_tokens"] for c in decision["candidates"]] == [0, 0]
    assert decision["margin"] == 0
    assert weights(router, headers) == {**USUAL, "overlap_score_credit": 0}
    assert weights(router) == USUAL, "an override is for one request"


def test_a_request_can_override_several_weights(fleet):
    router, _ = fleet()
    headers = override(" prefill_load_scale = 4 , host_cache_hit_weight=0.5; router_temperature=0.25,")
    assert weights(router, headers) == {**USUAL, "prefill_load_scale": 4,
                                        "host_cache_hit_weight": 0.5, "router_temperature": 0.25}


def test_a_request_can_be_drawn_by_chance(fleet):
    router, holder = fleet()
    assert len(drawn(router, override("router_temperature=100"))) == 2
    assert drawn(router, override("router_temperature=0.01")) == {holder}


def test_a_request_can_shun_company(fleet):
    router, holder = fleet(speedup=1)
    with wire.Connection(router.port) as running:
        body = {"model": "mock-model", "prompt": A + B + C, "max_tokens": 100_000, "stream": True}
        running.request("POST", "/v1/completions", body)
        assert running.read_head().worker == str(holder)
        assert drawn(router) == {holder}
        assert holder not in drawn(router, override("decode_active_request_weight=1e9"))


@pytest.mark.parametrize("text,hint", [
    ("nonsense", "prefill_load_scale"),
    ("overlap_score=1", "overlap_score_credit"),
    ("=1", "router_temperature"),
    ("overlap_score_credit", "from 0 to 1"),
    ("overlap_score_credit=", "from 0 to 1"),
    ("overlap_score_credit=1.5", "from 0 to 1"),
    ("overlap_score_credit=0.5 1", "from 0 to 1"),
    ("router_temperature=-1", "from 0 to 100"),
    ("router_temperature=nan", "from 0 to 100"),
    ("prefill_load_scale=inf", "from 0 to"),
    ("prefill_load_scale=4, decode_active_request_weight=many", "from 0 to"),
])
def test_an_invalid_override_is_refused(shared, text, hint):
    for path in ("/v1/completions", "/debug/explain"):
        answer = wire.ask(shared.port, "POST", path, {"prompt": A, "max_tokens": 1}, override(text))
        assert (answer.status, answer.error["code"]) == (400, "bad_routing_override")
        assert answer.header("x-fathom-former-code") == "bad_routing_wish", "the former code, for one release"
        assert "x-fathom-routing" in answer.error["message"]
        assert hint in answer.error["message"]


@pytest.fixture(scope="module")
def shared(shared_world):
    return shared_world.serve(workers=[shared_world.mock(**QUICK)])


def test_an_empty_override_changes_nothing(shared):
    assert weights(shared, override(" , ;")) == USUAL


def test_an_override_is_not_forwarded_to_the_engine(serve, engine):
    worker = engine(lambda _, connection: connection.sendall(whole_answer('{"choices": []}')))
    router = serve(workers=[worker])
    assert send(router, A, override("router_temperature=1")).status == 200
    assert worker.requests[-1].header("x-fathom-routing") is None


# --- of the operator

FLAGS = {"router-kv-overlap-score-credit": "overlap_score_credit",
         "router-prefill-load-scale": "prefill_load_scale",
         "router-decode-active-request-weight": "decode_active_request_weight",
         "router-host-cache-hit-weight": "host_cache_hit_weight",
         "router-disk-cache-hit-weight": "disk_cache_hit_weight",
         "router-temperature": "router_temperature"}


def weights_of(world, *args, env=None):
    router = world.serve(*args, workers=[world.mock(**QUICK)], env=env)
    return explain(router, A)["weights"]


def test_every_weight_is_an_option(world):
    flags = [text for flag in FLAGS for text in (f"--{flag}", "0.5")]
    assert weights_of(world, *flags) == {name: 0.5 for name in FLAGS.values()}


def test_every_weight_has_the_name_that_users_bring_along(world):
    env = {"DYN_" + flag.upper().replace("-", "_"): "0.5" for flag in FLAGS}
    assert weights_of(world, env=env) == {name: 0.5 for name in FLAGS.values()}


@pytest.mark.parametrize("args,env", [
    (["--router-kv-overlap-score-weight", "3"], {}),
    (["--kv-overlap-score-weight", "3"], {}),
    ([], {"DYN_ROUTER_KV_OVERLAP_SCORE_WEIGHT": "3"}),
    ([], {"DYN_OVERLAP_SCORE_WEIGHT": "3"}),
], ids=["flag", "alias", "variable", "older-variable"])
def test_the_older_weight_scales_the_prefill(world, args, env):
    assert weights_of(world, *args, env=env) == {**USUAL, "prefill_load_scale": 3}


def test_the_older_weight_turns_credit_off(fleet):
    router, _ = fleet("--router-kv-overlap-score-weight", 0)
    assert len(drawn(router)) == 2
    assert weights(router) == {**USUAL, "overlap_score_credit": 0}


def test_the_newer_weights_beat_the_older(world):
    assert weights_of(world, "--router-kv-overlap-score-weight", 3,
                      "--router-prefill-load-scale", 5)["prefill_load_scale"] == 5


def test_a_request_overrides_the_operator(fleet):
    router, holder = fleet("--router-temperature", 100)
    assert len(drawn(router)) == 2
    assert drawn(router, override("router_temperature=0")) == {holder}


def test_slower_memory_is_worth_less(serve):
    """The same prompt on the device of one rank, in the host memory of another and on the disk of
    a third."""
    engines = {medium: KvEngine() for medium in ("GPU", "CPU", "DISK")}
    try:
        router = serve()
        names = {}
        for medium, engine in engines.items():
            (known,) = join(router, engine)
            engine.publisher.publish(chain(1, 200, medium=medium))
            known.catch_up()
            names[known.worker] = medium
        eventually(lambda: router.health()["workers_ready"] == 3, "they can be routed to")

        def reused(headers=()):
            decision = explain(router, prompt_of(1, 200) + [1], headers)
            return {names[c["worker"]]: c["reused_tokens"] for c in decision["candidates"]}
        whole = 200 * BLOCK
        assert reused() == {"GPU": whole, "CPU": whole * 0.75, "DISK": whole * 0.25}
        assert list(reused()) == ["GPU", "CPU", "DISK"], "the cheapest first"
        other = override("host_cache_hit_weight=0.1, disk_cache_hit_weight=0.5")
        assert list(reused(other)) == ["GPU", "DISK", "CPU"]
    finally:
        for engine in engines.values():
            engine.stop()
