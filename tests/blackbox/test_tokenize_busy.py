"""Engines that tokenize late because they are busy: requests are not routed blindly for it."""

import pytest

import wire
from wire import eventually

# Busy engines are later than any request waits; idle ones are in time, however slow this machine is.
LATE = {"tokenize_delay": "8s", "token_interval": "50ms"}
ROUTER = ("--router-mode", "kv", "--tokenize-timeout", "2s")
REQUESTS = 30


def keep_busy(port):
    """Opens a long stream. Its connection ends it."""
    connection = wire.Connection(port)
    connection.request("POST", "/v1/completions", {"model": "mock-model", "prompt": [1, 2, 3], "stream": True,
                                                   "max_tokens": 100_000})
    head = connection.read_head()
    assert head.status == 200
    next(connection.events(head))
    return connection


def blind(router):
    return router.metric("kv_router_decisions_total", by="no_tokens")


def ask_each(router, count=REQUESTS):
    for i in range(count):
        messages = [{"role": "user", "content": f"question {i}: how deep is the sea?"}]
        assert router.chat(messages=messages, max_tokens=1).status == 200


@pytest.mark.parametrize("through_router", [True, False], ids=["by-this-router", "by-others"])
def test_questions_go_to_workers_that_are_idle(mock, serve, through_router):
    workers = [mock(**LATE) for _ in range(3)]
    router = serve(*ROUTER, workers=workers)
    if through_router:
        streams = [keep_busy(router.port) for _ in range(2)]
    else:
        streams = [keep_busy(worker.port) for worker in workers[:2]]
    eventually(lambda: sum(worker.stats()["in_flight"] for worker in workers) == 2, "two workers are busy")
    before = blind(router)
    ask_each(router)
    # What others send to the engines is noticed when the first answer is late.
    assert blind(router) - before <= (0 if through_router else 3)
    for stream in streams:
        stream.close()


@pytest.mark.slow
def test_a_long_prompt_is_waited_for_as_long_as_its_prefill_takes(mock, serve):
    """Every engine is busy, tokenizes late, and needs long for a prefill."""
    workers = [mock(first_token_delay="400ms", tokenize_delay="600ms", token_interval="50ms") for _ in range(2)]
    router = serve("--router-mode", "kv", workers=workers)
    for first in range(12):  # shows how long prefills take
        ids = {"model": "mock-model", "prompt": [first] * 2000, "max_tokens": 1, "stream": True}
        assert wire.ask(router.port, "POST", "/v1/completions", ids).status == 200
    streams = [keep_busy(worker.port) for worker in workers]
    for number in range(6):
        text = f"{number} is deeper than the sea and higher than the waves. " * 800
        assert wire.ask(router.port, "POST", "/v1/completions",
                        {"model": "mock-model", "prompt": text, "max_tokens": 1}).status == 200
    assert blind(router) == 0
    assert router.metric("kv_router_tokenized_total", source="engine") == 6
    for stream in streams:
        stream.close()


def test_a_conversation_with_a_known_beginning_is_not_routed_blindly(mock, serve):
    """All engines are busy, and later than a request waits."""
    workers = [mock(**LATE) for _ in range(2)]
    router = serve(*ROUTER, workers=workers)
    system = {"role": "system", "content": "You answer questions about boats and the sea. " * 20}

    def turn(text):
        return router.chat(messages=[system, {"role": "user", "content": text}], max_tokens=1)

    for text in ("How deep is a keel?", "Why does it float?"):
        assert turn(text).status == 200
    streams = [keep_busy(worker.port) for worker in workers]
    assert turn("Which is the fastest?").status == 200
    (decision, *_) = router.get("/debug/decisions").json()["decisions"]
    assert decision["tokens_from"] == "engine" and decision["known_tokens"] > 100
    assert blind(router) == 0
    for stream in streams:
        stream.close()
