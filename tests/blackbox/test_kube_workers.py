"""Workers of Kubernetes: k8s://, k8s-pods:// and k8s-pool:// against a scripted API server. What a
real one does is in test_kubernetes.py."""

import pytest

from conftest import run_fathom
from kube_api import NOT_READY, READY, TERMINATING, KubeApi, pod_of, slice_of
from kube_rollout import Service, roll
from test_tls import Authority
from wire import eventually

HERE = "127.0.0.1"


@pytest.fixture
def api():
    with KubeApi() as api:
        yield api
        assert not api.wrong, api.wrong


@pytest.fixture
def service(api):
    api.put("services", {"metadata": {"name": "vllm"}, "spec": {"selector": {"app": "vllm"}}})
    return Service(api, HERE)


def follow(serve, api, tmp_path, source="k8s://ml/vllm:http", ready=0, args=(), **options):
    return serve(*args, "--kubeconfig", api.kubeconfig(tmp_path / "kubeconfig", **options), workers=[source],
                 ready=ready)


def test_endpoints_come_drain_and_go(api, service, serve, mock, tmp_path):
    first, second = mock(), mock()
    service.add(first)
    router = follow(serve, api, tmp_path, ready=1)
    service.add(second, NOT_READY)
    service.becomes(router, second, "unready")
    service.set(second, {})  # ready absent means true
    service.becomes(router, second, "ready")
    service.set(first, TERMINATING)
    entry = service.becomes(router, first, "draining")
    assert entry["cause"] == "its pod ends"
    for _ in range(8):
        assert router.chat().status == 200
    assert service.entry(router, first)["requests"] == 0
    service.remove(first)
    service.leaves(router, first)
    assert router.health()["workers_ready"] == 1


def test_what_pods_say_is_on_the_worker(api, service, serve, mock, tmp_path):
    engine = mock()
    service.count = 0
    api.put("pods", pod_of("vllm-1", HERE, engine.port, labels={
        "app": "vllm", "llm-d.ai/role": "decode", "pod-template-hash": "abc"}))
    api.put("pods", pod_of("other", HERE, 9, labels={"app": "other"}))
    service.add(engine)
    router = follow(serve, api, tmp_path, ready=1)
    entry = service.entry(router, engine)
    assert entry["role"] == "decode"
    assert entry["labels"] == {"app": "vllm", "llm-d.ai/role": "decode"}
    requests = entry["requests"]
    assert router.chat().status == 200
    api.put("pods", pod_of("vllm-1", HERE, engine.port, labels={"app": "vllm", "fathom.io/role": "both"}))
    eventually(lambda: service.entry(router, engine)["role"] == "both", "the new label is seen")
    assert service.entry(router, engine)["requests"] == requests + 1, "it is still the same worker"
    selectors = {q["labelSelector"][0] for v, p, q in api.requests if p == "pods"}
    assert selectors == {"app=vllm"}, "only the Service's own pods are asked for"
    # The pod says that it ends before its slice does.
    ending = pod_of("vllm-1", HERE, engine.port, labels={"app": "vllm"})
    ending["metadata"]["deletionTimestamp"] = "2026-11-18T00:00:00Z"
    api.put("pods", ending)
    service.becomes(router, engine, "draining")


@pytest.mark.parametrize("fault", ["410", "410-event", "garbage", "half-line", "close", "content-type", "429", "503"])
def test_a_watch_in_trouble_loses_nothing(api, service, serve, mock, tmp_path, fault):
    kept, late = mock(), mock()
    service.add(kept)
    router = follow(serve, api, tmp_path, ready=1)
    assert router.chat().status == 200
    api.fault("watch", "endpointslices", fault)
    api.cut_watches()
    service.add(late)
    service.becomes(router, late, "ready")
    assert service.entry(router, kept)["requests"] == 1, "it is still the same worker"


def test_an_outage_changes_nothing_and_is_said_once(api, service, serve, mock, tmp_path):
    kept, gone, late = mock(), mock(), mock()
    service.add(kept)
    service.add(gone)
    router = follow(serve, api, tmp_path, args=["--router-mode", "round-robin"], ready=2)
    eventually(lambda: router.chat().status == 200 and service.entry(router, kept)["requests"] > 0,
               "it has had a request")
    api.stop()
    router.wait_for_log("A source of workers cannot be read")
    service.remove(gone)
    service.add(late)
    api.compact()
    for _ in range(4):
        assert router.chat().status == 200
    assert router.health()["workers_ready"] == 2
    api.start()
    service.becomes(router, late, "ready")
    service.leaves(router, gone)
    router.wait_for_log("A source of workers works again")
    assert router.log_text().count("A source of workers cannot be read") == 1
    assert service.entry(router, kept)["requests"] > 0, "it is still the same worker"


