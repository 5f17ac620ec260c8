"""Who gets in: admin routes are for operators, and not for pages in their browsers."""

import json
import os
import signal

import pytest

import wire
from conftest import run_fathom
from fake_engine import whole_answer
from wire import eventually

EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve()


def add(port, headers=(), **entry):
    entry = {"url": "http://127.0.0.1:1", **entry}
    return wire.ask(port, "POST", "/workers", entry, headers)


def workers(router):
    return [entry["url"] for entry in router.get("/workers").json()["workers"]]


# --- what a page in an operator's browser can send


@pytest.mark.parametrize("kind", ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded",
                                  "multipart/form-data; boundary=x", "text/json", ""])
@pytest.mark.parametrize("path", ["/workers", "/debug/lookup", "/debug/explain"])
def test_admin_routes_want_json(router, path, kind):
    answer = wire.ask(router.port, "POST", path, {"url": "http://127.0.0.1:1"}, {"Content-Type": kind})
    assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")
    assert "application/json" in answer.error["message"]
    assert workers(router) == []


@pytest.mark.parametrize("origin", [EVIL, "null", "http://localhost:1", "https://localhost.evil.example", ""])
@pytest.mark.parametrize("method, path", [("POST", "/workers"), ("DELETE", "/workers/1"), ("GET", "/workers"),
                                          ("GET", "/debug/decisions"), ("POST", "/debug/explain")])
def test_admin_routes_refuse_pages_of_other_origins(router, method, path, origin):
    answer = wire.ask(router.port, method, path, "{}", {"Origin": origin})
    assert (answer.status, answer.error["code"]) == (403, "foreign_origin")
    assert workers(router) == []


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "localhost.evil.example", "a.localhost",
                                  "10.0.0.1"])
def test_a_name_that_was_rebound_to_loopback_is_refused(router, host):
    for method, path in (("POST", "/workers"), ("GET", "/workers"), ("GET", "/debug/index")):
        answer = wire.ask(router.port, method, path, "{}", {"Host": host})
        assert (answer.status, answer.error["code"]) == (403, "foreign_host")
    # An absolute target beats Host.
    assert wire.get(router.port, f"http://{host}/workers").status == 403
    for path in ("/live", "/metrics", "/v1/models"):
        assert wire.get(router.port, path, {"Host": host}).status == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1234", "[::1]:8000"])
def test_names_of_this_machine_are_accepted(router, host):
    assert wire.get(router.port, "/workers", {"Host": host, "Origin": f"http://{host}"}).status == 200


def test_health_and_metrics_tell_a_foreign_page_nothing_of_the_fleet(mock, serve):
    worker = mock()
    router = serve("--admin-listen", "127.0.0.1:0", workers=[worker])
    admin = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    for page in ("/health", "/metrics"):
        assert worker.url in wire.get(admin, page).text()
        for headers in ({"Host": "evil.example"}, {"Origin": EVIL}):
            answer = wire.get(admin, page, headers)
            assert answer.status == 200 and worker.url not in answer.text()


# --- what an entry may name


def test_no_secret_of_the_router_is_sent_to_a_worker_from_outside(engine, serve):
    thief = engine(lambda _, connection: None)
    router = serve("--worker-key-env", "GPU_KEY", env={"AWS_SECRET_ACCESS_KEY": "s3cret", "GPU_KEY": "for-engines"})
    for name in ("AWS_SECRET_ACCESS_KEY", "PATH", "NOT_SET_AT_ALL", "gpu_key"):
        answer = add(router.port, url=thief.url, api_key_env=name)
        assert answer.status == 400
        assert name in answer.error["message"] and "--worker-key-env" in answer.error["message"]
    assert workers(router) == []
    assert add(router.port, url=thief.url, api_key_env="GPU_KEY").status == 201
    eventually(lambda: router.get("/ready").status == 200, "the engine is ready")
    assert "s3cret" not in router.log_text()


