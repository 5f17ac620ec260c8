"""Workers of Kubernetes against a real API server, where one is found: the environment variable
KUBE_UP names the script kube-up, or it is on PATH. The engines are mocks at this machine's own
address, because EndpointSlices may not have loopback addresses."""

import ipaddress
import json
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

from kube_api import READY, ROOTS, TERMINATING, pod_of, slice_of
from kube_rollout import Load, Service, roll
from wire import eventually

KUBE_UP = os.environ.get("KUBE_UP") or shutil.which("kube-up")
KINDS = {"endpointslices": ("discovery.k8s.io/v1", "EndpointSlice"), "services": ("v1", "Service"),
         "pods": ("v1", "Pod"), "roles": ("rbac.authorization.k8s.io/v1", "Role"),
         "rolebindings": ("rbac.authorization.k8s.io/v1", "RoleBinding")}
PATHS = {**ROOTS, "roles": "/apis/rbac.authorization.k8s.io/v1", "rolebindings": "/apis/rbac.authorization.k8s.io/v1"}


def own_address():
    """One of this machine's that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:
            return None
        address = probe.getsockname()[0]
    found = ipaddress.ip_address(address)
    return None if found.is_loopback or found.is_link_local or found.is_unspecified else address


HERE = own_address()

pytestmark = [
    pytest.mark.skipif(not KUBE_UP, reason="no kube-up: set KUBE_UP to it, or put it on PATH"),
    pytest.mark.skipif(not HERE, reason="this machine has no address but loopback"),
]


class Cluster:
    def __init__(self, folder):
        started = subprocess.run([KUBE_UP, "--dir", folder], capture_output=True, text=True, check=False)
        assert started.returncode == 0, started.stderr
        self.about = json.loads(started.stdout)
        self.folder = str(folder)
        self.namespace = "default"
        self.tls = ssl.create_default_context(cafile=self.about["ca"])

    def end(self):
        subprocess.run([KUBE_UP, "--stop", self.folder, "--purge", "--grace", "0"], check=True)

    def stop_api(self):
        subprocess.run([KUBE_UP, "--stop-api", self.folder, "--grace", "0"], check=True)

    def start_api(self):
        subprocess.run([KUBE_UP, "--start-api", self.folder], check=True, capture_output=True)

    def call(self, method, path, body=None, kind="application/json"):
        request = urllib.request.Request(
            self.about["server"] + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.about['admin_token']}", "content-type": kind})
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise AssertionError(f"{method} {path}: {refusal.read().decode()}") from refusal

    def path(self, plural, name=""):
        return f"{PATHS[plural]}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def put(self, plural, item):
        version, kind = KINDS[plural]
        name = item["metadata"]["name"]
        item = {"apiVersion": version, "kind": kind, **item}
        how = "?fieldManager=test&force=true"
        status = item.get("status")
        # Whoever makes a pod does not choose its uid, and the uid of a targetRef is free text.
        metadata = {key: value for key, value in item["metadata"].items() if key != "uid"}
        whole = {**item, "metadata": metadata}
        whole.pop("status", None)
        self.call("PATCH", self.path(plural, name) + how, whole, "application/apply-patch+yaml")
        if status:
            self.call("PATCH", self.path(plural, name) + "/status", {"status": status},
                      "application/merge-patch+json")

    def delete(self, plural, name):
        self.call("DELETE", self.path(plural, name) + "?gracePeriodSeconds=0")

    def compact(self):
        """The store forgets old versions, and the API server starts with a new memory."""
        def etcd(path, body):
            request = urllib.request.Request(self.about["etcd"] + path, data=json.dumps(body).encode())
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        revision = etcd("/v3/kv/range", {"key": "AA==", "count_only": True})["header"]["revision"]
        etcd("/v3/kv/compaction", {"revision": revision, "physical": True})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("kube") / "up")
    yield cluster
    cluster.end()


@pytest.fixture
def service(cluster, request):
    name = request.node.name.replace("_", "-")[:40].rstrip("-").removeprefix("test-")
    cluster.put("services", {"metadata": {"name": name}, "spec": {
        "selector": {"app": name}, "ports": [{"name": "http", "port": 80}]}})
    return Service(cluster, HERE, name)


@pytest.fixture
def start(mock):
    return lambda: mock(host="0.0.0.0")


@pytest.fixture
def follow(serve, cluster, service):
    def begin(ready=0, kubeconfig=None, form="k8s://default/{}:http"):
        return serve("--kubeconfig", kubeconfig or cluster.about["kubeconfig"],
                     workers=[form.format(service.name)], ready=ready)
    return begin


def test_adds_relabels_and_drains(cluster, service, start, follow):
    first, second = start(), start()
    service.add(first)
    cluster.put("pods", pod_of(first.pod, HERE, first.port, labels={"app": service.name, "llm-d.ai/role": "prefill"}))
    # The slice's word for its pod is a uid of the test's own, the pod has the server's: without one
    # the name counts.
    cluster.put("endpointslices",
                without_uid(slice_of(first.pod, service.name, [(HERE, READY, first.pod)], first.port)))
    router = follow(ready=1)
    eventually(lambda: service.entry(router, first)["role"] == "prefill", "the role of its pod is known")
    cluster.put("pods", pod_of(first.pod, HERE, first.port, labels={"app": service.name, "llm-d.ai/role": "decode"}))
    eventually(lambda: service.entry(router, first)["role"] == "decode", "the new label is seen")
    service.add(second)
    service.becomes(router, second, "ready")
    cluster.put("endpointslices",
                without_uid(slice_of(first.pod, service.name, [(HERE, TERMINATING, first.pod)], first.port)))
    service.becomes(router, first, "draining")
    service.remove(first)
    service.leaves(router, first)


def without_uid(item):
    for endpoint in item["endpoints"]:
        del endpoint["targetRef"]["uid"]
    return item


def test_pods_by_selector(cluster, service, start, follow):
    first = start()
    first.pod = f"{service.name}-pod"
    labels = {"app": service.name}
    cluster.put("pods", pod_of(first.pod, HERE, first.port, labels=labels))
    router = follow(1, form="k8s-pods://default/app={}:http")
    cluster.put("pods", pod_of(first.pod, HERE, first.port, labels=labels, ready=False))
    service.becomes(router, first, "unready")
    cluster.delete("pods", first.pod)
    service.leaves(router, first)


def test_an_outage_and_a_compaction(cluster, service, start, follow):
    kept, late = start(), start()
    service.add(kept)
    router = follow(ready=1)
    with Load(router, clients=2) as load:
        load.goes_on()
        cluster.stop_api()
        router.wait_for_log("A source of workers cannot be read")
        load.goes_on()
        requests = service.entry(router, kept)["requests"]
        assert requests > 0
        cluster.start_api()
        service.add(late)
        cluster.compact()
        service.becomes(router, late, "ready")
        assert service.entry(router, kept)["requests"] >= requests, "it is still the same worker"
    assert not load.failures, load.failures[:5]
    router.wait_for_log("A source of workers works again")


def restricted_config(cluster, tmp_path, token):
    path = tmp_path / "restricted"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "c", "cluster": {"server": cluster.about["server"],
                                               "certificate-authority": cluster.about["ca"]}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}]}))
    return path


def allow(cluster, *resources):
    rules = [{"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}
             for group, plural in resources]
    cluster.put("roles", {"metadata": {"name": "router"}, "rules": rules})
    cluster.put("rolebindings", {"metadata": {"name": "router"},
                                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "router"},
                                 "subjects": [{"kind": "ServiceAccount", "name": "restricted",
                                               "namespace": "default"}]})


def test_rights_and_tokens(cluster, service, start, follow, tmp_path):
    first = start()
    service.add(first)
    token = tmp_path / "token"
    token.write_text("nobody")
    router = follow(kubeconfig=restricted_config(cluster, tmp_path, token))
    router.wait_for_log("A source of workers cannot be read.*401")
    token.write_text(cluster.about["restricted_token"])  # as the kubelet replaces it
    entry = eventually(lambda: next((s for s in router.health()["sources"] if "endpointslices" in (s["error"] or "")),
                                    None), "the missing right is named")
    assert "list" in entry["error"] and "default" in entry["error"], entry
    allow(cluster, ("discovery.k8s.io", "endpointslices"))
    service.becomes(router, first, "ready")
    router.wait_for_log("does not see everything.*cannot list pods in namespace default")
    allow(cluster, ("discovery.k8s.io", "endpointslices"), ("", "pods"), ("", "services"))
    cluster.put("pods", pod_of(first.pod, HERE, first.port, labels={"app": service.name, "fathom.io/role": "both"}))
    cluster.put("endpointslices",
                without_uid(slice_of(first.pod, service.name, [(HERE, READY, first.pod)], first.port)))
    eventually(lambda: service.entry(router, first)["role"] == "both", "pods are read once they may be")


def test_a_rolling_restart_of_20_engines_under_load(cluster, service, start, follow):
    engines = [start() for _ in range(20)]
    for engine in engines:
        service.add(engine)
    router = follow(ready=20)
    roll(service, router, engines, start)
