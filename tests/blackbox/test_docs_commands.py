"""Blocks of pages that are marked "sh runnable" run, from the first to the last of a page in one shell, in a copy of
the repository, with ports that are free; and what a "text expected" block behind one shows is in its output."""

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM, ROOT, clean_environment
from docs_pages import NOT_OURS, PAGES, blocks, name_of

RUNNABLE, EXPECTED = "sh runnable", "text expected"
PATIENCE = 240
# Ports as they are written: of addresses, of options, and those that a command has when none is named.
PORT = re.compile(r"(?<=[\w*\]}]:)(\d{4,5})\b|(?<=port[ =])(\d{4,5})\b")
USUAL = {"serve": 8000, "mock": 8100}


def runnable(text):
    """(block, lines that its output must have) of each block to run."""
    all_of_them = blocks(text)
    found = []
    for block, after in zip(all_of_them, [*all_of_them[1:], None]):
        if block.info == RUNNABLE:
            expected = after.text.splitlines() if after and after.info == EXPECTED else []
            found.append((block, [line.strip() for line in expected if line.strip() not in ("", "…")]))
    return found


def with_usual_ports(script):
    """Names the ports that commands would choose by themselves, so that they can be replaced."""
    def name_it(call):
        line, command = call[0], call[1]
        return line if re.search(r"--(?:http-)?port\b|--config\b|--help", line) else re.sub(
            rf"fathom {command}\b", f"fathom {command} --port {USUAL[command]}", line, count=1)
    return re.sub(r"\bfathom (serve|mock)\b(?:[^\n&|;\\]|\\\n)*", name_it, script)


def free(port):
    with socket.socket() as attempt:
        try:
            attempt.bind(("", port))
        except OSError:
            return False
        return True


def on_free_ports(script, chosen=os.getpid()):
    """The script with all its ports moved by one distance, so that those beside each other stay so. They end up below
    those that the system hands out, and in different places for tests that run at once."""
    script = with_usual_ports(script)
    ports = {int(next(filter(None, found))) for found in PORT.findall(script)}
    for attempt in range(200):
        distance = 10000 + (chosen * 97 + attempt * 211) % 12000
        if all(free(port + distance) for port in ports):
            return PORT.sub(lambda found: str(int(found[0]) + distance), script)
    raise AssertionError(f"no free ports for {sorted(ports)}")


def copy_of_the_repository(folder):
    shutil.copytree(ROOT, folder, ignore=lambda where, names: NOT_OURS & set(names) if Path(where) == ROOT
                    else {"node_modules", "__pycache__", ".pytest_cache"} & set(names))
    (folder / "bin").mkdir()
    (folder / "bin/fathom").symlink_to(Path(FATHOM).resolve())
    # Pages that build first name the program by its place.
    (folder / "build/release").mkdir(parents=True)
    (folder / "build/release/fathom").symlink_to(Path(FATHOM).resolve())


def run_page(text, folder):
    """The exit status, and the output of each block that was begun; what they left running is ended."""
    copy_of_the_repository(folder / "fathom")
    steps = runnable(text)
    script = "set -eu\n" + "".join(
        f"{block.text}exec >{folder}/{number + 1}.txt 2>&1\n" for number, (block, _) in enumerate(steps))
    script = f"exec >{folder}/0.txt 2>&1\n" + on_free_ports(script)
    environment = clean_environment({"PATH": f"{folder}/fathom/bin:{os.environ['PATH']}", "HOME": str(folder)})
    shell = subprocess.Popen(["bash", "-c", script], cwd=folder / "fathom", env=environment,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        status = shell.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        status = f"nothing within {PATIENCE} s"
    finally:
        end_group(shell.pid)
        shell.wait()
    return status, [read(folder / f"{number}.txt") for number in range(len(steps))]


def end_group(group):
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        subprocess.run(["sleep", "0.5"], check=True)


def read(path):
    return path.read_text(errors="replace") if path.exists() else None


def not_shown(expected, output):
    """Expected lines that the output lacks; … is anything, and spaces count as one."""
    seen = [" ".join(line.split()) for line in output.splitlines()]
    patterns = {line: ".*".join(re.escape(" ".join(part.split())) for part in re.split(r"…|\.\.\.", line))
                for line in expected}
    return [line for line, pattern in patterns.items()
            if not any(re.search(rf"(?:^|\s){pattern}", f" {one}") for one in seen)]


def complaints(text, folder):
    status, outputs = run_page(text, folder)
    said = "\n".join(output or "" for output in outputs)[-4000:]
    wrong = [] if status == 0 else [f"status {status}:\n{said}"]
    for (block, expected), output in zip(runnable(text), outputs):
        wrong += [f"{block.line}: not shown: {line}\n{output}" for line in not_shown(expected, output or "")]
    return wrong


WITH_BLOCKS = [page for page in PAGES if runnable(page.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_the_blocks_of_a_page_run(page, tmp_path):
    assert complaints(page.read_text(), tmp_path) == []


def test_the_quick_start_can_be_run():
    assert ROOT / "docs/quickstart.md" in WITH_BLOCKS


def test_the_quick_start_is_held_against_what_it_shows():
    shown = [expected for _, expected in runnable((ROOT / "docs/quickstart.md").read_text()) if expected]
    assert len(shown) >= 3


def test_blocks_are_marked_as_the_test_reads_them():
    marks = {block.info for page in PAGES for block in blocks(page.read_text())}
    assert {mark for mark in marks if re.search(r"\s|run|expect", mark)} <= {RUNNABLE, EXPECTED}


# --- that these can fail


def page_of(script, expected=""):
    shown = f"\n```{EXPECTED}\n{expected}\n```\n" if expected else ""
    return f"# Page\n\n```{RUNNABLE}\n{script}\n```\n{shown}"


@pytest.mark.parametrize("wrong", ["false", "fathom no-such-command", "echo $not_set", "test -e no/such/file\ntrue"])
def test_a_block_that_fails_is_noticed(wrong, tmp_path):
    assert complaints(page_of(wrong) + page_of("true"), tmp_path)


def test_output_that_is_not_as_shown_is_noticed(tmp_path):
    assert len(complaints(page_of("echo one; echo two 3", "one\ntwo …\nthree"), tmp_path)) == 1


def runs(pid):
    """Not one that has ended and that nobody has asked about."""
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_blocks_share_a_shell_and_a_copy_and_leave_nothing_running(tmp_path):
    first = page_of("fathom mock --port 8100 --profile paced & echo $! >pid\nwhere=docs")
    second = page_of("ls $where\ncurl -sf --retry 50 --retry-delay 1 --retry-connrefused localhost:8100/health\n"
                     "echo up", "quickstart.md\nup")
    assert complaints(first + second, tmp_path) == []
    assert not runs((tmp_path / "fathom/pid").read_text().strip())


def test_ports_are_replaced_everywhere_alike():
    script = on_free_ports("fathom mock --port 8101 &\nfathom mock &\nfathom serve --worker-urls http://127.0.0.1:8101,"
                           "http://localhost:8100 &\ncurl localhost:8000/v1 -d '{\"max_tokens\": 8101}'\n")
    ports = [int(port) for port in re.findall(r"\d{5}", script)]
    assert len(ports) == 6 and len(set(ports)) == 3
    assert sorted(set(ports))[0] + 100 == sorted(set(ports))[1] == sorted(set(ports))[2] - 1
    assert '"max_tokens": 8101' in script
