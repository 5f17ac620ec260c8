"""A response that an engine keeps can be continued by that engine alone: whoever names it goes there, and nowhere else,
whether this router, another one or none has seen the response before."""

import json
import threading
import time

import pytest

import wire
from choices import decision_of
from fake_engine import LAST_CHUNK, STREAM_HEAD, FakeEngine, chunk, whole_answer
from model_fleet import counted, engine, holder, router_of
from wire import eventually

RESPONSES = "/v1/responses"
BODY = {"model": "mock-model", "max_output_tokens": 4}


def fleet(world, count=4, kind="vllm", files=None, **options):
    return [engine(world, kind, files, **options) for _ in range(count)]


def ask(router, text="How deep is it?", **fields):
    return wire.ask(router.port, "POST", RESPONSES, {**BODY, "input": text, **fields})


def respond(router, text="How deep is it?", **fields):
    answer = ask(router, text, **fields)
    assert answer.status == 200, answer.text()
    return answer


def id_of(answer):
    if answer.header("content-type").startswith("application/json"):
        return answer.json()["id"]
    first = next(line for line in answer.text().splitlines() if line.startswith("data: "))
    return json.loads(first.removeprefix("data: "))["response"]["id"]


def assert_lost(answer):
    assert answer.status == 404, answer.text()
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
    assert "send the whole conversation" in error["message"]


def spread(router, count, **fields):
    """Responses that lie on several workers."""
    answers = []
    while len(answers) < count or len({answer.worker for answer in answers}) < 2:
        answers.append(respond(router, f"What about buoy {len(answers)}? " * 20, **fields))
        assert len(answers) < 100, "all lie on one worker"
    return answers


# --- where they go


