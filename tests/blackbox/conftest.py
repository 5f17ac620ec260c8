"""Starts the real binary: `mock` and `serve` are the fixtures that most tests use.

The binary is the one that the environment variable FATHOM names. All processes listen on ports of
the system's choice, write their log to a file, and are ended with the test; one that crashed, or
about which a sanitizer has something to say, fails it.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import wire
from wire import eventually

ROOT = Path(__file__).resolve().parents[2]
FATHOM = os.environ.get("FATHOM", str(ROOT / "build/release/fathom"))
# Of the router's random choices: a test that fails must fail again. Another one shows tests that need luck.
SEED = os.environ.get("TEST_SEED", "1")
ALARMS = re.compile(
    r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|FATAL:|terminate called")


def clean_environment(extra=None):
    """Ours, without what would configure Fathom."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FATHOM", "DYN_"))}
    return {**kept, **(extra or {})}


def run_fathom(*args, env=None, stdin=None):
    """A command that ends by itself."""
    return subprocess.run([FATHOM, *map(str, args)], env=clean_environment(env), text=True,
                          capture_output=True, timeout=wire.PATIENCE, input=stdin, check=False)


def flags_of(options):
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        flags += [flag] if value is True else [flag, str(value)]
    return flags


class Process:
    """A running `fathom serve` or `fathom mock`."""

    def __init__(self, log, *args, env=None):
        self.log = log
        self.tls = None
        with open(log, "wb") as sink:
            self.popen = subprocess.Popen([FATHOM, *map(str, args)], env=clean_environment(env),
                                          stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)

    @property
    def pid(self):
        return self.popen.pid

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def log_text(self):
        """All that it has logged so far."""
        eventually(lambda: not self._is_writing_log(), "its log is written")
        return self.log.read_text(errors="replace")

    def _is_writing_log(self):
        """Whether the thread that writes the log was woken and does not wait for records again."""
        for task in Path(f"/proc/{self.pid}/task").glob("*"):
            try:
                if (task / "comm").read_text() == "log\n":
                    return (task / "stat").read_text().rpartition(") ")[2][0] in "RD"
            except OSError:
                pass  # it has ended
        return False

    def wait_for_log(self, pattern):
        """The match of the pattern, once it is in the log."""
        def look():
            found = re.search(pattern, self.log_text())
            assert found or self.popen.poll() is None, f"it has ended:\n{self.log_text()}"
            return found
        return eventually(look, f"'{pattern}' in {self.log}")

    def wait_for_port(self, what="[Ll]istening"):
        self.port = int(self.wait_for_log(what + r'.*?(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)').group(1))

    def signal(self, number):
        self.popen.send_signal(number)

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def wait(self):
        return self.popen.wait(wire.PATIENCE)

    def end(self):
        """Politely, so that leaks are looked for; returns what is wrong, if anything."""
        for _ in range(40):
            if self.popen.poll() is not None:
                break
            self.signal(signal.SIGTERM)  # the second one ends what still runs
            try:
                self.popen.wait(1)
            except subprocess.TimeoutExpired:
                pass
        if self.popen.poll() is None:
            self.kill()
            return "it did not end after SIGTERM"
        if self.popen.returncode not in (0, 78, -signal.SIGKILL):
            return f"its exit status is {self.popen.returncode}"
        return "its log has an alarm" if ALARMS.search(self.log_text()) else None

    def excerpt(self):
        """The alarm in the log, or else its end."""
        text = self.log_text()
        alarm = ALARMS.search(text)
        return text[alarm.start():][:6000] if alarm else text[-4000:]

    # --- questions

    def get(self, target, headers=()):
        return wire.get(self.port, target, headers, self.tls)

    def chat(self, headers=(), **fields):
        return wire.chat(self.port, headers, self.tls, **fields)

    def stats(self):
        """What a mock has been through."""
        return self.get("/mock/stats").json()

    def health(self):
        return self.get("/health").json()

    def worker_id(self, worker):
        entries = self.get("/workers").json()["workers"]
        return next(str(entry["id"]) for entry in entries if entry["url"] == worker.url)

    def metrics(self):
        return parse_metrics(self.get("/metrics").text())

    def metric(self, name, **labels):
        """The sum over all series with these labels."""
        wanted = set(labels.items())
        return sum(value for (series, has), value in self.metrics().items()
                   if series == name and wanted <= set(has))

    def memory(self, field="VmRSS"):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status).group(1)) * 1024


def parse_metrics(text):
    """Prometheus text as {(name, labels): value}; a line that is none fails."""
    line_form = re.compile(r'^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$')
    label_form = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\.)*)"(?:,|$)')
    series = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        match = line_form.match(line)
        assert match, f"not a metric: {line}"
        labels = tuple(label_form.findall(match.group(2) or ""))
        assert (match.group(1), labels) not in series, f"twice: {line}"
        series[match.group(1), labels] = float(match.group(3))
    return series


class World:
    """The processes of one test, or of one file of tests."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []

    def start(self, *args, env=None):
        log = self.folder / f"{len(self.processes)}-{args[0]}.log"
        process = Process(log, *args, env=env)
        self.processes.append(process)
        return process

    def mock(self, **options):
        """Paced, unless the options name another profile."""
        # A port of its own, so that another one can take its place.
        quick = {"port": wire.free_port(), "profile": "paced", "tokens": 8, "first_token_delay": "2ms",
                 "token_interval": "1ms"}
        process = self.start("mock", *flags_of({**quick, **options}))
        process.wait_for_port()
        return process

    def serve(self, *args, workers=(), env=None, ready=None, tls=None):
        """Waits until all workers, or as many as `ready` says, can be routed to."""
        flags = ["--port", 0, "--health-check-interval", "100ms", "--seed", SEED]
        for worker in workers:
            flags += ["--worker-urls", worker if isinstance(worker, str) else worker.url]
        process = self.start("serve", *flags, *args, env=env)
        process.tls = tls
        process.wait_for_port()
        ready = len(workers) if ready is None else ready
        if ready:
            eventually(lambda: process.health()["workers_ready"] >= ready, "workers are ready")
            assert process.get("/ready").status == 200
        return process

    def end(self):
        problems = []
        for process in reversed(self.processes):  # routers before their workers
            problem = process.end()
            if problem:
                problems.append(f"{process.log.name}: {problem}\n{process.excerpt()}")
        assert not problems, "\n".join(problems)


# They take minutes. First, so that no process is left alone with one at the end.
LONGEST = ("test_tokenize_parity", "test_tokenize_chats", "test_trust_causes")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.stem not in LONGEST)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.end()


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory):
    """For files whose tests do not disturb each other."""
    world = World(tmp_path_factory.mktemp("shared"))
    yield world
    world.end()


@pytest.fixture
def mock(world):
    return world.mock


@pytest.fixture
def serve(world):
    return world.serve


@pytest.fixture
def engine():
    """Starts engines whose every byte the test decides; see fake_engine.py."""
    from fake_engine import FakeEngine
    engines = []

    def start(answer, **options):
        engines.append(FakeEngine(answer, **options))
        return engines[-1]

    yield start
    for started in engines:
        started.stop()


def json_lines(text):
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]
