"""A rolling restart of engines behind a Service, under constant load: the same for a scripted API
server and for a real one."""

import threading

import wire
from kube_api import NOT_READY, READY, TERMINATING, slice_of
from wire import eventually


class Load:
    """Clients that always have a request under way, every other one a stream."""

    def __init__(self, router, clients=4):
        self.router = router
        self.answered = 0
        self.failures = []
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def _run(self, number):
        turn = number
        while not self.ending.is_set():
            turn += 1
            failure = self._send(f"client {number}, turn {turn}", turn % 2 == 0)
            with self.lock:
                self.answered += 1
                if failure:
                    self.failures.append(failure)

    def _send(self, text, streams):
        messages = [{"role": "user", "content": text}]
        try:
            if streams:
                stream = wire.Stream(self.router.port, messages=messages)
                try:
                    events = stream.rest()
                finally:
                    stream.close()
                return None if events and events[-1] == "[DONE]" else f"{text}: a broken stream"
            answer = self.router.chat(messages=messages)
            return None if answer.status == 200 else f"{text}: {answer.status} {answer.body[:200]}"
        except Exception as problem:  # whatever it is, the request has failed
            return f"{text}: {problem!r}"

    def goes_on(self, count=12):
        """Some more requests have begun and ended."""
        target = self.answered + count
        eventually(lambda: self.answered >= target, "the load goes on")


class Service:
    """Engines as endpoints of a Service, each in a slice of its own: they have one address and many
    ports."""

    def __init__(self, cluster, address, name="vllm"):
        self.cluster = cluster
        self.address = address
        self.name = name
        self.count = 0

    def add(self, mock, conditions=READY):
        self.count += 1
        mock.pod = f"{self.name}-{self.count}"
        self.set(mock, conditions)

    def set(self, mock, conditions):
        self.cluster.put("endpointslices", slice_of(
            mock.pod, self.name, [(self.address, conditions, mock.pod)], mock.port))

    def remove(self, mock):
        self.cluster.delete("endpointslices", mock.pod)

    def entry(self, router, mock):
        """None: the router does not have it."""
        url = f"http://{self.address}:{mock.port}"
        entries = router.get("/workers").json()["workers"]
        return next((entry for entry in entries if entry["url"] == url), None)

    def becomes(self, router, mock, state):
        def look():
            entry = self.entry(router, mock)
            return (entry or {}).get("state") == state and entry
        return eventually(look, f"{mock.pod} is {state}")

    def leaves(self, router, mock):
        eventually(lambda: self.entry(router, mock) is None, f"{mock.pod} has left")


def roll(service, router, old, start):
    """Replaces each engine by one that `start` makes. Returns the new ones."""
    fresh = []
    with Load(router) as load:
        load.goes_on()
        for mock in old:
            new = start()
            service.add(new, NOT_READY)
            service.becomes(router, new, "unready")
            service.set(new, READY)
            service.becomes(router, new, "ready")
            fresh.append(new)
            load.goes_on()
            service.set(mock, TERMINATING)
            service.becomes(router, mock, "draining")
            # The event was seen. What was chosen just before may still be counted, but no more.
            sent = service.entry(router, mock)["requests"]
            load.goes_on()
            assert service.entry(router, mock)["requests"] == sent, "sent to a pod that ends"
            eventually(lambda: service.entry(router, mock)["in_flight"] == 0, "its requests have ended")
            mock.signal(15)
            mock.wait()
            service.remove(mock)
        load.goes_on()
    assert not load.failures, load.failures[:5]
    for mock in old:
        service.leaves(router, mock)
    return fresh
