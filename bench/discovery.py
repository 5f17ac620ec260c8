"""How long does a Service of Kubernetes take to become a fleet, and what does a change of one endpoint
cost? See bench/README.md."""

import argparse
import json
import sys
import time
import urllib.error

from _rig import FATHOM, ROOT, Failed, Rig, answers, fetch, free_port, parse_arguments, print_table, run_main, save

sys.path.append(str(ROOT / "tests/blackbox"))
from kube_api import NOT_READY, READY, KubeApi, slice_of  # noqa: E402

PER_SLICE = 10  # the same for every size: a change costs the size of its slice
SERVICE = "vllm"


class TimedApi(KubeApi):
    """Knows when the slices were first asked for."""

    asked = None

    def _list(self, handler, plural, query):
        if plural == "endpointslices" and self.asked is None:
            self.asked = time.monotonic()
        return super()._list(handler, plural, query)


def put_slice(api, number, port, conditions=READY):
    """All endpoints are one engine, at addresses of this machine's own."""
    first = number * PER_SLICE
    endpoints = [(f"127.1.{i // 250}.{i % 250 + 1}", conditions if i == first else READY, f"pod-{i}")
                 for i in range(first, first + PER_SLICE)]
    api.put("endpointslices", slice_of(f"slice-{number:04}", SERVICE, endpoints, port))


def counted(router, key):
    try:
        return json.loads(fetch(f"{router}/health"))[key]
    except urllib.error.HTTPError as unready:  # it says 503 until a worker is ready
        return json.loads(unready.read())[key]


def ready_workers(router, count):
    return counted(router, "workers_ready") == count


def wait_until(process, condition, what, pause=0.01):
    begun = time.monotonic()
    while not condition():
        process.check()
        if time.monotonic() - begun > 300:
            raise Failed(f"no {what} after five minutes:\n{process.output()[-2000:]}")
        time.sleep(pause)


def idle_cpu(process, seconds):
    """What it spends in this time without a change."""
    before = process.cpu_seconds()[0]
    time.sleep(seconds)
    return (process.cpu_seconds()[0] - before) / seconds


def change_cpu(process, router, api, port, count, changes):
    """Of one endpoint that turns unready and ready again. The router is not asked meanwhile: that would cost more."""
    pause = 0.01
    idle = idle_cpu(process, 3)
    begun, before = time.monotonic(), process.cpu_seconds()[0]
    for turn in range(changes):
        put_slice(api, 0, port, READY if turn % 2 else NOT_READY)
        time.sleep(pause)
    spent = process.cpu_seconds()[0] - before - idle * (time.monotonic() - begun)
    put_slice(api, 0, port, NOT_READY)
    wait_until(process, lambda: ready_workers(router, count - 1), "change")
    return max(0.0, spent) / changes


def measure(count, changes):
    with Rig() as rig, TimedApi(page=500) as api:
        engine_port = free_port()
        engine = rig.start("engine", [FATHOM, "mock", "--host", "0.0.0.0", "--port", engine_port, "--profile", "paced"],
                           None)
        engine.wait(lambda: answers(f"http://127.0.0.1:{engine_port}/health"), "status 200 of /health")
        api.put("services", {"metadata": {"name": SERVICE}, "spec": {"selector": {"app": SERVICE}}})
        for number in range(count // PER_SLICE):
            put_slice(api, number, engine_port)
        port = free_port()
        router = f"http://127.0.0.1:{port}"
        process = rig.start("fathom", [
            FATHOM, "serve", "--port", port, "--kubeconfig", api.kubeconfig(rig.folder / "kubeconfig"),
            "--worker-urls", f"k8s://ml/{SERVICE}:http", "--health-check-interval", "30s",
            "--engine-load-interval", "0s", "--kv-events", "off"], None)
        wait_until(process, lambda: answers(f"{router}/live"), "answer")
        wait_until(process, lambda: counted(router, "workers_total") == count, "fleet", 0.002)
        known = time.monotonic() - api.asked
        wait_until(process, lambda: ready_workers(router, count), "ready fleet")
        ready = time.monotonic() - api.asked
        return {"endpoints": count, "list_to_fleet_s": known, "list_to_ready_s": ready,
                "change_cpu_us": 1e6 * change_cpu(process, router, api, engine_port, count, changes),
                "resident_mb": process.resident_bytes() / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, nargs="+", default=[10, 2000])
    parser.add_argument("--changes", type=int, default=400)
    arguments = parse_arguments(parser, endpoints=[10, 50], changes=4)
    rows = [measure(count, arguments.changes) for count in arguments.endpoints]
    print_table(
        "A Service as a fleet", ["endpoints", "list to fleet", "list to ready", "CPU of a change", "resident"],
        [[str(row["endpoints"]), f"{1e3 * row['list_to_fleet_s']:.0f} ms", f"{row['list_to_ready_s']:.2f} s",
          f"{row['change_cpu_us']:.0f} us", f"{row['resident_mb']:.1f} MB"] for row in rows])
    save("discovery", rows, arguments.smallest)
    return 0


run_main(main)
