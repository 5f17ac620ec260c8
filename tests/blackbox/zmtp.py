"""ZeroMQ's wire protocol, byte by byte, for peers that misbehave."""

import socket
import struct
import threading

import wire

MORE, LONG, COMMAND = 1, 2, 4


def greeting(mechanism=b"NULL", server=False):
    return (b"\xff" + bytes(8) + b"\x7f\x03\x01" + mechanism.ljust(20, b"\0")
            + bytes([server]) + bytes(31))


def frame(flags, body):
    if len(body) > 255:
        return bytes([flags | LONG]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def command(name, data):
    return frame(COMMAND, bytes([len(name)]) + name + data)


def ready(kind=b"PUB"):
    return command(b"READY", b"\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


class RawPublisher:
    """A publisher that connects, and then sends whatever a test wants."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=wire.PATIENCE)
        self.socket.sendall(greeting() + ready())

    def flood(self, piece, most):
        """Sends the bytes again and again; how many were taken before the peer hung up."""
        sent = 0
        try:
            while sent < most:
                self.socket.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        return sent

    def ended(self):
        """Whether the peer has hung up."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            pass
        return True

    def close(self):
        self.socket.close()


class RawEngine(threading.Thread):
    """A publisher that is connected to, and sends every subscriber the same bytes for ever."""

    def __init__(self, piece):
        super().__init__(daemon=True)
        self.piece = piece
        self.subscribers = 0
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.subscribers += 1
            try:
                peer.sendall(greeting() + ready())
                while True:
                    peer.sendall(self.piece)
                    self.sent += len(self.piece)
            except OSError:
                peer.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
