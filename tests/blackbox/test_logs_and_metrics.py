"""What operators see: logs without prompts, metrics that add up."""

import json
import re

import wire
from choices import QUICK
from conftest import json_lines, parse_metrics
from wire import eventually

MARKER = "xyzzy-the-secret-prompt"


def test_json_logs_are_one_object_per_line(mock, serve):
    worker = mock()
    router = serve("--log-format", "json", "--log-level", "debug", "--log-requests",
                   workers=[worker, "http://127.0.0.1:1"], ready=1)
    odd = 'a "model"\nwith\tevery\\thing \u2028\x01'
    assert router.chat({"x-request-id": "id-1"}).status == 200
    assert router.chat({"x-request-id": "id-2"}, model=odd).status == 404
    records = eventually(
        lambda: len(found := [r for r in json_lines(router.log_text())
                              if r.get("request_id") in ("id-1", "id-2") and "status" in r]) == 2
        and found, "logged")
    records.sort(key=lambda record: record["request_id"])  # each is written when its request has ended
    for record in json_lines(router.log_text()):
        assert {"level", "message"} <= set(record) or {"level", "msg"} <= set(record), record
    assert records[0]["status"] == 200
    assert records[0]["worker_id"] == int(router.worker_id(worker))
    assert records[1]["model"] == odd


def test_text_logs_are_one_line_per_event(mock, serve):
    router = serve("--log-requests", workers=[mock()])
    assert router.chat(model="two\nlines").status == 404
    router.wait_for_log("Request.*two")
    assert "\nlines" not in router.log_text()


def test_prompts_are_never_logged(mock, serve):
    router = serve("--log-level", "debug", "--log-requests",
                   workers=[mock(die_after_tokens=3), mock(fail_rate=1), mock(drain_abort=True)])
    messages = [{"role": "user", "content": MARKER}]
    for stream in (False, True):
        for _ in range(6):
            router.chat(messages=messages, stream=stream, max_tokens=9)
    wire.ask(router.port, "POST", "/v1/completions", f'{{"prompt":"{MARKER}", broken')
    wire.ask(router.port, "POST", "/v1/completions", f'"{MARKER}"')
    wire.ask(router.port, "POST", "/v1/embeddings", {"model": "mock-model", "input": MARKER})
    wire.ask(router.port, "POST", "/v1/audio", MARKER.encode(),
             {"Content-Type": "multipart/form-data; boundary=x"})
    assert router.get("/live").status == 200
    assert "Request" in router.log_text()
    assert MARKER not in router.log_text()


def test_answers_do_not_repeat_a_broken_prompt(mock, serve):
    router = serve(workers=[mock()])
    answer = wire.ask(router.port, "POST", "/v1/completions", f'{{"prompt":"{MARKER}", broken')
    assert answer.status == 400
    assert MARKER not in answer.text()


def test_the_log_level_is_kept(world):
    router = world.start("serve", "--port", 0, "--log-level", "warn")
    router.wait_for_log("No workers are configured")
    assert "Listening" not in router.log_text()


# --- metrics

NAMES = {  # design, section 12, and the list
    "fathom_requests_total": "counter",
    "fathom_time_to_first_token_seconds": "histogram",
    "fathom_inter_token_latency_seconds": "histogram",
    "fathom_request_duration_seconds": "histogram",
    "fathom_requests_in_flight": "gauge",
    "fathom_worker_in_flight": "gauge",
    "fathom_worker_errors_total": "counter",
    "fathom_retries_total": "counter",
    "fathom_relay_bytes_total": "counter",
    "fathom_build_info": "gauge",
}


def test_metrics_have_their_names_and_types(mock, serve):
    router = serve(workers=[mock()])
    assert router.chat().status == 200
    answer = router.get("/metrics")
    assert answer.header("content-type").startswith("text/plain; version=0.0.4")
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer.text(), re.M))
    helped = set(re.findall(r"^# HELP (\S+) \S", answer.text(), re.M))
    assert {name: types.get(name) for name in NAMES} == NAMES
    assert set(types) == helped
    for name, _ in parse_metrics(answer.text()):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert name in types or types.get(family) == "histogram", name
    assert answer.text().endswith("\n")


