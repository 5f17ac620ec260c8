"""What the doctor makes of artifacts: logs, manifests, sizes of models. Nothing runs here but the
doctor itself."""

import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from conftest import FATHOM, ROOT, clean_environment, run_fathom

LOGS = ROOT / "tests/data/logs"
SIZING = ROOT / "tests/data/sizing"
LINT = ROOT / "tests/lint"
CAUSES = ["block_size_mismatch", "prefix_caching_off", "no_events", "tokens_differ", "unsupported_groups",
          "event_gap", "event_lag", "prediction_drift", "churn"]


def doctor(*args, stdin=None):
    return run_fathom("doctor", *args, stdin=stdin if stdin is not None else "")


def report(*args, stdin=None, status=None):
    ran = doctor(*args, "--format", "json", stdin=stdin)
    assert ran.returncode == status if status is not None else ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)


def ids(found):
    return [finding["id"] for finding in found["findings"]]


# --- the incident


def test_the_incident_is_solved_from_its_own_artifacts():
    """Only the log lines, and the manifest with its worker."""
    found = report("--logs", LOGS / "dynamo_incident.log", "--manifest", LINT / "bad/block-size-mismatch.yaml", status=1)
    first = found["findings"][0]
    assert first["id"] == "block-size-mismatch" and first["severity"] == "error"
    evidence = "\n".join(first["evidence"])
    assert "16" in evidence and "32" in evidence
    assert "tree size 0" in evidence, "the log's symptom is evidence of the cause"
    assert "Failed to find parent block" in evidence and "Failed to find block to remove" in evidence
    router, engine = first["fixes"][:2]
    assert "DYN_KV_CACHE_BLOCK_SIZE" in router["setting"] and "32" in router["setting"]
    assert '+' in router["diff"] and "DYN_KV_CACHE_BLOCK_SIZE" in router["diff"]
    assert "tokens_per_block: 16" in engine["setting"]
    for fix in (router, engine):
        assert fix["cost"] and fix["verify"]
    assert first["docs"] == "fathom docs block-size-mismatch"
    assert run_fathom("docs", "block-size-mismatch").returncode == 0
    assert "index-empty" not in ids(found)


def test_logs_may_be_piped_in():
    log = (LOGS / "dynamo_incident.log").read_text()
    by_dash = report("--logs", "-", "--manifest", LINT / "bad/block-size-mismatch.yaml", stdin=log)
    alone = report("--manifest", LINT / "bad/block-size-mismatch.yaml", stdin=log)
    assert ids(by_dash) == ids(alone)
    assert any("tree size 0" in line for line in alone["findings"][0]["evidence"])
    assert ids(report(stdin=log))[0] == "index-empty"


def test_the_log_alone_names_the_symptom_and_what_to_look_at():
    found = report("--logs", LOGS / "dynamo_incident.log", status=1)
    assert ids(found)[0] == "index-empty"
    assert "block size" in found["findings"][0]["fix"]


def test_the_warnings_alone_are_the_incident():
    found = report(stdin="WARN: Failed to find parent block; skipping store operation\n" * 3000, status=1)
    first = found["findings"][0]
    assert (first["id"], first["severity"]) == ("events-not-applied", "error")
    assert "does not work" in found["verdict"]
    assert "block size" in first["fix"] and "DYN_KV_CACHE_BLOCK_SIZE=" in first["fixes"][0]["setting"]


def test_evictions_far_above_stores_are_commented_on():
    log = ("WARN Failed to find parent block; skipping store operation\n" * 20
           + "WARN Failed to find block to remove; skipping remove operation\n" * 400)
    found = report(stdin=log, status=1)
    assert "churn" in ids(found)
    assert any("evictions are far above stores" in line for part in found["sections"] for line in part["lines"])


def test_no_fix_begins_with_the_word_that_stands_before_it():
    dropped = "WARN Block not published. Block size must be 16 tokens to be published. Block size is: 32\n"
    text = re.sub(r"\s+", " ", doctor(stdin=dropped).stdout)
    assert " Or Set the engine's block size" in text and " Or Or " not in text
    for args in (INCIDENT, ("--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100", "--tp", "4",
                            "--engine", "vllm", "--concurrency", "10", "--prompt-tokens", "8000",
                            "--request-rate", "2")):
        for finding in report(*args)["findings"]:
            assert not [fix["what"] for fix in finding["fixes"] if fix["what"].startswith("Or ")]
        assert " Or Or " not in re.sub(r"\s+", " ", doctor(*args).stdout)


