"""Workers that are found by name: `dns+http://name:port`, with the real resolver. The names are
those of a hosts file of the router's own, in a mount namespace."""

import itertools
import socket
import ssl
import subprocess
import threading
import time

import pytest

import conftest
import wire
from conftest import run_fathom
from fake_engine import FakeEngine, whole_answer
from kv_engine import BLOCK, lookup
from test_tls import Authority
from wire import eventually

NAME = "engines.test"
fresh = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def namespaces():
    done = subprocess.run(["unshare", "-rm", "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no mount namespace for a hosts file of our own: {done.stderr.strip()}")


class Names:
    """A hosts file that can be changed while it is in use."""

    def __init__(self, path):
        self.path = path
        self.set()

    def set(self, **names):
        """Names are spelled with _ for a dot."""
        lines = ["127.0.0.1 localhost"]
        for name, addresses in names.items():
            lines += [f"{address} {name.replace('_', '.')}" for address in addresses]
        with open(self.path, "r+" if self.path.exists() else "w") as file:  # the same file
            file.truncate()
            file.write("\n".join(lines) + "\n")


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path / "hosts")


@pytest.fixture
def serve(world, names, tmp_path, monkeypatch):
    """The `serve` of all tests, in which /etc/hosts is `names`. Looks names up often."""
    inside = tmp_path / "fathom"
    inside.write_text("#!/bin/sh\nexec unshare -rm sh -c '"
                      f'mount --bind "{names.path}" /etc/hosts && exec "$@"'
                      f"' sh \"{conftest.FATHOM}\" \"$@\"\n")
    inside.chmod(0o755)

    def start(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(conftest, "FATHOM", str(inside))
            return world.serve("--dns-interval", "100ms", *args, **options)

    return start


@pytest.fixture
def engines(world):
    """Starts mocks on one port, each at an address of its own."""
    port, event_port = wire.free_port(), wire.free_port(2)

    def start(*addresses, **options):
        started = []
        for address in addresses:
            started.append(world.start("mock", *conftest.flags_of(
                {"host": address, "port": port, "profile": "h200-llama-3.1-8b", "speedup": 1000,
                 "block_size": BLOCK, "kv_events_port": event_port, **options})))
            started[-1].wait_for_log(rf"[Ll]istening.*{address}:{port}")
            started[-1].host, started[-1].port = address, port
        return started

    start.port = port
    start.url = f"dns+http://{NAME}:{port}"
    return start


def urls(router):
    return {entry["url"] for entry in router.get("/workers").json()["workers"]}


def ready(router):
    entries = router.get("/workers").json()["workers"]
    return {entry["url"] for entry in entries if entry["state"] == "ready"}


def url_of(address, port):
    return f"http://{address}:{port}"


def completion(prompt):
    return {"model": "mock-model", "prompt": prompt, "max_tokens": 1}


def complete(router, prompt):
    answer = wire.ask(router.port, "POST", "/v1/completions", completion(prompt))
    assert answer.status == 200, answer.text()
    return answer


def ask_itself(engine, prompt):
    """Past the router."""
    with wire.Connection(engine.port, host=engine.host) as connection:
        connection.request("POST", "/v1/completions", completion(prompt))
        assert connection.read_answer().status == 200


def cached(router, prompt):
    """The tokens of the prompt that each worker holds, where it holds some."""
    return {worker: tokens for (worker, _), tokens in lookup(router, prompt).items() if tokens}


def new_prompt():
    first = 1000 * next(fresh)
    return list(range(first, first + 8 * BLOCK + 1))


def test_every_address_is_a_worker_and_each_cache_is_known(serve, names, engines):
    addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    started = engines(*addresses)
    names.set(engines_test=addresses)
    router = serve(workers=[engines.url], ready=3)
    entries = {entry["url"]: entry["id"] for entry in router.get("/workers").json()["workers"]}
    assert set(entries) == {url_of(address, engines.port) for address in addresses}

    prompts = {}
    for engine in started:  # each learns a prompt that the router has never seen
        worker = entries[url_of(engine.host, engine.port)]
        prompts[worker] = new_prompt()

        def learned(engine=engine, worker=worker, prompt=prompts[worker]):
            ask_itself(engine, prompt)
            return cached(router, prompt).get(worker) == 8 * BLOCK
        eventually(learned, f"what {engine.host} holds is known")
    for worker, prompt in prompts.items():
        assert set(cached(router, prompt)) == {worker}, "no cache is taken for another's"
        answer = complete(router, prompt)
        assert answer.worker == str(worker)
        assert int(answer.header("x-fathom-cached-tokens")) == 8 * BLOCK


def test_addresses_join_and_leave_while_requests_go_on(serve, names, engines):
    engines("127.0.0.2", "127.0.0.3", "127.0.0.4")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    router = serve(workers=[engines.url], ready=2)
    names.set(engines_test=["127.0.0.3", "127.0.0.4"])
    after = {url_of(a, engines.port) for a in ("127.0.0.3", "127.0.0.4")}

    def changed():
        complete(router, new_prompt())
        return ready(router) == after and urls(router) == after
    eventually(changed, "one has left and one has joined")
    for _ in range(6):
        complete(router, new_prompt())
    removed = router.wait_for_log(r"Worker removed.*").group(0)
    assert "http://127.0.0.2:" in removed and engines.url in removed
    assert router.log_text().count("Worker removed") == 1


def test_a_name_that_cannot_be_found_any_more_changes_nothing(serve, names, engines):
    engines("127.0.0.2", "127.0.0.3")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    router = serve(workers=[engines.url], ready=2)
    names.set()
    warning = router.wait_for_log(r"WARN.*A source of workers cannot be read.*").group(0)
    assert NAME in warning
    (name,) = router.get("/workers").json()["names"]
    assert NAME in name["problem"]
    assert len(ready(router)) == 2
    complete(router, new_prompt())
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    router.wait_for_log(r"INFO.*works again")
    assert router.log_text().count("A source of workers cannot be read") == 1
    assert "Worker removed" not in router.log_text()
    assert router.get("/workers").json()["names"][0]["problem"] is None


def test_a_name_that_comes_up_after_the_router(serve, names, engines):
    router = serve(workers=[engines.url], ready=0)
    router.wait_for_log("A source of workers cannot be read")
    assert router.get("/ready").status == 503
    engines("127.0.0.2")
    names.set(engines_test=["127.0.0.2"])
    eventually(lambda: router.get("/ready").status == 200, "it is ready")
    complete(router, new_prompt())


def test_a_plain_name_with_several_addresses_is_warned_of_once(serve, names, engines):
    engines("127.0.0.2", "127.0.0.3")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"], single_test=["127.0.0.2"])
    router = serve(workers=[f"http://{NAME}:{engines.port}", f"http://single.test:{engines.port}"])
    warning = router.wait_for_log(r"WARN.*several addresses.*").group(0)
    for word in (f"http://{NAME}:{engines.port}", "cache", f"dns+http://{NAME}:{engines.port}",
                 "headless Service"):
        assert word in warning
    complete(router, new_prompt())
    assert router.log_text().count("several addresses") == 1


class TlsEngines:
    """Two engines on one port, with one certificate."""

    def __init__(self, authority, host):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("engine", host=host))
        self.port = wire.free_port()
        self.engines = []
        for address in ("127.0.0.2", "127.0.0.3"):
            fake = FakeEngine(
                lambda _, connection: connection.sendall(whole_answer('{"ok":1}')), tls=context)
            fake.close_listener()
            fake.listener = socket.create_server((address, self.port), backlog=128)
            threading.Thread(target=fake._accept, daemon=True).start()
            self.engines.append(fake)

    def stop(self):
        for fake in self.engines:
            fake.stop()


