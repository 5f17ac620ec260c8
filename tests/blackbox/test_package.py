"""The Debian package installs, runs as its own user, and is removed cleanly.

It is really installed, so this needs root, and a machine where nothing of that name is.
"""

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import wire
from conftest import FATHOM, ROOT, clean_environment, run_fathom
from docs_pages import links
from wire import eventually

ROOT_COMMAND = [] if os.geteuid() == 0 else ["sudo", "-n"]
CONFIG = Path("/etc/fathom/fathom.yaml")
MAINTAINER = "blackbox-tests@packages.invalid"
ENABLED = Path("/etc/systemd/system/multi-user.target.wants/fathom.service")

pytestmark = pytest.mark.slow


def run(*command, status=0, **options):
    result = subprocess.run([*map(str, command)], text=True, capture_output=True,
                            timeout=5 * wire.PATIENCE, check=False, **options)
    assert status is None or result.returncode == status, f"{command}:\n{result.stdout}{result.stderr}"
    return result.stdout


def as_root(*command, **options):
    return run(*ROOT_COMMAND, *command, **options)


def apt(*command):
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return as_root("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=60", *command, env=environment)


def why_not_built():
    if any(name in FATHOM for name in ("build/asan", "build/tsan")):
        return "only the release build is packaged"
    missing = [name for name in ("dpkg-deb", "dpkg-shlibdeps", "apt-get") if not shutil.which(name)]
    return f"no {missing[0]} here" if missing else None


@contextmanager
def machine_for_itself():
    """There is one /etc: two runs of this, of whichever checkouts, take turns."""
    with open(Path(tempfile.gettempdir()) / "fathom-package-test.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_of_a_test():
    """What a killed run left behind; what ./dev package makes has another maintainer."""
    return f"<{MAINTAINER}>" in run("dpkg-query", "-W", "-f=${Maintainer}", "fathom", status=None)


def why_not_installed():
    """A machine on which somebody uses Fathom is left alone."""
    unit = Path("/lib/systemd/system/fathom.service")
    for path in (CONFIG.parent, Path("/usr/bin/fathom"), unit, ENABLED):
        if os.path.lexists(path):
            return f"{path} is somebody's"
    if ROOT_COMMAND and not shutil.which("sudo"):
        return "needs root"
    asked = subprocess.run([*ROOT_COMMAND, "true"], capture_output=True, check=False)
    return "needs root" if asked.returncode else None


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    if reason := why_not_built():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("package")
    run(ROOT / "deploy/debian/build", Path(FATHOM).parent, folder,
        env={**os.environ, "DEBEMAIL": MAINTAINER})
    (made,) = folder.iterdir()
    folder.chmod(0o755)
    return made


def has_user():
    return "fathom" in [user.pw_name for user in pwd.getpwall()]


def purge(with_user):
    apt("purge", "fathom")
    if with_user and has_user():  # packages leave their users, tests do not
        as_root("userdel", "fathom")


@pytest.fixture
def installed(package):
    with machine_for_itself():
        as_root("dpkg", "--configure", "-a")  # what a killed run did not end; apt-get refuses to work before
        if is_of_a_test():
            purge(with_user=True)
        if reason := why_not_installed():
            pytest.skip(reason)
        had_user = has_user()
        try:
            apt("install", package)
            yield package
        finally:
            purge(with_user=not had_user)


def field(package, name):
    return run("dpkg-deb", "-f", package, name).strip()


def package_names(depends):
    return {entry.split()[0] for entry in depends.split(", ")}


def test_its_name_says_version_and_architecture(package):
    version = run_fathom("version").stdout.split()[1]
    architecture = run("dpkg", "--print-architecture").strip()
    assert package.name == f"fathom_{version}_{architecture}.deb"
    assert (field(package, "Version"), field(package, "Architecture")) == (version, architecture)


def test_it_depends_on_the_packages_of_its_libraries(package):
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", FATHOM))
    paths = dict(re.findall(r"(\S+) => (\S+)", run("ldd", FATHOM)))
    owners = set()
    for library in needed:
        found = next((path for path in (paths.get(library), f"/lib64/{library}") if path), None)
        real = os.path.realpath(found)
        owner = run("dpkg", "-S", real, status=None) or run("dpkg", "-S", real.removeprefix("/usr"))
        owners.add(owner.split(":")[0])
    assert len(owners) > 8
    assert package_names(field(package, "Depends")) == owners | {"adduser"}


def test_its_files_are_root_s_and_only_the_binary_is_a_program(package):
    listed = run("dpkg-deb", "-c", package).splitlines()
    files = {words[5].removeprefix("."): words for words in (line.split(None, 5) for line in listed)}
    assert {words[1] for words in files.values()} == {"root/root"}
    programs = [path for path, words in files.items() if words[0].startswith("-rwx")]
    assert programs == ["/usr/bin/fathom"]
    assert {"/etc/fathom/fathom.yaml", "/lib/systemd/system/fathom.service",
            "/usr/share/man/man1/fathom.1.gz", "/usr/share/doc/fathom/copyright",
            "/usr/share/doc/fathom/README.md",
            "/usr/share/doc/fathom/docs/runbooks/no-events.md", "/usr/share/fathom/grafana/fathom.json",
            "/usr/share/fathom/prometheus/fathom-alerts.yml"} <= set(files)


def test_its_binary_has_no_symbols_left_and_its_scripts_are_right(package, tmp_path):
    run("dpkg-deb", "-R", package, tmp_path)
    assert ".symtab" not in run("readelf", "-S", "-W", tmp_path / "usr/bin/fathom")
    assert (tmp_path / "DEBIAN/conffiles").read_text() == f"{CONFIG}\n"
    run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=tmp_path)
    for script in ("postinst", "prerm", "postrm"):
        run("sh", "-n", tmp_path / "DEBIAN" / script)


