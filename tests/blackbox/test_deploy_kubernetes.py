"""deploy/kubernetes: every set of files that the README speaks of is a fleet whose parts fit together."""

import json
import re

import pytest
import yaml

import wire

pytest.register_assert_rewrite("chart.deployed_fleet")

from chart.deployed_fleet import DeployedFleet, schema_problems
from conftest import ROOT, run_fathom
from kube_server import KubeServer
from test_doctor_kube import LOGS, TOKEN, diagnose, fleet
from test_tls import Authority

FOLDER = ROOT / "deploy/kubernetes"
FILES = sorted(FOLDER.rglob("*.yaml"))
EVERYWHERE = ["fathom", "networkpolicy", "doctor", "servicemonitor"]
SETS = {
    "vllm": [*EVERYWHERE, "autoscaling", "engines/vllm"],
    "sglang": [*EVERYWHERE, "autoscaling", "engines/sglang"],
    "tensorrt-llm": [*EVERYWHERE, "engines/tensorrt-llm"],
}


EIGHT_RANKS = "\n            - --data-parallel-size=8"
BUDGET = "maxUnavailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name:"


def text_of(names):
    return "\n---\n".join((FOLDER / f"{name}.yaml").read_text() for name in names)


@pytest.mark.parametrize("engine", SETS)
def test_the_files_of_an_engine_fit_together(engine, tmp_path):
    fleet_of_files = DeployedFleet(text_of(SETS[engine]))
    fleet_of_files.judge(tmp_path)
    assert len(fleet_of_files.engines) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_by_itself_is_valid_and_has_no_findings(path):
    objects = [each for each in yaml.safe_load_all(path.read_text()) if each]
    assert [problem for problems in schema_problems(objects) for problem in problems] == []
    assert run_fathom("lint", path).returncode == 0


