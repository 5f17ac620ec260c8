"""Simulated engines with the files of a real model, and conversations with them."""

import time

import wire
from choices import QUICK, depth, follow
from tokenizers import model_folder
from wire import eventually

SIZES = {"vllm": 16, "sglang": 16, "trtllm": 32}
# TensorRT-LLM's events are asked for; and however slow this machine is, nothing is given up.
ROUTER = ("--router-mode", "kv", "--kv-events-poll-interval", "20ms", "--tokenize-timeout", "60s")
SYSTEM = "You are the pilot of a harbor. " + "Say how deep the water is, and say it briefly. " * 30


def engine(world, kind, files, **options):
    path = {"model_path": model_folder(files)} if files else {}
    return world.mock(**{**QUICK, "engine": kind, "block_size": SIZES[kind], **path, **options})


def router_of(world, workers, *args, follows=None):
    """A router that hears the events of all its workers."""
    router = world.serve(*ROUTER, *args, workers=workers)
    follow(router, len(workers) if follows is None else follows)
    if "--model-path" in args:
        _await_probes(router)
    for worker in workers:
        if not isinstance(worker, str):
            worker.at_first = worker.stats()
    return router


def _await_probes(router):
    """Until the engines' tokens have been compared with those of the files."""
    def compared():
        return router.metric("kv_router_parity_probes_total")

    def unchanged():
        before = compared()
        time.sleep(0.2)
        return compared() == before

    eventually(unchanged, "the probes are over")


def blind_router(world, workers, *args, follows=None):
    """A router that has nothing to read prompts with but the engines."""
    return router_of(world, workers, "--no-text-fallback", *args, follows=follows)


def holder(workers, router, answer):
    """The worker that gave the answer."""
    return next(worker for worker in workers if router.worker_id(worker) == answer.worker)


def seen(answer):
    """The tokens of the prompt, as the engine saw them."""
    return answer.json()["prompt_token_ids"]


class Conversation:
    """Turns of one chat. A turn is over when the router knows what the worker holds of it."""

    def __init__(self, router, workers, system=SYSTEM, **fields):
        self.router = router
        self.workers = workers
        self.fields = fields
        self.messages = [{"role": "system", "content": system}] if system else []

    def ask(self, content, of=None):
        """Of the router, or of a worker behind its back."""
        self.messages.append({"role": "user", "content": content})
        answer = (of or self.router).chat(messages=self.messages, max_tokens=50, return_token_ids=True, **self.fields)
        assert answer.status == 200, answer.text()
        choice = answer.json()["choices"][0]
        self.messages.append({"role": "assistant", "content": choice["message"]["content"]})
        self._wait_until_known(of or holder(self.workers, self.router, answer), seen(answer) + choice["token_ids"])
        return answer

    def _wait_until_known(self, worker, tokens):
        # The engine has not computed with the last token, and of a block that is not full nothing is told.
        size = block_size(self.router, worker)
        known = (len(tokens) - 1) // size * size
        eventually(lambda: depth(self.router, worker, tokens + [1]) >= known, "the events of the turn have come")


def block_size(router, worker):
    workers = router.health()["workers"]
    return next(entry["block_size"] for entry in workers if entry["url"] == worker.url)


def tokenized(router, source):
    return router.metric("kv_router_tokenized_total", source=source)


def inexact(router, reason):
    return router.metric("kv_router_inexact_prompts_total", reason=reason)


def complete(process, prompt, **fields):
    body = {"model": "mock-model", "prompt": prompt, "max_tokens": 4, "return_token_ids": True, **fields}
    answer = wire.ask(process.port, "POST", "/v1/completions", body)
    assert answer.status == 200, answer.text()
    return answer


def counted(workers, name):
    """A number of /mock/stats, of all workers, since router_of() or their start."""
    return sum(worker.stats()[name] - getattr(worker, "at_first", {}).get(name, 0) for worker in workers)
