"""deploy/helm/fathom: what it renders is a fleet whose parts fit together, and what would be wrong is refused.

Rendered by chart/helm_chart.py, since Debian has no Helm; where there is one, both have to say the same.
"""

import json
import re
import shutil
import subprocess

import jsonschema
import pytest
import yaml

pytest.register_assert_rewrite("chart.deployed_fleet")

from chart.deployed_fleet import DeployedFleet, selects
from chart.go_template import TemplateError
from chart.helm_chart import HelmChart
from conftest import ROOT, run_fathom
from docs_pages import blocks, simple_commands

FOLDER = ROOT / "deploy/helm/fathom"
CHART = HelmChart(FOLDER, {"secrets": {"adminKey": "admin"}})
OPEN = {"secrets": {"adminKey": ""}, "admin": {"open": True}}
ENGINES = ["vllm", "sglang", "tensorrt-llm"]
SWITCHES = ["serviceMonitor", "prometheusRule", "doctor", "networkPolicy", "podDisruptionBudget"]
# Options that the chart sets itself, or that are secrets.
NOT_IN_CONFIG = {"host", "port", "admin-listen", "config", "print-config", "worker-urls", "model-path",
                 "drain-timeout", "api-key", "admin-key", "api-keys-file", "kv-cache-block-size", "admin-key-file",
                 "open-admin", "admin-tls-cert", "admin-tls-key", "kv-events-bind-key",
                 "replicas", "replica-listen", "replica-group", "replica-id", "replica-key-file", "replica-open"}

# What each rendering is made of: files and maps, one above the other.
EVERYTHING = {**{switch: {"enabled": True} for switch in SWITCHES},
              "secrets": {"adminKey": "admin", "apiKeys": "clients"},
              "imagePullSecrets": [{"name": "pull"}], "podAnnotations": {"a/b": "c"},
              "nodeSelector": {"disk": "fast"}, "service": {"annotations": {"a": "b"}, "port": 80},
              "tolerations": [{"key": "a", "operator": "Exists"}],
              "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
              "engine": {"nodeSelector": {"gpu": "h200"}, "tensorParallelSize": 2}}
RANKS = {"engine": {"dataParallelSize": 8}}
# Workers that want a key and have a certificate of their own, and a router that has one.
TLS = {"config": {"tls-cert": "/etc/fathom-tls/tls.crt", "tls-key": "/etc/fathom-tls/tls.key"},
       "workers": [{"url": "https://10.0.0.3:8443", "api_key_env": "GPU_3_KEY", "ca_file": "/etc/ca/ca.crt"}],
       "extraEnv": [{"name": "GPU_3_KEY", "valueFrom": {"secretKeyRef": {"name": "workers", "key": "gpu-3"}}}],
       "extraVolumes": [{"name": "tls", "secret": {"secretName": "fathom-tls"}},
                        {"name": "ca", "configMap": {"name": "ca"}}],
       "extraVolumeMounts": [{"name": "tls", "mountPath": "/etc/fathom-tls", "readOnly": True},
                             {"name": "ca", "mountPath": "/etc/ca", "readOnly": True}]}
ALONE = {"engine": {"kind": "none"}, "model": {"claim": ""}}
SETS = {"by default": []}
for engine in ENGINES:
    SETS[engine] = [FOLDER / f"values-{engine}.yaml"]
    SETS[f"{engine}, everything"] = [FOLDER / f"values-{engine}.yaml", EVERYTHING]
SETS["vllm, eight ranks"] = [FOLDER / "values-vllm.yaml", EVERYTHING, RANKS]
SETS["sglang, eight ranks"] = [FOLDER / "values-sglang.yaml", EVERYTHING, RANKS]
SETS["only a router, keys and TLS"] = [ALONE, TLS]
SETS["only a router, everything, keys and TLS"] = [EVERYTHING, ALONE, TLS]
SETS["open admin routes"] = [OPEN]
SETS["links to the pages"] = [{"prometheusRule": {"enabled": True, "docsUrl": "https://docs.example.com/fathom/"}}]
SETS["vllm, by DNS"] = [{"discovery": "dns"}]
SHARED = {"secrets": {"adminKey": "fathom", "replicaKey": "fathom-replicas"}}
SETS["vllm, everything, a group"] = [EVERYTHING, SHARED]
SETS["vllm, everything, a group through NATS"] = [EVERYTHING, SHARED, {"replicaGroup": {"nats": "nats://nats.nats.svc"}}]
SETS["vllm, further flags"] = [{"engine": {"extraArgs": ["--max-model-len=8192"]}}]


