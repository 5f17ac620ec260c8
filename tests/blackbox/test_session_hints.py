"""Hints about an agent's session: of equal ranks the one that served it last is chosen, and its prompt is believed
to be cached there while events are late. A hint never beats a cache or load."""

import pytest

import wire
from choices import QUICK, Asked, complete, decision_of, explain, follow, ids, seed, send, wait_until_idle
from conftest import run_fathom
from wire import eventually

SESSION = "6e63bd4c-secret-session"
# As Claude Code writes it.
CLAUDE_USER = f"user_0f_account_1a_session_{SESSION}"
# Each hint by itself: headers, members.
HINTS = {
    "x-claude-code-session-id": ({"X-Claude-Code-Session-Id": SESSION}, {}),
    "thread-id": ({"Thread-Id": SESSION}, {}),
    "x-dynamo-session-id": ({"x-dynamo-session-id": SESSION}, {}),
    "prompt_cache_key": ({}, {"prompt_cache_key": SESSION}),
    "metadata.user_id": ({}, {"metadata": {"user_id": CLAUDE_USER}}),
    "safety_identifier": ({}, {"safety_identifier": SESSION}),
    "user": ({}, {"user": SESSION}),
}
USERS = {"safety_identifier", "user"}


@pytest.fixture
def fleet(world):
    def start(*options, workers=4, **faults):
        engines = [world.mock(**QUICK, **faults) for _ in range(workers)]
        router = world.serve(*options, workers=engines)
        follow(router, workers)
        return router, engines
    return start


def label_of(kind):
    return kind.replace("-", "_").replace(".", "_")


def hints_counted(router, result):
    return sum(value for (name, labels), value in router.metrics().items()
               if name == "kv_router_session_hints_total" and dict(labels)["result"] == result)


# --- ties


@pytest.mark.parametrize("kind", HINTS)
def test_a_session_stays_where_all_ranks_are_equal(fleet, kind):
    router, _ = fleet()
    headers, fields = HINTS[kind]
    # Prompts that have nothing in common: no cache can keep them together.
    answers = [complete(router, ids(i), headers, **fields) for i in range(12)]
    assert len({a.worker for a in answers}) == 1
    hint = decision_of(router, answers[-1])["hint"]
    assert hint["kind"] == kind
    assert hint["worker"] == int(answers[-1].worker)
    assert hint["believed_tokens"] == 0
    assert router.metric("kv_router_session_hints_total", kind=label_of(kind), result="unknown") == 1
    assert hints_counted(router, "decided") + hints_counted(router, "agreed") == 11
    assert hints_counted(router, "decided") > 0
    assert SESSION not in router.log_text(), "values of hints are not logged"


def test_requests_without_a_hint_are_spread_and_have_none(fleet):
    router, _ = fleet()
    answers = [complete(router, ids(i)) for i in range(24)]
    assert len({a.worker for a in answers}) > 1
    assert decision_of(router, answers[-1])["hint"] is None
    assert all(value == 0 for (name, _), value in router.metrics().items()
               if name == "kv_router_session_hints_total")


def test_hints_can_be_turned_off(fleet):
    router, _ = fleet("--session-hints", "none")
    answers = [complete(router, ids(i), {"thread-id": SESSION}, user=SESSION) for i in range(24)]
    assert len({a.worker for a in answers}) > 1


def test_the_first_of_the_order_counts(fleet):
    router, _ = fleet("--session-hints", "user,thread-id")
    answers = [complete(router, ids(i), {"thread-id": f"other-{i}"}, user=SESSION) for i in range(12)]
    assert len({a.worker for a in answers}) == 1
    assert decision_of(router, answers[-1])["hint"]["kind"] == "user"
    spread = [complete(router, ids(100 + i), user=f"other-{i}", prompt_cache_key=SESSION) for i in range(24)]
    assert len({a.worker for a in spread}) > 1, "prompt_cache_key is not in the list"


def test_sessions_kinds_and_models_are_apart(fleet):
    router, _ = fleet()
    last = [decision_of(router, complete(router, ids(i), headers, **fields))
            for i, (headers, fields) in enumerate(HINTS.values())]
    assert [d["hint"] for d in last] == [None] * len(last), "one value, but other kinds"


def test_agents_of_one_claude_code_session_are_apart(fleet):
    router, _ = fleet()
    session = {"x-claude-code-session-id": SESSION}
    complete(router, ids(1), session)
    answer = complete(router, ids(2), {**session, "x-claude-code-agent-id": "agent-1"})
    assert decision_of(router, answer)["hint"] is None


def test_an_unread_chat_follows_its_hint(world):
    engines = [world.mock(engine="trtllm") for _ in range(4)]
    router = world.serve("--kv-events", "off", workers=engines)
    answers = []
    for _ in range(12):
        wait_until_idle(router)  # a hint decides among workers with the same load
        answers.append(router.chat({"thread-id": SESSION}, max_tokens=1))
    assert {a.status for a in answers} == {200}
    assert len({a.worker for a in answers}) == 1
    assert len({router.chat(max_tokens=1).worker for _ in range(24)}) > 1


