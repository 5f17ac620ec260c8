"""--models: a router that follows and serves some of the fleet's models alone."""

import wire
from choices import QUICK, complete, depth, follow, ids, send
from conftest import run_fathom
from wire import eventually

OURS = ("--router-mode", "kv", "--models", "mock-*")


def listed(router):
    return sorted(card["id"] for card in router.get("/v1/models").json()["data"])


def error_of(answer):
    return answer.json()["error"]


def shown(router, worker):
    return next(entry for entry in router.health()["workers"] if entry["url"] == worker.url)


def wait_for_state(router, worker, state):
    eventually(lambda: shown(router, worker)["state"] == state, f"{worker.url} is {state}")


def followed(router):
    return {str(rank["worker"]) for rank in router.get("/debug/index").json()["ranks"]}


def restart(world, worker, **options):
    worker.kill()
    return world.mock(**{**QUICK, "port": worker.port, **options})


def test_only_matching_models_are_followed_and_served(world):
    ours = world.mock(**QUICK, model="mock-model")
    mixed = world.mock(**QUICK, model="qwen,mock-model,mock-small")
    others = world.mock(**QUICK, model="qwen")
    router = world.serve(*OURS, workers=[ours, mixed, others], ready=2)
    wait_for_state(router, others, "outside")
    assert shown(router, others)["cause"] == "serves none of --models: it serves qwen"
    assert shown(router, mixed)["models"] == ["mock-model", "mock-small"]
    assert listed(router) == ["mock-model", "mock-small"]
    assert router.get("/v1/models/qwen").status == 404
    health = router.health()
    assert (health["status"], health["workers_ready"], health["workers_total"]) == ("ok", 2, 3)

    follow(router, 2)
    assert followed(router) == {router.worker_id(ours), router.worker_id(mixed)}
    assert router.metric("fathom_worker_ready") == 2
    assert not router.metric("fathom_worker_ready", worker=router.worker_id(others))

    prompt = ids(1)
    answer = complete(router, prompt)
    assert answer.worker in {router.worker_id(ours), router.worker_id(mixed)}
    assert complete(router, ids(2), model="mock-small").worker == router.worker_id(mixed)
    refused = send(router, prompt, model="qwen")
    assert (refused.status, error_of(refused)["code"]) == (404, "model_not_found")
    assert "'qwen'" in error_of(refused)["message"]
    assert others.stats()["requests"] == 0


def test_a_request_that_was_forwarded_is_not_forwarded_again(world):
    router = world.serve(*OURS, workers=[world.mock(**QUICK, model="mock-model")])
    refused = send(router, ids(1), {"x-fathom-forwarded": "replica-7"}, model="qwen")
    assert (refused.status, error_of(refused)["code"]) == (421, "model_not_served_here")
    assert "replica 'replica-7'" in error_of(refused)["message"]
    assert complete(router, ids(1), {"x-fathom-forwarded": "replica-7"}).status == 200


def test_a_worker_is_taken_up_and_left_as_its_models_change(world):
    ours = world.mock(**QUICK, model="mock-model")
    changing = world.mock(**QUICK, model="qwen")
    router = world.serve(*OURS, workers=[ours, changing], ready=1)
    wait_for_state(router, changing, "outside")
    follow(router, 1)

    changing = restart(world, changing, model="mock-model")
    wait_for_state(router, changing, "ready")
    follow(router, 2)
    prompt = ids(3)
    complete(changing, prompt)
    eventually(lambda: depth(router, changing, prompt + [1]) >= len(prompt), "its events are followed")

    changing = restart(world, changing, model="qwen")
    wait_for_state(router, changing, "outside")
    eventually(lambda: followed(router) == {router.worker_id(ours)}, "its events are not followed")
    assert depth(router, changing, prompt + [1]) == 0
    assert router.health()["status"] == "ok"


def test_a_worker_of_other_models_that_ends_is_no_fault_here(world):
    ours = world.mock(**QUICK, model="mock-model")
    others = world.mock(**QUICK, model="qwen")
    router = world.serve(*OURS, workers=[ours, others], ready=1)
    wait_for_state(router, others, "outside")
    others.kill()
    for _ in range(10):
        assert shown(router, others)["state"] == "outside"
        assert router.health()["status"] == "ok"
    assert "Worker is not healthy" not in router.log_text()


def test_not_ready_while_no_worker_serves_one_of_the_models(world):
    others = world.mock(**QUICK, model="qwen")
    router = world.serve(*OURS, workers=[others], ready=0)
    wait_for_state(router, others, "outside")
    page = eventually(lambda: (p := router.get("/ready")).json()["status"] == "no worker is ready" and p, "it started")
    assert page.status == 503
    assert "1 outside (serve none of --models)" in page.json()["reason"]
    assert send(router, ids(1)).status == 404


def test_a_response_is_found_by_its_id_whatever_its_model(world):
    workers = [world.mock(**QUICK, model="mock-model"), world.mock(**QUICK, model="qwen")]
    ours = world.serve(*OURS, workers=workers, ready=1)
    theirs = world.serve("--router-mode", "kv", "--models", "qwen", workers=workers, ready=1)
    wait_for_state(ours, workers[1], "outside")
    made = wire.ask(theirs.port, "POST", "/v1/responses", {"model": "qwen", "input": "hello", "store": True})
    assert made.status == 200, made.text()
    found = ours.get("/v1/responses/" + made.json()["id"])
    assert (found.status, found.json()["id"]) == (200, made.json()["id"])


def test_wrong_settings_are_refused_at_the_start():
    for option, value, words in (("--replica-url", "ftp://here", "replica-url"),
                                 ("--models", "x" * 513, "models")):
        ended = run_fathom("serve", "--port", 0, option, value)
        assert ended.returncode == 78, ended.stderr
        assert words in ended.stderr
