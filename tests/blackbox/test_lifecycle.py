"""Coming and going: of the router, and of its workers."""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from fake_engine import FakeEngine
from wire import eventually

# --- the router goes


def test_sigterm_finishes_streams_and_refuses_new_work(mock, serve):
    router = serve(workers=[mock(token_interval="20ms")])
    idle = wire.Connection(router.port)
    idle.request("GET", "/live")
    assert idle.read_answer().status == 200
    streams = [wire.Stream(router.port, max_tokens=60) for _ in range(5)]
    seen = [[stream.next()] for stream in streams]
    router.signal(signal.SIGTERM)
    eventually(lambda: router.get("/ready").status == 503, "it drains")
    refused = router.chat()
    assert refused.status == 503
    assert refused.error["code"] == "draining"
    assert refused.header("connection") == "close"
    assert router.get("/live").status == 200
    assert idle.ended()
    for stream, events in zip(streams, seen):
        events += stream.rest()
        assert len(wire.texts(events).split()) == 60
        assert events[-1] == "[DONE]"
    assert router.wait() == 0
    assert "Stopped" in router.log_text()


def test_sigint_is_as_good_and_an_idle_router_ends_at_once(mock, serve):
    router = serve("--drain-timeout", "1h", workers=[mock()])
    assert router.chat().status == 200
    router.signal(signal.SIGINT)
    assert router.wait() == 0


def test_a_second_sigterm_ends_it_at_once(mock, serve):
    router = serve("--drain-timeout", "1h", workers=[mock(token_interval="20ms")])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    router.signal(signal.SIGTERM)
    router.wait_for_log("Draining")
    assert stream.next()
    router.signal(signal.SIGTERM)
    assert router.wait() == 0
    with pytest.raises(wire.Truncated):
        stream.rest()


