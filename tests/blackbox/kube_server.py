"""A Kubernetes API that only has what a test puts there, over TLS, and remembers every request."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ROOTS = {
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "leaderworkersets": "/apis/leaderworkerset.x-k8s.io/v1",
    "dynamographdeployments": "/apis/nvidia.com/v1alpha1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "pods": "/api/v1",
}


class KubeServer:
    """`objects` maps a plural to a list of objects of namespace `ml`; a plural that maps to a number
    is answered with that status. `logs` maps "pod/container" to a text. Lists come in pages of two.
    With `token` or `client_ca` nobody else is let in."""

    def __init__(self, authority, objects=None, logs=None, token=None, client_ca=None):
        self.authority = authority
        self.objects = objects or {}
        self.logs = logs or {}
        self.token = token
        self.client_ca = client_ca
        self.requests = []  # (method, target, headers)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("kubernetes"))
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _handler(self):
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self):
                owner.requests.append((self.command, self.path, dict(self.headers)))
                status, body = owner._page(self.path, self.headers.get("authorization"))
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _answer

            def log_message(self, *_):
                pass

        return Handler

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def _page(self, target, authorization):
        if self.token and authorization != f"Bearer {self.token}":
            return 401, b"{}"
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if path.endswith("/log"):
            return self._log(path, query)
        plural = path.rsplit("/", 1)[-1]
        if path != f"{ROOTS.get(plural)}/namespaces/ml/{plural}":
            return 404, b"{}"
        found = self.objects.get(plural, [])
        if isinstance(found, int):
            return found, b"{}"
        return 200, self._list(found, int(query.get("continue", ["0"])[0]))

    @staticmethod
    def _list(found, start):
        rest = len(found) - start - 2
        metadata = {"continue": str(start + 2), "remainingItemCount": rest} if rest > 0 else {}
        return json.dumps({"metadata": metadata, "items": found[start:start + 2]}).encode()

    def _log(self, path, query):
        pod, container = path.split("/")[-2], query["container"][0]
        text = self.logs.get(f"{pod}/{container}")
        if text is None:
            return 404, b"{}"
        lines = text.splitlines(keepends=True)[-int(query["tailLines"][0]):]
        return 200, "".join(lines).encode()

    def kubeconfig(self, folder, user, **cluster):
        """A file whose current context is this server; `user` is what the user has."""
        authorities = base64.b64encode(self.authority.certificate.read_bytes()).decode()
        whole = {"server": self.url, "certificate-authority-data": authorities, **cluster}
        path = folder / "kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{"name": "test",
                          "context": {"cluster": "c", "user": "u", "namespace": "ml"}}],
            "clusters": [{"name": "c", "cluster": whole}],
            "users": [{"name": "u", "user": user}]}))
        return path


def workload(name, image, args=(), env=None, replicas=1):
    """What a list of Deployments or StatefulSets has: no kind, and a status."""
    container = {"name": "main", "image": image, "args": list(args),
                 "env": [{"name": key, "value": value} for key, value in (env or {}).items()]}
    return {"metadata": {"name": name, "namespace": "ml", "managedFields": [{"manager": "kubectl"}]},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [container]}}},
            "status": {"readyReplicas": replicas}}


def pod(name, image, args=(), owner="ReplicaSet", ready=True, restarts=0, last_ended=None):
    status = {"name": "main", "ready": ready, "restartCount": restarts, "imageID": image,
              "state": {"running": {}}}
    if last_ended:
        status["lastState"] = {"terminated": {"reason": last_ended, "exitCode": 137}}
    owners = [{"kind": owner, "name": name.rsplit("-", 1)[0], "controller": True}] if owner else []
    return {"metadata": {"name": name, "namespace": "ml", "ownerReferences": owners},
            "spec": {"nodeName": "gpu-1",
                     "containers": [{"name": "main", "image": image, "args": list(args)}]},
            "status": {"phase": "Running", "containerStatuses": [status],
                       "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}
