"""Stands between a router and a worker, passes everything on, and shows what the router has sent."""

import socket
import threading

from fake_engine import Request


class Wiretap:
    def __init__(self, worker):
        self.worker = worker
        self.sent = []  # one bytearray per connection
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass
        self.listener.close()

    def requests(self, target=None):
        """Those that are complete, in the order of their connections."""
        every = [request for sent in list(self.sent) for request in parse_requests(bytes(sent))]
        return [request for request in every if target in (None, request.target)]

    def _accept(self):
        while True:
            try:
                router, _ = self.listener.accept()
            except OSError:
                return
            worker = socket.create_connection(("127.0.0.1", self.worker.port))
            self.sent.append(bytearray())
            for source, sink, record in ((router, worker, self.sent[-1]), (worker, router, None)):
                threading.Thread(target=pump, args=(source, sink, record), daemon=True).start()


def pump(source, sink, record):
    try:
        while data := source.recv(1 << 16):
            if record is not None:
                record += data
            sink.sendall(data)
    except OSError:
        pass
    for end, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
        try:
            end.shutdown(how)
        except OSError:
            pass


def parse_requests(data):
    requests = []
    while b"\r\n\r\n" in data:
        head, data = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [(name.lower(), value.strip()) for name, value in (line.split(":", 1) for line in lines)]
        size = int(dict(headers).get("content-length", 0))
        if len(data) < size:
            break
        method, target, _ = first.split(" ")
        requests.append(Request(method, target, headers, data[:size], size))
        data = data[size:]
    return requests
