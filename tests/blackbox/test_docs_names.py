"""What pages and examples name exists: variables, metrics, routes, headers, causes, findings, codes of errors, exit
statuses. Held against the binary, which is asked, and the tables in the source. Names of other programs are in
tests/data/foreign_names.yaml."""

import re
from functools import cache

import pytest

from catalogue import CATALOGUE, FORMER, unknown
from conftest import ROOT, run_fathom
from docs_pages import (CURRENT, READ, fenced, foreign, inline_code, literals, name_of, program_flags, prose,
                        shell_blocks, simple_commands, sources)
from test_findings_pages import catalogue as findings
from wire import ask

# --- variables


@cache
def variables():
    shown = "".join(run_fathom(command, "--help").stdout for command in program_flags())
    in_source = "".join(text for path, text in sources().items() if path.name == "options.cc")
    return set(re.findall(r"\b(?:FATHOM|DYN)_[A-Z0-9_]+", shown + in_source)) | foreign("variables") | {
        name for name in re.findall(r"\bFATHOM_[A-Z_]+", (ROOT / "src/lab/simulation/kv_simulation_test.cc").read_text())}


def unknown_variables(text):
    whole = re.sub(r"\b(?:FATHOM|DYN)_[A-Z_]*(?:\*|…)", "", text)
    return sorted(set(re.findall(r"\b(?:FATHOM|DYN)_\w*[A-Za-z0-9]\b", whole)) - variables())


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_variables_exist(page):
    assert unknown_variables(page.read_text()) == []


# --- metrics


# test_metrics_reference.py sees to it that these are the program's.
METRICS = set(CATALOGUE)
# Prometheus' own, and those that a scrape adds.
LABELS_OF_SCRAPES = ("le", "job", "instance", "namespace", "pod", "service", "quantile", "severity", "alertname")


FOREIGN_METRIC = re.compile(
    r"(?<![\w/.-])((?:vllm:|sglang:|sgl_router_|smg_|vllm_router_|dynamo_(?:component|frontend|router)_"
    r"|trtllm_(?!pages\b)|inference_(?:extension|pool|model|objective)_|llm_d_|DCGM_FI_)[A-Za-z]\w+)"
    r"(…|\*|\.\.\.|\.\w)?")


def unknown_metrics(text):
    whole = re.sub(r"grep(?: -\w+)* (?:'[^']*'|\"[^\"]*\"|\S+)", "", text)  # in patterns names are in pieces
    wrong = []
    for name, more in re.findall(r"(?<![\w./-])((?:fathom|kv_router)_[a-z0-9_]+)(…|\*|\{,|\.\.\.|\(|\.\w)?", whole):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if more in ("…", "*", "{,", "...") or name.endswith("_"):
            fine = any(one.startswith(name.rstrip("_")) for one in METRICS)
        else:
            fine = more.startswith(("(", ".")) or bool({name, base} & METRICS)  # a CMake function, a file
        wrong += [] if fine else [name]
    # Names of which the beginning is misspelt.
    wrong += [code for _, code in inline_code(text) if re.fullmatch(r"[a-z_]+_(total|seconds)", code)
              and code not in METRICS | foreign("metrics") | literals()]
    labels = [problem for problem in unknown(whole, others=LABELS_OF_SCRAPES) if " " in problem]
    return sorted(set(wrong) | set(labels) | unknown_foreign_metrics(whole))


def unknown_foreign_metrics(text):
    wrong = set()
    for name, more in FOREIGN_METRIC.findall(text):
        if more in ("…", "*", "..."):
            fine = any(one.startswith(name) for one in foreign("metrics"))
        else:  # with a dot it is a file or an image
            fine = more or {name, re.sub(r"_(bucket|sum|count)$", "", name)} & foreign("metrics")
        wrong |= set() if fine else {name}
    return wrong


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_metrics_exist(page):
    # The two pages that say what was renamed.
    former = set(FORMER) if name_of(page) in ("docs/metrics.md", "docs/renamed.md") else set()
    assert set(unknown_metrics(page.read_text())) - former == set()


# --- routes and headers


