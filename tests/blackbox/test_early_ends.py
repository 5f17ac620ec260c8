"""Answers that an engine ends early (vLLM on SIGTERM: finish_reason "abort", and a part of the text)."""

import json
import signal
import threading

import pytest

import wire
from wire import eventually

PROMPT = {"model": "mock-model", "max_tokens": 12}
CHAT = ("/v1/chat/completions", PROMPT | {"messages": [{"role": "user", "content": "hello"}]})
TEXT = ("/v1/completions", PROMPT | {"prompt": "hello"})
RESPONSE = ("/v1/responses", {"model": "mock-model", "input": "hello", "max_output_tokens": 12})
WHOLE = pytest.mark.parametrize("path, body", [CHAT, TEXT, RESPONSE], ids=["chat", "text", "responses"])
STREAMED = pytest.mark.parametrize("path, body", [CHAT, TEXT], ids=["chat", "text"])


def faults(worker, **named):
    answer = wire.ask(worker.port, "POST", "/mock/faults", named)
    assert answer.status == 200, answer.text()


def words(answer):
    choice = answer.json()["choices"][0]
    return len((choice["text"] if "text" in choice else choice["message"]["content"]).split())


@WHOLE
def test_an_answer_that_is_not_streamed_is_had_from_another_worker(mock, serve, path, body):
    stopped, good = mock(abort_after_tokens=5), mock()
    router = serve(workers=[stopped, good])
    answers = [wire.ask(router.port, "POST", path, body) for _ in range(8)]
    assert [answer.status for answer in answers] == [200] * 8
    assert {answer.worker for answer in answers} == {router.worker_id(good)}
    assert all(b'"abort"' not in answer.body and b'"cancelled"' not in answer.body for answer in answers)
    if path != RESPONSE[0]:
        assert {words(answer) for answer in answers} == {12}
    assert router.metric("fathom_retries_total", reason="aborted") >= 1


@WHOLE
def test_no_truncated_answer_is_passed_on_as_complete(mock, serve, path, body):
    router = serve(workers=[mock(abort_after_tokens=5)])
    answer = wire.ask(router.port, "POST", path, body)
    assert (answer.status, answer.error["code"]) == (503, "answer_aborted")
    assert answer.header("retry-after")


@STREAMED
def test_a_stream_that_the_engine_ends_early_ends_as_an_error(mock, serve, path, body):
    router = serve(workers=[mock(abort_after_tokens=5, token_interval="20ms")])
    with wire.Connection(router.port) as connection:
        connection.request("POST", path, body | {"stream": True})
        head = connection.read_head()
        events = list(connection.events(head))
    assert head.status == 200
    assert json.loads(events[-1])["error"]["code"] == "answer_aborted"
    assert len(events) > 1 and "[DONE]" not in events
    assert not any('"abort"' in event for event in events)
    router.wait_for_log("An answer ended before it was complete")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_engine_that_is_stopped_while_others_serve(mock, serve, stream):
    """On demand, as with SIGTERM: from one moment to the next."""
    stopped, good = mock(), mock()
    router = serve("--retry-budget", 1, workers=[stopped, good])
    assert {router.chat(stream=stream).status for _ in range(4)} == {200}
    faults(stopped, abort_after_tokens=3)
    answers = [router.chat(stream=stream, max_tokens=12) for _ in range(10)]
    if stream:
        assert all(("[DONE]" in answer.text()) != ("answer_aborted" in answer.text()) for answer in answers)
    else:
        assert {(answer.status, words(answer)) for answer in answers} == {(200, 12)}
    faults(stopped, abort_after_tokens=0)
    eventually(lambda: router.chat().worker == router.worker_id(stopped), "it gets requests again")


