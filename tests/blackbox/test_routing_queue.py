"""When every rank has enough to do: requests wait in the router, in order, and not in an engine's
queue, where they could no longer be moved."""

import json
import threading
import time

import pytest

import wire
from choices import (QUICK, Asked, body_of, cached, complete, decisions, explain, follow, ids,
                     wait_until_idle)
from fake_engine import DONE_EVENT, LAST_CHUNK, STREAM_HEAD, token_event, whole_answer
from kv_engine import BLOCK, KvEngine, PagesEngine, chain, join, prompt_of
from wire import eventually

INFO = "/server_info?config_format=json"
SESSION = {"x-session-id": "s"}
# So low that one prefill fills a rank.
LOW = ("--router-queue-threshold", 0.001)
REPORTED = ("--engine-load-interval", "50ms")
COMPLETIONS = "/v1/completions"


class Gate:
    """The POST side of an engine: prefills end when the test lets them. Prompts of more tokens than
    it holds are refused at once."""

    def __init__(self, holds=1 << 20):
        self.passes = threading.Semaphore(0)
        self.holds = holds

    def __call__(self, request, connection):
        if request.target != COMPLETIONS:
            connection.sendall(whole_answer("{}", "404 Not Found"))
        elif len(json.loads(request.body)["prompt"]) > self.holds:
            connection.sendall(whole_answer('{"error": {}}', "400 Bad Request"))
        elif self.passes.acquire(timeout=wire.PATIENCE):
            connection.sendall(STREAM_HEAD + token_event("word") + DONE_EVENT + LAST_CHUNK)

    def open(self, count=100):
        self.passes.release(count)


@pytest.fixture
def gated(engine):
    def start(**options):
        gate = Gate()
        worker = engine(gate, **options)
        worker.gate = gate
        return worker
    return start


@pytest.fixture
def pages():
    """Gated, and tells of its limits as SGLang does; a prompt that it cannot hold is refused."""
    engines = []

    def start(kv_tokens=1 << 20, max_running=64):
        info = {"page_size": 16, "max_total_num_tokens": kv_tokens}
        load = {"dp_rank": 0, "num_running_reqs": 0, "num_waiting_reqs": 0, "token_usage": 0.0,
                "max_running_requests": max_running}
        engines.append(PagesEngine({INFO: info, "/v1/loads": {"loads": [load]}}, Gate(kv_tokens)))
        return engines[-1]
    yield start
    for started in engines:
        started.stop()


def seen(worker):
    """The names of the requests that have reached it."""
    return [request.header("x-request-id") for request in worker.requests
            if request.target == COMPLETIONS]


def ask(router, name, prompt=None, headers=(), **fields):
    headers = {"x-request-id": name, **dict(headers)}
    return Asked(router, prompt or ids(1, 16), headers, stream=True, **fields)


def waiting(router):
    return router.metric("kv_router_queue_waiting")


def join_line(router, *names, **fields):
    """Each stands in the line before the next one comes."""
    asked = []
    for name in names:
        before = waiting(router)
        asked.append(ask(router, name, **fields))
        eventually(lambda: waiting(router) == before + 1, f"{name} waits")
    return asked


def fill(router, *workers, prompt=None):
    """A prefill on each worker."""
    asked = []
    for number in range(len(workers)):
        asked.append(ask(router, f"first-{number}", prompt or ids(100 + number, 16)))
        # Or two threads could choose the same one at once.
        eventually(lambda: sum(map(len, map(seen, workers))) == len(asked), "it is there")
    assert all(len(seen(worker)) == 1 for worker in workers)
    return asked


# --- the line


def test_who_comes_first_goes_first(gated, serve):
    worker = gated()
    router = serve(*LOW, workers=[worker])
    names = [f"r{number}" for number in range(6)]
    asked = [*fill(router, worker), *join_line(router, *names)]
    assert seen(worker) == ["first-0"]
    assert len(decisions(router)) == 1, "what waits is not decided yet"
    worker.gate.open()
    for request in asked:
        assert request.answer().worker == router.worker_id(worker)
    assert seen(worker) == ["first-0", *names]
    latest = decisions(router)[::-1]
    assert [d["request_id"] for d in latest] == ["first-0", *names]
    assert latest[0]["waited_seconds"] == 0
    assert all(d["waited_seconds"] > 0 for d in latest[1:])
    assert router.metric("kv_router_queued_total") == len(names)
    assert router.metric("kv_router_queue_wait_seconds_count") == len(names)
    assert router.metric("kv_router_queue_wait_seconds_sum") == \
        pytest.approx(sum(d["waited_seconds"] for d in latest), rel=0.01)
    assert waiting(router) == 0
    assert router.metric("kv_router_queue_timeouts_total") == 0


