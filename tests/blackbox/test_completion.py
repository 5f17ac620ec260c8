"""`fathom completion` prints scripts with which bash, zsh and fish complete what the program really takes."""

import re
import shutil

import pytest

from conftest import run_fathom
from docs_pages import program_commands
from shells import SHELLS, asked, script_of

WITH_OPTIONS = sorted(program_commands() - {"bench", "docs", "completion", "version"})
ROUTER_MODES = ["direct", "kv", "least-loaded", "power-of-two", "prefix-hash", "random", "round-robin"]
FILES = ["a.log", "b.yaml", "sub"]

# What is offered for a line: exactly these, in some order.
OFFERS = {
    "fathom serve --router-mo": ["--router-mode"],
    "fathom serve --router-mode ": ROUTER_MODES,
    "fathom serve --router-mode=": ROUTER_MODES,
    "fathom serve --router-mode=ran": ["random"],
    "fathom serve --no-rou": ["--no-router-kv-events", "--no-routing-headers"],
    "fathom serve --no-print-config --router-mo": ["--router-mode"],
    "fathom serve --print-config --router-mo": ["--router-mode"],
    "fathom serve --port ": [],
    "fathom serve --admin-key ": [],
    "fathom serve --config ": FILES,
    "fathom serve --config=": FILES,
    "fathom serve --config=sub/": ["sub/c.pem"],
    "fathom serve --tls-cert-path ": FILES,  # another name of --tls-cert
    "fathom serve --model-path ": ["sub"],
    "fathom serve --model-path name=": ["sub"],
    "fathom serve --worker-urls http://a:8000 http://b:8000 --router-mo": ["--router-mode"],
    "fathom serve --health-check-path ": [],  # of a URL, not of this machine
    "fathom doctor --logs a.log ": FILES,
    "fathom doctor --logs a.log --manifest sub/": ["sub/c.pem"],
    "fathom doctor --logs a.log --forma": ["--format"],
    "fathom lint ": FILES,
    "fathom lint --format ": ["text", "json"],
    "fathom lint --format json b": ["b.yaml"],
    "fathom listen serve --show": ["--show-tokens"],  # the command is the first word
    "fathom docs no-ev": ["no-events"],
    "fathom docs --docs-url http://x no-ev": ["no-events"],
    "fathom docs --doc": ["--docs-url"],
    "fathom completion f": ["fish"],
    "fathom bench routing ": FILES,
    "fathom version ": [],
}


def options_of(command):
    """Those that --help shows, without their other names."""
    shown = run_fathom(command, "--help").stdout
    names = re.findall(r"^  --(\[no-\])?([a-z][\w-]*)", shown, re.MULTILINE)
    assert names
    return sorted({"--help"} | {f"--{name}" for _, name in names} | {f"--no-{name}" for no, name in names if no})


@pytest.fixture(scope="module", params=SHELLS)
def offered(request, tmp_path_factory):
    """{line: what the shell offers}, as words that would stand on the line; asked once."""
    assert shutil.which(request.param), "./dev setup installs it"
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "sub").mkdir()
    for name in ("a.log", "b.yaml", "sub/c.pem"):
        (folder / name).touch()
    lines = ["fathom ", "fathom docs ", *(f"fathom {command} --" for command in WITH_OPTIONS), *OFFERS]
    answers = asked(request.param, lines, folder)
    return {line: words_of(line, words) for line, words in answers.items()}


def words_of(line, words):
    """Shells name a file with its folder or without, and a value with its option or without."""
    begun = line.rpartition(" ")[2]
    named = {word.removeprefix(begun.rpartition("=")[0] + "=").rstrip("/") for word in words}
    folder = begun.rpartition("=")[2].rpartition("/")[0]
    named = {f"{folder}/{word}" if folder and not word.startswith(folder) else word for word in named}
    return sorted(word for word in named if not word.startswith("."))


def test_every_command_is_offered(offered):
    assert offered["fathom "] == sorted(program_commands())


def test_every_option_of_a_command_is_offered_and_no_other(offered):
    assert len(WITH_OPTIONS) > 5
    for command in WITH_OPTIONS:
        assert offered[f"fathom {command} --"] == options_of(command)


def test_every_page_is_offered(offered):
    pages = [line.split()[0] for line in run_fathom("docs").stdout.splitlines()]
    assert [word for word in offered["fathom docs "] if not word.startswith("--")] == sorted(pages)


def test_what_stands_at_the_cursor_is_completed(offered):
    assert {line: offered[line] for line in OFFERS} == {line: sorted(words) for line, words in OFFERS.items()}


def test_bash_completes_where_an_equals_sign_does_not_end_a_word(tmp_path):
    script = script_of("bash") + "COMP_WORDBREAKS=${COMP_WORDBREAKS//=}\n"
    line = "fathom serve --router-mode=r"
    (whole,) = asked("bash", [line], tmp_path, script).values()
    assert words_of(line, whole) == ["random", "round-robin"]


def test_bash_completes_a_switch_behind_an_equals_sign(tmp_path):
    *lines, behind = [f"fathom serve {flag}" for flag in
                      ("--print-config=", "--print-config=t", "--no-print-config=", "--print-config ")]
    answers = asked("bash", [*lines, behind], tmp_path)
    assert [answers[line] for line in lines] == [["false", "true"], ["true"], []]
    assert "--router-mode" in answers[behind]


def test_zsh_can_also_source_its_script():
    assert script_of("zsh").startswith("#compdef fathom\n")
    assert "compdef _fathom fathom" in script_of("zsh")


@pytest.mark.parametrize("args, complaint", [([], "no shell given"), (["tcsh"], "'tcsh'"),
                                             (["bash", "zsh"], "one shell at a time")])
def test_wrong_usage_exits_with_78_and_lists_the_shells(args, complaint):
    done = run_fathom("completion", *args)
    assert (done.returncode, done.stdout) == (78, "")
    assert complaint in done.stderr and "bash, zsh, fish" in done.stderr


def test_its_help_says_where_the_script_goes():
    done = run_fathom("completion", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"fathom completion {shell}" in done.stdout for shell in SHELLS)
