"""The metrics that Fathom has, as docs/metrics.md says it: `fathom docs metrics` prints that page."""

import re

from choices import QUICK, complete, ids
from conftest import ROOT
import wire
from wire import eventually

PAGE = ROOT / "docs/metrics.md"
PARTS = re.compile(r"^### (\w+)\n\n.*?^\* Type: (\w+)\n\* Labels: (.*?)^\* What to do: ", re.M | re.S)


def read_catalogue(page):
    """{name: (type, {label: its values, or None where they are no closed set})}"""
    catalogue = {}
    for name, kind, labels in PARTS.findall(page):
        names = {} if labels.strip() == "none" else {
            label: set(re.findall(r"`(\w+)`", values)) or None
            for label, values in re.findall(r"`(\w+)`(?:\s+\(([^)]*)\))?(?:;|$)", labels.strip())}
        catalogue[name] = (kind, names)
    return catalogue


CATALOGUE = read_catalogue(PAGE.read_text())
# {former name: name} of those that were renamed in this release: exposed, and used by nothing of ours.
FORMER = {former: name for name, former in
          re.findall(r"^### (\w+)\n(?:(?!^### ).)*?^\* Former name: `(\w+)`", PAGE.read_text(), re.M | re.S)}


def family_of(series):
    """The family of a series: those of a histogram have endings."""
    base = re.sub(r"_(bucket|sum|count)$", "", series)
    return base if CATALOGUE.get(base, ("", {}))[0] == "histogram" else series


def selectors(text):
    """(metric, {label: the values that are named}) for each metric that the text speaks of."""
    found = []
    for name, labels in re.findall(r"\b((?:fathom|kv_router)_\w+[a-z])\b(?:\{([^}]*)\})?", text):
        values = {label: set(value.split("|"))
                  for label, value in re.findall(r'(\w+)(?:=~|!=|!~|=)"([^"]*)"', labels)}
        found.append((family_of(name), values))
    return found


def unknown(text, others=()):
    """What the text says of metrics, and the catalogue does not."""
    wrong = []
    for name, labels in selectors(text):
        if name not in CATALOGUE:
            wrong.append(name)
            continue
        known = CATALOGUE[name][1]
        for label, values in labels.items():
            if label in others:
                continue
            if label not in known:
                wrong.append(f"{name} has no label {label}")
            elif known[label] is not None and values - known[label]:
                wrong.append(f"{name}: {label} is never {values - known[label]}")
    return wrong


def metrics_of_every_state(world):
    """The metrics of a router with a rank that is trusted, one that is doubted and one that is excluded."""
    engines = [world.mock(**{**QUICK, "block_size": size}) for size in (16, 32)]
    source = world.folder / "source.yaml"
    source.write_text("workers: []\n")
    doors = [wire.free_port(), wire.free_port()]
    group = ["--replica-open", "--replicas", "zmq://" + ",".join(f"127.0.0.1:{door}" for door in doors)]
    router = world.serve("--kv-cache-block-size", 16, *group, "--replica-listen", f"127.0.0.1:{doors[0]}",
                         workers=[*engines, "http://127.0.0.1:1", f"file://{source}"], ready=2)
    world.serve(*group, "--replica-listen", f"127.0.0.1:{doors[1]}", "--replica-id", "another", workers=[])

    def trust():
        return {rank["trust"] for worker in router.health()["workers"] for rank in worker["ranks"]}
    for number in range(4):
        complete(router, ids(number))
        complete(router, ids(number))
    for engine in engines:
        complete(engine, ids(9))
    eventually(lambda: trust() == {"trusted", "doubted", "excluded"}, "one of each kind")
    eventually(lambda: "kv_router_engine_cache_usage" in router.get("/metrics").text(), "the engines' load")
    eventually(lambda: "fathom_replica_round_trip_seconds" in router.get("/metrics").text(), "another replica")
    return router.get("/metrics").text()
