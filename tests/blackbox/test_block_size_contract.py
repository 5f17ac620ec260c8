"""The block-size contract, row by row: what is said, what the pages and metrics show, and whether
the router knows the caches afterwards. The rows about joiners, restarts and mixed fleets have files
of their own."""

import re

import pytest

from block_sizes import (ENGINES, SOON, both_fixes, check_cache_aware, check_unaware,
                         complaints, dropped, gauge_is, mismatch_words, mismatches, not_ready, page,
                         rank, records, restart, said, say, size, start, unset_fix, wait_for_trust)
from choices import Asked, complete, follow, ids
from conftest import json_lines, run_fathom
from wire import eventually


# --- nothing is set, and all report the same


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("tokens", [16, 64])
def test_what_all_workers_report_is_used(engine, tokens, world):
    workers = [start(world, engine, tokens) for _ in range(2)]
    router = world.serve(*SOON, workers=workers)
    record = say(router, f"Auto-configured KV block size to {tokens} (from worker reports)", "INFO")
    assert "model=mock-model workers=2" in record
    for worker in workers:
        assert size(router, worker) == (tokens, "report")
        assert rank(router, worker)["trust"] == "learning"
        assert gauge_is(router, worker, tokens, "report")
    follow(router, 2)
    for number, worker in enumerate(workers, 1):
        check_cache_aware(router, worker, number, tokens)
        assert size(router, worker) == (tokens, "events")
        assert gauge_is(router, worker, tokens, "events")
        assert (mismatches(router, worker, 0, 0), dropped(router, worker)) == (0, 0)
    assert router.health()["status"] == "ok"
    assert not complaints(router)
    assert len(said(router, "Auto-configured")) == 1


@pytest.mark.parametrize("engine, tokens", [("vllm", 16), ("sglang", 1), ("trtllm", 32)])
def test_what_engines_have_when_nobody_says_anything(engine, tokens, world):
    worker = start(world, engine, 0)
    router = world.serve(*SOON, workers=[worker])
    say(router, f"Auto-configured KV block size to {tokens} (from worker reports)", "INFO")
    follow(router, 1)
    check_cache_aware(router, worker, 1, tokens, blocks=32)
    assert not complaints(router)


def test_trtllm_without_statistics_of_iterations_is_asked_elsewhere(world):
    worker = start(world, "trtllm", 32, iter_stats="off")
    router = world.serve(*SOON, workers=[worker])
    say(router, "Auto-configured KV block size to 32 (from worker reports)", "INFO")
    assert size(router, worker) == (32, "report")


def test_models_agree_each_for_itself(world):
    workers = [start(world, "vllm", 16, model="small"), start(world, "trtllm", 32, model="large")]
    router = world.serve(*SOON, workers=workers)
    assert "model=small" in say(router, "Auto-configured KV block size to 16", "INFO")
    assert "model=large" in say(router, "Auto-configured KV block size to 32", "INFO")
    assert not complaints(router)


# --- nothing is set, and a worker cannot report


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_that_cannot_report_is_learnt_from_its_events(engine, world):
    worker = start(world, engine, 32, block_size_report="none")
    router = world.serve(*SOON, workers=[worker])
    record = say(router, "Worker does not report its KV block size: it is routed by load until its "
                         "first KV event", "INFO")
    assert f"url={worker.url} engine={engine}" in record
    assert size(router, worker) == (None, None)
    assert not router.metric("kv_router_block_size")
    follow(router, 1)
    complete(router, ids(1, 64))
    say(router, "Auto-configured KV block size to 32 (from KV events)", "INFO")
    check_cache_aware(router, worker, 2, 32)
    assert size(router, worker) == (32, "events")
    assert gauge_is(router, worker, 32, "events")
    assert len(said(router, "does not report")) == 1
    assert not complaints(router)


def test_one_that_reports_speaks_for_one_that_cannot(world):
    silent, telling = start(world, "vllm", 16, block_size_report="none"), start(world, "vllm", 16)
    router = world.serve(workers=[silent, telling])
    say(router, "Auto-configured KV block size to 16 (from worker reports)", "INFO")
    follow(router, 2)
    for number, worker in enumerate((silent, telling), 1):
        check_cache_aware(router, worker, number, 16)
    assert len(said(router, "Auto-configured")) == 1


# --- nothing is set, and they disagree at the start


