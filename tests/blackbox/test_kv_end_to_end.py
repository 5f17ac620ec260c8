"""Simulated engines behind the router: what `/debug/lookup` says before each request is what the
engine then finds, for every engine and way of writing, with and without faults."""

import itertools

import pytest

import wire
from kv_engine import BLOCK, Known
from wire import eventually, free_port

WIRES = [("vllm", version) for version in ("0.9.0", "0.10.2", "0.17", "0.22", "0.24", "0.32")] + \
    [("sglang", version) for version in ("0.5.6", "0.5.9", "0.5.23")] + \
    [("trtllm", "poll"), ("trtllm", "stream")]
fresh = itertools.count(1)


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--router-mode", "direct", "--kv-events-poll-interval", "20ms",
                              "--kv-events-replay-timeout", "2s")


@pytest.fixture
def rank_of(router, mock):
    """Starts a simulated engine that the router follows."""
    joined = []

    def start(rank=0, **options):
        worker = mock(**{"profile": "h200-llama-3.1-8b", "speedup": 1000, "block_size": BLOCK,
                         "num_blocks": 60, **options})
        entry = {"url": worker.url}
        if "kv_events_port" in options:
            entry["kv_events"] = f"tcp://127.0.0.1:{options['kv_events_port']}"
        assert wire.ask(router.port, "POST", "/workers", entry).status == 201
        known = Known(router, worker, rank)
        joined.append(known)
        eventually(lambda: state_of(known) == "ready", "it can be routed to")
        known.wait_for(lambda state: state.get("connected"), "it is followed")
        return known

    yield start
    for known in joined:
        assert wire.ask(router.port, "DELETE", f"/workers/{known.worker}").status == 204


def state_of(known):
    entries = known.router.get("/workers").json()["workers"]
    return next(entry["state"] for entry in entries if entry["id"] == known.worker)


def complete(known, prompt, **fields):
    """Sends the prompt through the router; the tokens that the engine found in its cache."""
    body = {"model": "mock-model", "prompt": prompt, "max_tokens": 1, **fields}
    headers = {"x-fathom-worker": str(known.worker), "X-data-parallel-rank": str(known.rank)}
    answer = wire.ask(known.router.port, "POST", "/v1/completions", body, headers)
    assert answer.status == 200, answer.text()
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def settle(known, patience):
    """Waits until the router knows everything that the engine has done so far: events come in
    order, so a prompt that is new now is known last. If its own event is lost, another one is."""
    while True:
        first = 500_000 + 100 * next(fresh)
        prompt = list(range(first, first + 3 * BLOCK + 1))
        complete(known, prompt)
        try:
            return eventually(lambda: known.lookup(prompt) == 3 * BLOCK, known.state(), patience)
        except AssertionError:
            patience *= 2
            if patience > wire.PATIENCE:
                raise


def prompts():
    """Some that share prefixes, enough to evict from a small cache."""
    base = list(range(1, 41))
    yield base[:22]
    yield base
    yield base[:9] + [7000 + i for i in range(20)]
    for i in range(8):
        yield [100 * i + j for j in range(1, 30)]
    yield base
    yield [100 * 7 + j for j in range(1, 30)]


def judge(known, asked, exact=True, patience=0.2, **fields):
    """How many prompts found something."""
    hits = 0
    for prompt in asked:
        settle(known, patience)
        predicted = known.lookup(prompt, salt=fields.get("cache_salt"))
        found = complete(known, prompt, **fields)
        assert predicted == found if exact else predicted <= found, (prompt, known.state())
        hits += predicted > 0
    return hits


@pytest.mark.parametrize("engine,version", WIRES)
def test_the_engine_finds_what_the_router_predicts(rank_of, engine, version):
    told = engine != "trtllm" or version == "poll"
    place = {} if told else {"kv_events_port": free_port()}
    known = rank_of(engine=engine, wire=version, **place)
    assert judge(known, prompts()) >= 3
    state = known.state()
    assert (state["resets"], state["gaps"], state["malformed_events"]) == (0, 0, 0), state
    assert state["removed_blocks"] > 0, "the cache was small enough"


def test_hashes_of_bytes(rank_of):
    assert judge(rank_of(wire_hashes="bytes"), prompts()) >= 3


@pytest.mark.parametrize("engine,version", [("vllm", "0.17"), ("vllm", "0.32"),
                                            ("sglang", "0.5.23")])
def test_a_salt(rank_of, engine, version):
    known = rank_of(engine=engine, wire=version)
    prompt = list(range(1, 30))
    assert judge(known, [prompt]) == 0
    assert judge(known, [prompt], cache_salt="S") == 0
    assert judge(known, [prompt], cache_salt="S") == 1
    assert judge(known, [prompt]) == 1


def test_every_rank_of_a_worker(router, rank_of):
    first = rank_of(dp_size=2)
    second = Known(router, first.engine, 1)
    prompt = list(range(1, 30))
    assert judge(first, [prompt, prompt]) == 1
    assert judge(second, [prompt, prompt, *prompts()]) >= 4
    assert judge(first, [prompt]) == 1


def test_batches_that_were_dropped_are_replayed(rank_of):
    known = rank_of(kv_drop_every=3)
    assert judge(known, prompts()) >= 3
    state = known.state()
    assert state["repaired_batches"] > 0 and state["resets"] == 0, state


def test_batches_that_are_lost_never_make_the_router_claim_more_than_there_is(rank_of):
    known = rank_of(kv_lose_every=5)
    judge(known, prompts(), exact=False)
    state = known.state()
    assert state["lost_batches"] > 0 and state["resets"] > 0, state


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_an_engine_that_restarts(rank_of, engine):
    known = rank_of(engine=engine, kv_restart_after=8)
    # A second prompt of settle() could be the eighth batch, and the engine restart behind it.
    assert judge(known, [*prompts(), *prompts()], patience=wire.PATIENCE / 4) >= 3
    assert known.state()["restarts"] + known.state()["resets"] >= 1


def test_polled_events_that_are_lost(rank_of):
    known = rank_of(engine="trtllm", kv_drop_every=5)
    judge(known, prompts(), exact=False)
    state = known.state()
    assert state["gaps"] > 0 and state["resets"] > 0, state


def test_events_that_are_late(rank_of):
    assert judge(rank_of(kv_delay="100ms"), list(prompts())[:3]) >= 1


def test_an_engine_that_says_nothing(rank_of):
    known = rank_of(kv_silent=True)
    prompt = list(range(1, 30))
    assert (complete(known, prompt), complete(known, prompt)) == (0, 28)
    assert known.lookup(prompt) == 0
    assert known.state()["batches"] == 0


def test_an_engine_that_labels_its_blocks_wrongly(rank_of):
    known = rank_of(kv_block_size_label=64)
    prompt = list(range(1, 30))
    complete(known, prompt)
    known.wait_for(lambda state: state["malformed_events"] + state["ignored_events"] > 0, "counted")
    assert known.lookup(prompt) == 0
