"""Clients of a group of routers."""

import collections
import contextlib
import json
import random
import threading
import time

from wire import eventually


def problem_of(answer, streamed):
    """What is wrong with an answer, or None. A stream that breaks has its 200 already: the router ends it with an error
    event."""
    if answer.status != 200:
        return answer.status, answer.text()
    if not streamed:
        return None if answer.json()["choices"] else answer.text()
    *events, last = [event.removeprefix("data: ") for event in answer.text().rstrip("\n").split("\n\n")]
    whole = last == "[DONE]" and events and not any("error" in json.loads(event) for event in events)
    return None if whole else answer.text()[-300:]


class Load:
    """Clients behind a balancer that chooses by chance. A router that is taken out of it is not asked again, and the
    requests that it has then may fail; no others."""

    def __init__(self, *routers, clients=4):
        self.routers, self.bad, self.answered = routers, [], collections.Counter()
        self.lock, self.asking, self.paused, self.over = threading.Lock(), 0, False, False
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(clients)]

    def _run(self, seed):
        dice = random.Random(seed)
        while self._may_ask():
            router = dice.choice(self.routers)
            try:
                problem = self._ask(router, dice)
            except Exception as broken:  # whatever it is, the client has no answer
                problem = broken
            with self.lock:
                self.asking -= 1
                self.answered[router] += not problem
                if problem and router in self.routers:
                    self.bad.append(problem)

    def _may_ask(self):
        while not self.over:
            with self.lock:
                if not self.paused:
                    self.asking += 1
                    return True
            time.sleep(0.01)
        return False

    def _ask(self, router, dice):
        text = f"conversation {dice.randrange(20)} " + "and on " * dice.randrange(1, 200)
        streamed = dice.random() < 0.5
        answer = router.chat({"X-Session-ID": str(dice.randrange(9))}, messages=[{"role": "user", "content": text}],
                             max_tokens=dice.randrange(1, 12), stream=streamed)
        return problem_of(answer, streamed)

    def take_out(self, router):
        self.routers = tuple(other for other in self.routers if other is not router)

    def bring_in(self, router):
        self.routers += (router,)

    def goes_on(self):
        """Each router that is asked answers some more."""
        before = self.answered.copy()
        eventually(lambda: self.bad or all(self.answered[router] >= before[router] + 5 for router in self.routers),
                   "requests are answered")

    @contextlib.contextmanager
    def pause(self):
        """Inside of it no request is on its way."""
        with self.lock:
            self.paused = True
        eventually(lambda: self.asking == 0, "all are answered")
        yield
        self.paused = False

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        for thread in self.threads:
            thread.join()
        assert not self.bad, f"{len(self.bad)} failed, {self.answered.total()} did not: {self.bad[:3]}"
