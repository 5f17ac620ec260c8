"""docs/metrics.md, the catalogue in src/metrics/, and what a running router has: all the same."""

import re
from collections import Counter

import pytest

from catalogue import CATALOGUE, FORMER, PAGE, family_of, metrics_of_every_state
from conftest import ROOT, parse_metrics, run_fathom

SOURCES = ROOT / "src"


def test_the_metrics_page_is_the_one_in_docs():
    done = run_fathom("docs", "metrics")
    assert done.returncode == 0
    assert done.stdout == PAGE.read_text()


def test_links_lead_to_pages():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target


def test_links_lead_to_metrics():
    for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE.read_text()):
        assert anchor in CATALOGUE, anchor


def test_the_page_speaks_of_metrics_that_exist():
    for name in re.findall(r"`((?:fathom|kv_router)_\w+)[`{]", PAGE.read_text()):
        assert name in CATALOGUE or name in FORMER, name


def test_the_page_names_options_that_exist():
    shown = run_fathom("serve", "--help").stdout
    engines = {"--enable-prompt-tokens-details", "--enable-cache-report"}
    for flag in set(re.findall(r"(?<![\w-])--[a-z][\w-]*[a-z]", PAGE.read_text())) - engines:
        assert re.search(rf"--(\[no-\])?{flag.removeprefix('--').removeprefix('no-')}\b", shown), flag


def writers():
    """Where each family is written: {name: [file, ...]}"""
    board = (SOURCES / "router/fleet/feed_board.h").read_text()
    feeds = [f"kv_router_feed_{name}{end}" for name, end in re.findall(r'X\((\w+), "(\w*)"\)', board)]
    named = {name: ["router/fleet/feed_board.h"] for name in feeds}
    for source in SOURCES.rglob("*.cc"):
        if source.name.endswith("_test.cc"):
            continue
        for name in re.findall(r'Metric\("(\w+)"\)', source.read_text()):
            named.setdefault(name, []).append(source.relative_to(SOURCES).as_posix())
    return named


def test_each_family_has_one_place_that_writes_it():
    named = writers()
    assert set(named) == set(CATALOGUE)
    assert {name: places for name, places in named.items() if len(places) > 1} == {}


def test_engines_that_are_played_alone_have_metrics_outside_the_catalogue():
    raw = re.compile(r"\bAdd(?:Counter|Gauge|Histogram)\(\s*\"")
    offenders = {source.relative_to(SOURCES).parent.as_posix() for source in SOURCES.rglob("*.cc")
                 if not source.name.endswith("_test.cc") and raw.search(source.read_text())}
    assert offenders == {"lab/mock"}


# --- a running router


@pytest.fixture(scope="module")
def exposed(shared_world):
    return metrics_of_every_state(shared_world)


def test_a_running_router_has_exactly_the_families_of_the_page(exposed):
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", exposed, re.M))
    assert types == {name: kind for name, (kind, _) in CATALOGUE.items()} | {
        former: CATALOGUE[name][0] for former, name in FORMER.items()}


def test_a_renamed_metric_has_the_same_series_under_both_names(exposed):
    assert FORMER["kv_router_feed_ghosts"] == "kv_router_feed_removed_predecessors"
    samples = parse_metrics(exposed)
    for former, name in FORMER.items():
        old, new = ({labels: value for (series, labels), value in samples.items() if series == wanted}
                    for wanted in (former, name))
        assert old == new and new, former


def test_help_is_the_sentence_on_the_page(exposed):
    page = " ".join(PAGE.read_text().split())
    for name, sentence in re.findall(r"^# HELP (\w+) (.*)$", exposed, re.M):
        if name in FORMER:
            assert sentence.startswith(f"Former name of {FORMER[name]}; Fathom "), name
        else:
            assert f"### {name} {sentence}. * Type" in page, name


def test_series_have_the_labels_of_the_page(exposed):
    for series, labels in parse_metrics(exposed):
        names = {label for label, _ in labels} - {"le"}
        assert names == set(CATALOGUE[FORMER.get(series, family_of(series))][1]), series


def test_labels_have_no_value_that_the_page_does_not_name(exposed):
    seen = Counter()
    for series, labels in parse_metrics(exposed):
        known = CATALOGUE[FORMER.get(series, family_of(series))][1]
        for label, value in labels:
            if known.get(label) and value:  # an empty value is no label
                assert value in known[label], f"{series} {label}={value}"
                seen[family_of(series), label, value] += 1
    # Those that are always there are all there.
    for family in ("kv_router_wasted_prefill_tokens_total", "kv_router_rank_trust", "fathom_retries_total",
                   "kv_router_decisions_total", "kv_router_tokenized_total", "kv_router_inexact_prompts_total",
                   "kv_router_tokenize_failures_total", "kv_router_dropped_events_total"):
        for label, values in CATALOGUE[family][1].items():
            for value in values or ():
                assert seen[family, label, value], f"{family} {label}={value}"


def test_every_cause_of_doubt_and_every_state_is_on_the_page():
    names = re.findall(r'return "(\w+)";', (SOURCES / "router/fleet/trust.cc").read_text())
    page = CATALOGUE["kv_router_trust_changes_total"][1]
    assert set(names) == page["state"] | page["cause"]
