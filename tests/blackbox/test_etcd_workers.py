"""Workers in a real etcd: `fathom register` keeps an engine there, `etcd://` follows it."""

import json
import shutil
import signal
import threading
import time

import pytest

import etcd_server
import wire
from conftest import run_fathom
from etcd_server import EtcdServer
from test_tls import Authority
from wire import eventually

pytestmark = pytest.mark.skipif(not etcd_server.ETCD, reason="no etcd on this machine (Debian: etcd-server)")


@pytest.fixture
def etcd(tmp_path):
    folder = tmp_path / "etcd"
    folder.mkdir()
    server = EtcdServer(folder)
    yield server
    server.kill()


@pytest.fixture
def register(world):
    def start(where, engine, *args, env=None):
        return world.start("register", "--etcd", where, "--prefix", "fleet", "--url", engine.url, "--ttl", "3s",
                           "--health-check-interval", "100ms", *args, env=env)
    return start


def entry(engine, **fields):
    return json.dumps({"url": engine.url, **fields})


def urls(router):
    return sorted(worker["url"] for worker in router.get("/workers").json()["workers"])


def unknown(router):
    return router.health()["sources"][0]["unknown"]


def become(router, *engines):
    wanted = sorted(engine.url for engine in engines)
    eventually(lambda: urls(router) == wanted, f"the fleet is {wanted}, not {urls(router)}")
    eventually(lambda: router.health()["workers_ready"] == len(wanted), "all are ready")


class Load:
    """Requests without a pause until it is left; none may fail."""

    def __init__(self, router):
        self.router, self.over, self.answers, self.bad = router, threading.Event(), 0, []
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            try:
                status = self.router.chat(max_tokens=2).status
            except OSError as problem:
                status = problem
            self.answers += 1
            if status != 200:
                self.bad.append(status)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        assert not self.bad, f"{len(self.bad)} of {self.answers} failed: {self.bad[:3]}"
        assert self.answers > 0


def removed(router):
    return router.log_text().count("Worker removed")


def test_keys_are_workers_and_what_is_not_understood_changes_nothing(etcd, mock, serve):
    first, second, third = mock(), mock(), mock()
    etcd.put("fleet/a", entry(first))
    etcd.put("fleet/b", second.url)
    etcd.put("fleet/c", json.dumps(third.url))
    etcd.put("fleet2/d", "http://127.0.0.1:1")
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=3)
    become(router, first, second, third)

    etcd.put("fleet/a", json.dumps({"url": "http://ann:hunter2@10.0.0.1"}))
    router.wait_for_log("does not name a worker.*fleet/a")
    eventually(lambda: unknown(router) == "key fleet/a is not understood: its url is not http://HOST:PORT or "
               "https://HOST:PORT", "/health says it")
    # Each reason is reported once.
    etcd.put("fleet/a", json.dumps({"url": "http://ann:hunter3@10.0.0.1"}))
    etcd.put("fleet/a", '{"url": 7}')
    router.wait_for_log("does not name a worker.*fleet/a.*must be a string")
    etcd.put("fleet/b", "{")
    router.wait_for_log("does not name a worker.*fleet/b")
    eventually(lambda: unknown(router) == "2 keys are not understood, for example fleet/a: 'url' must be a string",
               "/health counts them")
    become(router, first, second, third)
    assert "hunter" not in router.log_text()
    assert router.log_text().count("key=fleet/a") == 2
    etcd.put("fleet/a", entry(first))
    etcd.put("fleet/b", "x" * 70_000)
    router.wait_for_log("does not name a worker.*fleet/b.*70000 bytes")
    etcd.put("fleet/b", second.url)
    eventually(lambda: unknown(router) is None, "all are understood")

    # Two keys of one worker are one worker until both are gone.
    etcd.put("fleet/z", entry(third))
    etcd.delete("fleet/c")
    etcd.delete("fleet/b")
    become(router, first, third)
    etcd.delete("fleet/z")
    become(router, first)


def test_a_prefix_without_keys_is_said(etcd, mock, serve):
    engine = mock()
    etcd.put("fleet/a", entry(engine))
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleets", ready=0)
    router.wait_for_log("does not see everything.*no key below fleets/.*etcdctl get --prefix fleets/")
    assert "there is no key below fleets/" in unknown(router)
    etcd.put("fleets/a", entry(engine))
    become(router, engine)
    assert unknown(router) is None
    etcd.delete("fleets/a")
    eventually(lambda: "there is no key" in (unknown(router) or ""), "it is shown again")
    assert router.log_text().count("does not see everything") == 1


