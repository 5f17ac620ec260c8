"""A name server of the tests' own, over UDP: slow, silent or wrong where a test wants it."""

import socket
import struct
import threading
from dataclasses import dataclass, field

NXDOMAIN, SERVFAIL = 3, 2


@dataclass
class Name:
    addresses: list = field(default_factory=list)  # IPv4
    ttl: int = 60
    silent: bool = False
    rcode: int = 0


class DnsServer:
    """Answers for the names that were set; all others do not exist."""

    def __init__(self):
        self.names = {}
        self.asked = []  # names, in the order of the questions for IPv4 addresses
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def set(self, name, *addresses, **options):
        self.names[name] = Name(list(addresses), **options)

    def stop(self):
        self.socket.close()

    def _run(self):
        while True:
            try:
                question, peer = self.socket.recvfrom(4096)
                answer = self._answer(question)
                if answer:
                    self.socket.sendto(answer, peer)
            except OSError:
                return

    def _answer(self, message):
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]].decode())
            at += 1 + message[at]
        name, ipv4 = ".".join(labels), message[at + 2] == 1
        if ipv4:
            self.asked.append(name)
        known = self.names.get(name, Name(rcode=NXDOMAIN))
        if known.silent:
            return None
        records = known.addresses if ipv4 and known.rcode == 0 else []
        head = message[:2] + struct.pack(">HHHHH", 0x8580 | known.rcode, 1, len(records), 0, 0)
        return head + message[12:at + 5] + b"".join(
            struct.pack(">HHHIH", 0xC00C, 1, 1, known.ttl, 4) + socket.inet_aton(address)
            for address in records)