def test_a_request_without_a_prompt_follows_its_hint(fleet):
    router, _ = fleet()

    def embed(i, **fields):
        wait_until_idle(router)  # a hint decides among workers with the same load
        body = {"model": "mock-model", "input": f"text {i}", **fields}
        return wire.ask(router.port, "POST", "/v1/embeddings", body).worker
    assert len({embed(i, user=SESSION) for i in range(12)}) == 1
    assert len({embed(i) for i in range(40)}) > 1


# --- events that are late


@pytest.mark.parametrize("kind", HINTS)
def test_a_session_is_believed_while_its_events_are_late(fleet, kind):
    # Beliefs of the router's own end at once.
    router, _ = fleet("--router-belief-ttl", "1ms", kv_delay="60s")
    headers, fields = HINTS[kind]
    first = complete(router, ids(1, blocks=64), headers, **fields)
    turn = ids(1, blocks=64) + ids(2)
    eventually(lambda: explain(router, turn)["believed_tokens"] == 0, "the router's own belief has ended")
    second = complete(router, turn, headers, **fields)
    assert second.worker == first.worker
    decision = decision_of(router, second)
    assert decision["cached_tokens"] == 0, "beliefs are not reported as cached"
    if kind in USERS:
        assert decision["hint"]["believed_tokens"] == 0, "a user is no session"
    else:
        assert decision["hint"]["believed_tokens"] == 1024 == decision["believed_tokens"]
    third = complete(router, ids(3, blocks=64), headers, **fields)
    assert decision_of(router, third)["hint"]["believed_tokens"] == 0, "another prompt"


# --- what is stronger


def test_a_hint_does_not_beat_a_cache(fleet):
    router, engines = fleet(workers=3)
    first = complete(router, ids(1), {"thread-id": SESSION})
    other = next(e for e in engines if router.worker_id(e) != first.worker)
    seed(router, other, ids(2))
    second = complete(router, ids(2) + ids(3), {"thread-id": SESSION})
    assert second.worker == router.worker_id(other)
    hint = decision_of(router, second)["hint"]
    assert (hint["worker"], hint["decided"]) == (int(first.worker), False)
    assert router.metric("kv_router_session_hints_total", kind="thread_id", result="outweighed") == 1


def test_a_hint_that_everybody_sends_does_not_draw_all_load(world):
    """As a gateway in front does that has one user."""
    slow = {**QUICK, "speedup": 1}
    engines = [world.mock(**slow) for _ in range(4)]
    router = world.serve("--router-queue-threshold", "0", workers=engines)
    follow(router, 4)
    running, workers = [], []
    for i in range(40):
        running.append(Asked(router, ids(i), max_tokens=2000, stream=True, user="everybody"))
        # An answer that has begun is what is remembered.
        workers.append(running[-1].head().header("x-fathom-worker"))
    counts = [workers.count(router.worker_id(e)) for e in engines]
    for asked in running:
        asked.leave()
    assert min(counts) >= 5, counts


def test_x_session_id_still_binds(fleet):
    router, engines = fleet(workers=3)
    bound = complete(router, ids(1), {"X-Session-ID": "s", "thread-id": SESSION})
    # The hint's session goes elsewhere, because of a cache.
    other = next(e for e in engines if router.worker_id(e) != bound.worker)
    seed(router, other, ids(2))
    assert complete(router, ids(2) + ids(3), {"thread-id": SESSION}).worker == router.worker_id(other)
    last = complete(router, ids(4), {"X-Session-ID": "s", "thread-id": SESSION})
    assert last.worker == bound.worker
    assert decision_of(router, last)["narrowed_by"] == "session"


def test_a_session_whose_worker_is_gone_goes_elsewhere(fleet):
    router, engines = fleet(workers=3)
    first = complete(router, ids(1), {"thread-id": SESSION})
    next(e for e in engines if router.worker_id(e) == first.worker).kill()
    eventually(lambda: send(router, ids(2), {"thread-id": SESSION}).status == 200, "another worker answers")
    answers = [complete(router, ids(3 + i), {"thread-id": SESSION}) for i in range(8)]
    assert len({a.worker for a in answers}) == 1
    assert answers[0].worker != first.worker


def test_an_answer_that_failed_is_not_remembered(fleet):
    router, _ = fleet()
    refused = send(router, ids(1), {"thread-id": SESSION}, max_tokens=-5)
    assert refused.status >= 400
    assert decision_of(router, complete(router, ids(2), {"thread-id": SESSION}))["hint"] is None


# --- the option


def test_an_unknown_hint_is_an_error_with_the_nearest_name():
    ended = run_fathom("serve", "--session-hints", "user,thread_id", "--worker-urls", "http://127.0.0.1:1")
    assert ended.returncode == 78
    assert "'thread_id' is not a session hint; did you mean 'thread-id'?" in ended.stderr
