"""A router, its engines and what belongs to them, as Kubernetes objects: do they fit together?"""

import atexit
import functools
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from conftest import run_fathom
from docs_pages import FOREIGN
from tokenizers import Lines

NODE = Path(__file__).resolve().parents[1] / "node"

# What the engines take, by the word in a command that tells which one it is.
ENGINES = {"vllm": "vLLM", "sglang.launch_server": "SGLang", "trtllm-serve": "TensorRT-LLM"}
ENGINE_FLAGS = {word: set(FOREIGN["flags"][name]) for word, name in ENGINES.items()}
HEARD_BY_ALL = 10  # seconds; the API server may be busy
READ_BY_ROUTER = {(group, resource, verb) for group, resource in (("discovery.k8s.io", "endpointslices"), ("", "pods"), ("", "services"))
                  for verb in ("list", "watch")}
DNS_CACHED = 30  # CoreDNS and NodeLocal DNSCache, in seconds
BLOCK_SIZES = re.compile(r"kv[-_]cache[-_]block[-_]size|--block-size|tokens_per_block|page[-_]size", re.I)
UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@functools.cache
def schemas():
    lines = Lines("node", NODE / "kubernetes.mjs")
    atexit.register(lines.close)
    return lines


def schema_problems(objects):
    """For each object what the published schemas say against it."""
    return schemas().ask(objects)


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]iB?)?", str(text)).groups()
    return int(number) * UNITS[unit or ""]


