"""TensorRT-LLM hands out each of its events once. Routers of a group share what they have polled, so that all of them
know its caches; routers that do not know of each other take the events from each other, and say so."""

import http.client
import json
import random
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import wire
from choices import QUICK, cached, complete, depth, follow, found, ids
from replica_mesh import Mesh
from replica_views import ranks
from trust import rank_of
from wire import eventually

QUICK_POLLS = ("--kv-events-poll-interval", "20ms", "--router-mode", "kv")


def trtllm(world, **options):
    return world.mock(**{**QUICK, "engine": "trtllm", **options})


def polls(router, role="polls"):
    return router.metric("fathom_replica_polled_workers", role=role)


def settle_turns(routers, workers):
    """Each worker is polled by one router, and followed by the others."""
    def settled():
        return (sum(polls(router) for router in routers) == len(workers) and
                all(polls(router) + polls(router, "follows") == len(workers) for router in routers))
    eventually(settled, "each worker is polled by one")


def know(routers, worker, prompt):
    for router in routers:
        eventually(lambda router=router: depth(router, worker, prompt + [1]) == len(prompt),
                   "the prompt is known to all")


def agree(routers, workers):
    """After their last events: what one router knows of the workers, which all know."""
    number = random.randrange(500, 1000)
    for worker in workers:
        complete(worker, ids(number))
        know(routers, worker, ids(number))
    views = [ranks(router) for router in routers]
    assert all(view == views[0] for view in views), views
    return views[0]


def check_truth(routers, worker, prompts):
    """What all routers say that the worker has is what it then finds."""
    for prompt in prompts:
        said = [depth(router, worker, prompt + [1]) for router in routers]
        has = found(complete(worker, prompt + [1]))
        assert said == [has] * len(routers), (said, has)


def test_all_know_what_one_has_polled(world):
    # Caches of 20 prompts: most of what is stored is removed again.
    workers = [trtllm(world, num_blocks=81) for _ in range(2)]
    old = ids(0)
    complete(workers[0], old)  # before there is any router
    group = Mesh(world, *QUICK_POLLS)
    routers = [group.start(name, workers=workers) for name in "abc"]
    settle_turns(routers, workers)
    know(routers, workers[0], old)

    prompts = [ids(number) for number in range(1, 40)]
    for number, prompt in enumerate(prompts):
        complete(routers[number % 3], prompt)
        complete(workers[number % 2], prompt)
    agree(routers, workers)
    for worker in workers:
        check_truth(routers, worker, prompts[-3:] + prompts[:2])
    answers = [complete(router, prompts[-1]) for router in routers]
    assert [cached(answer) for answer in answers] == [found(answer) for answer in answers]
    for router in routers:
        assert router.metric("kv_router_feed_lost_batches_total") == 0
        assert "KV events were lost" not in router.log_text()
        answers = {what: router.metric("fathom_replica_polled_answers_total", what=what)
                   for what in ("sent", "received", "dropped", "incomplete")}
        assert answers["sent"] + answers["received"] > 0 and answers["dropped"] == answers["incomplete"] == 0, answers

    # An engine that starts again has nothing, and counts from 0: all hear of it.
    port = workers[0].port
    workers[0].kill()
    workers[0] = trtllm(world, port=port, num_blocks=81)
    complete(workers[0], ids(300))
    know(routers, workers[0], ids(300))
    check_truth(routers, workers[0], prompts[-3:])
    agree(routers, workers)


def test_a_router_that_starts_knows_what_others_have_polled(world):
    workers = [trtllm(world) for _ in range(2)]
    group = Mesh(world, *QUICK_POLLS, "--ready-when", "informed")
    first = group.start("a", workers=workers, ready=0)
    settle_turns([first], workers)
    prompts = [ids(number) for number in range(12)]
    for number, prompt in enumerate(prompts):
        complete(workers[number % 2], prompt)
        know([first], workers[number % 2], prompt)

    second = group.start("b", workers=workers, ready=0)
    eventually(lambda: second.get("/ready").status == 200, "it is informed", 30)
    assert ranks(second) == ranks(first)
    assert second.metric("fathom_replica_snapshots_total", what="taken") == 2
    for number, prompt in enumerate(prompts):
        assert depth(second, workers[number % 2], prompt + [1]) == len(prompt)
    settle_turns([first, second], workers)
    agree([first, second], workers)

    # The one that was there first goes: nothing is forgotten.
    first.kill()
    settle_turns([second], workers)
    complete(workers[0], ids(40))
    know([second], workers[0], ids(40))
    check_truth([second], workers[0], prompts[::2])
    assert lost(second) == 0


class Flow:
    """Requests to the workers themselves, all the time, so that events are always on their way."""

    def __init__(self, *workers):
        self.workers, self.over, self.sent = workers, threading.Event(), []  # (worker, prompt)
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        for number in range(1, 1000):
            if self.over.is_set():
                return
            for worker in self.workers:
                complete(worker, ids(number))
                self.sent.append((worker, ids(number)))

    def flow_on(self, requests):
        goal = len(self.sent) + requests
        eventually(lambda: len(self.sent) >= goal or not self.thread.is_alive(), "more is sent")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def take_some(worker):
    """Takes events as a router does that dies before it has passed them on; false if another one was faster."""
    complete(worker, ids(1400))
    return wire.ask(worker.port, "POST", "/kv_cache_events", {}).json()