def test_counts_match_the_requests_made(mock, serve):
    worker = mock(token_interval="50ms")
    router = serve(workers=[worker])
    sent, received = 0, 0
    for i in range(7):
        body = json.dumps(wire.chat_body(max_tokens=3, stream=i < 3)).encode()
        answer = wire.ask(router.port, "POST", "/v1/chat/completions", body)
        sent, received = sent + len(body), received + len(answer.body)
    wire.ask(router.port, "POST", "/v1/embeddings", {"model": "unknown"})
    wire.ask(router.port, "POST", "/v1/completions", "no json")
    wire.ask(router.port, "POST", "/v1/score", "{}")
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "all is over")
    eventually(lambda: router.metric("fathom_requests_total", route="score") == 1, "all is counted")

    def count(**labels):
        return router.metric("fathom_requests_total", **labels)

    assert count(route="chat", code="200") == 7
    assert count(route="embeddings", code="404") == 1
    assert count(route="completions", code="400") == 1
    assert count(route="score", code="200") == 1
    assert router.metric("fathom_worker_requests_total", worker=router.worker_id(worker)) == 8
    assert router.metric("fathom_time_to_first_token_seconds_count") == 8
    assert router.metric("fathom_request_duration_seconds_count") >= 8
    # Three streams of three tokens; tokens that a busy machine brings at once count as one.
    assert 1 <= router.metric("fathom_inter_token_latency_seconds_count") <= 9
    assert router.metric("fathom_relay_bytes_total", direction="to_worker") == sent + 2
    echoed = router.metric("fathom_relay_bytes_total", direction="to_client") - received
    assert 0 < echoed < 1000
    assert router.metric("fathom_worker_errors_total") == 0


def test_histograms_add_up(mock, serve):
    router = serve(workers=[mock()])
    for _ in range(5):
        router.chat(stream=True)
    eventually(lambda: router.metric("fathom_request_duration_seconds_count") == 5, "all is over")
    series = router.metrics()
    for name in ("fathom_time_to_first_token_seconds", "fathom_request_duration_seconds"):
        buckets = [(float(dict(labels)["le"]), value) for (series_name, labels), value
                   in series.items() if series_name == name + "_bucket"]
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1] == (float("inf"), 5)
        assert series[name + "_count", ()] == 5
        assert series[name + "_sum", ()] > 0


def test_in_flight_is_seen_while_it_lasts(mock, serve):
    worker = mock(token_interval="20ms")
    router = serve(workers=[worker])
    streams = [wire.Stream(router.port, max_tokens=100_000) for _ in range(3)]
    for stream in streams:
        stream.next()
    assert router.metric("fathom_requests_in_flight") == 3
    assert router.metric("fathom_worker_in_flight", worker=router.worker_id(worker)) == 3
    for stream in streams:
        stream.close()
    eventually(lambda: router.metric("fathom_requests_in_flight") == 0, "they are gone")
    eventually(lambda: router.metric("fathom_worker_in_flight") == 0, "from the worker too")


def test_errors_of_workers_are_counted_by_kind(mock, serve):
    faults = {"failed": mock(fail_rate=1), "busy": mock(busy=True),
              "aborted": mock(drain_abort=True), "broken_stream": mock(die_after_tokens=1)}
    router = serve("--router-mode", "direct", workers=list(faults.values()))
    for kind, worker in faults.items():
        name = router.worker_id(worker)
        router.chat({"x-fathom-worker": name}, stream=True, max_tokens=9)
        eventually(lambda: router.metric("fathom_worker_errors_total", worker=name, kind=kind) == 1,
                   f"{kind} is counted")
        assert router.metric("fathom_worker_errors_total", worker=name) == 1


