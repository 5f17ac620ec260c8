"""The openai client, as users' programs use it."""

import json
import subprocess
from pathlib import Path

import pytest

from conftest import clean_environment
from wire import eventually

NODE = Path(__file__).parent / "node"


def openai(router, command, key="none", **fields):
    assert (NODE / "node_modules/openai").is_dir(), f"run: npm ci --prefix {NODE}"
    done = subprocess.run(
        ["node", NODE / "client.mjs", f"{router.url}/v1", command, json.dumps(fields)],
        env=clean_environment({"KEY": key}), capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def worker(shared_world):
    return shared_world.mock(name="ada", model="mock-model,other-model")


@pytest.fixture(scope="module")
def router(shared_world, worker):
    return shared_world.serve(workers=[worker])


def test_a_chat_is_answered(router):
    answer = openai(router, "chat", max_tokens=3)
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"] == "ada:0 ada:1 ada:2 "
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 3


def test_a_chat_is_streamed(router):
    chunks = openai(router, "chat-stream", max_tokens=4,
                    stream_options={"include_usage": True})["chunks"]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert "".join(d.get("content") or "" for d in deltas) == "ada:0 ada:1 ada:2 ada:3 "
    assert deltas[0]["role"] == "assistant"
    assert chunks[-1]["usage"]["completion_tokens"] == 4


def test_a_completion_is_answered(router):
    answer = openai(router, "completions", max_tokens=2)
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"] == "ada:0 ada:1 "


def test_a_completion_is_streamed(router):
    chunks = openai(router, "completions-stream", max_tokens=2)["chunks"]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "ada:0 ada:1 "


def test_embeddings_responses_and_models_are_answered(router):
    assert len(openai(router, "embeddings")["data"]) == 2
    response = openai(router, "responses", max_output_tokens=2)
    assert response["object"] == "response"
    assert response["output"][0]["content"][0]["text"].startswith("ada:0 ")
    assert openai(router, "models")["models"] == ["mock-model", "other-model"]


def test_a_model_that_nobody_serves_raises_not_found(router):
    error = openai(router, "chat", model="no-such-model")
    assert (error["raised"], error["status"]) == ("NotFoundError", 404)
    assert error["code"] == "model_not_found"


def test_a_request_that_the_engine_refuses_raises_bad_request(router):
    error = openai(router, "chat", max_tokens=-1)
    assert (error["raised"], error["status"]) == ("BadRequestError", 400)


def test_a_wrong_key_raises_authentication_error(mock, serve):
    router = serve("--api-key", "sesame", workers=[mock()])
    error = openai(router, "chat", key="wrong")
    assert (error["raised"], error["status"]) == ("AuthenticationError", 401)
    assert openai(router, "chat", key="sesame")["object"] == "chat.completion"


def test_a_worker_that_dies_mid_stream_raises(mock, serve):
    router = serve(workers=[mock(die_after_tokens=3)])
    error = openai(router, "chat-stream", max_tokens=50)
    assert error["raised"] == "APIError"
    assert error["code"] == "worker_failed"


def test_an_aborted_stream_is_cancelled_at_the_worker(mock, serve):
    worker = mock(token_interval="20ms", tokens=100_000)
    router = serve(workers=[worker])
    assert 3 <= openai(router, "abort")["chunks"] < 1000  # what was read already still arrives
    eventually(lambda: worker.stats()["cancelled"] == 1, "the worker has noticed")
    eventually(lambda: worker.stats()["in_flight"] == 0, "the worker is idle")