def test_an_endpoint_that_moves_between_slices_is_the_same_worker(api, service, serve, mock, tmp_path):
    engine = mock()
    service.add(engine)
    router = follow(serve, api, tmp_path, ready=1)
    assert router.chat().status == 200
    service.remove(engine)
    service.becomes(router, engine, "draining")
    api.put("endpointslices", slice_of("renamed", "vllm", [(HERE, READY, engine.pod)], engine.port))
    assert service.becomes(router, engine, "ready")["requests"] == 1


def test_without_the_right_to_read_pods_the_endpoints_are_known(api, service, serve, mock, tmp_path):
    api.forbidden = {("list", "pods"), ("list", "services")}
    engine = mock()
    service.add(engine)
    router = follow(serve, api, tmp_path, ready=1)
    router.wait_for_log("does not see everything.*cannot list pods in namespace ml: roles and labels are not known")
    assert "A source of workers cannot be read" not in router.log_text()
    assert router.health()["sources"][0]["status"] == "ok"


def test_a_service_that_is_deleted_is_said_at_once(api, service, serve, mock, tmp_path):
    engine = mock()
    service.add(engine)
    router = follow(serve, api, tmp_path, ready=1)
    api.delete("services", "vllm")
    router.wait_for_log("does not see everything.*there is no Service vllm in namespace ml")
    assert api.count("list", "services") == 1
    api.fault("watch", "services", "410")
    api.cut_watches()
    eventually(lambda: api.count("list", "services") == 2, "it is listed again")
    api.put("services", {"metadata": {"name": "vllm"}, "spec": {"selector": {"app": "vllm"}}})
    eventually(lambda: router.health()["sources"][0]["unknown"] is None, "the Service is there again")
    selectors = {q.get("labelSelector", [""])[0] for v, p, q in api.requests if p == "pods"}
    assert selectors == {"app=vllm"}, "other pods of the namespace are none of its business"


def test_a_missing_right_and_a_token_that_rotates(serve, mock, tmp_path):
    engine, late = mock(), mock()
    token = tmp_path / "token"
    token.write_text("first")
    with KubeApi(authority=Authority(tmp_path)) as api:
        api.tokens = {"first"}
        api.forbidden = {("list", "endpointslices")}
        service = Service(api, HERE)
        service.add(engine)
        router = follow(serve, api, tmp_path, token_file=token)
        missing = router.wait_for_log("A source of workers cannot be read.*").group()
        assert "403" in missing and "kubectl auth can-i list endpointslices -n ml" in missing, missing
        api.forbidden = set()
        service.becomes(router, engine, "ready")
        api.tokens = {"second"}
        token.write_text("second")
        api.cut_watches()
        service.add(late)
        service.becomes(router, late, "ready")
        assert not api.wrong, api.wrong


def test_pods_by_selector(api, serve, mock, tmp_path):
    service = Service(api, HERE)
    first, second = mock(), mock()
    for number, engine in enumerate((first, second)):
        engine.pod = f"vllm-{number}"
        api.put("pods", pod_of(engine.pod, HERE, engine.port, labels={"app": "vllm"}))
    router = follow(serve, api, tmp_path, "k8s-pods://ml/app=vllm:http", ready=2)
    api.put("pods", pod_of(first.pod, HERE, first.port, labels={"app": "vllm"}, ready=False))
    service.becomes(router, first, "unready")
    api.put("pods", pod_of(second.pod, HERE, second.port, labels={"app": "retired"}))
    service.leaves(router, second)
    ended = pod_of(first.pod, HERE, first.port, labels={"app": "vllm"})
    ended["status"]["phase"] = "Succeeded"
    api.put("pods", ended)
    service.leaves(router, first)


def pool_of(selector, *ports):
    return {"metadata": {"name": "llama"}, "spec": {"selector": {"matchLabels": selector},
                                                    "targetPorts": [{"number": port} for port in ports]}}


