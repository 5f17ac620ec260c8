"""`fathom lint`: what it finds in files, says, prints and writes."""

import json
import os
import re
import shutil
import stat
import subprocess

import pytest
import yaml

from conftest import FATHOM, ROOT, clean_environment, run_fathom

FIXTURES = ROOT / "tests/lint"
BAD = sorted((FIXTURES / "bad").iterdir())
GOOD = sorted((FIXTURES / "good").iterdir())


def lint(*args, **kwargs):
    return run_fathom("lint", *args, **kwargs)


def findings(*args, status=1, **kwargs):
    done = lint("--format", "json", *args, **kwargs)
    assert done.returncode == status, (done.returncode, done.stdout[:300], done.stderr[:300])
    return json.loads(done.stdout)["findings"]


def ids(*args, **kwargs):
    return [finding["id"] for finding in findings(*args, **kwargs)]


@pytest.fixture
def copy(tmp_path):
    """A fixture of its own, to be written to."""
    def make(name):
        path = tmp_path / name
        shutil.copy(FIXTURES / "bad" / name, path)
        return path
    return make


# --- the example that started it


def test_finds_the_mismatch_of_the_example_first_with_both_fixes():
    first = findings(FIXTURES / "bad/block-size-mismatch.yaml")[0]
    assert (first["id"], first["severity"]) == ("block-size-mismatch", "error")
    assert first["file"].endswith("block-size-mismatch.yaml") and first["line"] > 0
    assert "16" in first["message"] and "32" in first["message"]
    frontend, engine = first["fixes"]
    assert first["fix"] == frontend["what"]
    assert "DYN_KV_CACHE_BLOCK_SIZE" in frontend["diff"] and '+          value: "32"' in frontend["diff"]
    assert "tokens_per_block" in engine["what"]
    assert "1.5" in first["why"] and "0.9.0" in first["why"]


def test_finds_what_is_missing_in_the_fragment_of_the_example():
    assert ids(FIXTURES / "bad/block-size-missing.yaml") == ["block-size-missing"]


def test_says_nothing_about_a_frontend_that_asks_its_workers():
    assert findings(FIXTURES / "good/block-size-missing-since-1.5.yaml", status=0) == []


# --- what it prints


def test_prints_what_why_fix_and_page():
    done = lint(FIXTURES / "bad/endpoint-connects.sh")
    assert done.returncode == 1 and done.stderr == ""
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"\S+endpoint-connects\.sh:2: error: .* \[endpoint-connects\]", first), first
    assert [line.split()[0] for line in rest[:3]] == ["why:", "fix:", "docs:"], rest
    assert "\x1b" not in done.stdout
    assert rest[2].split(None, 1)[1] == "fathom docs endpoint-connects"


@pytest.mark.parametrize("url", ["https://wiki/fathom", "https://wiki/fathom/"])
def test_links_to_pages_below_the_docs_url(url):
    file = FIXTURES / "bad/endpoint-connects.sh"
    done = lint(file, "--docs-url", url)
    assert done.returncode == 1
    assert re.search(r"docs: https://wiki/fathom/runbooks/endpoint-connects\.md$", done.stdout, re.MULTILINE)
    found, = json.loads(lint(file, "--docs-url", url, "--format", "json").stdout)["findings"]
    assert found["docs"] == "https://wiki/fathom/runbooks/endpoint-connects.md"


def test_a_docs_url_without_a_scheme_is_refused():
    done = lint(FIXTURES / "bad/endpoint-connects.sh", "--docs-url", "wiki/fathom")
    assert done.returncode == 78
    assert "--docs-url" in done.stderr and "https://" in done.stderr


