"""Options: where they come from, and what is said about those that make no sense."""

import re
import socket

import pytest

import wire
from conftest import ROOT, run_fathom
from fake_engine import FakeEngine


def refusal(*args, env=None):
    """The one line that a wrong configuration gets."""
    done = run_fathom(*args, env=env)
    assert done.returncode == 78, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def printed(*args, env=None):
    """What --print-config shows: name -> (value, origin)."""
    done = run_fathom("serve", "--print-config", *args, env=env)
    assert done.returncode == 0, done.stderr
    rows = (re.match(r"([a-z-]+) {2,}(?:(\S.*?) {2,})?(\S.*)$", line) for line in
            done.stdout.splitlines())
    return {row[1]: (row[2] or "", row[3]) for row in rows if row}


# --- mistakes


@pytest.mark.parametrize("args, words", [
    (["--prot", "80"], ["--prot", "--port"]),
    (["--worker-url", "http://x"], ["--worker-url", "--worker-urls"]),
    (["--xyzzyxyzzy"], ["--xyzzyxyzzy"]),
    (["stray"], ["stray"]),
    (["--port"], ["--port"]),
    (["--port", "65536"], ["port", "65536", "65535"]),
    (["--port", "-1"], ["port", "-1"]),
    (["--port", "eighty"], ["port", "eighty"]),
    (["--port", "80x"], ["port", "80x"]),
    (["--retry-budget", "1.5"], ["retry-budget", "1.5"]),
    (["--retry-budget", "nan"], ["retry-budget", "nan"]),
    (["--router-mode", "round-robbin"], ["round-robbin", "round-robin"]),
    (["--connect-timeout", "5 parsecs"], ["connect-timeout", "5 parsecs"]),
    (["--connect-timeout", "0"], ["connect-timeout"]),
    (["--max-body-size", "1"], ["max-body-size"]),
    (["--max-body-size", "1QB"], ["max-body-size", "1QB"]),
    (["--log-requests=maybe"], ["log-requests", "maybe"]),
    (["--config", "/no/such/file.yaml"], ["/no/such/file.yaml"]),
    (["--api-keys-file", "/no/such/keys"], ["/no/such/keys"]),
    (["--worker-urls", "localhost:8000"], ["localhost:8000"]),
    (["--worker-urls", "ftp://x:1"], ["ftp"]),
    (["--worker-urls", "http://x:port"], ["http://x:port"]),
    (["--worker-urls", "http://x:1 http://x:1/"], ["http://x:1"]),
    (["--admin-listen", "nonsense"], ["admin-listen", "nonsense"]),
    (["--docs-url", "wiki/fathom"], ["docs-url", "wiki/fathom", "https://"]),
    (["--host", "no.such.host.invalid"], ["no.such.host.invalid"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_a_wrong_flag_gets_one_line_that_says_which(args, words):
    other = [] if args[0] == "--port" else ["--port", "0"]
    line = refusal("serve", *other, *args)
    for word in words:
        assert word in line, line


@pytest.mark.parametrize("name, value, words", [
    ("FATHOM_PROT", "80", ["FATHOM_PROT", "FATHOM_PORT"]),
    ("FATHOM_PORT", "many", ["FATHOM_PORT", "many"]),
    ("DYN_HTTP_PORT", "70000", ["DYN_HTTP_PORT", "70000"]),
    ("DYN_ROUTER_MODE", "sideways", ["DYN_ROUTER_MODE", "sideways"]),
])
def test_a_wrong_variable_gets_one_line_that_says_which(name, value, words):
    line = refusal("serve", env={name: value})
    for word in words:
        assert word in line, line


@pytest.mark.parametrize("text, words", [
    ("port: 0\nhost: [unclosed\n", ["3"]),
    ("port: 0\n  indented: wrong\n", ["2"]),
    ("port: 0\n\nprot: 80\n", ["3", "prot", "port"]),
    ("port: 99999\n", ["1", "port", "99999"]),
    ("port: [1, 2]\n", ["1", "port"]),
    ("- a\n- list\n", ["fathom.yaml"]),
    ("workers:\n  - ulr: http://x:1\n", ["2", "ulr", "url"]),
    ("workers:\n  - http://x:1\n  - kv_events: tcp://x:2\n", ["3", "url"]),
    ("workers: http://x:1\n", ["1", "workers"]),
    ("workers:\n  - nonsense\n", ["2", "nonsense"]),
    ("workers:\n  - url: http://x:1\n    api_key_env: NOT_SET_AT_ALL\n", ["NOT_SET_AT_ALL"]),
    ("port: 1\nport: 2\n", ["2", "port"]),
    ("config: other.yaml\n", ["config"]),
], ids=lambda value: None if isinstance(value, list) else value.strip().replace("\n", "|"))
def test_a_wrong_file_gets_one_line_that_says_where(tmp_path, text, words):
    config = tmp_path / "fathom.yaml"
    config.write_text(text)
    line = refusal("serve", "--config", config)
    assert "fathom.yaml" in line
    for word in words:
        assert word in line, line


def test_an_unknown_command_gets_one_line_with_the_nearest():
    line = refusal("sevre")
    assert "sevre" in line and "serve" in line


def test_an_address_in_use_is_a_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in ("serve", "mock"):
            line = refusal(command, "--port", port)
            assert str(port) in line and "in use" in line.lower()


@pytest.mark.parametrize("flags", [
    ["--host", "0.0.0.0"], ["--host", "::"], ["--host", "0.0.0.0", "--admin-listen", "0.0.0.0:0"],
    ["--admin-listen", "0.0.0.0:0"], ["--host", "0.0.0.0", "--api-key", "client"],
], ids=" ".join)
def test_admin_pages_that_everyone_reaches_end_the_start(flags):
    for more in ([], ["--print-config"]):
        line = refusal("serve", "--port", 0, *flags, *more)
        for word in ("--admin-key", "--admin-listen", "--open-admin"):
            assert word in line, line


@pytest.mark.parametrize(("flags", "warned"), [
    (["--host", "0.0.0.0", "--open-admin"], True),
    (["--host", "0.0.0.0", "--admin-key", "hush"], False),
    (["--host", "0.0.0.0", "--admin-listen", "127.0.0.1:0"], False),
    (["--admin-listen", "0.0.0.0:0", "--open-admin"], True),
    (["--admin-listen", "0.0.0.0:0", "--admin-key", "hush"], False),
    (["--open-admin"], False),
])
def test_open_admin_pages_are_warned_of(world, flags, warned):
    router = world.start("serve", "--port", 0, *flags)
    router.wait_for_log("Admin pages" if "--admin-listen" in flags else "Listening")
    router.wait_for_log("No workers are configured")
    assert ("Anyone who reaches this port" in router.log_text()) == warned


def test_an_admin_address_in_use_is_a_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_fathom("serve", "--port", 0, "--admin-listen", f"127.0.0.1:{port}")
    assert done.returncode == 78
    assert str(port) in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("command, flag, near", [("mock", "--modle", "--model"),
                                                 ("demo", "--worker", "--workers")])
def test_other_commands_are_as_strict(command, flag, near):
    line = refusal(command, flag, "x")
    assert flag in line and near in line


# --- where values come from


def test_a_flag_beats_a_variable_beats_dynamos_beats_the_file(tmp_path):
    config = tmp_path / "fathom.yaml"
    config.write_text("port: 1\n")
    flags, env = ["--config", config, "--port", 4], {"FATHOM_PORT": "3", "DYN_HTTP_PORT": "2"}
    assert printed(*flags, env=env)["port"] == ("4", "flag --port")
    del flags[2:]
    assert printed(*flags, env=env)["port"][0] == "3"
    del env["FATHOM_PORT"]
    assert printed(*flags, env=env)["port"][0] == "2"
    assert printed(*flags)["port"][0] == "1"
    assert printed()["port"] == ("8000", "default")


def test_origins_are_shown(tmp_path):
    config = tmp_path / "fathom.yaml"
    config.write_text("\nseed: 7\n")
    shown = printed("--config", config, "--threads", "3",
                    env={"FATHOM_POOL_SIZE": "9", "DYN_ROUTER_MODE": "random"})
    assert shown["threads"] == ("3", "flag --threads")
    assert "FATHOM_POOL_SIZE" in shown["pool-size"][1]
    assert shown["router-mode"][0] == "random"
    assert "DYN_ROUTER_MODE" in shown["router-mode"][1]
    assert shown["seed"][0] == "7"
    assert "fathom.yaml:2" in shown["seed"][1]
    assert shown["host"] == ("127.0.0.1", "default")


def test_secrets_are_hidden(tmp_path):
    config = tmp_path / "fathom.yaml"
    config.write_text("admin-key: hush-file\n")
    shown = printed("--config", config, "--api-key", "hush-flag,hush-second")
    assert "hush" not in str(shown)
    for name in ("api-key", "admin-key"):
        assert shown[name][0] != "" and shown[name][1] != "default"  # but that they are set


def test_a_wrong_secret_is_not_repeated():
    done = run_fathom("serve", "--api-key", "hush-hush", "--port", "x")
    assert "hush-hush" not in done.stderr + done.stdout


def test_dynamos_port_is_honoured(world):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    router = world.start("serve", env={"DYN_HTTP_PORT": str(port)})
    router.wait_for_port()
    assert router.port == port
    assert router.get("/live").status == 200


def test_unknown_variables_of_dynamo_are_ignored():
    assert "port" in printed(env={"DYN_SOMETHING_ELSE": "1", "DYN_NAMESPACE": "x"})


def test_worker_urls_may_be_separated_in_any_way(serve):
    engines = [FakeEngine(None) for _ in range(5)]
    urls = [engine.url for engine in engines]
    router = serve("--worker-urls", f"{urls[0]},{urls[1]}", "--worker-urls", f"{urls[2]} {urls[3]}",
                   "--worker-urls=" + urls[4], ready=5)
    assert [w["url"] for w in router.get("/workers").json()["workers"]] == urls
    for engine in engines:
        engine.stop()


def test_worker_urls_join_the_workers_of_the_file(serve, tmp_path, mock):
    one, two, three = mock(), mock(), mock()
    config = tmp_path / "fathom.yaml"
    config.write_text(f"workers:\n  - {one.url}\n  - url: {two.url}\n"
                      "    kv_events: tcp://127.0.0.1:5557\n    kv_events_topic: kv\n")
    router = serve("--config", config, env={"FATHOM_WORKER_URLS": three.url}, ready=3)
    urls = {w["url"] for w in router.get("/workers").json()["workers"]}
    assert urls == {one.url, two.url, three.url}


def test_a_file_configures_the_router(world, tmp_path):
    config = tmp_path / "fathom.yaml"
    config.write_text("port: 0\nmax-body-size: 1KiB\nlog-format: json\n")
    router = world.start("serve", "--config", config)
    router.wait_for_port()
    assert '"' in router.log_text()
    assert wire.ask(router.port, "POST", "/v1/score", b"{" + b" " * 2000 + b"}").status == 413


# --- pages


def test_the_configuration_page_is_the_one_in_docs():
    done = run_fathom("docs", "configuration")
    assert done.returncode == 0
    assert done.stdout == (ROOT / "docs/configuration.md").read_text()


@pytest.mark.parametrize("command", [[], ["serve"], ["mock"], ["demo"], ["bench"], ["docs"]])
def test_help_is_on_standard_output(command):
    done = run_fathom(*command, "--help")
    assert done.returncode == 0, done.stderr
    assert "fathom" in done.stdout
    assert done.stderr == ""


def test_help_names_every_option():
    text = run_fathom("serve", "--help").stdout
    names = printed()
    assert len(names) > 40
    for name in names:
        assert f"--{name} " in text or f"--[no-]{name} " in text, name


def test_the_version_is_printed():
    for args in (["version"], ["--version"]):
        done = run_fathom(*args)
        assert done.returncode == 0
        assert done.stdout.startswith("fathom 0.")


def test_no_command_is_a_mistake_that_shows_the_usage():
    done = run_fathom()
    assert done.returncode == 78
    assert "usage" in done.stderr.lower() + done.stdout.lower()
