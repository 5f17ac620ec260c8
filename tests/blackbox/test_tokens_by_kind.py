"""An engine that prepares one kind of chat in its own way: that kind is named and doubted, all others keep their
cache-aware routing."""

import time

import pytest

from choices import cached, found
from model_fleet import Conversation, engine, holder, router_of
from tokenizers import write_model
from trust import doubted, rank_of
from wire import eventually

# Only with this tool, which no probe prompt has: the difference shows in events alone.
TEMPLATE = ("{% if tools and tools[0].function.name == 'fathometer' %}TOOLS [SECRET] {{ tools | tojson }} END{% endif %}"
            "{% for message in messages %}"
            "[{{ message.role }}] {{ message.content }}\n{% endfor %}[assistant] ")
TOOLS = [{"type": "function", "function": {"name": "fathometer", "description": "Sounds the depth", "parameters": {}}}]
SYSTEM = "You are the pilot of a harbor. " + "Say how deep the water is. " * 12


@pytest.fixture(scope="module")
def harbor(shared_world, tmp_path_factory):
    """Two engines that write tools in other words than the router's files do."""
    folder = tmp_path_factory.mktemp("models")
    ours = write_model(folder / "ours", template=TEMPLATE.replace("[SECRET]", "are these:"))
    theirs = write_model(folder / "theirs", template=TEMPLATE.replace("[SECRET]", "at hand:"))
    workers = [engine(shared_world, "vllm", None, model_path=theirs) for _ in range(2)]
    return router_of(shared_world, workers, "--model-path", ours), workers


@pytest.mark.slow
def test_a_kind_of_prompt_whose_tokens_differ_costs_the_others_nothing(harbor):
    router, workers = harbor
    talks = [Conversation(router, workers, f"Harbor {number}. " + SYSTEM) for number in range(2)]
    for talk, worker in zip(talks, workers):
        talk.ask("Who is there?", of=worker)
        # Through the router, so that both ranks show that plain chats agree.
        assert holder(workers, router, talk.ask("Still there?")) is worker

    def all_doubted():
        return all(doubted(router, worker, "tokens_differ")() for worker in workers)

    # Alone on their ranks, in turn; each is judged ten seconds after its first byte.
    for number in range(200):
        messages = [{"role": "user", "content": f"Sounding {number}: how deep is it at the buoy?"}]
        answer = router.chat(messages=messages, tools=TOOLS, max_tokens=1)
        assert answer.status == 200, answer.text()
        time.sleep(0.2)
        if all_doubted():
            break
    eventually(all_doubted, "the difference is named on both ranks")
    for talk, worker in zip(talks, workers):
        rank = rank_of(router, worker)
        assert "only chats with tools differ" in rank["evidence"] and "other prompts agree" in rank["evidence"]
        assert "for chats with tools: compare `fathom tokenize`" in rank["fix"]
        assert rank["credit"]["plain"] == 1
        for question in ("And at the reef?", "And at low tide?"):
            answer = talk.ask(question)
            assert holder(workers, router, answer) is worker
            assert cached(answer) == found(answer) > 0
    assert "at the buoy" not in router.log_text()
