"""The Debian package installs, runs as its own user, and is removed cleanly.

It is really installed, so this needs root, and a machine where nothing of that name is.
"""

import fcntl
import gzip
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
from shells import script_of
from wire import eventually

ROOT_COMMAND = [] if os.geteuid() == 0 else ["sudo", "-n"]
CONFIG = Path("/etc/fathom/fathom.yaml")
MAINTAINER = "blackbox-tests@packages.invalid"
COMPLETIONS = {"bash": Path("/usr/share/bash-completion/completions/fathom"),
               "zsh": Path("/usr/share/zsh/vendor-completions/_fathom"),
               "fish": Path("/usr/share/fish/vendor_completions.d/fathom.fish")}
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


def finish_interrupted_dpkg():
    """What a killed run did not end: apt-get refuses to work before. Only then, because it does not wait for others."""
    if list(Path("/var/lib/dpkg/updates").glob("[0-9]*")):
        as_root("dpkg", "--configure", "-a")


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


def build_environment():
    return {**os.environ, "DEBEMAIL": MAINTAINER, "SOURCE_DATE_EPOCH": ""}


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    if reason := why_not_built():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("package")
    run(ROOT / "deploy/debian/build", Path(FATHOM).parent, folder, env=build_environment())
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
        finish_interrupted_dpkg()
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
            "/usr/share/man/man1/fathom.1.gz", *map(str, COMPLETIONS.values()), "/usr/share/doc/fathom/copyright",
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


def test_its_manual_pages_and_completions_are_those_of_its_binary(package, tmp_path):
    run("dpkg-deb", "-x", package, tmp_path)
    pages = sorted(path.name for path in (tmp_path / "usr/share/man/man1").iterdir())
    commands = re.findall(r"^  (\w+) +[A-Z]", run_fathom("--help").stdout, re.MULTILINE)
    with_options = set(commands) - {"bench", "docs", "completion", "version"}
    assert len(with_options) > 5
    assert pages == sorted(["fathom.1.gz", *(f"fathom-{command}.1.gz" for command in with_options)])
    for page in pages:
        text = gzip.decompress((tmp_path / "usr/share/man/man1" / page).read_bytes()).decode()
        assert text == run_fathom("docs", page.removesuffix(".gz")).stdout
    for shell, path in COMPLETIONS.items():
        assert (tmp_path / path.relative_to("/")).read_text() == script_of(shell)


def test_two_builds_are_the_same_bytes(package, tmp_path):
    """At another time, into another folder, for a user with another language, time zone and mask."""
    environment = {**build_environment(), "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8",
                   "TMPDIR": str(tmp_path), "XZ_DEFAULTS": "--threads=4", "DPKG_DEB_THREADS_MAX": "7"}
    run("bash", "-c", 'umask 077 && exec "$@"', "-", ROOT / "deploy/debian/build", Path(FATHOM).parent,
        tmp_path / "another", env=environment)
    (again,) = (tmp_path / "another").iterdir()
    assert again.read_bytes() == package.read_bytes()


def test_a_shipped_program_is_compiled_by_paths_that_every_clone_has():
    """Whole-program optimisation makes names from them, and the build id."""
    told = run(ROOT / "tools/relative_paths", "printf", r"%s\n", f"-I{ROOT}/src", f"{ROOT}/src/a.cc", "/usr/b.h",
               cwd=ROOT / "tests/blackbox")
    assert told.split() == ["-I../../src", "../../src/a.cc", "/usr/b.h"]
    flags = (ROOT / "cmake/flags.cmake").read_text()
    whole_program = re.search(r"if\(FATHOM_WHOLE_PROGRAM\)(.*?)endif", flags, re.DOTALL)[1]
    assert "CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/tools/relative_paths" in whole_program


def test_its_time_is_that_of_the_sources(package):
    """Not of the build, and not of the checkout's files."""
    utc = {**os.environ, "TZ": "UTC"}
    times = {" ".join(line.split()[3:5]) for line in run("dpkg-deb", "-c", package, env=utc).splitlines()}
    if (ROOT / ".git").exists():
        sources = run("git", "-C", ROOT, "log", "-1", "--date=format-local:%Y-%m-%d %H:%M", "--format=%cd", env=utc)
    else:
        dated = re.search(r"^## \[[\d.]+\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        sources = f"{dated[1] if dated else '1980-01-01'} 00:00"
    assert times == {sources.strip()}


@pytest.mark.skipif(not shutil.which("lintian"), reason="no lintian here")
def test_lintian_finds_nothing(package, tmp_path):
    done = subprocess.run(["lintian", "--allow-root", "--pedantic", "--fail-on", "error,warning,pedantic", package],
                          text=True, capture_output=True, timeout=5 * wire.PATIENCE, check=False,
                          env={**os.environ, "TMPDIR": str(tmp_path), "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_an_override_of_lintian_says_why():
    lines = (ROOT / "deploy/debian/lintian-overrides").read_text().splitlines()
    for at, line in enumerate(lines):
        assert line.startswith("#") or lines[at - 1].startswith("#"), line


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
    has_a_manual()
    shells_complete_it(tmp_path)

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


def has_a_manual():
    """Where dpkg leaves manual pages away, as in images of containers, there is nothing to show."""
    if Path("/usr/share/man/man1/fathom-serve.1.gz").exists():
        for page in ("fathom", "fathom-serve"):
            shown = run("man", "--warnings=w", page, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
            assert re.search(rf"^ +{page} - ", shown, re.MULTILINE)


def shells_complete_it(home):
    """Each finds the script by itself."""
    bash = Path("/usr/share/bash-completion/bash_completion")
    asked = {"zsh": "autoload -U compinit && compinit -D -u && print $_comps[fathom]",
             "fish": "complete -C 'fathom serve --router-mo' | string replace -r '\\t.*' ''",
             "bash": f"source {bash if bash.exists() else COMPLETIONS['bash']}; "
                     "_completion_loader fathom 2>/dev/null; complete -p fathom"}
    answers = {"zsh": "_fathom", "fish": "--router-mode", "bash": "complete -F _fathom fathom"}
    for shell, question in asked.items():
        options = {"zsh": ["-f"], "fish": [], "bash": ["--norc"]}[shell]
        answer = run(shell, *options, "-c", question, env={"PATH": "/usr/bin:/bin", "HOME": str(home)})
        assert answer.strip() == answers[shell]


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
