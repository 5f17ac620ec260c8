"""A network that can be cut."""

import socket
import threading


class Proxy:
    """Passes bytes on, until it is cut: then it is silent, as a network that loses everything."""

    def __init__(self, target):
        self.target, self.cut = target, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one, other):
        try:
            while data := one.recv(1 << 16):
                if not self.cut.is_set():
                    other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            end.close()