def test_the_operators_own_file_may_name_any_variable(mock, serve, tmp_path):
    worker = mock(api_key="s3cret")
    config = tmp_path / "fathom.yaml"
    config.write_text(json.dumps({"workers": [{"url": worker.url, "api_key_env": "ENGINE_KEY"}]}))
    router = serve("--config", config, env={"ENGINE_KEY": "s3cret"}, ready=1)
    assert router.chat().status == 200
    # The name of the variable is no way around the list.
    gone = router.worker_id(worker)
    assert wire.ask(router.port, "DELETE", f"/workers/{gone}").status == 204
    assert add(router.port, url=worker.url, api_key_env="ENGINE_KEY").status == 400


@pytest.mark.parametrize("key", ["kv_events", "kv_events_replay"])
@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "inproc://x", "udp://127.0.0.1:1", "http://127.0.0.1:1",
                                      "tcp://127.0.0.1", "tcp://127.0.0.1:1;127.0.0.1:2", ""])
def test_events_come_from_tcp_and_ipc_alone(router, key, endpoint):
    answer = add(router.port, **{key: endpoint})
    assert answer.status == 400
    assert key in answer.error["message"] and "tcp://HOST:PORT" in answer.error["message"]
    assert workers(router) == []


# --- keys of clients, and keys of operators


def test_keys_of_clients_do_not_open_the_admin_routes(mock, serve):
    worker = mock()
    router = serve("--api-key", "client", workers=[worker])
    client = {"Authorization": "Bearer client"}
    assert router.chat(client).status == 200
    for headers in ({}, client):
        for method, path in (("GET", "/workers"), ("POST", "/workers"), ("DELETE", "/workers/1"),
                             ("GET", "/debug/decisions"), ("POST", "/debug/explain")):
            answer = wire.ask(router.port, method, path, "{}", headers)
            assert (answer.status, answer.error["code"]) == (403, "admin_closed"), (method, path)
        health = router.get("/health", headers)
        assert health.json()["workers_ready"] == 1 and worker.url not in health.text()


@pytest.mark.parametrize("flags", [["--admin-key", "boss"], ["--host", "0.0.0.0", "--admin-key", "boss"],
                                   ["--host", "0.0.0.0", "--admin-listen", "127.0.0.1:0"]], ids=" ".join)
def test_only_operators_see_the_other_routers_of_the_group(mock, serve, flags):
    mesh = wire.free_port()
    router = serve("--replicas", f"zmq://127.0.0.1:{mesh}", "--replica-listen", f"127.0.0.1:{mesh}", "--replica-open",
                   "--replica-id", "router-7", *flags, workers=[mock()])
    for headers in ({}, {"Authorization": "Bearer another"}):
        health = router.get("/health", headers)
        assert health.json()["workers_ready"] == 1
        assert not health.json().keys() & {"replicas", "replica_carrier"} and "router-7" not in health.text()
    admin = router.port
    if "--admin-listen" in flags:
        admin = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    health = wire.get(admin, "/health", {"Authorization": "Bearer boss"}).json()
    assert health["replicas"][0]["id"] == "router-7" and health["replica_carrier"]["kind"] == "zmq"


@pytest.mark.parametrize("flags", [["--admin-key", "boss"], ["--open-admin"], ["--admin-listen", "127.0.0.1:0"]],
                         ids=" ".join)
def test_what_opens_the_admin_routes_beside_keys_of_clients(mock, serve, flags):
    worker = mock()
    router = serve("--api-key", "client", *flags, workers=[worker])
    port = router.port
    if "--admin-listen" in flags:
        port = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    boss = {"Authorization": "Bearer boss"}
    assert wire.get(port, "/workers", boss).json()["workers"][0]["url"] == worker.url
    assert worker.url in wire.get(port, "/health", boss).text()
    if "--admin-key" in flags:
        assert wire.get(port, "/workers", {"Authorization": "Bearer client"}).status == 401


