"""Names that were renamed: the page that `fathom docs renamed` prints from the program's tables, the changelog, and
files of ours, which use the present names alone. The tables' own tests are cli/renamed_names_test.cc and
config/renamed_options_test.cc."""

import re

import pytest

from catalogue import FORMER
from conftest import ROOT, run_fathom
from docs_pages import DEPLOYED, name_of
from wire import ask

ROW = re.compile(r"^\| (option|metric|error code|page) \| `([^`]+)` \| `([^`]+)` \| ([\d.]+) \| ([\d.]+) \|$", re.M)


def renamed():
    """(what, former name, name, release, the release that removes it) of all tables."""
    return ROW.findall(run_fathom("docs", "renamed").stdout)


def renamed_part(changelog, release):
    """The part "Renamed" of a release in the changelog, which is unreleased until it has its heading."""
    parts = re.split(r"^## \[(.+?)\].*$", changelog, flags=re.M)
    of = dict(zip(parts[1::2], parts[2::2]))
    found = re.search(r"^### Renamed\n(.*?)(?=^### |\Z)", of.get(release, of["Unreleased"]), re.M | re.S)
    return found[1] if found else ""


def missing(rows, changelog):
    """Former names whose line in the changelog does not have both names."""
    return [former for _, former, now, release, _ in rows
            if not any(f"`{former}`" in entry and f"`{now}`" in entry
                       for entry in re.split(r"^- ", renamed_part(changelog, release), flags=re.M))]


def test_each_has_its_line_in_the_changelog():
    rows = renamed()
    assert len(rows) >= 2
    assert missing(rows, (ROOT / "CHANGELOG.md").read_text()) == []


def test_a_missing_line_is_noticed():
    row = ("metric", "old", "new", "0.2.0", "0.3.0")
    text = "## [Unreleased]\n### Renamed\n- `old` is `new`.\n### Fixed\n- `x`\n## [0.1.0]\n### Renamed\n- nothing\n"
    assert missing([row], text) == []
    assert missing([row], text.replace("`new`", "`newer`")) == ["old"]
    assert missing([row], text.replace("Renamed\n- `old`", "Changed\n- `old`")) == ["old"]
    assert missing([row], "## [0.2.0] - 2026\n### Renamed\n- `new`\n" + text) == ["old"], "the release's own part"


def test_metrics_are_those_of_the_metrics_page():
    assert {former: now for what, former, now, _, _ in renamed() if what == "metric"} == FORMER


@pytest.mark.parametrize("path", DEPLOYED, ids=name_of)
def test_files_to_deploy_use_the_present_names(path):
    text = path.read_text(errors="replace")
    for what, former, _, _, _ in renamed():
        assert not re.search(rf"(?<![\w-]){re.escape(former)}(?![\w-])", text), f"{what} {former}"


def test_errors_of_the_messages_api_name_the_former_code_too(shared_world):
    router = shared_world.serve(workers=[shared_world.mock()])
    former = {now: old for what, old, now, _, _ in renamed() if what == "error code"}
    body = {"model": "mock-model", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    answer = ask(router.port, "POST", "/v1/messages", body, {"x-fathom-routing": "no_such_name=1"})
    assert answer.status == 400
    assert answer.header("x-fathom-former-code") == former["bad_routing_override"]
