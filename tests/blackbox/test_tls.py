"""TLS on both sides, and API keys."""

import re
import signal
import ssl
import subprocess

import pytest

import wire
from conftest import run_fathom
from fake_engine import whole_answer
from wire import eventually


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        self.certificate = folder / "ca.pem"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", 30, "-subj", "/CN=test authority",
                      "-keyout", folder / "ca.key", "-out", self.certificate)

    def issue(self, name, host="localhost"):
        """A certificate and its key."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        certificate, extra = self.folder / f"{name}.pem", self.folder / f"{name}.ext"
        extra.write_text(f"subjectAltName=DNS:{host},IP:127.0.0.1\n" if host == "localhost"
                         else f"subjectAltName=DNS:{host}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.certificate,
                      "-CAkey", self.folder / "ca.key", "-CAcreateserial", "-days", 30,
                      "-extfile", extra, "-out", certificate)
        return certificate, key

    def client(self):
        return ssl.create_default_context(cafile=str(self.certificate))

    @staticmethod
    def _openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def pair(authority):
    return authority.issue("router")


def tls_flags(pair):
    return ["--tls-cert", pair[0], "--tls-key", pair[1]]


def served_name(router, authority):
    """The common name of the certificate that a new connection is shown."""
    with wire.Connection(router.port, tls=authority.client()) as connection:
        return dict(entry[0] for entry in connection.socket.getpeercert()["subject"])["commonName"]


# --- the listening side


def test_curl_is_served_over_tls(mock, serve, authority, pair):
    router = serve(*tls_flags(pair), workers=[mock(name="ada")], tls=authority.client())
    body = '{"model":"mock-model","stream":true,"max_tokens":2,"messages":[{"role":"user","content":"x"}]}'
    done = subprocess.run(
        ["curl", "-sS", "--cacert", authority.certificate, "-H", "content-type: application/json", "-d", body,
         f"https://localhost:{router.port}/v1/chat/completions"], capture_output=True, check=True)
    assert b"ada:0" in done.stdout
    assert done.stdout.endswith(b"data: [DONE]\n\n")


def test_long_bodies_pass_over_tls_both_ways(mock, serve, authority, pair):
    router = serve(*tls_flags(pair), workers=[mock()], tls=authority.client())
    body = {"model": "mock-model", "prompt": "a", "pad": "x" * 3_000_000, "mock_answer_bytes": 5_000_000}
    answer = wire.ask(router.port, "POST", "/v1/completions", body, tls=authority.client())
    assert len(answer.json()["choices"][0]["text"]) == 5_000_000


def test_a_client_that_leaves_over_tls_cancels_its_request(mock, serve, authority, pair):
    worker = mock(token_interval="20ms")
    router = serve(*tls_flags(pair), workers=[worker], tls=authority.client())
    with wire.Connection(router.port, tls=authority.client()) as connection:
        connection.request("POST", "/v1/chat/completions",
                           wire.chat_body(stream=True, max_tokens=100_000))
        assert connection.read_head().status == 200
    eventually(lambda: worker.stats()["cancelled"] == 1, "the worker is told")


def test_a_worker_that_dies_is_told_over_tls(mock, serve, authority, pair):
    router = serve(*tls_flags(pair), workers=[mock(die_after_tokens=2)], tls=authority.client())
    answer = router.chat(stream=True, max_tokens=50)
    assert b"worker_failed" in answer.body
    assert b"[DONE]" not in answer.body


def test_a_client_without_tls_does_no_harm(serve, authority, pair):
    router = serve(*tls_flags(pair), tls=authority.client())
    with wire.Connection(router.port) as connection:
        connection.send(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200" not in connection.rest()
    assert router.get("/live").status == 200


def test_a_client_that_does_not_shake_hands_is_cut_off(serve, authority, pair):
    router = serve(*tls_flags(pair), "--head-timeout", "300ms", tls=authority.client())
    with wire.Connection(router.port) as connection:
        assert connection.ended()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_of_tls_are_refused(serve, authority, pair):
    router = serve(*tls_flags(pair), tls=authority.client())
    old = authority.client()
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        wire.Connection(router.port, tls=old)


@pytest.mark.parametrize("wrong", ["key of another", "no key file", "no certificate", "swapped",
                                   "certificate alone", "key alone"])
def test_a_certificate_that_cannot_work_ends_the_start(authority, pair, tmp_path, wrong):
    certificate, key = pair
    other_key = authority.issue("other")[1]
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("hello\n")
    flags = {
        "key of another": tls_flags((certificate, other_key)),
        "no key file": tls_flags((certificate, "/no/such.key")),
        "no certificate": tls_flags((garbage, key)),
        "swapped": tls_flags((key, certificate)),
        "certificate alone": ["--tls-cert", certificate],
        "key alone": ["--tls-key", key],
    }[wrong]
    done = run_fathom("serve", "--port", 0, *flags)
    assert done.returncode == 78
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert "tls-" in lines[0] or str(flags[1]) in lines[0] or str(flags[-1]) in lines[0]


def test_sighup_reloads_the_certificate(mock, serve, authority, tmp_path):
    files = (tmp_path / "cert.pem", tmp_path / "key.pem")

    def install(certificate, key):
        files[0].write_bytes(certificate.read_bytes())
        files[1].write_bytes(key.read_bytes())

    install(*authority.issue("first"))
    worker = mock(token_interval="20ms")
    router = serve(*tls_flags(files), workers=[worker], tls=authority.client())
    assert served_name(router, authority) == "first"
    with wire.Connection(router.port, tls=authority.client()) as old:
        old.request("POST", "/v1/chat/completions", wire.chat_body(stream=True, max_tokens=50))
        events = old.events(old.read_head())
        next(events)

        install(*authority.issue("second"))
        router.signal(signal.SIGHUP)
        eventually(lambda: served_name(router, authority) == "second", "the new one is served")
        assert list(events)[-1] == "[DONE]"  # what runs goes on

    install(authority.issue("third")[0], authority.issue("fourth")[1])
    router.signal(signal.SIGHUP)
    router.wait_for_log("not reloaded")
    assert served_name(router, authority) == "second"
    assert router.chat(max_tokens=1).status == 200


def test_admin_pages_speak_tls_with_a_certificate_of_their_own(mock, serve, authority, pair, tmp_path):
    files = (tmp_path / "cert.pem", tmp_path / "key.pem")

    def install(name):
        for file, content in zip(files, authority.issue(name)):
            file.write_bytes(content.read_bytes())

    def name_on(port):
        with wire.Connection(port, tls=authority.client()) as connection:
            return dict(part[0] for part in connection.socket.getpeercert()["subject"])["commonName"]

    install("pages")
    router = serve("--admin-listen", "127.0.0.1:0", "--admin-tls-cert", files[0], "--admin-tls-key", files[1],
                   workers=[mock()])
    admin = int(router.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    assert len(wire.get(admin, "/workers", tls=authority.client()).json()["workers"]) == 1
    assert router.chat().status == 200  # the main port speaks plain HTTP
    assert name_on(admin) == "pages"
    install("pages again")
    router.signal(signal.SIGHUP)
    eventually(lambda: name_on(admin) == "pages again", "the new certificate is served")
    both = serve(*tls_flags(pair), "--admin-listen", "127.0.0.1:0", tls=authority.client())
    admin = int(both.wait_for_log(r"Admin pages.*127\.0\.0\.1:(\d+)").group(1))
    assert wire.get(admin, "/workers").status == 200  # only where it is asked for
    done = run_fathom("serve", "--port", 0, "--admin-tls-cert", files[0], "--admin-tls-key", files[1])
    assert done.returncode == 78 and "--admin-listen" in done.stderr


def test_sighup_without_tls_is_nothing(mock, serve):
    router = serve(workers=[mock()])
    router.signal(signal.SIGHUP)
    assert router.chat().status == 200


# --- workers over TLS


def tls_engine(engine, authority, **options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("engine", **options))
    return engine(lambda _, connection: connection.sendall(whole_answer('{"ok":1}')), tls=context)


def test_a_worker_over_tls_is_verified_with_its_authority(engine, serve, authority):
    fake = tls_engine(engine, authority)
    router = serve()
    worker = {"url": fake.url, "ca_file": str(authority.certificate)}
    assert wire.ask(router.port, "POST", "/workers", worker).status == 201
    eventually(lambda: router.get("/ready").status == 200, "it is ready")
    for _ in range(3):
        assert router.chat().json() == {"ok": 1}
    big = {"model": "mock-model", "pad": "x" * 2_000_000}
    assert wire.ask(router.port, "POST", "/v1/score", big).status == 200
    assert fake.requests[-1].size > 2_000_000


def test_a_worker_over_tls_from_the_configuration_file(engine, serve, authority, tmp_path):
    config = tmp_path / "fathom.yaml"
    fake = tls_engine(engine, authority)
    config.write_text(f"workers:\n  - url: {fake.url}\n    ca_file: {authority.certificate}\n")
    assert serve("--config", config, ready=1).chat().status == 200


@pytest.mark.parametrize("wrong", ["no authority", "other authority", "other name"])
def test_a_worker_that_cannot_be_verified_is_refused(engine, serve, authority, tmp_path, wrong):
    host = "elsewhere.example" if wrong == "other name" else "localhost"
    fake = tls_engine(engine, authority, host=host)
    worker = {"url": fake.url, "ca_file": str(authority.certificate)}
    if wrong == "no authority":
        del worker["ca_file"]
    if wrong == "other authority":
        worker["ca_file"] = str(Authority(tmp_path).certificate)
    router = serve()
    assert wire.ask(router.port, "POST", "/workers", worker).status == 201
    router.wait_for_log("not healthy")
    (entry,) = router.get("/workers").json()["workers"]
    assert entry["state"] == "unhealthy"
    assert re.search("certificate|verif|hostname", entry["cause"]), entry
    assert router.chat().status != 200
    assert fake.requests == []


# --- keys


def test_requests_need_a_key_when_keys_are_set(mock, serve, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# ours\nfrom-file-1\n\n  from-file-2  \n")
    worker = mock()
    router = serve("--api-key", "one,two", "--api-keys-file", keys, workers=[worker])
    for key in ("one", "two", "from-file-1", "from-file-2"):
        assert router.chat({"Authorization": f"Bearer {key}"}).status == 200, key
    served = worker.stats()["requests"]
    for wrong in ({}, {"Authorization": "Bearer on"}, {"Authorization": "Bearer onee"},
                  {"Authorization": "Basic one"}, {"Authorization": "one"},
                  {"Authorization": "Bearer "}, {"Authorization": "Bearer # ours"},
                  {"Authorization": ""}, {"X-Api-Key": "nope"}):
        answer = router.chat(wrong)
        assert answer.status == 401, wrong
        assert answer.error["type"] == "authentication_error"
        assert answer.header("www-authenticate")
        assert wire.get(router.port, "/v1/models", wrong).status == 401
    assert worker.stats()["requests"] == served
    for page in ("/live", "/ready", "/health", "/metrics"):
        assert router.get(page).status == 200


@pytest.mark.parametrize("target, status", [("/v1/score", 401), ("/v1/models", 405),
                                            ("/workers", 401), ("/live", 405), ("/nothing", 404)])
def test_a_client_without_a_key_cannot_make_the_router_hold_its_body(serve, target, status):
    router = serve("--api-key", "one", "--admin-key", "boss", "--body-timeout", "3s")
    with wire.Connection(router.port) as connection:
        connection.send(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" %
                        target.encode())
        assert connection.read_answer().status in (status, 401)  # but not a 408 later
        assert connection.ended()
