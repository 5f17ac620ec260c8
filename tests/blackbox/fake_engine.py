"""An engine in Python whose every byte the test decides, for what `fathom mock` cannot do."""

import json
import socket
import threading
from dataclasses import dataclass

import wire


@dataclass
class Request:
    method: str
    target: str
    headers: list  # (lower-case name, value), in order
    body: bytes
    size: int  # of the body, also when it was thrown away

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)


class FakeEngine:
    """Answers GET /health and /v1/models. Each POST goes to `answer(request, connection)`, which
    writes to the socket; the connection is closed when it returns. Questions for tokens are
    refused and not kept, unless the answer has a `tokenize`. `keep_bodies=False` throws bodies away
    as they come; `pages_of` is an engine that its pages are taken from."""

    def __init__(self, answer, model="mock-model", tls=None, keep_bodies=True, pages_of=None):
        self.answer = answer
        self.model = model
        self.tls = tls
        self.keep_bodies = keep_bodies
        self.pages_of = pages_of
        self.requests = []
        self.released = threading.Event()  # for answers that wait until the test ends
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://{'localhost' if tls else '127.0.0.1'}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        self.released.set()
        self.close_listener()

    def close_listener(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            with connection:
                request = self._read(connection)
                if request is None:
                    return
                if request.method == "GET":
                    connection.sendall(self._page(request.target))
                elif request.target.endswith("/tokenize") and not hasattr(self.answer, "tokenize"):
                    connection.sendall(whole_answer("{}", "404 Not Found"))
                else:
                    self.requests.append(request)
                    self.answer(request, connection)
        except OSError:
            pass  # the router has left, which some tests want

    def _page(self, target):
        if self.pages_of:
            answer = wire.ask(self.pages_of.port, "GET", target)
            return whole_answer(answer.text(), f"{answer.status} X", answer.header("content-type") or "text/plain")
        models = {"object": "list", "data": [{"id": self.model, "object": "model"}]}
        return whole_answer(json.dumps(models) if target == "/v1/models" else "{}")

    def _read(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(1 << 16)
            if not piece:
                return None
            data += piece
        head, rest = data.split(b"\r\n\r\n", 1)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = [(k.lower(), v.strip()) for k, v in (line.split(":", 1) for line in lines)]
        length = int(dict(headers).get("content-length", 0))
        body, size = [rest], len(rest)
        room = bytearray(1 << 20)
        while size < length:
            got = connection.recv_into(room)
            if not got:
                return None
            size += got
            if self.keep_bodies:
                body.append(bytes(room[:got]))
        method, target, _ = first.split(" ")
        return Request(method, target, headers, b"".join(body), size)


def whole_answer(body, status="200 OK", content_type="application/json", headers=()):
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}",
             "connection: close", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


STREAM_HEAD = (b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
               b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n")  # as it does
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def token_event(text, finish_reason=None):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}
    event = {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}
    return chunk(b"data: " + json.dumps(event).encode() + b"\n\n")


DONE_EVENT = chunk(b"data: [DONE]\n\n")
