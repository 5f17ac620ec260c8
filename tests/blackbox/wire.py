"""HTTP/1.1 over a plain socket: the tests decide every byte that is sent and see every byte that
comes back."""

import itertools
import json
import random
import socket
import time
from dataclasses import dataclass

PATIENCE = 60  # seconds; a sanitizer build on a busy machine is slow


class Truncated(Exception):
    """The peer ended the connection before the answer was complete."""


@dataclass
class Answer:
    status: int
    reason: str
    headers: list  # (lower-case name, value), in order
    body: bytes = b""
    version: str = "HTTP/1.1"

    def header(self, name, default=None):
        return next((value for key, value in self.headers if key == name), default)

    def json(self):
        return json.loads(self.body)

    def text(self):
        return self.body.decode()

    @property
    def worker(self):
        return self.header("x-fathom-worker")

    @property
    def error(self):
        """The error object, which must have exactly OpenAI's members; a renamed code has its former name beside it."""
        error = self.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        assert isinstance(error["message"], str) and error["message"], error
        return error


class Connection:
    def __init__(self, port, host="127.0.0.1", tls=None, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Leaves as a killed process does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    # --- sending

    def send(self, data):
        self.socket.sendall(data)

    def request(self, method, target, body=None, headers=()):
        self.send(request_bytes(method, target, body, headers))

    # --- receiving

    def more(self):
        """Reads what is there; False at the end of the connection."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionError:
            return False
        self.buffer += data
        return bool(data)

    def take(self, size):
        while len(self.buffer) < size:
            if not self.more():
                raise Truncated(f"{len(self.buffer)} bytes of {size}")
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def take_line(self):
        while b"\r\n" not in self.buffer:
            if not self.more():
                raise Truncated(f"no line end in {self.buffer[:200]!r}")
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def read_head(self):
        version, status, reason = (self.take_line().decode("latin-1") + " ").split(" ", 2)
        headers = []
        while line := self.take_line().decode("latin-1"):
            name, value = line.split(":", 1)
            headers.append((name.lower(), value.strip()))
        return Answer(int(status), reason.strip(), headers, version=version)

    def pieces(self, head, method="GET"):
        """The body as it comes."""
        if method == "HEAD" or head.status in (204, 304) or head.status < 200:
            return
        if head.header("transfer-encoding") == "chunked":
            while size := int(self.take_line().split(b";")[0], 16):
                yield self.take(size)
                assert self.take(2) == b"\r\n"
            while self.take_line():  # trailers
                pass
        elif head.header("content-length") is not None:
            left = int(head.header("content-length"))
            while left > 0:
                if not self.buffer and not self.more():
                    raise Truncated(f"{left} bytes are missing")
                piece = self.take(min(left, len(self.buffer)))
                left -= len(piece)
                yield piece
        else:
            while self.buffer or self.more():
                yield self.take(len(self.buffer))

    def read_answer(self, method="GET"):
        answer = self.read_head()
        answer.body = b"".join(self.pieces(answer, method))
        return answer

    def events(self, head):
        """The data of each server-sent event, as it comes."""
        text = b""
        for piece in self.pieces(head):
            text += piece
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                assert event.startswith(b"data: "), event
                yield event[len("data: "):].decode()
        assert not text, f"a torn event: {text!r}"

    def ended(self, within=PATIENCE):
        """True if the peer closes, without sending anything more."""
        self.socket.settimeout(within)
        try:
            return not self.buffer and not self.more()
        except TimeoutError:
            return False
        finally:
            self.socket.settimeout(PATIENCE)

    def rest(self):
        """Everything until the peer closes."""
        while self.more():
            pass
        data, self.buffer = self.buffer, b""
        return data


def request_bytes(method, target, body=None, headers=()):
    if isinstance(body, str):
        body = body.encode()
    elif body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1"]
    headers = dict(headers)
    names = {name.lower() for name in headers}
    if "host" not in names:
        lines.append("Host: localhost")
    if body is not None and not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    if body is not None and "content-type" not in names:
        lines.append("Content-Type: application/json")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


def ask(port, method, target, body=None, headers=(), tls=None):
    """One request on a connection of its own."""
    with Connection(port, tls=tls) as connection:
        connection.request(method, target, body, headers)
        return connection.read_answer(method)


def get(port, target, headers=(), tls=None):
    return ask(port, "GET", target, headers=headers, tls=tls)


def chat_body(**fields):
    body = {"model": "mock-model", "messages": [{"role": "user", "content": "hello there"}]}
    body.update(fields)
    return body


def chat(port, headers=(), tls=None, **fields):
    return ask(port, "POST", "/v1/chat/completions", chat_body(**fields), headers, tls)


class Stream:
    """A streamed chat that has been asked for. The answer's head is read with the first event."""

    def __init__(self, port, headers=(), **fields):
        self.connection = Connection(port)
        body = chat_body(stream=True, **fields)
        self.connection.request("POST", "/v1/chat/completions", body, headers)
        self._head = self._events = None

    @property
    def head(self):
        if self._head is None:
            self._head = self.connection.read_head()
            self._events = self.connection.events(self._head)
        return self._head

    def next(self):
        assert self.head.status == 200, self.head
        return next(self._events)

    def rest(self):
        assert self.head.status == 200, self.head
        return list(self._events)

    def close(self):
        self.connection.close()


def texts(events):
    """The text that the events of a streamed chat carry."""
    found = []
    for event in events:
        if event != "[DONE]":
            found += [c["delta"].get("content") or "" for c in json.loads(event).get("choices", [])]
    return "".join(found)


# Ports come in ranges that one process of the tests holds at a time: between the look at a port and
# the server that takes it, nobody else may be given the same one. The name of a socket is the claim;
# it ends with its process, and is valid where the ports are.
_RANGE = 100
_RANGES = range(100, 320)  # below the ports that the kernel gives to connections
_claims = []  # the last few ranges: a server that restarts comes back to its port
_ports = iter(())


def _claim_range():
    while True:
        number = random.choice(_RANGES)
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0fathom-tests-ports-{number}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        if len(_claims) > 5:
            _claims.pop(0).close()
        return iter(range(number * _RANGE, (number + 1) * _RANGE))


def free_port(count=1):
    """A port that nobody has, with so many after it."""
    global _ports
    while True:
        found = list(itertools.islice(_ports, count))
        if len(found) < count:
            _ports = _claim_range()
            continue
        try:
            for port in found:
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return found[0]


def eventually(condition, what, patience=PATIENCE):
    """Waits until the condition holds, and returns its value."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {patience} s: {what}"
        time.sleep(0.02)
    return value
