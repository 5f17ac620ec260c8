"""The wheel: its tag is what the binary needs, pip installs it without the network, and removes all of it.

It is made of the portable binary, $BUILD/portable/fathom, beside the one that FATHOM names.
"""

import base64
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import conftest
import wire
from conftest import FATHOM, ROOT, run_fathom

BUILD = ROOT / "deploy/wheel/build"
PORTABLE = Path(FATHOM).parent / "portable/fathom"
FOREIGN = [ROOT / build / "portable/fathom" for build in ("build/arm64", "build/shipped-arm64")]
ELSEWHERE = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1",
             "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

pytestmark = pytest.mark.slow


def run(*command, status=0, **options):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=5 * wire.PATIENCE,
                          check=False, **options)
    assert status is None or done.returncode == status, f"{command}:\n{done.stdout}{done.stderr}"
    return done


def make(binary, folder, *options, **more):
    return Path(run(BUILD, binary, folder, *options, **more).stdout.strip())


def refusal(binary, folder, *options):
    done = run(BUILD, binary, folder, *options, status=1)
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not list(Path(folder).glob("*.whl"))
    return done.stderr


def needed(binary):
    """By readelf: the libraries, and the highest NN of GLIBC_2.NN."""
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", "-W", binary).stdout)
    versions = run("readelf", "-V", "-W", binary).stdout
    highest = max(int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", versions))
    return libraries, max(highest, 36 if "GLIBC_ABI_DT_RELR" in versions else 0)


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def part(wheel, name):
    found, = (content for path, content in contents(wheel).items() if path.endswith(f".dist-info/{name}"))
    return found


def version():
    return run_fathom("version").stdout.split()[1]


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    """Of the program that the tests run; it needs Debian's libraries, so it is for a try on this machine only."""
    if any(name in FATHOM for name in ("build/asan", "build/tsan")):
        pytest.skip("only the release build is packaged")
    return make(FATHOM, tmp_path_factory.mktemp("tried"), "--allow-libraries")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not PORTABLE.exists():
        pytest.skip(f"no {PORTABLE}")
    return make(PORTABLE, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    binary = next((path for path in FOREIGN if path.exists()), None)
    if not binary:
        pytest.skip("no portable binary for arm64 was built")
    return binary, make(binary, tmp_path_factory.mktemp("foreign"))


# --- what is in it


def verify_structure(wheel):
    files = contents(wheel)
    run(sys.executable, "-m", "zipfile", "-t", wheel)
    listed = {row[0]: row[1:] for row in csv.reader(io.StringIO(part(wheel, "RECORD").decode()))}
    assert set(listed) == set(files)
    for name, content in files.items():
        if not name.endswith("/RECORD"):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert listed[name] == [f"sha256={digest}", str(len(content))], name
    tag = Parser().parsestr(part(wheel, "WHEEL").decode())["Tag"]
    assert wheel.name == f"fathom-{version()}-{tag}.whl"
    metadata = Parser().parsestr(part(wheel, "METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("fathom", version())
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()
    for name in metadata.get_all("License-File"):
        assert part(wheel, f"licenses/{name}")
    assert part(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()


def verify_tag(wheel, binary, architecture):
    _, glibc = needed(binary)
    assert wheel.name.endswith(f"-py3-none-manylinux_2_{max(glibc, 17)}_{architecture}.whl")


def verify_portable(wheel, binary):
    libraries, glibc = needed(binary)
    assert set(libraries) <= ELSEWHERE and glibc <= 36
    lines = binary.with_name("libraries.txt").read_text().splitlines()
    assert lines
    for source, _, licence in (line.split(None, 2) for line in lines):
        assert part(wheel, f"licenses/{source}/copyright") == Path(licence).read_bytes()


def verify_program(wheel, tmp_path):
    """The wheel's one program has no symbols left, and may be run."""
    with zipfile.ZipFile(wheel) as archive:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        program, = (name for name, mode in modes.items() if mode & 0o111)
        assert re.fullmatch(r"fathom-[\d.]+\.data/scripts/fathom", program)
        (tmp_path / "fathom").write_bytes(archive.read(program))
    assert ".symtab" not in run("readelf", "-S", "-W", tmp_path / "fathom").stdout


def test_its_parts_agree_and_its_tag_is_what_the_binary_needs(tried, tmp_path):
    verify_structure(tried)
    verify_tag(tried, FATHOM, os.uname().machine)
    verify_program(tried, tmp_path)


def test_the_portable_one_has_the_licence_of_each_library_and_needs_glibc_alone(wheel, tmp_path):
    verify_structure(wheel)
    verify_tag(wheel, PORTABLE, os.uname().machine)
    verify_program(wheel, tmp_path)
    verify_portable(wheel, PORTABLE)


def test_so_has_the_one_for_arm64(foreign, tmp_path):
    binary, wheel = foreign
    verify_structure(wheel)
    verify_tag(wheel, binary, "aarch64")
    verify_program(wheel, tmp_path)
    verify_portable(wheel, binary)


@pytest.mark.parametrize("heading, expected", [("", 315532800), ("\n## [0.9.0] - 2027-03-01\n", 1803859200)])
def test_of_a_source_archive_the_time_is_that_of_the_newest_version(tmp_path, heading, expected):
    """No repository, and times of files say when it was unpacked."""
    (tmp_path / "deploy").mkdir()
    shutil.copy(ROOT / "deploy/artefact.py", tmp_path / "deploy")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [Unreleased]\n{heading}")
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    code = "import artefact; print(artefact.release_time())"
    shown = run(sys.executable, "-B", "-c", code, cwd=tmp_path / "deploy", env=environment).stdout
    assert int(shown) == expected


def test_two_builds_at_different_times_give_the_same_bytes(tried, tmp_path):
    copy = tmp_path / "fathom"
    shutil.copyfile(FATHOM, copy)  # its time is now
    again = make(copy, tmp_path / "again", "--allow-libraries", env={**os.environ, "TZ": "Asia/Tokyo"})
    assert again.read_bytes() == tried.read_bytes()
    later = make(copy, tmp_path / "later", "--allow-libraries", env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    assert later.read_bytes() != tried.read_bytes()
    assert contents(later) == contents(tried)


# --- what is refused


def spoiled(tmp_path, change):
    (tmp_path / "in").mkdir()
    binary = tmp_path / "in/fathom"
    binary.write_bytes(change(Path(FATHOM).read_bytes()))
    return binary


def test_a_binary_that_needs_other_libraries_is_refused_with_their_names(tried, tmp_path):
    libraries, _ = needed(FATHOM)
    message = refusal(FATHOM, tmp_path)
    for library in libraries:
        assert (library in message) == (library not in ELSEWHERE)


def test_a_binary_for_a_newer_glibc_is_refused_with_the_version(tried, tmp_path):
    highest = f"GLIBC_2.{needed(FATHOM)[1]}".encode()
    newer = spoiled(tmp_path, lambda data: data.replace(highest + b"\0", b"GLIBC_2.37\0"))
    assert needed(newer)[1] == 37
    assert "needs GLIBC_2.37;" in refusal(newer, tmp_path, "--allow-libraries")


@pytest.mark.parametrize("change, words", [
    (lambda data: b"#!/bin/sh\n", "is no 64-bit little-endian ELF program"),
    (lambda data: data[:18] + b"\x08\x00" + data[20:], "is for ELF machine 8"),
    (lambda data: data[:4096], "is a damaged ELF file"),
])
def test_what_is_no_program_of_a_known_architecture_is_refused(tried, tmp_path, change, words):
    assert words in refusal(spoiled(tmp_path, change), tmp_path, "--allow-libraries")


def test_a_portable_binary_without_the_list_of_its_libraries_is_refused(wheel, tmp_path):
    shutil.copyfile(PORTABLE, tmp_path / "fathom")
    assert f"{tmp_path}/libraries.txt is missing" in refusal(tmp_path / "fathom", tmp_path)
    (tmp_path / "libraries.txt").write_text("fmtlib 9.1.0 /nowhere/copyright\n")
    assert "/nowhere/copyright, the licence of fmtlib, is missing" in refusal(tmp_path / "fathom", tmp_path)
    (tmp_path / "libraries.txt").write_text("\nfmtlib 9.1.0\n")
    assert "libraries.txt:2: expected SOURCE_PACKAGE VERSION COPYRIGHT_FILE" in refusal(tmp_path / "fathom", tmp_path)


# --- installed


class Venv:
    """A clean virtual environment, away from the source tree and from the settings of this user's pip."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder), "PIP_NO_CACHE_DIR": "1",
                            "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.run("/usr/bin/python3", "-m", "venv", folder)

    def run(self, *command, **options):
        return run(*command, env=self.environment, cwd=self.folder, **options)

    def files(self):
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    made = Venv(tmp_path_factory.mktemp("venv"))
    made.before = made.files()
    made.run("pip", "install", "--no-index", wheel)
    return made


def test_it_is_on_the_path_as_the_program_itself(venv):
    said = run_fathom("version").stdout
    assert venv.run("fathom", "version").stdout == said
    assert venv.run("python", "-m", "fathom", "version").stdout == said
    assert (venv.folder / "bin/fathom").read_bytes()[:4] == b"\x7fELF"
    venv.run("pip", "check")
    assert "Version: " + version() in venv.run("pip", "show", "fathom").stdout


def test_python_becomes_the_program_with_its_arguments_and_its_status(venv):
    by_name, by_module = (venv.run(*command, "serve", "--no-such-option", status=78)
                          for command in (["fathom"], ["python", "-m", "fathom"]))
    assert by_name.stderr == by_module.stderr != ""


def test_an_installed_router_and_mock_answer_a_chat(venv, world, monkeypatch):
    monkeypatch.setattr(conftest, "FATHOM", str(venv.folder / "bin/fathom"))
    monkeypatch.chdir(venv.folder)
    router = world.serve(workers=[world.mock(), world.mock()])
    assert Path(f"/proc/{router.pid}/exe").resolve() == (venv.folder / "bin/fathom").resolve()
    answer = router.chat()
    assert answer.status == 200 and answer.json()["choices"]


def test_installed_into_a_folder_it_is_found_there(venv, wheel, tmp_path):
    venv.run("pip", "install", "--no-index", "--target", tmp_path / "there", wheel)
    done = run("/usr/bin/python3", "-m", "fathom", "version", cwd=tmp_path,
               env={"PYTHONPATH": str(tmp_path / "there"), "PATH": "/usr/bin:/bin"})
    assert done.stdout == run_fathom("version").stdout


def test_removed_it_leaves_nothing_behind(venv):  # the last one of these
    venv.run("pip", "uninstall", "-y", "fathom")
    assert venv.files() - venv.before == set()
