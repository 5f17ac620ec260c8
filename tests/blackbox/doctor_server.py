"""A router, an engine or a Dynamo frontend that only has pages, and remembers every request: what
the doctor makes of any answer, and that it asks nothing that could change anything."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# All that the doctor may send, by method and path. The last two take something away from
# TensorRT-LLM, so they need --drain there.
READ_ONLY = {
    ("GET", path)
    for path in (
        "/live", "/ready", "/health", "/metrics", "/debug/decisions", "/debug/index", "/v1/models",
        "/workers", "/version", "/kv_event_sources", "/server_info", "/get_server_info",
        "/v1/loads", "/prometheus/metrics",
    )
} | {("POST", "/tokenize")}
DRAINS = {("GET", "/metrics"), ("POST", "/kv_cache_events")}


class DoctorServer:
    """`pages` maps "GET /path" (or a path alone, for GET) to a body or to (status, body); a body
    that is no string becomes JSON. What is not there is a 404. Pages may be changed at any time."""

    def __init__(self, pages):
        self.pages = dict(pages)
        self.requests = []  # (method, target, headers, body)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                owner.requests.append((self.command, self.path, dict(self.headers), body))
                status, page = owner._page(self.command, urlsplit(self.path).path)
                self.send_response(status)
                self.send_header("content-length", str(len(page)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(page)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def _page(self, method, path):
        page = self.pages.get(f"{method} {path}")
        if page is None and method == "GET":
            page = self.pages.get(path)
        if page is None:
            return 404, b"{}"
        status, body = page if isinstance(page, tuple) else (200, page)
        if not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        return status, body.encode() if isinstance(body, str) else body

    def asked(self):
        """(method, path) of every request, in the order in which they came."""
        return [(method, urlsplit(target).path) for method, target, _, _ in self.requests]

    def assert_only_read(self, drains=False):
        """`drains`: it is TensorRT-LLM, for which fewer requests are harmless."""
        allowed = READ_ONLY - DRAINS if drains else READ_ONLY
        wrong = [request for request in self.asked() if request not in allowed]
        assert not wrong, wrong


def models_page(owner, name="mock-model", max_model_len=4096):
    card = {"id": name, "object": "model", "created": 1, "owned_by": owner, "root": name}
    if owner != "tensorrt_llm":
        card["max_model_len"] = max_model_len
    return {"object": "list", "data": [card]}


def vllm_pages(block_size=16, port=5557, publisher="zmq", replay=None, prefix_caching=True,
               **counters):
    """Of one rank. Counters are by the metric's name without "vllm:"."""
    labels = (f'block_size="{block_size}",cache_dtype="auto",enable_prefix_caching="{prefix_caching}"'
              ',engine="0",gpu_memory_utilization="0.92",num_gpu_blocks="1000"')
    lines = [f"vllm:cache_config_info{{{labels}}} 1.0"]
    lines += [f'vllm:{name}{{engine="0"}} {value}' for name, value in counters.items()]
    return {
        "/v1/models": models_page("vllm"),
        "/version": {"version": "0.32.0"},
        "/health": "",
        "/kv_event_sources": {"0": {
            "enable_kv_cache_events": publisher == "zmq", "publisher": publisher,
            "endpoint": f"tcp://*:{port}", "replay_endpoint": replay, "buffer_steps": 10000,
            "hwm": 100000, "max_queue_size": 100000, "topic": ""}},
        "/metrics": "\n".join(lines) + "\n",
    }


def sglang_pages(page_size=1, kv_events=None, radix_cache=True, **info):
    return {
        "/v1/models": models_page("sglang"),
        "/server_info": {
            "version": "0.5.23", "page_size": page_size, "max_total_num_tokens": 65536,
            "dp_size": 1, "context_length": 4096, "max_running_requests": 64,
            "mem_fraction_static": 0.85, "kv_cache_dtype": "auto",
            "disable_radix_cache": not radix_cache, "kv_events_config": None,
            "kv_events": kv_events, **info},
    }


def trtllm_pages(tokens_per_block=32):
    """/metrics and /kv_cache_events are there, to catch who reads them."""
    return {
        "/v1/models": models_page("tensorrt_llm"),
        "/version": {"version": "1.2.0"},
        "/health": "",
        "/metrics": [],
        "POST /kv_cache_events": [],
        "/prometheus/metrics": f"trtllm_kv_cache_tokens_per_block {tokens_per_block}\n"
                               "trtllm_kv_cache_max_blocks 1000\n",
    }


def dynamo_pages(block_size=16, stored=0, orphans=0, model="mock-model"):
    """`orphans`: stores that were not applied because their parent is unknown."""
    of = f'{{model="{model}"}}'
    applied = "dynamo_component_kv_cache_events_applied"
    lines = [
        f"dynamo_frontend_model_kv_cache_block_size{of} {block_size}",
        f"dynamo_frontend_model_total_kv_blocks{of} 1000",
        f'{applied}{{event_type="stored",status="ok"}} {stored}',
        f'{applied}{{event_type="stored",status="parent_block_not_found"}} {orphans}',
    ]
    instance = {"component": "backend", "endpoint": "generate", "instance_id": 1}
    return {
        "/health": {"status": "healthy", "endpoints": ["dyn://dynamo.backend.generate"],
                    "instances": [instance]},
        "/metrics": "\n".join(lines) + "\n",
    }
