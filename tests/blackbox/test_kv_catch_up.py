"""A request that comes right after a worker has joined waits for the worker's replay of KV events, so
that its prefix is not prefilled again; but not for long, and not for later replays."""

import json
import time

import pytest

from choices import Asked, cached, complete
from fake_engine import whole_answer
from kv_engine import Known, KvEngine, batch, chain, prompt_of
from wire import eventually

# A replay that is held lasts until the test lets it go.
PATIENT = ("--kv-events-replay-timeout", "100s")


class ServingEngine(KvEngine):
    """Says where its events are, and answers every completion."""

    def __init__(self):
        super().__init__(tells="vllm")
        self.answer = self._complete

    @staticmethod
    def _complete(request, connection):
        choice = {"index": 0, "text": "a", "finish_reason": "stop"}
        connection.sendall(whole_answer(json.dumps(
            {"id": "x", "object": "text_completion", "model": "mock-model", "choices": [choice]})))

    @property
    def replayer(self):
        return self.publisher.replayer


@pytest.fixture
def engines():
    engines = [ServingEngine(), ServingEngine()]
    yield engines
    for engine in engines:
        engine.replayer.open.set()
        engine.stop()


def test_a_request_waits_until_a_worker_that_joined_has_replayed_its_events(world, engines):
    holder, other = engines
    holder.publisher.send(batch(chain(1, 2)), live=False)
    holder.replayer.open.clear()
    router = world.serve(*PATIENT, "--kv-events-replay-wait", "100s", workers=engines)
    eventually(lambda: holder.replayer.asked, "the replay is asked for")
    request = Asked(router, prompt_of(1, 3))
    time.sleep(0.3)  # enough for a request that does not wait
    assert not holder.requests and not other.requests
    entry, = [entry for entry in router.health()["workers"] if entry["url"] == holder.url]
    assert (entry["state"], entry["waits_for"]) == ("ready", "replay")
    assert router.metric("fathom_workers_waiting", **{"for": "replay"}) == 1
    assert router.get(f"/ready?worker={holder.url}").status == 503
    holder.replayer.open.set()
    answer = request.answer()
    assert router.get(f"/ready?worker={holder.url}").status == 200
    assert (answer.worker, cached(answer)) == (router.worker_id(holder), 8)
    assert router.metric("kv_router_replay_waits_total", ended="caught_up") == 1
    complete(router, prompt_of(1, 3))
    assert router.metric("kv_router_replay_waits_total") == 1, "it is over"


@pytest.mark.parametrize("wait", ["0s", "500ms"])
def test_a_request_waits_no_longer_than_it_is_allowed_to(world, engines, wait):
    holder, other = engines
    holder.publisher.send(batch(chain(1, 2)), live=False)
    holder.replayer.open.clear()
    router = world.serve(*PATIENT, "--kv-events-replay-wait", wait, workers=engines)
    eventually(lambda: holder.replayer.asked, "the replay is asked for")
    answer = complete(router, prompt_of(1, 3))  # while the replay is held
    assert cached(answer) == 0
    holder.replayer.open.set()
    known = Known(router, holder)
    eventually(lambda: known.lookup(prompt_of(1, 3)) == 8, "the replay is applied nevertheless")


def test_a_replay_that_repairs_a_gap_holds_up_no_request(world, engines):
    holder, _ = engines
    router = world.serve(*PATIENT, "--kv-events-replay-wait", "100s", workers=engines)
    known = Known(router, holder)
    holder.publisher.wait_for_subscriber()
    holder.publisher.publish(chain(1, 2))
    known.catch_up()
    holder.replayer.open.clear()
    asked = len(holder.replayer.asked)
    holder.publisher.send(batch(chain(2, 2)), live=False)
    holder.publisher.publish(chain(3, 2))
    eventually(lambda: len(holder.replayer.asked) > asked, "the gap is repaired")
    answer = complete(router, prompt_of(1, 3))  # while the replay is held
    assert (answer.worker, cached(answer)) == (router.worker_id(holder), 8)
    assert router.metric("kv_router_replay_waits_total") == 0
    holder.replayer.open.set()
    known.catch_up()
    assert known.held(1, 2, 3) == [1, 2, 3]