@pytest.mark.parametrize("profile", ["paced", "h200-llama-3.1-8b"])
def test_sigterm_costs_no_answer_that_is_not_streamed(mock, serve, profile):
    """All of them are under way, on the engine that is stopped or on the other one."""
    slow = {"profile": profile, "token_interval": "100ms", "speedup": 0.1}
    stopped, good = mock(on_sigterm="abort-running", **slow), mock(**slow)
    router = serve("--router-mode", "round-robin", "--retry-budget", 1, workers=[stopped, good])
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(router.chat(max_tokens=20))) for _ in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: stopped.stats()["in_flight"] == 3 and good.stats()["in_flight"] == 3, "all are under way")
    stopped.signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} == {200}
    assert {answer.json()["choices"][0]["finish_reason"] for answer in answers} == {"length"}
    assert {answer.json()["usage"]["completion_tokens"] for answer in answers} == {20}
    assert router.metric("fathom_retries_total", reason="aborted") == 3


@pytest.mark.parametrize("profile", ["paced", "h200-llama-3.1-8b"])
def test_sigterm_ends_streams_as_errors(mock, serve, profile):
    stopped = mock(on_sigterm="abort-running", profile=profile, token_interval="100ms", speedup=0.1)
    router = serve(workers=[stopped])
    with wire.Connection(router.port) as connection:
        connection.request("POST", CHAT[0], CHAT[1] | {"stream": True, "max_tokens": 200})
        events = connection.events(connection.read_head())
        seen = [next(events)]
        stopped.signal(signal.SIGTERM)
        seen += events
    assert json.loads(seen[-1])["error"]["code"] == "answer_aborted"
    assert "[DONE]" not in seen


def test_holding_answers_can_be_turned_off(mock, serve):
    router = serve("--retry-answer-size", 0, workers=[mock(abort_after_tokens=5, chunk_bytes=2000)])
    answer = router.chat(max_tokens=12)
    assert answer.status == 200
    assert answer.json()["choices"][0]["finish_reason"] == "abort"


def test_an_answer_above_the_size_is_reset_not_completed(mock, serve):
    router = serve("--retry-answer-size", "4KiB", workers=[mock(abort_after_tokens=50, chunk_bytes=2000)])
    with wire.Connection(router.port) as connection:
        connection.request("POST", CHAT[0], CHAT[1] | {"max_tokens": 80})
        with pytest.raises(wire.Truncated):
            connection.read_answer()


def test_messages_end_in_their_own_shape(engine, serve):
    """The mock has no Messages API."""
    whole = {"type": "message", "content": [{"type": "text", "text": "half"}], "stop_reason": None}
    deltas = ['event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"half"}}\n\n',
              'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":null}}\n\n'
              'event: message_stop\ndata: {"type":"message_stop"}\n\n']

    def answer(request, connection):
        if json.loads(request.body).get("stream"):
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + deltas[0].encode())
            going_on.wait(20)
            connection.sendall(deltas[1].encode())
        else:
            body = json.dumps(whole).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

    worker = engine(answer)
    going_on = worker.released
    router = serve("--circuit-breaker-open", "10ms", workers=[worker])
    body = {"model": "mock-model", "max_tokens": 3, "messages": [{"role": "user", "content": "x"}]}
    refused = wire.ask(router.port, "POST", "/v1/messages", body)
    assert refused.status == 503
    assert (refused.json()["type"], refused.json()["error"]["type"]) == ("error", "overloaded_error")

    def streamed():
        with wire.Connection(router.port) as connection:
            connection.request("POST", "/v1/messages", body | {"stream": True})
            head = connection.read_head()
            if head.status != 200:
                return None  # the circuit breaker is still open
            pieces = connection.pieces(head)
            text = next(pieces)
            going_on.set()
            return (text + b"".join(pieces)).decode()

    text = eventually(streamed, "the worker is asked again")
    assert text.startswith(deltas[0])
    assert text.endswith("\n\n") and "message_stop" not in text
    event, data = text.rstrip("\n").split("\n")[-2:]
    assert event == "event: error"
    assert json.loads(data.removeprefix("data: "))["error"]["type"] == "overloaded_error"
