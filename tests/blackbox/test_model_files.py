"""The router finds the files of its models by itself, where the operator keeps them and nowhere else."""

import json
from pathlib import Path

import pytest

import wire
from choices import QUICK, decision_of, follow
from fake_engine import FakeEngine, whole_answer
from model_fleet import ROUTER, Conversation
from model_hub import cache_with, folder_with, small_files
from wire import eventually

MODEL = "org/tiny"


@pytest.fixture
def env(tmp_path):
    """A machine with a home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "HF_HOME": str(home / "hf")}


def cache_of(env):
    return Path(env["HF_HOME"]) / "hub"


def engines(world, kind, files, count=2, **options):
    size = {"vllm": 16, "sglang": 16, "trtllm": 32}[kind]
    return [world.mock(**{**QUICK, "engine": kind, "block_size": size, "model": MODEL, "model_path": files, **options})
            for _ in range(count)]


def router_of(world, workers, env, *args):
    router = world.serve(*ROUTER, *args, workers=workers, env=env)
    follow(router, len(workers))
    return router


def files_of(router, model=MODEL):
    return next(entry["files"] for entry in router.health()["models"] if entry["model"] == model)


def found(router, model=MODEL):
    eventually(lambda: files_of(router, model), "files are found")
    return files_of(router, model)


def test_the_setting_of_the_seeds_with_a_cache(world, tmp_path, env):
    """TensorRT-LLM, chats, nothing configured."""
    workers = engines(world, "trtllm", folder_with(tmp_path / "engine"))
    snapshot = cache_with(cache_of(env), MODEL)
    router = router_of(world, workers, env)
    files = found(router)
    assert files == {"origin": "found", "path": str(snapshot), "found_by": "HF cache", "usable": True, "problem": None}
    log = router.log_text()
    assert log.count("The router tokenizes prompts") == 1 and str(snapshot) in log and "files=found" in log
    conversation = Conversation(router, workers, model=MODEL)
    first = conversation.ask("How deep is the water?")
    assert decision_of(router, first)["tokens_from"] == "files"
    for turn in range(3):
        answer = conversation.ask(f"And at buoy {turn}?")
        assert decision_of(router, answer)["tokens_from"] == "files"
        assert int(answer.header("x-fathom-cached-tokens")) > 1000
        assert answer.worker == first.worker
    assert router.health()["status"] == "ok"


def test_files_are_shown_to_operators_only(world, tmp_path, env):
    [worker] = engines(world, "vllm", folder_with(tmp_path / "engine"), count=1)
    cache_with(cache_of(env), MODEL)
    router = world.serve(*ROUTER, "--admin-key", "secret", workers=[worker], env=env, ready=0)
    eventually(lambda: "The router tokenizes prompts" in router.log_text(), "files are found")
    assert "files" not in router.get("/health").json()["models"][0]


def test_what_is_not_there_at_first_is_looked_for_when_a_worker_joins(world, tmp_path, env):
    files = folder_with(tmp_path / "engine")
    [worker] = engines(world, "trtllm", files, count=1)
    router = router_of(world, [worker], env)
    for _ in range(3):
        assert router.chat(model=MODEL).status == 200
    assert files_of(router) is None
    cache_with(cache_of(env), MODEL)
    [second] = engines(world, "trtllm", files, count=1)
    assert wire.ask(router.port, "POST", "/workers", {"url": second.url}).status in (200, 201, 202)
    assert found(router)["origin"] == "found"


def test_a_search_can_be_turned_off(world, tmp_path, env):
    [worker] = engines(world, "trtllm", folder_with(tmp_path / "engine"), count=1)
    cache_with(cache_of(env), MODEL)
    router = router_of(world, [worker], env, "--no-find-model-files")
    assert router.chat(model=MODEL).status == 200
    found(router_of(world, [worker], env))  # which had less time for it
    assert files_of(router) is None


def test_what_the_operator_names_counts_first(world, tmp_path, env):
    files = folder_with(tmp_path / "engine")
    [worker] = engines(world, "vllm", files, count=1)
    cache_with(cache_of(env), MODEL)
    router = router_of(world, [worker], env, "--model-path", f"{MODEL}={files}")
    assert (files_of(router)["origin"], files_of(router)["path"]) == ("named", str(files))
    for_all = router_of(world, [worker], env, "--model-path", files)
    assert (files_of(for_all)["origin"], files_of(for_all)["path"]) == ("named", str(files))


@pytest.mark.parametrize("place", [MODEL, "tiny", "cache"])
def test_mounted_folders_are_searched(world, tmp_path, env, place):
    [worker] = engines(world, "trtllm", folder_with(tmp_path / "engine"), count=1)
    root = tmp_path / "models"
    folder = cache_with(root, MODEL) if place == "cache" else folder_with(root / place)
    router = router_of(world, [worker], env, "--model-root", f"{tmp_path / 'none'},{root}")
    assert (found(router)["path"], found(router)["found_by"]) == (str(folder), "--model-root")


def test_adapters_have_the_files_of_their_base(world, tmp_path, env):
    [worker] = engines(world, "vllm", folder_with(tmp_path / "engine"), count=1, lora="pilot")
    cache_with(cache_of(env), MODEL)
    router = router_of(world, [worker], env)
    assert found(router, "pilot") == found(router)
    # Found files are used once the engine has shown that it agrees.
    eventually(lambda: decision_of(router, router.chat(model="pilot"))["tokens_from"] == "files", "files are used")


# --- what workers report


class Reporting(FakeEngine):
    """An engine that reports where its model is."""

    def __init__(self, model, root, tokenizer_path=None):
        self.root = root
        self.tokenizer_path = tokenizer_path
        super().__init__(lambda request, connection: connection.sendall(whole_answer("{}")), model=model)

    def _page(self, target):
        if target == "/v1/models":
            card = {"id": self.model, "object": "model", "root": self.root}
            return whole_answer(json.dumps({"object": "list", "data": [card]}))
        if target.startswith("/server_info") and self.tokenizer_path:
            return whole_answer(json.dumps({"page_size": 1, "max_total_num_tokens": 4096, "dp_size": 1,
                                            "model_path": self.root, "tokenizer_path": self.tokenizer_path}))
        return whole_answer("{}", "404 Not Found") if "_info" in target or "metrics" in target else whole_answer("{}")


@pytest.fixture
def reporting():
    started = []

    def start(*args, **options):
        started.append(Reporting(*args, **options))
        return started[-1]

    yield start
    for engine in started:
        engine.stop()


def test_the_path_that_an_engine_reports_is_used_below_a_root(world, tmp_path, env, reporting):
    folder = folder_with(tmp_path / "models/deep/down")
    alias = reporting("alias", str(folder))
    hub_name = reporting("other", "some/where", "org/tiny")
    snapshot = cache_with(cache_of(env), MODEL)
    router = world.serve(*ROUTER, "--model-root", tmp_path / "models", "--block-size-wait", "1s",
                         workers=[alias.url, hub_name.url], env=env)
    assert (found(router, "alias")["path"], found(router, "alias")["found_by"]) == (str(folder), "path of the engine")
    assert found(router, "other")["path"] == str(snapshot)


def test_a_worker_does_not_choose_what_is_read(world, tmp_path, env, reporting):
    outside = folder_with(tmp_path / "outside")
    root = tmp_path / "models"
    fine = folder_with(root / "fine")
    (root / "linked").symlink_to(outside)
    (root / "partly").mkdir()
    for name in small_files():
        (root / "partly" / name).symlink_to(outside / name)
    paths = {"absolute": str(outside), "etc": "/etc", "dots": f"{root}/../outside", "linked": str(root / "linked"),
             "partly": str(root / "partly"), "relative": "../outside", "nul": f"{fine}\0x", "long": "/" + "a" * 4000,
             "../../outside": "", "..": "..", "x/../../outside": "."}
    workers = [reporting(name, path) for name, path in paths.items()]
    workers.append(reporting("last", str(fine)))
    router = world.serve(*ROUTER, "--model-root", root, "--block-size-wait", "1s",
                         workers=[worker.url for worker in workers], env=env)
    assert found(router, "last")["path"] == str(fine)
    eventually(lambda: "cannot be used" in router.log_text(), "the unreadable folder is reported")
    shown = {name: files_of(router, name) for name in paths}
    partly = shown.pop("partly")
    assert partly["usable"] is False and "not below a --model-root" in partly["problem"]
    assert shown == dict.fromkeys(shown)
    assert router.log_text().count("cannot be used") == 1


def test_files_that_cannot_be_used_are_reported(world, tmp_path, env):
    [worker] = engines(world, "vllm", folder_with(tmp_path / "engine"), count=1)
    cache_with(cache_of(env), MODEL, {**small_files(), "tokenizer.json": b"{"})
    router = router_of(world, [worker], env)
    files = found(router)
    assert files["usable"] is False and "tokenizer.json" in files["problem"]
    eventually(lambda: "Files of this model were found and cannot be used" in router.log_text(), "it is logged")
    answer = router.chat(model=MODEL)
    assert decision_of(router, answer)["tokens_from"] == "engine"