def table(found, title):
    """Rows by column."""
    rows = [t for part in found["sections"] for t in part["tables"] if t["title"] == title]
    assert rows, [t["title"] for part in found["sections"] for t in part["tables"]]
    return [dict(zip(rows[0]["columns"], [cell["text"] if isinstance(cell, dict) else cell for cell in row]))
            for row in rows[0]["rows"]]


def test_the_index_the_model_and_the_transport_of_the_manifest_are_shown(tmp_path):
    (tmp_path / "frontend.sh").write_text(
        "python3 -m dynamo.frontend --router-mode kv --router-ttl-secs 300 --router-max-tree-size 65536 "
        "--router-prune-target-ratio 0.7 --kv-cache-block-size 16\n")
    (tmp_path / "engine.sh").write_text(
        "DYN_EVENT_PLANE=nats python3 -m dynamo.vllm --model Qwen/Qwen3-8B --block-size 16\n"
        "vllm serve Qwen/Qwen3-32B --kv-events-config '{\"enable_kv_cache_events\": true, \"publisher\": \"zmq\", "
        "\"endpoint\": \"tcp://*:5557\", \"replay_endpoint\": \"tcp://*:5657\"}'\n")
    found = report("--manifest", tmp_path / "frontend.sh", tmp_path / "engine.sh")
    router, = table(found, "Routers in the files")
    assert (router["index TTL"], router["max tree size"], router["prune ratio"]) == ("300", "65536", "0.7")
    assert [row["model"] for row in table(found, "Engines in the files")] == ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B"]
    dynamo, vllm = table(found, "How KV events reach the router")
    assert "nats" in dynamo["transport"]
    assert (vllm["transport"], vllm["address"], vllm["replay"]) == (
        "pushed over ZeroMQ", "tcp://*:5557", "tcp://*:5657")


def test_measured_gpu_memory_is_used_as_it_is(tmp_path):
    smi = tmp_path / "smi.csv"
    smi.write_text("index, name, memory.total [MiB], memory.used [MiB]\n0, NVIDIA H100 80GB HBM3, 81559 MiB, 75000 MiB\n")
    found = report("--model-config", SIZING / "llama_3_1_70b.json", "--nvidia-smi", smi, "--tp", "4", "--engine", "vllm")
    lines = " ".join(line for part in found["sections"] for line in part["lines"])
    assert "79.65 GiB" in lines or "79.6 GiB" in lines, lines
    assert "79.1" not in lines


def test_the_fixed_manifest_has_no_finding(tmp_path):
    fixed = tmp_path / "agg.yaml"
    fixed.write_text((LINT / "bad/block-size-mismatch.yaml").read_text())
    assert run_fathom("lint", "--fix", fixed).returncode == 0
    assert report("--manifest", fixed, status=0)["findings"] == []


def test_a_router_and_an_engine_in_two_files_are_looked_at_together(tmp_path):
    frontend, engine = tmp_path / "frontend.sh", tmp_path / "engine.sh"
    frontend.write_text("fathom serve --worker-urls http://engine:8000 --kv-cache-block-size 16\n")
    engine.write_text("trtllm-serve model --extra_llm_api_options engine.yaml\n")
    (tmp_path / "engine.yaml").write_text(
        "kv_cache_config:\n  event_buffer_max_size: 16384\n  tokens_per_block: 32\n")
    files = sorted(map(str, tmp_path.iterdir()))
    assert ids(report("--manifest", *files, status=1)) == ["block-size-mismatch"]


# --- Fathom's own log, cause by cause


