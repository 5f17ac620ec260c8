"""The systemd unit is right, and what it forbids is nothing that Fathom needs.

Without systemd as the first process nothing can be started by it; systemd-analyze reads the unit, and the
filter of system calls is put on by hand.
"""

import configparser
import re
import shutil
import subprocess
import sys

import pytest

import wire
from conftest import FATHOM, ROOT, clean_environment, run_fathom
from tokenizers import byte_tokenizer, write_model
from wire import eventually

UNIT = ROOT / "deploy/systemd/fathom.service"

pytestmark = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")


class Repeated(dict):
    """Keys of a unit may be there several times: their values are one list."""

    def __setitem__(self, key, value):
        if key in self and isinstance(value, list):
            value = self[key] + value
        super().__setitem__(key, value)


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None, dict_type=Repeated)
    parser.optionxform = str
    parser.read(UNIT)
    return parser


def service(key):
    return unit()["Service"][key]


def seconds(time):
    number, name = re.fullmatch(r"(\d+)(s|m|min)", time).groups()
    return int(number) * (1 if name == "s" else 60)


def analyze(*args):
    return subprocess.run(["systemd-analyze", *map(str, args)], text=True, capture_output=True,
                          timeout=wire.PATIENCE, check=False)


def verify(text, folder):
    copy = folder / "fathom.service"
    copy.write_text(text.replace("/usr/bin/fathom", FATHOM))
    return analyze("--man=no", "verify", copy)


def test_systemd_finds_nothing_to_complain_about(tmp_path):
    result = verify(UNIT.read_text(), tmp_path)
    assert result.returncode == 0, result.stderr
    assert "fathom.service" not in result.stderr


def test_systemd_would_complain_about_a_setting_that_it_does_not_know(tmp_path):
    result = verify(UNIT.read_text().replace("ProtectHome=yes", "ProtectHomes=yes"), tmp_path)
    assert "ProtectHomes" in result.stderr


def test_little_of_the_machine_is_exposed():
    # 0 is nothing, 10 all; a unit without any of it has 9.6. In tenths.
    result = analyze("security", "--offline=true", "--threshold=15", UNIT)
    assert result.returncode == 0, result.stdout


def test_it_runs_as_its_own_user_with_options_that_the_binary_knows():
    assert service("User") == "fathom" and service("Group") == "fathom"
    command = service("ExecStart").split()
    assert command[0] == "/usr/bin/fathom"
    config = command.index("--config") + 1
    assert command[config] == "/etc/fathom/fathom.yaml"
    command[config] = ROOT / "deploy/debian/fathom.yaml"
    assert run_fathom(*command[1:], "--print-config").returncode == 0


def test_it_is_killed_only_after_it_could_drain():
    settings = run_fathom("serve", "--print-config").stdout
    drain = re.search(r"^drain-timeout +(\S+)", settings, re.MULTILINE).group(1)
    assert service("KillSignal") == "SIGTERM"
    assert seconds(service("TimeoutStopSec")) > seconds(drain)


def test_a_wrong_configuration_is_not_tried_again(world):
    assert service("Restart") == "on-failure"
    wrong = world.start("serve", "--port", 0, "--router-mode", "kw")
    assert str(wrong.wait()) == service("RestartPreventExitStatus")


def test_crashes_do_not_end_it_for_good():
    assert unit()["Unit"]["StartLimitIntervalSec"] == "0"


# Starts its arguments under the unit's filter: a call that it does not allow ends the process.
UNDER_FILTER = r"""
import os, subprocess, sys
import seccomp

def calls(name):
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], text=True, capture_output=True,
                          check=True).stdout
    lines = [line.strip() for line in text.splitlines()[1:]]
    return {call for line in lines if line and line[0] != "#" for call in calls(line)}

allowed = calls("@default") | {"execve"}
for names in sys.argv[1].split("\n"):
    chosen = set().union(*map(calls, names.lstrip("~").split()))
    allowed = allowed - chosen if names.startswith("~") else allowed | chosen
filter = seccomp.SyscallFilter(seccomp.KILL_PROCESS)
for call in allowed:
    try:
        filter.add_rule(seccomp.ALLOW, call)
    except RuntimeError:
        pass  # of another processor
filter.load()
os.execv(sys.argv[2], sys.argv[2:])
"""


def filtered(*command):
    return [sys.executable, "-c", UNDER_FILTER, service("SystemCallFilter"), *map(str, command)]


@pytest.fixture
def seccomp_here():
    pytest.importorskip("seccomp")
    if any(name in FATHOM for name in ("build/asan", "build/tsan")):
        pytest.skip("sanitizers need more system calls than Fathom")
    if subprocess.run(filtered("/bin/true"), capture_output=True, check=False).returncode != 0:
        pytest.skip("no filter of system calls can be put on here")


def test_the_filter_of_system_calls_ends_what_it_does_not_allow(seccomp_here):
    chroot = "import os; os.chroot('/')"
    ended = subprocess.run(filtered("/usr/bin/python3", "-c", chroot), capture_output=True, check=False)
    assert ended.returncode < 0


def test_a_router_works_under_the_filter_of_system_calls(seccomp_here, world):
    engine = world.mock(profile="h200-llama-3.1-8b", speedup=20)
    log = world.folder / "filtered.log"
    port = wire.free_port()
    command = filtered(FATHOM, "serve", "--port", port, "--worker-urls", f"http://localhost:{engine.port}")
    with open(log, "wb") as sink:
        router = subprocess.Popen(command, env=clean_environment(), stdout=sink, stderr=sink)
    try:
        def is_ready():
            assert router.poll() is None, f"{router.returncode}:\n{log.read_text()}"
            try:
                return wire.get(port, "/ready").status == 200
            except ConnectionError:
                return False
        eventually(is_ready, "the router is ready")
        prompt = "a question about the sea " * 40

        def found_again():
            answer = wire.chat(port, messages=[{"role": "user", "content": prompt}], max_tokens=4)
            assert answer.status == 200
            return int(answer.header("x-fathom-cached-tokens", "0")) > 0
        eventually(found_again, "the prompt in the cache, as KV events tell")
    finally:
        router.terminate()
        assert router.wait(wire.PATIENCE) == 0, log.read_text()


# As MemoryDenyWriteExecute= would.
NO_MACHINE_CODE = """
import os, sys
import seccomp

filter = seccomp.SyscallFilter(seccomp.ALLOW)
for call, bits in (("mmap", 6), ("mprotect", 4), ("pkey_mprotect", 4)):
    filter.add_rule(seccomp.ERRNO(1), call, seccomp.Arg(2, seccomp.MASKED_EQ, bits, bits))
filter.load()
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_the_tokenizer_s_expressions_need_memory_that_can_be_written_and_run(seccomp_here, tmp_path):
    """The one protection that is left out; when this fails it can be put in."""
    assert "MemoryDenyWriteExecute" not in unit()["Service"]
    split = {"type": "Split", "pattern": {"Regex": "\\w+|\\s+"}, "behavior": "Isolated", "invert": False}
    bytes_after = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = byte_tokenizer(pre_tokenizer={"type": "Sequence", "pretokenizers": [split, bytes_after]})
    command = [FATHOM, "tokenize", "--json", "--model-path", str(write_model(tmp_path, tokenizer))]

    def status(*words):
        return subprocess.run(words, input="hello there", text=True, capture_output=True,
                              env=clean_environment(), timeout=wire.PATIENCE, check=False)
    assert status(*command).returncode == 0, status(*command).stderr
    refused = status(sys.executable, "-c", NO_MACHINE_CODE, *command)
    assert refused.returncode != 0 and "machine code" in refused.stderr