def test_a_refused_entry_is_tried_again(etcd, mock, serve, tmp_path):
    authority = Authority(tmp_path)
    plain, absent, late = mock(), f"https://127.0.0.1:{wire.free_port()}", tmp_path / "late.pem"
    etcd.put("fleet/a", entry(plain))
    etcd.put("fleet/b", json.dumps({"url": absent, "ca_file": str(late)}))
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=1)
    router.wait_for_log("does not name a worker.*fleet/b.*late.pem")
    shutil.copy(authority.certificate, late)
    eventually(lambda: urls(router) == sorted([plain.url, absent]), "it is taken")
    assert unknown(router) is None
    assert router.log_text().count("key=fleet/b") == 1


def test_etcd_is_killed_compacted_and_restarted_under_load(etcd, mock, serve):
    first, second, third = mock(), mock(), mock()
    etcd.put("fleet/a", entry(first))
    etcd.put("fleet/b", entry(second))
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=2)
    with Load(router):
        etcd.kill()
        router.wait_for_log("A source of workers cannot be read")
        become(router, first, second)
        etcd.start()
        router.wait_for_log("A source of workers works again")
        # What changes while the router is away is found although its revision is gone.
        router.signal(signal.SIGSTOP)
        etcd.kill()
        etcd.start()
        etcd.put("fleet/c", entry(third))
        etcd.delete("fleet/b")
        etcd.compact()
        router.signal(signal.SIGCONT)
        become(router, first, third)
    assert removed(router) == 1
    assert router.log_text().count("A source of workers cannot be read") <= 2


def test_a_cluster_that_lost_its_data_does_not_empty_the_fleet(etcd, mock, serve, register):
    engine = mock()
    registration = register(f"etcd://{etcd.host}", engine)
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=1)
    with Load(router):
        etcd.replace()
        registration.wait_for_log("registered again")
        eventually(lambda: len(etcd.keys()) == 1, "the key is back")
        router.wait_for_log("A source of workers works again")
        become(router, engine)
    assert removed(router) == 0


def test_a_registration_withdraws_before_its_engine_stops(etcd, mock, serve, register):
    engine, other = mock(), mock()
    registration = register(f"etcd://{etcd.host}", engine, "--entry", '{"role": "decode"}')
    register(f"etcd://{etcd.host}", other)
    eventually(lambda: len(etcd.keys()) == 2, "both are registered")
    key = next(key for key in etcd.keys() if key.endswith(str(engine.port)))
    assert json.loads(etcd.keys()[key]) == {"url": engine.url, "role": "decode"}
    assert registration.wait_for_log("passes its health check.*models=(.*)").group(1) == "mock-model"
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=2)
    with Load(router):
        registration.signal(signal.SIGTERM)
        assert registration.wait() == 0
        assert key not in etcd.keys()
        become(router, other)
        engine.signal(signal.SIGTERM)
        engine.wait()


def test_an_engine_that_is_not_healthy_is_not_registered(etcd, mock, register, world):
    port = wire.free_port()

    class Absent:
        url = f"http://127.0.0.1:{port}"

    registration = register(f"etcd://{etcd.host}", Absent)
    registration.wait_for_log("not healthy yet")
    engine = mock(port=port)
    eventually(lambda: len(etcd.keys()) == 1, "it is registered")
    engine.signal(signal.SIGSTOP)
    eventually(lambda: not etcd.keys(), "it is withdrawn")
    engine.signal(signal.SIGCONT)
    eventually(lambda: len(etcd.keys()) == 1, "it is back")
    assert registration.log_text().count("not healthy yet") == 1


def test_a_registration_that_was_killed_expires_and_one_without_etcd_returns(etcd, mock, serve, register):
    first, second = mock(), mock()
    killed, patient = register(f"etcd://{etcd.host}", first), register(f"etcd://{etcd.host}", second)
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=2)
    killed.kill()
    become(router, second)
    # etcd stands still for longer than the lease lives. Then the lease may expire before it is renewed: the worker
    # leaves for a moment, and the one without a lease serves.
    etcd.put("fleet/without-a-lease", entry(first))
    become(router, first, second)
    with Load(router):
        etcd.pause()
        patient.wait_for_log("etcd cannot be used")
        time.sleep(4)
        etcd.resume()
        patient.wait_for_log("etcd answers again")
        become(router, first, second)
    assert patient.log_text().count("etcd cannot be used") == 1