def test_label_sets_are_bounded(mock, serve):
    """Nothing that a client makes up becomes a series."""
    router = serve(workers=[mock()])

    def go(i):
        wire.ask(router.port, "POST", f"/v1/images/route-{i}?q={i}", {"model": "mock-model"})
        router.chat({"x-session-id": f"s{i}", "x-request-id": f"r{i}"}, model=f"model-{i}")
        router.get(f"/page-{i}")
        wire.ask(router.port, f"METHOD{i}", "/v1/models")

    go(0)
    # The worker's own series come when the router first looks at its trust.
    eventually(lambda: router.metric("kv_router_trust_changes_total", state="learning") > 0, "it is looked at")
    before = set(router.metrics())
    for i in range(1, 30):
        go(i)
    assert set(router.metrics()) - before == set()


def test_a_removed_worker_leaves_no_series_behind(mock, serve):
    worker = mock()
    router = serve(workers=[worker])
    name = router.worker_id(worker)
    assert any(("worker", name) in labels for _, labels in router.metrics())
    assert wire.ask(router.port, "DELETE", f"/workers/{name}").status == 204
    assert not any(("worker", name) in labels for _, labels in router.metrics())


# --- what workers are


def worker_info(port):
    """{(worker, url, model, engine): value} of the metrics at that port."""
    return {tuple(dict(labels)[name] for name in ("worker", "url", "model", "engine")): value
            for (series, labels), value in parse_metrics(wire.get(port, "/metrics").text()).items()
            if series == "fathom_worker_info"}


def test_a_worker_is_described_by_a_series_per_model(mock, serve):
    workers = [mock(**QUICK, model="big,small"), mock(**QUICK, model="other", engine="sglang")]
    router = serve(workers=workers)
    first, second = (router.worker_id(worker) for worker in workers)
    eventually(lambda: worker_info(router.port) == {(first, "", "big", "vllm"): 1, (first, "", "small", "vllm"): 1,
                                                    (second, "", "other", "sglang"): 1}, "both are described")


def test_a_worker_that_never_answered_is_described_by_its_id(serve):
    router = serve(workers=["http://127.0.0.1:1"], ready=0)
    (_, url, model, engine), = worker_info(router.port)
    assert (url, model, engine) == ("", "", "")


def test_adapters_cannot_push_workers_out_of_the_metrics(mock, serve):
    """A family has at most 1000 label sets, and an engine any number of adapters."""
    workers = [mock(model="base", lora=",".join(f"adapter-{i}" for i in range(1100))), mock(model="base")]
    router = serve(workers=workers)
    names = {router.worker_id(worker) for worker in workers}
    found = worker_info(router.port)
    assert len(found) == 1000
    assert {worker for worker, _, model, _ in found if model == "base"} == names
    assert ("other", "", "other", "other") in found


def test_metrics_have_urls_on_the_admin_listener_alone(mock, serve):
    worker = mock()
    router = serve("--admin-listen", "127.0.0.1:0", workers=[worker])
    admin = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    assert [url for _, url, _, _ in worker_info(admin)] == [worker.url]
    assert [url for _, url, _, _ in worker_info(router.port)] == [""]
    assert worker.url not in router.get("/metrics").text()


def test_metrics_have_urls_where_the_operator_opens_them(mock, serve):
    worker = mock()
    router = serve("--metrics-urls", workers=[worker])
    assert [url for _, url, _, _ in worker_info(router.port)] == [worker.url]


# --- where messages send their readers


def test_messages_link_to_pages_below_the_docs_url(serve):
    router = serve("--docs-url", "https://wiki/fathom/", "--log-format", "json",
                   workers=["http://127.0.0.1:1"], ready=0)
    page = "https://wiki/fathom/runbooks/rank-excluded.md"
    router.wait_for_log("Worker is not healthy")
    record, = [line for line in json_lines(router.log_text()) if line["msg"].startswith("Worker is not healthy")]
    assert record["docs"] == page
    rank, = router.health()["workers"][0]["ranks"]
    assert rank["docs"] == page


def test_messages_name_the_command_that_prints_the_page(serve):
    router = serve(workers=["http://127.0.0.1:1"], ready=0)
    router.wait_for_log('Worker is not healthy.* docs="fathom docs rank-excluded"')
    rank, = router.health()["workers"][0]["ranks"]
    assert rank["docs"] == "fathom docs rank-excluded"