def test_nobody_overtakes_the_line(gated, serve):
    """Not even one whose prompt would fit."""
    worker = gated()
    router = serve(*LOW, workers=[worker])
    asked = [*fill(router, worker), *join_line(router, "long", prompt=ids(2, 64)),
             *join_line(router, "short", prompt=ids(3, 1))]
    worker.gate.open()
    for request in asked:
        request.answer()
    assert seen(worker) == ["first-0", "long", "short"]


def test_who_leaves_is_taken_out_of_the_line(gated, serve):
    worker = gated()
    router = serve(*LOW, workers=[worker])
    first = fill(router, worker)
    asked = join_line(router, "a", "b", "c", "d")
    for place, left in ((0, 3), (2, 2)):  # the first of the line, and one in its middle
        asked[place].leave()
        eventually(lambda: waiting(router) == left, "it is taken out")
    worker.gate.open()
    for request in (*first, asked[1], asked[3]):
        request.answer()
    assert seen(worker) == ["first-0", "b", "d"]
    assert waiting(router) == 0


def test_whoever_waits_goes_where_room_is_first(gated, serve):
    workers = [gated(), gated()]
    router = serve(*LOW, workers=workers)
    first = fill(router, *workers)
    for turn, name in ((1, "a"), (0, "b")):
        (request,) = join_line(router, name, prompt=ids(turn, 16))
        workers[turn].gate.open(1)
        eventually(lambda: name in seen(workers[turn]), "it goes to the one that has room")
        first.append(request)
    for worker in workers:
        worker.gate.open()
    for request in first:
        request.answer()


def test_the_choice_is_made_at_dispatch(serve):
    """With what events have said meanwhile."""
    worker = KvEngine()
    worker.answer = worker.gate = Gate()
    try:
        router = serve(*LOW)
        (known,) = join(router, worker)
        eventually(lambda: router.health()["workers_ready"] == 1, "it can be routed to")
        first = fill(router, worker)
        (request,) = join_line(router, "late", prompt=prompt_of(5, 3) + [1])
        worker.publisher.publish(chain(5, 3))
        known.catch_up()
        worker.gate.open()
        assert cached(request.answer()) == 3 * BLOCK
        first[0].answer()
    finally:
        worker.stop()


def test_another_model_has_another_line(gated, serve):
    busy, idle = gated(model="busy"), gated(model="idle")
    idle.gate.open()
    router = serve(*LOW, workers=[busy, idle])
    first = ask(router, "first", model="busy")
    eventually(lambda: len(seen(busy)) == 1, "it is busy")
    (second,) = join_line(router, "second", model="busy")
    assert ask(router, "other", model="idle").answer().status == 200
    busy.gate.open()
    first.answer()
    second.answer()


def test_the_line_of_one_model_is_no_pressure_on_another(gated, serve):
    busy, idle = gated(model="busy"), gated(model="idle")
    router = serve(*LOW, workers=[busy, idle])
    first = ask(router, "first", model="busy")
    eventually(lambda: len(seen(busy)) == 1, "it is busy")
    line = join_line(router, "a", "b", "c", model="busy")
    assert explain(router, ids(2), model="busy")["pressure"] >= len(line)
    assert explain(router, ids(2), model="idle")["pressure"] == 0
    idle.gate.open()
    ask(router, "other", model="idle").answer()
    (other,) = [d for d in decisions(router) if d["request_id"] == "other"]
    assert other["pressure"] == 0
    busy.gate.open()
    for request in (first, *line):
        request.answer()


# Two workers that have enough with one request, each for a reason of its own.
@pytest.mark.parametrize("why", ["short", "full"])
def test_a_session_does_not_wait_for_its_worker_while_another_is_idle(pages, serve, why):
    args, workers = (LOW, [pages(), pages()]) if why == "short" else \
        (REPORTED, [pages(max_running=1), pages(max_running=1)])
    router = serve(*args, workers=workers)
    if why == "full":
        eventually(lambda: {w["max_running"] for w in router.health()["workers"]} == {1}, "said")
    # Each with a prompt of its own, or its cache would be a reason to go to a worker that is short.
    first = ask(router, "s0", ids(10, 16), SESSION)
    home = eventually(lambda: next((w for w in workers if seen(w)), None), "it has its worker")
    (other,) = [worker for worker in workers if worker is not home]
    home.answer.open(1)
    first.answer()
    wait_until_idle(router)
    asked = [ask(router, "s1", ids(11, 16), SESSION)]
    eventually(lambda: seen(home) == ["s0", "s1"], "it comes back to its worker")
    asked.append(ask(router, "s2", ids(12, 16), SESSION))
    eventually(lambda: seen(other) == ["s2"], "its worker has no room, and another has")
    assert router.metric("kv_router_queued_total") == 0

    # Now both are busy. The session stands first in the line, and holds nobody up there.
    asked += join_line(router, "s3", prompt=ids(13, 16), headers=SESSION)
    asked += join_line(router, "a", prompt=ids(14, 16))
    for served in (["s2", "s3"], ["s2", "s3", "a"]):
        other.answer.open(1)
        eventually(lambda: seen(other) == served, "the line moves on")
    assert seen(home) == ["s0", "s1"]
    for worker in workers:
        worker.answer.open()
    for request in asked:
        request.answer()


