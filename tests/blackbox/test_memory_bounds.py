"""Whatever clients send, and however many of them, the router's memory stays below what its options
promise (docs/operations.md, Capacity), and nothing of it is echoed at length."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from wire import eventually

MB = 1 << 20
BODIES = 64 * MB
# Bodies of about `size` bytes, by what fills them.
FORMS = {
    "model": lambda size: ("/v1/chat/completions", wire.chat_body(model="m" * size)),
    "escaped model": lambda size: ("/v1/completions", filled('"model":"*","prompt":"a"', r"\u0061", size)),
    "text": lambda size: ("/v1/completions", filled('"model":"mock-model","prompt":"*"', "a b ", size)),
    "message": lambda size: ("/v1/chat/completions", filled(
        '"model":"mock-model","messages":[{"role":"user","content":"*"}]', "word ", size)),
    "messages": lambda size: ("/v1/chat/completions", filled(
        '"model":"mock-model","messages":[*{"role":"user","content":"x"}]',
        '{"role":"user","content":"x"},', size)),
    "ids": lambda size: ("/v1/completions", filled('"model":"mock-model","prompt":[*1]', "1,", size)),
    "lists of ids": lambda size: ("/v1/completions", filled(
        '"model":"mock-model","prompt":[*[1]]', "[1],", size)),
    "salt": lambda size: ("/v1/completions", filled(
        '"model":"mock-model","prompt":"a","cache_salt":"*"', "s", size)),
    "members": lambda size: ("/v1/completions", filled('"model":"mock-model",*"prompt":"a"', '"a":1,', size)),
    "lookup": lambda size: ("/debug/lookup", filled('"tokens":[*1]', "1,", size)),
    "lookup's model": lambda size: ("/debug/lookup", filled('"tokens":[1],"model":"*"', "m", size)),
    "explained model": lambda size: ("/debug/explain", wire.chat_body(model="m" * size)),
    "worker": lambda size: ("/workers", {"url": "http://" + "h" * size}),
}


def filled(members, piece, size):
    return ("{" + members.replace("*", piece * (size // len(piece))) + "}").encode()


def send(router, form, size):
    target, body = FORMS[form](size)
    try:
        answer = wire.ask(router.port, "POST", target, body)
    except (ConnectionError, TimeoutError):
        return  # refused while it was sent
    assert len(answer.body) < 64 << 10, form
    assert answer.status in (200, 400, 503), form


@pytest.mark.slow
def test_memory_stays_below_its_bounds_for_all_forms_of_large_requests(mock, serve):
    router = serve("--max-body-memory", f"{BODIES // MB}MiB", "--tokenize-cache-bytes", "8MiB",
                   "--index-max-bytes", "16MiB", "--trust-memory", "1MiB",
                   workers=[mock(), mock()])
    assert router.chat().status == 200
    before = router.memory("VmHWM")
    seeded = random.Random(8)
    forms = [*FORMS] * 3
    seeded.shuffle(forms)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda form: send(router, form, seeded.randrange(1, 14) * MB), forms))
    # Bodies, their prompts, small caches, and what the allocator does not give back at once.
    assert router.memory("VmHWM") - before < 2 * BODIES + 128 * MB
    assert len(router.get("/debug/decisions?limit=1000").body) < 1 * MB
    assert router.chat().status == 200
    # Without further requests: an idle router gives it back, too.
    eventually(lambda: router.memory() - before < BODIES // 2, "the memory is given back")


@pytest.mark.parametrize("length, status", [(4096, 404), (4097, 400)])
def test_a_model_s_name_has_at_most_4096_bytes(mock, serve, length, status):
    router = serve(workers=[mock()])
    name = "m" * length
    for target in ("/v1/chat/completions", "/debug/explain"):
        answer = wire.ask(router.port, "POST", target, wire.chat_body(model=name))
        assert (answer.status, answer.error["param"]) == (status, "model")
        assert (answer.error["code"] == "invalid_model") == (status == 400)
    assert wire.ask(router.port, "POST", "/v1/embeddings", {"model": name, "input": "a"}).status == status
