"""Every diff that `fathom lint` and `fathom doctor` print applies as it stands: without fuzz, by patch and by git, in
the current folder or in the one that it names. And none shows a secret."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from conftest import FATHOM, ROOT, clean_environment

BAD = sorted((ROOT / "tests/lint/bad").iterdir())
SECRET = "hf_hush"


def fathom(*args, cwd):
    return subprocess.run([FATHOM, *map(str, args)], cwd=cwd, text=True, capture_output=True, check=False,
                          env=clean_environment(), stdin=subprocess.DEVNULL)


def diffs_of(command, *files, cwd):
    """(finding, diff) of each fix."""
    done = fathom(*command, *files, cwd=cwd)
    return [(finding["id"], fix["diff"]) for finding in json.loads(done.stdout)["findings"]
            for fix in finding["fixes"] if fix["diff"]]


LINT, DOCTOR = ("lint", "--format", "json"), ("doctor", "--format", "json", "--manifest")


def folder_of(diff, current):
    """Where it says that it applies."""
    named = re.match(r"# patch -p1 -d '([^']+)'\n", diff)
    return named[1] if named else current


def apply(tool, diff, folder):
    run = {"cwd": folder, "input": diff, "text": True, "capture_output": True, "check": False}
    if tool == "git":
        return subprocess.run(["git", "apply", "-p1", "-"], **run)
    return subprocess.run(["patch", "-p1", "--fuzz=0", "--forward", "--no-backup-if-mismatch"], **run)


def check_applies(diff, current, tool="patch"):
    done = apply(tool, diff, folder_of(diff, current))
    assert done.returncode == 0, (done.stdout, done.stderr, diff)
    assert "fuzz" not in done.stdout + done.stderr, (done.stdout, diff)


@pytest.fixture
def copy(tmp_path):
    """The file in a folder of its own, again and again."""
    def make(source, name=None):
        folder = tmp_path / "fleet"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(source, folder / (name or source.name))
        return folder / (name or source.name)
    return make


@pytest.mark.parametrize("tool", ["patch", "git"])
@pytest.mark.parametrize("command", [LINT, DOCTOR], ids=lambda command: command[0])
@pytest.mark.parametrize("bad", BAD, ids=lambda path: path.name)
def test_the_diff_of_each_fix_applies(bad, command, tool, copy):
    path = copy(bad)
    for finding, diff in diffs_of(command, path.name, cwd=path.parent):
        path = copy(bad)
        before = path.read_text()
        check_applies(diff, path.parent, tool)
        assert path.read_text() != before, finding


@pytest.mark.parametrize("command", [LINT, DOCTOR], ids=lambda command: command[0])
def test_the_diff_of_a_file_elsewhere_names_the_folder_where_it_applies(command, copy, tmp_path):
    bad = ROOT / "tests/lint/bad/block-size-mismatch.yaml"
    path = copy(bad, "two words.yaml")
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    diffs = diffs_of(command, path, cwd=elsewhere)
    assert diffs
    for _, diff in diffs:
        path = copy(bad, "two words.yaml")
        assert folder_of(diff, None) == str(path.parent), diff
        check_applies(diff, elsewhere)
        assert path.read_text() != bad.read_text()


def test_lint_diff_of_an_absolute_path_applies_here_or_where_it_says(copy, tmp_path):
    bad = ROOT / "tests/lint/bad/block-size-mismatch.yaml"
    for current in (tmp_path, tmp_path / "fleet", ROOT):
        path = copy(bad)
        diff = fathom("lint", "--diff", path, cwd=current).stdout
        assert (folder_of(diff, None) is None) == path.is_relative_to(current)
        check_applies(diff, current)
        assert "DYN_KV_CACHE_BLOCK_SIZE" in path.read_text()


# --- secrets


def with_secret(text, where):
    """The example of the incident, with a variable that is secret in front of the mode, behind it, or far away."""
    hidden = f"- name: HF_TOKEN\n          value: {SECRET}\n        "
    mode = "- name: DYN_ROUTER_MODE\n          value: kv\n"
    assert mode in text
    if where == "front":
        return text.replace(mode, hidden + mode)
    return text.replace(mode, mode + "        " + hidden.rstrip() + "\n")


@pytest.mark.parametrize("command", [LINT, DOCTOR], ids=lambda command: command[0])
@pytest.mark.parametrize("where", ["front", "behind"])
def test_a_diff_beside_a_secret_applies_and_does_not_show_it(where, command, tmp_path):
    text = with_secret((ROOT / "tests/lint/bad/block-size-mismatch.yaml").read_text(), where)
    path = tmp_path / "agg.yaml"
    path.write_text(text)
    diffs = [diff for finding, diff in diffs_of(command, path.name, cwd=tmp_path) if finding == "block-size-mismatch"]
    assert any("DYN_KV_CACHE_BLOCK_SIZE" in diff for diff in diffs)
    for diff in diffs:
        assert SECRET not in diff and "***" not in diff
        path.write_text(text)
        check_applies(diff, tmp_path)
        assert SECRET in path.read_text(), "it is still there"
        list(yaml.safe_load_all(path.read_text()))


def test_a_change_of_a_line_with_a_secret_is_said_in_words(tmp_path):
    (tmp_path / "run.sh").write_text("vllm serve m --api-key hf_hush --kv-events-config "
                                     "'{\"enable_kv_cache_events\": false}'\n")
    done = fathom("lint", "--format", "json", "run.sh", cwd=tmp_path)
    finding, *_ = json.loads(done.stdout)["findings"]
    assert finding["id"] == "publisher-off" and finding["fix"]
    assert finding["fixes"][0]["diff"] == "" and SECRET not in done.stdout
