"""Model files are downloaded where the operator says so: into the cache of Hugging Face's tools, bounded, and with the
token sent to the hub alone."""

import json
import time
from pathlib import Path

import pytest

from conftest import run_fathom
from model_hub import COMMIT, Hub, cache_with, folder_with, small_files
from wire import eventually

NEWER = "f" * 40
NAMED = ("--model-path", "mock-model=hf:org/tiny")


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "*"}


@pytest.fixture
def hub(env):
    hub = Hub()
    env["HF_ENDPOINT"] = hub.url
    yield hub
    hub.stop()


def model_of(env):
    return Path(env["HF_HOME"]) / "hub/models--org--tiny"


def files_of(router):
    [model] = router.health()["models"]
    return model["files"]


def serve(world, env, *args):
    """With a worker that needs no files."""
    worker = world.mock()
    return world.serve(*(args or NAMED), workers=[worker], env=env)


def start(env, *args):
    return run_fathom("serve", "--port", 0, "--worker-urls", "http://127.0.0.1:1", *(args or NAMED), env=env)


def refused(env, *args):
    ended = start(env, *args)
    assert ended.returncode == 78, ended.stderr
    return ended.stderr


def test_small_files_are_downloaded_into_the_cache(world, hub, env):
    router = serve(world, env)
    snapshot = model_of(env) / "snapshots" / COMMIT
    assert files_of(router) == {"origin": "downloaded", "path": str(snapshot), "found_by": "hf:org/tiny", "usable": True,
                                "problem": None}
    assert (model_of(env) / "refs/main").read_text() == COMMIT
    for name, content in small_files().items():
        assert (snapshot / name).is_symlink() and (snapshot / name).read_bytes() == content
        assert (snapshot / name).readlink().parts[:3] == ("..", "..", "blobs")
    stored = sorted(path.name for path in model_of(env).rglob("*") if path.is_file() and not path.is_symlink())
    assert len(stored) == len(small_files()) + 1, "nothing is left of unfinished files"
    assert "of-the-store" not in stored and "of-the-pointer" not in stored
    assert set(hub.asked()) == {"config.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja",
                                "chat_template.json", "tokenizer.json"}, "no weights"
    # All of one commit.
    assert [path.split("/")[4] for path, _ in hub.requests] == ["main"] + [COMMIT] * 5
    assert "authorization" not in hub.requests[0][1]


def test_a_second_start_asks_once(world, hub, env):
    serve(world, env)
    before = len(hub.requests)
    router = serve(world, env)
    assert files_of(router)["origin"] == "downloaded"
    assert len(hub.requests) == before + 1


def test_a_commit_in_the_cache_is_not_asked_for(world, hub, env):
    named = ("--model-path", f"hf:org/tiny@{COMMIT}")
    assert files_of(serve(world, env, *named))["usable"]
    assert not (model_of(env) / "refs").exists()
    before = len(hub.requests)
    assert files_of(serve(world, env, *named))["usable"]
    assert len(hub.requests) == before


def test_a_branch_that_has_moved_is_downloaded_again(world, hub, env):
    cache_with(model_of(env).parent, "org/tiny")
    hub.commit = NEWER
    assert files_of(serve(world, env))["path"].endswith(NEWER)
    assert (model_of(env) / "refs/main").read_text() == NEWER


def test_the_token_is_for_the_hub_alone(world, hub, env):
    hub.token = "hf_secret"
    router = serve(world, {**env, "HF_TOKEN": "hf_secret"})
    assert files_of(router)["usable"]
    assert all(headers.get("authorization") == "Bearer hf_secret" for _, headers in hub.requests)
    assert hub.store.requests and all("authorization" not in headers for _, headers in hub.store.requests)
    assert "hf_secret" not in router.log_text()


def test_the_token_is_read_from_its_file(world, hub, env, tmp_path):
    hub.token = "hf_filed"
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf/token").write_text("hf_filed\n")
    assert files_of(serve(world, env))["usable"]


@pytest.mark.parametrize("token,fix", [(None, "set HF_TOKEN"), ("hf_wrong", "HF_TOKEN is not valid")])
def test_a_model_that_needs_a_token_ends_the_start(hub, env, token, fix):
    hub.token = "hf_secret"
    problem = refused({**env, **({"HF_TOKEN": token} if token else {})})
    assert "hf:org/tiny" in problem and "401" in problem and fix in problem
    assert "hf_wrong" not in problem


def test_refusals_name_the_fix(hub, env):
    assert "there is no such model" in refused(env, "--model-path", "hf:org/none")
    assert "no revision v9" in refused(env, "--model-path", "hf:org/tiny@v9")
    hub.strange["config.json"] = (403, {"X-Error-Code": "GatedRepo"}, b"")
    assert "accept the model's licence" in refused(env)
    del hub.strange["config.json"]
    del hub.files["tokenizer.json"]
    assert "no tokenizer.json" in refused(env)
    assert "hf:ORG/NAME" in refused(env, "--model-path", "hf:../x")


