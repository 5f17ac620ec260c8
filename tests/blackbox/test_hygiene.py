"""What must not be in the tree: hosts of package registries, paths of one person's machine, and words about how the
work came about, which say nothing to somebody who reads it later."""

import re
import subprocess

import pytest

from conftest import ROOT

# In pieces, so that this file is not what is found.
REGISTRIES = ["npm" + "js.", "py" + "pi.org", "python" + "hosted.", "crates" + ".io", "quay" + ".io/pypi",
              "rubygems" + ".", "maven" + ".org", "art" + "ifactory", "proxy.gol" + "ang"]
FORBIDDEN = {
    "a host of a package registry": re.compile("|".join(map(re.escape, REGISTRIES)), re.IGNORECASE),
    "a path of a developer's machine": re.compile(
        r"(?<![\w.~$}/-])/(?:work|Users|home/(?!ada\b|fathom\b|user\b)\w+)/\w"),
    "how the work came about": re.compile(
        r"\bas (?:the )?(?:task|ticket|assignment) (?:says|asks|demands)|\bwe were asked to\b|\b(?:my|our) assignment\b"
        r"|\bseeds/0\d\d|\bshared/(?:seed|ref)|\bissue #?\d{1,2}\b(?! of)", re.IGNORECASE),
}


def wrong_lines(text):
    if not any(pattern.search(text) for pattern in FORBIDDEN.values()):
        return []
    return [f"{number}: {what}: {line.strip()[:100]}" for number, line in enumerate(text.splitlines(), 1)
            for what, pattern in FORBIDDEN.items() if pattern.search(line)]


def tree():
    """The files that are, or would be, committed."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True,
                            check=False)
    if listed.returncode:
        pytest.skip("no git here: what belongs to the tree is not known")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_link_leads_out_of_the_tree():
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    links = [ROOT / line.split("\t")[1] for line in listed.splitlines() if line.startswith("120000 ")]
    assert [str(link) for link in links if link.readlink().is_absolute()] == []


def texts(paths):
    for path in paths:
        content = path.read_bytes()
        if b"\0" not in content[:8000] and len(content) < 4_000_000:
            yield path, content.decode(errors="replace")


def test_nothing_is_in_the_tree_that_does_not_belong_there():
    wrong = {str(path.relative_to(ROOT)): wrong_lines(text)[:5] for path, text in texts(tree())}
    assert {path: lines for path, lines in wrong.items() if lines} == {}


@pytest.mark.parametrize("line", [
    "https://registry.npm" + "js.org/x.tgz", "see /wo" + "rk/main/build", 'open("/home/' + 'jane/x")',
    "see seeds" + "/002",
    "as the ticket" + " says"])
def test_what_does_not_belong_there_is_noticed(line):
    assert wrong_lines("fine\n" + line)


@pytest.mark.parametrize("line", [
    "tests/corpus/work/x", "the work/rest ratio", "~/.cache/huggingface/hub", "/home/ada/.kube/config",
    "an issue of 10"])
def test_what_belongs_there_is_not_complained_about(line):
    assert wrong_lines(line) == []


def test_a_precompiled_header_names_no_path_of_its_clone():
    """Clones share what they compile through ccache: one that is gone would break the build of all others."""
    headers = [path for path in ROOT.glob("build/*/CMakeFiles/fathom_precompiled*.dir/**/*.h.o")
               if path.read_bytes()[:4] == b"CPCH"]
    if not headers:
        pytest.skip("nothing was built here with precompiled headers")
    assert [path for path in headers if str(ROOT).encode() in path.read_bytes()] == []