@pytest.fixture(scope="module")
def router(shared_world):
    return shared_world.serve("--port", 0, workers=[shared_world.mock()])


OF_FATHOM = re.compile(r"(?:https?://)?(?:localhost|127\.0\.0\.1|\$?\w*(?:FATHOM|ROUTER|fathom)[\w.]*)(?::\d+)?"
                       r"(/[\w/{}.-]*)")
# Of machines, and of the mock.
NO_ROUTE = re.compile(r"/(etc|var|usr|models|dev|proc|run|tmp|opt|home|lib|bin|mock)\b")


def routes(text):
    """(line, method, path) of what a page says can be asked of a server of HTTP."""
    found = []
    for line, code in inline_code(text):
        for methods, path in re.findall(r"\b((?:(?:GET|POST|PUT|PATCH|DELETE)[ ,/]+)+)(/[\w/{}.:-]*)", code):
            found += [(line, method, path) for method in re.findall(r"\w+", methods)]
        if re.fullmatch(r"/[a-z_][\w/{}-]*", code):
            found.append((line, "", code))
    for block in shell_blocks(text):
        for offset, words in simple_commands(block.text):
            if "curl" not in words:
                continue
            method = words[words.index("-X") + 1] if "-X" in words else (
                "POST" if any(re.match(r"(-d|--data|--json)", word) for word in words) else "GET")
            for word in words:
                url = OF_FATHOM.match(word)
                found += [(block.line + offset, method, url[1])] if url else []
    return found


def unknown_routes(text, router):
    wrong = []
    for line, method, path in routes(text):
        begins_routes = path.endswith("/") and path in literals()
        if path in foreign("routes") or begins_routes or NO_ROUTE.match(path):
            continue
        asked = re.sub(r"\{\w+\}|<\w+>", "1", path)
        answers = [ask(router.port, way, asked, {} if way == "POST" else None)
                   for way in ([method] if method else ["GET", "POST", "DELETE"])]
        codes = [answer.json().get("error", {}).get("code") if answer.status in (404, 405) else ""
                 for answer in answers]
        if all(code in ("not_found", "method_not_allowed") for code in codes):
            wrong.append(f"{line}: {method} {path}")
    return wrong


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_routes_exist(page, router):
    assert unknown_routes(page.read_text(), router) == []


def unknown_headers(text):
    named = {name.lower() for name in re.findall(r"\bx-fathom-[a-z-]*[a-z]\b", text, re.IGNORECASE)}
    return sorted(named - {re.sub(r":.*", "", one).strip().lower() for one in literals()})


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_headers_exist(page):
    assert unknown_headers(page.read_text()) == []


# All examples have --admin-listen, and at the main port then there is nothing of these.
ADMIN_AT_MAIN = re.compile(r"(?:localhost|127\.0\.0\.1):8000/(?:health|workers|debug)\S*|--url http://localhost:8000\b")


def at_main_port(text):
    """Commands that ask for admin pages where operators do not find them; blocks that run have no --admin-listen."""
    shown = [block.text for block in shell_blocks(text) if block.info != "sh runnable"]
    return [found[0] for code in [*shown, *(span for _, span in inline_code(text))]
            for found in ADMIN_AT_MAIN.finditer(code)]


@pytest.mark.parametrize("page", [page for page in CURRENT if page.parent.name == "runbooks" or
                                  name_of(page) in ("docs/troubleshooting.md", "docs/operations.md")], ids=name_of)
def test_admin_pages_are_asked_for_where_they_are(page):
    assert at_main_port(page.read_text()) == []


# --- causes, findings, codes, statuses


def unknown_causes(text):
    named = set(re.findall(r"\bcause(?:=~?|\": )\"?([a-z_]+(?:\|[a-z_]+)*)", text))
    causes = set().union(*(labels.get("cause") or set() for _, labels in CATALOGUE.values()))
    return sorted(set("|".join(named).split("|")) - causes - {"", "none"})


def unknown_findings(text):
    """Ids behind messages of the linter, as in [block-size-mismatch], and those in JSON."""
    named = re.findall(r"(?:error|warning): .*\[([a-z-]+)\]$", text, re.MULTILINE)
    named += re.findall(r"\"id\": \"([a-z-]+)\", \"severity\"", text)
    return sorted(set(named) - {finding[0] for finding in findings()})