def test_an_explanation_waits_for_nobody(gated, serve):
    worker = gated()
    router = serve(*LOW, workers=[worker])
    asked = [*fill(router, worker), *join_line(router, "a")]
    assert explain(router, ids(1))["waited_seconds"] == 0
    assert waiting(router) == 1
    worker.gate.open()
    for request in asked:
        request.answer()


# --- its limits


@pytest.mark.parametrize("args,env", [(["--router-queue-threshold", "0"], {}),
                                      ([], {"DYN_ROUTER_QUEUE_THRESHOLD": "0"})],
                         ids=["flag", "variable"])
def test_without_a_threshold_nobody_waits(gated, serve, args, env):
    worker = gated()
    router = serve(*args, workers=[worker], env=env)
    asked = [ask(router, f"r{number}", ids(number, 512)) for number in range(20)]
    eventually(lambda: len(seen(worker)) == 20, "the engine has them all")
    assert router.metric("kv_router_queued_total") == 0
    worker.gate.open()
    for request in asked:
        request.answer()
    assert {d["waited_seconds"] for d in decisions(router)} == {0}


def test_whoever_has_waited_too_long_is_sent_anyway(gated, serve):
    worker = gated()
    router = serve(*LOW, "--router-queue-timeout", "300ms", workers=[worker])
    asked = [*fill(router, worker), ask(router, "impatient")]
    eventually(lambda: "impatient" in seen(worker), "it does not wait for ever")
    assert decisions(router, 1)[0]["waited_seconds"] >= 0.29
    assert router.metric("kv_router_queue_timeouts_total") == 1
    assert waiting(router) == 0
    worker.gate.open()
    for request in asked:
        request.answer()


def test_whoever_runs_out_of_time_in_the_line_is_told_and_no_worker_hears_of_it(gated, serve):
    worker = gated()
    router = serve(*LOW, "--request-timeout", "8s", "--circuit-breaker-failures", 1,
                   workers=[worker])
    # Begun before the one that keeps the worker busy, so that their time is over before its time.
    late = [wire.Connection(router.port) for _ in range(3)]
    whole = wire.request_bytes("POST", COMPLETIONS, body_of(ids(1, 16), stream=True))
    for connection in late:
        connection.send(whole[:-1])
    time.sleep(4)
    first = fill(router, worker)
    for connection in late:
        connection.send(whole[-1:])
    for connection in late:
        with connection:
            answer = connection.read_answer()
        assert (answer.status, answer.error["code"]) == (504, "queue_timeout")
    worker.gate.open()
    first[0].answer()
    assert seen(worker) == ["first-0"]
    assert len(decisions(router)) == 1
    assert router.metric("kv_router_queued_total") == len(late)
    assert waiting(router) == 0
    assert router.metric("fathom_worker_circuit_open") == 0
    assert router.metric("fathom_retries_total") == 0
    assert complete(router, ids(2)).status == 200, "nothing is held against the worker"


def test_whoever_waits_while_the_last_worker_dies_is_told(gated, serve):
    worker = gated()
    router = serve(*LOW, "--silent-stream-grace", "100ms", workers=[worker])
    first = fill(router, worker)
    (request,) = join_line(router, "orphan")
    worker.close_listener()
    with request.connection:
        answer = request.connection.read_answer()
    assert answer.status in (502, 503)
    assert answer.error["message"]
    eventually(lambda: waiting(router) == 0, "nobody waits")
    first[0].leave()


def test_a_drain_lets_the_line_finish(gated, serve):
    worker = gated()
    router = serve(*LOW, workers=[worker])
    asked = [*fill(router, worker), *join_line(router, "a", "b")]
    router.signal(15)
    router.wait_for_log("[Dd]rain|[Ss]hutting|[Ss]topping")
    worker.gate.open()
    for request in asked:
        request.answer()
    assert router.wait() == 0


# --- of engines as they are