def test_all_files_at_once_have_no_findings():
    done = run_fathom("lint", FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_router_and_engine_says_where_the_block_size_comes_from():
    for name in ("fathom", "engines/vllm", "engines/sglang", "engines/tensorrt-llm"):
        assert "Fathom finds it out from the workers" in (FOLDER / f"{name}.yaml").read_text(), name


def test_the_image_is_of_this_version():
    version = run_fathom("version").stdout.split()[1]
    images = {image for path in FILES for image in re.findall(r"image: (fathom:\S+)", path.read_text())}
    assert images == {f"fathom:{version}"}


# --- what would go wrong is noticed


# What is changed into what, and what is said then.
WRONGS = {
    "a misspelt field": ("fathom", "readinessProbe:", "readynessProbe:", "readynessProbe is not known"),
    "a value of another type": ("fathom", "containerPort: 8000", "containerPort: eight", "must be integer"),
    "a field that is missing": ("fathom", "        - name: fathom\n", "        - tty: true\n", "must have.*name"),
    "an option that there is not": ("fathom", "log-format: json", "log-fromat: json", "log-format"),
    "a block size": ("fathom", "log-format: json", "kv-cache-block-size: 16", "a block size is set"),
    "no time to drain": ("fathom", "drain-timeout: 2m", "drain-timeout: 5m", "too little time"),
    "no room for the index": ("fathom", "index-max-bytes: 2GiB", "index-max-bytes: 4GiB", "too little memory"),
    "a probe of nothing": ("fathom", "path: /ready", "path: /readyz", "readinessProbe"),
    "an open admin port": ("fathom", "  clusterIP: None\n", "", "open to clients"),
    "a Service before all pods": ("fathom", "k8s://llm/engines:http", "http://engines.llm.svc:8000", "service-hides-pods"),
    "another name": ("fathom", "k8s://llm/engines", "k8s://llm/vllm", "0 Services are called vllm"),
    "another port": ("fathom", "engines:http ", "engines:8000 ", "no port 8000"),
    "no token": ("fathom", "automountServiceAccountToken: true", "automountServiceAccountToken: false", "its token"),
    "no right to watch": ("fathom", 'verbs: ["list", "watch"]', 'verbs: ["list"]', "lacks rights"),
    "no way to the API": ("networkpolicy", "port: 6443", "port: 6444", "closes the Kubernetes API"),
    "ranks that meet": ("engines/vllm", "--port=8000", f"--port=8000{EIGHT_RANKS}01", "port-collision"),
    "GPUs that are missing": ("engines/vllm", "--port=8000", f"--port=8000{EIGHT_RANKS}", "needs its GPUs"),
    "events to nobody": ("engines/vllm", "tcp://*:5557", "tcp://0.0.0.0:5557", "endpoint-connects"),
    "no events": ("engines/vllm", 'cache_events":true', 'cache_events":false', "publisher-off"),
    "a flag of nobody": ("engines/vllm", "--enable-prefix-caching", "--enable-prefix-cache", "no flags of"),
    "a closed door": ("networkpolicy", "port: 5657", "port: 5658", "the policy closes .5657."),
    "no way to another router": ("networkpolicy", "        - port: 5600\n        - port: 8000", "        - port: 5600",
                                 "need .* of each other"),
    "no key": ("fathom", "key: admin-key\n", "key: admin-key\n                  optional: true\n", "without its"),
    "no time to be heard": ("engines/vllm", "seconds: 15", "seconds: 5", "has heard of it"),
    "no time to finish": ("engines/vllm", "PeriodSeconds: 150", "PeriodSeconds: 130", "too little time to finish"),
    "a budget of nobody": ("engines/vllm", f"{BUDGET} vllm", f"{BUDGET} sglang", "vllm has 0 disruption budgets"),
    "a Role of nobody": ("doctor", "name: fathom-doctor\nsubjects", "name: doctor\nsubjects", "0 Roles"),
}


@pytest.mark.parametrize("what", WRONGS)
def test_what_is_wrong_is_noticed(what, tmp_path):
    name, right, wrong, said = WRONGS[what]
    texts = {each: (FOLDER / f"{each}.yaml").read_text() for each in SETS["vllm"]}
    assert right in texts[name]
    texts[name] = texts[name].replace(right, wrong)
    with pytest.raises(AssertionError, match=said):
        DeployedFleet("\n---\n".join(texts.values())).judge(tmp_path)


def test_two_routers_before_tensorrt_llm_are_noticed(tmp_path):
    with pytest.raises(AssertionError, match="one reader only"):
        DeployedFleet(text_of([*SETS["tensorrt-llm"], "autoscaling"])).judge(tmp_path)


def test_rules_in_comments_are_right_when_the_comment_is_taken_away():
    text = re.sub(r"(?m)^    #(?=- |  )", "    ", (FOLDER / "networkpolicy.yaml").read_text())
    objects = [each for each in yaml.safe_load_all(text) if each]
    assert [problem for problems in schema_problems(objects) for problem in problems] == []
    [_, metrics] = objects[-1]["spec"]["ingress"]
    assert metrics["ports"] == [{"port": 8000}], "nobody but the router reads events"
    assert {"ports": [{"port": 4222}]} in objects[0]["spec"]["egress"], "NATS is reached"


# --- held against the binary


def test_probes_and_scrapes_are_answered(mock, serve):
    whole = DeployedFleet(text_of(SETS["vllm"]))
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    asked = [whole.router.container[probe]["httpGet"] for probe in probes]
    [monitor] = whole.all("ServiceMonitor")
    asked += monitor["spec"]["endpoints"]
    router = serve("--admin-listen", f"127.0.0.1:{(admin := wire.free_port())}", workers=[mock()])
    ports = {"http": router.port, "admin": admin}
    for page in asked:
        assert wire.get(ports[page["port"]], page["path"]).status == 200, page


def test_the_role_has_exactly_what_the_doctor_asks_for(tmp_path):
    role = DeployedFleet(text_of(SETS["vllm"])).named("Role", "fathom-doctor")
    allowed = {(group, resource, verb) for rule in role["rules"] for group in rule["apiGroups"]
               for resource in rule["resources"] for verb in rule["verbs"]}
    with KubeServer(Authority(tmp_path), fleet(), LOGS, token=TOKEN) as kube:
        done = diagnose(kube.kubeconfig(tmp_path, {"token": TOKEN}))
        assert done.returncode in (0, 1), done.stderr
        asked = {rights_for(target) for _, target, _ in kube.requests}
    assert asked == allowed


def rights_for(target):
    """What a Role must have for a GET of this."""
    path = target.partition("?")[0].removeprefix("/api/v1").removeprefix("/apis/")
    group, _, rest = path.partition("/namespaces/ml/")
    parts = rest.split("/")
    if len(parts) == 3:
        return group.partition("/")[0], f"{parts[0]}/{parts[2]}", "get"
    return group.partition("/")[0], parts[0], "list"


def test_lint_sees_the_fleet_that_is_written_here():
    """Clean, not overlooked: without its publisher the engine is complained of."""
    text = text_of(SETS["sglang"]).replace('"publisher":"zmq",', "")
    done = run_fathom("lint", "--format", "json", "-", stdin=text)
    assert [finding["id"] for finding in json.loads(done.stdout)["findings"]] == ["publisher-off"]
