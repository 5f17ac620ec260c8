"""deploy/grafana/fathom.json: what it asks Prometheus for exists, and Prometheus understands it."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest
import yaml

import wire
from catalogue import CATALOGUE, selectors, unknown
from choices import QUICK, complete, ids
from conftest import ROOT
from wire import eventually

FILE = ROOT / "deploy/grafana/fathom.json"
DASHBOARD = json.loads(FILE.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
TARGETS = [(f'{panel["title"]}: {target["legendFormat"]}', target["expr"])
           for panel in PANELS for target in panel["targets"]]
SCRAPE_LABELS = {"job", "instance"}


def plain(expr, interval="1m"):
    """As Grafana would send it, with all workers of all routers."""
    for name, value in {"__rate_interval": interval, "job": ".*", "instance": ".*", "worker": ".*"}.items():
        expr = expr.replace(f"${name}", value)
    assert "$" not in expr, expr
    return expr


def test_it_is_what_its_script_prints():
    printed = subprocess.run([sys.executable, ROOT / "tools/grafana_dashboard"], text=True,
                             capture_output=True, check=True, timeout=60).stdout
    assert printed == FILE.read_text(), "run tools/grafana_dashboard >deploy/grafana/fathom.json"


def test_promtool_understands_every_expression(tmp_path):
    rules = tmp_path / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": [
        {"record": f"panel:{i}", "expr": plain(expr)} for i, (_, expr) in enumerate(TARGETS)]}]}))
    checked = subprocess.run(["promtool", "check", "rules", rules], text=True, capture_output=True,
                             timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("title, expr", TARGETS, ids=[title for title, _ in TARGETS])
def test_an_expression_speaks_of_metrics_and_labels_that_exist(title, expr):
    # `code` has patterns; all others are words of closed sets.
    assert unknown(re.sub(r'\$\w+', "x", expr), SCRAPE_LABELS) == []
    names = [name for name, _ in selectors(expr)]
    assert names, title
    has = SCRAPE_LABELS | {"le"} | {label for name in names for label in CATALOGUE[name][1]}
    for labels in re.findall(r"\bby \(([^)]*)\)", expr):
        assert {label.strip() for label in labels.split(",")} <= has, title


def test_a_legend_names_labels_that_its_expression_keeps():
    for panel in PANELS:
        for target in panel["targets"]:
            kept = set(", ".join(re.findall(r"\bby \(([^)]*)\)", target["expr"])).split(", "))
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= kept, panel["title"]
            assert shown == kept - {"le", ""}, f'{panel["title"]}: series would look alike'


def test_counters_are_only_asked_for_their_rate():
    for title, expr in TARGETS:
        for name, _ in selectors(expr):
            assert (CATALOGUE[name][0] == "gauge") != (f"rate({name}" in expr), title


def test_panels_have_ids_of_their_own_and_a_place_of_their_own():
    ids_seen = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids_seen)) == len(ids_seen)
    taken = {}
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24, panel["title"]
        for cell in ((x, y) for x in range(grid["x"], grid["x"] + grid["w"])
                     for y in range(grid["y"], grid["y"] + grid["h"])):
            assert cell not in taken, f'{panel["title"]} lies on {taken[cell]}'
            taken[cell] = panel["title"]


def test_each_panel_says_what_good_looks_like_and_where_to_read_on():
    for panel in PANELS:
        page, = re.findall(r"See docs/(\S+\.md)\.$", panel["description"])
        assert (ROOT / "docs" / page).exists(), panel["title"]
        assert panel["links"][0]["url"] == f"${{docs}}/{page}", panel["title"]
        assert len(panel["description"]) > len(f"See docs/{page}.") + 5, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_it_can_be_imported_anywhere():
    assert DASHBOARD["id"] is None and DASHBOARD["uid"] and "__inputs" not in DASHBOARD
    assert VARIABLES["datasource"]["type"] == "datasource"
    for panel in PANELS:
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
    named = set(re.findall(r"\$\{?(\w+)", FILE.read_text()))
    assert named - {"__rate_interval", "__all"} == set(VARIABLES)
    for name in ("job", "instance", "worker"):
        assert unknown(VARIABLES[name]["query"].replace("$", ""), SCRAPE_LABELS) == []


def test_most_families_are_shown():
    shown = {name for _, expr in TARGETS for name, _ in selectors(expr)}
    assert len(shown) > len(CATALOGUE) / 2


# --- Prometheus itself

# Nothing is wrong, nobody waits, and prompts are ids already.
EMPTY_WHEN_HEALTHY = {"Doubts: worker {{worker}} rank {{dp_rank}}: {{cause}}",
                      "Time in the queue: p50", "Time in the queue: p90", "Time in the queue: p99",
                      "Tokenization time, p95: in the router", "Tokenization time, p95: by an engine"}


@pytest.fixture
def prometheus(tmp_path):
    """Starts one that looks at a router every second; returns what asks it."""
    started = []

    def start(router):
        config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [
            {"job_name": "fathom", "static_configs": [{"targets": [f"127.0.0.1:{router.port}"]}]}]}
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        port = wire.free_port()
        with open(tmp_path / "prometheus.log", "wb") as log:
            started.append(subprocess.Popen(
                ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log))

        def ask(expr):
            query = urllib.parse.urlencode({"query": expr})
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        return ask

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


def value_of(result):
    return [sample["value"][1] for sample in result if sample["value"][1] != "NaN"]


@pytest.mark.slow
def test_a_healthy_fleet_fills_every_panel(world, prometheus):
    engines = [world.mock(**QUICK) for _ in range(2)]
    router = world.serve(workers=engines)
    ask = prometheus(router)
    over = threading.Event()

    def talk():
        number = 0
        while not over.is_set():
            number += 1
            complete(router, ids(number % 7) + ids(100 + number % 50), stream=True, max_tokens=4)
            time.sleep(0.02)
    talking = threading.Thread(target=talk)
    talking.start()

    def empty():
        return {title for title, expr in TARGETS if not value_of(ask(plain(expr, "10s")))}
    try:
        def up():
            try:
                return ask("up == 1")
            except OSError:
                return False
        eventually(up, "Prometheus has looked at the router")
        eventually(lambda: empty() <= EMPTY_WHEN_HEALTHY, "every panel has something to show")
        trusted = plain(dict(TARGETS)["Trusted ranks: "], "10s")
        eventually(lambda: [float(value) for value in value_of(ask(trusted))] == [1], "all ranks are trusted")
    finally:
        over.set()
        talking.join()