def test_a_pool_and_its_changes(api, serve, mock, tmp_path):
    service = Service(api, HERE)
    first, second = mock(), mock()  # two ports of one pod
    for engine in (first, second):
        engine.pod = "vllm-0"
    api.put("pods", pod_of("vllm-0", HERE, first.port, labels={"app": "vllm", "rev": "1"}))
    api.undefined = {"inferencepools"}
    router = follow(serve, api, tmp_path, "k8s-pool://ml/llama")
    router.wait_for_log("A source of workers cannot be read.*inferencepools")
    api.undefined = set()
    api.put("inferencepools", pool_of({"app": "vllm"}, first.port))
    service.becomes(router, first, "ready")
    assert router.chat().status == 200
    # While pods may not be read, the selector and the ports change.
    api.forbidden = {("list", "pods"), ("watch", "pods")}
    api.put("inferencepools", pool_of({"rev": "1"}, first.port, second.port))
    eventually(lambda: "pods" in str(router.health()["sources"][0]["error"]), "the missing right is named")
    assert service.entry(router, first)["state"] == "ready"
    api.forbidden = set()
    service.becomes(router, second, "ready")
    eventually(lambda: router.health()["sources"][0]["status"] == "ok", "it is over")
    assert service.entry(router, first)["requests"] == 1, "it is still the same worker"
    api.put("inferencepools", pool_of({"rev": "1"}, second.port))
    service.leaves(router, first)
    api.delete("inferencepools", "llama")
    service.leaves(router, second)


def test_pods_of_a_pool_that_cannot_be_read_still_leave(api, serve, mock, tmp_path):
    service = Service(api, HERE)
    engine = mock()
    engine.pod = "vllm-0"
    api.put("pods", pod_of(engine.pod, HERE, engine.port, labels={"app": "vllm"}))
    api.put("inferencepools", pool_of({"app": "vllm"}))
    router = follow(serve, api, tmp_path, "k8s-pool://ml/llama")
    router.wait_for_log("the pool has no target ports")
    api.put("inferencepools", pool_of({"app": "vllm"}, engine.port))
    service.becomes(router, engine, "ready")  # the pool's watch is open
    api.undefined = {"inferencepools"}
    api.cut_watches()
    eventually(lambda: "inferencepools" in str(router.health()["sources"][0]["error"]), "the pool cannot be read")
    api.delete("pods", engine.pod)
    service.leaves(router, engine)
    assert router.health()["sources"][0]["status"] == "stale"


NONE = "it names no worker: "


@pytest.mark.parametrize("source, why", [
    ("k8s://ml/vllm:http", "Service vllm in namespace ml has no endpoints"),
    ("k8s-pods://ml/app=vllm:http", "no pod matches the selector"),
    ("k8s-pool://ml/llama", "the pool has no target ports; set spec.targetPorts"),
])
def test_a_source_that_names_no_worker_says_so(api, service, serve, mock, tmp_path, source, why):
    engine = mock()
    api.put("inferencepools", pool_of({"app": "vllm"}))
    router = follow(serve, api, tmp_path, source)
    router.wait_for_log(f"does not see everything.*{NONE}{why}")
    state = router.health()["sources"][0]
    assert state["status"] == "ok" and NONE + why in state["unknown"], state
    service.add(engine)
    api.put("pods", pod_of(engine.pod, HERE, engine.port, labels={"app": "vllm"}))
    api.put("inferencepools", pool_of({"app": "vllm"}, engine.port))
    service.becomes(router, engine, "ready")
    assert router.health()["sources"][0]["unknown"] is None
    assert router.log_text().count(NONE + why) == 1


def test_wrong_access_is_an_error_at_the_start(tmp_path):
    missing = tmp_path / "missing"
    ended = run_fathom("serve", "--port", 0, "--worker-urls", "k8s://ml/vllm:http", "--kubeconfig", missing)
    assert ended.returncode == 78
    assert str(missing) in ended.stderr
    nowhere = {"KUBECONFIG": "", "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": ""}
    ended = run_fathom("serve", "--port", 0, "--worker-urls", "k8s://ml/vllm:http", env=nowhere)
    assert ended.returncode == 78, ended.stderr


def test_an_api_server_that_is_away_at_the_start_is_no_error(api, service, serve, mock, tmp_path):
    engine = mock()
    service.add(engine)
    api.stop()
    router = follow(serve, api, tmp_path)
    router.wait_for_log("A source of workers cannot be read")
    assert router.get("/live").status == 200
    api.start()
    service.becomes(router, engine, "ready")


def test_a_rolling_restart_under_load_fails_no_request(api, service, serve, mock, tmp_path):
    engines = [mock() for _ in range(6)]
    for engine in engines:
        service.add(engine)
    router = follow(serve, api, tmp_path, ready=6)
    roll(service, router, engines, mock)
