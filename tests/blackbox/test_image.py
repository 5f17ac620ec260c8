"""The OCI image: what is in it, that other programs can read it, and that it runs as containers do: by an
unprivileged user, as process 1, with a root file system that cannot be written.

The image is made of the portable programs of this build: the one for this machine, and the one for arm64 where it
was built. That one runs under qemu.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

import wire
from conftest import FATHOM, ROOT, Process, run_fathom
from test_tls import Authority
from wire import eventually

BUILD = Path(FATHOM).parent
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
HERE = MACHINES[platform.machine()]
BINARIES = {HERE: BUILD / "portable/fathom", "arm64": BUILD.parent / "arm64/portable/fathom"}
BINARIES = {name: binary for name, binary in BINARIES.items() if binary.exists()}
EMULATORS = {"arm64": "qemu-aarch64-static"}
NOBODY = 65534
LARGEST = 60e6  # bytes, compressed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HERE not in BINARIES, reason=f"no portable program in {BUILD / 'portable'}"),
    pytest.mark.skipif(not shutil.which("skopeo") or not shutil.which("umoci"), reason="no skopeo, or no umoci here")]


def run(*command, **options):
    result = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=5 * wire.PATIENCE,
                            check=False, **options)
    assert result.returncode == 0, f"{command}:\n{result.stdout}{result.stderr}"
    return result.stdout


def version():
    return run_fathom("version").stdout.split()[1]


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    folder = tmp_path_factory.mktemp("image") / "layout"
    run(ROOT / "deploy/image/build", folder, *BINARIES.values())
    return folder


def blob(layout, descriptor):
    data = (layout / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
    assert len(data) == descriptor["size"]
    assert hashlib.sha256(data).hexdigest() == descriptor["digest"].removeprefix("sha256:")
    return data


def index_of(layout):
    (tagged,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert tagged["annotations"] == {"org.opencontainers.image.ref.name": version()}
    return json.loads(blob(layout, tagged))


def manifest_of(layout, architecture):
    (found,) = [image for image in index_of(layout)["manifests"]
                if image["platform"]["architecture"] == architecture]
    return json.loads(blob(layout, found))


def members_of(layout, architecture):
    (layer,) = manifest_of(layout, architecture)["layers"]
    blob(layout, layer)
    with tarfile.open(layout / "blobs" / layer["digest"].replace(":", "/")) as archive:
        return archive.getmembers()


def listed():
    """{path: mode} of deploy/image/files."""
    lines = [line.split() for line in (ROOT / "deploy/image/files").read_text().splitlines()]
    return {words[0]: int(words[1], 8) for words in lines if words and words[0].startswith("/")}


# --- as bytes


def test_two_runs_give_the_same_bytes(layout, tmp_path):
    binaries = []
    for name, binary in BINARIES.items():
        shutil.copytree(binary.parent, tmp_path / name, ignore=shutil.ignore_patterns("zeromq3"))
        binaries.insert(0, tmp_path / name / "fathom")
    os.utime(binaries[0], (1, 1))
    run(ROOT / "deploy/image/build", tmp_path / "again", *binaries, cwd=tmp_path, umask=0o077,
        env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})

    def all_files(folder):
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert all_files(tmp_path / "again") == all_files(layout)


def test_one_index_has_every_architecture(layout):
    seen = json.loads(run("skopeo", "inspect", "--raw", f"oci:{layout}:{version()}"))
    assert seen == index_of(layout)
    assert sorted(image["platform"]["architecture"] for image in seen["manifests"]) == sorted(BINARIES)
    assert {image["platform"]["os"] for image in seen["manifests"]} == {"linux"}


def test_a_registry_s_copy_is_the_same(layout, tmp_path):
    run("skopeo", "copy", "--all", f"oci:{layout}:{version()}", f"oci:{tmp_path / 'copy'}:{version()}")
    assert index_of(tmp_path / "copy") == index_of(layout)


@pytest.mark.parametrize("architecture", BINARIES)
def test_the_settings_are_those_of_the_list(layout, architecture):
    config = json.loads(blob(layout, manifest_of(layout, architecture)["config"]))
    assert config["architecture"] == architecture
    wanted = json.loads((ROOT / "deploy/image/config.json").read_text())
    labels = config["config"].pop("Labels")
    assert wanted.pop("Labels").items() <= labels.items()
    assert config["config"] == wanted
    assert labels["org.opencontainers.image.version"] == version()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["org.opencontainers.image.created"])
    assert manifest_of(layout, architecture)["annotations"] == labels
    assert len(config["rootfs"]["diff_ids"]) == 1


@pytest.mark.parametrize("architecture", BINARIES)
def test_it_is_small(layout, architecture):
    assert sum(layer["size"] for layer in manifest_of(layout, architecture)["layers"]) < LARGEST


@pytest.mark.parametrize("architecture", BINARIES)
def test_it_holds_what_is_listed_and_nothing_else(layout, architecture):
    members = {"/" + member.name + ("/" if member.isdir() else ""): member for member in members_of(layout, architecture)}
    assert {path: members[path].mode for path in listed()} == listed()
    folders = tuple(path for path in listed() if path.endswith("/"))
    for path, member in members.items():
        assert path in listed() or path.startswith(folders) or \
            (member.isdir() and any(name.startswith(path) for name in listed())), path


@pytest.mark.parametrize("architecture", BINARIES)
def test_nobody_can_write_into_it_or_become_root(layout, architecture):
    for member in members_of(layout, architecture):
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", ""), member.name
        assert not member.mode & (stat.S_ISUID | stat.S_ISGID), member.name
        assert member.name == "tmp" or member.issym() or not member.mode & 0o022, member.name
        assert member.isfile() or member.isdir() or member.issym(), member.name


@pytest.mark.parametrize("architecture", BINARIES)
def test_each_library_has_its_licence(layout, architecture):
    names = {member.name for member in members_of(layout, architecture)}
    linked = [line.split()[0] for line in BINARIES[architecture].with_name("libraries.txt").read_text().splitlines()]
    assert "openssl" in linked
    for library in [*linked, "libc6", "libgcc-s1", "ca-certificates", "fathom"]:
        assert f"usr/share/doc/{library}/copyright" in names
    assert {"usr/share/common-licenses/Apache-2.0", "usr/share/common-licenses/LGPL-2.1"} <= names


def test_the_root_file_system_alone_is_the_same(layout, tmp_path):
    """The Dockerfile copies it."""
    root = tmp_path / "root"
    run(ROOT / "deploy/image/build", "--root", root, BINARIES[HERE], umask=0o077)
    made = {str(path.relative_to(root)): path for path in root.rglob("*")}
    members = {member.name: member for member in members_of(layout, HERE)}
    assert made.keys() == members.keys()
    for name, path in made.items():
        seen = path.lstat()
        assert (stat.S_IMODE(seen.st_mode), stat.S_ISDIR(seen.st_mode)) == (members[name].mode, members[name].isdir())
        assert not path.is_file() or path.is_symlink() or seen.st_size == members[name].size
        assert not path.is_symlink() or os.readlink(path) == members[name].linkname


# --- what is refused


@pytest.fixture
def folder_with(tmp_path):
    """Makes a folder with a binary, and libraries.txt beside it."""
    def make(binary, libraries=""):
        shutil.copy(binary, tmp_path / "fathom")
        if libraries is not None:
            (tmp_path / "libraries.txt").write_text(libraries)
        return tmp_path / "fathom"
    return make


def refusal_of(*args):
    result = subprocess.run([ROOT / "deploy/image/build", *map(str, args)], text=True, capture_output=True,
                            timeout=5 * wire.PATIENCE, check=False)
    assert result.returncode == 1 and "Traceback" not in result.stderr
    return result.stderr


def test_a_binary_that_needs_other_libraries_is_refused(folder_with, tmp_path):
    assert "which is neither in libc6 nor in libgcc-s1" in refusal_of(tmp_path / "out", folder_with(FATHOM))
    assert not (tmp_path / "out").exists()


def test_a_library_without_its_licence_is_refused(folder_with, tmp_path):
    binary = folder_with(BINARIES[HERE], "zlib 1.2 /nonexistent/copyright\n")
    assert "the licence of zlib, is missing" in refusal_of(tmp_path / "out", binary)
    binary.with_name("libraries.txt").unlink()
    assert "libraries.txt is missing" in refusal_of(tmp_path / "out", binary)


def test_two_binaries_of_one_architecture_are_refused(tmp_path):
    assert "for the same architecture" in refusal_of(tmp_path / "out", BINARIES[HERE], BINARIES[HERE])


def test_a_folder_of_somebody_s_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("precious")
    assert "is not empty and holds no image" in refusal_of(tmp_path, BINARIES[HERE])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


# --- at work


class Container:
    """The unpacked root file system, and how a program of it is started."""

    def __init__(self, folder, architecture):
        self.architecture = architecture
        self.root = folder / "bundle/rootfs"
        self.settings = json.loads((ROOT / "deploy/image/config.json").read_text())
        self.user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        self.emulator = shutil.which(EMULATORS[architecture]) if architecture != HERE else None

    def command(self, *args, binds=(), variables=()):
        """As a runtime starts it: what it mounts it may make places for; then the root is read-only. Variables are
        those of the image and those that are given."""
        environment = [word for setting in [*self.settings["Env"], *variables]
                       for word in ("--setenv", *setting.split("=", 1))]
        uid, gid = self.settings["User"].split(":")
        emulator = ["--ro-bind", self.emulator, "/qemu"] if self.emulator else []
        mounts = [word for source, target in [("/etc/hosts", "/etc/hosts"), *binds]
                  for word in ("--ro-bind", source, target)]
        return [*map(str, [
            *self.user, "bwrap", "--bind", self.root, "/", "--dev", "/dev", "--proc", "/proc", *emulator, *mounts,
            "--tmpfs", "/tmp", "--remount-ro", "/", "--unshare-user", "--unshare-pid", "--as-pid-1",
            "--uid", uid, "--gid", gid, "--chdir", self.settings["WorkingDir"], "--die-with-parent",
            "--clearenv", *environment, *(["/qemu"] if self.emulator else []), *args])]

    def run(self, *args, binds=()):
        """What the image's entry point does with these arguments."""
        return subprocess.run(self.command(*self.settings["Entrypoint"], *args, binds=binds), text=True,
                              capture_output=True, timeout=wire.PATIENCE, check=False)

    def check_health(self, router):
        test = self.settings["Healthcheck"]["Test"]
        assert test[0] == "CMD"
        return subprocess.run(self.command(*test[1:], variables=[f"FATHOM_PORT={router.port}"]), text=True,
                              capture_output=True, timeout=wire.PATIENCE, check=False)