@pytest.fixture
def tls_engines(tmp_path):
    authority = Authority(tmp_path)
    started = []

    def start(host):
        started.append(TlsEngines(authority, host))
        return authority, started[-1]

    yield start
    for engines in started:
        engines.stop()


def test_certificates_are_for_the_name(serve, names, tls_engines, tmp_path):
    authority, engines = tls_engines(NAME)
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    config = tmp_path / "fathom.yaml"
    config.write_text(f"workers:\n  - url: dns+https://{NAME}:{engines.port}/base\n"
                      f"    ca_file: {authority.certificate}\n")
    router = serve("--config", config, "--router-mode", "round-robin", ready=2)
    for _ in range(4):
        assert router.chat().json() == {"ok": 1}
    seen = [request for fake in engines.engines for request in fake.requests]
    assert all(fake.requests for fake in engines.engines)
    assert {request.header("host") for request in seen} == {f"{NAME}:{engines.port}"}
    assert {request.target for request in seen} == {"/base/v1/chat/completions"}


def test_a_certificate_for_another_name_is_refused(serve, names, tls_engines):
    authority, engines = tls_engines("elsewhere.example")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    router = serve()
    entry = {"url": f"dns+https://{NAME}:{engines.port}", "ca_file": str(authority.certificate)}
    assert wire.ask(router.port, "POST", "/workers", entry).status == 202
    router.wait_for_log("not healthy.*(certificate|verif|hostname)")
    assert not ready(router)


