"""Chats that running engines were given: the router has the tokens that the engine had, all of them."""

import json
import subprocess
from pathlib import Path

import pytest

from conftest import FATHOM, clean_environment
from tokenizers import PATIENCE, model_folder

CAPTURES = Path(__file__).parents[1] / "data/engine-chats"
# What an engine refuses for reasons that are no business of its template's: a parser that it was not
# started with, or members that its schema does not have.
REFUSED_ELSEWHERE = {
    ("vllm-0.32", "llama3_1"): {"c07", "c08", "c09", "c10", "c11", "c21"},
    ("vllm-0.32", "qwen2_5"): {"c37", "c38"},
}


def captures():
    return sorted(path.name.removesuffix(".jsonl") for path in CAPTURES.glob("*.jsonl"))


def tokenized(model, engine, bodies):
    done = subprocess.run([FATHOM, "tokenize", "--lines", "--json", "--model-path", model_folder(model), "--engine", engine],
                          input="".join(body + "\n" for body in bodies), capture_output=True, text=True,
                          timeout=PATIENCE, env=clean_environment())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(bodies), done.stderr
    return answers


@pytest.mark.vocabulary
@pytest.mark.parametrize("capture", captures())
def test_a_captured_chat_has_the_tokens_of_the_engine(capture):
    engine, model = capture.rsplit(".", 1)
    rows = [json.loads(line) for line in (CAPTURES / f"{capture}.jsonl").read_text().splitlines()]
    assert len(rows) > 10
    answers = tokenized(model, engine.split("-")[0], [row["body"] for row in rows])
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
