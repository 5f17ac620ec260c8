"""Every fault that the router has to name, in the mock that has it: through the binary, with plain
clients and independent decoders."""

import json
import re

import pytest

import wire
from conftest import run_fathom
from test_mock_events import Subscriber, local, sources
from wire import eventually

BLOCK = 4
PROMPT = list(range(1, 22))  # five blocks and a token
TEXT = "A text of some length, so that it has a few blocks of four tokens each."


@pytest.fixture
def simulated(mock):
    def start(**options):
        return mock(**{"profile": "h200-llama-3.1-8b", "speedup": 1000, "block_size": BLOCK,
                       **options})
    return start


def ask(worker, prompt, port=None, **fields):
    body = {"model": "mock-model", "prompt": prompt, "max_tokens": 2, **fields}
    answer = wire.ask(port or worker.port, "POST", "/v1/completions", body)
    assert answer.status == 200, answer.text()
    return answer


def cached(worker, prompt, **fields):
    usage = ask(worker, prompt, **fields).json()["usage"]
    return usage["prompt_tokens_details"]["cached_tokens"]


def events_of(answer):
    lines = answer.text().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def change(worker, **faults):
    answer = wire.ask(worker.port, "POST", "/mock/faults", faults)
    assert answer.status == 200, answer.text()
    now = answer.json()
    assert {name: now[name] for name in faults} == faults
    return now


def subscribe(worker):
    return Subscriber(local(sources(worker)["0"]["endpoint"]))


def told(subscriber):
    """All events until it is quiet, as maps."""
    return [event for _, _, payload in subscriber.messages() for event in payload[1]]


# --- usage

def test_usage_tells_of_the_cache_unless_it_is_told_not_to(simulated):
    worker = simulated(no_cached_tokens_report=True)
    assert ask(worker, PROMPT).json()["usage"]["prompt_tokens_details"] is None
    last = events_of(ask(worker, PROMPT, stream=True, stream_options={"include_usage": True}))[-1]
    assert last["choices"] == [] and last["usage"]["prompt_tokens"] == len(PROMPT)
    assert "prompt_tokens_details" not in last["usage"]
    change(worker, cached_tokens_report=True)
    assert cached(worker, PROMPT) == 20


@pytest.mark.parametrize("profile", ["h200-llama-3.1-8b", "paced"])
def test_streams_have_a_usage_for_those_who_ask_and_when_it_is_forced(profile, simulated):
    worker = simulated(profile=profile)
    assert not any("usage" in event for event in events_of(ask(worker, PROMPT, stream=True)))
    change(worker, force_usage=True)
    *others, last = events_of(ask(worker, PROMPT, stream=True))
    assert last["choices"] == [] and last["usage"]["completion_tokens"] == 2
    assert not any("usage" in event for event in others)


@pytest.mark.parametrize("profile", ["h200-llama-3.1-8b", "paced"])
def test_the_usage_can_stand_beside_the_last_choice(profile, simulated):
    worker = simulated(profile=profile, usage_with_choices=True)
    assert not any("usage" in event for event in events_of(ask(worker, PROMPT, stream=True)))
    *others, last = events_of(ask(worker, PROMPT, stream=True,
                                  stream_options={"include_usage": True}))
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["usage"]["prompt_tokens"] == len(PROMPT)
    assert all(event["choices"] and "usage" not in event for event in others)


# --- honest quirks

def test_prompt_logprobs_skip_the_cache_and_store_copies(simulated):
    worker = simulated()
    subscriber = subscribe(worker)
    ask(worker, PROMPT)
    first = told(subscriber)
    assert cached(worker, PROMPT, prompt_logprobs=1) == 0
    again = told(subscriber)
    assert [event["block_hashes"] for event in again] == [event["block_hashes"] for event in first]
    assert cached(worker, PROMPT) == 20


def test_copies_report_their_own_hit_and_several_prompts_the_sum(simulated):
    worker = simulated()
    assert cached(worker, PROMPT, n=2) == 20
    assert cached(worker, [PROMPT, PROMPT[:9]]) == 28


def test_a_preempted_request_reports_nothing_cached(simulated):
    worker = simulated(num_blocks=20)
    ask(worker, PROMPT[:9])
    both = ask(worker, [PROMPT[:9], [*PROMPT[:8], 99]], max_tokens=50).json()
    assert worker.stats()["preemptions"] > 0
    assert worker.metric("vllm:num_preemptions_total") == worker.stats()["preemptions"]
    assert both["usage"]["prompt_tokens_details"]["cached_tokens"] == 8, "of the other one"