def lost(router):
    return router.metric("kv_router_feed_lost_batches_total")


def test_another_one_polls_when_the_one_that_did_is_killed(world):
    workers = [trtllm(world) for _ in range(2)]
    group = Mesh(world, *QUICK_POLLS)
    named = {name: group.start(name, workers=workers) for name in "abc"}
    routers = list(named.values())
    settle_turns(routers, workers)
    with Flow(*workers) as flow:
        flow.flow_on(20)
        name, victim = max(named.items(), key=lambda entry: polls(entry[1]))
        routers.remove(victim)
        victim.kill()
        robbed = [worker for worker in workers if take_some(worker)]
        settle_turns(routers, workers)
        flow.flow_on(10)
    number = 1500
    for worker in workers:
        complete(worker, ids(number))
        know(routers, worker, ids(number))
    # What the killed one was given, nobody else has heard: that is said, and less is believed.
    assert robbed and all(lost(router) for router in routers)
    said = [(router, worker, prompt, depth(router, worker, prompt + [1]))
            for router in routers for worker, prompt in flow.sent[:10] + flow.sent[-10:]]
    for router, worker, prompt, tokens in said:
        has = found(complete(worker, prompt + [1]))
        assert has == len(prompt) and tokens <= has
        assert tokens == has or worker in robbed, "less is known, and nothing was said"
    for router in routers:
        assert "KV events were lost; the rank's index entries were cleared" in router.log_text()
        answer = complete(router, ids(number) + [1])
        assert cached(answer) == found(answer) == len(ids(number))

    # It comes back, and hears what happens from now on.
    again = [*routers, group.start(name, workers=workers)]
    settle_turns(again, workers)
    follow(again[-1], len(workers))
    for worker in workers:
        complete(worker, ids(number + 1))
        know(again, worker, ids(number + 1))


class HoldingEngine:
    """TensorRT-LLM as it is: a poll that finds no events waits up to two seconds for some, and hands them out even if
    nobody is there any more to take them. In front of a mock, which answers at once."""

    def __init__(self, engine):
        self.engine, self.holds, self.turn = engine, 0, threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                held = (self.command, self.path) == ("POST", "/kv_cache_events")
                status, page = owner.hold() if held else owner.ask(self.command, self.path, body)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            do_GET = do_POST = do_OPTIONS = _answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # who asked has gone
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def ask(self, method, path, body=b""):
        connection = http.client.HTTPConnection("127.0.0.1", self.engine.port, timeout=wire.PATIENCE)
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        page = answer.read()
        connection.close()
        return answer.status, page

    def hold(self):
        with self.turn:  # events go to who has waited longest
            self.holds += 1
            until = time.monotonic() + 2
            while True:
                status, page = self.ask("POST", "/kv_cache_events")
                if status != 200 or json.loads(page) or time.monotonic() > until:
                    return status, page
                time.sleep(0.005)

    def await_hold(self):
        before = self.holds
        eventually(lambda: self.holds > before, "a poll is held")

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_a_router_that_ends_passes_on_the_poll_that_the_engine_holds(world):
    engine = trtllm(world)
    with HoldingEngine(engine) as worker:
        group = Mesh(world, *QUICK_POLLS)
        routers = [group.start(name, workers=[worker]) for name in "ab"]
        settle_turns(routers, [worker])
        complete(engine, ids(1))
        know(routers, worker, ids(1))
        poller, other = sorted(routers, key=polls, reverse=True)
        worker.await_hold()
        poller.signal(signal.SIGTERM)
        poller.wait_for_log("Draining")
        complete(engine, ids(2))
        assert poller.wait() == 0
        know([other], worker, ids(2))
        complete(engine, ids(3))
        know([other], worker, ids(3))
        assert depth(other, worker, ids(1) + [1]) == len(ids(1))
        assert lost(other) == 0
        world.end()


def test_routers_without_a_group_take_the_events_from_each_other_and_say_so(world):
    worker = trtllm(world)
    routers = [world.serve(*QUICK_POLLS, workers=[worker]) for _ in range(2)]
    with Flow(worker) as flow:
        for router in routers:
            eventually(lambda router=router: lost(router), "events are missing")
            eventually(lambda router=router: rank_of(router, worker)["cause"] == "event_gap", "the rank is doubted")
        sent = flow.sent[:]
    for router in routers:
        said = router.wait_for_log(".*KV events were lost; the rank's index entries were cleared.*").group()
        assert " WARN " in said and worker.url in said and "--replicas" in said
        assert "A rank is doubted: event_gap" in router.log_text()
        for _, prompt in sent[-10:]:
            assert depth(router, worker, prompt + [1]) <= found(complete(worker, prompt + [1]))
