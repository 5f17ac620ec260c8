"""`fathom docs fathom-serve.1` and the like print manual pages that man shows without a complaint."""

import os
import re
import shutil
import subprocess

import pytest

import wire
from conftest import run_fathom
from docs_pages import program_commands

PAGES = {"fathom-" + command: command for command in
         sorted(program_commands() - {"bench", "docs", "completion", "version"})}


def source_of(page):
    done = run_fathom("docs", page + ".1")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def shown(page, folder):
    """As man shows it in a terminal that is wide enough for each item to be one line."""
    assert shutil.which("man"), "./dev setup installs it"
    (folder / f"{page}.1").write_text(source_of(page))
    done = subprocess.run(["man", "--warnings=w", "-l", folder / f"{page}.1"], text=True, capture_output=True,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "2000"},
                          timeout=wire.PATIENCE, check=True)
    assert done.stderr == ""
    return done.stdout


def sentences(command):
    """{option: the sentence about it in --help}."""
    text = run_fathom(command, "--help").stdout
    items = re.findall(r"^  --(?:\[no-\])?([a-z][\w-]*)(?: \S+)*(?: {2,}|\n {8,})(.*?)\[(?:default|FATHOM_)",
                       text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(told.split()).partition(" One of ")[0] for name, told in items}


@pytest.mark.parametrize("page, command", PAGES.items(), ids=PAGES)
def test_a_page_has_every_option_as_help_has_it(page, command, tmp_path):
    text = shown(page, tmp_path)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    options = sentences(command)
    shown_by_help = re.findall(r"^  --(?:\[no-\])?([a-z][\w-]*)", run_fathom(command, "--help").stdout, re.MULTILINE)
    assert sorted(options) == sorted(shown_by_help) and len(options) > 3
    for name, sentence in options.items():
        assert any(re.match(rf"--{name}( |,|$)", line) for line in lines), name
        # Behind a short name there is room for it in the same line.
        assert sentence in lines or any(re.fullmatch(rf"--{name} \S+ " + re.escape(sentence), line)
                                        for line in lines), sentence
    assert re.search(rf"^ +{page} - [a-z].*[^.]$", text, re.MULTILINE)


def test_the_overview_has_every_command_and_every_page(tmp_path):
    text = shown("fathom", tmp_path)
    sections = dict(re.findall(r"^([A-Z][A-Z ]+)\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL))
    commands = re.findall(r"^ {7}(\w+)(?: +[A-Z].*)?$", sections["COMMANDS"], re.MULTILINE)
    assert sorted(commands) == sorted(program_commands())
    assert re.findall(r"^ +(\d+) +\S", sections["EXIT STATUS"], re.MULTILINE) == ["0", "1", "2", "78"]
    assert {f"{page}(1)" for page in PAGES} == set(re.findall(r"[\w-]+\(1\)", sections["SEE ALSO"]))
    assert {"ENVIRONMENT", "FILES"} <= set(sections)


@pytest.mark.parametrize("page", ["fathom", *PAGES])
def test_a_page_has_no_warning_at_the_width_of_a_terminal(page, tmp_path):
    (tmp_path / "page.1").write_text(source_of(page))
    done = subprocess.run(["man", "--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-Z", tmp_path / "page.1"],
                          text=True, capture_output=True, timeout=wire.PATIENCE, check=True,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
    assert done.stderr == ""


def test_they_are_not_in_the_list_of_pages():
    assert "fathom-serve.1" not in run_fathom("docs").stdout
    assert "fathom-serve.1" in run_fathom("docs", "--help").stdout


def test_a_hyphen_can_be_copied_from_the_source():
    text = source_of("fathom-serve")
    assert not re.search(r"(?<!\\)-", text)
