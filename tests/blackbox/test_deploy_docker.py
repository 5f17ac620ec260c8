"""The Dockerfile, as far as can be seen without building an image: what goes in is there, what comes out is
the image of deploy/image (test_image.py runs it), and it runs as nobody."""

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
IMAGE = ROOT / "deploy/image"


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
    files += re.findall(r"^/.* tree:(\S+)$", (context / "deploy/image/files").read_text(), re.M)
    files += ["deploy/image/build", "deploy/image/config.json", "deploy/artefact.py", "tools/debian_packages"]
    missing = [name for name in files if not (context / name).exists()]
    assert not missing


def test_the_root_file_system_is_made_in_one_stage_and_copied_whole_into_the_other():
    build, image = instructions()
    # The libraries of the image are those of the release that the binary was built on.
    assert build == [("FROM", "debian:12 AS build"), ("WORKDIR", "/src"), ("COPY", ". ."),
                     ("RUN", "./dev image --root build/image-root")]
    copied = [rest for name, rest in image if name in ("COPY", "ADD", "RUN")]
    assert copied == ["--from=build /src/build/image-root/ /"]


def lines_of(settings):
    """The instructions that say the same as these settings of an OCI image."""
    seconds = {name: f"{settings['Healthcheck'][name] // 10**9}s" for name in ("Interval", "Timeout", "StartPeriod")}
    check = settings["Healthcheck"]
    yield "USER", settings["User"]
    yield from (("EXPOSE", port) for port in settings["ExposedPorts"])
    yield from (("ENV", variable) for variable in settings["Env"])
    yield "ENTRYPOINT", json.dumps(settings["Entrypoint"])
    yield "CMD", json.dumps(settings["Cmd"])
    yield "WORKDIR", settings["WorkingDir"]
    yield "STOPSIGNAL", settings["StopSignal"]
    yield "HEALTHCHECK", (f"--interval={seconds['Interval']} --timeout={seconds['Timeout']} "
                          f"--start-period={seconds['StartPeriod']} --retries={check['Retries']} "
                          f"{check['Test'][0]} {json.dumps(check['Test'][1:])}")
    yield from (("LABEL", f'{name}="{value}"') for name, value in settings["Labels"].items())


def test_it_says_line_by_line_what_the_image_without_docker_does():
    settings = json.loads((IMAGE / "config.json").read_text())
    control = (ROOT / "deploy/debian/control.in").read_text()
    settings["Labels"]["org.opencontainers.image.description"] = re.search(r"^Description: (.*)", control, re.M)[1]
    settings["Labels"]["org.opencontainers.image.version"] = run_fathom("version").stdout.split()[1]
    assert instructions()[-1] == [("FROM", "scratch"), ("COPY", "--from=build /src/build/image-root/ /"),
                                  *lines_of(settings)]


def test_what_the_package_recommends_is_in_the_image():
    control = (ROOT / "deploy/debian/control.in").read_text()
    assert re.search(r"^Recommends: (.*)", control, re.MULTILINE).group(1) == "ca-certificates"
    assert re.search(r"^/etc/ssl/certs/ca-certificates.crt +0644 +certificates$", (IMAGE / "files").read_text(), re.M)


def test_the_user_is_a_number_and_not_root():
    user, group = last("USER").split(":")
    assert int(user) >= 1000 and int(group) >= 1000
    assert f":x:{user}:{group}:" in (IMAGE / "passwd").read_text() and f":x:{group}:" in (IMAGE / "group").read_text()
    for manifest in ("deploy/kubernetes/fathom.yaml", "deploy/kubernetes/doctor.yaml"):
        text = (ROOT / manifest).read_text()
        assert set(re.findall(r"runAsUser: (\d+)", text)) == {user} and "runAsNonRoot: true" in text
        assert set(re.findall(r"runAsGroup: (\d+)", text)) == {group} and "readOnlyRootFilesystem: true" in text
    chart = "".join(path.read_text() for path in (ROOT / "deploy/helm/fathom").rglob("*.*") if path.is_file())
    assert set(re.findall(r"runAsUser: (\d+)", chart)) == {user}


def test_it_listens_where_others_can_reach_it():
    assert json.loads(last("ENTRYPOINT")) == ["/usr/bin/fathom"]
    settings = run_fathom(*json.loads(last("CMD")), "--print-config")
    assert settings.returncode == 0, settings.stderr
    assert re.search(r"^host +0\.0\.0\.0 ", settings.stdout, re.MULTILINE)
    assert re.search(rf"^port +{last('EXPOSE').removesuffix('/tcp')} ", settings.stdout, re.MULTILINE)
    assert re.search(r"^admin-listen +127\.0\.0\.1:8001 ", settings.stdout, re.MULTILINE)
    assert last("STOPSIGNAL") == "SIGTERM"


def test_the_tag_in_the_comment_is_the_version():
    version = run_fathom("version").stdout.split()[1]
    assert set(re.findall(r"fathom:([\d.]+\d)", DOCKERFILE.read_text())) == {version}