def fathom_line(cause, form):
    fields = {"url": "http://10.0.0.2:8000", "dp_rank": 0, "cause": cause, "evidence": "64 requests, and none",
              "cost_tokens": 51200, "fix": "start the engine so that it does"}
    if form == "json":
        return json.dumps({"time": "2026-03-01T12:00:00.000Z", "level": "WARN",
                           "message": f"A rank is doubted: {cause}", **fields}) + "\n"
    words = " ".join(f'{k}="{v}"' if isinstance(v, str) and " " in v else f"{k}={v}" for k, v in fields.items())
    return f"2026-03-01T12:00:00.000Z WARN  A rank is doubted: {cause} {words}\n"


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_of_doubt_in_a_log_is_the_finding(cause, form):
    found = report(stdin=fathom_line(cause, form), status=1)
    assert ids(found) == [cause.replace("_", "-")]
    first = found["findings"][0]
    assert first["subject"] == "http://10.0.0.2:8000 rank 0"
    assert any("64 requests, and none" in line for line in first["evidence"])
    assert first["fix"] == "Start the engine so that it does"


@pytest.mark.parametrize("cause", CAUSES)
def test_a_doubt_that_is_over_is_no_finding(cause):
    again = (f'2026-03-01T12:05:00.000Z INFO  A rank is trusted again url=http://10.0.0.2:8000 dp_rank=0 was={cause}\n')
    assert report(stdin=fathom_line(cause, "text") + again, status=0)["findings"] == []


# --- manifests: the linter's findings, in the doctor's words


@pytest.mark.parametrize("path", sorted((LINT / "bad").iterdir()), ids=lambda p: p.stem)
def test_what_the_linter_finds_the_doctor_ranks_first(path):
    linted = json.loads(run_fathom("lint", "--format", "json", path).stdout)["findings"]
    found = report("--manifest", path, status=1)
    assert ids(found)[0] == linted[0]["id"]
    assert set(ids(found)) >= {finding["id"] for finding in linted}


@pytest.mark.parametrize("path", sorted((LINT / "good").iterdir()), ids=lambda p: p.stem)
def test_what_is_right_has_no_finding(path):
    nothing_there = path.stem in ("nothing-to-check", "page-size-one-of-something-else")
    assert ids(report("--manifest", path, status=2 if nothing_there else 0)) == []


# --- sizing


def table(found, title):
    tables = [t for section in found["sections"] for t in section["tables"] if t["title"] == title]
    assert len(tables) == 1, [t["title"] for section in found["sections"] for t in section["tables"]]
    return [dict(zip(tables[0]["columns"], [cell_text(c) for c in row])) for row in tables[0]["rows"]]


def cell_text(cell):
    return cell["text"] if isinstance(cell, dict) else cell


def number(text):
    return int(re.sub(r"[^0-9]", "", text))


@pytest.mark.parametrize("engine, args, tokens", [
    ("vllm", (), 470_800),
    ("vllm", ("--memory-fraction", "0.9"), 450_000),
    ("sglang", (), 410_600),
    ("trtllm", (), 492_500),
])
def test_capacity_is_that_of_the_worked_example(engine, args, tokens):
    found = report("--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100", "--tp", 4, "--engine", engine, *args)
    row, = table(found, "KV cache of one rank")
    assert row["per token"] in ("81,920 B", "80.00 KiB")
    assert abs(number(row["capacity"]) - tokens) <= tokens / 100


def test_latent_attention_is_not_divided_among_gpus():
    found = report("--model-config", SIZING / "deepseek_v3.json", "--gpu", "H200", "--tp", 8, "--engine", "vllm",
                   "--kv-dtype", "bf16")
    row, = table(found, "KV cache of one rank")
    assert row["per token"] in ("70,272 B", "68.62 KiB", "68.63 KiB")


def test_half_the_bytes_are_twice_the_tokens():
    common = ("--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100", "--tp", 4, "--engine", "vllm")
    plain, = table(report(*common), "KV cache of one rank")
    small, = table(report(*common, "--kv-dtype", "fp8"), "KV cache of one rank")
    assert abs(number(small["capacity"]) / number(plain["capacity"]) - 2) < 0.01


def test_more_gpus_than_heads_bring_nothing_per_token():
    def per_token(tp):
        found = report("--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100", "--tp", tp, "--engine", "vllm")
        return table(found, "KV cache of one rank")[0]["per token"]
    assert per_token(8) != per_token(4)
    assert per_token(16) == per_token(8)