def test_a_drain_does_not_last_for_ever(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve("--drain-timeout", "500ms", workers=[worker])
    stream = wire.Stream(router.port, max_tokens=100_000)
    stream.next()
    router.signal(signal.SIGTERM)
    assert router.wait() == 0
    eventually(lambda: worker.stats()["cancelled"] == 1, "the worker is let go")


def test_a_request_that_waits_is_still_served(mock, serve):
    router = serve("--max-in-flight", 1, workers=[mock(token_interval="20ms")])
    stream = wire.Stream(router.port, max_tokens=30)
    stream.next()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(router.chat, max_tokens=1)
        eventually(lambda: router.health()["requests_waiting"] == 1, "it waits")
        router.signal(signal.SIGTERM)
        router.wait_for_log("Draining")
        assert stream.rest()[-1] == "[DONE]"
        assert waiting.result().status == 200
    assert router.wait() == 0


def test_a_request_whose_body_is_on_its_way_is_still_served(mock, serve):
    """It came before the signal, so it is not new work."""
    router = serve(workers=[mock()])
    body = b'{"model":"mock-model","prompt":"a","max_tokens":2}'
    with wire.Connection(router.port) as connection:
        connection.send(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert connection.read_head().status == 100
        connection.send(body[:20])
        router.signal(signal.SIGTERM)
        router.wait_for_log("Draining")
        connection.send(body[20:])
        assert connection.read_answer().status == 200
    assert router.wait() == 0


def test_a_crowd_of_connections_does_not_hold_the_router(mock, serve):
    router = serve("--drain-timeout", "1h", workers=[mock()])
    held = [wire.Connection(router.port) for _ in range(50)]
    for connection in held[:25]:
        connection.send(b"GET /live HTTP/1.1\r\n")  # and never the rest of it
    assert router.chat().status == 200
    router.signal(signal.SIGTERM)
    assert router.wait() == 0


# --- workers come and go


def clients(router, count, stop, **fields):
    """Clients that ask on and on; the future of each is what it got that was no whole answer."""
    def ask_on():
        bad = []
        while not stop.is_set():
            answer = router.chat(stream=True, **fields)
            if answer.status != 200 or not answer.body.endswith(b"data: [DONE]\n\n"):
                bad.append(answer)
        return bad
    pool = ThreadPoolExecutor(count)
    return [pool.submit(ask_on) for _ in range(count)]


def test_workers_come_and_go_under_load_without_a_failed_request(mock, serve):
    stable, guest = mock(), mock()
    router = serve(workers=[stable])
    stop = threading.Event()
    running = clients(router, 6, stop, max_tokens=5)
    for _ in range(5):
        added = wire.ask(router.port, "POST", "/workers", {"url": guest.url})
        assert added.status == 201
        assert added.json()["url"] == guest.url
        before = guest.stats()["completed"]
        eventually(lambda: guest.stats()["completed"] > before + 5, "the guest serves")
        removed = wire.ask(router.port, "DELETE", f"/workers/{added.json()['id']}")
        assert removed.status == 204
        eventually(lambda: guest.stats()["in_flight"] == 0, "the guest is idle")
    stop.set()
    assert [bad for future in running for bad in future.result()] == []
    assert guest.stats()["cancelled"] == 0


def test_a_worker_that_is_removed_finishes_its_streams(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve(workers=[worker])
    stream = wire.Stream(router.port, max_tokens=40)
    stream.next()
    assert wire.ask(router.port, "DELETE", f"/workers/{router.worker_id(worker)}").status == 204
    assert router.get("/workers").json() == {"workers": []}
    assert router.chat().status == 503
    assert stream.rest()[-1] == "[DONE]"
    eventually(lambda: worker.stats()["completed"] == 1, "the worker is done")


def test_a_worker_has_the_same_id_for_the_same_url(mock, serve):
    worker = mock()
    first, second = serve(workers=[worker]), serve(workers=[worker])
    assert first.worker_id(worker) == second.worker_id(worker)
    assert 0 < int(first.worker_id(worker)) < 2**53  # exact in every JSON reader


def test_a_worker_can_be_added_as_a_plain_url(mock, serve):
    worker = mock()
    router = serve()
    answer = wire.ask(router.port, "POST", "/workers", f'"{worker.url}/"')
    assert answer.status == 201
    eventually(lambda: router.get("/ready").status == 200, "it is ready")
    assert router.chat().worker == str(answer.json()["id"])


@pytest.mark.parametrize("body, words", [
    (b"", ""), (b"{", ""), (b"[]", "url"), (b"17", "url"), (b"{}", "'url' is missing"),
    (b'{"url":7}', "'url' must be a string"),
    (b'{"url":"nonsense"}', "nonsense"), (b'{"url":"ftp://x"}', "ftp"), (b'{"url":""}', ""),
    (b'{"url":"http://"}', ""), (b'{"url":"http://a:99999"}', ""),
    (b'{"ulr":"http://127.0.0.1:1"}', "did you mean 'url'"),
    (b'{"url":"http://127.0.0.1:1","api_key_env":"NOT_SET_AT_ALL"}', "NOT_SET_AT_ALL"),
    (b'{"url":"https://127.0.0.1:1","ca_file":"/no/such/file"}', "/no/such/file"),
    (b'{"url":"http://127.0.0.1:1","ca_file":"/etc/hostname"}', "ca_file"),
    (b'{"url":"http://127.0.0.1:1\\r\\nX: y"}', ""),
])
def test_a_worker_that_makes_no_sense_is_refused(shared_world, body, words):
    if not shared_world.processes:
        shared_world.serve()
    router = shared_world.processes[0]
    answer = wire.ask(router.port, "POST", "/workers", body)
    assert answer.status == 400
    assert words in answer.error["message"]
    assert router.get("/workers").json() == {"workers": []}


def test_a_worker_cannot_be_added_twice(mock, serve):
    worker = mock()
    router = serve(workers=[worker])
    answer = wire.ask(router.port, "POST", "/workers", {"url": worker.url + "/"})
    assert (answer.status, answer.error["code"]) == (409, "worker_exists")
    assert len(router.get("/workers").json()["workers"]) == 1


@pytest.mark.parametrize("name", ["12345", "ada", "", "-1", "99999999999999999999999", "1/2"])
def test_a_worker_that_is_not_there_cannot_be_removed(serve, name):
    answer = wire.ask(serve().port, "DELETE", f"/workers/{name}")
    assert answer.status == 404
    assert answer.error["code"] == "no_such_worker"


def test_workers_are_listed_with_what_is_known_of_them(mock, serve):
    worker = mock(model="b,a")
    router = serve(workers=[worker, "http://127.0.0.1:1"], ready=1)
    router.wait_for_log("not healthy")
    for page in ("/workers", "/health"):
        well, ill = router.get(page).json()["workers"]
        assert (well["url"], well["state"], well["models"]) == (worker.url, "ready", ["a", "b"])
        assert (ill["url"], ill["state"]) == ("http://127.0.0.1:1", "unhealthy")
        assert "refused" in ill["cause"]
    assert router.health()["status"] == "degraded"


# --- health


def test_a_worker_that_fails_its_checks_is_taken_out_and_comes_back(mock, serve):
    """The listener stays: only the answer to the check changes."""
    sick = threading.Event()

    class Moody(FakeEngine):
        def _page(self, target):
            page = super()._page(target)
            return page.replace(b"200 OK", b"503 Sick") if sick.is_set() else page

    moody = Moody(lambda _, connection: None)
    try:
        router = serve(workers=[moody, mock()])
        sick.set()
        eventually(lambda: router.health()["workers_ready"] == 1, "it is taken out")
        assert {router.chat().status for _ in range(4)} == {200}
        assert moody.requests == []
        assert "503" in router.get("/workers").json()["workers"][0]["cause"]
        sick.clear()
        eventually(lambda: router.health()["workers_ready"] == 2, "it is back")
    finally:
        moody.stop()


def test_a_worker_whose_models_change_is_noticed(engine, serve):
    fake = engine(lambda _, connection: None, model="before")
    router = serve(workers=[fake])
    fake.model = "after"
    eventually(lambda: router.get("/v1/models").json()["data"][0]["id"] == "after", "it is noticed")


def test_a_stopped_worker_is_taken_out(mock, serve):
    """Its listener still accepts, but nobody is at home."""
    frozen, good = mock(), mock()
    router = serve("--health-check-timeout", "200ms", "--first-byte-timeout", "5s",
                   workers=[frozen, good])
    frozen.signal(signal.SIGSTOP)
    try:
        eventually(lambda: router.health()["workers_ready"] == 1, "it is taken out")
        assert {router.chat().worker for _ in range(4)} == {router.worker_id(good)}
    finally:
        frozen.signal(signal.SIGCONT)
    eventually(lambda: router.health()["workers_ready"] == 2, "it is back")


# --- admin pages


def test_admin_pages_can_have_an_address_of_their_own(mock, serve):
    worker = mock()
    router = serve("--admin-listen", "127.0.0.1:0", workers=[worker])
    admin = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    assert router.get("/workers").status == 404
    assert wire.ask(router.port, "POST", "/workers", {"url": "http://127.0.0.1:1"}).status == 404
    assert wire.ask(router.port, "DELETE", "/workers/1").status == 404
    health = router.get("/health")
    assert health.json()["workers_ready"] == 1
    assert worker.url not in health.text()
    assert wire.get(admin, "/workers").json()["workers"][0]["url"] == worker.url
    assert wire.get(admin, "/health").json()["workers"][0]["url"] == worker.url
    added = wire.ask(admin, "POST", "/workers", {"url": "http://127.0.0.1:1"})
    assert added.status == 201
    assert wire.ask(admin, "DELETE", f"/workers/{added.json()['id']}").status == 204
    assert wire.chat(admin).status in (404, 405)  # and it serves nobody else
    assert router.chat().status == 200


@pytest.mark.parametrize("elsewhere", [False, True], ids=["main port", "own port"])
def test_admin_pages_ask_for_their_key(mock, serve, elsewhere):
    worker = mock()
    flags = ["--admin-listen", "127.0.0.1:0"] if elsewhere else []
    router = serve("--admin-key", "boss", *flags, workers=[worker])
    port = router.port
    if elsewhere:
        port = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "boss"},
                    {"Authorization": "Bearer boss2"}, {"Authorization": "Bearer "}):
        for method, path in (("GET", "/workers"), ("POST", "/workers"), ("DELETE", "/workers/1")):
            answer = wire.ask(port, method, path, "{}", headers)
            assert answer.status == 401, (method, path, headers)
            assert answer.error["code"] == "invalid_admin_key"
        assert worker.url not in wire.get(port, "/health", headers).text()
    boss = {"Authorization": "Bearer boss"}
    assert wire.get(port, "/workers", boss).json()["workers"][0]["url"] == worker.url
    assert worker.url in wire.get(port, "/health", boss).text()
    assert router.chat().status == 200  # requests need no admin key


def test_pages_answer_without_workers(serve):
    router = serve()
    assert router.get("/live").status == 200
    assert router.get("/ready").status == 503
    assert (router.get("/health").status, router.health()["status"]) == (503, "down")
    assert router.get("/v1/models").json() == {"object": "list", "data": []}
