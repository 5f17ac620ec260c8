"""A Kubernetes API server that does what a test tells it: lists in pages, watches with bookmarks, and
every kind of trouble that a real one makes only now and then.

It is strict: a request that a real server would refuse, or that a careful client does not make, is
refused and kept in `wrong`, which a test should find empty at its end.
"""

import itertools
import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ROOTS = {
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "services": "/api/v1",
    "pods": "/api/v1",
    "inferencepools": "/apis/inference.networking.k8s.io/v1",
}
KINDS = {"endpointslices": "EndpointSlice", "services": "Service", "pods": "Pod", "inferencepools": "InferencePool"}
KNOWN = {"labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion", "allowWatchBookmarks",
         "timeoutSeconds", "resourceVersionMatch"}
GONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired",
        "message": "too old resource version", "code": 410}


def matches(query, item):
    """Equality only: everything else is an error of the test."""
    labels = item["metadata"].get("labels", {})
    for part in filter(None, query.get("labelSelector", [""])[0].split(",")):
        name, value = part.split("=")
        if labels.get(name) != value:
            return False
    for part in filter(None, query.get("fieldSelector", [""])[0].split(",")):
        name, value = part.split("=")
        assert name == "metadata.name", name
        if item["metadata"]["name"] != value:
            return False
    return True