# --- prefix caching

def says_caching(worker, engine):
    """None, True or False: what its page says."""
    if engine == "sglang":
        off = worker.get("/server_info").json().get("disable_radix_cache")
        return None if off is None else not off
    path = "/metrics" if engine == "vllm" else "/prometheus/metrics"
    found = re.search(r'(?:enable_prefix_caching|enable_block_reuse)="(True|False)"',
                      worker.get(path).text())
    return found and found.group(1) == "True"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_an_engine_without_prefix_caching_finds_nothing_and_says_so(engine, simulated):
    worker = simulated(engine=engine, no_prefix_caching=True)
    assert says_caching(worker, engine) is False
    assert [cached(worker, PROMPT) for _ in range(3)] == [0, 0, 0]
    change(worker, prefix_caching=True)
    assert says_caching(worker, engine) is True
    assert [cached(worker, PROMPT) for _ in range(2)] == [0, 20]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_its_pages_can_keep_it_to_themselves(engine, simulated):
    worker = simulated(engine=engine, no_prefix_caching=True, prefix_caching_report="none")
    assert says_caching(worker, engine) is None
    assert [cached(worker, PROMPT) for _ in range(2)] == [0, 0]


def test_without_prefix_caching_there_are_no_events_until_it_is_on(simulated):
    worker = simulated(no_prefix_caching=True)
    subscriber = subscribe(worker)
    ask(worker, PROMPT)
    assert told(subscriber) == []
    change(worker, prefix_caching=True)
    ask(worker, PROMPT)
    assert [event["type"] for event in told(subscriber)] == ["BlockStored"]


# --- tokens

