"""A fleet cut by model: a request that meets the wrong router is answered by the right one, as if the client had asked
that one itself."""

import json
import signal

import pytest

import nats_server
import wire
from fake_engine import DONE_EVENT, LAST_CHUNK, STREAM_HEAD, FakeEngine, token_event, whole_answer
from nats_server import NatsClient
from replica_mesh import KEY, Mesh
from replica_peer import Peer
from replica_views import meet
from wire import eventually


class Slices(Mesh):
    """Routers that serve some models each, and tell each other where they are."""

    def slice(self, name, *args, models, workers, url=None, ready=1):
        port = wire.free_port()
        return self.start(name, "--port", port, "--replica-url", url or f"http://127.0.0.1:{port}", "--models", models,
                          *args, workers=workers, ready=ready)


class SlicesOverNats(Slices):
    def __init__(self, world, url):
        super().__init__(world)
        self.url = url

    def carrier(self, name):
        return ["--replicas", self.url]


def ask(router, model, headers=(), **fields):
    return wire.chat(router.port, headers, model=model, **fields)


def until_forwarded(router, model, headers=()):
    """The first answer of the router that has the model: where it is comes to be known a moment after who is there."""
    def answered():
        answer = ask(router, model, headers)
        return answer if answer.status != 404 else None
    return eventually(answered, f"{model} is forwarded")


def forwarded(router, result="forwarded"):
    return router.metric("fathom_forwarded_requests_total", result=result)


@pytest.fixture(scope="module")
def pair(shared_world):
    """Two routers over ZeroMQ, each with one model of two; both are told of all workers. A third one has no worker, and
    says that it is where the first one is."""
    workers = {"mock-model": shared_world.mock(name="first"), "qwen": shared_world.mock(model="qwen", name="second")}
    slices = Slices(shared_world)
    routers = {"mock-model": slices.slice("a", models="mock-*", workers=workers.values()),
               "qwen": slices.slice("b", models="qwen*", workers=workers.values())}
    misled = slices.slice("c", models="ghost", workers=[], ready=0, url=routers["mock-model"].url)
    meet(misled, *routers.values())
    until_forwarded(routers["mock-model"], "qwen")
    until_forwarded(routers["qwen"], "mock-model")
    return routers, workers


OTHER = {"mock-model": "qwen", "qwen": "mock-model"}


@pytest.mark.parametrize("model", OTHER)
def test_the_right_router_answers_through_the_wrong_one(pair, model):
    routers, workers = pair
    right, wrong = routers[model], routers[OTHER[model]]
    served, count = workers[model].stats()["requests"], forwarded(wrong)
    answer = ask(wrong, model, {"X-Request-ID": "of the client"})
    assert (answer.status, answer.json()["model"]) == (200, model), answer.text()
    assert answer.header("x-fathom-replica") == ("a" if model == "mock-model" else "b")
    assert answer.worker == right.worker_id(workers[model])
    assert answer.header("x-request-id") == "of the client"
    stream = wire.Stream(wrong.port, model=model, max_tokens=20)
    events = stream.rest()
    assert events[-1] == "[DONE]" and wire.texts(events)
    assert json.loads(events[0])["model"] == model
    assert stream.head.header("x-fathom-replica") and stream.head.worker == answer.worker
    assert workers[model].stats()["requests"] == served + 2, "each is computed once"
    assert forwarded(wrong) == count + 2
    assert right.get("/debug/decisions").json()["decisions"], "the one that has the model chooses"
    direct = ask(right, model)
    assert direct.status == 200 and direct.header("x-fathom-replica") is None


def test_each_lists_the_models_that_it_serves_itself(pair):
    routers, _ = pair
    for model, router in routers.items():
        assert [card["id"] for card in router.get("/v1/models").json()["data"]] == [model]
        assert router.health()["status"] == "ok"


@pytest.mark.parametrize("path, body", [
    ("/v1/completions", {"prompt": "hello"}),
    ("/v1/completions", {"prompt": "hello", "stream": True}),
    ("/v1/responses", {"input": "hello"}),
    ("/v1/messages", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}),
])
def test_other_requests_are_forwarded_too(pair, path, body):
    routers, _ = pair
    answer = wire.ask(routers["mock-model"].port, "POST", path, {"model": "qwen", **body})
    assert answer.status == 200 and b"qwen" in answer.body, answer.text()
    assert answer.header("x-fathom-replica") == "b"