def test_a_registration_without_etcd_keeps_trying_and_can_be_stopped(mock, register):
    engine = mock()
    registration = register(f"etcd://127.0.0.1:{wire.free_port()}", engine)
    registration.wait_for_log("etcd cannot be used.*refused")
    registration.signal(signal.SIGTERM)
    assert registration.wait() == 0
    assert registration.log_text().count("etcd cannot be used") == 1
    assert engine.get("/health").status == 200


def test_the_later_of_two_registrations_takes_the_key_over(etcd, mock, register):
    engine = mock()
    first = register(f"etcd://{etcd.host}", engine)
    eventually(lambda: len(etcd.keys()) == 1, "it is registered")
    second = register(f"etcd://{etcd.host}", engine, "--entry", '{"role": "prefill"}')
    second.wait_for_log("Another registration holds this worker's key; it is taken over.*lease=")
    first.wait_for_log("Another registration has taken over this worker's key")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0
    assert "prefill" in "".join(etcd.keys().values())


def test_accounts(etcd, mock, serve, register, tmp_path):
    engine, other = mock(), mock()
    etcd.enable_accounts("ann", 'hunter2"')
    secret = tmp_path / "password"
    secret.write_text('hunter2"\n')
    registration = register(f"etcd://{etcd.host}", engine, "--etcd-user", "ann",
                            "--etcd-password-file", secret)
    router = serve(f"--worker-urls=etcd://{etcd.host}/fleet", "--etcd-user", "ann",
                   "--etcd-password-env", "ETCD_SECRET", env={"ETCD_SECRET": 'hunter2"'}, ready=1)
    # A restart forgets all tokens.
    etcd.kill()
    router.wait_for_log("A source of workers cannot be read")
    etcd.start()
    router.wait_for_log("A source of workers works again")
    etcd.log_in()
    etcd.put("fleet/other", entry(other))
    become(router, engine, other)
    wrong = serve(f"--worker-urls=etcd://{etcd.host}/fleet", "--etcd-user", "ann",
                  "--etcd-password-env", "ETCD_SECRET", env={"ETCD_SECRET": "guess"}, ready=0)
    wrong.wait_for_log("A source of workers cannot be read.*authentication failed")
    nobody = serve(f"--worker-urls=etcd://{etcd.host}/fleet", ready=0)
    nobody.wait_for_log("A source of workers cannot be read.*user name is empty")
    for process in (registration, router, wrong):
        assert "hunter2" not in process.log_text()


def test_tls_and_a_member_that_is_away(tmp_path, mock, serve, register):
    authority = Authority(tmp_path)
    etcd = EtcdServer(tmp_path, authority.issue("etcd"))
    try:
        engine = mock()
        where = f"etcds://127.0.0.1:{wire.free_port()},{etcd.host}"
        register(where, engine, "--etcd-ca-file", authority.certificate)
        router = serve(f"--worker-urls={where}/fleet", "--etcd-ca-file", authority.certificate, ready=1)
        become(router, engine)
        stranger = serve(f"--worker-urls={where}/fleet", ready=0)
        stranger.wait_for_log("A source of workers cannot be read.*certificate")
    finally:
        etcd.kill()


@pytest.mark.parametrize("args, problem", [
    ((), "--etcd is missing"),
    (("--etcd", "http://127.0.0.1:2379"), "not an etcd address"),
    (("--etcd", "etcd://ann:hunter2@127.0.0.1", "--prefix", "fleet"), "must not contain a user"),
    (("--etcd", "etcd://127.0.0.1"), "--prefix is missing"),
    (("--etcd", "etcd://127.0.0.1/one", "--prefix", "two", "--url", "http://a"), "differ"),
    (("--etcd", "etcd://127.0.0.1/fleet"), "--url is missing"),
    (("--etcd", "etcd://127.0.0.1/fleet", "--url", "ftp://a"), "--url"),
    (("--etcd", "etcd://127.0.0.1/fleet", "--url", "http://a", "--entry", "[1]"), "must be a JSON object"),
    (("--etcd", "etcd://127.0.0.1/fleet", "--url", "http://a", "--entry", '{"url": "http://b"}'), "not the one"),
    (("--etcd", "etcd://127.0.0.1/fleet", "--url", "http://a", "--entry", '{"rule": "x"}'), "unknown worker setting"),
    (("--etcd", "etcd://127.0.0.1/fleet", "--url", "http://a", "--etcd-user", "ann"), "needs --etcd-password-file"),
])
def test_wrong_usage(args, problem):
    done = run_fathom("register", *args)
    assert done.returncode == 78
    assert problem in done.stderr
    assert "hunter2" not in done.stderr