def test_admin_keys_come_from_a_file_too(serve, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# two, while they are changed\nold-boss\nnew-boss\n")
    router = serve("--admin-key-file", keys, "--admin-key", "flag-boss")
    for key in ("old-boss", "new-boss", "flag-boss"):
        assert router.get("/workers", {"Authorization": f"Bearer {key}"}).status == 200
    assert router.get("/workers", {"Authorization": "Bearer # two"}).status == 401
    assert "boss" not in router.log_text()


# --- what is passed to workers


@pytest.fixture
def recorder(engine):
    """An engine that keeps what reaches it."""
    return engine(lambda _, connection: connection.sendall(whole_answer('{"ok":1}')))


DOTS = ["/v1/../../tenant-b/v1/chat/completions", "/v1/./chat/completions", "/v1/%2e%2e/%2E%2E/x/chat/completions",
        "/v1/audio/..", "/v1/audio/../load_lora_adapter", "/v1/audio/%2e%2e/load_lora_adapter",
        "/v1/audio/..%2fload_lora_adapter", "/v1/audio/..%5Cx", "/v1/audio/..;/x", "/v1/audio/%252e%252e/x",
        "/v1/audio/x//y", "/v1/images/a%2fb", "/v1/images/a%00", "/v1/responses/%2e%2e/cancel",
        "http://localhost/v1/../v1/chat/completions"]


@pytest.mark.parametrize("target", DOTS)
def test_a_path_that_servers_read_in_different_ways_is_refused(recorder, serve, target):
    router = serve(workers=[recorder])
    with wire.Connection(router.port) as connection:
        connection.request("POST", target, wire.chat_body())
        answer = connection.read_answer()
        assert (answer.status, answer.error["code"]) == (400, "bad_request")
        assert connection.ended()
    assert recorder.requests == []


@pytest.mark.parametrize("target, path", [
    ("http://x?y=/v1/chat/completions", None), ("http://x/?y=/v1/chat/completions", None),
    ("HTTP://x/v1/chat/completions?a=b", "/v1/chat/completions?a=b"),
    ("https://x:1/v1/chat/completions", "/v1/chat/completions"),
    ("/?y=/v1/chat/completions", None), ("/v1/chat/completions?/../x", "/v1/chat/completions?/../x"),
])
def test_an_absolute_target_takes_its_path_from_the_path(recorder, serve, target, path):
    router = serve(workers=[recorder])
    answer = wire.ask(router.port, "POST", target, wire.chat_body())
    assert answer.status == (404 if path is None else 200)
    assert [request.target for request in recorder.requests] == ([path] if path else [])


PASSED = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/responses/r1/cancel",
          "/v1/messages", "/v1/messages/count_tokens", "/v1/rerank", "/rerank", "/v1/score", "/score", "/classify",
          "/pooling", "/v1/audio/speech", "/v1/images/generations", "/tokenize", "/detokenize", "/generate",
          "/inference/v1/generate"]
NOT_PASSED = ["/v1/load_lora_adapter", "/v1/audio//x", "/v1/unload_lora_adapter", "/v1/other", "/flush_cache", "/sleep", "/wake_up",
              "/update_weights_from_disk", "/v1/chat/completions/render", "/v1/files", "/server_info", "/abort_request"]


def test_inference_is_passed_and_nothing_else(engine, serve):
    def answer(_, connection):
        connection.sendall(whole_answer('{"ok":1}'))
    answer.tokenize = True  # these requests too are kept
    recorder = engine(answer)
    router = serve("--router-mode", "round-robin", workers=[recorder])
    for path in PASSED:
        assert wire.ask(router.port, "POST", path, {"model": "mock-model", "input": "x"}).status == 200, path
    assert [request.target for request in recorder.requests] == PASSED
    for path in NOT_PASSED:
        for method in ("POST", "GET", "PUT", "DELETE"):
            answer = wire.ask(router.port, method, path, {"model": "mock-model"} if method == "POST" else None)
            assert (answer.status, answer.error["code"]) == (404, "not_found"), (method, path)
    answer = wire.ask(router.port, "POST", "/v1/load_lora_adapter", {})
    assert "--pass-routes" in answer.error["message"]
    assert len(recorder.requests) == len(PASSED)


