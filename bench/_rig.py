"""What the benchmarks stand on: the binary and its reports, traces, pinned processes and what they
cost, load that must succeed, tables."""

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATHOM = Path(os.environ.get("FATHOM", ROOT / "build/release/fathom"))
RESULTS = ROOT / "build/bench"
TRACES = ROOT / "bench/traces"
MODEL = "mock-model"


class Failed(Exception):
    """The run is worth nothing; the message says why."""


def run_main(main):
    """Turns what can go wrong into one line and an exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that processes are stopped
    try:
        sys.exit(main())
    except Failed as problem:
        sys.exit(f"bench: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)


def program(name):
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not found:
        raise Failed(f"{name} is not installed; ./dev bench installs it")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(core):
    """For Popen's preexec_fn; core None leaves the process where the kernel likes it."""
    return None if core is None else lambda: os.sched_setaffinity(0, {core})


class Process:
    """A server in the background; its output is kept for when something goes wrong."""

    def __init__(self, folder, name, command, core):
        self.name = name
        self.log = Path(folder) / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=pinned(core))

    @property
    def pid(self):
        return self.process.pid

    def check(self):
        if self.process.poll() is not None:
            raise Failed(f"{self.name} ended with {self.process.returncode}:\n{self.output()}")

    def output(self):
        return self.log.read_text(errors="replace")

    def wait_for_line(self, pattern, timeout=10):
        return self._wait(lambda: re.search(pattern, self.output()), f"'{pattern}'", timeout)

    def wait_for_port(self, port, timeout=10):
        def connects():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        self._wait(connects, f"port {port}", timeout)

    def _wait(self, condition, what, timeout):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            self.check()
            if found := condition():
                return found
            time.sleep(0.02)
        raise Failed(f"{self.name}: no {what} within {timeout} s:\n{self.output()}")

    def cpu_seconds(self):
        """Seconds spent running, and waiting for a core that others were on; with children."""
        pids, running, waiting = [self.pid], 0, 0
        for pid in pids:
            for task in Path(f"/proc/{pid}/task").iterdir():
                pids += [int(child) for child in (task / "children").read_text().split()]
                ran, waited, _ = (task / "schedstat").read_text().split()
                running += int(ran)
                waiting += int(waited)
        return running / 1e9, waiting / 1e9

    def resident_bytes(self):
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Rig:
    """Holds the processes of one run and stops them at its end. Use it in `with`."""

    def __enter__(self):
        if not FATHOM.exists():
            raise Failed(f"{FATHOM} is missing; ./dev build makes it")
        self._folder = tempfile.TemporaryDirectory(prefix="fathom-bench-")
        self.folder = Path(self._folder.name)
        self.processes = []
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.stop()
        self._folder.cleanup()

    def start(self, name, command, core):
        process = Process(self.folder, name, command, core)
        self.processes.append(process)
        return process

    def mock(self, name, core, *options):
        """Starts a mock engine, paced, not simulated; returns it and its URL."""
        process = self.start(
            name, [FATHOM, "mock", "--port", 0, "--threads", 1, "--profile", "paced",
                   "--name", name, *options], core)
        address = process.wait_for_line(r"Mock engine listening address=(\S+)").group(1)
        return process, f"http://{address}"

    def fathom(self, core, backends, *options):
        """Starts Fathom; returns it and its URL once its workers are ready."""
        process = self.start(
            "fathom", [FATHOM, "serve", "--port", 0, "--worker-urls", ",".join(backends), *options],
            core)
        address = process.wait_for_line(r"Listening address=(\S+)").group(1)
        for backend in backends:
            process.wait_for_line(rf"Worker is ready .*url={re.escape(backend)}\b")
        return process, f"http://{address}"


def start_load(url, core, **settings):
    words = [f"{key.replace('_', '-')}={value}" for key, value in settings.items()]
    return subprocess.Popen(
        [str(FATHOM), "bench", "load", url, f"model={MODEL}", *words], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pinned(core))


def finish_load(load):
    """The report, of which not one request may have failed."""
    out, problem = load.communicate()
    if load.returncode != 0 or not out:
        raise Failed(f"load ended with {load.returncode}: {problem.strip() or out.strip()}")
    report = json.loads(out)
    if report["errors"] or report["completed"] != report["started"]:
        raise Failed(f"{report['errors']} of {report['started']} requests failed: "
                     f"{report['errors_by_status']} {report['first_problem']}")
    return report


def run_load(url, core, **settings):
    return finish_load(start_load(url, core, **settings))


def measure(name, *arguments):
    """The report of `fathom bench NAME`, which fails by itself when an answer is wrong."""
    if not FATHOM.exists():
        raise Failed(f"{FATHOM} is missing; ./dev build makes it")
    done = subprocess.run([str(FATHOM), "bench", name, *map(str, arguments)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:
        raise Failed(f"fathom bench {name} ended with {done.returncode}: {done.stdout.strip()}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def unpacked_trace(name="mooncake_conversation"):
    """The path of a trace as plain text, for as long as the `with` lasts."""
    with tempfile.NamedTemporaryFile(prefix=f"{name}-", suffix=".jsonl") as plain:
        with gzip.open(TRACES / f"{name}.jsonl.gz") as packed:
            shutil.copyfileobj(packed, plain)
        plain.flush()
        yield Path(plain.name)


def print_table(title, head, rows):
    """Columns as wide as they need to be: the first to the left, the others to the right."""
    table = [head, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    print(f"\n{title}")
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "  ".join(cells))


def save(name, results):
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nwritten to {path.relative_to(ROOT)}")