def seconds_of(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def selects(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


def flags_of(args):
    """{flag: value}; what is no flag comes first and is left out."""
    pairs = [arg.partition("=") for arg in args if arg.startswith("--")]
    return {flag: value for flag, _, value in pairs}


def ports_within(policy_ports):
    ranges = [(entry["port"], entry.get("endPort", entry["port"])) for entry in policy_ports]
    return lambda port: any(first <= port <= last for first, last in ranges)


class Pod:
    def __init__(self, owner, template):
        self.owner = owner
        self.name = owner["metadata"]["name"]
        self.labels = template["metadata"]["labels"]
        self.spec = template["spec"]
        [self.container] = self.spec["containers"]
        self.command = [*self.container["command"], *self.container.get("args", [])]
        self.ports = {port["name"]: port["containerPort"] for port in self.container.get("ports", [])}

    def port(self, name_or_number):
        return self.ports.get(name_or_number, name_or_number)

    def mounted_file(self, fleet, path):
        """The text that a ConfigMap of the fleet shows at that path."""
        for mount in self.container["volumeMounts"]:
            [volume] = [each for each in self.spec["volumes"] if each["name"] == mount["name"]]
            folder, _, name = path.rpartition("/")
            if "configMap" in volume and mount["mountPath"] == folder:
                return fleet.named("ConfigMap", volume["configMap"]["name"])["data"][name]
        raise AssertionError(f"nothing is mounted at {path}")


class DeployedFleet:
    def __init__(self, text):
        self.text = text
        self.objects = [each for each in yaml.safe_load_all(text) if each]
        pods = [Pod(each, each["spec"]["template"]) for each in self.all("Deployment")]
        [self.router] = [pod for pod in pods if pod.command[0] == "fathom"]
        self.engines = [pod for pod in pods if pod.command[0] != "fathom"]
        self.config_text = self.router.mounted_file(self, self.router.command[-1])
        self.config = yaml.safe_load(self.config_text)

    def all(self, kind):
        return [each for each in self.objects if each["kind"] == kind]

    def named(self, kind, name):
        found = [each for each in self.all(kind) if each["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} {kind}s are called {name}"
        return found[0]

    def judge(self, folder):
        """Fails with what is wrong."""
        for problems, each in zip(schema_problems(self.objects), self.objects):
            assert problems == [], (each["kind"], each["metadata"]["name"], problems)
        linted = run_fathom("lint", "-", stdin=self.text)
        assert linted.returncode == 0, linted.stdout + linted.stderr
        self.judge_block_sizes()
        self.judge_identity()
        self.judge_router(folder)
        self.judge_probes()
        self.judge_services()
        self.judge_pods()
        for engine in self.engines:
            self.judge_engine(engine)
        self.judge_policies()
        self.judge_readers()

    def judge_block_sizes(self):
        """None is set for the router; SGLang's own page has the note beside it."""
        lines = self.text.splitlines()
        for number, line in enumerate(lines):
            if not BLOCK_SIZES.search(line) or line.lstrip().startswith("#"):
                continue
            assert "--page-size" in line, f"a block size is set: {line}"
            note = " ".join(lines[max(0, number - 4):number])
            assert all(part in note for part in ("must match", "vLLM 16", "32", "SGLang 1")), note

    def judge_identity(self):
        names = [(each["kind"], each["metadata"]["name"]) for each in self.objects]
        assert len(names) == len(set(names)), "two objects have one name"
        assert {each["metadata"]["namespace"] for each in self.objects} == {"llm"}

    def judge_router(self, folder):
        """The binary takes the file and the arguments; time and memory are enough for what is set."""
        path = folder / "fathom.yaml"
        path.write_text(self.config_text)
        assert self.router.command[:3] == ["fathom", "serve", "--config"]
        variables = {each["name"]: "s3cret" for each in self.router.container.get("env", [])}
        done = run_fathom("serve", "--config", path, "--print-config", env=variables)
        assert done.returncode == 0, done.stderr
        assert re.search(r"kv-cache-block-size +0 +default", done.stdout)
        container, spec = self.router.container, self.router.spec
        assert self.config["port"] == self.router.ports["http"]
        assert self.config["admin-listen"] == f"0.0.0.0:{self.router.ports['admin']}"
        before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        drain = seconds_of(self.config["drain-timeout"])
        assert before >= 5 and spec["terminationGracePeriodSeconds"] > before + drain, "too little time to drain"
        needed = size_of(self.config["index-max-bytes"]) + size_of(self.config["max-body-memory"])
        assert needed <= 0.8 * size_of(container["resources"]["limits"]["memory"]), "too little memory"
        assert str(self.config["threads"]) == str(container["resources"]["requests"]["cpu"])

    def judge_probes(self):
        container = self.router.container
        wanted = {"startupProbe": ("/live", "admin"), "livenessProbe": ("/live", "admin"),
                  "readinessProbe": ("/ready", "http")}
        for probe, (path, port) in wanted.items():
            asked = container[probe]["httpGet"]
            assert (asked["path"], asked["port"]) == (path, port), probe
            # The admin port never speaks TLS.
            scheme = "HTTPS" if port == "http" and "tls-cert" in self.config else "HTTP"
            assert asked.get("scheme", "HTTP") == scheme, probe
        for engine in self.engines:
            for probe in wanted:
                asked = engine.container[probe]["httpGet"]
                assert asked["path"] == "/health" and asked["port"] in engine.ports

    def judge_services(self):
        pods = [self.router, *self.engines]
        for service in self.all("Service"):
            behind = [pod for pod in pods if selects(service["spec"]["selector"], pod.labels)]
            assert len(behind) == 1, f"{service['metadata']['name']} selects {len(behind)} kinds of pods"
            for port in service["spec"]["ports"]:
                assert port["targetPort"] in behind[0].ports, port
        for monitor in self.all("ServiceMonitor"):
            found = [each for each in self.all("Service")
                     if selects(monitor["spec"]["selector"]["matchLabels"], each["metadata"].get("labels", {}))]
            assert len(found) == 1, f"{len(found)} Services are scraped"
            [endpoint] = monitor["spec"]["endpoints"]
            assert endpoint["path"] == "/metrics"
            assert endpoint["port"] in {port["name"] for port in found[0]["spec"]["ports"]}
        public = [each for each in self.all("Service") if each["spec"].get("clusterIP") != "None"]
        named = [port["name"] for each in public for port in each["spec"]["ports"]]
        assert named == ["http"], f"open to clients: {named}"
        budgets = self.all("PodDisruptionBudget")
        for budget in budgets:
            assert "minAvailable" not in budget["spec"], "with one router no node could be drained"
        for pod in pods if budgets else []:
            own = [each for each in budgets if selects(each["spec"]["selector"]["matchLabels"], pod.labels)]
            assert len(own) == 1, f"{pod.name} has {len(own)} disruption budgets"

    def judge_pods(self):
        templates = [self.router, *self.engines]
        templates += [Pod(each, each["spec"]["jobTemplate"]["spec"]["template"]) for each in self.all("CronJob")]
        for pod in templates:
            assert pod.spec["enableServiceLinks"] is False, pod.name
            assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            rights = pod.container["securityContext"]
            assert rights["allowPrivilegeEscalation"] is False and rights["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in pod.container["resources"]["limits"], pod.name
            optional = [each["name"] for each in pod.container.get("env", [])
                        if each.get("valueFrom", {}).get("secretKeyRef", {}).get("optional")]
            assert optional == [], f"would start without its {optional}"
            mounts = {mount["name"] for mount in pod.container.get("volumeMounts", [])}
            assert mounts == {volume["name"] for volume in pod.spec.get("volumes", [])}, pod.name
            if pod.command[0] == "fathom":
                assert pod.spec["securityContext"]["runAsNonRoot"] and rights["readOnlyRootFilesystem"]
            asks = pod.command[1:2] == ["doctor"] or (pod is self.router and "k8s://" in self.config_text)
            assert pod.spec["automountServiceAccountToken"] is asks, f"{pod.name} and its token"

    def judge_engine(self, engine):
        """It is found by the router's URL, and every socket of every rank has a port that is let through."""
        known = next(known for word, known in ENGINE_FLAGS.items() if word in engine.command)
        flags = flags_of(engine.command)
        assert flags.keys() <= known, f"no flags of the engine: {flags.keys() - known}"
        assert int(flags["--port"]) == engine.ports["http"] and flags["--host"] == "0.0.0.0"
        self.judge_finding(engine)
        sockets = self.sockets_of(engine, flags)
        assert len(sockets) == len(set(sockets)), "two sockets want one port"
        gpus = engine.container["resources"]["limits"]["nvidia.com/gpu"]
        tensor_parallel = int(self.first(flags, "--tensor-parallel-size", "--tp-size", "--tp_size"))
        assert int(gpus) == self.ranks_of(flags) * tensor_parallel, "each rank needs its GPUs"
        self.judge_leaving(engine, flags)

    def judge_finding(self, engine):
        """The router's entry names its Service, and the router may read what it has to."""
        [url] = [url for url in self.config["workers"] if url.startswith(("k8s://", "dns+"))]
        if url.startswith("dns+"):
            host = urlsplit(url.removeprefix("dns+")).hostname.split(".")
            service = self.named("Service", host[0])
            assert host[1:] == [service["metadata"]["namespace"], "svc"]
            assert service["spec"].get("clusterIP") == "None" and selects(service["spec"]["selector"], engine.labels)
            assert urlsplit(url.removeprefix("dns+")).port == engine.ports["http"]
            return
        space, name, port = re.fullmatch(r"k8s://([^/]+)/([^:]+):(.+)", url).groups()
        service = self.named("Service", name)
        assert space == service["metadata"]["namespace"] and selects(service["spec"]["selector"], engine.labels)
        targets = {each["name"]: each["targetPort"] for each in service["spec"]["ports"]}
        assert port in targets, f"Service {name} has no port {port}"
        assert engine.ports[targets[port]] == int(flags_of(engine.command)["--port"])
        assert self.router.spec["automountServiceAccountToken"] is True, "without a token it cannot ask"
        assert self.router_rights() >= READ_BY_ROUTER, "the router's Role lacks rights"
        if self.all("NetworkPolicy"):
            ports = {each["port"] for rule in self.named("NetworkPolicy", self.router.name)["spec"].get("egress", [])
                     for each in rule["ports"] if "to" not in rule}
            assert {443, 6443} <= ports, "the policy closes the Kubernetes API"

    def router_rights(self):
        account = self.router.spec["serviceAccountName"]
        bound = [each["roleRef"]["name"] for each in self.all("RoleBinding")
                 if account in [subject["name"] for subject in each["subjects"]]]
        return {(group, resource, verb) for name in bound for rule in self.named("Role", name)["rules"]
                for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}

    def judge_leaving(self, engine, flags):
        """It serves until every router has heard that it is gone, and can finish what runs after that."""
        before = engine.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        if any(url.startswith("k8s://") for url in self.config["workers"]):
            assert before >= HEARD_BY_ALL, "it stops before every router has heard of it"
        else:
            looked_up = seconds_of(self.config.get("dns-interval", "5s"))
            assert before >= DNS_CACHED + looked_up, "it stops while caches of DNS still name it"
        finishing = int(flags.get("--shutdown-timeout", 60))
        assert engine.spec["terminationGracePeriodSeconds"] > before + finishing, "too little time to finish"

    @staticmethod
    def first(flags, *names):
        return next((flags[name] for name in names if name in flags), "1")

    def ranks_of(self, flags):
        return int(self.first(flags, "--data-parallel-size", "--dp-size"))

    def sockets_of(self, engine, flags):
        """The HTTP port, and those of events and replay of each rank."""
        if "--kv-events-config" not in flags:
            return self.polled(engine, flags)
        published = json.loads(flags["--kv-events-config"])
        assert published["publisher"] == "zmq"
        assert published.get("enable_kv_cache_events", "sglang" in str(engine.command)) is True
        sockets = [engine.ports["http"]]
        for key, port_name in (("endpoint", "kv-events"), ("replay_endpoint", "kv-replay")):
            port = int(re.fullmatch(r"tcp://\*:(\d+)", published[key]).group(1))
            assert engine.ports[port_name] == port
            sockets += range(port, port + self.ranks_of(flags))
        return sockets

    def polled(self, engine, flags):
        """TensorRT-LLM: events are kept for one reader, who has to tokenize by itself."""
        options = yaml.safe_load(engine.mounted_file(self, flags["--extra_llm_api_options"]))
        assert options["kv_cache_config"]["enable_block_reuse"] is True
        assert options["kv_cache_config"]["event_buffer_max_size"] > 0
        assert options["enable_iter_perf_stats"] is True
        alone = self.router.owner["spec"].get("replicas", 1) == 1 and not self.all("HorizontalPodAutoscaler")
        assert alone, "polled events can have one reader only"
        mounts = {mount["mountPath"]: mount["name"] for mount in self.router.container["volumeMounts"]}
        assert self.config["model-path"].startswith("/models/") and "/models" in mounts
        return [engine.ports["http"]]

    def judge_policies(self):
        """Where there are policies, they let through what has to pass, and nobody to the engines."""
        for policy in self.all("NetworkPolicy"):
            spec = policy["spec"]
            of_router = selects(spec["podSelector"]["matchLabels"], self.router.labels)
            engines = [each for each in self.engines if selects(spec["podSelector"]["matchLabels"], each.labels)]
            assert of_router != bool(engines), policy["metadata"]["name"]
            if of_router:
                self.judge_router_policy(spec)
            for engine in engines:
                [rule] = spec["ingress"]
                self.judge_passage(engine, rule)
                for peer in rule["from"]:
                    assert selects(peer["podSelector"]["matchLabels"], self.router.labels)

    def judge_router_policy(self, spec):
        assert "Ingress" in spec["policyTypes"]
        public, admin, *peers = spec["ingress"]
        assert [entry["port"] for entry in public["ports"]] == [self.router.ports["http"]]
        assert [entry["port"] for entry in admin["ports"]] == [self.router.ports["admin"]]
        for rule in peers:  # routers that share reach each other, and nobody else reaches that port
            assert [selects(peer["podSelector"]["matchLabels"], self.router.labels) for peer in rule["from"]] == [True]
            self.judge_doors_between_routers(rule)
        if "Egress" not in spec["policyTypes"]:
            return
        ways = [rule for rule in spec["egress"] if self.leads_to_routers(rule)]
        assert len(ways) == len(peers), "routers are let in and not out, or out and not in"
        for rule in ways:
            self.judge_doors_between_routers(rule)
        to_engines, *_, names = [rule for rule in spec["egress"] if not self.leads_to_routers(rule)]
        assert {entry["protocol"] for entry in names["ports"]} == {"UDP", "TCP"}
        for engine in self.engines:
            assert selects(to_engines["to"][0]["podSelector"]["matchLabels"], engine.labels)
            self.judge_passage(engine, to_engines)

    def judge_doors_between_routers(self, rule):
        """Requests are forwarded at the port for clients; what is shared has a port of its own, unless it is NATS'."""
        through_nats = str(self.config.get("replicas", "")).startswith(("nats://", "tls://"))
        doors = {self.router.ports["http"]} | (set() if through_nats else {self.router.ports.get("replicas", 5600)})
        assert {entry["port"] for entry in rule["ports"]} == doors, f"routers need {doors} of each other"

    def leads_to_routers(self, rule):
        return any(selects(peer.get("podSelector", {}).get("matchLabels", {"": ""}), self.router.labels)
                   for peer in rule.get("to", []))

    def judge_passage(self, engine, rule):
        open_to = ports_within(rule["ports"])
        closed = [port for port in self.sockets_of(engine, flags_of(engine.command)) if not open_to(port)]
        assert closed == [], f"the policy closes {closed} of {engine.name}"

    def judge_readers(self):
        """The doctor may read, and is bound to its Role."""
        for binding in self.all("RoleBinding"):
            assert self.named("Role", binding["roleRef"]["name"])
            [account] = binding["subjects"]
            assert self.named("ServiceAccount", account["name"])
            if account["name"] == self.router.spec["serviceAccountName"]:
                continue  # judge_finding looks at its rights
            [job] = self.all("CronJob")
            pod = Pod(job, job["spec"]["jobTemplate"]["spec"]["template"])
            assert pod.spec["serviceAccountName"] == account["name"]
            url = urlsplit(pod.command[-1])
            service = self.named("Service", url.hostname.split(".")[0])
            assert url.port in {port["port"] for port in service["spec"]["ports"]}
            done = run_fathom(*pod.command[1:], "--kubeconfig", "/no/such/file")
            assert done.returncode == 2, done.stderr  # it could not look; 78 would be an argument it has not
        for role in self.all("Role"):
            assert {verb for rule in role["rules"] for verb in rule["verbs"]} <= {"get", "list", "watch"}
