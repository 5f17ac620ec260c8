"""Where a worker's KV events are: the operator says it, or the engine does, or it is looked for.
And what is shown of them."""

import itertools
import json
import re
import signal
import time

import pytest

import wire
from kv_engine import (BLOCK, Known, PagesEngine, PolledEngine, Publisher, Stable, add, batch,
                       chain, follow, join, lookup, prompt_of, removed)
from wire import eventually, free_port


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--kv-events-poll-interval", "20ms")


@pytest.fixture
def stable(router):
    stable = Stable(router)
    yield stable
    stable.end()


def publish_and_look(known, number=1):
    known.publisher.publish(chain(number, 2), rank=known.rank)
    known.catch_up()
    assert known.lookup(prompt_of(number, 3)) == 2 * BLOCK


# --- streams


@pytest.mark.parametrize("tells", ["vllm", "sglang"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_the_engine_says_where_its_events_are(router, stable, tells, ranks):
    engine = stable.start(ranks=ranks, tells=tells, topic="kv@tiny")
    add(router, engine)
    known = follow(router, engine)
    for one in known:
        publish_and_look(one, one.rank + 1)
    for one, number in itertools.product(known, range(1, ranks + 1)):
        assert one.lookup(prompt_of(number, 3)) == (8 if number == one.rank + 1 else 0)
    for one in known:  # and where they can be had again
        one.publisher.send(batch(chain(11, 2), rank=one.rank), live=False)
        publish_and_look(one, 12)
        assert one.lookup(prompt_of(11, 3)) == 8


def test_what_the_operator_says_counts_more_than_what_the_engine_says(router, stable):
    engine = stable.start(tells="vllm", topic="real")
    told = engine.pages["/kv_event_sources"]["0"]
    told.update(endpoint=f"tcp://*:{free_port()}", replay_endpoint=None, topic="no such topic")
    known, = join(router, engine)
    engine.publisher.send(batch(chain(5, 2)), live=False)
    publish_and_look(known)
    assert known.lookup(prompt_of(5, 3)) == 8


def test_an_engine_that_says_nothing_is_looked_for_at_the_usual_port(world):
    publisher = Publisher()
    router = world.serve("--kv-events-port", publisher.port)
    stable = Stable(router)
    engine = stable.start(PagesEngine)
    engine.ranks = [publisher]
    try:
        add(router, engine)
        publish_and_look(follow(router, engine)[0])
    finally:
        stable.end()
        publisher.close()


NO_PUBLISHER = {"0": {"enable_kv_cache_events": False, "publisher": "null",
                      "endpoint": "tcp://*:5557", "replay_endpoint": None, "buffer_steps": 10000,
                      "hwm": 100000, "max_queue_size": 100000, "topic": ""}}


@pytest.mark.parametrize("sources", [NO_PUBLISHER, {}], ids=["older", "0.32"])
def test_an_engine_whose_events_are_off_is_named_once_with_the_fix(router, stable, sources):
    engine = stable.start(PagesEngine, pages={"/kv_event_sources": sources})
    add(router, engine)
    known = Known(router, engine)
    eventually(known.complaints, "it is said")
    assert len(known.complaints()) == 1
    assert re.search(r"doubted: no_events.*enable_kv_cache_events.*replay_endpoint",
                     known.complaints()[0])


def test_engines_that_connect_to_the_router(world):
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    router = world.serve("--kv-events-bind", endpoint)
    stable = Stable(router)
    engines = [stable.start(PagesEngine) for _ in range(2)]
    try:
        for number, engine in enumerate(engines, 1):
            publisher = Publisher(topic=f"kv@{number}", dial=endpoint)
            engine.ranks = [publisher]
            replay = f"tcp://127.0.0.1:{publisher.replayer.port}"
            add(router, engine, {"url": engine.url, "kv_events_topic": publisher.topic.decode(),
                                 "kv_events_replay": replay})
        for engine in engines:
            said = engine.ranks[0].socket.recv()  # all topics
            assert said == b"\1"
        known = [Known(router, engine) for engine in engines]
        for number, one in enumerate(known, 1):
            # What comes before the router knows the worker is asked for when more comes.
            eventually(lambda: one.publisher.publish() or one.state(), "the worker is known")
            publish_and_look(one, number)
        assert [one.lookup(prompt_of(1, 3)) for one in known] == [8, 0]
        known[1].publisher.send(batch(chain(5, 2)), live=False)
        publish_and_look(known[1], 6)
        assert [one.lookup(prompt_of(5, 3)) for one in known] == [0, 8]
    finally:
        for engine in engines:
            engine.ranks[0].close()
        stable.end()


# --- polling


def polled_block(name, tokens, level=0):
    return {"type": "stored_block", "block_hash": name, "cache_level": level, "priority": 35,
            "tokens": [{"type": "unique_token", "token_id": token, "token_extra_id": 0}
                       for token in tokens]}


def polled_store(first, blocks, parent=None):
    prompt = prompt_of(first, blocks)
    return {"type": "stored", "parent_hash": parent,
            "blocks": [polled_block(first * 1000 + i, prompt[i * BLOCK:(i + 1) * BLOCK])
                       for i in range(blocks)]}


def polled_removal(*names):
    return {"type": "removed", "block_hashes": list(names)}


CREATED = {"type": "created", "num_blocks_per_cache_level": [15389, 0]}


@pytest.fixture
def polled(router, stable):
    engine = stable.start(PolledEngine)
    engine.ranks = [engine]  # whose last event is `last`
    engine.add(CREATED)
    add(router, engine)
    return Known(router, engine)


def test_an_engine_that_is_polled(polled):
    engine = polled.engine
    engine.add(polled_store(1, 3))
    polled.catch_up()
    assert polled.lookup(prompt_of(1, 4)) == 12
    engine.add(polled_removal(1002), polled_store(2, 2))
    polled.catch_up()
    assert [polled.lookup(prompt_of(n, 4)) for n in (1, 2)] == [8, 8]
    moved = {"type": "updated", "block_hash": 1001, "priority": None,
             "cache_level": {"type": "event_diff", "new_value": 1, "old_value": 0}}
    engine.add(moved)
    polled.catch_up()
    assert polled.lookup(prompt_of(1, 4)) == 4
    polled.expect(gaps=0, resets=0, malformed_events=0, block_size=BLOCK)


def test_a_router_that_drains_leaves_the_events_to_the_next_one(world):
    engine = PolledEngine()
    router = world.serve("--kv-events-poll-interval", "20ms", workers=[world.mock(token_interval="20ms")])
    try:
        stream = wire.Stream(router.port, max_tokens=100_000)
        stream.next()
        add(router, engine)
        engine.add(CREATED)
        eventually(lambda: not engine.waiting, "it is polled")
        router.signal(signal.SIGTERM)
        router.wait_for_log("Draining")
        time.sleep(0.2)  # a question that was on its way
        engine.add(polled_store(1, 2))
        time.sleep(0.5)
        assert engine.waiting and stream.next(), "it serves on, and asks no more"
        router.signal(signal.SIGTERM)
        assert router.wait() == 0
    finally:
        engine.stop()


def test_partial_blocks_do_not_count(polled):
    store = polled_store(1, 2)
    store["blocks"].append(polled_block(77, [1, 2]))
    polled.engine.add(store, polled_removal(77))
    polled.catch_up()
    assert polled.lookup(prompt_of(1, 2) + [1, 2, 3]) == 8
    polled.expect(blocks=2, unknown_removed=0)


def test_only_the_largest_window_counts(polled):
    polled.engine.add(polled_store(1, 2))
    polled.engine.add(polled_store(2, 2), polled_removal(1000, 1001), window=4096)
    polled.catch_up()
    assert [polled.lookup(prompt_of(n, 3)) for n in (1, 2)] == [8, 0]


def test_a_gap_in_polled_events_empties_the_rank(polled):
    polled.engine.add(polled_store(1, 2))
    polled.catch_up()
    polled.engine.last += 4
    polled.engine.add(polled_store(2, 2))
    polled.catch_up()
    assert [polled.lookup(prompt_of(n, 3)) for n in (1, 2)] == [0, 8]
    polled.expect(gaps=1, lost_batches=4)
    # A second line, that the rank is doubted, comes a little later.
    assert "KV events were lost" in polled.complaints()[0]
    assert sum("KV events were lost" in line for line in polled.complaints()) == 1


def test_polled_events_that_begin_again_are_a_restart(polled):
    polled.engine.add(polled_store(1, 2), polled_store(2, 2), polled_store(3, 2))
    polled.catch_up()
    polled.engine.last = -1
    polled.engine.add(CREATED, polled_store(4, 2))
    polled.catch_up()
    assert [polled.lookup(prompt_of(n, 3)) for n in (1, 2, 3, 4)] == [0, 0, 0, 8]
    polled.expect(restarts=1)


def test_ranks_of_a_polled_engine(router, polled):
    engine = polled.engine
    engine.add(polled_store(1, 2), attention_dp_rank=0)
    engine.last = -1  # every rank counts for itself
    engine.add(CREATED, polled_store(2, 2), attention_dp_rank=1)
    second = Known(router, engine, 1)
    second.wait_for(lambda state: state.get("last_sequence") == 1, "the second rank is known")
    assert (polled.lookup(prompt_of(1, 3)), second.lookup(prompt_of(1, 3))) == (8, 0)
    assert (polled.lookup(prompt_of(2, 3)), second.lookup(prompt_of(2, 3))) == (0, 8)


def test_large_hashes_keep_all_their_digits(polled):
    names = [(1 << 64) - 1, (1 << 64) - 2]
    store = polled_store(1, 2)
    for block, name in zip(store["blocks"], names):
        block["block_hash"] = name
    polled.engine.add(store)
    polled.engine.add(polled_removal(names[1]))
    polled.catch_up()
    assert polled.lookup(prompt_of(1, 3)) == 4


# --- what is shown


def test_every_rank_is_listed_for_the_model_that_it_serves(router, stable):
    known = stable.rank(replay=False)
    publish_and_look(known)
    question = {"tokens": prompt_of(1, 3), "model": "mock-model"}
    answer = wire.ask(router.port, "POST", "/debug/lookup", question)
    entry, = answer.json()["ranks"]
    assert (entry["worker"], entry["rank"], entry["cached_tokens"]) == (known.worker, 0, 8)
    answer = wire.ask(router.port, "POST", "/debug/lookup", {**question, "model": "unknown"})
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")
    assert lookup(router, [1, 2, 3]) == {(known.worker, 0): 0}


def test_the_totals_are_the_sum_of_the_ranks(router, stable):
    first, second = stable.rank(replay=False), stable.rank(replay=False)
    for known in (first, second):
        known.publisher.publish(chain(1, 2))
        known.publisher.publish(chain(known.rank + 2, 3), removed([9]))
        known.catch_up()
    page = router.get("/debug/index").json()
    assert page["held"] == 10
    assert page["blocks"] == 5, "held by both"
    assert 0 < page["bytes"] <= page["max_bytes"]
    assert {rank["worker"] for rank in page["ranks"]} == {first.worker, second.worker}
    assert {rank["url"] for rank in page["ranks"]} == {first.engine.url, second.engine.url}


def test_metrics_say_the_same(router, stable):
    known = stable.rank(replay=False)
    known.publisher.publish(chain(1, 3), removed([1002, 5]))
    known.publisher.next += 2
    known.publisher.publish(chain(2, 1))
    known.catch_up()
    known.expect(gaps=1)
    state = known.state()
    for name, value in state.items():
        if name in ("stored_blocks", "removed_blocks", "gaps", "lost_batches", "unknown_removed",
                    "batches", "resets", "malformed_batches"):
            series = f"kv_router_feed_{name}_total"
            assert router.metric(series, worker=str(known.worker)) == value, name
    assert router.metric("kv_router_feed_blocks", worker=str(known.worker)) == state["blocks"] == 1
    assert router.metric("kv_router_index_bytes") > 0


def test_events_need_not_be_followed(world):
    router = world.serve("--kv-events", "off")
    assert router.get("/debug/index").status == 404
    assert wire.ask(router.port, "POST", "/debug/lookup", {"tokens": [1]}).status == 404


def test_debug_pages_ask_for_the_admin_key(world):
    router = world.serve("--admin-key", "boss")
    for method, target in (("GET", "/debug/index"), ("POST", "/debug/lookup")):
        body = json.dumps({"tokens": [1]}) if method == "POST" else None
        assert wire.ask(router.port, method, target, body).status == 401
        key = {"Authorization": "Bearer boss"}
        assert wire.ask(router.port, method, target, body, key).status == 200
