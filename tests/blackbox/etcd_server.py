"""A real etcd (Debian's etcd-server, or the one that the variable ETCD names), on loopback."""

import base64
import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import wire
from wire import eventually

ETCD = os.environ.get("ETCD") or shutil.which("etcd")


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class EtcdServer:
    """Data, ports and settings survive a restart."""

    def __init__(self, folder, pair=None):
        self.folder = folder
        self.port, self.peer_port = wire.free_port(), wire.free_port()
        self.scheme = "https" if pair else "http"
        self.pair = pair
        self.generation = 0
        self.token = None
        self.popen = None
        self.start()

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        client, peer = f"{self.scheme}://{self.host}", f"http://127.0.0.1:{self.peer_port}"
        flags = ["--data-dir", self.folder / f"data{self.generation}", "--name", "one",
                 "--listen-client-urls", client, "--advertise-client-urls", client,
                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"one={peer}", "--log-level", "error"]
        flags += ["--initial-cluster-token", f"cluster{self.generation}"]
        if self.pair:
            flags += ["--cert-file", self.pair[0], "--key-file", self.pair[1]]
        with open(self.folder / "etcd.log", "ab") as sink:
            self.popen = subprocess.Popen([ETCD, *map(str, flags)], stdin=subprocess.DEVNULL,
                                          stdout=sink, stderr=sink)
        eventually(self._answers, "etcd answers")

    def _answers(self):
        assert self.popen.poll() is None, (self.folder / "etcd.log").read_text()[-2000:]
        try:
            return self.ask("maintenance/status", {})
        except urllib.error.HTTPError as refused:
            return refused.code in (400, 401, 403)  # with accounts, to a token of before a restart
        except OSError:
            return False

    def ask(self, path, body):
        request = urllib.request.Request(f"{self.scheme}://{self.host}/v3/{path}", json.dumps(body).encode())
        if self.token:
            request.add_header("Authorization", self.token)
        context = ssl._create_unverified_context() if self.pair else None
        with urllib.request.urlopen(request, timeout=wire.PATIENCE, context=context) as answer:
            return json.loads(answer.read())

    def put(self, key, value):
        return self.ask("kv/put", {"key": encoded(key), "value": encoded(value)})

    def delete(self, key):
        self.ask("kv/deleterange", {"key": encoded(key)})

    def keys(self, prefix="fleet/"):
        """Values by key."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        found = self.ask("kv/range", {"key": encoded(prefix), "range_end": encoded(end)})
        plain = lambda text: base64.b64decode(text).decode()
        return {plain(pair["key"]): plain(pair["value"]) for pair in found.get("kvs", [])}

    def compact(self):
        revision = self.put("elsewhere", "x")["header"]["revision"]
        self.ask("kv/compaction", {"revision": revision, "physical": True})

    def enable_accounts(self, user, password):
        """`user` may use the keys below fleet/ and nothing else."""
        self.ask("auth/user/add", {"name": "root", "password": "root-secret"})
        self.ask("auth/user/grant", {"user": "root", "role": "root"})
        self.ask("auth/role/add", {"name": "fleet"})
        self.ask("auth/role/grant", {"name": "fleet", "perm": {
            "permType": "READWRITE", "key": encoded("fleet/"), "range_end": encoded("fleet0")}})
        self.ask("auth/user/add", {"name": user, "password": password})
        self.ask("auth/user/grant", {"user": user, "role": "fleet"})
        self.ask("auth/enable", {})
        self.log_in()

    def log_in(self):
        self.token = None
        self.token = self.ask("auth/authenticate", {"name": "root", "password": "root-secret"})["token"]

    def kill(self):
        self.popen.kill()
        self.popen.wait()

    def replace(self):
        """Another cluster without data takes its place."""
        self.kill()
        self.generation += 1
        self.start()

    def pause(self):
        self.popen.send_signal(signal.SIGSTOP)

    def resume(self):
        self.popen.send_signal(signal.SIGCONT)
