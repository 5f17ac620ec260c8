"""Before a worker gets requests, its engine is asked for the tokens of a few prompts: a router whose files give other
tokens shows it at once, and only for the kinds of prompts that differ."""

import json
import threading
import time

import pytest

import wire
from choices import cached, decision_of, found
from conftest import run_fathom
from fake_engine import whole_answer
from model_fleet import Conversation, engine as engine_of, router_of
from tokenizers import MODELS, byte_tokenizer, model_folder, tokenizer_config, write_model
from trust import check_doubt, line_about, rank_of, said
from wire import eventually

PLAIN = ("{% for message in messages %}<|{{ message.role }}|>{{ message.content }}"
         "{% if message.tool_calls %}{% for call in message.tool_calls %}CALL {{ call.function | tojson }}{% endfor %}{% endif %}"
         "\n{% endfor %}<|assistant|>")
TEMPLATE = "{% if tools %}TOOLS are these: {{ tools | tojson }} END{% endif %}" + PLAIN
MARKS = [{"id": 256 + i, "content": f"<|{role}|>", "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False, "special": True} for i, role in enumerate(["user", "assistant", "system", "tool", "developer"])]
KINDS = ["vllm", "sglang"]


def folder(path, template=TEMPLATE, **tokenizer):
    return write_model(path, tokenizer=byte_tokenizer(added_tokens=MARKS, **tokenizer), template=template)


def fleet(world, tmp_path, kind, theirs=None, workers=1, **options):
    """A router, and workers with other files. No request has been sent when it returns."""
    ours = folder(tmp_path / "ours")
    started = [engine_of(world, kind, None, model_path=theirs or ours, **options) for _ in range(workers)]
    router = router_of(world, started, "--model-path", ours)
    return router, started


def probes(router, result):
    return router.metric("kv_router_parity_probes_total", result=result)


def state(router, worker):
    return next(entry["state"] for entry in router.health()["workers"] if entry["url"] == worker.url)


def no_request_was_sent(router):
    return router.get("/debug/decisions").json()["decisions"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_with_the_same_files_is_trusted(world, tmp_path, kind):
    router, [worker] = fleet(world, tmp_path, kind)
    eventually(lambda: state(router, worker) == "ready", "the worker is admitted")
    assert probes(router, "agrees") >= 8 and probes(router, "differs") == 0
    eventually(lambda: "An engine's tokens agree with the model's files" in router.log_text(), "it is logged")
    time.sleep(0.6)  # two judgements
    assert rank_of(router, worker)["trust"] != "doubted"
    assert said(router) == []


@pytest.mark.vocabulary
@pytest.mark.parametrize("kind", KINDS)
def test_published_models_agree_with_themselves(world, kind):
    """Whatever their templates refuse or add."""
    models = [model for model in MODELS if "chat_template" in tokenizer_config(model)]
    workers = [engine_of(world, kind, model, model=model) for model in models]
    router = router_of(world, workers, "--model-path", ",".join(f"{model}={model_folder(model)}" for model in models))
    assert probes(router, "agrees") >= 5 * len(models)
    assert probes(router, "differs") == probes(router, "unanswered") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_that_differs_is_doubted_before_any_request(world, tmp_path, kind):
    theirs = folder(tmp_path / "theirs", TEMPLATE.replace("are these:", "at hand:"))
    router, [worker] = fleet(world, tmp_path, kind, theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    assert no_request_was_sent(router)
    rank = rank_of(router, worker)
    assert "only chats with tools, requests to /v1/messages differ" in rank["evidence"]
    assert "at position 7 of a probe prompt of chats with tools" in rank["evidence"]
    assert "token 116 't', the router 114 'r'" in rank["evidence"], "a[t] hand, a[r]e these"
    assert "other prompts agree" in rank["evidence"]
    assert line_about(router, "tokens_differ")["evidence"] == rank["evidence"]
    assert rank["credit"]["plain"] == 1
    # Plain chats keep their cache-aware routing.
    talk = Conversation(router, [worker])
    talk.ask("Who is there?")
    assert cached(talk.ask("Still there?")) > 0
    # The engine is asked for the tokens of chats with tools: they are found as well.
    with_tools = Conversation(router, [worker], tools=[{"type": "function", "function": {"name": "sound", "parameters": {}}}])
    with_tools.ask("Who is there?")
    answer = with_tools.ask("Still there?")
    assert decision_of(router, answer)["tokens_from"] == "engine"
    assert cached(answer) == found(answer) > 0
    assert rank_of(router, worker)["cause"] == "tokens_differ", "the files still differ"


@pytest.mark.parametrize("kind", KINDS)
def test_another_chat_template_spares_completions(world, tmp_path, kind):
    theirs = folder(tmp_path / "theirs", TEMPLATE.replace("<|assistant|>", "So: "))
    router, [worker] = fleet(world, tmp_path, kind, theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    assert no_request_was_sent(router)
    evidence = rank_of(router, worker)["evidence"]
    assert evidence.startswith("only plain chats, chats with the role developer, chats with tools, ")
    assert "completions" not in evidence and "/v1/responses" in evidence


def test_another_vocabulary_is_a_difference_in_everything(world, tmp_path):
    other = byte_tokenizer()["model"]
    other["vocab"] = {piece: (number + 1) % 256 for piece, number in other["vocab"].items()}
    theirs = folder(tmp_path / "theirs", model=other)
    router, [worker] = fleet(world, tmp_path, "vllm", theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    assert no_request_was_sent(router)
    rank = rank_of(router, worker)
    assert not rank["evidence"].startswith("only") and "a probe prompt of completions" in rank["evidence"]
    assert rank["credit"]["plain"] == 0
    check_doubt(router, worker, "tokens_differ", r"probe prompt", r"--model-path")


def test_special_tokens_in_a_users_text_are_compared(world, tmp_path):
    """An engine that does not find them there: its template breaks them."""
    theirs = folder(tmp_path / "theirs",
                    TEMPLATE.replace("{{ message.content }}", "{{ message.content | replace('<|user|>', '<|user |>') }}"))
    router, [worker] = fleet(world, tmp_path, "vllm", theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    assert "only plain chats differ" in rank_of(router, worker)["evidence"]


def test_the_doctor_shows_the_first_token_that_differs(world, tmp_path):
    theirs = folder(tmp_path / "theirs", TEMPLATE.replace("are these:", "at hand:"))
    router, [worker] = fleet(world, tmp_path, "vllm", theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    report = json.loads(run_fathom("doctor", "--url", router.url, "--format", "json").stdout)
    finding = next(found for found in report["findings"] if found["id"] == "tokens-differ")
    assert "only chats with tools" in json.dumps(finding) and "token 116 't', the router 114 'r'" in json.dumps(finding)


def test_only_the_worker_that_differs_is_doubted(world, tmp_path):
    ours = folder(tmp_path / "ours")
    theirs = folder(tmp_path / "theirs", TEMPLATE.replace("are these:", "at hand:"))
    same, other = (engine_of(world, "vllm", None, model_path=path) for path in (ours, theirs))
    router = router_of(world, [same, other], "--model-path", ours)
    eventually(lambda: rank_of(router, other)["cause"] == "tokens_differ", "the difference is found")
    assert rank_of(router, same)["cause"] is None


def test_a_new_process_is_asked_again(world, tmp_path):
    theirs = folder(tmp_path / "theirs", TEMPLATE.replace("are these:", "at hand:"))
    router, [worker] = fleet(world, tmp_path, "vllm", theirs)
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    worker.kill()
    worker.wait()
    fixed = engine_of(world, "vllm", None, model_path=tmp_path / "ours", port=worker.port)
    eventually(lambda: state(router, fixed) == "ready" and rank_of(router, fixed)["trust"] != "doubted",
               "the process that replaced it agrees")
    assert no_request_was_sent(router)


def test_an_engine_that_cannot_be_asked_is_not_asked(world, tmp_path):
    router, [worker] = fleet(world, tmp_path, "trtllm")
    eventually(lambda: state(router, worker) == "ready", "the worker is admitted")
    assert worker.stats()["tokenize_calls"] == 0
    assert rank_of(router, worker)["trust"] != "doubted"


# --- engines of which the test decides every byte


class Asked:
    """Answers POST requests by path, and keeps those for tokens; the most that were open at once."""

    def __init__(self, **answers):
        self.answers = answers
        self.tokenize = True  # FakeEngine passes these requests on
        self.paths = []
        self.headers = []
        self.open = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, request, connection):
        name = request.target.strip("/").replace("/", "_")
        with self.lock:
            self.paths.append(request.target)
            self.headers.append(dict(request.headers))
            self.open += 1
            self.most = max(self.most, self.open)
        try:
            answer = self.answers.get(name, lambda _: ("{}", "404 Not Found"))(request)
        finally:
            with self.lock:
                self.open -= 1
        connection.sendall(whole_answer(*answer))


def serve_for(world, tmp_path, workers, *args, env=None):
    return world.serve("--router-mode", "kv", "--model-path", folder(tmp_path / "ours"), *args, workers=workers, env=env)


def test_an_engine_without_the_endpoint_is_asked_once(world, tmp_path, engine):
    asked = Asked()
    worker = engine(asked)
    router = serve_for(world, tmp_path, [worker])
    eventually(lambda: state(router, worker) == "ready", "the worker is admitted")
    time.sleep(0.6)  # some health checks
    assert asked.paths == ["/tokenize"]
    assert probes(router, "unsupported") == 1


def test_an_engine_that_does_not_answer_is_admitted_all_the_same(world, tmp_path, engine):
    answered = threading.Event()

    def never(_):
        answered.wait()
        return "{}", "500 Internal Server Error"

    asked = Asked(tokenize=never)
    worker = engine(asked)
    router = serve_for(world, tmp_path, [worker])
    eventually(lambda: asked.paths, "it is asked")
    eventually(lambda: state(router, worker) == "ready", "the worker is admitted")
    assert asked.open > 0 or probes(router, "unanswered") == 1
    assert not answered.is_set() and rank_of(router, worker)["cause"] != "tokens_differ"
    answered.set()


@pytest.mark.parametrize("body, status", [("no", "500 Internal Server Error"), ("{", "200 OK"),
                                          ('{"count":1,"tokens":[-1]}', "200 OK"),
                                          ('{"count":1,"tokens":[99999999999]}', "200 OK"),
                                          ('{"count":2,"tokens":[1]}', "200 OK"),
                                          ('{"tokens":[' + "1," * 1000000 + "1]}", "200 OK")],
                         ids=["error", "broken", "negative", "too large", "other count", "endless"])
def test_a_useless_answer_shows_nothing(world, tmp_path, engine, body, status):
    asked = Asked(tokenize=lambda _: (body, status))
    worker = engine(asked)
    router = serve_for(world, tmp_path, [worker])
    eventually(lambda: state(router, worker) == "ready", "the worker is admitted")
    eventually(lambda: probes(router, "unanswered") == 1, "the answer is refused")
    time.sleep(0.6)
    assert len(asked.paths) == 1, "it is not asked again soon"
    assert rank_of(router, worker)["cause"] != "tokens_differ"


def passing_on(worker):
    """/tokenize of a real mock."""
    def ask(request):
        answer = wire.ask(worker.port, "POST", "/tokenize", json.loads(request.body))
        return answer.text(), f"{answer.status} X"
    return ask


def test_an_engine_that_reads_messages_in_its_own_way_is_found_by_its_count(world, tmp_path, engine):
    real = engine_of(world, "vllm", None, model_path=folder(tmp_path / "theirs"))
    asked = Asked(tokenize=passing_on(real), v1_messages_count_tokens=lambda _: ('{"input_tokens":7}',))
    worker = engine(asked, pages_of=real)
    router = serve_for(world, tmp_path, [worker])
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    evidence = rank_of(router, worker)["evidence"]
    assert "only requests to /v1/messages differ" in evidence and "the engine counts 7 tokens" in evidence


def rendering(worker, change=lambda ids: ids):
    """What vLLM's render endpoints make of a request, by /tokenize of a real mock."""
    def ask(request):
        body = json.loads(request.body)
        tokens = wire.ask(worker.port, "POST", "/tokenize", body).json()["tokens"]
        answer = {"request_id": "r", "token_ids": change(tokens), "sampling_params": {}}
        return (json.dumps([answer] if "prompt" in body else answer),)
    return ask


def test_an_engine_that_renders_requests_is_asked_for_that(world, tmp_path, engine):
    real = engine_of(world, "vllm", None, model_path=folder(tmp_path / "theirs"))
    asked = Asked(v1_completions_render=rendering(real), v1_chat_completions_render=rendering(real),
                  v1_messages_render=lambda _: ('{"token_ids":[1,2,3]}',))
    worker = engine(asked, pages_of=real)
    router = serve_for(world, tmp_path, [worker])
    eventually(lambda: rank_of(router, worker)["cause"] == "tokens_differ", "the difference is found")
    assert set(asked.paths) == {"/v1/completions/render", "/v1/chat/completions/render", "/v1/messages/render",
                                "/v1/responses/render"}
    evidence = rank_of(router, worker)["evidence"]
    assert "only requests to /v1/messages differ: at position 0 of a probe prompt" in evidence


def test_the_workers_own_key_is_used(world, tmp_path, engine):
    asked = Asked()
    worker = engine(asked)
    config = tmp_path / "fathom.yaml"
    config.write_text(json.dumps({"workers": [{"url": worker.url, "api_key_env": "WORKER_KEY"}]}))
    router = serve_for(world, tmp_path, [], "--config", config, env={"WORKER_KEY": "secret-of-the-worker"})
    eventually(lambda: asked.paths, "it is asked")
    assert asked.headers[0]["authorization"] == "Bearer secret-of-the-worker"
    assert "secret-of-the-worker" not in router.log_text()


def test_fifty_workers_at_once_are_asked_a_few_at_a_time(world, tmp_path, engine):
    def slowly(_):
        time.sleep(0.02)
        return '{"error":"not now"}', "400 Bad Request"

    asked = Asked(tokenize=slowly)
    workers = [engine(asked) for _ in range(50)]
    router = serve_for(world, tmp_path, workers)
    eventually(lambda: all(entry["state"] == "ready" for entry in router.health()["workers"]), "all are admitted")
    # Eight of each. One that does not answer in time ends the questions to its worker (ParityCheck::Inquire).
    eventually(lambda: probes(router, "inconclusive") + 8 * probes(router, "unanswered") >= 400, "all were asked")
    assert 1 < asked.most <= 32
