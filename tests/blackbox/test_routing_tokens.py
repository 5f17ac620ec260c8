"""Where the tokens of a request come from, and that nobody waits for them in vain."""

import json
import threading

import pytest

import wire
from fake_engine import whole_answer
from wire import eventually

PATIENT = ("--tokenize-timeout", "60s")  # however slow this machine is
LONG = "the tide comes in and the tide goes out " * 20


class Tokenizer:
    """The POST side of a fake engine: tokenizes as it is told, and answers everything else."""

    def __init__(self, tokenize):
        self.tokenize = tokenize
        self.asked = []  # the bodies of the questions

    def __call__(self, request, connection):
        if request.target == "/tokenize":
            self.asked.append(request.body)
            self.tokenize(request, connection)
        else:
            connection.sendall(whole_answer('{"choices": []}'))


def bytes_as_tokens(request, connection):
    tokens = list(request.body)
    connection.sendall(whole_answer(json.dumps({"count": len(tokens), "tokens": tokens})))


def refuse(status):
    return lambda _, connection: connection.sendall(whole_answer("{}", status))


@pytest.fixture
def fathom(engine, serve):
    """A router before one engine that tokenizes so."""
    def start(tokenize, *args, timeout="60s", **options):
        tokenizer = Tokenizer(tokenize)
        router = serve("--router-mode", "kv", "--tokenize-timeout", timeout, *args,
                       workers=[engine(tokenizer, **options)])
        return router, tokenizer
    return start


def complete(router, prompt, **fields):
    body = {"model": "mock-model", "prompt": prompt, **fields}
    answer = wire.ask(router.port, "POST", "/v1/completions", body)
    assert answer.status == 200, answer.text()
    return answer


def tokenized(router, source):
    return router.metric("kv_router_tokenized_total", source=source)


def failures(router, reason):
    return router.metric("kv_router_tokenize_failures_total", reason=reason)


def test_a_prompt_given_as_ids_is_tokenized_by_nobody(fathom):
    router, tokenizer = fathom(bytes_as_tokens)
    for prompt in [[1, 2, 3], [[1, 2], [3]]]:
        complete(router, prompt)
    assert tokenizer.asked == []
    assert tokenized(router, "ids") == 2


def test_a_text_is_tokenized_by_the_engine_as_the_client_wrote_it(fathom):
    router, tokenizer = fathom(bytes_as_tokens)
    body = b'{"model":"mock-model","prompt":"\\u00e9 \\"x\\"","add_special_tokens": false}'
    assert wire.ask(router.port, "POST", "/v1/completions", body).status == 200
    assert tokenizer.asked == [
        b'{"model":"mock-model","prompt":"\\u00e9 \\"x\\"","add_special_tokens":false}']
    assert tokenized(router, "engine") == 1
    assert router.metric("kv_router_tokenize_seconds_count") == 1


def test_a_chat_is_tokenized_with_everything_that_its_template_sees(fathom):
    router, tokenizer = fathom(bytes_as_tokens)
    fields = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function"}],
              "chat_template_kwargs": {"enable_thinking": False}}
    assert router.chat(temperature=0, **fields).status == 200
    (asked,) = tokenizer.asked
    assert json.loads(asked) == {"model": "mock-model", **fields}


def test_the_same_question_is_asked_once(fathom):
    router, tokenizer = fathom(bytes_as_tokens)
    for _ in range(3):
        complete(router, LONG)
    assert len(tokenizer.asked) == 1
    assert (tokenized(router, "engine"), tokenized(router, "cache")) == (1, 2)
    assert router.metric("kv_router_token_cache_bytes") > 0


def test_without_a_cache_every_question_is_asked(fathom):
    router, tokenizer = fathom(bytes_as_tokens, "--tokenize-cache-bytes", 0)
    for _ in range(3):
        complete(router, LONG)
    assert len(tokenizer.asked) == 3
    assert router.metric("kv_router_token_cache_bytes") == 0