def test_workers_that_disagree_are_all_named_and_the_router_ends(world):
    workers = [start(world, "vllm", 16), start(world, "trtllm", 32), start(world, "sglang", 64),
               start(world, "vllm", 16)]
    router = refused(world, workers)
    report, = records(router, "ERROR")
    lines = report.split("\n")
    assert "Workers disagree about the KV block size of model 'mock-model':" in lines[0]
    first, last = sorted((workers[0].url, workers[3].url))
    assert [line.strip() for line in lines[1:5]] == [
        f"16 tokens  {first} (vllm, by its own report)",
        f"16 tokens  {last} (vllm, by its own report)",
        f"32 tokens  {workers[1].url} (trtllm, by its own report)",
        f"64 tokens  {workers[2].url} (sglang, by its own report)"]
    for fix in ("--block-size", "--page-size", "tokens_per_block", "--block-size-conflict=mixed"):
        assert fix in lines[5]
    assert not said(router, "Auto-configured") and not said(router, "Selected worker")


def refused(world, workers, *args):
    """A router that does not want to serve these, once it has ended."""
    urls = [part for worker in workers for part in ("--worker-urls", worker.url)]
    router = world.start("serve", "--port", 0, *urls, *args)
    assert router.wait() == 78, router.log_text()
    return router


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_of_one_engine_can_disagree_too(engine, world):
    workers = [start(world, engine, tokens) for tokens in (16, 32)]
    report, = records(refused(world, workers), "ERROR")
    for worker, tokens in zip(workers, (16, 32)):
        assert f"{tokens} tokens  {worker.url} ({engine}, by its own report)" in report


def test_nobody_is_served_while_it_is_not_known_that_they_disagree(world):
    quick = start(world, "vllm", 16, report_delay="2s")
    late = start(world, "vllm", 32, report_delay="2200ms")
    router = world.serve(workers=[quick, late], ready=0)
    waiting = not_ready(router)
    assert waiting["status"] == "starting"
    assert "--block-size-wait" in waiting["reason"]
    assert {rank(router, worker)["trust"] for worker in (quick, late)} == {"probing"}
    asked = Asked(router, ids(1))
    assert router.wait() == 78
    asked.leave()
    assert said(router, "Workers disagree", "ERROR")
    assert not said(router, "Selected worker")
    assert quick.stats()["requests"] == late.stats()["requests"] == 0


def test_in_json_the_disagreement_is_one_object(world):
    workers = [start(world, "vllm", 16), start(world, "trtllm", 32)]
    log = json_lines(refused(world, workers, "--log-format", "json").log_text())
    report, = [entry for entry in log if entry["level"] == "ERROR"]
    assert all(worker.url in report["msg"] for worker in workers)


# --- a size is set, and reports differ


def configured(world, workers, tokens, *args, variable="DYN_KV_CACHE_BLOCK_SIZE"):
    router = world.serve(*SOON, *args, workers=workers, env={variable: str(tokens)})
    follow(router, len(workers))
    return router


@pytest.mark.parametrize("engine", ENGINES)
def test_a_report_that_differs_from_what_is_set_is_warned_of(engine, world):
    worker = start(world, engine, 32)
    router = configured(world, [worker], 16)
    record = say(router, "Worker reports KV block size 32, but 16 is configured.", "WARN")
    assert both_fixes(engine, 32, 16) in record and f"url={worker.url} " in record
    assert size(router, worker) == (32, "report")
    assert router.get("/ready").status == 200, "it is routed to"
    assert not records(router, "ERROR")
    assert not said(router, "Auto-configured")


@pytest.mark.parametrize("variable", ["FATHOM_KV_CACHE_BLOCK_SIZE", "DYN_KV_CACHE_BLOCK_SIZE"])
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_said_where_what_is_set_is_right(engine, variable, world):
    worker = start(world, engine, 32)
    router = configured(world, [worker], 32, variable=variable)
    check_cache_aware(router, worker, 1, 32)
    assert not complaints(router)
    assert not said(router, "Auto-configured")


def test_what_is_set_is_shown_where_nothing_else_is_known(world):
    worker = start(world, "vllm", 32, block_size_report="none")
    router = configured(world, [worker], 32)
    assert size(router, worker) == (32, "configured")
    assert gauge_is(router, worker, 32, "configured")
    assert not said(router, "does not report"), "nobody waits for it"
    check_cache_aware(router, worker, 1, 32)


# --- a size is set, and events differ


