"""What the benchmarks stand on: the binary and its reports, sizes, traces, pinned processes and what
they cost, load that must succeed, tables."""

import contextlib
import gzip
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATHOM = Path(os.environ.get("FATHOM", ROOT / "build/shipped/fathom"))
RESULTS = ROOT / "build/bench"
TRACES = ROOT / "bench/traces"
MODEL = "mock-model"
START = 30  # seconds that a server may take to start; a busy machine needs some of them


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


def parse_arguments(parser, **smallest):
    """The arguments; --smallest replaces the defaults of those that `smallest` names."""
    parser.add_argument("--smallest", action="store_true",
                        help="run every part once, as small as possible, to find out whether it still "
                        "runs; the numbers mean nothing")
    if parser.parse_known_args()[0].smallest:
        parser.set_defaults(**smallest)
    return parser.parse_args()


def require_binary():
    if not FATHOM.exists():
        raise Failed(f"{FATHOM} is missing; ./dev build shipped makes it, FATHOM=path names another")


def free_port():
    """Below the ports that the kernel gives to outgoing connections: none of them takes it."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(min(10_000, lowest - 1000), lowest), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise Failed("no free port")


# Whatever proxy the environment names, the servers of a benchmark are on this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch(url):
    with DIRECT.open(url, timeout=10) as answer:
        return answer.read().decode()


def answers(url):
    """Whether the answer has status 200."""
    try:
        fetch(url)
    except OSError:  # among them every other status
        return False
    return True


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

    def wait_for_port(self, port):
        def connects():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        self.wait(connects, f"port {port}")

    def wait(self, condition, what):
        deadline = time.monotonic() + START
        while time.monotonic() < deadline:
            self.check()
            if condition():
                return
            time.sleep(0.02)
        raise Failed(f"{self.name}: no {what} within {START} s:\n{self.output()}")

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
        require_binary()
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

    def engine(self, name, core, *options):
        """Starts a mock engine; returns it and its URL once it is healthy."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = self.start(name, [FATHOM, "mock", "--port", port, "--name", name, *options], core)
        process.wait(lambda: answers(f"{url}/health"), "status 200 of /health")
        return process, url

    def mock(self, name, core, *options):
        """A mock engine that is paced, not simulated."""
        return self.engine(name, core, "--threads", 1, "--profile", "paced", *options)

    def fathom(self, core, backends, *options):
        """Starts Fathom; returns it and its URL once it is ready and routes to all its workers."""
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        process = self.start(
            "fathom", [FATHOM, "serve", "--port", port, "--worker-urls", ",".join(backends), *options],
            core)

        def all_ready():
            health = json.loads(fetch(f"{url}/health"))
            return health["workers_ready"] == health["workers_total"] == len(backends)

        process.wait(lambda: answers(f"{url}/ready"), "status 200 of /ready")
        process.wait(all_ready, f"{len(backends)} ready workers in /health")
        return process, url


def start_load(url, core, **settings):
    words = [f"{key.replace('_', '-')}={value}" for key, value in settings.items()]
    return subprocess.Popen(
        [str(FATHOM), "bench", "load", url, f"model={MODEL}", *words], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=pinned(core))


def finish_load(load, may_fail=False):
    """The report, of which not one request may have failed, unless that is to be counted."""
    out, problem = load.communicate()
    if load.returncode != 0 or not out:
        raise Failed(f"load ended with {load.returncode}: {problem.strip() or out.strip()}")
    report = json.loads(out)
    if not may_fail and (report["errors"] or report["completed"] != report["started"]):
        raise Failed(f"{report['errors']} of {report['started']} requests failed: "
                     f"{report['errors_by_status']} {report['first_problem']}")
    return report


def run_load(url, core, **settings):
    return finish_load(start_load(url, core, **settings))


def measure(name, *arguments):
    """The report of `fathom bench NAME`, which fails by itself when an answer is wrong."""
    require_binary()
    done = subprocess.run([str(FATHOM), "bench", name, *map(str, arguments)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode != 0:
        raise Failed(f"fathom bench {name} ended with {done.returncode}: {done.stdout.strip()}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def unpacked_trace(requests=None, name="mooncake_conversation"):
    """The path of a trace, or of its first requests, as plain text, while the `with` lasts."""
    with tempfile.NamedTemporaryFile(prefix=f"{name}-", suffix=".jsonl") as plain:
        with gzip.open(TRACES / f"{name}.jsonl.gz") as packed:
            plain.writelines(itertools.islice(packed, requests))
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


def save(name, results, smallest=False):
    """Numbers of the smallest size do not replace measured ones."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}{'-smallest' if smallest else ''}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    if smallest:
        print("\nthe smallest size: the numbers mean nothing")
    print(f"\nwritten to {path.relative_to(ROOT)}")
