"""Routers of one group that connect to each other over ZeroMQ."""

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