@pytest.mark.parametrize("kind", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("stream", [False, True])
def test_what_follows_goes_to_the_worker_that_has_it(world, kind, stream):
    workers = fleet(world, kind=kind)
    router = router_of(world, workers)
    answers = spread(router, 5, stream=stream)
    for answer in answers:
        last = answer
        for _ in range(4):
            last = respond(router, "And then?", stream=stream, previous_response_id=id_of(last))
            assert last.worker == answer.worker
            assert decision_of(router, last)["narrowed_by"] == "response"
    assert counted(workers, "response_calls") == 0, "ids are remembered from answers"
    assert router.metric("kv_router_response_pins") == 5 * len(answers)


@pytest.mark.parametrize("mode", ["round-robin", "random", "least-loaded", "prefix-hash"])
def test_every_way_of_choosing_keeps_to_it(world, mode):
    workers = fleet(world, 3)
    router = world.serve("--router-mode", mode, workers=workers)
    last = respond(router)
    for turn in range(10):
        answer = respond(router, stream=turn % 2 == 0, previous_response_id=id_of(last))
        assert answer.worker == last.worker
        last = answer
    assert counted(workers, "response_calls") == 0


def test_a_session_does_not_beat_it(world):
    router = router_of(world, fleet(world, 3))
    answers = spread(router, 6)
    elsewhere = next(answer for answer in answers if answer.worker != answers[0].worker)
    headers = {"X-Session-ID": "s"}
    body = {**BODY, "input": "x", "previous_response_id": id_of(elsewhere)}
    assert wire.ask(router.port, "POST", RESPONSES, body, headers).worker == elsewhere.worker
    body["previous_response_id"] = id_of(answers[0])
    assert wire.ask(router.port, "POST", RESPONSES, body, headers).worker == answers[0].worker


def test_it_is_explained(world):
    router = router_of(world, fleet(world, 3))
    for answer in spread(router, 4):
        body = {**BODY, "input": "x", "previous_response_id": id_of(answer)}
        explained = wire.ask(router.port, "POST", "/debug/explain", body).json()
        assert (str(explained["worker"]), explained["narrowed_by"]) == (answer.worker, "response")
    body = {**BODY, "input": "x", "previous_response_id": "resp_never"}
    refused = wire.ask(router.port, "POST", "/debug/explain", body)
    assert (refused.status, refused.json()["error"]["code"]) == (404, "previous_response_not_found")


def test_its_tokens_count_as_load_and_it_is_not_unread(world):
    router = router_of(world, fleet(world, 2, kind="trtllm"))  # nothing can be tokenized
    first = respond(router, "How deep is it there? " * 100)
    usage = first.json()["usage"]
    last = first
    for _ in range(8):
        last = respond(router, "And then?", previous_response_id=id_of(last))
    decision = decision_of(router, last)
    told = usage["input_tokens"] + usage["output_tokens"]
    assert decision["prompt_tokens"] > told, "the conversation's, not those of the new words alone"
    assert decision["believed_tokens"] >= told, "its worker has them cached"
    [model] = router.health()["models"]
    assert model["cause"] is None, model
    assert router.metric("kv_router_prompts_unread_total", reason="continued") == 0


def test_the_openai_client_continues_its_responses(world):
    from test_openai_client import openai
    router = router_of(world, fleet(world, 3))
    told = openai(router, "responses-turns", max_output_tokens=4)
    assert len({turn["id"] for turn in told["turns"]}) == 4
    assert len({turn["worker"] for turn in told["turns"]}) == 1
    assert told["shown"] == told["turns"][0]["id"]
    lost = openai(router, "responses", previous_response_id="resp_never")
    assert (lost["raised"], lost["code"]) == ("NotFoundError", "previous_response_not_found")


def test_of_several_ranks_the_one_that_has_it_is_chosen(world):
    workers = fleet(world, 2, dp_size=4)
    router = router_of(world, workers, follows=8)
    for number in range(6):
        first = respond(router, f"buoy {number} " * 100)
        for _ in range(3):
            answer = respond(router, "And then?", previous_response_id=id_of(first))
            assert (answer.worker, answer.header("x-fathom-dp-rank")) == (first.worker, first.header("x-fathom-dp-rank"))


# --- a worker that is busy


class Valve:
    """The POST side of an engine: responses end when the test lets them."""

    def __init__(self):
        self.passes = threading.Semaphore(0)
        self.made = 0

    def __call__(self, request, connection):
        if request.target == RESPONSES and self.passes.acquire(timeout=wire.PATIENCE):
            self.made += 1
            made = {"id": f"resp_{id(self)}_{self.made}", "usage": {"input_tokens": 100, "output_tokens": 1}}
            event = {"type": "response.completed", "response": made}
            connection.sendall(STREAM_HEAD + chunk(f"data: {json.dumps(event)}\n\n".encode()) + LAST_CHUNK)

    def open(self, count=100):
        self.passes.release(count)


class Sent:
    """A request that is on its way."""

    def __init__(self, router, text="x", **fields):
        self.connection = wire.Connection(router.port)
        self.connection.request("POST", RESPONSES, {**BODY, "input": text, "stream": True, **fields})

    def answer(self):
        with self.connection:
            return self.connection.read_answer()


def test_who_waits_for_one_worker_keeps_none_waiting_that_any_can_serve(serve, engine):
    valves = [Valve(), Valve()]
    workers = [engine(valve) for valve in valves]
    router = serve("--router-mode", "kv", "--kv-events", "off", "--router-queue-threshold", 0.001,
                   workers=[worker.url for worker in workers])
    for valve in valves:
        valve.open(1)
    first = respond(router, stream=True)
    at = [router.worker_id(worker) for worker in workers].index(first.worker)
    busy, free = workers[at], workers[1 - at]
    valves[at].passes = threading.Semaphore(0)

    def waiting():
        return router.metric("kv_router_queue_waiting")
    prefill = Sent(router, previous_response_id=id_of(first))
    eventually(lambda: len(served(busy)) == 2, "its worker is busy")
    pinned = [Sent(router, f"{number}", previous_response_id=id_of(first)) for number in range(3)]
    eventually(lambda: waiting() == 3, "they wait for it")
    for _ in range(4):
        valves[1 - at].open(1)
        answer = respond(router, stream=True)
        assert answer.worker == router.worker_id(free), "the other worker serves all others"
    assert (len(served(busy)), waiting()) == (2, 3), "and none of these"
    valves[at].open()
    for request in [prefill, *pinned]:
        answer = request.answer()
        assert (answer.status, answer.worker) == (200, first.worker)
    assert waiting() == 0


# --- ids that are not known here


@pytest.mark.parametrize("kind", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_router_that_was_restarted_asks_the_workers(world, kind, stream):
    workers = fleet(world, kind=kind)
    old = router_of(world, workers)
    answers = spread(old, 4, stream=stream)
    old.end()
    router = router_of(world, workers)
    for answer in answers:
        for _ in range(2):
            again = respond(router, "And then?", stream=stream, previous_response_id=id_of(answer))
            assert again.worker == answer.worker
    assert router.metric("kv_router_response_searches_total", result="found") == len(answers), "and remembers it"
    assert counted(workers, "response_calls") <= len(workers) * len(answers)


def test_several_routers_agree(world):
    workers = fleet(world)
    routers = [router_of(world, workers) for _ in range(3)]
    last = respond(routers[0])
    for turn in range(1, 9):
        answer = respond(routers[turn % 3], previous_response_id=id_of(last))
        assert answer.worker == last.worker
        last = answer


def test_an_id_that_no_worker_has(world):
    workers = fleet(world)
    router = router_of(world, workers)
    for _ in range(10):
        assert_lost(ask(router, previous_response_id="resp_never"))
        assert_lost(ask(router, stream=True, previous_response_id="resp_never"))
    assert [worker.stats()["response_calls"] for worker in workers] == [1, 1, 1, 1], "each was asked once"
    assert counted(workers, "requests") == 0
    assert router.metric("kv_router_response_searches_total", result="nowhere") == 20


def test_requests_for_one_id_share_one_search(serve, keepers):
    """Also those on other threads of the router."""
    together = threading.Event()
    workers = keepers({}, {}, {}, holds=together)
    router = serve("--threads", 4, workers=[worker.url for worker in workers])
    sent = [Sent(router, previous_response_id="resp_x") for _ in range(12)]
    eventually(lambda: router.metric("fathom_requests_in_flight") == len(sent), "all wait")
    together.set()
    answers = [request.answer() for request in sent]
    assert {answer.status for answer in answers} <= {404, 503}, "503 where that took too long"
    assert [len(worker.shown) for worker in workers] == [1, 1, 1]


def test_a_flood_of_ids_does_not_become_one_of_questions(world):
    workers = fleet(world, 2)
    router = router_of(world, workers)
    begun = time.monotonic()
    answers = [ask(router, previous_response_id=f"resp_{number}") for number in range(600)]
    took = time.monotonic() - begun
    codes = [answer.json()["error"]["code"] for answer in answers]
    assert set(codes) <= {"previous_response_not_found", "response_not_located"}
    asked = [worker.stats()["response_calls"] for worker in workers]
    assert max(asked) == codes.count("previous_response_not_found"), "each search asks a worker once"
    assert 200 <= max(asked) <= 200 + 100 * took + 1, "as docs/routing.md says"
    refused = router.metric("kv_router_response_searches_total", result="overload")
    assert refused == codes.count("response_not_located")


def test_what_was_not_stored_is_not_remembered(world):
    workers = fleet(world)
    router = router_of(world, workers)
    answer = respond(router, store=False)
    assert router.metric("kv_router_response_pins") == 0
    assert_lost(ask(router, previous_response_id=id_of(answer)))


@pytest.mark.parametrize("wrong", [5, [], {}, "", "../../metrics", "a b", "x" * 5000, "\r\nx: y", "?x"])
def test_what_is_no_id_is_the_engines_to_refuse(world, wrong):
    workers = fleet(world, 2)
    router = router_of(world, workers)
    answer = ask(router, previous_response_id=wrong)
    assert answer.status in (200, 400, 404, 422), answer.text()
    assert answer.header("x-fathom-worker"), "the engine has answered"
    assert counted(workers, "response_calls") == 0


# --- workers that come and go


def test_the_worker_was_removed(world):
    workers = fleet(world, 2)
    router = router_of(world, workers)
    answer = respond(router)
    assert wire.ask(router.port, "DELETE", f"/workers/{answer.worker}").status == 204
    for stream in (False, True):
        assert_lost(ask(router, stream=stream, previous_response_id=id_of(answer)))
    shown = router.get(f"{RESPONSES}/{id_of(answer)}")
    assert (shown.status, shown.json()["error"]["code"]) == (404, "response_not_found")
    assert respond(router).status == 200


@pytest.mark.parametrize("when", ["at once", "when the router knows"])
def test_the_worker_has_died(world, when):
    workers = fleet(world, 2)
    router = router_of(world, workers)
    answer = respond(router)
    dead = holder(workers, router, answer)
    dead.kill()
    dead.wait()
    if when == "when the router knows":
        eventually(lambda: router.health()["workers_ready"] == 1, "the router knows")
    assert_lost(ask(router, previous_response_id=id_of(answer)))
    assert counted([worker for worker in workers if worker is not dead], "requests") == 0, "none went elsewhere"


def test_another_process_takes_its_place(world):
    """Its memory is gone, whatever its address is: the engine says so itself, and the router forgets."""
    workers = fleet(world, 2)
    router = router_of(world, workers)
    answer = respond(router)
    dead = holder(workers, router, answer)
    dead.kill()
    dead.wait()
    eventually(lambda: router.health()["workers_ready"] == 1, "the router knows")
    engine(world, "vllm", None, port=dead.port)
    eventually(lambda: router.health()["workers_ready"] == 2, "it is back")
    pins = router.metric("kv_router_response_pins")
    refused = ask(router, previous_response_id=id_of(answer))
    assert (refused.status, refused.worker) == (404, answer.worker)
    assert router.metric("kv_router_response_pins") == pins - 1
    assert_lost(ask(router, previous_response_id=id_of(answer)))


class Keeper(FakeEngine):
    """An engine that has these responses: {id: body}."""

    def __init__(self, responses, answer=None, holds=None):
        self.kept = responses
        self.ill = threading.Event()
        self.holds = holds  # it answers questions about responses when that is set
        self.shown = []
        super().__init__(answer or (lambda _, connection: connection.sendall(whole_answer('{"id": "resp_next"}'))))

    def _page(self, target):
        if target == "/health" and self.ill.is_set():
            return whole_answer("draining", "503 Service Unavailable")
        if not target.startswith(RESPONSES):
            return super()._page(target)
        self.shown.append(target)
        if self.holds:
            self.holds.wait(wire.PATIENCE)
        name, _, query = target.removeprefix(f"{RESPONSES}/").partition("?")
        if self.kept is None:
            return whole_answer('{"detail":"Not Found"}', "404 Not Found")
        if name not in self.kept:
            return whole_answer(json.dumps({"error": {"message": f"{name} not found"}}), "404 Not Found")
        if "stream=true" not in query:
            return whole_answer(self.kept[name])
        return STREAM_HEAD + b"".join(map(chunk, STORED_EVENTS)) + LAST_CHUNK


STORED_EVENTS = [b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n',
                 b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"resp_1"}}\n\n']


@pytest.fixture
def keepers():
    started = []

    def start(*kept, **options):
        started.extend(Keeper(responses, **options) for responses in kept)
        return started[-len(kept):]
    yield start
    for keeper in started:
        keeper.stop()


def served(keeper):
    return [request for request in keeper.requests if request.target == RESPONSES]


def test_a_worker_that_shuts_down_still_answers(serve, keepers):
    """Its health checks fail, and it listens."""
    keeper, other = keepers({"resp_1": "{}"}, {})
    router = serve(workers=[keeper.url, other.url])
    assert respond(router, previous_response_id="resp_1").worker == router.worker_id(keeper)
    keeper.ill.set()
    eventually(lambda: router.health()["workers_ready"] == 1, "the router knows")
    assert respond(router, previous_response_id="resp_1").worker == router.worker_id(keeper)
    assert not served(other)


def test_a_failure_is_not_retried_elsewhere(serve, keepers):
    def fail(_, connection):
        connection.close()
    [broken] = keepers({"resp_1": "{}"}, answer=fail)
    others = keepers({}, {})
    router = serve(workers=[broken.url, *(other.url for other in others)])
    answer = ask(router, previous_response_id="resp_1")
    assert (answer.status, answer.json()["error"]["code"]) == (502, "worker_failed")
    assert len(served(broken)) >= 1
    assert not any(map(served, others))
    assert router.metric("fathom_retries_total") == 0


def test_engines_that_cannot_be_asked(serve, keepers):
    """They have no such route: what a client asks of them is not refused in their place."""
    [only] = keepers(None)
    router = serve(workers=[only.url])
    assert respond(router, previous_response_id="resp_1").status == 200
    several = keepers(None, None)
    router = serve(workers=[worker.url for worker in several])
    first = respond(router, previous_response_id="resp_1")
    for _ in range(5):
        assert respond(router, previous_response_id="resp_1").worker == first.worker, "it was the right one"


def test_the_question_has_the_workers_key(world, keepers):
    [keeper] = keepers({"resp_1": "{}"})
    config = world.folder / "fathom.yaml"
    config.write_text(f"workers:\n  - url: {keeper.url}\n    api_key_env: KEY_OF_WORKER\n")
    seen = []
    read = keeper._read

    def listen(connection):
        request = read(connection)
        if request and request.target.startswith(RESPONSES):
            seen.append(request)
        return request
    keeper._read = listen
    router = world.serve("--config", config, env={"KEY_OF_WORKER": "sesame"}, ready=1)
    headers = {"authorization": "Bearer of-the-client", "x-secret": "1"}
    body = {**BODY, "input": "x", "previous_response_id": "resp_1"}
    assert wire.ask(router.port, "POST", RESPONSES, body, headers).status == 200
    [question] = [request for request in seen if request.method == "GET"]
    assert question.header("authorization") == "Bearer sesame"
    assert question.header("x-secret") is None


# --- GET, DELETE and cancel


@pytest.mark.parametrize("kind", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("restarted", [False, True])
def test_responses_are_shown_deleted_and_cancelled_where_they_are(world, kind, restarted):
    workers = fleet(world, 3, kind=kind)
    router = router_of(world, workers)
    answers = spread(router, 4)
    if restarted:
        router.end()
        router = router_of(world, workers)
    for answer in answers:
        path = f"{RESPONSES}/{id_of(answer)}"
        shown = router.get(path)
        assert (shown.status, shown.worker, shown.json()["id"]) == (200, answer.worker, id_of(answer))
        pins = router.metric("kv_router_response_pins")
        cancelled = wire.ask(router.port, "POST", f"{path}/cancel")
        deleted = wire.ask(router.port, "DELETE", path)
        assert (cancelled.worker, deleted.worker) == (answer.worker, answer.worker)
        able = kind == "trtllm"  # to delete, and it alone
        assert (deleted.status, cancelled.status) == (200 if able else 405, {"vllm": 400, "sglang": 200}.get(kind, 404))
        assert router.metric("kv_router_response_pins") == pins - (1 if able else 0)
        again = router.get(path)
        assert again.status == (404 if able else 200)


def test_the_stream_of_a_response_is_relayed(serve, keepers):
    workers = keepers({}, {"resp_1": "{}"}, {})
    router = serve(workers=[worker.url for worker in workers])
    shown = router.get(f"{RESPONSES}/resp_1?stream=true")
    assert (shown.status, shown.worker) == (200, router.worker_id(workers[1]))
    assert shown.body == b"".join(STORED_EVENTS)
    assert workers[1].shown[-1].endswith("?stream=true")


def test_a_response_that_ended_early_is_shown_all_the_same(serve, keepers):
    """An answer that says so is retried; what a client only looks at is not."""
    body = json.dumps({"id": "resp_1", "object": "response", "status": "cancelled", "background": False})
    workers = keepers({}, {"resp_1": body})
    router = serve(workers=[worker.url for worker in workers])
    shown = router.get(f"{RESPONSES}/resp_1")
    assert (shown.status, shown.text()) == (200, body)
    assert router.metric("fathom_worker_errors_total") == 0
