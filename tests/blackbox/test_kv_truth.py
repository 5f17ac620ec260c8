"""Running engines as judges. What they published goes through ZeroMQ into the router, and at each
request that they recorded the router says what they then found in their caches: exactly, always."""

import json

import pytest

from kv_capture import CacheModel, Capture, Message, Restart
from kv_engine import KvEngine, Stable, follow, join

# Sequential requests of each capture. All of them are judged.
JUDGED = {"vllm-0.32-bs32": 50, "vllm-0.32-duplicates": 13, "vllm-0.32-hybrid": 12,
          "vllm-0.32-dp2": 10, "sglang-0.5.23-ps16": 13}

# Who says where the events are, and whether they can be replayed.
SETTINGS = [
    ("vllm-0.32-bs32", "operator", True),
    ("vllm-0.32-bs32", "vllm", False),
    ("vllm-0.32-duplicates", "vllm", True),
    ("vllm-0.32-hybrid", "operator", False),
    ("vllm-0.32-hybrid", "vllm", True),
    ("vllm-0.32-dp2", "vllm", True),
    ("vllm-0.32-dp2", "operator", False),
    ("sglang-0.5.23-ps16", "sglang", True),
    ("sglang-0.5.23-ps16", "operator", False),
]


@pytest.fixture(scope="module")
def engines():
    """One for each of the settings; none has published anything yet."""
    started = {}
    for setting in SETTINGS:
        name, told_by, replay = setting
        capture = Capture(name)
        started[setting] = KvEngine(ranks=capture.ranks, topic=capture.topic, replay=replay,
                                    tells=None if told_by == "operator" else told_by)
        started[setting].capture = capture
    yield started
    for engine in started.values():
        engine.stop()


@pytest.fixture(scope="module")
def router(shared_world, engines):
    config = shared_world.folder / "fathom.yaml"
    entries = [engine.entry() if told_by == "operator" else {"url": engine.url}
               for (_, told_by, _), engine in engines.items()]
    config.write_text("workers:\n" + "".join(f"  - {json.dumps(entry)}\n" for entry in entries))
    # The captures have different block sizes, and are all of one model here.
    return shared_world.serve("--config", config, "--block-size-conflict", "mixed",
                              ready=len(entries))


class Judge:
    """Publishes a capture to a router, and asks it at each request."""

    def __init__(self, capture, engine, ranks):
        self.capture = capture
        self.engine = engine
        self.ranks = ranks
        self.judged = 0

    def run(self):
        timeline = iter(self.capture.timeline)
        for step in timeline:
            if isinstance(step, Message):
                self.publish(step.rank, step.payload)
            elif isinstance(step, Restart):
                self.restart()
            elif step.cleared_late:
                self.judge_between(step, next(timeline))
            elif step.sequential:
                self.judge(step)

    def publish(self, rank, payload):
        self.engine.ranks[rank].send(payload)

    def judge_between(self, call, message):
        """The engine was empty already and said so only now: after its word, before the stores."""
        assert message.clears and call.rank == message.rank, call.note
        clears, *rest = message.split()
        self.publish(message.rank, clears)
        self.judge(call)
        for payload in rest:
            self.publish(message.rank, payload)

    def judge(self, call):
        # Where it is not known which rank the engine chose, all of them would have found the same.
        for known in self.ranks if call.rank is None else [self.ranks[call.rank]]:
            if known.publisher.next:
                known.catch_up()
            found = known.lookup(call.tokens, call.lora, call.salt)
            assert found == call.cached, (call.note, known.rank, known.state())
        self.judged += 1

    def restart(self):
        """Another process is there, which has not said anything yet: its cache is empty."""
        for known in self.ranks:
            known.catch_up()
            assert known.state()["blocks"] > 0
            self.engine.replace(known.rank).wait_for_subscriber()
            known.wait_for(lambda state: state["blocks"] == 0, "the restart has been noticed")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: f"{s[0]}-{s[1]}-replay-{s[2]}")
def test_the_router_predicts_what_the_engine_then_found(router, engines, setting):
    engine = engines[setting]
    judge = Judge(engine.capture, engine, follow(router, engine))
    judge.run()
    print(f"{engine.capture.name}: {judge.judged} requests judged")
    assert judge.judged == JUDGED[engine.capture.name]


@pytest.mark.parametrize("name", JUDGED)
def test_a_router_that_joins_late_learns_all_of_it(router, stable, name):
    capture = Capture(name)
    first, *later = capture.lives()
    engine = stable.start(ranks=capture.ranks, topic=capture.topic)
    for publisher, messages in zip(engine.ranks, first):
        for message in messages:
            publisher.send(message.payload)
    ranks = join(router, engine)
    compare(capture, ranks, first)
    for life in later:
        for known in ranks:
            kept = [message.payload for message in life[known.rank]]
            engine.replace(known.rank, kept).wait_for_subscriber()
        compare(capture, ranks, life)


@pytest.fixture
def stable(router):
    stable = Stable(router)
    yield stable
    stable.end()


def compare(capture, ranks, life):
    """All prompts of the capture, and some that are longer or shorter, in the model and here."""
    hits = 0
    for known in ranks:
        known.catch_up()
        model = CacheModel(event for message in life[known.rank] for event in message.events())
        for tokens, salt in questions(capture):
            expected = model.depth(tokens, salt)
            assert known.lookup(tokens, salt=salt) == expected, (len(tokens), salt, known.state())
            hits += expected > 0
    assert hits > 0, "a comparison of nothing with nothing"


def questions(capture):
    seen = set()
    for call in capture.calls():
        for tokens in (call.tokens, call.tokens + [1], call.tokens[:len(call.tokens) // 2 + 1]):
            question = (tuple(tokens), call.salt)
            if question not in seen:
                seen.add(question)
                yield tokens, call.salt