def test_the_manual_page_has_every_command():
    commands = re.findall(r"^  (\w+) +[A-Z]", run_fathom("--help").stdout, re.MULTILINE)
    page = (ROOT / "deploy/debian/fathom.1").read_text()
    assert len(commands) > 5
    assert re.findall(r"^\.TP\n\.B (\w+)$", page.split(".SH EXIT")[0], re.MULTILINE) == commands


def test_the_configuration_is_right_as_it_comes_and_with_every_comment_taken_away(tmp_path):
    shipped = ROOT / "deploy/debian/fathom.yaml"
    whole = tmp_path / "fathom.yaml"
    whole.write_text(re.sub(r"(?m)^#(?=[a-z]|  - |    \w+:)", "", shipped.read_text()))
    for file, workers in ((shipped, 0), (whole, 4)):
        shown = run_fathom("serve", "--config", file, "--print-config", env={"GPU_3_KEY": "secret"})
        assert shown.returncode == 0, shown.stderr
        assert len(re.findall(r"^  \S*https?://", shown.stdout, re.MULTILINE)) == workers
        assert run_fathom("lint", file).returncode == 0


def test_readme_debian_names_what_links_of_the_installed_pages_miss():
    readme = " ".join((ROOT / "deploy/debian/README.Debian").read_text().split())
    named, = re.findall(r"Links of these pages to (.*?) lead to files that are only in the repository", readme)
    outside = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for _, target in links(page.read_text()):
            if not re.match(r"\w+:|#", target):
                path = (page.parent / target.partition("#")[0]).resolve().relative_to(ROOT)
                outside.add(path.parts[0] + "/" * (ROOT / path.parts[0]).is_dir())
    installed_there = {"docs/", "README.md", "CHANGELOG.md"}
    assert set(re.split(r", | and ", named)) == outside - installed_there


def exec_start():
    unit = Path("/lib/systemd/system/fathom.service").read_text()
    return re.search(r"^ExecStart=(.*)", unit, re.MULTILINE).group(1).split()


def test_it_installs_runs_as_its_own_user_and_is_removed_cleanly(installed, mock, tmp_path):
    listed = [Path(path) for path in run("dpkg", "-L", "fathom").splitlines()]
    files = [path for path in listed if path.is_file()]
    assert run("/usr/bin/fathom", "version") == run_fathom("version").stdout
    user = pwd.getpwnam("fathom")
    assert 0 < user.pw_uid < 1000 and user.pw_shell.endswith("nologin")
    assert not os.path.lexists(ENABLED), "nobody asked for it"

    serves(mock(), tmp_path / "service.log", user.pw_uid)

    edited = CONFIG.read_text()
    apt("install", "--reinstall", installed)
    assert CONFIG.read_text() == edited, "what the operator wrote stays"

    as_root("systemctl", "enable", "fathom.service")
    assert os.path.lexists(ENABLED)
    apt("remove", "fathom")
    assert [path for path in files if path.exists()] == [CONFIG]
    assert not os.path.lexists(ENABLED)

    as_root("tee", "/etc/fathom/fathom.env", input="FATHOM_ADMIN_KEY=secret\n")
    apt("purge", "fathom")
    assert not CONFIG.parent.exists()
    own = [path for path in listed if "fathom" in str(path)]
    assert not [path for path in own if os.path.lexists(path)]
    assert run("dpkg-query", "-W", "-f=${Status}", "fathom", status=None) in ("", "unknown ok not-installed")


def serves(engine, log, uid):
    """The unit's own command, as its user: there may be no systemd here."""
    port = wire.free_port()
    text = CONFIG.read_text().replace("port: 8000", f"port: {port}")
    as_root("tee", CONFIG, input=text + f"workers: [{engine.url}]\n")
    command = [*ROOT_COMMAND, "setpriv", "--reuid=fathom", "--regid=fathom", "--clear-groups",
               "--no-new-privs", *exec_start()]
    with open(log, "wb") as sink:
        router = subprocess.Popen(command, env=clean_environment(), stdout=sink, stderr=sink, cwd="/")
    try:
        def answers(target):
            assert router.poll() is None, log.read_text()
            try:
                return wire.get(port, target).status == 200
            except ConnectionError:
                return False
        eventually(lambda: answers("/live"), "it lives")
        eventually(lambda: answers("/ready"), "it is ready")
        if not ROOT_COMMAND:  # else it is sudo's process
            assert Path(f"/proc/{router.pid}").stat().st_uid == uid
        assert wire.chat(port).status == 200
    finally:
        as_root("kill", router.pid, status=None)
        assert router.wait(wire.PATIENCE) == 0, log.read_text()