def test_a_cache_that_cannot_be_written_ends_the_start(hub, env, tmp_path):
    (tmp_path / "file").write_text("")
    problem = refused({**env, "HF_HUB_CACHE": str(tmp_path / "file/cache")})
    assert "HF_HOME" in problem and "file/cache" in problem


def test_offline_means_the_cache_alone(world, hub, env):
    offline = {**env, "HF_HUB_OFFLINE": "1"}
    problem = refused(offline)
    assert "HF_HUB_OFFLINE" in problem and str(model_of(env).parent) in problem
    snapshot = cache_with(model_of(env).parent, "org/tiny")
    assert files_of(serve(world, offline))["path"] == str(snapshot)
    assert hub.requests == []


# --- a hub that fails


def trickle(handler):
    """A file that does not end."""
    handler.send_response(200)
    handler.send_header("X-Repo-Commit", COMMIT)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    try:
        for _ in range(600):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)
    except OSError:
        pass


def cut(length=None):
    """An answer that ends early."""
    def write(handler):
        handler.send_response(200)
        handler.send_header("X-Repo-Commit", COMMIT)
        if length:
            handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(b'{"model_type":')
    return write


def large(handler):
    handler.send_response(200)
    handler.send_header("X-Repo-Commit", COMMIT)
    handler.send_header("Content-Length", str(200 << 20))
    handler.end_headers()
    try:
        for _ in range(200):
            handler.wfile.write(b" " * (1 << 20))
        handler.server.swallowed = True
    except OSError:
        pass


STRANGE = {
    "trickle": ("config.json", trickle),
    "cut": ("config.json", cut(100)),
    "no length": ("config.json", cut()),
    "large": ("config.json", large),
    "error": ("config.json", (500, {}, b"")),
    "no commit": ("config.json", (200, {}, b"{}")),
    "loop": ("config.json", (302, {"Location": "/org/tiny/resolve/main/config.json"}, b"")),
    "nowhere": ("config.json", (302, {"Location": "file:///etc/passwd"}, b"")),
    "size": ("tokenizer.json", (200, {"X-Repo-Commit": COMMIT, "X-Linked-Size": "99"}, b"{}")),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_hub_that_fails_does_not_keep_the_router_from_serving(world, hub, env, name):
    file, answer = STRANGE[name]
    hub.strange[file] = answer
    router = serve(world, env, *NAMED, "--hub-timeout", "1s")
    assert router.chat().status == 200
    assert files_of(router) is None
    wanted = "takes longer than --hub-timeout" if name == "trickle" else "Model files were not downloaded"
    eventually(lambda: wanted in router.log_text(), "it is logged")
    assert not (model_of(env) / "refs").exists()
    assert not list(model_of(env).rglob("tokenizer.json"))


@pytest.mark.parametrize("name", ["trickle", "cut", "error"])
def test_a_copy_in_the_cache_is_used_when_the_hub_fails(world, hub, env, name):
    file, answer = STRANGE[name]
    hub.strange[file] = answer
    snapshot = cache_with(model_of(env).parent, "org/tiny")
    router = serve(world, env, *NAMED, "--hub-timeout", "1s")
    assert files_of(router)["path"] == str(snapshot)
    assert "the copy in the cache is used" in router.log_text()


def test_a_hub_that_is_away_is_named(world, env):
    router = serve(world, {**env, "HF_ENDPOINT": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:2"})
    eventually(lambda: "Model files were not downloaded" in router.log_text(), "it is logged")
    assert "http://127.0.0.1:1" in router.log_text() and "a proxy is set" in router.log_text()


def test_another_models_files_are_not_searched_for_while_they_are_downloaded(world, env, tmp_path):
    """What the operator names counts first, also before it is there."""
    worker = world.mock(model="org/tiny,org/tinz")
    for name in ("org/tiny", "org/tinz"):
        cache_with(model_of(env).parent, name)
    named = folder_with(tmp_path / "named")
    router = world.serve("--model-path", f"other={named},org/tiny=hf:org/absent", "--hub-timeout", "1s", workers=[worker],
                         env={**env, "HF_ENDPOINT": "http://127.0.0.1:1"})

    def files():
        return {model["model"]: model["files"] for model in router.health()["models"]}

    eventually(lambda: files()["org/tinz"], "the second one is found")
    assert files()["org/tiny"] is None


def test_the_tokenize_command_downloads_too(hub, env):
    done = run_fathom("tokenize", "--json", "--model-path", "hf:org/tiny", env=env, stdin="deep")
    assert done.returncode == 0, done.stderr
    assert [ord(c) for c in "deep"] == json.loads(done.stdout)["ids"]
    ended = run_fathom("tokenize", "--model-path", "hf:org/none", env=env, stdin="deep")
    assert ended.returncode == 78 and "there is no such model" in ended.stderr
