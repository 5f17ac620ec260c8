"""For each way in which cache-aware routing dies quietly: an engine that has it, and a router that
names the cause, the evidence and the fix, once, and nothing else; then the fault is mended, and
trust returns."""

import itertools
import socket
import threading
import time

import pytest

import wire
from choices import BLOCK, complete, follow, ids
from model_fleet import SYSTEM
from tokenizers import model_folder
from trust import (QUICK, ROUTER, Traffic, check_doubt, check_mended, doubted, line_about, mend, mock_of, rank_of,
                   router_of, said, trusted)
from wire import eventually

NO_EVENTS = 64  # requests, after which silence is named; and seconds:
SHORTLY = ("--no-events-after", "1s")


def busy(router, worker, cause, most, **fields):
    traffic = Traffic(router, at_once=4)
    return traffic.until(doubted(router, worker, cause), most, pause=0.02, **fields)


# --- no_events: where it stops


def test_a_publisher_that_is_off_is_named(world):
    worker = mock_of(world, kv_events="off")
    router = router_of(world, [worker], *SHORTLY, follows=0)
    eventually(doubted(router, worker, "no_events"), "it is doubted without one request")
    check_doubt(router, worker, "no_events", r"the engine reports that its publisher is off$",
                r"--kv-events-config .*enable_kv_cache_events.*endpoint.*replay_endpoint")
    assert "No KV events from a worker" not in router.log_text(), "one line is enough"


def test_a_publisher_that_says_nothing_is_named_and_trusted_once_it_speaks(world):
    worker = mock_of(world, kv_silent=True)
    router = router_of(world, [worker], *SHORTLY)
    assert busy(router, worker, "no_events", 1000) >= NO_EVENTS
    check_doubt(router, worker, "no_events", r"is connected, but no events arrive", r"topic")
    mend(worker, kv_silent=False)
    Traffic(router).send()
    check_mended(router, worker, "no_events")


def test_a_publisher_that_dials_out_is_named(world):
    worker = mock_of(world, kv_events_connect=f"tcp://127.0.0.1:{wire.free_port()}")
    router = router_of(world, [worker], *SHORTLY, follows=0)
    busy(router, worker, "no_events", 1000)
    check_doubt(router, worker, "no_events", r"connects its publisher", r"bind it \(tcp://\*:PORT\)|--kv-events-bind")


def serve_with_events_at(world, worker, endpoint, after=SHORTLY):
    """A router that is told to expect the worker's events there."""
    router = world.serve(*ROUTER, *after)
    added = wire.ask(router.port, "POST", "/workers", {"url": worker.url, "kv_events": endpoint})
    assert added.status in (200, 201), added.text()
    eventually(lambda: router.health()["workers_ready"] == 1, "the worker is ready")
    return router


def test_a_port_that_nobody_listens_at_is_named(world):
    worker = mock_of(world)
    endpoint = f"tcp://127.0.0.1:{wire.free_port()}"
    router = serve_with_events_at(world, worker, endpoint)
    busy(router, worker, "no_events", 1000)
    eventually(lambda: "nothing listens" in rank_of(router, worker)["evidence"], "the port is found to be closed")
    check_doubt(router, worker, "no_events", rf"nothing listens at {endpoint}", r"kv_events: tcp://HOST:PORT")


def test_a_port_that_swallows_connections_is_named(world):
    worker = mock_of(world)
    # A listener whose backlog is full lets nobody in, and says nothing, as a firewall does.
    with socket.socket() as wall:
        wall.bind(("127.0.0.1", 0))
        wall.listen(0)
        endpoint = f"tcp://127.0.0.1:{wall.getsockname()[1]}"
        waiting = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(wall.getsockname())
            waiting.append(sock)
        time.sleep(0.2)
        # Time for a connection to be given up, so that the line about it can say so.
        router = serve_with_events_at(world, worker, endpoint, ("--no-events-after", "4s"))
        Traffic(router, at_once=4).until(
            lambda: "times out" in (rank_of(router, worker)["evidence"] or ""), 20000, pause=0.05)
        check_doubt(router, worker, "no_events", r"times out", r"firewall")
        for sock in waiting:
            sock.close()


def test_a_port_that_is_no_publisher_is_named(world):
    worker = mock_of(world)
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=lambda: [door.accept() for _ in itertools.count()], daemon=True).start()
        router = serve_with_events_at(world, worker, f"tcp://127.0.0.1:{door.getsockname()[1]}")
        Traffic(router, at_once=4).until(
            lambda: "not a ZeroMQ publisher" in (rank_of(router, worker)["evidence"] or ""), 20000, pause=0.05)
        check_doubt(router, worker, "no_events", r"accepts connections, but is not a ZeroMQ publisher", r"publisher's port")


def test_one_silent_rank_among_others_is_the_one_that_is_named(world):
    silent, well = mock_of(world, kv_silent=True), mock_of(world)
    router = router_of(world, [silent, well], *SHORTLY)
    busy(router, silent, "no_events", 2000)
    check_doubt(router, silent, "no_events", r"no events arrive", r"topic")
    assert rank_of(router, well)["trust"] == "trusted"