def test_a_large_prompt_arrives_whole(pair):
    routers, workers = pair
    before = workers["qwen"].stats()["requests"]
    text = "many words " * 200_000
    answer = ask(routers["mock-model"], "qwen", messages=[{"role": "user", "content": text}], max_tokens=1)
    assert answer.status == 200, answer.text()
    assert workers["qwen"].stats()["requests"] == before + 1
    assert answer.json()["usage"]["prompt_tokens"] > 200_000


def test_a_client_that_leaves_is_left_by_the_engine(pair):
    routers, workers = pair
    worker, count = workers["qwen"], forwarded(routers["mock-model"], "failed")
    streams = [wire.Stream(routers["mock-model"].port, model="qwen", max_tokens=100_000) for _ in range(3)]
    for stream in streams:
        stream.next()
    assert worker.stats()["in_flight"] == 3
    streams[0].close()
    eventually(lambda: worker.stats()["in_flight"] == 2, "the engine stops")
    streams[1].connection.reset()
    eventually(lambda: worker.stats()["in_flight"] == 1, "also if the client was killed")
    assert streams[2].next(), "the others go on"
    streams[2].close()
    eventually(lambda: worker.stats()["in_flight"] == 0, "and the last")
    for router in routers.values():
        eventually(lambda router=router: router.metric("fathom_requests_in_flight") == 0, "none is in flight")
    assert forwarded(routers["mock-model"], "failed") == count


def test_a_model_that_nobody_has_is_not_found(pair):
    routers, _ = pair
    for router in routers.values():
        answer = ask(router, "llama")
        assert (answer.status, answer.error["code"]) == (404, "model_not_found")
        assert "no other replica serves it" in answer.error["message"]


def test_an_address_that_is_another_routers_ends_with_an_error(pair):
    routers, _ = pair
    misdirected = forwarded(routers["mock-model"], "misdirected")
    for count, router in enumerate(routers.values(), 1):  # one of them asks itself
        answer = until_forwarded(router, "ghost")
        assert (answer.status, answer.error["code"]) == (503, "replica_unavailable")
        assert "replica 'c', which does not serve it" in answer.error["message"]
        assert forwarded(routers["mock-model"], "misdirected") == misdirected + count, "it is not forwarded again"


# --- byte by byte

EVENTS = [*map(token_event, ("one", " \u00fc\ud83d\ude00", " three")), token_event("", "stop"), DONE_EVENT]
WHOLE = whole_answer('{"id": "x",  "choices": [], "odd": "\\u00fc \\n", "n": 1.50}\n',
                     headers=[("x-engine-says", "so")])
REFUSED = whole_answer('{"error": {"message": "no", "type": "t", "param": null, "code": 7}}', "422 Unprocessable")


def answer_as_asked(request, connection):
    body = json.loads(request.body)
    if body.get("stream"):
        connection.sendall(STREAM_HEAD)
        for event in EVENTS:
            connection.sendall(event)
        connection.sendall(LAST_CHUNK)
    else:
        connection.sendall(REFUSED if body.get("refuse") else WHOLE)


def test_bytes_are_those_of_a_direct_answer(world):
    engine = FakeEngine(answer_as_asked, model="qwen")
    slices = Slices(world)
    try:
        wrong = slices.slice("a", models="mock-*", workers=[world.mock()])
        right = slices.slice("b", models="qwen", workers=[engine])
        until_forwarded(wrong, "qwen")
        for fields in ({}, {"stream": True, "stream_options": {"include_usage": True}}, {"refuse": 1}):
            answers = [ask(router, "qwen", {"X-Client-Says": "so", "X-Request-ID": "one"}, **fields)
                       for router in (right, wrong)]
            bodies = [answer.body for answer in answers]
            assert bodies[0] == bodies[1] and bodies[0], fields
            heads = [(answer.status, [header for header in answer.headers if header[0] != "x-fathom-replica"])
                     for answer in answers]
            assert sorted(heads[0][1]) == sorted(heads[1][1]) and heads[0][0] == heads[1][0]
            direct, through = engine.requests[-2:]
            assert direct.body == through.body
            assert sorted(direct.headers) == sorted(through.headers), "the engine cannot tell them apart"
            assert through.header("x-client-says") == "so"
    finally:
        engine.stop()


# --- keys

