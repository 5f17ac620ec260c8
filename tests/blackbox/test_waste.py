"""What the router says was prefilled in vain, against what the engines themselves had to compute again; and why."""

import itertools
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from choices import BLOCK, QUICK, body_of, complete, decision_of, depth, follow, ids, seed
from trust import ROUTER, Traffic, doubted, mend, rank_of, router_of, said
from wire import eventually

WASTED = "kv_router_wasted_prefill_tokens_total"


class Fleet:
    """Engines of one process, that count together what one computes though another had it."""

    def __init__(self, world, engines, **options):
        self.process = world.mock(**{**QUICK, "instances": engines, "port": 0, **options})
        eventually(lambda: len(self._ports()) == engines, "all engines listen")
        self.ports = self._ports()
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def _ports(self):
        return re.findall(r"Mock engine listening.*?127\.0\.0\.1:(\d+)", self.process.log_text())

    def recomputed(self):
        stats = [wire.get(int(port), "/mock/stats").json() for port in self.ports]
        assert not any(s["ledger_full"] for s in stats)
        return sum(s["recomputed_prompt_tokens"] for s in stats)


def wasted(router, **labels):
    return router.metric(WASTED, **labels)


def settle(router):
    """Waits until the events of what was computed have come."""
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all requests have ended")
    time.sleep(0.05)


def agree(router, fleet):
    ours, theirs = wasted(router), fleet.recomputed()
    assert theirs > 0, "the scenario wastes something"
    assert abs(ours - theirs) <= 0.01 * theirs, (ours, theirs, {k: v for k, v in router.metrics().items() if k[0] == WASTED})
    return theirs


def talk(router, numbers, turns, rng):
    """Conversations one turn at a time, in an order that mixes them: every prompt begins with the one before it."""
    prompts = {number: ids(number, 12) for number in numbers}
    for turn in range(turns):
        order = list(numbers)
        rng.shuffle(order)
        for number in order:
            answer = complete(router, prompts[number] + [turn + 1], max_tokens=1)
            settle(router)
            yield answer
            prompts[number] = prompts[number] + ids(1000 + number * turns + turn, 2)


def test_evicted_prefixes_are_counted_as_the_engines_count_them(world):
    # Half of what comes back fits.
    fleet = Fleet(world, 2, num_blocks=150)
    router = router_of(world, fleet.urls, follows=2)
    for _ in talk(router, range(1, 25), 6, random.Random(1)):
        pass
    theirs = agree(router, fleet)
    assert wasted(router, cause="evicted") > 0.9 * theirs


def test_prefixes_that_load_kept_from_use_are_counted_as_the_engines_count_them(world):
    fleet = Fleet(world, 4)
    router = router_of(world, fleet.urls, follows=4)
    prefixes = [ids(number, 8) for number in range(1, 9)]
    rng = random.Random(2)
    # With a high temperature the choice is as good as random: most prefixes are had elsewhere.
    override = {"x-fathom-routing": "router_temperature=10"}
    for number in range(200):
        complete(router, rng.choice(prefixes) + [number + 1], override)
        settle(router)
    theirs = agree(router, fleet)
    assert wasted(router, cause="load") > 0.9 * theirs


def test_what_lies_on_a_silent_rank_is_counted_as_doubted(world):
    fleet = Fleet(world, 2, kv_silent=True)
    router = router_of(world, fleet.urls, "--no-events-after", "1s", follows=2)
    prefixes = [ids(number, 8) for number in range(1, 21)]
    rng = random.Random(3)
    for number in range(240):
        complete(router, rng.choice(prefixes) + [number + 1])
        time.sleep(0.02)
    theirs = agree(router, fleet)
    assert wasted(router, cause="doubted") > 0.9 * theirs
    assert said(router) == ["no_events"] * 2
    # Until then what was just sent was believed, so the doubt itself may have cost nothing yet.
    def costs():
        return sum(rank["cost_tokens"] for entry in router.health()["workers"] for rank in entry["ranks"])
    eventually(lambda: costs() > 0, "it is charged to the ranks that have it")


def test_a_rank_that_is_away_is_told_from_one_that_is_busy(world):
    workers = [world.mock(**QUICK) for _ in range(2)]
    router = router_of(world, workers, "--health-check-failures", "1")
    prefix = ids(1, 8)
    seed(router, workers[0], prefix)
    mend(workers[0], busy=True)  # answers 503, so the request goes elsewhere
    answer = complete(router, prefix + [1])
    eventually(lambda: decision_of(router, answer)["wasted_tokens"] is not None, "its outcome is known")
    assert decision_of(router, answer)["wasted_tokens"] == {"excluded": len(prefix)}
    assert wasted(router, cause="excluded") == len(prefix)


def test_an_override_that_leads_away_from_the_cache_is_named(world):
    worker = world.mock(**{**QUICK, "dp_size": 2})
    router = world.serve(*ROUTER, workers=[worker])
    follow(router, 2)
    prefix = ids(2, 8)
    seed(router, worker, prefix, rank=0)
    answer = complete(router, prefix + [1], {"x-data-parallel-rank": "1"})
    eventually(lambda: decision_of(router, answer)["wasted_tokens"] is not None, "its outcome is known")
    assert decision_of(router, answer)["wasted_tokens"] == {"override": len(prefix)}


def test_a_restarted_engine_takes_what_it_held_with_it(world):
    workers = [world.mock(**QUICK) for _ in range(2)]
    router = router_of(world, workers)
    prefix = ids(3, 8)
    seed(router, workers[0], prefix)
    answer = wire.ask(workers[0].port, "POST", "/reset_prefix_cache")
    assert answer.status == 200
    complete(workers[0], ids(4, 2))  # the event comes with the next step
    eventually(lambda: depth(router, workers[0], prefix + [1]) == 0, "the cache is known to be empty")
    answer = complete(router, prefix + [1])
    eventually(lambda: decision_of(router, answer)["wasted_tokens"] is not None, "its outcome is known")
    assert decision_of(router, answer)["wasted_tokens"] == {"gone": len(prefix)}


def test_what_late_events_cost_is_counted_as_lag(world):
    fleet = Fleet(world, 2, kv_delay="4s")
    router = router_of(world, fleet.urls, "--router-belief-ttl", "0s", "--event-lag-limit", "60s", follows=2)
    warm = [complete(router, ids(900 + i, 2)) for i in range(8)]
    eventually(lambda: all(rank["trust"] == "trusted" for e in router.health()["workers"] for rank in e["ranks"]),
               "both speak, late as they are")
    time.sleep(1)  # until requests know it as well
    override = {"x-fathom-routing": "router_temperature=10"}
    before, theirs_before = wasted(router, cause="lag"), fleet.recomputed()
    for number in range(1, 31):
        complete(router, ids(number, 8) + [1], override)
        complete(router, ids(number, 8) + [2], override)
    theirs = fleet.recomputed() - theirs_before
    assert theirs > 0
    assert abs(wasted(router, cause="lag") - before - theirs) <= 0.01 * theirs
    assert warm