# --- tokens_differ


@pytest.mark.parametrize("fault, likely, fix", [
    ("bos", r"at position 0 .*adds a first token \(BOS\)", "add_bos_token"),
    ("template", r"at position 8 .*a different chat template", "chat.template"),
    ("vocabulary", r"at position 0 .*a different vocabulary", "--model-path"),
])
@pytest.mark.vocabulary
def test_an_engine_that_computes_other_tokens_is_named_with_the_first_that_differs(world, fault, likely, fix):
    files = model_folder("qwen3")
    worker = mock_of(world, model_path=files, prompt_fault=fault)
    router = router_of(world, [worker], "--model-path", files)

    def chat(number):
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Sounding {number}: how deep?"}]
        answer = router.chat(messages=messages, max_tokens=1)
        assert answer.status == 200
    for number in range(6):
        chat(number)
        time.sleep(0.2)
    # Four requests that were alone on their rank; each is judged ten seconds after its first byte.
    eventually(doubted(router, worker, "tokens_differ"), "the difference is named")
    check_doubt(router, worker, "tokens_differ", likely, fix)
    evidence = rank_of(router, worker)["evidence"]
    assert "'" in evidence, "tokens are named with their text"
    assert "Sounding" not in router.log_text(), "what users write is not told"
    mend(worker, prompt_fault="none")
    chat(100)
    check_mended(router, worker, "tokens_differ")


# --- prefix_caching_off


def test_a_cache_that_is_off_by_its_own_report_is_named(world):
    worker = mock_of(world, no_prefix_caching=True)
    router = router_of(world, [worker])
    eventually(doubted(router, worker, "prefix_caching_off"), "the report is believed")
    check_doubt(router, worker, "prefix_caching_off", r"reports that its prefix caching is off",
                r"without --no-enable-prefix-caching")


def test_a_cache_that_finds_nothing_is_named_though_nobody_reports_it(world):
    worker = mock_of(world, no_prefix_caching=True, prefix_caching_report="none")
    router = router_of(world, [worker])
    traffic = Traffic(router)
    same = ids(7, 8)
    sent = traffic.until(doubted(router, worker, "prefix_caching_off"), 60, (same + [i] for i in itertools.count(1)),
                         pause=0.25)
    assert sent >= 8
    check_doubt(router, worker, "prefix_caching_off", r"reported 0 cached tokens", r"--no-enable-prefix-caching")
    mend(worker, prefix_caching=True)
    Traffic(router).until(trusted(router, worker), 60, (same + [1000 + i] for i in itertools.count()), pause=0.25)
    check_mended(router, worker, "prefix_caching_off")


# --- events that come late, or not at all


def test_events_that_come_late_are_named_with_their_lag(world):
    worker = mock_of(world, kv_delay="3s")
    router = router_of(world, [worker])
    traffic = Traffic(router)
    traffic.until(doubted(router, worker, "event_lag"), 300, pause=0.2)
    check_doubt(router, worker, "event_lag", r"arrive [3-9]\.\d s late", r"--event-lag-limit")
    assert router.metric("kv_router_event_lag_seconds_count", **{"from": "first_byte"}) > 0
    mend(worker, kv_delay=0)
    traffic.until(trusted(router, worker), 300, pause=0.2)
    check_mended(router, worker, "event_lag")


def test_batches_that_are_lost_are_named_and_forgiven_when_the_stream_is_whole(world):
    worker = mock_of(world, kv_lose_every=10)
    router = router_of(world, [worker])
    traffic = Traffic(router)
    traffic.until(doubted(router, worker, "event_gap"), 100, pause=0.05)
    check_doubt(router, worker, "event_gap", r"\d+ event batches were lost in \d+ gaps", r"replay_endpoint")
    mend(worker, kv_lose_every=0)
    traffic.until(trusted(router, worker), 300, pause=0.2)
    check_mended(router, worker, "event_gap")


def test_batches_that_replay_brings_back_are_no_reason_for_doubt(world):
    worker = mock_of(world, kv_drop_every=3)
    router = router_of(world, [worker])
    for _ in range(60):
        Traffic(router).send(ids(_ + 1))
    eventually(lambda: router.metric("kv_router_feed_repaired_batches_total") > 5, "gaps were repaired")
    time.sleep(1)
    assert said(router) == [] and trusted(router, worker)()


# --- predictions


def test_an_engine_that_drops_blocks_silently_is_named_and_given_less_credit(world):
    worker = mock_of(world, kv_events_fault="no-removals", num_blocks=128)
    router = router_of(world, [worker])
    traffic = Traffic(router)
    # Twenty prompts of sixteen blocks do not fit: each is gone when its turn comes again.
    prompts = itertools.cycle([ids(i, 16) + [i] for i in range(1, 21)])
    traffic.until(doubted(router, worker, "prediction_drift"), 200, prompts, pause=0.03)
    check_doubt(router, worker, "prediction_drift", r"all requests: in the last \d+, \d+ tokens were predicted",
                r"evicts blocks without an event")
    assert rank_of(router, worker)["credit"]["plain"] < 0.5
    assert (router.metric("kv_router_predicted_cached_tokens_total")
            > 2 * router.metric("kv_router_actual_cached_tokens_total"))
    mend(worker, kv_events_fault="none")
    hot = itertools.cycle([ids(31, 8) + [1]])
    traffic.until(trusted(router, worker), 400, hot, pause=0.05)
    check_mended(router, worker, "prediction_drift")
    assert rank_of(router, worker)["credit"]["plain"] == 1