def test_memory_pressure_is_found_and_its_fixes_have_diffs(tmp_path):
    manifest = tmp_path / "vllm.yaml"
    manifest.write_text("""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: vllm
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.20.0
          args:
            - --model
            - meta-llama/Llama-3.1-70B-Instruct
            - --tensor-parallel-size
            - "4"
            - --gpu-memory-utilization
            - "0.85"
""")
    found = report("--manifest", manifest, "--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100",
                   "--concurrency", 40, "--prompt-tokens", 8000, "--output-tokens", 500, "--request-rate", 10,
                   "--turn-gap", "60s", status=1)
    pressure = next(f for f in found["findings"] if f["id"] == "memory-pressure")
    assert "60 s" in pressure["message"]
    fraction = next(fix for fix in pressure["fixes"] if "--gpu-memory-utilization" in fix["setting"])
    assert '-            - "0.85"' in fraction["diff"] and '+            - "0.90"' in fraction["diff"]
    assert any("--kv-cache-dtype fp8" in fix["setting"] for fix in pressure["fixes"])
    calm = report("--manifest", manifest, "--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100",
                  "--concurrency", 4, "--prompt-tokens", 2000, "--output-tokens", 200, "--request-rate", 1)
    assert "memory-pressure" not in ids(calm)


def test_gpu_memory_is_read_from_nvidia_smi():
    found = report("--nvidia-smi", SIZING / "nvidia_smi_table.txt")
    assert table(found, "GPUs")


# --- what cannot be looked at


@pytest.mark.parametrize("args, names", [
    (("--logs", "nowhere.log"), "nowhere.log"),
    (("--manifest", "nowhere.yaml"), "nowhere.yaml"),
    (("--url", "http://127.0.0.1:9"), "127.0.0.1:9"),
    (("--worker", "http://127.0.0.1:9"), "127.0.0.1:9"),
    (("--dynamo-url", "http://127.0.0.1:9"), "127.0.0.1:9"),
    (("--model-config", "nowhere.json"), "nowhere.json"),
    (("--dcgm", "http://127.0.0.1:9/metrics"), "127.0.0.1:9"),
])
def test_what_cannot_be_looked_at_is_said(args, names):
    ran = doctor(*args)
    assert ran.returncode == 2
    assert names in ran.stderr and names in ran.stdout
    assert "Nothing could be examined" in ran.stdout


def test_findings_win_over_what_could_not_be_seen():
    found = report("--logs", LOGS / "dynamo_incident.log", "--url", "http://127.0.0.1:9", status=1)
    assert [look["seen"] for look in found["looked_at"]].count(False) == 1


def test_an_empty_standard_input_is_not_health():
    assert doctor(stdin="").returncode == 2