def test_names_come_and_go_by_admin_calls(serve, names, engines):
    engines("127.0.0.2", "127.0.0.3")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"])
    router = serve()

    def post():
        answer = wire.ask(router.port, "POST", "/workers", {"url": engines.url})
        assert answer.status == 202, answer.text()
        assert answer.json()["url"] == engines.url
        return answer.json()

    def delete(number):
        return wire.ask(router.port, "DELETE", f"/workers/{number}").status

    number = post()["id"]
    eventually(lambda: len(ready(router)) == 2, "both have joined")
    gone = router.get("/workers").json()["workers"][0]
    assert delete(gone["id"]) == 204
    for _ in range(3):  # it stays out, however often the name is looked up
        router.wait_for_log("Worker removed")
        time.sleep(0.15)
        assert gone["url"] not in urls(router)
    (name,) = router.get("/workers").json()["names"]
    assert name["id"] == number and name["taken_out"] == [gone["id"]]
    assert len(post()["workers"]) == 2
    eventually(lambda: len(ready(router)) == 2, "it is back, for the name was entered again")
    assert delete(number) == 204
    page = router.get("/workers").json()
    assert page["workers"] == [] and not page.get("names")
    assert delete(number) == 404


def test_an_address_that_is_listed_twice_is_one_worker(serve, names, engines):
    engines("127.0.0.2", "127.0.0.3")
    names.set(engines_test=["127.0.0.2", "127.0.0.3"], other_test=["127.0.0.3"])
    listed = url_of("127.0.0.2", engines.port)
    router = serve(workers=[engines.url, f"dns+http://other.test:{engines.port}", listed], ready=2)
    names.set(engines_test=["127.0.0.3"], other_test=["127.0.0.3"])
    complete(router, new_prompt())
    time.sleep(0.3)
    assert len(urls(router)) == 2, "what was listed by itself stays"
    assert "already" not in router.log_text()


@pytest.mark.parametrize("url, wanted", [
    ("dns+http://10.0.0.1:8000", "write http://10.0.0.1:8000"),
    ("dns+http://a..b:8000", "not a DNS name"),
    ("dns+http://name:99999", "port"),
    ("dns+ftp://name:1", "must start with http://, https://, dns+http://, dns+https://"),
    ("dns://name:1", "dns+http://"),
])
def test_a_bad_name_ends_the_start_and_says_what_is_wanted(url, wanted):
    done = run_fathom("serve", "--port", 0, "--worker-urls", url)
    assert done.returncode == 78
    (line,) = done.stderr.strip().splitlines()
    assert wanted in line and url.split("://")[1] in line and "--worker-urls" in line


def test_a_bad_name_is_refused_by_the_admin_call(serve):
    router = serve()
    for url, wanted in (("dns+http://10.0.0.1:1", "write http://10.0.0.1:1"),
                        ("dns://name:1", "dns+http://name:port"),
                        ("dns+http://na me", "spaces")):
        answer = wire.ask(router.port, "POST", "/workers", {"url": url})
        assert answer.status == 400
        assert wanted in answer.error["message"] and answer.error["param"] == "url"
    entry = {"url": "dns+http://name:1", "kv_events": "tcp://10.0.0.1:5557"}
    answer = wire.ask(router.port, "POST", "/workers", entry)
    assert answer.status == 400 and "tcp://*:PORT" in answer.error["message"]
