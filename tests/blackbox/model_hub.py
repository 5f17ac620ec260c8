"""A hub of models, as much of it as a download of small files needs, and the cache that it is downloaded to."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tokenizers import byte_alphabet

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"


def small_files():
    """A model whose tokens are bytes."""
    tokenizer = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {shown: byte for byte, shown in byte_alphabet().items()}, "merges": []}}
    return {"tokenizer.json": json.dumps(tokenizer).encode(),
            "tokenizer_config.json": json.dumps({"chat_template": TEMPLATE}).encode(),
            "config.json": b'{"model_type": "tiny"}'}


def folder_with(folder, files=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (files or small_files()).items():
        (folder / name).write_bytes(content)
    return folder


def cache_with(hub, name, files=None, commit=COMMIT):
    """The layout of Hugging Face's tools. `hub` is the folder that HF_HUB_CACHE names."""
    model = hub / ("models--" + name.replace("/", "--"))
    snapshot = model / "snapshots" / commit
    for folder in (snapshot, model / "blobs", model / "refs"):
        folder.mkdir(parents=True, exist_ok=True)
    for file, content in (files or small_files()).items():
        etag = hashlib.sha1(content).hexdigest()
        (model / "blobs" / etag).write_bytes(content)
        (snapshot / file).symlink_to(f"../../blobs/{etag}")
    (model / "refs/main").write_text(commit)
    return snapshot


class Server:
    """Answers GET with `answer(path, headers)`: status, headers, body, or a function that writes to the handler."""

    def __init__(self, answer):
        self.requests = []  # (path, headers with lower-case names)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                answered = answer(self.path, self.headers)
                if callable(answered):
                    answered(self)
                    self.close_connection = True
                    return
                status, headers, body = answered
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Hub(Server):
    """One model, org/tiny. Its tokenizer lies on another server, as large files do."""

    def __init__(self, token=None, commit=COMMIT):
        self.token = token
        self.commit = commit
        self.files = small_files()
        self.strange = {}  # file: what is answered in place of it
        self.store = Server(self._stored)
        super().__init__(self._answer)

    def stop(self):
        super().stop()
        self.store.stop()

    def asked(self):
        return [path.rsplit("/", 1)[1] for path, _ in self.requests]

    def _stored(self, path, headers):
        assert path.startswith("/blob?"), path
        return 200, {"ETag": '"of-the-store"'}, self.files["tokenizer.json"]

    def _answer(self, path, headers):
        if self.token and headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"X-Error-Code": "RepoNotFound"}, b"Invalid username or password."
        parts = path.split("/")
        if parts[1:3] != ["org", "tiny"]:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if parts[4] not in ("main", self.commit):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        file = parts[5]
        known = {"X-Repo-Commit": self.commit}
        if file in self.strange:
            return self.strange[file]
        if file not in self.files:
            return 404, {**known, "X-Error-Code": "EntryNotFound"}, b"Entry not found"
        etag = hashlib.sha1(self.files[file]).hexdigest()
        if file == "tokenizer.json":
            size = str(len(self.files[file]))
            return 302, {**known, "Location": f"{self.store.url}/blob?sig=a%2Fb", "X-Linked-ETag": f'"{etag}"',
                         "X-Linked-Size": size, "ETag": '"of-the-pointer"'}, b""
        return 200, {**known, "ETag": f'"{etag}"'}, self.files[file]
