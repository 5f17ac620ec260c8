"""The compose files: their form, their settings, and that of the mock engines at work."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

import wire
from conftest import ROOT, run_fathom
from wire import eventually

FOLDER = ROOT / "deploy/compose"
ENGINES = ["vllm", "sglang", "tensorrt-llm"]
EXAMPLES = [*ENGINES, "mock"]


def services(name):
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text())["services"]


def engines(name):
    return {key: service for key, service in services(name).items() if key != "fathom"}


def options(service):
    """--name=value as a map; what is none of that is left out."""
    flags = [word[2:].partition("=") for word in service["command"] if word.startswith("--")]
    return {name: value for name, _, value in flags}


def compose_config(text, folder):
    (folder / "compose.yaml").write_text(text)
    return subprocess.run(["docker-compose", "-f", folder / "compose.yaml", "config", "-q"], text=True,
                          env={**os.environ, "MODELS": "/srv/models", "FATHOM_ADMIN_KEY": "boss"}, capture_output=True,
                          timeout=wire.PATIENCE, check=False)


needs_compose = pytest.mark.skipif(not shutil.which("docker-compose"), reason="no docker-compose here")


@needs_compose
@pytest.mark.parametrize("name", EXAMPLES)
def test_compose_accepts_it(name, tmp_path):
    result = compose_config((FOLDER / f"{name}.yaml").read_text(), tmp_path)
    assert result.returncode == 0, result.stderr


@needs_compose
def test_compose_would_refuse_a_key_that_it_does_not_know(tmp_path):
    text = (FOLDER / "mock.yaml").read_text().replace("cap_drop", "cap_drops", 1)
    assert "cap_drops" in compose_config(text, tmp_path).stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_linter_has_no_findings(name):
    result = run_fathom("lint", FOLDER / f"{name}.yaml")
    assert result.returncode == 0, result.stdout + result.stderr


# One setting of an engine taken out, and the finding that this must give.
@pytest.mark.parametrize("name,setting,finding", [
    ("vllm", r".*--kv-events-config=.*\n", "publisher-off"),
    ("vllm", r',"replay_endpoint":"[^"]*"', "replay-missing"),
    ("sglang", r'"publisher":"zmq",', "publisher-off"),
    ("sglang", r".*--page-size=.*\n", "page-size-one"),
    ("tensorrt-llm", r".*event_buffer_max_size.*\n", "event-buffer-off"),
])
def test_the_linter_sees_the_settings_of_the_engines(name, setting, finding, tmp_path):
    for file in FOLDER.glob(f"{name}*.yaml"):
        (tmp_path / file.name).write_text(re.sub(setting, "", file.read_text()))
    assert f"[{finding}]" in run_fathom("lint", tmp_path).stdout


def variables(service):
    """What compose would set, where the operator has set what it asks for."""
    return {name: re.sub(r"\$\{(\w+):\?.*\}", r"value of \1", value)
            for name, value in service.get("environment", {}).items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_router_s_settings_are_known_to_the_binary(name):
    router = services(name)["fathom"]
    settings = run_fathom(*router["command"], "--print-config", env=variables(router))
    assert settings.returncode == 0, settings.stderr
    assert ("FATHOM_ADMIN_KEY" in variables(router)) == (name != "mock"), "the engines reach the admin port"
    assert re.search(r"^kv-cache-block-size +0 +default", settings.stdout, re.MULTILINE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_router_s_workers_are_the_engines(name):
    urls = options(services(name)["fathom"])["worker-urls"].split(",")
    assert urls == [f"http://{key}:{options(engine)['port']}" for key, engine in engines(name).items()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_block_size_is_set_and_it_is_said_where_it_comes_from(name):
    text = (FOLDER / f"{name}.yaml").read_text()
    assert not re.search(r"block-size|BLOCK_SIZE|tokens_per_block", text)
    assert "Fathom finds it out from the workers." in text
    # SGLang's pages have a number; the note stands above each.
    note = r"\(defaults: vLLM 16, TensorRT-LLM 32,[\s#]+SGLang 1\)\.\n"
    assert text.count("--page-size") == len(re.findall(note + r" +- --page-size=", text))


@pytest.mark.parametrize("name", ENGINES)
def test_a_router_is_given_the_model_that_its_engines_serve(name):
    model = options(services(name)["fathom"])["model-path"]
    for engine in engines(name).values():
        assert model in (engine["command"][0], options(engine).get("model-path"))
        assert set(services(name)["fathom"]["volumes"]) <= set(engine["volumes"])


@pytest.mark.parametrize("name", ENGINES)
def test_each_engine_has_a_gpu_of_its_own(name):
    devices = [engine["deploy"]["resources"]["reservations"]["devices"] for engine in engines(name).values()]
    ids = [number for device in devices for number in device[0]["device_ids"]]
    assert len(ids) == len(set(ids)) == 2


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_the_ports_of_eight_ranks_do_not_collide(name):
    for engine in engines(name).values():
        config = json.loads(options(engine)["kv-events-config"])
        firsts = [re.fullmatch(r"tcp://\*:(\d+)", config[key]).group(1)
                  for key in ("endpoint", "replay_endpoint")]
        ports = [int(first) + rank for first in firsts for rank in range(8)]
        ports.append(int(options(engine)["port"]))
        assert len(ports) == len(set(ports))


def test_tensorrt_llm_has_one_router_and_the_options_file_that_it_names():
    assert "replicas" not in str(services("tensorrt-llm")["fathom"])
    for engine in engines("tensorrt-llm").values():
        file = options(engine)["extra_llm_api_options"]
        assert f"./tensorrt-llm-options.yaml:{file}:ro" in engine["volumes"]
    cache = yaml.safe_load((FOLDER / "tensorrt-llm-options.yaml").read_text())["kv_cache_config"]
    assert cache["enable_block_reuse"] is True and cache["event_buffer_max_size"] > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_router_has_time_to_drain_and_the_image_of_this_version(name):
    router = services(name)["fathom"]
    assert router["image"] == "fathom:" + run_fathom("version").stdout.split()[1]
    settings = run_fathom(*router["command"], "--print-config", env=variables(router)).stdout
    drain = re.search(r"^drain-timeout +(\d+)s ", settings, re.MULTILINE).group(1)
    assert int(router["stop_grace_period"].removesuffix("s")) > int(drain)


def test_the_image_of_the_mock_example_is_built_by_our_dockerfile():
    build = services("mock")["fathom"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == ROOT / "deploy/docker/Dockerfile"


class Composed:
    """The commands of mock.yaml as processes: names are 127.0.0.1, and ports are free ones."""

    def __init__(self, world):
        self.world = world
        self.services = services("mock")
        self.addresses = {}

    def start(self, name):
        command = [word.replace("0.0.0.0", "127.0.0.1") for word in self.services[name]["command"]]
        ports = {port: wire.free_port() for port in ("8000", "8001", "5557", "5657")}
        self.addresses[f"{name}:8000"] = f"127.0.0.1:{ports['8000']}"
        for named, address in self.addresses.items():
            command = [word.replace(f"//{named}", f"//{address}") for word in command]
        flag = re.compile(r"^(--[\w-]*port=|--admin-listen=127\.0\.0\.1:)(\d+)$")
        command = [flag.sub(lambda m: m[1] + str(ports[m[2]]), word) for word in command]
        if name == "fathom":  # the one port that it takes by default
            command.append(f"--port={ports['8000']}")
        process = self.world.start(*command)
        process.wait_for_port()
        return process


def health_check(port):
    """The command of the mock example, with the binary in place of the image's; all routers have the same."""
    tests = {tuple(services(name)["fathom"]["healthcheck"]["test"]) for name in EXAMPLES}
    image = json.loads((ROOT / "deploy/image/config.json").read_text())
    assert tests == {("CMD", *image["Entrypoint"], "ready")} == {tuple(image["Healthcheck"]["Test"])}
    return run_fathom("ready", env={"FATHOM_PORT": str(port)}).returncode == 0


def test_the_check_of_the_image_is_not_for_engines():
    for engine in engines("mock").values():
        assert engine["healthcheck"] == {"disable": True}


def test_the_mock_example_finds_a_follow_up_in_the_cache(world):
    composed = Composed(world)
    mocks = [composed.start(name) for name in composed.services if name != "fathom"]
    router = composed.start("fathom")
    eventually(lambda: health_check(router.port), "the health check says yes")
    assert router.health()["workers_ready"] == len(mocks) == 4

    chat = [{"role": "user", "content": "Tell me about the sea."}]
    first = router.chat(messages=chat, model="mock-model")
    assert first.status == 200
    chat.append(first.json()["choices"][0]["message"])
    chat.append({"role": "user", "content": "And what about the shore, the harbour and its lighthouse?"})

    def found():
        answer = router.chat(messages=chat, model="mock-model")
        assert answer.status == 200
        return int(answer.header("x-fathom-cached-tokens", "0")) > 0 and answer.worker == first.worker
    eventually(found, "the follow-up where its beginning is")


def test_the_health_check_says_no_while_nobody_can_be_routed_to(serve):
    router = serve()
    assert not health_check(router.port)
    assert not health_check(wire.free_port())