@pytest.mark.parametrize("name", SETS)
def test_what_is_rendered_fits_together(name, tmp_path):
    DeployedFleet(CHART.manifest(*SETS[name])).judge(tmp_path)


def test_everything_can_be_switched_on_and_off():
    kinds = {each["kind"] for each in CHART.objects(EVERYTHING, {"autoscaling": {"enabled": True}})}
    off = {switch: {"enabled": False} for switch in [*SWITCHES, "autoscaling"]} | {"discovery": "dns"}
    optional = {"ServiceMonitor", "PrometheusRule", "Role", "RoleBinding", "CronJob", "NetworkPolicy",
                "PodDisruptionBudget", "HorizontalPodAutoscaler"}
    assert optional <= kinds
    assert {each["kind"] for each in CHART.objects(off)} == kinds - optional


def test_the_same_fleet_as_the_manifests_have():
    """The engines' flags, the Role and the probes are written twice; they are the same."""
    for engine in ENGINES:
        rendered = DeployedFleet(CHART.manifest(FOLDER / f"values-{engine}.yaml", EVERYTHING,
                                                {"engine": {"tensorParallelSize": 1}}))
        names = ["fathom", "doctor", f"engines/{engine}"]
        texts = [(ROOT / f"deploy/kubernetes/{name}.yaml").read_text() for name in names]
        manifest = DeployedFleet("\n---\n".join(texts))
        assert set(manifest.engines[0].command) <= set(rendered.engines[0].command)
        assert manifest.engines[0].container["image"] == rendered.engines[0].container["image"]
        for role in ("fathom", "fathom-doctor"):
            assert manifest.named("Role", role)["rules"] == rendered.named("Role", role)["rules"]
        different = {key for key in manifest.config if manifest.config[key] != rendered.config.get(key)}
        assert different == {"workers", "drain-timeout"}  # another name, and 2m as 120s
        for pod, other in ((manifest.router, rendered.router), (manifest.engines[0], rendered.engines[0])):
            for key in ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "securityContext",
                        "ports"):
                assert pod.container[key] == other.container[key], (engine, key)
            assert pod.spec["terminationGracePeriodSeconds"] == other.spec["terminationGracePeriodSeconds"]


def test_the_alerts_are_those_of_deploy_prometheus():
    alerts = ROOT / "deploy/prometheus/fathom-alerts.yml"
    assert (FOLDER / "files/fathom-alerts.yml").read_bytes() == alerts.read_bytes(), (
        "cp deploy/prometheus/fathom-alerts.yml deploy/helm/fathom/files/")
    [rule] = [each for each in CHART.objects(EVERYTHING) if each["kind"] == "PrometheusRule"]
    assert rule["spec"] == yaml.safe_load(alerts.read_text())


def test_alerts_have_links_where_the_pages_are_served():
    [rule] = [each for each in CHART.objects(*SETS["links to the pages"]) if each["kind"] == "PrometheusRule"]
    notes = [each["annotations"] for group in rule["spec"]["groups"] for each in group["rules"]]
    assert notes and all("runbook" not in each for each in notes)
    pages = {each["runbook_url"].removeprefix("https://docs.example.com/fathom/") for each in notes}
    assert all((ROOT / "docs" / page).exists() for page in pages), pages