class KubeApi:
    def __init__(self, namespace="ml", page=2, authority=None):
        """With TLS if there is an authority (test_tls.py) to issue a certificate."""
        self.authority = authority
        self.pair = authority.issue("kube-api") if authority else None
        self.namespace = namespace
        self.page = page  # the most objects of one page, whatever the client asks for
        self.objects = {plural: {} for plural in ROOTS}
        self.undefined = set()  # plurals that this cluster does not have
        self.forbidden = set()  # (verb, plural)
        self.tokens = None      # those that are let in; None: everyone
        self.requests = []      # (verb, plural, query)
        self.wrong = []
        self.faults = []        # (verb, plural, name of the fault), each for one request
        self.log = []           # (version, type, plural, object, the object before)
        self.floor = 0          # versions below are compacted
        self.version = 100
        self.changed = threading.Condition()
        self.epoch = 0          # watches of an older one are cut
        self.server = None
        self.port = 0
        self.start()

    # --- the cluster

    def put(self, plural, item):
        with self.changed:
            self.version += 1
            item = json.loads(json.dumps(item))
            metadata = item["metadata"]
            metadata.update(namespace=self.namespace, resourceVersion=str(self.version))
            before = self.objects[plural].get(metadata["name"])
            metadata.setdefault("uid", (before or item)["metadata"].get("uid") or f"uid-{plural}-{self.version}")
            self.objects[plural][metadata["name"]] = item
            self.log.append((self.version, "MODIFIED" if before else "ADDED", plural, item, before))
            self.changed.notify_all()

    def delete(self, plural, name):
        with self.changed:
            self.version += 1
            item = json.loads(json.dumps(self.objects[plural].pop(name)))
            item["metadata"]["resourceVersion"] = str(self.version)
            self.log.append((self.version, "DELETED", plural, item, item))
            self.changed.notify_all()

    def compact(self):
        """Watches end, and no version from before can be resumed."""
        with self.changed:
            self.floor = self.version + 1
            self.version += 1
            self.epoch += 1
            self.changed.notify_all()

    def cut_watches(self):
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()

    def fault(self, verb, plural, kind):
        with self.changed:
            self.faults.append((verb, plural, kind))

    def count(self, verb, plural):
        with self.changed:
            return sum(1 for v, p, _ in self.requests if (v, p) == (verb, plural))

    # --- the server

    @property
    def url(self):
        return f"{'https' if self.pair else 'http'}://127.0.0.1:{self.port}"

    def kubeconfig(self, path, token_file=None):
        user = {"tokenFile": str(token_file)} if token_file else {}
        cluster = {"server": self.url}
        if self.authority:
            cluster["certificate-authority"] = str(self.authority.certificate)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": self.namespace}}]}))
        return path

    def start(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                owner._answer(self)

            def _refuse(self):
                owner.wrong.append(f"{self.command} {self.path}")
                owner._status(self, 405, "MethodNotAllowed")

            do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = _refuse

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, *_):
                pass

            def process_request(self, request, address):
                with owner.changed:
                    owner.connections.add(request)
                super().process_request(request, address)

        self.connections = set()
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        if self.pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.pair)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        """As in a crash: no new connections, and the open ones break."""
        self.cut_watches()
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _status(self, handler, code, reason, headers=(), text=None):
        body = text if text is not None else json.dumps(
            {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}).encode()
        handler.send_response(code)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("content-type", "application/json" if text is None else "text/plain")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _answer(self, handler):
        url = urlsplit(handler.path)
        query = parse_qs(url.query, keep_blank_values=True, strict_parsing=bool(url.query))
        plural = url.path.rsplit("/", 1)[-1]
        verb = "watch" if query.get("watch", ["0"])[0] in ("1", "true") else "list"
        right_path = url.path == f"{ROOTS.get(plural)}/namespaces/{self.namespace}/{plural}"
        if not right_path or set(query) - KNOWN:
            self.wrong.append(handler.path)
            return self._status(handler, 404 if not right_path else 400, "NotFound")
        with self.changed:
            self.requests.append((verb, plural, query))
            fault = next((f for f in self.faults if f[:2] == (verb, plural)), None)
            if fault:
                self.faults.remove(fault)
        token = handler.headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            return self._status(handler, 401, "Unauthorized")
        if (verb, plural) in self.forbidden:
            return self._status(handler, 403, "Forbidden")
        if plural in self.undefined:
            return self._status(handler, 404, "NotFound", text=b"404 page not found\n")
        if fault and self._trouble(handler, fault[2]):
            return None
        return self._watch(handler, plural, query) if verb == "watch" else self._list(handler, plural, query)

    def _trouble(self, handler, kind):
        if kind == "410":
            self._status(handler, 410, "Expired")
        elif kind == "429":
            self._status(handler, 429, "TooManyRequests", [("retry-after", "1")])
        elif kind == "503":
            self._status(handler, 503, "ServiceUnavailable")
        elif kind == "content-type":
            self._status(handler, 200, "", text=b"<html>Sign in to the proxy</html>")
        else:
            chunk = {"410-event": json.dumps({"type": "ERROR", "object": GONE}).encode() + b"\n",
                     "garbage": b"\x00\xff{]garbage\n",
                     "half-line": b'{"type":"MODIFIED","object":{"metadata":{"na',
                     "close": b""}[kind]
            self._head(handler)
            if chunk:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            if kind == "410-event":
                handler.wfile.write(b"0\r\n\r\n")
            handler.close_connection = True
        return True

    def _head(self, handler):
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()

    def _list(self, handler, plural, query):
        with self.changed:
            start, version = 0, self.version
            if "continue" in query:
                version, start = map(int, query["continue"][0].split("-"))
                if version < self.floor:
                    return self._status(handler, 410, "Expired")
            # Pages are those of the list's version in a real server; here tests do not change
            # objects between pages.
            found = [item for _, item in sorted(self.objects[plural].items()) if matches(query, item)]
            size = min(self.page, int(query.get("limit", [self.page])[0]))
            metadata = {"resourceVersion": str(version)}
            if start + size < len(found):
                metadata["continue"] = f"{version}-{start + size}"
            body = json.dumps({"kind": KINDS[plural] + "List", "apiVersion": "v1", "metadata": metadata,
                               "items": found[start:start + size]}).encode()
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
        return None

    @staticmethod
    def _event(query, kind, item, before):
        """As the selector of the watch sees the change; None: not at all."""
        now = kind != "DELETED" and matches(query, item)
        was = before is not None and matches(query, before)
        if now:
            return {"type": "MODIFIED" if was else "ADDED", "object": item}
        return {"type": "DELETED", "object": {**before, "metadata": {
            **before["metadata"], "resourceVersion": item["metadata"]["resourceVersion"]}}} if was else None

    def _watch(self, handler, plural, query):
        if query.get("allowWatchBookmarks", [""])[0] not in ("1", "true") or "timeoutSeconds" not in query \
                or not query.get("resourceVersion", [""])[0].isdigit():
            self.wrong.append(handler.path)
            return self._status(handler, 400, "BadRequest")
        seen = int(query["resourceVersion"][0])
        until = time.monotonic() + int(query["timeoutSeconds"][0])
        self._head(handler)

        def send(event):
            line = json.dumps(event).encode() + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

        with self.changed:
            epoch = self.epoch
            if seen + 1 < self.floor:
                send({"type": "ERROR", "object": GONE})
                handler.wfile.write(b"0\r\n\r\n")
                return None
        for turn in itertools.count(1):
            with self.changed:
                self.changed.wait_for(lambda: self.epoch != epoch or self.version > seen, 1)
                if self.epoch != epoch:
                    handler.close_connection = True
                    return None
                fresh = [entry for entry in self.log if entry[0] > seen]
                seen = self.version
            events = [self._event(query, kind, item, before) for _, kind, name, item, before in fresh if name == plural]
            for event in filter(None, events):
                send(event)
            if turn % 5 == 0:
                send({"type": "BOOKMARK", "object": {"kind": KINDS[plural], "apiVersion": "v1", "metadata": {
                    "resourceVersion": str(seen), "creationTimestamp": None}, "endpoints": None, "ports": None}})
            if time.monotonic() > until:
                handler.wfile.write(b"0\r\n\r\n")
                return None
        return None


# --- objects

def slice_of(name, service, endpoints, port, port_name="http", kind="IPv4"):
    """`endpoints`: (address, conditions, pod's name)."""
    return {"metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}}, "addressType": kind,
            "ports": [{"name": port_name, "protocol": "TCP", "port": port}],
            "endpoints": [{"addresses": [address], "conditions": conditions,
                           "targetRef": {"kind": "Pod", "name": pod, "uid": f"uid-of-{pod}"}}
                          for address, conditions, pod in endpoints]}


def pod_of(name, address, port, labels=None, annotations=None, ready=True):
    return {"metadata": {"name": name, "uid": f"uid-of-{name}", "labels": labels or {},
                         "annotations": annotations or {}},
            "spec": {"containers": [{"name": "engine", "image": "engine",
                                     "ports": [{"name": "http", "containerPort": port}]}]},
            "status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
                       "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}


READY = {"ready": True, "serving": True, "terminating": False}
NOT_READY = {"ready": False, "serving": False, "terminating": False}
TERMINATING = {"ready": False, "serving": True, "terminating": True}
