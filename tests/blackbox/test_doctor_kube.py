"""fathom doctor --kube: through the Kubernetes API, with GET alone."""

import base64
import json
import sys

import pytest

from conftest import run_fathom
from kube_server import KubeServer, pod, workload
from test_tls import Authority

TOKEN = "kube-s3cret-token"
FRONTEND_LOG = (
    "2026-01-14T10:00:00.000Z  WARN dynamo_llm::kv_router::indexer: Failed to find parent block; "
    "skipping store operation\n" * 40)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("kube-authority"))


def fleet():
    """A frontend without a block size before TensorRT-LLM, whose blocks have 32 tokens."""
    return {
        "deployments": [
            workload("frontend", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.7.0",
                     ["python3", "-m", "dynamo.frontend", "--router-mode", "kv",
                      "--kv-cache-block-size", "16"]),
            workload("worker", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.7.0",
                     ["python3", "-m", "dynamo.trtllm", "--model-path", "m",
                      "--publish-events-and-metrics"]),
            workload("web", "nginx:1")],
        "pods": [
            pod("frontend-1", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.7.0",
                ["python3", "-m", "dynamo.frontend"]),
            pod("worker-1", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.7.0",
                ["python3", "-m", "dynamo.trtllm"], ready=False, restarts=3,
                last_ended="OOMKilled"),
            pod("web-1", "nginx:1")],
        "leaderworkersets": 404,
        "dynamographdeployments": 404,
    }


LOGS = {"frontend-1/main": FRONTEND_LOG, "worker-1/main": "started\n", "web-1/main": "GET /\n"}


def diagnose(config, *args, env=None):
    return run_fathom("doctor", "--kube", "--kubeconfig", config, "--format", "json", *args, env=env)


def report_of(done):
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return json.loads(done.stdout)


def test_the_fleet_of_a_namespace_is_looked_at(authority, tmp_path):
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        report = report_of(diagnose(kube.kubeconfig(tmp_path, {"token": TOKEN})))
    text = json.dumps(report)
    assert report["findings"][0]["id"] == "block-size-mismatch", text
    assert "kube:deployments/" in text
    assert "kube:pods/frontend-1/main" in text
    assert "kube:pods/web-1" not in text
    assert TOKEN not in text
    assert "3 pods in namespace ml: 2 ready, 1 restarted, 1 killed out of memory" in text


def test_every_request_is_a_get_and_none_is_for_a_secret(authority, tmp_path):
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        report = report_of(diagnose(kube.kubeconfig(tmp_path, {"token": TOKEN}),
                                    "--kube-log-lines", 5))
        assert {method for method, _, _ in kube.requests} == {"GET"}
        assert not [target for _, target, _ in kube.requests if "secret" in target.lower()]
        assert [target for _, target, _ in kube.requests if "tailLines=5" in target]
        sent = [entry for entry in report["sent"] if entry["target"].startswith(kube.url)]
        assert sum(entry["times"] for entry in sent) == len(kube.requests)


def test_a_client_certificate_is_an_identity(authority, tmp_path):
    certificate, key = authority.issue("ada")
    user = {"client-certificate": str(certificate),
            "client-key-data": base64.b64encode(key.read_bytes()).decode()}
    with KubeServer(authority, fleet(), LOGS, client_ca=authority.certificate) as kube:
        assert report_of(diagnose(kube.kubeconfig(tmp_path, user)))["findings"]
        nobody = diagnose(kube.kubeconfig(tmp_path, {}))
    assert nobody.returncode == 2


def test_a_plugin_of_the_kubeconfig_says_who_we_are(authority, tmp_path):
    plugin = tmp_path / "login.py"
    credential = {"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"}
    plugin.write_text(
        "import json, os\n"
        "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind'] == 'ExecCredential'\n"
        f"print(json.dumps({{**{credential}, 'status': {{'token': os.environ['SAID']}}}}))\n")
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable,
                     "args": [str(plugin)], "env": [{"name": "SAID", "value": TOKEN}]}}
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        done = diagnose(kube.kubeconfig(tmp_path, user))
    text = json.dumps(report_of(done))
    assert "was run" in text
    assert TOKEN not in text + done.stderr


def test_the_account_of_the_pod_is_not_taken_where_there_is_a_kubeconfig(authority, tmp_path):
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        done = diagnose(kube.kubeconfig(tmp_path, {"token": TOKEN}),
                        env={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"})
    assert report_of(done)["findings"]


def test_the_environment_names_the_kubeconfig(authority, tmp_path):
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        config = kube.kubeconfig(tmp_path, {"token": TOKEN})
        done = run_fathom("doctor", "--kube", "--format", "json",
                          env={"KUBECONFIG": f"/no/such/file:{config}"})
    assert report_of(done)["findings"]


def test_what_is_forbidden_is_named_and_the_rest_is_read(authority, tmp_path):
    objects = {**fleet(), "pods": 403}
    with KubeServer(authority, objects, LOGS, token=TOKEN) as kube:
        done = diagnose(kube.kubeconfig(tmp_path, {"token": TOKEN}))
    report = json.loads(done.stdout)
    assert "kube:deployments/frontend" in json.dumps(report)
    assert "cannot list pods in namespace ml" in json.dumps(report)


@pytest.mark.parametrize("wrong", ["token", "authority", "skip", "context", "nobody", "no file"])
def test_a_cluster_that_cannot_be_asked_is_said(authority, tmp_path, wrong):
    with KubeServer(authority, fleet(), LOGS, token=TOKEN) as kube:
        cluster = {"insecure-skip-tls-verify": True} if wrong == "skip" else {}
        if wrong == "authority":
            other = Authority(tmp_path).certificate.read_bytes()
            cluster["certificate-authority-data"] = base64.b64encode(other).decode()
        if wrong == "nobody":
            cluster["server"] = "https://127.0.0.1:1"
        token = "another-s3cret" if wrong == "token" else TOKEN
        config = kube.kubeconfig(tmp_path, {"token": token}, **cluster)
        args = ["--kube-context", "prod"] if wrong == "context" else []
        done = diagnose("/no/such/kubeconfig" if wrong == "no file" else config, *args)
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    expected = {"token": "401", "authority": "certificate", "skip": "insecure-skip-tls-verify",
                "context": "--kube-context", "nobody": "refused", "no file": "/no/such/kubeconfig"}
    assert expected[wrong] in said
    assert "s3cret" not in said