def test_says_that_clean_files_are_clean():
    done = lint(*GOOD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no findings\n", "")


@pytest.mark.parametrize("bad", BAD, ids=lambda path: path.name)
def test_finds_what_the_fixture_is_named_after_first(bad):
    assert bad.name.startswith(ids(bad)[0])


def test_is_coloured_on_a_terminal_unless_asked_not_to_be():
    def run(env):
        command = f"{FATHOM} lint {FIXTURES / 'bad/replay-missing.sh'}"
        return subprocess.run(["script", "-qec", command, "/dev/null"], text=True, check=False,
                              env=clean_environment(env), capture_output=True, timeout=60).stdout
    if not shutil.which("script"):
        pytest.skip("there is no terminal to be had")
    assert "\x1b[" in run({})
    assert "\x1b[" not in run({"NO_COLOR": "1"})


# --- status


@pytest.mark.parametrize("args, status", [
    (["good/replay-missing.sh"], 0),
    (["bad/replay-missing.sh"], 1),
    (["bad/replay-missing.sh", "no-such-file.yaml"], 2),
    (["no-such-file.yaml"], 2),
    ([], 78),
    (["--diff", "--format", "json", "bad/replay-missing.sh"], 78),
    (["--fix", "-"], 78),
    (["--format", "xml", "bad/replay-missing.sh"], 78),
    (["--no-such-option"], 78),
])
def test_exits_with_a_status_that_says_what_happened(args, status):
    done = subprocess.run([FATHOM, "lint", *args], cwd=FIXTURES, env=clean_environment(), text=True,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == status, done.stderr


def test_reports_the_findings_of_what_it_could_read():
    done = lint("--format", "json", FIXTURES / "bad/replay-missing.sh", "no-such-file.yaml")
    report = json.loads(done.stdout)
    assert [finding["id"] for finding in report["findings"]] == ["replay-missing"]
    assert report["unread"] == [{"file": "no-such-file.yaml", "problem": "No such file or directory"}]


def test_a_file_with_nothing_to_check_is_clean(tmp_path):
    for name, text in [("empty.yaml", ""), ("plain.yaml", "a: 1\n"), ("page.md", "# Hello\n"),
                       ("x.toml", "a = 1\n"), ("x.sh", "#!/bin/sh\necho hi\n"), ("x.json", "[1]")]:
        (tmp_path / name).write_text(text)
        assert lint(tmp_path / name).returncode == 0, name


# --- where it looks


def test_reads_standard_input():
    text = (FIXTURES / "bad/block-size-mismatch.yaml").read_text()
    first = findings("-", stdin=text)[0]
    assert (first["id"], first["file"]) == ("block-size-mismatch", "<stdin>")


def test_walks_through_a_folder(tmp_path):
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for name in ["deep/er/b.yaml", "a.yml", ".git/c.yaml", "d.txt"]:
        shutil.copy(FIXTURES / "bad/block-size-missing.yaml", tmp_path / name)
    files = [finding["file"] for finding in findings(tmp_path)]
    assert files == [str(tmp_path / "a.yml"), str(tmp_path / "deep/er/b.yaml")]


def test_finds_an_engine_in_another_file(tmp_path):
    documents = (FIXTURES / "bad/service-hides-pods.yaml").read_text().split("---\n")
    for i, text in enumerate(documents):
        (tmp_path / f"{i}.yaml").write_text(text)
    assert ids(tmp_path) == ["service-hides-pods"]


def test_reads_what_kubectl_prints(tmp_path):
    documents = list(yaml.safe_load_all((FIXTURES / "bad/service-hides-pods.yaml").read_text()))
    listing = {"apiVersion": "v1", "kind": "List", "items": documents}
    assert ids("-", stdin=json.dumps(listing, indent=2)) == ["service-hides-pods"]
    assert ids("-", stdin=yaml.safe_dump(listing)) == ["service-hides-pods"]


def test_a_service_hides_nothing_from_a_router_that_reads_its_endpoints(tmp_path):
    text = (FIXTURES / "bad/service-hides-pods.yaml").read_text()
    page = tmp_path / "fleet.yaml"
    page.write_text(text.replace("http://vllm:8000", "k8s://ml/vllm:8000"))
    assert findings(page, status=0) == []


def test_finds_mistakes_in_the_pages_of_a_manual(tmp_path):
    page = tmp_path / "page.md"
    text = (FIXTURES / "bad/block-size-missing.yaml").read_text()
    page.write_text(f"# How to\n\n```yaml\n{text}```\n")
    found, = findings(page)
    assert (found["id"], found["line"]) == ("block-size-missing", 5)


def test_finds_the_block_size_without_its_note_on_a_page(copy):
    path = copy("block-size-note.md")
    assert [(one["id"], one["line"]) for one in findings(path)] == [("block-size-note", 10), ("block-size-note", 19)]
    assert lint("--fix", path).returncode == 0
    note = "# Must match the backend's tokens_per_block. vLLM default: 16, TRT-LLM default: 32."
    assert f'      value: "16"\n      {note}\n' in path.read_text()
    assert f"    block_size=16,\n    {note}\n" in path.read_text()


@pytest.mark.parametrize("setting", [
    "DYN_KV_CACHE_BLOCK_SIZE=16 python3 -m dynamo.frontend", "export DYN_KV_CACHE_BLOCK_SIZE=32",
    "fathom serve --kv-cache-block-size 16", "fathom serve \\\n  --kv-cache-block-size=16 \\\n  --port 1",
    "python3 -m dynamo.router --router-block-size 64"])
def test_finds_it_in_commands_too(setting, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n```bash\n{setting}\n```\n")
    assert "block-size-note" in ids(page)
    page.write_text(f"# Page\n\nIt must match: vLLM's default is 16, TensorRT-LLM's 32.\n\n```bash\n{setting}\n```\n")
    assert "block-size-note" not in [one["id"] for one in json.loads(lint("--format", "json", page).stdout)["findings"]]


def test_counts_what_an_autoscaler_may_make_of_one_pod(tmp_path):
    text = (FIXTURES / "bad/service-hides-pods-autoscaled.yaml").read_text()
    page = tmp_path / "fleet.yaml"
    page.write_text(text.replace("  minReplicas: 2\n", ""))
    found, = findings(page)
    assert found["id"] == "service-hides-pods" and "up to 8 pods" in found["message"]
    keda = text.replace("autoscaling/v2", "keda.sh/v1alpha1").replace("HorizontalPodAutoscaler", "ScaledObject")
    page.write_text(keda.replace("minReplicas", "minReplicaCount").replace("maxReplicas", "maxReplicaCount"))
    assert ids(page) == ["service-hides-pods"]
    page.write_text(text.replace("minReplicas: 2", "minReplicas: 1").replace("maxReplicas: 8", "maxReplicas: 1"))
    assert findings(page, status=0) == []


def test_a_flag_is_added_to_the_string_behind_an_entrypoint(tmp_path):
    path = tmp_path / "compose.yaml"
    path.write_text("""services:
  sglang:
    image: my-registry/engine:my-tag
    entrypoint: ["python3", "-m", "sglang.launch_server"]
    command: --model-path Qwen/Qwen3-8B --kv-events-config '{"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'
""")
    before = yaml.safe_load(path.read_text())["services"]["sglang"]["command"]
    assert ids(path) == ["page-size-one"]
    assert lint("--fix", path).returncode == 0
    command = yaml.safe_load(path.read_text())["services"]["sglang"]["command"]
    assert command == before + " --page-size 16"


# --- mending


@pytest.mark.parametrize("bad", BAD, ids=lambda path: path.name)
def test_patch_applies_the_diff_and_it_is_what_fix_writes(bad, tmp_path):
    for folder in ["patched", "fixed"]:
        (tmp_path / folder).mkdir()
        shutil.copy(bad, tmp_path / folder)
    before = lint("--format", "json", bad)
    edited = [finding for finding in json.loads(before.stdout)["findings"]
              if finding["fixes"] and finding["fixes"][0]["diff"]]

    patched, fixed = tmp_path / "patched" / bad.name, tmp_path / "fixed" / bad.name
    run = {"text": True, "check": False, "capture_output": True, "env": clean_environment()}
    diff = subprocess.run([FATHOM, "lint", "--diff", bad.name], cwd=patched.parent, **run)
    assert diff.returncode == 1 and diff.stderr == ""
    if diff.stdout:
        assert edited
        done = subprocess.run(["patch", "-p1"], cwd=patched.parent, input=diff.stdout, **run)
        assert done.returncode == 0, done.stdout + done.stderr
    lint("--fix", fixed)
    assert patched.read_text() == fixed.read_text()
    assert (fixed.read_text() != bad.read_text()) == bool(diff.stdout)
    assert lint("--diff", fixed).stdout == ""
    if bad.suffix == ".yaml":
        list(yaml.safe_load_all(fixed.read_text()))


@pytest.mark.parametrize("name", ["block-size-mismatch.yaml", "block-size-missing.yaml",
                                  "publisher-off.yaml", "event-buffer-off.yaml",
                                  "endpoint-connects.sh", "replay-missing.sh", "page-size-one.sh",
                                  "port-collision.sh", "router-mode-missing.yaml"])
def test_is_clean_after_it_has_mended_a_file(copy, name):
    path = copy(name)
    done = lint("--fix", path)
    assert done.returncode == 0, done.stdout
    assert f"fixed {path}" in done.stdout
    assert lint(path).returncode == 0
    again = path.read_text()
    assert "fixed" not in lint("--fix", path).stdout
    assert path.read_text() == again


def test_the_mended_example_has_the_size_of_the_engine(copy):
    path = copy("block-size-mismatch.yaml")
    lint("--fix", path)
    envs = yaml.safe_load(path.read_text())["spec"]["services"]["Frontend"]["envs"]
    assert {"name": "DYN_KV_CACHE_BLOCK_SIZE", "value": "32"} in envs
    assert re.search(r'value: "32"  # .*tokens_per_block', path.read_text())


def test_leaves_what_a_person_has_to_decide(copy):
    path = copy("block-size-conflict.yaml")
    before = path.read_text()
    done = lint("--fix", path)
    assert done.returncode == 1 and "block-size-conflict" in done.stdout
    assert path.read_text() == before


def test_keeps_the_mode_the_links_and_the_line_ends(copy, tmp_path):
    path = copy("endpoint-connects.sh")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    path.chmod(0o750)
    link = tmp_path / "link.sh"
    link.symlink_to(path.name)
    lint("--fix", link)
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o750
    assert b"tcp://*:5557" in path.read_bytes()
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") > 0
    assert sorted(os.listdir(tmp_path)) == ["endpoint-connects.sh", "link.sh"]


def test_says_what_it_could_not_write(copy):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    path = copy("endpoint-connects.sh")
    path.parent.chmod(0o500)
    done = lint("--fix", path)
    path.parent.chmod(0o700)
    assert done.returncode == 2 and "cannot be written" in done.stderr


# --- on purpose


def test_honours_a_comment_that_says_it_is_on_purpose(copy):
    path = copy("block-size-missing.yaml")
    path.write_text("# fathom-lint: wrong on purpose: block-size-missing (a test)\n" + path.read_text())
    done = lint(path)
    assert (done.returncode, done.stdout) == (0, "no findings; 1 finding is wrong on purpose\n")


def test_does_not_trust_a_comment_that_names_no_rule(copy):
    path = copy("block-size-missing.yaml")
    path.write_text("# fathom-lint: wrong on purpose: block-size-mising\n" + path.read_text())
    done = lint(path)
    assert done.returncode == 2
    assert "block-size-mising" in done.stderr and "[block-size-missing]" in done.stdout


# --- hostile files


@pytest.mark.parametrize("text", [
    b"a: [1, 2\nb: }\n",
    b"services:\n  x:\n    image: \"vllm",
    b"a: &a [*a]\n",
    b"a: &a {b: *a}\n",
    b"a: *nobody\n",
    b"\t- tab\n\tx: 1\n",
    b"[" * 100_000,
    b"a:\n{{- if .Values.x }}\n  image: {{ .Values.image }}\n{{- end }}\n",
    b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 110)),
], ids=["unbalanced", "truncated", "cyclic", "cyclic-map", "unknown-alias", "tabs", "deep", "template",
        "billion-laughs"])
def test_says_clearly_that_it_could_not_read_a_file(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_bytes(text)
    done = lint(path)
    assert done.returncode == 2, (done.returncode, done.stdout[:300])
    assert done.stderr.startswith(f"fathom lint: {path}:") and len(done.stderr) < 1000, done.stderr


@pytest.mark.parametrize("seed", range(20))
def test_garbage_is_no_reason_to_crash(tmp_path, seed):
    import random
    chance = random.Random(seed)
    source = (FIXTURES / "bad" / chance.choice(BAD).name).read_bytes()
    text = bytearray(source)
    for _ in range(30):
        text[chance.randrange(len(text))] = chance.randrange(256)
    for suffix in [".yaml", ".sh", ".md", ".toml", ".json"]:
        path = tmp_path / f"x{suffix}"
        path.write_bytes(text)
        done = subprocess.run([FATHOM, "lint", path], env=clean_environment(), timeout=60,
                              capture_output=True, check=False)
        assert done.returncode in (0, 1, 2), (seed, suffix, done.stderr[:300])
        assert not re.search(rb"[\x00-\x08\x0b-\x1f]", done.stdout), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["many-objects", "one-list", "one-line", "words"])
def test_a_manifest_of_100_mb_is_read_or_refused_within_bounds(tmp_path, kind):
    size = 100 << 20
    path = tmp_path / "x.yaml"
    unit = {
        "many-objects": (FIXTURES / "bad/block-size-mismatch.yaml").read_text() + "---\n",
        "one-list": "- name: x\n  value: y\n", "one-line": "x", "words": "x: y # z\n"
    }[kind]
    with open(path, "w") as file:
        if kind == "words":
            for i in range(size // 20):
                file.write(f"key{i}: value\n")
        else:
            file.write(unit * (size // len(unit)))
    command = f"ulimit -v 6000000; exec {FATHOM} lint {path}"
    done = subprocess.run(["bash", "-c", command], env=clean_environment(), timeout=240,
                          capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 2), (done.returncode, done.stderr[:300])
    assert done.returncode < 2 or len(done.stderr) < 2000, done.stderr[:300]
    assert len(done.stdout) < (4 << 20)


# --- beside it


def test_the_hook_for_pre_commit_runs_what_there_is():
    hook, = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == "fathom-lint" and hook["entry"] == "fathom lint"
    assert hook["language"] == "system"


def test_the_workflow_is_yaml_and_runs_what_there_is():
    workflow = yaml.safe_load((ROOT / "deploy/github/fathom-lint.yml").read_text())
    steps = workflow["jobs"]["lint"]["steps"]
    assert any("dev build" in step.get("run", "") for step in steps)
    assert any("fathom lint" in step.get("run", "") for step in steps)


def test_every_rule_is_on_the_page():
    page = (ROOT / "docs/lint.md").read_text()
    rules = {re.match(r"[a-z-]+(?=[-.])", path.name)[0] for path in BAD}
    for name in rules:
        assert any(f"`{rule}`" in page for rule in [name, *(name.rsplit("-", i)[0] for i in (1, 2, 3))]), name