def test_stored_responses_can_be_read_cancelled_and_deleted(recorder, serve):
    router = serve(workers=[recorder])
    # The fake engine answers every GET, and keeps the others.
    assert wire.get(router.port, "/v1/responses/resp_1?stream=false").json() == {}
    assert wire.ask(router.port, "POST", "/v1/responses/resp_1/cancel").status == 200
    assert wire.ask(router.port, "DELETE", "/v1/responses/resp_1").status == 200
    kept = [(request.method, request.target, request.body) for request in recorder.requests]
    assert kept == [("POST", "/v1/responses/resp_1/cancel", b""), ("DELETE", "/v1/responses/resp_1", b"")]
    assert wire.ask(router.port, "PUT", "/v1/responses/resp_1").header("allow") == "GET, DELETE"


def test_the_operator_adds_routes(recorder, serve):
    router = serve("--pass-routes", "/v1/load_lora_adapter,/v1/files/*", workers=[recorder])
    assert wire.ask(router.port, "POST", "/v1/load_lora_adapter", {"lora_name": "x"}).status == 200
    assert wire.ask(router.port, "POST", "/v1/files/f1/content").status == 200
    assert wire.ask(router.port, "POST", "/v1/unload_lora_adapter", {}).status == 404
    assert wire.ask(router.port, "POST", "/v1/files/../x", {}).status == 400
    assert [r.target for r in recorder.requests] == ["/v1/load_lora_adapter", "/v1/files/f1/content"]
    for wrong in ("v1/files", "/v1/../x", "/metrics", "/workers/*"):
        done = run_fathom("serve", "--port", 0, "--pass-routes", wrong)
        assert done.returncode == 78 and "pass-routes" in done.stderr and wrong in done.stderr


def test_routes_that_are_passed_need_the_key_of_a_client(recorder, serve):
    router = serve("--api-key", "client", "--pass-routes", "/v1/files", workers=[recorder])
    for method, path in (("GET", "/v1/responses/r"), ("POST", "/tokenize"), ("GET", "/v1/files")):
        assert wire.ask(router.port, method, path).status == 401
    assert recorder.requests == []


# --- fields that steer transfers between engines


STEERING = [("kv_transfer_params", {"do_remote_prefill": True, "remote_host": "10.0.0.1"}),
            ("kv_transfer_params", {}), ("kv_transfer_params", "x"), ("bootstrap_host", "10.0.0.1"),
            ("bootstrap_port", 8998), ("bootstrap_port", None), ("bootstrap_room", [1, 2]),
            ("disaggregated_params", {"request_type": "generation_only"})]


@pytest.mark.parametrize("name, value", STEERING, ids=str)
def test_clients_cannot_steer_transfers(recorder, serve, name, value):
    router = serve(workers=[recorder])
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/generate", "/inference/v1/generate"):
        answer = wire.ask(router.port, "POST", path, {**wire.chat_body(prompt="x"), name: value})
        assert (answer.status, answer.error["code"]) == (400, "transfer_field_refused"), path
        assert answer.error["param"] == name and "--allow-transfer-fields" in answer.error["message"]
    messages = wire.ask(router.port, "POST", "/v1/messages", {**wire.chat_body(), name: value})
    assert (messages.status, messages.json()["error"]["type"]) == (400, "invalid_request_error")
    assert f"'{name}'" in messages.json()["error"]["message"]
    hidden = json.dumps({**wire.chat_body(), "zzz": 1}).replace('"zzz": 1', '"kv_transf\\u0065r_params": {"a": 1}')
    assert wire.ask(router.port, "POST", "/v1/chat/completions", hidden).status == 400
    for nest in ({"vllm_xargs": {name: value}}, {"sampling_params": {"extra_args": {name: value}}}):
        assert wire.ask(router.port, "POST", "/inference/v1/generate", {"token_ids": [1], **nest}).status == 400
    # A body of another type is no way around.
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert router.chat(form, **{name: value}).status == 400
    assert router.chat({"x-request-id": "cmpl-___prefill_addr_10.0.0.1:1___decode_addr_10.0.0.2:2_x"}).status == 400
    assert recorder.requests == []
    assert router.chat(kv_transfer_params=None).status == 200


