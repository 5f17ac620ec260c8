"""The simulated engine from outside: what a router, or a person with curl, can see of it."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from conftest import parse_metrics
from wire import eventually

BLOCK = 16


@pytest.fixture
def simulated(mock):
    def start(**options):
        return mock(**{"profile": "h200-llama-3.1-8b", "speedup": 50, **options})
    return start


def post(process, path, body=None, headers=()):
    return wire.ask(process.port, "POST", path, {} if body is None else body, headers)


def tokenize(process, **body):
    return post(process, "/tokenize", body).json()["tokens"]


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def common_prefix(a, b):
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    return same


class Conversation:
    """Asks turn after turn, and remembers the tokens that the engine has computed."""

    def __init__(self, process, worker=None):
        self.process = process
        self.worker = worker or process  # who tokenizes
        self.messages = []
        self.computed = []

    def ask(self, question, **fields):
        self.messages.append({"role": "user", "content": question})
        answer = post(self.process, "/v1/chat/completions",
                      {"model": "mock-model", "messages": self.messages, "max_tokens": 45,
                       "return_token_ids": True, **fields}).json()
        choice = answer["choices"][0]
        self.messages.append({"role": "assistant", "content": choice["message"]["content"]})
        prompt = answer["prompt_token_ids"]
        held = common_prefix(prompt, self.computed) // BLOCK * BLOCK
        assert cached(answer) == min(held, (len(prompt) - 1) // BLOCK * BLOCK)
        # The last token is said, but nothing has been computed with it.
        self.computed = prompt + choice["token_ids"][:-1]
        return answer


# --- the cache


def test_every_turn_of_a_conversation_finds_the_turns_before_it(simulated):
    worker = simulated()
    conversation = Conversation(worker)
    hits = [cached(conversation.ask(f"And what is question number {i}?")) for i in range(6)]
    assert hits[0] == 0
    assert all(later > earlier for earlier, later in zip(hits, hits[1:]))


def test_the_cache_is_hit_behind_the_router(simulated, serve):
    worker = simulated()
    conversation = Conversation(serve(workers=[worker]), worker)
    for i in range(4):
        conversation.ask(f"Question {i}, which is not short?")
    assert conversation.computed[:30] == tokenize(worker, messages=conversation.messages)[:30]


def test_a_reset_forgets_the_cache(simulated):
    worker = simulated()
    body = {"prompt": list(range(100)), "max_tokens": 2}
    ask = lambda: cached(post(worker, "/v1/completions", body).json())
    assert [ask(), ask()] == [0, 96]
    assert post(worker, "/reset_prefix_cache").json() == {"success": True}
    assert [ask(), ask()] == [0, 96]


def test_a_reset_fails_while_the_cache_is_in_use(simulated):
    worker = simulated(speedup=0.05)
    stream = wire.Stream(worker.port, max_tokens=1000)
    stream.next()
    assert post(worker, "/reset_prefix_cache").json() == {"success": False}
    stream.close()
    eventually(lambda: post(worker, "/reset_prefix_cache").json()["success"], "it was cancelled")


def test_what_does_not_fit_is_preempted_and_still_answered(simulated):
    worker = simulated(num_blocks=21, max_num_seqs=8)  # 320 tokens
    ask = lambda i: post(worker, "/v1/completions",
                         {"prompt": [i] * 60, "max_tokens": 60}).json()["usage"]["completion_tokens"]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [60] * 6
    assert worker.metric("vllm:num_preemptions_total") > 0


# --- answers


def test_answers_are_the_same_again_and_tell_who_speaks(simulated):
    worker = simulated(name="alice")
    first, second = [worker.chat(max_tokens=20).json() for _ in range(2)]
    text = first["choices"][0]["message"]["content"]
    assert text.startswith("alice/0: ")
    assert text == second["choices"][0]["message"]["content"]
    stream = wire.Stream(worker.port, max_tokens=20)
    assert wire.texts(stream.rest()) == text


def test_usage_comes_at_the_end_of_a_stream(simulated):
    stream = wire.Stream(simulated().port, max_tokens=5, stream_options={"include_usage": True})
    *pieces, usage, done = stream.rest()
    assert done == "[DONE]"
    assert json.loads(usage)["usage"]["completion_tokens"] == 5
    assert json.loads(usage)["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert all("usage" not in json.loads(piece) for piece in pieces)


def test_several_choices_share_a_stream(simulated):
    stream = wire.Stream(simulated().port, max_tokens=5, n=3)
    finished = {}
    for event in stream.rest()[:-1]:
        choice = json.loads(event)["choices"][0]
        if choice["finish_reason"]:
            finished[choice["index"]] = choice["finish_reason"]
    assert finished == {0: "length", 1: "length", 2: "length"}


def test_a_stop_string_is_not_said(simulated):
    worker = simulated(name="alice")
    stream = wire.Stream(worker.port, max_tokens=500, stop=["/0"])
    events = stream.rest()
    assert wire.texts(events) == "alice"
    last = json.loads(events[-2])["choices"][0]
    assert (last["finish_reason"], last["stop_reason"]) == ("stop", "/0")


def test_steps_take_their_time(simulated):
    worker = simulated(speedup=1)
    started = time.monotonic()
    worker.chat(max_tokens=40)
    assert time.monotonic() - started > 0.1  # 40 steps of a few milliseconds each


# --- tokens


@pytest.mark.parametrize("text", ["", "hello there", " a\n\nb  c ", "naïve 水 \U0001f419",
                                  "<|user|>x<|end|>", "x" * 1000])
def test_tokens_become_the_text_again(shared_world, text):
    worker = shared_world.processes[0] if shared_world.processes else shared_world.mock(
        profile="h200-llama-3.1-8b")
    tokens = tokenize(worker, prompt=text)
    assert post(worker, "/detokenize", {"tokens": tokens}).json() == {"prompt": text}


def test_a_chat_has_the_tokens_that_tokenize_says(simulated):
    worker = simulated()
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi!"}]
    answer = worker.chat(messages=messages, max_tokens=3, return_token_ids=True).json()
    assert answer["prompt_token_ids"] == tokenize(worker, messages=messages)
    assert answer["usage"]["prompt_tokens"] == len(answer["prompt_token_ids"])


def test_a_prompt_that_cannot_fit_is_refused_in_vllms_words(simulated):
    worker = simulated(num_blocks=17)
    assert worker.get("/v1/models").json()["data"][0]["max_model_len"] == 256
    answer = post(worker, "/v1/completions", {"prompt": [7] * 300, "max_tokens": 1})
    assert answer.status == 400
    assert answer.error["param"] == "input_tokens"
    assert answer.error["message"] == (
        "This model's maximum context length is 256 tokens. However, your prompt contains 300 input "
        "tokens, which exceeds this limit even without any output tokens. Please reduce the length "
        "of the input prompt. (parameter=input_tokens, value=300)")


# --- ranks


def test_ranks_have_caches_of_their_own(simulated):
    worker = simulated(dp_size=2, name="w")

    def ask(rank):
        answer = post(worker, "/v1/completions", {"prompt": [5] * 100, "max_tokens": 4},
                      {"X-data-parallel-rank": rank}).json()
        assert answer["choices"][0]["text"].startswith(f" w/{rank}")
        return cached(answer)

    assert [ask(0), ask(1), ask(0), ask(1)] == [0, 0, 96, 96]
    refused = post(worker, "/v1/completions", {"prompt": [5]}, {"X-data-parallel-rank": 2})
    assert refused.status == 400
    assert refused.error["message"] == "data_parallel_rank 2 is out of range [0, 2)."


def test_requests_without_a_rank_are_spread(simulated):
    worker = simulated(dp_size=2, speedup=0.2)
    streams = [wire.Stream(worker.port, max_tokens=200) for _ in range(4)]
    speakers = [wire.texts([stream.next() for _ in range(6)]) for stream in streams]
    assert sorted(speaker.split("/")[1][0] for speaker in speakers) == ["0", "0", "1", "1"]
    for stream in streams:
        stream.close()


# --- faces


def test_vllms_metrics_have_vllms_names(simulated):
    worker = simulated(block_size=32, num_blocks=1000)
    worker.chat(max_tokens=10)
    metrics = worker.metrics()
    labels = (("engine", "0"), ("model_name", "mock-model"))
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc",
                 "prefix_cache_hits_total", "num_preemptions_total"):
        assert metrics["vllm:" + name, labels] == 0
    assert metrics["vllm:generation_tokens_total", labels] == 10
    assert metrics["vllm:prefix_cache_queries_total", labels] > 0
    assert metrics["vllm:time_to_first_token_seconds_count", labels] == 1
    config = next(dict(has) for name, has in metrics if name == "vllm:cache_config_info")
    assert config["block_size"] == "32"
    assert config["num_gpu_blocks"] == "1000"
    assert config["kv_cache_size_tokens"] == str(999 * 32)
    assert config["enable_prefix_caching"] == "True"


def test_vllm_without_events_lists_no_source_of_them(simulated):
    assert simulated(dp_size=2, kv_events="off").get("/kv_event_sources").json() == {}


def test_sglang_has_a_face_of_its_own(simulated):
    worker = simulated(engine="sglang", block_size=64, kv_events="off")
    info = worker.get("/server_info").json()
    assert info == worker.get("/get_server_info").json()
    assert (info["page_size"], info["dp_size"], info["kv_events"]) == (64, 1, None)
    assert info["max_total_num_tokens"] == 4095 * 64
    metrics = parse_metrics(worker.get("/metrics").text())
    assert {name for name, _ in metrics} >= {
        "sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage",
        "sglang:cache_hit_rate", "sglang:page_size", "sglang:max_total_num_tokens"}
    assert post(worker, "/flush_cache").text().startswith("Cache flushed.")
    assert worker.get("/kv_event_sources").status == 404


def test_tensorrt_tells_its_block_size_after_an_iteration(simulated):
    worker = simulated(engine="trtllm")
    assert worker.get("/metrics").json() == []
    assert worker.get("/health_generate").status == 200
    iteration, = worker.get("/metrics").json()
    assert iteration["kvCacheStats"]["tokensPerBlock"] == 32
    assert worker.get("/metrics").json() == []  # reading drains it
    names = {name for name, _ in parse_metrics(worker.get("/prometheus/metrics").text())}
    assert "trtllm_kv_cache_tokens_per_block" in names
    assert post(worker, "/tokenize", {"prompt": "a"}).status == 404


def test_every_engine_has_its_own_default_block_size(simulated):
    assert simulated(engine="sglang").get("/server_info").json()["page_size"] == 1
    assert 'block_size="16"' in simulated().get("/metrics").text()


# --- leaving


def refuses(port):
    try:
        wire.Connection(port).close()
        return False
    except ConnectionRefusedError:
        return True


def falls_silent(connection):
    """True if it stays open and nothing comes any more, after what was said before."""
    connection.socket.settimeout(1)
    try:
        while connection.more():
            pass
        return False
    except TimeoutError:
        return True
    finally:
        connection.socket.settimeout(wire.PATIENCE)


@pytest.mark.parametrize("profile", ["h200-llama-3.1-8b", "paced"])
def test_the_router_gives_up_the_silent_streams_of_a_worker_that_left(mock, serve, profile):
    worker = mock(profile=profile, speedup=0.2, token_interval="50ms", on_sigterm="silent")
    router = serve("--silent-stream-grace", "1s", workers=[worker])
    stream = wire.Stream(router.port, max_tokens=10_000)
    seen = [stream.next() for _ in range(3)]
    worker.signal(signal.SIGTERM)
    worker.wait_for_log("shutting down how=silent")
    eventually(lambda: router.health()["workers_ready"] == 0, "the listener is closed")
    seen += stream.rest()
    assert "[DONE]" not in seen
    assert json.loads(seen[-1])["error"]["code"] == "worker_failed"
    assert worker.popen.poll() is None  # it is still there, and says nothing


def test_silent_streams_stay_open_until_the_worker_is_killed(simulated):
    worker = simulated(speedup=0.2, on_sigterm="silent")
    stream = wire.Stream(worker.port, max_tokens=10_000)
    stream.next()
    worker.signal(signal.SIGTERM)
    worker.wait_for_log("shutting down how=silent")
    eventually(lambda: refuses(worker.port), "the listener is closed")
    assert falls_silent(stream.connection)
    worker.kill()
    stream.connection.rest()  # it has an end now


def test_an_aborting_worker_finishes_what_it_has_and_exits(simulated):
    worker = simulated(speedup=0.2, on_sigterm="abort")
    stream = wire.Stream(worker.port, max_tokens=60)
    seen = [stream.next() for _ in range(3)]
    worker.signal(signal.SIGTERM)
    worker.wait_for_log("shutting down how=abort")

    def aborted():
        answer = worker.chat(max_tokens=5).json()
        return answer["choices"][0]["finish_reason"] == "abort" and answer
    answer = eventually(aborted, "new requests are aborted")
    assert answer["usage"]["completion_tokens"] == 0
    assert worker.get("/health").status == 200
    seen += stream.rest()
    assert seen[-1] == "[DONE]"
    assert json.loads(seen[-2])["choices"][0]["finish_reason"] == "length"
    assert worker.wait() == 0


def test_the_router_retries_what_a_leaving_worker_aborts(simulated, serve):
    leaving = simulated(speedup=0.1, on_sigterm="abort", name="leaving")
    staying = simulated(name="staying")
    router = serve(workers=[leaving, staying])
    stream = wire.Stream(leaving.port, max_tokens=300)  # keeps it alive
    stream.next()
    leaving.signal(signal.SIGTERM)
    leaving.wait_for_log("shutting down how=abort")
    for _ in range(6):
        answer = router.chat(max_tokens=8).json()
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["choices"][0]["message"]["content"].startswith("staying/0")
    stream.close()


def test_a_worker_that_refuses_or_starts_slowly_is_not_ready(mock, serve):
    router = serve("--health-check-failures", 1, ready=1,
                   workers=[mock(refuse=True), mock(slow_start="60s"), mock(name="good")])
    assert router.health()["workers_ready"] == 1
    for _ in range(4):
        assert "good:0" in router.chat().json()["choices"][0]["message"]["content"]
