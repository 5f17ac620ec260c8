"""The Dockerfile, as far as can be seen without building an image: what goes in is there, what comes out is
the Debian package, and it runs as nobody."""

import fnmatch
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import wire
from conftest import ROOT, run_fathom

DOCKERFILE = ROOT / "deploy/docker/Dockerfile"


def instructions():
    """[(keyword, rest)], stage by stage."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    stages = []
    for keyword, rest in (line.split(None, 1) for line in lines if line.strip()):
        if keyword == "FROM":
            stages.append([])
        stages[-1].append((keyword, rest))
    return stages


def last(keyword):
    return next(rest for name, rest in reversed(instructions()[-1]) if name == keyword)


def is_ignored(path):
    """By .dockerignore: a pattern is for the whole path from the root, or for what is below it."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines()
                if line and not line.startswith("#")]
    parts = Path(path).parts
    heads = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(fnmatch.fnmatch(head, pattern) or
               (pattern.startswith("**/") and fnmatch.fnmatch(head.split("/")[-1], pattern[3:]))
               for head in heads for pattern in patterns)


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """What `docker build` would send."""
    folder = tmp_path_factory.mktemp("context")

    def left_out(parent, names):
        below = Path(parent).relative_to(ROOT)
        return [name for name in names if is_ignored(below / name)]
    shutil.copytree(ROOT, folder, ignore=left_out, dirs_exist_ok=True, symlinks=True)
    return folder


def test_what_others_leave_behind_is_not_sent(context):
    assert not (context / "build").exists() and not (context / ".git").exists()
    assert (context / "deploy/debian/build").exists()
    assert not list(context.rglob("node_modules"))


def test_the_build_finds_its_sources(context):
    copied = [rest.split()[:-1] for name, rest in instructions()[0] if name == "COPY"]
    assert copied == [["."]]
    cmake = subprocess.run(["cmake", "--preset", "shipped"], cwd=context, text=True, capture_output=True,
                           timeout=wire.PATIENCE, check=False)
    assert cmake.returncode == 0, cmake.stderr
    # Without a compiler being started: a source that is missing is said all the same.
    dry = subprocess.run(["ninja", "-C", "build/shipped", "-n", "fathom"], cwd=context, text=True,
                         capture_output=True, timeout=wire.PATIENCE, check=False)
    assert dry.returncode == 0, dry.stdout


def test_what_is_installed_and_packaged_is_sent(context):
    rules = (context / "CMakeLists.txt").read_text()
    named = re.findall(r"install\((?:FILES|DIRECTORY) ([^)]*?)\s+DESTINATION", rules)
    files = [name for names in named for name in names.split()]
    assert "deploy/grafana/fathom.json" in files and "docs" in files
    script = (context / "deploy/debian/build").read_text().replace("$debian", "deploy/debian")
    files += re.findall(r"deploy/[\w./-]+\w", script)
    missing = [name for name in files if not (context / name).exists()]
    assert not missing


def test_the_package_is_made_in_one_stage_and_installed_in_the_other():
    build, image = instructions()
    assert ("WORKDIR", "/src") in build and ("RUN", "./dev package") in build
    assert build[0][1].endswith(" AS build")
    run = next(rest for name, rest in image if name == "RUN")
    assert "--mount=type=bind,from=build,source=/src/build/package,target=/package" in run
    assert re.search(r"apt-get install .*--no-install-recommends .*/package/\*\.deb", run)
    # The libraries of the binary are those of the release that it was built on.
    assert build[0][1].split()[0] + "-slim" == image[0][1]


def test_what_the_package_recommends_is_in_the_image():
    control = (ROOT / "deploy/debian/control.in").read_text()
    recommended = re.search(r"^Recommends: (.*)", control, re.MULTILINE).group(1).split(", ")
    run = next(rest for name, rest in instructions()[-1] if name == "RUN")
    assert set(recommended) <= set(run.split())


def test_the_user_is_a_number_and_not_root():
    user, group = last("USER").split(":")
    assert int(user) >= 1000 and int(group) >= 1000


def test_it_listens_where_others_can_reach_it():
    assert json.loads(last("ENTRYPOINT")) == ["/usr/bin/fathom"]
    settings = run_fathom(*json.loads(last("CMD")), "--print-config")
    assert settings.returncode == 0, settings.stderr
    assert re.search(r"^host +0\.0\.0\.0 ", settings.stdout, re.MULTILINE)
    assert re.search(rf"^port +{last('EXPOSE')} ", settings.stdout, re.MULTILINE)
    assert re.search(r"^admin-listen +127\.0\.0\.1:8001 ", settings.stdout, re.MULTILINE)
    assert last("STOPSIGNAL") == "SIGTERM"


def test_the_tag_in_the_comment_is_the_version():
    version = run_fathom("version").stdout.split()[1]
    assert set(re.findall(r"fathom:([\d.]+\d)", DOCKERFILE.read_text())) == {version}