def test_the_operator_lets_clients_steer_transfers(recorder, serve):
    router = serve("--allow-transfer-fields", workers=[recorder])
    for name, value in STEERING:
        assert router.chat(**{name: value}).status == 200
        assert json.loads(recorder.requests[-1].body)[name] == value


# --- keys that change


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("how", ["in place", "another file", "signal"])
def test_keys_are_read_again_when_their_files_change(mock, serve, tmp_path, how):
    clients, operators = tmp_path / "clients", tmp_path / "operators"

    def write(path, text):
        if how == "another file":
            (tmp_path / "new").write_text(text)
            os.replace(tmp_path / "new", path)
        else:
            path.write_text(text)
        if how == "signal":
            router.signal(signal.SIGHUP)

    clients.write_text("old-client\n")
    operators.write_text("old-boss\n")
    router = serve("--api-keys-file", clients, "--admin-key-file", operators, "--api-key", "flag-client",
                   workers=[mock()])
    assert router.chat(bearer("new-client")).status == 401
    write(clients, "new-client\n")
    eventually(lambda: router.chat(bearer("new-client")).status == 200, "the new key is accepted")
    assert router.chat(bearer("old-client")).status == 401, "and the old one is not"
    assert router.chat(bearer("flag-client")).status == 200
    write(operators, "new-boss\n")
    eventually(lambda: router.get("/workers", bearer("new-boss")).status == 200, "the new key is accepted")
    assert router.get("/workers", bearer("old-boss")).status == 401

    write(clients, "# none\n")  # the flag's key is left
    router.wait_for_log("Keys reloaded option=api-keys-file keys=1")
    os.remove(operators)
    if how == "signal":
        router.signal(signal.SIGHUP)
    router.wait_for_log("not reloaded.*No such file")
    for _ in range(3):
        assert router.get("/workers", bearer("new-boss")).status == 200, "the old ones stay"
        assert router.chat(bearer("flag-client")).status == 200
    assert "new-boss" not in router.log_text() and "new-client" not in router.log_text()


# --- answers and log lines


def test_long_heads_of_answers_pass_up_to_the_limit(engine, serve):
    long = engine(lambda request, connection: connection.sendall(whole_answer(
        '{"ok":1}', headers=[("x-long", "y" * int(request.header("x-bytes")))])))
    usual, large, small = serve(workers=[long]), serve("--max-head-size", "1MiB", workers=[long]), \
        serve("--max-head-size", "1KiB", workers=[long])
    for router, size, status in ((usual, 40_000, 200), (usual, 70_000, 502), (large, 70_000, 200),
                                 (large, 1_000_000, 200), (large, 1_100_000, 502), (small, 100, 200),
                                 (small, 2_000, 502)):
        answer = router.chat({"x-bytes": str(size)})
        assert answer.status == status, size
        assert status != 200 or (len(answer.header("x-long")) == size and answer.json() == {"ok": 1})


def test_an_unknown_model_is_not_blamed_on_the_workers(mock, serve):
    router = serve(workers=[mock()])
    assert router.chat(model="unknown").error["code"] == "model_not_found"
    answer = wire.ask(router.port, "POST", "/debug/explain", wire.chat_body(model="unknown"))
    assert answer.error["code"] == "model_not_found"
    assert router.chat().status == 200
    assert "tokenize" not in router.log_text()


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_control_character_of_a_client_reaches_the_log(mock, serve, form):
    router = serve("--log-requests", "--log-format", form, workers=[mock()])
    wild = "m\u009b31m\u0085x\u007f\u202e\u2028\u001b[0m"
    assert router.chat({"x-request-id": "id-1"}, model=wild).status == 404
    router.wait_for_log("id-1")
    log = router.log.read_bytes()
    for raw in (b"\xc2\x9b", b"\xc2\x85", b"\x7f", b"\x1b", b"\xe2\x80\xae", b"\xe2\x80\xa8"):
        assert raw not in log
    assert b"\\u009b31m\\u0085x\\u007f\\u202e\\u2028\\u001b[0m" in log