def test_keys_and_files_of_the_operator_reach_the_router():
    router = DeployedFleet(CHART.manifest(*SETS["only a router, everything, keys and TLS"])).router
    assert {each["name"] for each in router.container["env"]} == {"FATHOM_ADMIN_KEY", "GPU_3_KEY"}
    mounted = {each["mountPath"] for each in router.container["volumeMounts"]}
    assert {"/etc/fathom-tls", "/etc/ca"} <= mounted
    assert router.container["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_the_notes_say_that_the_admin_pages_are_open_if_they_are():
    def notes(*values):
        return CHART.render(*values)["NOTES.txt"]
    assert "no admin key" in notes(OPEN) and "create secret generic" in notes(OPEN)
    assert "no admin key" not in notes(EVERYTHING) and "Authorization: Bearer" in notes(EVERYTHING)
    assert "https://fathom.llm.svc:8000/v1" in notes(ALONE, TLS) and "http://fathom.llm" in notes()


def test_a_router_alone_has_the_workers_that_are_named(tmp_path):
    workers = ["dns+http://vllm-pods.ml.svc:8000",
               {"url": "https://10.0.0.2:8000", "kv_events": "tcp://10.0.0.2:5557"}]
    values = {"engine": {"kind": "none"}, "model": {"claim": ""}, "workers": workers,
              "networkPolicy": {"enabled": True}}
    fleet = DeployedFleet(CHART.manifest(values))
    fleet.judge(tmp_path)
    assert fleet.engines == [] and fleet.config["workers"] == workers and "model-path" not in fleet.config


def test_pods_are_new_when_their_configuration_is():
    def checksum(*values):
        return DeployedFleet(CHART.manifest(*values)).router.owner["spec"]["template"]["metadata"]["annotations"]
    assert checksum() == checksum() != checksum({"config": {"router-temperature": 0.5}})


def test_the_version_is_the_one_of_the_program():
    assert CHART.about["appVersion"] == run_fathom("version").stdout.split()[1]


# --- what is refused


@pytest.mark.parametrize("values, said", [
    ({"replcias": 3}, "replcias"),
    ({"config": {"kv-cache-block-size": 16}}, "kv-cache-block-size"),
    ({"kvCacheBlockSize": 32}, "kvCacheBlockSize"),
    ({"engine": {"blockSize": 16}}, "blockSize"),
    ({"config": {"max-in-fligth": 5}}, "max-in-fligth"),
    ({"config": {"admin-key": "s3cret"}}, "admin-key"),
    ({"engine": {"kind": "trtllm"}}, "trtllm"),
    ({"engine": {"dataParallelSize": 101}}, "101"),
    ({"replicas": "2"}, "integer"),
    ({"workers": ["vllm:8000"]}, "vllm:8000"),
    ({"admin": {"port": 8000}}, "8000"),
    ({"extraEnv": ["GPU_3_KEY=s3cret"]}, "GPU_3_KEY"),
    ({"extraVolumes": {"name": "tls"}}, "array"),
    ({"prometheusRule": {"docsUrl": "docs"}}, "docsUrl|docs"),
    ({"replicaGroup": {"name": "a group"}}, "a group"),
    ({"replicaGroup": {"name": "a" * 64}}, "aaa"),
    ({"replicaGroup": {"peers": ["b-peers.llm.svc:5600"]}}, "b-peers"),
    ({"replicaGroup": {"peers": ["dns+zmq://b-peers.llm.svc"]}}, "b-peers"),
    ({"networkPolicy": {"routers": [{"namespace": "other"}]}}, "namespace"),
])
def test_the_schema_refuses_what_is_wrong(values, said):
    with pytest.raises(jsonschema.ValidationError, match=said):
        CHART.values(values)


@pytest.mark.parametrize("values, said", [
    ({"engine": {"kind": "tensorrt-llm"}, "replicas": 2}, "routers have to share them"),
    ({"engine": {"kind": "tensorrt-llm"}, "autoscaling": {"enabled": True}}, "routers have to share them"),
    ({"engine": {"kind": "tensorrt-llm"}, "model": {"claim": ""}}, "no page that tokenizes"),
    ({"engine": {"kind": "tensorrt-llm", "dataParallelSize": 2}}, "dataParallelSize"),
    ({"engine": {"kind": "none"}}, "nothing to route to"),
    ({"secrets": {"adminKey": ""}}, "any pod could add and remove workers"),
    ({"model": {"claim": ""}}, "model.claim"),
    ({"replicaGroup": {"name": "llm", "nats": "nats://nats:4222"}}, "only with a key"),
    ({**SHARED, "replicaGroup": {"peers": ["dns+zmq://b-peers.llm.svc:5600"]}}, "need one name"),
    ({**SHARED, "replicaGroup": {"name": "llm"}}, "would not be found"),
    ({**SHARED, "replicaGroup": {"name": "llm", "peers": ["zmq://b:5600"], "nats": "nats://nats:4222"}}, "through NATS"),
])
def test_the_chart_refuses_what_would_fail_silently(values, said):
    with pytest.raises(TemplateError, match=said):
        CHART.manifest(values)


POLLED = {"engine": {"kind": "tensorrt-llm"}}
UNKNOWN = {**ALONE, "workers": ["dns+http://pods.ml.svc:8000"]}


def router_of(*values):
    return DeployedFleet(CHART.manifest(*values)).router.owner["spec"]


def test_there_is_one_router_where_events_are_or_may_be_polled():
    assert [router_of(values)["replicas"] for values in (POLLED, UNKNOWN, {})] == [1, 1, 2]
    assert router_of(UNKNOWN, {"replicas": 2})["replicas"] == 2


def test_routers_that_share_are_several_for_every_engine():
    before = {"maxSurge": 1, "maxUnavailable": 0}
    for values in (POLLED, UNKNOWN, {}):
        router = router_of(values, SHARED)
        assert router["replicas"] == 2 and router["strategy"]["rollingUpdate"] == before
    assert "replicas" not in router_of(POLLED, SHARED, {"autoscaling": {"enabled": True}})


def test_routers_that_share_find_each_other():
    fleet = DeployedFleet(CHART.manifest(SHARED, {"networkPolicy": {"enabled": True}}))
    [peers] = [each for each in fleet.all("Service") if each["metadata"]["name"].endswith("-peers")]
    name = f'{peers["metadata"]["name"]}.{peers["metadata"]["namespace"]}.svc'
    [port] = peers["spec"]["ports"]
    assert fleet.config["replicas"] == f'dns+zmq://{name}:{port["port"]}'
    assert fleet.config["replica-listen"] == f'0.0.0.0:{fleet.router.ports["replicas"]}'
    assert peers["spec"]["publishNotReadyAddresses"] is True and fleet.config["ready-when"] == "informed"
    through = DeployedFleet(CHART.manifest(SHARED, {"replicaGroup": {"nats": "nats://nats.nats.svc:4222"}}))
    assert through.config["replicas"] == "nats://nats.nats.svc:4222" and "replica-listen" not in through.config


# --- several releases are one group


def group_in_the_readme():
    """The example: the releases by name, and the Service of their address."""
    text = (FOLDER.parent / "README.md").read_text()
    [values, commands, address] = blocks(text[text.index("## One group of several releases"):])
    releases = {}
    for _, words in simple_commands(commands.text):
        if words[:2] != ["helm", "install"]:
            continue
        sets = dict(words[at + 1].split("=") for at, word in enumerate(words) if word == "--set")
        assert sets.keys() == {"model.folder", "config.models"} and "group.yaml" in words
        own = {"model": {"folder": sets["model.folder"]}, "config": {"models": sets["config.models"].strip("{}").split(",")}}
        releases[words[2]] = [yaml.safe_load(values.text), own]
    return releases, yaml.safe_load(address.text)


def group_of_releases(*above):
    releases, address = group_in_the_readme()
    fleets = {name: DeployedFleet(CHART.manifest(*values, *above, release=name)) for name, values in releases.items()}
    assert len(fleets) == 2
    return fleets, address


def test_several_releases_are_one_group(tmp_path):
    fleets, address = group_of_releases({"networkPolicy": {"enabled": True}, "serviceMonitor": {"enabled": True}})
    first, second = fleets.values()
    for fleet in fleets.values():
        fleet.judge(tmp_path)
    for key in ("replica-group", "replica-listen", "replica-key-file", "api-keys-file"):
        assert first.config[key] == second.config[key], key
    assert first.config["models"] != second.config["models"]
    assert first.router.spec["volumes"][-1] == second.router.spec["volumes"][-1], "the same key"
    for (name, fleet), other in zip(fleets.items(), (second, first)):
        # Each dials all routers of both, at a port where these listen.
        places = re.sub(r"dns\+zmq://", "", fleet.config["replicas"]).split(",")
        services = {f'{each["metadata"]["name"]}.llm.svc:{port["port"]}' for release in fleets.values()
                    for each in release.all("Service") for port in each["spec"]["ports"] if port["name"] == "replicas"}
        assert len(services) == 2 and set(places) == services
        # Requests are forwarded to its own Service, which no other release has behind it.
        assert fleet.config["replica-url"] == f"http://{name}.llm.svc:8000"
        [front] = [each for each in fleet.all("Service") if each["metadata"]["name"] == name]
        assert selects(front["spec"]["selector"], fleet.router.labels)
        assert not selects(front["spec"]["selector"], other.router.labels)
        # The policy of each lets the other's routers in, and its own out to them.
        spec = fleet.named("NetworkPolicy", name)["spec"]
        for rule in (spec["ingress"][-1], spec["egress"][1]):
            [peer] = rule.get("from") or rule["to"]
            assert selects(peer["podSelector"]["matchLabels"], other.router.labels)
            assert {each["port"] for each in rule["ports"]} == {8000, 5600}
        # Prometheus counts both under one job.
        [monitor] = fleet.all("ServiceMonitor")
        [scraped] = [each for each in fleet.all("Service") if each["metadata"]["name"] == f"{name}-admin"]
        assert scraped["metadata"]["labels"][monitor["spec"]["jobLabel"]] == fleet.config["replica-group"]
        # One address for clients of both.
        assert selects(address["spec"]["selector"], fleet.router.labels)
        assert address["spec"]["ports"][0]["targetPort"] in fleet.router.ports
    taken = {each["metadata"]["name"] for fleet in fleets.values() for each in fleet.all("Service")}
    assert address["metadata"]["name"] not in taken


def test_releases_without_a_name_are_groups_of_their_own():
    first, second = (DeployedFleet(CHART.manifest(SHARED, {"networkPolicy": {"enabled": True}}, release=name))
                     for name in ("fathom-a", "fathom-b"))
    assert first.config["replica-group"] == "llm.fathom-a" != second.config["replica-group"]
    assert "replica-url" not in first.config and "fathom-replica-group" not in first.router.labels
    [peer] = first.named("NetworkPolicy", "fathom-a")["spec"]["ingress"][-1]["from"]
    assert not selects(peer["podSelector"]["matchLabels"], second.router.labels)
    long = DeployedFleet(CHART.manifest(SHARED, release="a" * 50, namespace="n" * 60)).config["replica-group"]
    assert len(long) == 64


def test_a_group_of_releases_can_be_reached_otherwise():
    release = [SHARED, {"config": {"models": ["a*"]}, "networkPolicy": {"enabled": True}}]
    tls = {"config": {"tls-cert": "/tls/tls.crt", "tls-key": "/tls/tls.key"}, "service": {"port": 443}}
    assert DeployedFleet(CHART.manifest(*release, tls)).config["replica-url"] == "https://fathom.llm.svc:443"
    own = {"config": {"replica-url": "https://eu.example.com"}}
    assert DeployedFleet(CHART.manifest(*release, own)).config["replica-url"] == "https://eu.example.com"
    elsewhere = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    fleet = DeployedFleet(CHART.manifest(*release, {"networkPolicy": {"routers": [elsewhere]}}))
    spec = fleet.named("NetworkPolicy", "fathom")["spec"]
    assert elsewhere in spec["ingress"][-1]["from"] and elsewhere in spec["egress"][1]["to"]


def test_a_rollout_brings_no_second_router_where_events_are_or_may_be_polled():
    alone = {"maxSurge": 0, "maxUnavailable": 1}
    before = {"maxSurge": 1, "maxUnavailable": 0}
    wanted = [(POLLED, alone), (UNKNOWN, alone), ({**UNKNOWN, "replicas": 2}, before), ({}, before)]
    for values, strategy in wanted:
        assert router_of(values)["strategy"]["rollingUpdate"] == strategy, values
    assert router_of({}, {"replicas": 1})["strategy"]["rollingUpdate"] == before
    # What the manifest tells to patch is the same.
    for page in ("fathom.yaml", "README.md"):
        text = (ROOT / "deploy/kubernetes" / page).read_text()
        [patch] = re.findall(r"patch deployment fathom -p '(.*)'", text)
        assert json.loads(patch)["spec"]["strategy"]["rollingUpdate"] == alone, page


# --- the schema itself


def objects_in(schema):
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects_in(part)
    if isinstance(schema, list):
        for part in schema:
            yield from objects_in(part)


def test_the_schema_is_strict_and_knows_every_value():
    jsonschema.Draft7Validator.check_schema(CHART.schema)
    closed = [each for each in objects_in(CHART.schema) if "properties" in each]
    assert len(closed) > 10 and all(each["additionalProperties"] is False for each in closed)
    assert CHART.schema["properties"].keys() - CHART.values().keys() == {"global", "replicas"}


def test_the_options_in_config_are_those_of_the_binary():
    printed = run_fathom("serve", "--print-config").stdout.splitlines()
    options = {line.split()[0] for line in printed if line and not line.startswith((" ", "workers"))}
    assert CHART.schema["properties"]["config"]["properties"].keys() == options - NOT_IN_CONFIG, (
        "an option came or went: values.schema.json has to know it, under config")


# --- Helm itself


def helm(*args):
    program = shutil.which("helm")
    if not program:
        pytest.skip("helm is not installed: the chart was rendered by chart/helm_chart.py alone")
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def by_name(objects):
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def test_helm_lint_has_no_complaints():
    for engine in ENGINES:
        helm("lint", "--strict", FOLDER, "-f", FOLDER / f"values-{engine}.yaml")


@pytest.mark.parametrize("name", SETS)
def test_helm_renders_the_same(name, tmp_path):
    files = []
    for number, layer in enumerate(SETS[name]):
        path = layer if not isinstance(layer, dict) else tmp_path / f"{number}.json"
        if isinstance(layer, dict):
            path.write_text(json.dumps(layer))
        files += ["-f", path]
    text = helm("template", "fathom", FOLDER, "-n", "llm", "--kube-version", "1.30.0", *files)
    theirs = [each for each in yaml.safe_load_all(text) if each]
    assert by_name(CHART.objects(*SETS[name])) == by_name(theirs)