def test_keys_of_clients_hold_for_both(world):
    worker = world.mock(model="qwen")
    slices = Slices(world)
    wrong = slices.slice("a", "--api-key", "k", "--api-key", "only here", models="mock-*", workers=[world.mock()])
    right = slices.slice("b", "--api-key", "k", models="qwen", workers=[worker])
    key = {"Authorization": "Bearer k"}
    assert until_forwarded(wrong, "qwen", key).status == 200
    assert ask(wrong, "qwen", {"x-api-key": "k"}).status == 200
    served = worker.stats()["requests"]
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer only here"}):
        answer = ask(wrong, "qwen", headers)
        assert (answer.status, answer.error["code"]) == (401, "invalid_api_key"), headers
    # The header that replicas use opens nothing.
    assert ask(right, "qwen", {"x-fathom-forwarded": "a"}).status == 401
    assert worker.stats()["requests"] == served


# --- faults

def test_a_router_that_is_gone_is_named_and_then_forgotten(world):
    worker = world.mock(model="qwen", token_interval="20ms")
    slices = Slices(world)
    # All that the other router may take by these settings, the first one waits for.
    short = ("--first-byte-timeout", "1s", "--retry-attempts", 1, "--queue-timeout", 0, "--router-queue-timeout", 0,
             "--block-size-wait", 0)
    wrong = slices.slice("a", *short, models="mock-*", workers=[world.mock()])
    right = slices.slice("b", models="qwen", workers=[worker])
    until_forwarded(wrong, "qwen")

    # It does not answer.
    right.signal(signal.SIGSTOP)
    answer = ask(wrong, "qwen")
    right.signal(signal.SIGCONT)
    assert (answer.status, answer.error["code"]) == (504, "replica_timeout")
    assert "replica 'b', which did not answer in time" in answer.error["message"]
    eventually(lambda: ask(wrong, "qwen").status == 200, "it goes on")

    stream = wire.Stream(wrong.port, model="qwen", max_tokens=100_000)
    stream.next()
    right.kill()
    assert json.loads(stream.rest()[-1])["error"]["code"] == "replica_failed"
    answer = ask(wrong, "qwen")
    assert (answer.status, answer.error["code"]) == (503, "replica_unavailable"), answer.text()
    assert "replica 'b', which cannot be reached; try again shortly" in answer.error["message"]
    assert answer.header("retry-after") == "1"
    assert forwarded(wrong, "failed") >= 2
    wrong.wait_for_log("A request could not be forwarded to another replica.*replica=b.*did not answer in time")
    eventually(lambda: ask(wrong, "qwen").status == 404, "it is forgotten")
    assert ask(wrong, "mock-model").status == 200

    slices.slice("b", models="qwen", workers=[worker])
    assert until_forwarded(wrong, "qwen").status == 200


# --- over NATS

def test_over_nats_also_with_views_that_are_old(world):
    """Two routers that both believe of the other that it has a model, because somebody has said so, ask once each."""
    with nats_server.running(world.folder / "nats") as nats:
        client = NatsClient(nats.port)
        slices = SlicesOverNats(world, nats.url)
        workers = [world.mock(), world.mock(model="qwen")]
        a = slices.slice("a", models="mock-*", workers=workers)
        b = slices.slice("b", models="qwen", workers=workers)
        meet(a, b)
        for router, model in ((a, "qwen"), (b, "mock-model")):
            assert until_forwarded(router, model).status == 200
        counts = [forwarded(router) for router in (a, b)]
        old = [(Peer(client, KEY, name=f"old-{name}"), router.url) for name, router in (("a", a), ("b", b))]
        client.on_message = lambda sealed: [peer.heard(sealed) for peer, _ in old]
        def each_was_misdirected():
            """The model is forwarded to both, and by neither again."""
            for peer, url in old:
                peer.be_present(url, ["moved"])
            before = [forwarded(router, "misdirected") for router in (a, b)]
            answers = [ask(router, "moved") for router in (a, b)]
            after = [forwarded(router, "misdirected") for router in (a, b)]
            return [n - m for m, n in zip(before, after)] == [2, 2] and answers
        for answer in eventually(each_was_misdirected, "both believe it"):
            assert (answer.status, answer.error["code"]) == (503, "replica_unavailable"), answer.text()
            assert "does not serve it" in answer.error["message"]
        assert [forwarded(router) for router in (a, b)] == counts
        assert ask(a, "qwen").status == 200
        client.close()