@pytest.mark.parametrize("args, words", [
    (("--probe", "4"), "--probe needs a router"),
    (("--listen", "5"), "--listen needs engines"),
    (("--gpu", "H1000", "--model-config", "x"), "H1000"),
    (("--kv-dtype", "fp3", "--model-config", "x"), "fp3"),
    (("--frobnicate",), "--frobnicate: no such option"),
])
def test_wrong_usage_is_refused(args, words):
    ran = doctor(*args)
    assert ran.returncode == 78 and words in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize("garbage", [
    b"\x00\xff\xfe" * 1000, b"a: [1, 2\nb: {", b"a: &a [*a]\n", b"- " * 20000, b"\x1b[2J\x1b]0;owned\x07: x\n", b"{{ .Values.x }}\n",
], ids=["binary", "truncated", "cyclic", "deep", "escapes", "template"])
def test_garbage_is_said_and_nothing_else_suffers(tmp_path, garbage):
    manifest = tmp_path / "x.yaml"
    manifest.write_bytes(garbage)
    log = tmp_path / "x.log"
    log.write_bytes(garbage)
    ran = subprocess.run([FATHOM, "doctor", "--manifest", manifest, LINT / "bad/block-size-mismatch.yaml", "--logs", log],
                         capture_output=True, env=clean_environment(), timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert ran.returncode == 1
    assert b"block-size-mismatch" in ran.stdout
    assert b"\x1b" not in ran.stdout + ran.stderr


# --- a lot of it


# A process's peak contains that of the process it was forked from, which may be a large one here.
WITH_PEAK = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(usage.ru_maxrss, file=sys.stderr)
"""


@pytest.mark.slow
def test_a_million_lines_are_read_in_little_memory(tmp_path):
    log = tmp_path / "long.log"
    line = (LOGS / "dynamo_incident.log").read_text()
    count = line.count("\n")
    with log.open("w") as out:
        for _ in range(1_000_000 // count + 1):
            out.write(line)
    started = time.monotonic()
    report = tmp_path / "report.json"
    with report.open("w") as out:
        ran = subprocess.run([sys.executable, "-c", WITH_PEAK, FATHOM, "doctor", "--logs", log, "--format", "json"],
                             stdout=out, stderr=subprocess.PIPE, text=True, env=clean_environment(),
                             stdin=subprocess.DEVNULL, check=True)
    peak = int(ran.stderr.split()[-1])
    print(f"{log.stat().st_size >> 20} MiB in {time.monotonic() - started:.2f} s")
    assert ids(json.loads(report.read_text()))[0] == "index-empty"
    assert peak < 512 << 10, "kibibytes; the file itself has more"


# --- how it looks


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.outside = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.outside += [value for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")]


INCIDENT = ("--logs", LOGS / "dynamo_incident.log", "--manifest", LINT / "bad/block-size-mismatch.yaml",
            "--model-config", SIZING / "llama_3_1_70b.json", "--gpu", "H100", "--concurrency", 10,
            "--prompt-tokens", 8000, "--output-tokens", 400, "--request-rate", 4)


def test_the_page_stands_by_itself():
    ran = doctor(*INCIDENT, "--format", "html")
    page = Page()
    page.feed(ran.stdout)
    assert page.tags.count("svg") >= 2
    assert "script" not in page.tags and "link" not in page.tags and "img" not in page.tags
    assert page.outside == []


def test_every_format_says_the_same():
    found = report(*INCIDENT)
    for form in ("text", "markdown", "html"):
        text = re.sub(r"\s+", " ", re.sub(r"[\\|]", "", doctor(*INCIDENT, "--format", form).stdout))
        for finding in found["findings"]:
            assert finding["id"] in text, form
            assert finding["docs"] in text, form


def test_the_report_can_be_written_to_a_file(tmp_path):
    path = tmp_path / "report.html"
    ran = doctor(*INCIDENT, "--format", "html", "--output", path)
    assert ran.returncode == 1 and ran.stdout == ""
    assert path.read_text().startswith("<!")
    refused = doctor(*INCIDENT, "--output", tmp_path / "no/where")
    assert refused.returncode == 2 and "no/where" in refused.stderr


def test_the_text_has_no_colour_where_it_is_no_terminal():
    assert "\x1b" not in doctor(*INCIDENT).stdout


def test_secrets_of_manifests_are_never_shown(tmp_path):
    manifest = tmp_path / "vllm.yaml"
    manifest.write_text((LINT / "bad/block-size-mismatch.yaml").read_text().replace(
        "- name: DYN_ROUTER_MODE", "- name: HF_TOKEN\n          value: hf_hush\n        - name: DYN_ROUTER_MODE"))
    assert "hf_hush" in manifest.read_text()
    for form in ("text", "json", "markdown", "html"):
        ran = doctor("--manifest", manifest, "--format", form)
        assert ran.returncode == 1 and "hf_hush" not in ran.stdout + ran.stderr, form
    assert "hf_hush" not in run_fathom("lint", "--format", "json", manifest).stdout
    refused = doctor("--url", "http://ada:hush@127.0.0.1:9")
    assert refused.returncode == 78 and "hush" not in refused.stderr


def test_what_nobody_understands_is_not_health(tmp_path):
    garbage = tmp_path / "x"
    garbage.write_text("hello\nworld\n" * 1000)
    for source in ("--logs", "--manifest"):
        ran = doctor(source, garbage)
        assert ran.returncode == 2, ran.stdout
        assert "Nothing could be examined" in ran.stdout


def test_prompts_in_logs_are_never_shown():
    secret = "the launch code is 0000"
    log = f'WARN Failed to find parent block; skipping store operation prompt="{secret}"\n{secret}\n'
    for form in ("text", "json", "markdown", "html"):
        assert secret not in doctor("--format", form, stdin=log).stdout