@pytest.mark.parametrize("report", ["", "none", "16"])
@pytest.mark.parametrize("engine", ENGINES)
def test_events_that_differ_from_what_is_set_are_an_error(engine, report, world):
    options = {"block_size_report": report} if report else {}
    worker = start(world, engine, 32, **options)
    router = configured(world, [worker], 16)
    complete(router, ids(1, 64))
    record = say(router, mismatch_words(engine, 32, 16), "ERROR")
    assert record.endswith(f" url={worker.url} dp_rank=0 fix=\"{unset_fix(engine, 16)}\" "
                           "docs=\"fathom docs block-size-mismatch\"")
    for number in range(2, 8):
        check_unaware(router, number)
    eventually(lambda: mismatches(router, worker, 16, 32) >= 13, "all events are counted")
    eventually(lambda: dropped(router, worker) == mismatches(router, worker, 16, 32),
               "and are the ones that were left out")
    assert len(records(router, "ERROR")) == 1
    warned = "Worker reports KV block size 32" if report == "" else "using the size from the events"
    assert len(said(router, warned, "WARN")) == (0 if report == "none" else 1)
    assert len(complaints(router)) == (1 if report == "none" else 2), "and nothing else"
    check_doubt(router, worker, engine)


def check_doubt(router, worker, engine):
    shown = rank(router, worker)
    assert (shown["trust"], shown["cause"]) == ("doubted", "block_size_mismatch")
    told = re.fullmatch("blocks of 32 tokens by its KV events, the router uses 16; "
                        r"(\d+) stored events skipped", shown["evidence"])
    assert 13 <= int(told.group(1)) <= mismatches(router, worker, 16, 32)
    assert shown["fix"] == unset_fix(engine, 16)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["since"])
    assert shown["blocks"] == 0 and shown["last_event_age_seconds"] >= 0
    assert size(router, worker) == (32, "events") and gauge_is(router, worker, 32, "events")
    assert page(router, worker)["state"] == "ready", "it is routed to, by load"
    assert router.health()["status"] == "degraded"
    assert router.get("/ready").status == 200


def test_the_error_names_the_setting_that_is_in_force(tmp_path, world):
    worker = start(world, "vllm", 32)
    dynamo = {"DYN_KV_CACHE_BLOCK_SIZE": "64"}  # which is not, in any of these
    config = tmp_path / "fathom.yaml"
    config.write_text("log-level: info\nkv_cache_block_size: 16\n")
    routers = {
        "--kv-cache-block-size=": world.serve(*SOON, "--kv-cache-block-size", 16,
                                              workers=[worker], env=dynamo),
        "FATHOM_KV_CACHE_BLOCK_SIZE=": world.serve(
            *SOON, workers=[worker], env={**dynamo, "FATHOM_KV_CACHE_BLOCK_SIZE": "16"}),
        "kv-cache-block-size: ": world.serve(*SOON, "--config", config, workers=[worker])}
    for router in routers.values():
        follow(router, 1)
    complete(worker, ids(1, 64))
    for setting, router in routers.items():
        eventually(lambda: said(router, "does not match", "ERROR"), f"{setting} in {router.log}")
        record, = said(router, "does not match", "ERROR")
        second = record.splitlines()[1]
        assert second.startswith(f"Set {setting}32 ") and "--block-size 16 on workers" in second, record
        assert "DYN_" not in record
        assert f'fix="Unset {setting.rstrip("=: ")}' in record
        if setting.endswith(": "):
            assert f"({config}:2)" in second


@pytest.mark.parametrize("setting", ["16", "64"])
def test_no_advice_takes_the_cache_from_another_worker(setting, world):
    workers = [start(world, "vllm", 16), start(world, "vllm", 32)]
    router = world.serve(*SOON, "--kv-cache-block-size", setting, workers=workers)
    follow(router, 2)
    for number, worker in enumerate(workers):
        complete(worker, ids(number, 64))
    record = say(router, f"Frontend KV block size ({setting}) does not match worker block size (32)",
                 "ERROR")
    warned = say(router, "Worker reports KV block size 32", "WARN")
    for text in (record, warned, rank(router, workers[1])["fix"]):
        assert "block-size=32" not in text and "--block-size-conflict=mixed" in text
        assert f"--block-size {setting} on workers" in text


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_that_are_smaller_than_what_is_set_are_an_error_too(engine, world):
    worker = start(world, engine, 16)
    router = configured(world, [worker], 32)
    complete(router, ids(1, 64))
    say(router, mismatch_words(engine, 16, 32), "ERROR")
    check_unaware(router, 2)