def unknown_codes(text):
    """Codes of errors, in tables that have them behind the status."""
    named = re.findall(r"^\| [1-5]\d\d[^|]*\| ((?:`[a-z_]+`(?:, )?)+) \|", text, re.MULTILINE)
    return sorted(set(re.findall(r"[a-z_]+", " ".join(named))) - literals())


def unknown_statuses(text):
    """Exit statuses; those of HTTP have three digits and stand elsewhere."""
    ours = set(re.findall(r"kExit\w+ = (\d+);", (ROOT / "src/base/exit_status.h").read_text())) | {"124"}  # timeout's
    named = re.findall(r"\bexit(?:s with|ed with)?(?: status| code)?(?: is)? (\d+)", text)
    return sorted(set(named) - ours)


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_causes_findings_codes_and_statuses_exist(page):
    text = page.read_text()
    assert unknown_causes(text) + unknown_findings(text) + unknown_codes(text) + unknown_statuses(prose(text)) == []


# --- that these can fail


def test_much_is_looked_at():
    assert sum(len(routes(page.read_text())) for page in CURRENT) > 80


@pytest.mark.parametrize("check, wrong, right", [
    (unknown_variables, "FATHOM_PROT=1", "FATHOM_PORT, DYN_ROUTER_MODE, `DYN_*`"),
    (unknown_variables, "FATHOM_PorT=1", "FATHOM_* are variables"),
    (unknown_variables, "DYN_KV_CACHE_BLOCKSIZE", "DYN_KV_CACHE_BLOCK_SIZE"),
    (unknown_metrics, "`kv_router_decision_total`", "`kv_router_decisions_total`, `kv_router_feed_…`"),
    (unknown_metrics, "`kv_roter_decisions_total`", "`kv_router_block_size`, `vllm:prefix_cache_hits_total`"),
    (unknown_metrics, "`kv_router_food_*`", "fathom_worker_ready, fathom_room(x)"),
    (unknown_metrics, "`vllm:num_preemptions`", "`vllm:num_preemptions_total`"),
    (unknown_metrics, 'rate(kv_router_rank_doubt{rank_id="1"}[5m])', 'kv_router_rank_doubt{dp_rank="1", namespace="llm"}'),
    (unknown_headers, "`X-Fathom-Workers`", "`x-fathom-worker: 3`"),
    (unknown_causes, 'kv_router_rank_doubt{cause="no_event"}', "cause=no_events, cause=~\"churn|event_lag\""),
    (unknown_findings, "a.yaml:7: error: x [block-size-wrong]", "a.yaml:7: error: x [block-size-mismatch]"),
    (unknown_codes, "| 502 | `worker_fails` | x |", "| 502 | `worker_failed`, `no_workers` | x |"),
    (unknown_statuses, "it exits with status 77", "it exits with status 78"),
])
def test_a_wrong_name_is_noticed(check, wrong, right):
    assert check(wrong)
    assert check(right) == []


@pytest.mark.parametrize("wrong", ["GET /heath", "POST /debug/index", "GET /debug/nothing", "DELETE /metrics"])
def test_a_wrong_route_is_noticed(wrong, router):
    assert unknown_routes(f"Ask `{wrong}`.", router)
    method, path = wrong.split()
    assert unknown_routes(fenced(f"curl -s -X {method} localhost:8000{path} | jq"), router)


def test_an_admin_page_at_the_main_port_is_noticed():
    assert at_main_port(fenced("curl -s localhost:8000/debug/index")) and at_main_port("`curl localhost:8000/health`")
    assert at_main_port(fenced("fathom doctor --url http://localhost:8000"))
    right = "export ROUTER=http://localhost:8000\ncurl -s $ROUTER/health\ncurl localhost:8000/v1/models"
    assert at_main_port(fenced(right)) == []


def test_right_routes_are_not_complained_about(router):
    assert unknown_routes("`GET POST /workers`, `DELETE /workers/{id}`, `POST /debug/explain`, `/ready`", router) == []