@pytest.mark.parametrize("fault,spoil", [
    ("bos", lambda ids: [1, *ids]),
    ("template", lambda ids: [*ids[:8], 3, 1, 2, *ids[8:]]),
    ("vocabulary", lambda ids: [(i * 7 + 13) % 32000 for i in ids]),
])
def test_the_engine_computes_with_other_tokens_than_it_says(fault, spoil, simulated):
    worker = simulated(prompt_fault=fault)
    subscriber = subscribe(worker)
    said = wire.ask(worker.port, "POST", "/tokenize", {"prompt": TEXT}).json()["tokens"]
    used = spoil(said)
    answer = ask(worker, TEXT, return_token_ids=True, max_tokens=1).json()
    assert answer["choices"][0]["prompt_token_ids"] == used != said
    stored = [token for event in told(subscriber) for token in event["token_ids"]]
    assert stored == used[:len(used) // BLOCK * BLOCK]
    assert cached(worker, TEXT) == (len(used) - 1) // BLOCK * BLOCK, "it is the same every time"
    ids = ask(worker, PROMPT, return_token_ids=True).json()["choices"][0]["prompt_token_ids"]
    assert ids == PROMPT, "ids are taken as they come"
    change(worker, prompt_fault="none")
    assert ask(worker, TEXT, return_token_ids=True).json()["choices"][0]["prompt_token_ids"] == said


# --- events

def test_removals_can_be_kept_secret(simulated):
    worker = simulated(num_blocks=9, kv_events_fault="no-removals")
    subscriber = subscribe(worker)
    prompts = [list(range(first, first + 21)) for first in (1000, 2000, 3000)]
    for prompt in prompts:
        assert cached(worker, prompt) == 0
    assert {event["type"] for event in told(subscriber)} == {"BlockStored"}
    assert cached(worker, prompts[0]) == 0, "it is gone all the same"
    change(worker, kv_events_fault="none")
    for prompt in prompts:
        ask(worker, prompt)
    assert "BlockRemoved" in {event["type"] for event in told(subscriber)}


@pytest.mark.parametrize("fault", ["none", "hide-salt", "hide-lora"])
def test_events_can_hide_what_keeps_prompts_apart(fault, simulated):
    worker = simulated(kv_events_fault=fault, lora="ada")
    subscriber = subscribe(worker)
    assert cached(worker, PROMPT) == 0
    assert cached(worker, PROMPT, cache_salt="tenant") == 0
    assert cached(worker, PROMPT, model="ada") == 0
    assert cached(worker, PROMPT, cache_salt="tenant") == 20
    firsts = [event for event in told(subscriber) if event["parent_block_hash"] is None]
    assert len({tuple(event["block_hashes"]) for event in firsts}) == 3
    salts = [event["extra_keys"][0] for event in firsts]
    loras = [event["lora_name"] for event in firsts]
    assert (["tenant"] in salts) == (fault != "hide-salt")
    assert ("ada" in loras) == (fault != "hide-lora")
    if fault == "hide-lora":
        assert all(event["lora_id"] is None for event in firsts)


def test_adapters_are_listed_under_their_model(simulated):
    worker = simulated(lora="ada,bob")
    models = {model["id"]: model["parent"] for model in worker.get("/v1/models").json()["data"]}
    assert models == {"mock-model": None, "ada": "mock-model", "bob": "mock-model"}


def test_a_silent_or_late_publisher_can_be_mended(simulated):
    worker = simulated(kv_silent=True)
    subscriber = subscribe(worker)
    ask(worker, PROMPT)
    assert told(subscriber) == []
    change(worker, kv_silent=False, kv_delay=600)
    ask(worker, [token + 100 for token in PROMPT])
    assert told(subscriber) == []
    change(worker, kv_delay=0)
    assert [event["type"] for event in told(subscriber)] == ["BlockStored"]


# --- what is computed again

def test_engines_of_one_process_count_what_one_computes_though_another_had_it(simulated):
    worker = simulated(instances=3)
    def listening():
        found = re.findall(r"Mock engine listening.*?127\.0\.0\.1:(\d+)", worker.log_text())
        return found if len(found) == 3 else None
    ports = [int(port) for port in eventually(listening, "three engines")]
    assert len(set(ports)) == 3
    def recomputed():
        return [wire.get(port, "/mock/stats").json()["recomputed_prompt_tokens"] for port in ports]
    for _ in range(2):
        ask(worker, PROMPT, port=ports[0])
    assert recomputed() == [0, 0, 0]
    ask(worker, PROMPT[:13], port=ports[1])
    assert recomputed() == [0, 12, 0]
    ask(worker, PROMPT, port=ports[2])
    assert recomputed() == [0, 12, 20]
    assert wire.get(ports[2], "/mock/stats").json()["ledger_full"] is False
    # Faults belong to the engine that is asked.
    assert wire.ask(ports[1], "POST", "/mock/faults", {"busy": True}).status == 200
    assert [wire.get(port, "/mock/faults").json()["busy"] for port in ports] == [False, True, False]


@pytest.mark.parametrize("engine,path", [("vllm", "/metrics"), ("sglang", "/metrics"),
                                         ("trtllm", "/prometheus/metrics")])
def test_metrics_count_prompts_hits_and_recomputation_in_the_same_words(engine, path, simulated):
    worker = simulated(engine=engine, num_blocks=9)
    hits = [cached(worker, prompt) for prompt in
            (PROMPT, PROMPT, [token + 100 for token in PROMPT], PROMPT)]
    assert hits[:3] == [0, 20, 0] and hits[3] < 20
    text = worker.get(path).text()
    def count(name):
        return int(re.search(rf'^mock:{name}_total{{model_name="mock-model",rank="0"}} (\d+)$', text,
                             re.MULTILINE).group(1))
    assert count("prompt_tokens") == 84
    assert count("cached_prompt_tokens") == sum(hits)
    assert count("recomputed_prompt_tokens") == 20 - hits[3]


# --- the page and the options

@pytest.mark.parametrize("faults,message", [
    ({"gremlins": 1}, "gremlins: no such fault; known faults: prompt_fault, "),
    ({"prompt_fault": "eos"}, "prompt_fault must be one of none, bos, template, vocabulary"),
    ({"kv_delay": "1s"}, "kv_delay must be a number of seconds up to an hour"),
    ([], "the faults must be a JSON object"),
])
def test_the_page_says_what_is_wrong_and_changes_nothing(faults, message, simulated):
    worker = simulated()
    before = worker.get("/mock/faults").json()
    answer = wire.ask(worker.port, "POST", "/mock/faults", faults)
    assert answer.status == 400
    assert message in answer.error["message"]
    assert worker.get("/mock/faults").json() == before


@pytest.mark.parametrize("flag", ["--prompt-fault=eos", "--kv-events-fault=lies",
                                  "--prefix-caching-report=maybe", "--instances=0"])
def test_the_options_are_checked(flag):
    assert run_fathom("mock", flag).returncode == 78


def test_help_shows_them():
    shown = run_fathom("mock", "--help").stdout
    for name in ["cached-tokens-report", "force-usage", "usage-with-choices", "lora", "instances",
                 "prefix-caching", "prefix-caching-report", "prompt-fault", "kv-events-fault"]:
        assert re.search(rf"--(\[no-\])?{name}\b", shown), name
