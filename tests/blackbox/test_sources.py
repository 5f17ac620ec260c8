"""Where workers come from: a watched file, several sources on one worker, and what a worker waits for until it is
admitted."""

import json
import os
import socket
import urllib.parse

import wire
from conftest import run_fathom
from wire import eventually

ADMIN = [("Authorization", "Bearer boss")]


def entries(router, headers=()):
    return {entry["url"]: entry for entry in router.get("/workers", headers).json()["workers"]}


def write(path, text):
    """As editors do: another file in its place."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def test_a_file_is_followed_and_refused_as_a_whole(mock, serve, tmp_path):
    one, two = mock(), mock()
    file = tmp_path / "workers.yaml"
    write(file, f"workers:\n  - url: {one.url}\n    role: decode\n    labels: {{zone: b}}\n")
    router = serve("--worker-urls", f"file://{file}", ready=1)
    entry = entries(router)[one.url]
    assert entry["source"] == f"file://{file}" and entry["sources"] == [f"file://{file}"]
    assert entry["role"] == "decode" and entry["labels"] == {"zone": "b"}
    assert router.health()["sources"][0] | {"since": ""} == {
        "source": f"file://{file}", "status": "ok", "since": "", "error": None, "workers": 1, "not_added": 0, "taken_out": [],
        "unknown": None}
    # Without the admin listener the metrics do not name it.
    assert router.metric("fathom_source_up", source="file-1") == 1
    assert router.metric("fathom_source_workers", source="file-1") == 1

    write(file, f"- {two.url}\n- url: http://127.0.0.1:1\n  kv_event: tcp://x:1\n")
    eventually(lambda: router.health()["sources_stale"] == 1, "the file is refused")
    health = router.health()
    assert health["status"] == "degraded"
    assert health["sources"][0]["status"] == "stale"
    assert f"{file}:3: kv_event: no such key" in health["sources"][0]["error"]
    assert router.metric("fathom_source_up") == 0
    assert set(entries(router)) == {one.url}
    assert router.log_text().count("What a source of workers says was refused") == 1
    assert router.chat().status == 200

    write(file, f"- {two.url}\n- {one.url}\n")
    eventually(lambda: router.health()["workers_ready"] == 2, "both workers are ready")
    assert router.health()["status"] == "ok"
    assert "A source of workers works again" in router.log_text()


def test_the_same_worker_by_two_sources_is_one(mock, serve, tmp_path):
    engine = mock()
    file = tmp_path / "workers.yaml"
    write(file, f"- url: {engine.url}\n  role: prefill\n  labels: {{zone: b, tier: gpu}}\n")
    config = tmp_path / "c.yaml"
    config.write_text(f"workers:\n  - url: {engine.url}\n    labels: {{zone: a}}\n  - file://{file}\n")
    router = serve("--config", config, ready=1)
    eventually(lambda: router.health()["sources_stale"] == 0, "the file is read")
    entry = entries(router)[engine.url]
    assert entry["sources"] == [f"{config}:2", f"file://{file}"]
    assert entry["role"] == "prefill" and entry["labels"] == {"zone": "a", "tier": "gpu"}
    served = entry["requests"] + 1
    assert router.chat().status == 200
    write(file, "workers: []\n")
    eventually(lambda: entries(router)[engine.url]["sources"] == [f"{config}:2"], "one source is left")
    # The same worker all the while: its counters and its index were kept.
    assert entries(router)[engine.url]["requests"] == served
    assert entries(router)[engine.url]["role"] is None


def test_a_key_of_a_file_is_one_that_is_listed(mock, serve, tmp_path):
    engine = mock()
    file = tmp_path / "workers.yaml"
    write(file, f"- url: {engine.url}\n  api_key_env: HOME\n")
    router = serve("--worker-urls", f"file://{file}")
    eventually(lambda: "--worker-key-env does not list" in (router.health()["sources"][0]["error"] or ""),
               "the variable is refused")
    assert entries(router) == {}


def test_a_worker_is_ready_once_it_is_admitted(mock, serve):
    engine = mock()
    ill = f"http://127.0.0.1:{wire.free_port()}"
    router = serve("--admin-key", "boss", "--worker-urls", ill, workers=[engine])

    def ready(worker):
        return router.get("/ready?worker=" + urllib.parse.quote(worker, safe=""))

    eventually(lambda: ready(engine.url).status == 200, "it is admitted")
    assert ready(engine.url).text() == '{"status":"ready"}'
    assert ready(f"127.0.0.1:{engine.port}").status == 200
    assert ready(f"{engine.url}/").status == 200
    no = ready("http://127.0.0.1:1")
    assert no.status == 503 and no.text() == '{"status":"not ready"}'
    assert ready(ill).text() == no.text()  # as if it were unknown
    assert ready("no url at all").status == 400
    for query in ("worker=", "worker", "Worker=127.0.0.1:1", "workers=127.0.0.1:1", "url=127.0.0.1:1", "%77orkers=a:1"):
        assert router.get(f"/ready?{query}").status == 400, query  # never the router's own 200
    assert router.get("/ready?%77orker=127.0.0.1:1").status == 503
    assert router.get("/ready?probe=7").status == 200
    done = run_fathom("ready", router.url, "--worker", "")
    assert done.returncode == 78 and "--worker" in done.stderr
    assert ready("http://" + "a" * 5000).status == 400
    assert router.get("/ready").json() == {"status": "ready"}
    before = router.metric("fathom_requests_total", route="own", code="503")
    assert ready(ill).status == 503
    assert router.metric("fathom_requests_total", route="own", code="503") == before, "an alert would take that for us"
    assert router.metric("fathom_requests_total", route="worker_ready", code="503") > 0
    asked = run_fathom("ready", router.url, "--worker", engine.url)
    assert (asked.returncode, asked.stdout) == (0, f"{engine.url}: ready\n")
    asked = run_fathom("ready", router.url, "--worker", ill)
    assert (asked.returncode, asked.stdout) == (1, "") and "not ready" in asked.stderr

    workers = entries(router, ADMIN)
    assert router.get(f"/workers/{workers[engine.url]['id']}/ready").status == 401
    assert router.get(f"/workers/{workers[engine.url]['id']}/ready", ADMIN).status == 200
    assert workers[engine.url]["waits_for"] is None
    assert router.get(f"/workers/{workers[ill]['id']}/ready", ADMIN).status == 503
    eventually(lambda: router.get(f"/workers/{workers[ill]['id']}/ready", ADMIN).json()["state"] == "unhealthy",
               "its state is said")
    assert router.get("/workers/17/ready", ADMIN).status == 404
    assert wire.ask(router.port, "POST", "/workers/17/ready", b"{}",
                    [*ADMIN, ("Content-Type", "application/json")]).status == 405


def test_an_event_endpoint_as_the_engine_has_it_is_on_the_workers_host(mock, serve, tmp_path):
    port = wire.free_port()
    engine = mock(kv_events_port=port)
    page = tmp_path / "workers.yaml"
    page.write_text(f"- {{url: {engine.url}, kv_events: 'tcp://*:{port}'}}")
    router = serve("--worker-urls", f"file://{page}", ready=1)
    router.wait_for_log(rf"Following KV events .*endpoint=tcp://127\.0\.0\.1:{port} ")


def test_a_worker_that_was_taken_out_comes_back_as_its_source_has_it(mock, serve, tmp_path):
    engine, other = mock(), mock()
    page = tmp_path / "workers.yaml"
    page.write_text(f"workers: [{{url: {engine.url}, labels: {{zone: a}}}}, {other.url}]")
    router = serve("--worker-urls", f"file://{page}", ready=2)
    number = entries(router)[engine.url]["id"]
    assert wire.ask(router.port, "DELETE", f"/workers/{number}").status == 204
    [source] = router.health()["sources"]
    assert (source["workers"], source["taken_out"]) == (1, [number])
    body = json.dumps({"url": engine.url}).encode()
    assert wire.ask(router.port, "POST", "/workers", body, [("Content-Type", "application/json")]).status == 201
    assert entries(router)[engine.url]["labels"] == {"zone": "a"}
    page.write_text(f"workers: [{other.url}]")
    eventually(lambda: engine.url not in entries(router), "it leaves with its source")


def test_without_the_key_sources_are_a_number(mock, serve, tmp_path):
    router = serve("--admin-key", "boss", "--worker-urls", f"file://{tmp_path}/none.yaml", workers=[mock()])
    eventually(lambda: "cannot be read" in (router.get("/health", ADMIN).json()["sources"][0]["error"] or ""),
               "the file is away")
    health = router.health()
    assert "sources" not in health and health["sources_stale"] == 1 and health["status"] == "degraded"
    assert str(tmp_path) not in router.get("/metrics").text()
    assert router.chat().status == 200


def test_a_silent_engine_waits_for_its_interview(serve):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        router = serve("--worker-urls", url, "--health-check-timeout", "1m")
        entry = entries(router)[url]
        assert entry["state"] == "probing" and entry["waits_for"] == "interview"
        assert router.metric("fathom_workers_waiting", **{"for": "interview"}) == 1
        answer = router.get(f"/workers/{entry['id']}/ready")
        assert answer.status == 503 and answer.json()["waits_for"] == "interview"
        assert router.get(f"/ready?worker={url}").status == 503


def test_wrong_forms_are_refused_at_the_start():
    for url, why in (("file://a.yaml", "file:///PATH"), ("k8s-pod://a/b=c:1", "did you mean k8s-pods://?"),
                     ("http://a:1,b:1", "begin each worker")):
        done = run_fathom("serve", "--port", "0", "--worker-urls", url)
        assert done.returncode != 0 and why in done.stderr, (url, done.stderr)
