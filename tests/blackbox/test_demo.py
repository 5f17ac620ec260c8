"""The demonstration: two routers, their workers and the same traffic for both, in one process."""

import fcntl
import os
import pty
import re
import signal
import struct
import termios

import pytest

from conftest import FATHOM, Process, clean_environment, run_fathom


def summary_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout[done.stdout.index("fathom demo"):]


def row(summary, label):
    """The cells of a row of the summary's table."""
    line = re.search(rf"^{re.escape(label)} {{2,}}(.*)$", summary, re.MULTILINE)
    assert line, f"no row '{label}' in\n{summary}"
    return re.split(r" {2,}", line.group(1).strip())


def milliseconds(text):
    number, unit = text.split()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def test_the_demo_runs_for_as_long_as_it_is_told_and_ends_well():
    done = run_fathom("demo", "--seconds", 5, "--workers", 2, "--concurrency", 4)
    summary = summary_of(done)
    listening = re.findall(r"^(\S+): listening at (http://127\.0\.0\.1:\d+)$", done.stdout,
                           re.MULTILINE)
    assert [mode for mode, _ in listening] == ["kv", "round-robin"]
    assert listening[0][1] != listening[1][1]
    assert all(url in summary for _, url in listening)
    assert re.search(r"^0:\d\d kv: turns=\d+ errors=0 ", done.stdout, re.MULTILINE), done.stdout
    assert "\x1b" not in done.stdout
    assert all(int(cell.split(",")[0]) > 0 for cell in row(summary, "turns"))
    assert row(summary, "errors") == ["0", "0"]


@pytest.mark.slow
def test_follow_up_turns_find_far_more_of_their_prompts_with_kv_routing_than_with_round_robin():
    """How much sooner they are answered is only read, because others may use this machine too."""
    done = run_fathom("demo", "--seconds", 12, "--think-time", "300ms", "--speedup", 3)
    summary = summary_of(done)
    reused, reused_other = (int(cell.rstrip("%")) for cell in row(summary, "prompt reused"))
    assert reused > reused_other + 15, summary
    kv, other, ratio = row(summary, "follow-up p50")
    assert milliseconds(kv) > 0 and milliseconds(other) > 0 and float(ratio) > 0, summary
    assert re.search(rf"^follow-up turns: kv {kv}, round-robin {other}: \S+ ",
                     summary, re.MULTILINE), summary


def test_with_sessions_every_policy_meets_the_cache_of_its_conversation():
    done = run_fathom("demo", "--seconds", 8, "--concurrency", 4, "--think-time", "50ms",
                      "--speedup", 4, "--sessions", "--router-mode", "random", "--compare", "none")
    summary = summary_of(done)
    (reused,) = row(summary, "prompt reused")
    assert int(reused.rstrip("%")) > 30, summary
    assert "round-robin" not in done.stdout


def test_an_interrupted_demo_still_says_what_it_saw_and_ends_well(tmp_path):
    demo = Process(tmp_path / "demo.log", "demo", "--workers", 2, "--concurrency", 2)
    demo.wait_for_log(r"0:\d\d kv: turns=[1-9]")
    demo.signal(signal.SIGINT)
    assert demo.wait() == 0, demo.log_text()
    assert re.search(r"^follow-up turns: kv ", demo.log_text(), re.MULTILINE)


@pytest.mark.parametrize("arguments, word", [(["--router-mode", "direct"], "direct"),
                                             (["--compare", "direct"], "compare")])
def test_the_demo_says_that_it_cannot_run_in_direct_mode(arguments, word):
    done = run_fathom("demo", "--seconds", 1, *arguments)
    assert done.returncode == 78
    assert word in done.stderr


def on_a_terminal(columns, rows, *arguments):
    """What the demo draws on a terminal of that size, picture by picture, and its exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = clean_environment({"TERM": "xterm"})
        environment.pop("NO_COLOR", None)
        os.execve(FATHOM, [FATHOM, "demo", *arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    drawn = b""
    try:
        while piece := os.read(terminal, 65536):
            drawn += piece
    except OSError:  # how Linux says that the other end has gone
        pass
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    pictures = re.split(r"\x1b\[\d+F\x1b\[J", drawn.decode().replace("\r\n", "\n"))
    return pictures, os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_both_sides_are_drawn_beside_each_other_in_place(columns):
    pictures, status = on_a_terminal(columns, 24, "--seconds", "3")
    assert status == 0, pictures[-1]
    live, summary = pictures[-2], pictures[-1]
    assert "\x1b[1m" in live
    plain = re.sub(r"\x1b\[\d*m", "", live)
    assert re.search(r"^kv .*│ round-robin ", plain, re.MULTILINE), plain
    assert re.search(r"^mock-3 .*│ mock-3 ", plain, re.MULTILINE), plain
    assert max(map(len, plain.splitlines())) <= columns
    assert len(plain.splitlines()) < 24
    assert "follow-up turns: " in summary
