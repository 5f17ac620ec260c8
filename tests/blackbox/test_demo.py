"""The demonstration: two routers, their workers and the same traffic for both, in one process."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import pytest

from conftest import FATHOM, Process, clean_environment, run_fathom
from wire import eventually


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
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    assert all(int(cell.split(",")[0]) > 0 for cell in row(summary, "turns"))
    assert row(summary, "errors") == ["0", "0"]


@pytest.mark.slow
def test_follow_up_turns_find_far_more_of_their_prompts_with_kv_routing_than_with_round_robin():
    """How much sooner they are answered is only read, because others may use this machine too."""
    done = run_fathom("demo", "--seconds", 12, "--think-time", "300ms", "--speedup", 3)
    summary = summary_of(done)
    reused, reused_other = (int(cell.rstrip("%")) for cell in row(summary, "prompt reused"))
    assert reused > reused_other + 15, summary
    kv, other, ratio = row(summary, "  follow-up, p50")
    assert milliseconds(kv) > 0 and milliseconds(other) > 0 and float(ratio) > 0, summary
    assert re.search(r"^Follow-up turns start .* with kv (than|as) with round-robin$", summary, re.MULTILINE), summary
    assert re.search(rf"^p50 time to first token: kv {kv} \(n=\S+\), round-robin {other} \(",
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
    # Far too early for a comparison.
    assert re.search(r"^samples: kv \d+ of 30, round-robin \d+ of 30$", demo.log_text(), re.MULTILINE)
    assert "times sooner" not in demo.log_text()


@pytest.mark.parametrize("arguments, word", [
    (["--router-mode", "direct"], "direct"),
    (["--compare", "direct"], "compare"),
    (["--router-mode", "random", "--break-after", "1s"], "break-after"),
    (["--profile", "paced", "--break-after", "1s"], "break-after"),
    (["--repair-after", "1s"], "repair-after"),
    (["--break-after", "2s", "--repair-after", "1s"], "repair-after")])
def test_the_demo_says_what_it_cannot_do(arguments, word):
    done = run_fathom("demo", "--seconds", 1, *arguments)
    assert done.returncode == 78
    assert word in done.stderr


@pytest.mark.slow
def test_a_worker_that_loses_events_is_doubted_and_trusted_again_after_its_repair():
    done = run_fathom("demo", "--seconds", 24, "--break-after", "4s", "--repair-after", "8s")
    assert done.returncode == 0, done.stdout + done.stderr
    story = (r"^0:04 (mock-\d) loses every second batch of its KV events since 0:04$"
             r"[\s\S]*^0:0\d \1 is doubted \(event_gap\): reused \d+% -> \d+%, \S+ tokens recomputed$"
             r"[\s\S]*^0:08 \1 was repaired at 0:08; "
             r"[\s\S]*^0:(1[4-9]|2\d) \1 is trusted again since ")
    assert re.search(story, done.stdout, re.MULTILINE), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    assert "A rank is doubted: event_gap" in done.stderr


class Terminal:
    """The demo on a terminal: what it draws, picture by picture, and keys for it."""

    def __init__(self, columns, rows, *arguments):
        # The demo gets this end; that it is still open afterwards shows how the demo leaves it.
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        environment = clean_environment({"TERM": "xterm"})
        environment.pop("NO_COLOR", None)
        self.drawn = b""
        self.popen = subprocess.Popen(
            [FATHOM, "demo", *map(str, arguments)], env=environment, start_new_session=True,
            stdin=self.slave, stdout=self.slave, stderr=self.slave,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, key):
        os.write(self.master, key.encode())

    def read(self, patience=0.1):
        while select.select([self.master], [], [], patience)[0]:
            self.drawn += os.read(self.master, 65536)
            patience = 0

    def text(self):
        return re.sub(r"\x1b\[[\d?]*[mKJhl]", "", self.drawn.decode(errors="replace").replace("\r\n", "\n"))

    def pictures(self):
        """The pictures, without colours. The last one is the summary."""
        live, _, summary = self.drawn.decode(errors="replace").rpartition("\x1b[?1049l")
        parts = [*live.split("\x1b[H")[1:], summary] if live else summary.split("\x1b[H")[1:]
        return [re.sub(r"\x1b\[[\d?]*[mKJhl]", "", part.replace("\r\n", "\n")) for part in parts]

    def wait_for(self, pattern):
        """A picture with it."""
        def look():
            self.read()
            assert self.popen.poll() is None, self.text()
            return [picture for picture in self.pictures() if re.search(pattern, picture, re.MULTILINE)]
        return eventually(look, f"'{pattern}' on the terminal")[-1]

    def wait(self):
        """The exit status. Terminals have little room: they are read until the demo has ended."""
        while self.popen.poll() is None:
            self.read()
        self.read()
        return self.popen.returncode

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    opened = []

    def start(*arguments):
        opened.append(Terminal(*arguments))
        return opened[-1]
    yield start
    for each in opened:
        each.close()


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_terminal_both_sides_are_drawn_beside_each_other_in_place(terminal, columns):
    demo = terminal(columns, 24, "--seconds", 3)
    assert demo.wait() == 0, demo.text()
    live, summary = demo.pictures()[-2:]
    assert b"\x1b[1m" in demo.drawn
    assert re.search(r"^kv .*│ round-robin ", live, re.MULTILINE), live
    assert re.search(r"^mock-3 .*│ mock-3 ", live, re.MULTILINE), live
    assert max(map(len, live.splitlines())) <= columns
    assert len(live.splitlines()) < 24
    assert "samples: kv " in live and "times sooner" not in live
    assert "time to first token" in summary and demo.restored()


@pytest.mark.slow
def test_keys_break_a_worker_repair_it_and_leave(terminal):
    demo = terminal(80, 24)
    demo.wait_for(r"^b  break .* q  quit$")
    assert not demo.restored(), "keys need no Enter"
    demo.wait_for(r"all workers are trusted")
    demo.press("b")
    doubted = demo.wait_for(r"^(mock-\d) is doubted \(event_gap\): ")
    worker = re.search(r"^(mock-\d) is doubted", doubted, re.MULTILINE).group(1)
    assert re.search(rf"^{worker} .* doubted +│", doubted, re.MULTILINE), doubted
    demo.press("r")
    demo.wait_for(rf"^{worker} was repaired at ")
    mended = demo.wait_for(rf"^{worker} is trusted again since ")
    assert re.search(rf"^{worker} .* trusted +│", mended, re.MULTILINE), mended
    demo.press("q")
    assert demo.wait() == 0, demo.text()
    assert demo.restored()
    # The router's warning is written once the pictures are gone, not into them.
    before, _, after = demo.drawn.decode().rpartition("\x1b[?1049l")
    assert "A rank is doubted" in after and "A rank is doubted" not in before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_as_it_was(terminal, number):
    demo = terminal(80, 24)
    demo.wait_for(r"q  quit$")
    assert not demo.restored()
    demo.popen.send_signal(number)
    assert demo.wait() == (-number if number == signal.SIGQUIT else 0), demo.text()
    assert demo.restored()
    assert b"\x1b[?1049l" in demo.drawn


def test_the_picture_follows_the_size_of_the_terminal(terminal):
    demo = terminal(160, 50)
    demo.wait_for(r"^mock-0 .*│ mock-0 ")
    for columns, rows in ((80, 24), (40, 12), (20, 5), (160, 50)):
        demo.resize(columns, rows)
        demo.read(0.6)
        start = len(demo.pictures())
        eventually(lambda: (demo.read(), len(demo.pictures()) > start + 2)[1], "it draws")
        picture = demo.pictures()[-2].splitlines()
        assert max(map(len, picture)) <= columns and len(picture) < rows, "\n".join(picture)
        assert max(map(len, picture)) > columns * 0.8
    demo.press("q")
    assert demo.wait() == 0
