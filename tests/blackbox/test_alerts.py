"""The alerts in deploy/, and the pages that they name: judged by promtool, and compared with what a running
router has and what `--help` says."""

import re
import subprocess
from collections import defaultdict

import pytest
import yaml

from catalogue import CATALOGUE, metrics_of_every_state, selectors, unknown
from conftest import ROOT, parse_metrics, run_fathom
from docs_pages import flags_in, foreign

RULES = ROOT / "deploy/prometheus/fathom-alerts.yml"
RULE_TESTS = ROOT / "deploy/prometheus/fathom-alerts-test.yml"
RUNBOOKS = ROOT / "docs/runbooks"
PAGES = sorted(page for page in RUNBOOKS.glob("*.md") if page.name != "README.md")

EXCLUSIONS = {"unhealthy", "block_size_conflict"}
DOUBTS = CATALOGUE["kv_router_rank_doubt"][1]["cause"] - EXCLUSIONS
WASTES = CATALOGUE["kv_router_wasted_prefill_tokens_total"][1]["cause"]


def alerts():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(*args):
    return subprocess.run(["promtool", *map(str, args)], text=True, capture_output=True, timeout=120,
                          check=False)


def assert_known(text, where):
    assert unknown(text) == [], where


# --- the rules


def test_promtool_accepts_the_rules():
    checked = promtool("check", "rules", "--lint-fatal", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_fire_for_their_faults_and_for_nothing_else():
    tested = promtool("test", "rules", RULE_TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_that_never_fires_is_noticed(tmp_path, name):
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            if rule["alert"] == name:
                rule["expr"] = "vector(0) > 1"
    (tmp_path / RULES.name).write_text(yaml.safe_dump(rules))
    tests = yaml.safe_load(RULE_TESTS.read_text())
    tests["tests"] = [test for test in tests["tests"] if f'"{name}"' in str(test)]
    (tmp_path / RULE_TESTS.name).write_text(yaml.safe_dump(tests))
    tested = promtool("test", "rules", tmp_path / RULE_TESTS.name)
    assert tested.returncode != 0 and name in tested.stdout + tested.stderr


def test_each_cause_has_an_alert():
    named = defaultdict(set)
    for rule in alerts().values():
        for metric, labels in selectors(rule["expr"]):
            named[metric] |= labels.get("cause", set())
    assert DOUBTS | {"block_size_conflict"} == named["kv_router_rank_doubt"]
    assert WASTES - {"override"} == named["kv_router_wasted_prefill_tokens_total"], "an override is no fault"


def test_alerts_speak_of_metrics_that_exist():
    for name, rule in alerts().items():
        assert selectors(rule["expr"]), name
        assert_known(rule["expr"], name)


def test_alerts_say_how_bad_how_long_and_where_to_read_on():
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        assert re.fullmatch(r"\d+m", rule["for"]), name
        assert {"summary", "description", "runbook"} == set(rule["annotations"]), name


# --- the pages


def test_each_alert_has_its_page_which_names_it():
    for name, rule in alerts().items():
        page = ROOT / rule["annotations"]["runbook"]
        assert page in PAGES, f"{name}: {page}"
        assert f"`{name}`" in page.read_text(), f"{name} in {page.name}"


def test_each_page_is_of_some_alert_or_finding_and_in_the_index():
    used = {ROOT / rule["annotations"]["runbook"] for rule in alerts().values()}
    # test_findings_pages.py sees to it that each finding has its page.
    catalogue = (ROOT / "src/diagnose/findings/catalogue.cc").read_text()
    found = {page for page in PAGES if f'"{page.stem}"' in catalogue}
    listed = re.findall(r"\]\((\S+\.md)\) \|$", (RUNBOOKS / "README.md").read_text(), re.MULTILINE)
    assert used | found == set(PAGES)
    assert sorted(listed) == sorted(page.name for page in PAGES)


def test_each_cause_is_in_the_index():
    listed = set(re.findall(r"^\|.*\| `(\w+)` \|", (RUNBOOKS / "README.md").read_text(), re.MULTILINE))
    assert listed == DOUBTS | EXCLUSIONS | {"prompts_unread"}, "of ranks, and of models"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_all_its_parts(page):
    text = page.read_text()
    parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert parts == ["What you see", "What it means, and costs", "Check", "Fix", "Fixed when"]
    check = text[text.index("## Check"):text.index("## Fix")]
    assert re.search(r"^```\n.*curl .*^```$", check, re.MULTILINE | re.DOTALL)


# Those that are about the router have nothing to set in an engine.
@pytest.mark.parametrize("page", [page for page in PAGES
                                  if page.stem not in ("router-down", "not-ready", "no-trusted-rank")],
                         ids=lambda page: page.stem)
def test_a_fix_is_told_for_each_engine(page):
    fix = page.read_text().partition("## Fix")[2]
    for engine in ("vLLM", "SGLang", "TensorRT-LLM"):
        assert engine in fix, engine


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "README.md"], ids=lambda page: page.stem)
def test_pages_speak_of_metrics_that_exist(page):
    # In shell patterns names are cut into pieces; Prometheus' own queries are not.
    assert_known(re.sub(r"grep -E '[^']*'", "", page.read_text()), page.name)


@pytest.fixture(scope="module")
def fathom_flags():
    flags = set()
    for command in ("serve", "listen", "tokenize", "doctor", "lint"):
        shown = run_fathom(command, "--help").stdout
        flags |= flags_in(shown)
        flags |= {f"--{no}{name}" for name in re.findall(r"--\[no-\]([\w-]+)", shown)
                  for no in ("", "no-")}
    return flags


@pytest.mark.parametrize("page", [*PAGES, RUNBOOKS / "README.md"], ids=lambda page: page.stem)
def test_pages_name_options_that_exist(page, fathom_flags):
    assert flags_in(page.read_text()) - fathom_flags - foreign("flags") == set()


# --- a running router


@pytest.fixture(scope="module")
def exposed(shared_world):
    return metrics_of_every_state(shared_world)


def test_a_running_router_says_what_the_alerts_look_for(exposed):
    """Beside the values: the labels by which rules put series together."""
    series = parse_metrics(exposed)

    def labels(name, **wanted):
        return [dict(has) for (found, has), value in series.items()
                if found == name and wanted.items() <= dict(has).items() and value == 1]

    doubted, = labels("kv_router_rank_trust", state="doubted")
    excluded, = labels("kv_router_rank_trust", state="excluded")
    causes = {entry["worker"]: entry["cause"] for entry in labels("kv_router_rank_doubt")}
    assert causes == {doubted["worker"]: "block_size_mismatch", excluded["worker"]: "unhealthy"}
    assert doubted["dp_rank"] == excluded["dp_rank"] == "0"
