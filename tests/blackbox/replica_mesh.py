"""Routers of one group that connect to each other over ZeroMQ, and one that listens among them and is none of them."""

import threading

import zmq

import wire

KEY = b"a key that only the group has"


class Mesh:
    """`common` are flags of all of them. Who starts again under its name comes back to its port."""

    def __init__(self, world, *common, names="abc"):
        self.world, self.common = world, common
        self.key_file = world.folder / "replica.key"
        self.key_file.write_bytes(KEY)
        self.ports = {name: wire.free_port() for name in names}

    def carrier(self, name):
        peers = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return ["--replicas", f"zmq://{peers}", "--replica-listen", f"127.0.0.1:{self.ports[name]}"]

    def start(self, name, *args, workers=(), ready=None, key_file=None):
        return self.world.serve(*self.common, *self.carrier(name), "--replica-id", name, "--replica-key-file",
                                key_file or self.key_file, "--replica-timeout", "2s", *args, workers=workers,
                                ready=ready)


class MeshClient:
    """Hears at a router's port what the others tell that router, and publishes anything to others' ports."""

    def __init__(self, port, others):
        self.heard = []  # (subject, payload), as NatsClient has them
        self.on_message = None
        self.context, self.lock, self.over = zmq.Context(), threading.Lock(), False
        self.inbox, self.outbox = self.context.socket(zmq.SUB), self.context.socket(zmq.PUB)
        self.outbox.hwm = 0
        self.inbox.subscribe(b"")
        self.inbox.bind(f"tcp://127.0.0.1:{port}")
        for other in others:
            self.outbox.connect(f"tcp://127.0.0.1:{other}")
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while not self.over:
            if self.inbox.poll(50):
                payload = self.inbox.recv()
                self.heard.append(("", payload))
                if self.on_message:
                    self.on_message(payload)

    def publish(self, _, payload):
        with self.lock:
            self.outbox.send(payload)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.context.destroy(linger=0)
