"""A real nats-server (Debian's, or the one that the variable NATS_SERVER names), and a client of few lines."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading

import pytest

import wire
from wire import eventually

NATS_SERVER = os.environ.get("NATS_SERVER") or shutil.which("nats-server")


class NatsServer:
    """Port and settings survive a restart."""

    def __init__(self, folder, *args):
        self.folder, self.args, self.port = folder, args, wire.free_port()
        self.start()

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def start(self):
        flags = ["--addr", "127.0.0.1", "--port", self.port, *self.args]
        with open(self.folder / "nats.log", "ab") as sink:
            self.popen = subprocess.Popen([NATS_SERVER, *map(str, flags)], stdin=subprocess.DEVNULL,
                                          stdout=sink, stderr=sink)
        eventually(self._answers, "nats-server listens")

    def _answers(self):
        assert self.popen.poll() is None, (self.folder / "nats.log").read_text()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.popen.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.popen.send_signal(signal.SIGCONT)

    def kill(self):
        self.popen.kill()
        self.popen.wait()


@contextlib.contextmanager
def running(folder):
    """Until the test ends. Where there is none the test is skipped, visibly."""
    if not NATS_SERVER:
        pytest.skip("no nats-server on this machine")
    folder.mkdir()
    server = NatsServer(folder)
    try:
        yield server
    finally:
        server.go_on()
        server.kill()


class NatsClient:
    """Hears everything that is published, and publishes anything."""

    def __init__(self, port, subject="fathom.>"):
        self.heard = []  # (subject, payload)
        self.on_message = None
        self.socket = socket.create_connection(("127.0.0.1", port), wire.PATIENCE)
        self.file = self.socket.makefile("rb")
        assert self.file.readline().startswith(b"INFO ")
        self._send(b'CONNECT {"verbose":false,"echo":false}\r\n')
        self._send(b"SUB " + subject.encode() + b" 1\r\nPING\r\n")
        while not self.file.readline().startswith(b"PONG"):
            pass
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, data):
        self.socket.sendall(data)

    def _read(self):
        try:
            while line := self.file.readline():
                if line.startswith(b"PING"):
                    self._send(b"PONG\r\n")
                if not line.startswith(b"MSG "):
                    continue
                words = line.split()
                payload = self.file.read(int(words[-1]) + 2)[:-2]
                self.heard.append((words[1].decode(), payload))
                if self.on_message:
                    self.on_message(payload)
        except (OSError, ValueError):
            pass  # closed

    def publish(self, subject, payload):
        self._send(b"PUB %s %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))

    def close(self):
        self.socket.close()