def test_a_polled_event_of_one_block_proves_a_mismatch_when_it_is_larger_than_what_is_set(world):
    worker = start(world, "trtllm", 32)
    router = configured(world, [worker], 16)
    eventually(lambda: size(router, worker) == (32, "report"), "its report")
    complete(router, ids(1, 2))  # one block
    say(router, mismatch_words("trtllm", 32, 16), "ERROR")


def test_a_polled_event_of_one_block_is_no_more_than_a_lower_bound(world):
    worker = start(world, "trtllm", 32, block_size_report="none")
    router = configured(world, [worker], 16)
    complete(router, ids(1, 2))
    router.wait_for_log(r"ERROR Frontend KV block size \(16\) does not match worker block size "
                        r"\(at least 32\)\.\nUnset DYN_KV_CACHE_BLOCK_SIZE .* tokens_per_block=16")
    wait_for_trust(router, worker, "doubted")


def test_the_error_is_one_object_in_json(world):
    worker = start(world, "trtllm", 32)
    router = configured(world, [worker], 16, "--log-format", "json")
    complete(router, ids(1, 64))
    router.wait_for_log('"level":"ERROR"')
    report, = [entry for entry in json_lines(router.log_text()) if entry["level"] == "ERROR"]
    assert report["msg"] == mismatch_words("trtllm", 32, 16)
    assert (report["url"], report["dp_rank"]) == (worker.url, 0)


def test_the_error_is_said_once_for_each_rank(world):
    worker = start(world, "vllm", 32, dp_size=3)
    router = world.serve("--kv-cache-block-size", 16, workers=[worker])
    follow(router, 3)
    for turn in range(3):
        for number in range(3):
            complete(worker, ids(3 * turn + number, 8), {"X-data-parallel-rank": str(number)})
    for number in range(3):
        wait_for_trust(router, worker, "doubted", number)
        assert gauge_is(router, worker, 32, "events", number)
    eventually(lambda: mismatches(router, worker, 16, 32) == 9, "all events are counted")
    assert sorted(re.search(r"dp_rank=(\d)", record)[1] for record in records(router, "ERROR")) == ["0", "1", "2"]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_error_is_said_again_when_the_worker_has_been_started_again(engine, world):
    worker = start(world, engine, 32)
    router = configured(world, [worker], 16)
    complete(router, ids(1, 64))
    say(router, mismatch_words(engine, 32, 16), "ERROR")
    worker = restart(world, worker, engine, 32)

    def said_again():
        complete(worker, ids(2, 64))
        return len(said(router, mismatch_words(engine, 32, 16), "ERROR")) == 2
    eventually(said_again, "it is said again")
    for number in range(3, 6):
        check_unaware(router, number)
    assert len(said(router, "does not match", "ERROR")) == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_that_comes_back_with_what_is_set_is_trusted(engine, world):
    worker = start(world, engine, 32)
    router = configured(world, [worker], 16)
    complete(router, ids(1, 64))
    say(router, mismatch_words(engine, 32, 16), "ERROR")
    worker = restart(world, worker, engine, 16)
    wait_for_trust(router, worker, "learning")
    follow(router, 1)
    check_cache_aware(router, worker, 2, 16)
    assert size(router, worker) == (16, "events")
    assert router.health()["status"] == "ok"
    shown = rank(router, worker)
    assert (shown["cause"], shown["evidence"], shown["fix"]) == (None, None, None)


# --- what cannot be asked for


def test_a_size_and_a_mixed_fleet_exclude_each_other():
    ended = run_fathom("serve", "--port", 0, "--kv-cache-block-size", 16,
                       "--block-size-conflict", "mixed")
    assert ended.returncode == 78
    assert "kv-cache-block-size 16" in ended.stderr and "mixed cannot be combined" in ended.stderr
    ended = run_fathom("serve", "--port", 0, "--block-size-conflict", "mixed",
                       env={"DYN_KV_CACHE_BLOCK_SIZE": "32"})
    assert ended.returncode == 78 and "DYN_KV_CACHE_BLOCK_SIZE" in ended.stderr


def test_who_does_not_look_at_caches_does_not_ask(world):
    workers = [start(world, "vllm", 16), start(world, "vllm", 32, report_delay="1h")]
    router = world.serve("--router-mode", "round-robin", workers=workers)
    for number in range(4):
        complete(router, ids(number))
    assert not complaints(router)
