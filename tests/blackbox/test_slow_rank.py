"""What was learned of a rank that was slow: it ends with the engine's process."""

import random

import pytest

import wire
from wire import eventually

PROMPT_TOKENS = 2000  # of which each first token is a measure


def complete(router, session=None):
    body = {"model": "mock-model", "prompt": [random.randrange(1000) for _ in range(PROMPT_TOKENS)],
            "max_tokens": 1, "stream": True}
    headers = {"x-session-id": session} if session else {}
    answer = wire.ask(router.port, "POST", "/v1/completions", body, headers)
    assert answer.status == 200
    return answer.worker


def session_of(router, worker):
    names = (f"session-{i}" for i in range(1000))
    return next(name for name in names if complete(router, name) == router.worker_id(worker))


def slowness(router, worker):
    return router.metric("kv_router_rank_slowness", worker=router.worker_id(worker))


@pytest.mark.slow
def test_a_rank_that_was_slow_gets_requests_again_after_a_restart(mock, serve):
    slow, fast = mock(first_token_delay="200ms"), mock()
    router = serve("--router-mode", "kv", workers=[slow, fast])
    fast_session = session_of(router, fast)
    for _ in range(60):
        complete(router, fast_session)
    slow_session = session_of(router, slow)
    for _ in range(25):
        complete(router, slow_session)
    assert slowness(router, slow) > 2
    slow.kill()
    eventually(lambda: router.health()["workers_ready"] == 1, "its end is noticed")
    again = mock(port=slow.port)
    eventually(lambda: router.health()["workers_ready"] == 2, "it is back")
    assert slowness(router, again) == 1
    eventually(lambda: complete(router) == router.worker_id(again), "it gets requests")
