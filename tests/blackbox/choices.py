"""What a router chooses: prompts as token ids, simulated engines that say what they hold, and the
decisions that the router tells of."""

import wire
from kv_engine import lookup
from wire import eventually

BLOCK = 16
# Fast enough that nothing but the choice takes time.
QUICK = {"profile": "h200-llama-3.1-8b", "speedup": 1000, "block_size": BLOCK}


def ids(number, blocks=4):
    """A piece of a prompt, whole blocks, that has no token in common with any other number's."""
    size = blocks * BLOCK
    return list(range(1 + number * 20_000, 1 + number * 20_000 + size))


def body_of(prompt, **fields):
    return {"model": "mock-model", "prompt": prompt, "max_tokens": 1, **fields}


def send(process, prompt, headers=(), **fields):
    return wire.ask(process.port, "POST", "/v1/completions", body_of(prompt, **fields), headers)


def complete(process, prompt, headers=(), **fields):
    """The answer of a router, or of an engine, which must be one."""
    answer = send(process, prompt, headers, **fields)
    assert answer.status == 200, answer.text()
    return answer


class Asked:
    """A request that is on its way; the answer is read when somebody wants it."""

    def __init__(self, process, prompt, headers=(), **fields):
        self.connection = wire.Connection(process.port)
        self.connection.request("POST", "/v1/completions", body_of(prompt, **fields), headers)

    def head(self):
        """Comes with the first byte of the body."""
        return self.connection.read_head()

    def answer(self):
        with self.connection:
            answer = self.connection.read_answer()
        assert answer.status == 200, answer.text()
        return answer

    def leave(self):
        self.connection.close()


def cached(answer):
    """What the router says was in the worker's cache."""
    return int(answer.header("x-fathom-cached-tokens"))


def found(answer):
    """What the engine says it found there."""
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


# --- the fleet


def follow(router, ranks):
    """Waits until the router hears the events of so many ranks."""
    def heard():
        return sum(rank["connected"] for rank in router.get("/debug/index").json()["ranks"])
    eventually(lambda: heard() == ranks, f"{ranks} ranks are followed")


def depth(router, worker, prompt, rank=0):
    """How much of the prompt the worker holds, as events have it."""
    return lookup(router, prompt).get((int(router.worker_id(worker)), rank), 0)


def seed(router, worker, prompt, rank=0):
    """Puts whole blocks into the worker's cache behind the router's back, and waits until its
    events have told the router so."""
    complete(worker, prompt, {"X-data-parallel-rank": str(rank)})
    eventually(lambda: depth(router, worker, prompt + [1], rank) == len(prompt),
               f"{len(prompt)} tokens are known on rank {rank} of {worker.url}")


# --- decisions


def decisions(router, limit=1000):
    """The newest first."""
    return router.get(f"/debug/decisions?limit={limit}").json()["decisions"]


def decision_of(router, answer):
    """The last one about the request that got this answer."""
    request = answer.header("x-request-id")
    return next(d for d in decisions(router) if d["request_id"] == request)


def explain(router, prompt, headers=(), **fields):
    """What would be chosen now."""
    answer = wire.ask(router.port, "POST", "/debug/explain", body_of(prompt, **fields), headers)
    assert answer.status == 200, answer.text()
    return answer.json()


def decided(router, by):
    return router.metric("kv_router_decisions_total", by=by)


# --- books

LOADS = ("kv_router_rank_requests", "kv_router_rank_queued_prefill_tokens",
         "kv_router_rank_context_tokens")


def loads(router):
    """What the router believes to lie on the ranks: {(metric, labels): value}, without zeros."""
    return {series: value for series, value in router.metrics().items()
            if series[0] in LOADS and value != 0}


def wait_until_idle(router):
    """Nothing runs, and the books say so."""
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all requests have ended")
    eventually(lambda: not loads(router), f"the books are empty: {loads(router)}")