@pytest.mark.parametrize("fault, words", [("hide-salt", "cache_salt"), ("hide-lora", "LoRA adapter")])
def test_what_the_engine_keeps_apart_in_secret_is_told_from_drift_at_large(world, fault, words):
    worker = mock_of(world, kv_events_fault=fault, lora="captain")
    router = router_of(world, [worker])
    traffic = Traffic(router)
    apart = {"cache_salt": "pepper"} if fault == "hide-salt" else {"model": "captain"}
    for number in range(80):
        traffic.send(ids(5, 16) + [number + 1])
        traffic.send(ids(6, 16) + [number + 1], **apart)
        if doubted(router, worker, "prediction_drift")():
            break
        time.sleep(0.15)
    check_doubt(router, worker, "prediction_drift", rf"requests with a {words}.*other requests match their predictions",
                r"events omit the LoRA adapter or the cache_salt")
    assert "pepper" not in router.log_text()
    mend(worker, kv_events_fault="none")
    # What the engine holds already it does not tell of again.
    for number in range(40):
        traffic.send(ids(7, 16) + [number + 1], **apart)
        time.sleep(0.1)
    check_mended(router, worker, "prediction_drift")


def test_a_conversation_whose_salt_is_hidden_is_not_taken_for_other_tokens(world):
    worker = mock_of(world, kv_events_fault="hide-salt")
    router = router_of(world, [worker])
    traffic = Traffic(router)
    prompt = ids(5, 4)
    for turn in range(8):
        traffic.send(prompt + [1], cache_salt="pepper")
        prompt = prompt + ids(50 + turn, 2)
        time.sleep(0.1)
    time.sleep(11)  # a request that differs is judged ten seconds after its first byte
    assert "tokens_differ" not in said(router)


# --- memory


def test_a_cache_that_is_too_small_for_anything_to_return_is_named(world):
    worker = mock_of(world, num_blocks=128)
    router = router_of(world, [worker])
    prompts = itertools.cycle([ids(i, 16) + [i] for i in range(1, 21)])
    Traffic(router).until(doubted(router, worker, "churn"), 600, prompts, pause=0.05)
    check_doubt(router, worker, "churn", r"\d+ of \d+ repeated tokens in \d+ requests had been evicted; .* a block stays cached \d+ s",
                r"--gpu-memory-utilization")


# --- honest reasons


def test_what_makes_engines_count_otherwise_is_not_held_against_them(world):
    worker = mock_of(world)
    router = router_of(world, [worker])
    traffic = Traffic(router)
    same = ids(3, 8)
    for number in range(40):
        traffic.send(same + [number + 1], prompt_logprobs=1)
        traffic.send(same + [number + 1], n=2)
        traffic.send([same, ids(4, 8)])
    time.sleep(4)
    assert said(router) == [] and trusted(router, worker)()
    assert rank_of(router, worker)["credit"] == {"plain": 1, "adapter": 1, "salted": 1}


def test_preempted_requests_are_not_held_against_their_rank(world):
    # Four of these do not fit together while they grow.
    worker = mock_of(world, num_blocks=100, speedup=20)
    router = router_of(world, [worker])
    traffic = Traffic(router, at_once=4)
    same = ids(3, 8)
    with_room = itertools.count(1)
    traffic.until(lambda: traffic.sent >= 80, 100, (same + [next(with_room)] for _ in itertools.count()), max_tokens=400)
    assert worker.stats()["preemptions"] > 0, "the scenario has what it is about"
    time.sleep(4)
    assert said(router) == []


# --- one voice


def test_strict_readiness_waits_for_trust(world):
    worker = mock_of(world, kv_silent=True)
    router = router_of(world, [worker], *SHORTLY, "--ready-when", "trusted")
    assert router.get("/ready").status == 200, "nothing speaks against it yet"
    busy(router, worker, "no_events", 1000)
    answer = router.get("/ready")
    assert answer.status == 503 and "no_events" in answer.json()["reason"] and worker.url in answer.json()["reason"]
    mend(worker, kv_silent=False)
    Traffic(router).send()
    eventually(lambda: router.get("/ready").status == 200, "ready again")


def test_a_doubt_that_comes_and_goes_is_said_once_and_counted(world):
    worker = mock_of(world)
    router = router_of(world, [worker])
    cause = "prefix_caching_off"
    for _ in range(3):
        mend(worker, prefix_caching=False)
        eventually(doubted(router, worker, cause), "the report is believed")
        mend(worker, prefix_caching=True)
        Traffic(router).until(trusted(router, worker), 200, pause=0.05)
    assert said(router) == [cause]
    assert router.metric("kv_router_trust_changes_total", state="doubted", cause=cause) == 3