def test_a_slow_tokenizer_holds_no_request_up_and_its_answer_is_used_later(fathom):
    answer = threading.Event()

    def slow(request, connection):
        assert answer.wait(wire.PATIENCE)
        bytes_as_tokens(request, connection)

    router, tokenizer = fathom(slow, timeout="30ms")
    complete(router, LONG)
    assert failures(router, "timeout") == 1
    assert tokenized(router, "text") == 1
    answer.set()
    eventually(lambda: router.metric("kv_router_token_cache_bytes") > 0, "the answer has come")
    complete(router, LONG)
    assert tokenized(router, "cache") == 1
    assert len(tokenizer.asked) == 1


def test_an_earlier_turn_stands_in_where_the_tokenizer_is_slow(fathom):
    slow = threading.Event()
    over = threading.Event()

    def tokenize(request, connection):
        if slow.is_set():
            over.wait(wire.PATIENCE)
        bytes_as_tokens(request, connection)

    router, _ = fathom(tokenize, timeout="500ms")
    messages = [{"role": "user", "content": LONG}]

    def is_known():
        """Again, should this machine have been as slow as that tokenizer will be."""
        assert router.chat(messages=messages).status == 200
        return tokenized(router, "engine") + tokenized(router, "cache") > 0
    eventually(is_known, "the first turn is tokenized")
    before = failures(router, "timeout")
    slow.set()
    messages += [{"role": "assistant", "content": "so it does"}, {"role": "user", "content": "?"}]
    assert router.chat(messages=messages).status == 200
    over.set()
    assert tokenized(router, "partial") == 1
    assert failures(router, "timeout") == before + 1


def test_no_engine_is_asked_where_there_is_no_time(fathom):
    router, tokenizer = fathom(bytes_as_tokens, timeout="0ms")
    complete(router, LONG)
    complete(router, [1, 2])
    assert tokenizer.asked == []
    assert (tokenized(router, "text"), tokenized(router, "ids")) == (1, 1)


@pytest.mark.parametrize("status, reason", [("400 Bad Request", "refused"),
                                            ("500 Internal Server Error", "error"),
                                            ("404 Not Found", "unsupported")])
def test_a_request_is_served_although_it_could_not_be_tokenized(fathom, status, reason):
    router, _ = fathom(refuse(status))
    complete(router, LONG)
    assert failures(router, reason) == 1
    assert tokenized(router, "text") == 1


@pytest.mark.parametrize("answer", ["", "[]", '{"tokens": [1, -2]}', '{"tokens": [1], "count": 2}',
                                    '{"tokens": ["a"]}', '{"tokens": [1.5]}', "<html>"])
def test_an_answer_that_makes_no_sense_is_an_error(fathom, answer):
    router, _ = fathom(lambda _, connection: connection.sendall(whole_answer(answer)))
    complete(router, LONG)
    assert failures(router, "error") == 1


def test_it_is_said_once_that_no_worker_can_tokenize(mock, serve):
    router = serve("--router-mode", "kv", *PATIENT,
                   workers=[mock(engine="trtllm"), mock(engine="trtllm")])
    for i in range(5):
        assert router.chat(messages=[{"role": "user", "content": f"{i} {LONG}"}]).status == 200
    lines = [line for line in router.log_text().splitlines() if "can tokenize" in line]
    assert len(lines) == 1
    assert "WARN" in lines[0] and "token ids" in lines[0]
    assert failures(router, "unsupported") == 5


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_a_conversation_follows_the_cache_that_holds_it(mock, serve, name):
    workers = [mock(engine=name, profile="h200-llama-3.1-8b", speedup=1000) for _ in range(3)]
    router = serve("--router-mode", "kv", *PATIENT, "--kv-events-poll-interval", "20ms",
                   workers=workers)
    for conversation in range(4):
        messages = [{"role": "user", "content": f"{conversation}: {LONG}"}]
        first = router.chat(messages=messages, max_tokens=8)
        assert first.status == 200
        said = first.json()["choices"][0]["message"]["content"]
        messages += [{"role": "assistant", "content": said},
                     {"role": "user", "content": "and then?"}]

        def follows():
            answer = router.chat(messages=messages, max_tokens=1)
            assert answer.status == 200
            return (answer.worker == first.worker and
                    int(answer.header("x-fathom-cached-tokens")) > 0)
        eventually(follows, "the follow-up goes where the first turn was")
    assert tokenized(router, "none") == 0