class Contained(Process):
    """A `fathom serve` or `fathom mock` inside."""

    def __init__(self, log, container, *args):  # pylint: disable=super-init-not-called
        self.log, self.tls = log, None
        with open(log, "wb") as sink:
            self.popen = subprocess.Popen(container.command(*container.settings["Entrypoint"], *args),
                                          stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        self.wait_for_port()

    @property
    def pid(self):
        """The program's, of which bubblewrap is the parent."""
        children = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        words = children.read_text().split() if children.exists() else []
        return int(words[0]) if words else self.popen.pid

    def signal(self, number):
        if self.popen.poll() is None and self.pid != self.popen.pid:
            os.kill(self.pid, number)


@pytest.fixture(scope="module", params=BINARIES)
def container(request, layout):
    architecture = request.param
    if not shutil.which("bwrap"):
        pytest.skip("no bubblewrap here")
    if architecture != HERE and not shutil.which(EMULATORS[architecture]):
        pytest.skip(f"no {EMULATORS[architecture]} here")
    # Not below pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        run("skopeo", "copy", f"--override-arch={architecture}", f"oci:{layout}:{version()}", f"oci:{folder}/one:it")
        run("umoci", "unpack", *([] if os.geteuid() == 0 else ["--rootless"]), "--image", folder / "one:it",
            folder / "bundle")
        if os.geteuid() == 0:
            (folder / "bundle").chmod(0o755)
            run("chown", "-R", f"{NOBODY}:{NOBODY}", folder / "bundle/rootfs")
        made = Container(folder, architecture)
        tried = subprocess.run(made.command(*made.settings["Entrypoint"], "version"), text=True, capture_output=True,
                               timeout=wire.PATIENCE, check=False)
        if "bwrap: " in tried.stderr:
            pytest.skip(f"no namespaces for users here: {tried.stderr.strip()}")
        assert (tried.returncode, tried.stdout.split()[:2]) == (0, ["fathom", version()]), tried.stderr
        yield made


@pytest.fixture
def start(container, tmp_path):
    processes = []

    def begin(*args):
        processes.append(Contained(tmp_path / f"{len(processes)}.log", container, *args))
        return processes[-1]
    yield begin
    problems = [f"{problem}\n{process.excerpt()}" for process in reversed(processes) if (problem := process.end())]
    assert not problems, "\n".join(problems)


def test_the_loader_finds_every_library(container):
    loader = next(path for path in [*container.root.glob("lib64/ld-linux-*"), *container.root.glob("lib/ld-linux-*")])
    found = subprocess.run(container.command("/" + str(loader.relative_to(container.root)), "--list",
                                             "/usr/bin/fathom"), text=True, capture_output=True, check=False)
    assert found.returncode == 0 and "not found" not in found.stdout, found.stdout + found.stderr
    assert "libc.so.6 =>" in found.stdout


def test_pages_are_in_the_program(container):
    page = container.run("docs", "no-events")
    assert page.returncode == 0 and page.stdout == run_fathom("docs", "no-events").stdout


def test_a_router_and_two_engines_of_the_image_serve_a_conversation(container, start):
    mocks = [start("mock", "--port", wire.free_port(), "--kv-events-port", wire.free_port(),
                   "--kv-events-replay-port", wire.free_port()) for _ in range(2)]
    # By a name: the C library looks it up.
    router = start("serve", "--host", "localhost", "--port", wire.free_port(), "--admin-listen",
                   f"127.0.0.1:{wire.free_port()}", "--worker-urls", ",".join(mock.url for mock in mocks))
    eventually(lambda: container.check_health(router).returncode == 0, "the health check says yes")
    assert not container.user or f"Uid:\t{NOBODY}\t" in Path(f"/proc/{router.pid}/status").read_text()
    mounted = Path(f"/proc/{router.pid}/mountinfo").read_text().splitlines()
    assert [line.split()[5].split(",")[0] for line in mounted if line.split()[4] == "/"] == ["ro"]

    def found():
        answer = router.chat(messages=[{"role": "user", "content": "Tell me about the sea and its ports. " * 20}])
        assert answer.status == 200
        return int(answer.header("x-fathom-cached-tokens", "0"))
    eventually(found, "the same prompt is found in a cache")

    router.signal(signal.SIGTERM)
    assert router.wait() == 0, router.log_text()
    gone = container.check_health(router)
    assert gone.returncode == 1 and "connection refused" in gone.stderr


def test_https_is_verified_with_a_given_file_and_with_the_image_s(container, serve, mock, tmp_path):
    authority = Authority(tmp_path)
    authority.certificate.chmod(0o644)
    trusted = Path(shutil.copy(authority.certificate, container.root.parent.parent / "ca.pem"))
    certificate, key = authority.issue("router")
    router = serve("--tls-cert", certificate, "--tls-key", key, workers=[mock()], tls=authority.client())
    url = f"https://localhost:{router.port}"
    given = container.run("ready", url, "--ca-file", "/ca.pem", binds=[(trusted, "/ca.pem")])
    assert given.returncode == 0, given.stderr
    unknown = container.run("ready", url)
    assert unknown.returncode == 1 and "certificate" in unknown.stderr
    # Where the program looks without being asked is where the bundle lies.
    bundled = container.run("ready", url, binds=[(trusted, "/etc/ssl/certs/ca-certificates.crt")])
    assert bundled.returncode == 0, bundled.stderr


def test_the_bundle_is_debian_s(container):
    text = (container.root / "etc/ssl/certs/ca-certificates.crt").read_text()
    assert text.count("-----BEGIN CERTIFICATE-----\n") == text.count("-----END CERTIFICATE-----\n") > 100
