"""The pages of what `fathom doctor` and `fathom lint` find, held against the tables in the source: every
finding has its page, every page can be found, and what docs/doctor.md promises is what the program does."""

import json
import re

import pytest
import yaml

from conftest import ROOT

SOURCE = ROOT / "src"
RUNBOOKS = ROOT / "docs/runbooks"
INDEX = RUNBOOKS / "README.md"
DOCTOR = ROOT / "docs/doctor.md"
PAGES = [DOCTOR, *sorted(RUNBOOKS.glob("*.md"))]

# Lines of logs, Dynamo's and engines', by which somebody searches; and where that should lead.
SYMPTOMS = {
    "tree size: 0": "index-empty",
    "cached blocks: 0": "index-empty",
    "Failed to find parent block": "events-not-applied",
    "Failed to find block to remove": "events-not-applied",
    "Failed to apply event": "events-not-applied",
    "Block not published": "events-not-applied",
    "Rejected incompatible workers": "workers-rejected",
    "No replay endpoint configured; batches lost": "replay-missing",
    "kv_event_publisher_disabled": "publisher-off",
    "KV cache pool is full": "preemptions",
    "is preempted by": "preemptions",
}


def catalogue():
    """(id, severity, part, title, name of the page) of each finding."""
    text = (SOURCE / "diagnose/findings/catalogue.cc").read_text()
    rows = re.findall(r'\{k\w+, "([\w-]+)", k(\w+), k(\w+), "([^"]+)"(?:, "([\w-]+)")?\}', text)
    return [(name, severity.lower(), part.lower(), title, page or name)
            for name, severity, part, title, page in rows]


def section(page, heading):
    return re.search(rf"^##+ {heading}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)[1]


def links(page):
    """Files that the page links to; not those on other hosts."""
    return {(page.parent / target).resolve()
            for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()) if "://" not in target}


def fenced(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_catalogue_is_read_whole():
    declared = re.search(r"kFindingIds = (\d+);", (SOURCE / "diagnose/findings/catalogue.h").read_text())[1]
    assert len(catalogue()) == int(declared)


@pytest.mark.parametrize("finding", catalogue(), ids=lambda finding: finding[0])
def test_a_finding_has_a_page_that_names_it_and_is_linked(finding):
    name, _, _, _, stem = finding
    page = RUNBOOKS / f"{stem}.md"
    text = page.read_text()
    assert name in text or name.replace("-", "_") in text, "its id, or that of its cause of doubt"
    assert page in links(INDEX)
    assert page in links(DOCTOR)


def test_the_table_of_findings_is_that_of_the_program():
    rows = re.findall(r"^\| `([\w-]+)` \| (\w+) \| (\w+) \| \[([^\]]+)\]\(runbooks/([\w-]+)\.md\) \|$",
                      section(DOCTOR, "Findings"), re.MULTILINE)
    assert rows == catalogue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    assert [target for target in links(page) if not target.exists()] == []


@pytest.mark.parametrize("words, stem", SYMPTOMS.items(), ids=lambda value: value)
def test_words_of_a_log_lead_to_their_page(words, stem):
    """One search in docs/ finds the page itself, and the index, which links to it."""
    found = {page for page in PAGES
             if any(words in line for line in page.read_text().splitlines())}
    assert RUNBOOKS / f"{stem}.md" in found
    assert RUNBOOKS / f"{stem}.md" in links(INDEX)
    rows = [line for line in INDEX.read_text().splitlines() if words in line]
    assert any(f"({stem}.md)" in row for row in rows), rows


def sets_a_block_size(page):
    return re.search(r"(BLOCK_SIZE|block-size|page-size|tokens_per_block)\W+(value\W+|of \w+ to )?\d",
                     page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if sets_a_block_size(page)], ids=lambda page: page.stem)
def test_a_page_with_a_block_size_to_set_says_what_it_must_match(page):
    text = page.read_text()
    assert re.search(r"must\s+match\s+the\s+backend", text, re.IGNORECASE)
    for engine, default in {"vLLM": 16, "TensorRT-LLM": 32, "SGLang": 1}.items():
        assert re.search(rf"{engine}(\s+|\s\|.*\| ){default}\b", text), engine


# --- what docs/doctor.md promises


def requests_of_the_program():
    """(server, method, path, when) of each request that the doctor may send."""
    text = (SOURCE / "diagnose/doctor/read_only_client.cc").read_text()
    return re.findall(r'ReadOnlyRequest\{ServerKind::k(\w+), "(\w+)", "([^"]+)", When::k(\w+)\}', text)


def test_all_that_is_sent_is_on_the_page_and_nothing_else():
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", section(DOCTOR, "What it sends"), re.MULTILINE)
    named = {to: set(re.findall(r"`(/[\w/]+)`", what)) for to, what in rows}
    expected = {
        "Fathom": {path for server, _, path, _ in requests_of_the_program() if server == "Router"},
        "Dynamo's frontend": {path for server, _, path, _ in requests_of_the_program() if server == "Dynamo"},
        "DCGM exporters": {path for server, _, path, _ in requests_of_the_program() if server == "Exporter"},
    }
    for when, to in {"Always": "engines", "RunsNothing": "engines known as vLLM or TensorRT-LLM",
                     "DrainsNothing": "engines known as vLLM or SGLang"}.items():
        expected[to] = {path for server, _, path, condition in requests_of_the_program()
                        if server == "Engine" and condition == when}
    assert all(expected.values())
    assert {to: named[to] for to in expected} == expected


def test_what_drains_is_named_beside_its_option():
    drain, = re.findall(r"^\* `--drain`(.*?)(?=^\* |^$)", DOCTOR.read_text(), re.MULTILINE | re.DOTALL)
    for server, method, path, when in requests_of_the_program():
        if server == "Engine" and when in ("MayDrain", "DrainsNothing"):
            assert f"{method} `{path}`" in drain


def test_the_role_allows_what_is_read_and_no_more():
    role, = (yaml.safe_load(block) for block in fenced(DOCTOR, "yaml"))
    allowed = {(group, resource): set(rule["verbs"]) for rule in role["rules"]
               for group in rule["apiGroups"] for resource in rule["resources"]}
    text = (SOURCE / "diagnose/doctor/kube_look.cc").read_text()
    read = set(re.findall(r'\{"([\w.-]*)", "v\w+", "(\w+)", "\w+"\}', text))
    assert len(read) > 5
    assert set(allowed) == read | {("", "pods/log")}
    assert set().union(*allowed.values()) == {"get", "list"}


def test_the_json_on_the_page_has_the_keys_of_the_program():
    example, = (json.loads(block) for block in fenced(DOCTOR, "json"))

    def keys(file):
        return set(re.findall(r'Key\("(\w+)"\)', (SOURCE / "diagnose/findings" / file).read_text()))
    finding, = example["findings"]
    fix, = finding["fixes"]
    assert set(finding) | set(fix) == keys("finding_json.cc")
    assert set(example) <= keys("report_json.cc") | set(
        re.findall(r'AppendArray\(json, "(\w+)"', (SOURCE / "diagnose/findings/report_json.cc").read_text()))
