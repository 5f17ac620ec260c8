"""Requests of agents that running engines were given on /v1/messages and /v1/responses: the router has the tokens that
the engine had, all of them."""

import json
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM, clean_environment
from tokenizers import PATIENCE, model_folder

CAPTURES = Path(__file__).parents[1] / "data/engine-agents"
FORMS = {"/v1/messages": "messages", "/v1/responses": "responses"}
# What an engine refuses for reasons that are no business of its template's: a parser that it was not
# started with, a tool that is not there, a limit.
REFUSED_ELSEWHERE = {
    ("vllm-0.32", "llama3_1"): {"m13", "m15", "m17", "m19", "m22", "m24", "m36", "m69", "m70"},
    ("vllm-0.32", "qwen2_5"): {"m63", "m73"},
    ("sglang-0.5.23", "qwen2_5"): {"m63", "m73", "m74", "r40"},
}


def captures():
    return sorted(path.name.removesuffix(".jsonl") for path in CAPTURES.glob("*.jsonl"))


def tokenized(model, engine, form, bodies):
    done = subprocess.run([FATHOM, "tokenize", "--lines", "--json", "--as", form, "--model-path", model_folder(model),
                           "--engine", engine],
                          input="".join(body + "\n" for body in bodies), capture_output=True, text=True,
                          timeout=PATIENCE, env=clean_environment())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(bodies), done.stderr
    return answers


@pytest.mark.vocabulary
@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("capture", captures())
def test_a_captured_request_has_the_tokens_of_the_engine(capture, path):
    engine, model = capture.rsplit(".", 1)
    rows = [json.loads(line) for line in (CAPTURES / f"{capture}.jsonl").read_text().splitlines()]
    # What continues a response is known to the engine alone.
    rows = [row for row in rows if row["path"] == path and "after" not in row]
    assert len(rows) > 8
    answers = tokenized(model, engine.split("-")[0], FORMS[path], [row["body"] for row in rows])
    differ = []
    for row, answer in zip(rows, answers):
        if "ids" in row:
            fine = answer.get("exact") and answer["ids"] == row["ids"]
        else:
            fine = not answer.get("exact") or row["id"] in REFUSED_ELSEWHERE.get((engine, model), ())
        if not fine:
            differ.append((row["id"], row["note"], answer.get("prompt") or answer))
    assert not differ, f"{len(differ)} of {len(rows)}: {differ}"


def test_every_engine_and_model_is_there():
    assert captures() == sorted(f"{engine}.{model}" for engine in ("sglang-0.5.23", "vllm-0.32")
                                for model in ("llama3_1", "qwen2_5", "qwen3"))
