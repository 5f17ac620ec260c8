"""The README: short, and its picture and numbers are those of the real binary."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from conftest import FATHOM, ROOT

README = (ROOT / "README.md").read_text()
PICTURE = ROOT / "docs/pictures/demo.svg"
LABELS = re.compile(r"fathom demo|kv|round-robin|follow-up|each second|reused|first turn|next token|turns|index"
                    r"|worker|mock-\d")


def words(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter()
            if element.tag.endswith("text") and element.text]


def labels(svg):
    """What stands in front of the numbers: the shape of the view."""
    return [found.group() for text in words(svg) if (found := LABELS.match(text))]


def test_the_readme_is_short():
    assert len(README.splitlines()) < 80


def test_the_picture_is_what_the_demo_shows_today():
    drawn = subprocess.run([sys.executable, ROOT / "tools/demo_picture", FATHOM, "4"], text=True,
                           capture_output=True, timeout=120, check=False)
    assert drawn.returncode == 0, drawn.stderr
    assert labels(drawn.stdout) == labels(PICTURE.read_text()), "draw it anew: ./dev picture"
    assert len(labels(drawn.stdout)) > 20


def test_the_readme_names_the_times_of_its_picture():
    shown = re.search(r"kv ([\d.]+ ms) \(n=\d+\), round-robin ([\d.]+ ms)", " ".join(words(PICTURE.read_text())))
    assert shown, "the picture has no line that compares"
    assert f"after {shown[1]} instead of {shown[2]}" in README


@pytest.mark.parametrize("command", sorted(set(re.findall(r"\./dev (\w+)", README))))
def test_the_readme_names_commands_of_dev_that_exist(command):
    listed = subprocess.run([ROOT / "dev", "help"], text=True, capture_output=True, check=True).stdout
    assert re.search(rf"^  {command}\b", listed, re.MULTILINE)
