"""What a router says about the trust it has in its ranks: in /health, in its log, in its metrics."""

import itertools
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

from conftest import run_fathom
from choices import BLOCK, QUICK, body_of, follow, ids
from wire import ask, eventually

CAUSES = ["block_size_mismatch", "prefix_caching_off", "no_events", "tokens_differ", "unsupported_groups", "event_gap",
          "event_lag", "prediction_drift", "churn"]
ROUTER = ("--router-mode", "kv", "--engine-load-interval", "200ms")


def mock_of(world, **options):
    return world.mock(**{**QUICK, **options})


def router_of(world, workers, *args, follows=None):
    router = world.serve(*ROUTER, *args, workers=workers)
    follow(router, len(workers) if follows is None else follows)
    return router


def mend(worker, **faults):
    """Changes the faults of a running mock."""
    answer = ask(worker.port, "POST", "/mock/faults", faults)
    assert answer.status == 200, answer.text()


def rank_of(router, worker, rank=0):
    """The entry of a rank in /health."""
    entry = next(e for e in router.health()["workers"] if e["url"] == worker.url)
    return next(r for r in entry["ranks"] if r["rank"] == rank)


def said(router):
    """The causes of doubt that the log tells of, in order, once for each line."""
    return re.findall(r'A rank is doubted: (\w+)', router.log_text())


def line_about(router, cause):
    """The one line about it, as {field: value}."""
    lines = [line for line in router.log_text().splitlines() if f"A rank is doubted: {cause}" in line]
    assert len(lines) == 1, lines
    fields = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', lines[0])
    return {name: value.strip('"').replace('\\"', '"') for name, value in fields}


class Traffic:
    """Requests one after the other, or some at a time; every prompt is new unless one is given."""

    def __init__(self, router, at_once=1):
        self.router = router
        self.at_once = at_once
        self.numbers = itertools.count(1)
        self.sent = 0

    def fresh(self, blocks=4):
        # Beyond the largest number ids wrap around, but never to the same beginning.
        number = next(self.numbers)
        return ids(number % 1500, 1) + [number] * BLOCK + ids((number * 7) % 1500, blocks - 1)

    def send(self, prompt=None, **fields):
        body = body_of(self.fresh() if prompt is None else prompt, **fields)
        answer = ask(self.router.port, "POST", "/v1/completions", body)
        assert answer.status == 200, answer.text()
        self.sent += 1
        return answer

    def until(self, happened, most, prompts=None, pause=0.0, **fields):
        """Sends until it has happened, at most so many; returns how many it took."""
        first = self.sent
        prompts = prompts or (self.fresh() for _ in itertools.count())
        with ThreadPoolExecutor(self.at_once) as pool:
            while not happened():
                assert self.sent - first < most, f"not after {most} requests"
                some = [next(prompts) for _ in range(self.at_once)]
                list(pool.map(lambda prompt: self.send(prompt, **fields), some))
                time.sleep(pause)
        return self.sent - first


def doubted(router, worker, cause, rank=0):
    def look():
        entry = rank_of(router, worker, rank)
        return (entry["trust"], entry["cause"]) == ("doubted", cause)
    return look


def trusted(router, worker, rank=0):
    return lambda: rank_of(router, worker, rank)["trust"] == "trusted"


def check_doubt(router, worker, cause, evidence, fix, rank=0):
    """Everywhere the same, once, and nothing else."""
    entry = rank_of(router, worker, rank)
    assert (entry["trust"], entry["cause"]) == ("doubted", cause)
    assert re.search(evidence, entry["evidence"]), entry["evidence"]
    assert re.search(fix, entry["fix"]), entry["fix"]
    assert re.match(r"\d{4}-\d\d-\d\dT", entry["since"])
    assert said(router) == [cause]
    line = line_about(router, cause)
    assert line["cause"] == cause and line["url"] == worker.url
    assert re.search(evidence, line["evidence"]) and re.search(fix, line["fix"]), line
    assert "cost_tokens" in line
    assert line["docs"] == entry["docs"] == f"fathom docs {cause.replace('_', '-')}"
    assert run_fathom(*line["docs"].split()[1:]).returncode == 0
    assert router.health()["status"] == "degraded"
    worker_id = router.worker_id(worker)
    assert router.metric("kv_router_rank_trust", worker=worker_id, dp_rank=str(rank), state="doubted") == 1
    assert router.metric("kv_router_rank_trust", worker=worker_id, dp_rank=str(rank), state="trusted") == 0
    assert router.metric("kv_router_rank_doubt", worker=worker_id, dp_rank=str(rank), cause=cause) == 1
    assert router.metric("kv_router_trust_changes_total", state="doubted", cause=cause) == 1
    check_doctor(router, worker, cause, evidence, fix)


def check_doctor(router, worker, cause, evidence, fix):
    """The doctor, looking at the router alone, puts the cause first, in the router's words."""
    first, *others = doctor_findings("--url", router.url)
    assert first["id"] == cause.replace("_", "-"), (first, others)
    assert worker.url in first["subject"]
    assert any(re.search(evidence, sentence) for sentence in first["evidence"]), first["evidence"]
    assert re.search(fix, first["fixes"][0]["what"]), first["fixes"]
    # And in the log, without the router.
    logged = doctor_findings("--logs", router.log)
    assert cause.replace("_", "-") in [finding["id"] for finding in logged]


def doctor_findings(*args):
    ran = run_fathom("doctor", "--format", "json", *args)
    assert ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)["findings"]


def check_mended(router, worker, cause, rank=0):
    eventually(trusted(router, worker, rank), f"{worker.url} is trusted again")
    assert said(router) == [cause]
    assert re.search(rf'A rank is trusted again.*was="?{cause}', router.log_text())
    assert router.health()["status"] == "ok"
    assert router.metric("kv_router_rank_doubt") == 0
    assert cause.replace("_", "-") not in [finding["id"] for finding in doctor_findings("--url", router.url)]
