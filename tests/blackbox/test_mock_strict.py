"""The mock refuses what a running engine refused, with the same bytes, and accepts what that engine accepted."""

import http.client
import json

import pytest

from conftest import ROOT

DATA = ROOT / "tests/data/engine_refusals"
JSON = "application/json"


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def ask(port, row):
    """(status, header Allow, body), of a request as it was recorded."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = dict(row.get("headers", {}))
    if (kind := row.get("content_type", JSON)) is not None:
        headers["Content-Type"] = kind
    body = row["body"]
    connection.request(row["method"], row["path"], None if body is None else body.encode(), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("allow"), text


def difference(port, row):
    status, allow, text = ask(port, row)
    if row["status"] == 200:
        return None if status == 200 else f"{row['id']}: refused with {status} {text}"
    if (status, text, allow) == (row["status"], row["answer"], row.get("allow", allow)):
        return None
    return f"{row['id']}: {status} {allow} {text}\n  instead of {row['status']} {row.get('allow')} {row['answer']}"


def test_answers_as_vllm_did(mock):
    worker = mock(profile="h200-llama-3.1-8b", speedup=1000, block_size=32, num_blocks=65)
    recorded = rows("vllm-0.32.0.jsonl")
    assert len({row["path"] for row in recorded}) > 7 and sum(row["status"] == 400 for row in recorded) > 200
    differences = [found for row in recorded if (found := difference(worker.port, row))]
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_refuses_what_was_captured(mock, engine):
    worker = mock(engine=engine, model="tiny", profile="h200-llama-3.1-8b", speedup=1000)
    captured = [row for row in rows("captured.jsonl") if row["engine"] == engine]
    assert captured
    for row in captured:
        status, _, text = ask(worker.port, row)
        assert (status, json.loads(text)) == (row["status"], json.loads(row["answer"])), row["id"]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_wants_its_bodies_as_json(mock, engine):
    worker = mock(engine=engine)
    for path in ("/v1/completions", "/v1/chat/completions"):
        body = json.dumps({"model": "mock-model", "prompt": "a"} if path == "/v1/completions" else
                          {"model": "mock-model", "messages": [{"role": "user", "content": "a"}]})
        row = {"method": "POST", "path": path, "body": body}
        assert ask(worker.port, row)[0] == 200
        for kind in (None, "application/x-www-form-urlencoded"):
            status, _, text = ask(worker.port, {**row, "content_type": kind})
            assert status == 400 and "validation error" in text, text


def test_unknown_members_are_refused_by_tensorrt_llm_alone(mock):
    body = json.dumps({"model": "mock-model", "prompt": "a", "no_such_member": 1})
    row = {"method": "POST", "path": "/v1/completions", "body": body}
    for engine, status in (("vllm", 200), ("sglang", 200), ("trtllm", 400)):
        got, _, text = ask(mock(engine=engine).port, row)
        assert got == status, text
        assert ("extra_forbidden" in text) == (engine == "trtllm"), text


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_refusals_on_messages_have_the_shape_of_the_engine(mock, engine):
    """vLLM has another one where Pydantic refuses than where its own code does."""
    worker = mock(engine=engine, profile="h200-llama-3.1-8b", speedup=1000)

    def refused(**members):
        body = {"model": "mock-model", "max_tokens": 3, "messages": [{"role": "user", "content": "a"}], **members}
        body = {key: value for key, value in body.items() if value is not None}
        status, _, text = ask(worker.port, {"method": "POST", "path": "/v1/messages", "body": json.dumps(body)})
        assert status == 400, (members, text)
        return json.loads(text)

    pydantic = [refused(max_tokens=None), refused(messages=None), refused(messages=[{"role": "pilot", "content": "a"}]),
                refused(messages=[{"role": "user"}]), refused(max_tokens="many"),
                refused(messages=[{"role": "user", "content": 5}])]
    if engine == "vllm":
        assert {error["error"]["type"] for error in pydantic} == {"Bad Request"}
    else:
        assert {(error["type"], error["error"]["type"]) for error in pydantic} == {("error", "invalid_request_error")}
    block = refused(messages=[{"role": "user", "content": [{"type": "document"}]}])
    assert "document" in block["error"]["message"]
    if engine == "sglang":
        message = refused(messages=[{"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]}])
        assert message["error"]["message"].endswith("].0.tool_use.id: Field required")