def test_a_rank_that_runs_as_many_as_it_can_gets_no_more(mock, serve):
    """Though nothing is being prefilled."""
    worker = mock(**{**QUICK, "engine": "sglang", "speedup": 1, "max_num_seqs": 2})
    router = serve("--engine-load-interval", "50ms", workers=[worker])
    eventually(lambda: router.health()["workers"][0]["max_running"] == 2, "it has said so")
    running = [ask(router, f"r{number}", max_tokens=100_000) for number in range(2)]
    for request in running:
        assert request.head().status == 200
    (third,) = join_line(router, "third")
    assert worker.stats()["requests"] == 2
    running[0].leave()
    assert third.answer().status == 200
    running[1].leave()


def test_an_answer_that_comes_whole_makes_room_long_before_it_comes(mock, serve):
    """Its prefill ends without a word; nobody waits until it is decoded too."""
    worker = mock(**{**QUICK, "speedup": 1})
    # So low that the whole prefill has to end.
    router = serve("--router-queue-threshold", 0.2, "--router-queue-timeout", "1h",
                   workers=[worker])
    whole = Asked(router, ids(1, 1200), max_tokens=20_000)
    eventually(lambda: worker.stats()["requests"] == 1, "it is there")
    second = ask(router, "second")
    second.answer()
    assert worker.stats()["in_flight"] == 1, "the first is still being answered"
    whole.leave()


def test_a_rank_gets_as_much_as_it_says_it_can_take(serve):
    """Two steps of its own size, if nothing else is set."""
    prompt = ids(1, 640)
    page = {"page_size": 16, "max_total_num_tokens": 1 << 20, "chunked_prefill_size": 512}
    small = PagesEngine({INFO: page}, Gate())
    usual = PagesEngine({}, Gate())
    try:
        for worker, waits in ((small, 1), (usual, 0)):
            router = serve("--engine-load-interval", "50ms", workers=[worker])
            if waits:
                router.wait_for_log("batch_tokens=512")
            asked = [*fill(router, worker, prompt=prompt), ask(router, "second")]
            eventually(lambda: waiting(router) == waits if waits else len(seen(worker)) == 2,
                       "it waits where it should")
            assert router.metric("kv_router_queued_total") == waits
            worker.answer.open()
            for request in asked:
                request.answer()
    finally:
        small.stop()
        usual.stop()


def test_a_prompt_that_no_cache_can_hold_does_not_wait(pages, serve):
    """It is the engine's to refuse, and those behind it need not wait for that long."""
    worker = pages(kv_tokens=1024)
    router = serve(*REPORTED, workers=[worker])
    eventually(lambda: router.health()["workers"][0]["kv_tokens"] == 1024, "it has said so")
    asked = fill(router, worker, prompt=ids(1, 32))
    huge = ask(router, "huge-0", ids(2, 128))
    with huge.connection:
        assert huge.connection.read_answer().status == 400
    assert router.metric("kv_router_queued_total") == 0

    # The next is too large for what is left, though not for the whole cache: it has to wait.
    asked += join_line(router, "large", prompt=ids(3, 40))
    (huge,) = join_line(router, "huge-1", prompt=ids(4, 128))
    asked += join_line(router, "small", prompt=ids(5, 4))
    worker.answer.open(1)
    # One that is refused may come twice, the second time without our own question in it.
    eventually(lambda: len(set(seen(worker))) == 5, "the line moves while the large one runs")
    assert [d["request_id"] for d in decisions(router)[::-1]] == \
        ["first-0", "huge-0", "large", "huge-1", "small"]
    with huge.connection:
        assert huge.connection.read_answer().status == 400
    worker.answer.open()
    for request in asked:
        request.answer()


@pytest.mark.parametrize("threshold", [0.125, 0])
def test_what_waits_in_the_router_does_not_wait_in_engines(mock, serve, threshold):
    workers = [mock(**{**QUICK, "speedup": 0.1, "max_num_batched_tokens": 512}) for _ in range(2)]
    router = serve("--router-queue-threshold", threshold, workers=workers)
    follow(router, 2)
    asked = [ask(router, f"r{number}", ids(number, 128)) for number in range(16)]
    for request in asked:
        request.answer()
    latest = decisions(router)
    queued = router.metric("kv_router_queued_total")
    deepest = max(c["waiting"] for decision in latest for c in decision["candidates"])
    if threshold:
        assert queued > 0 and deepest <= 3
        assert max(decision["waited_seconds"] for decision in latest) > 0
    else:
        assert queued == 0 and deepest >= 4


def test_an_idle_rank_takes_what_no_limit_allows(mock, serve):
    router = serve(*LOW, workers=[mock(**{**QUICK, "engine": "sglang"})])
    for number in range(3):
        assert complete(router, ids(number, 512), stream=True).status == 200
