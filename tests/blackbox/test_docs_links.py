"""Whoever follows a link, an anchor or a path that a page, a message or an alert names, arrives."""

import re
from functools import cache

import pytest

from conftest import ROOT
from docs_pages import PAGES, anchors, below, inline_code, line_at, links, name_of, prose

# Made by a build, a run or a test, or an example of what somebody might have.
NOT_IN_THE_TREE = ("tests/blackbox/node/node_modules", "bench/name.py", "tests/corpus/thing")
REPOSITORY_PATH = r"(?:deploy|docs|src|tests|bench|tools|cmake)/(?:[\w./*<>-]|\{[^}]*\})*(?:[\w/*>]|\{[^}]*\})"


@cache
def anchors_of(path):
    return anchors(path.read_text())


def broken_links(text, page):
    wrong = []
    for line, target in links(text):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        where = (page.parent / path).resolve() if path else page
        if not where.exists() or not where.is_relative_to(ROOT):
            wrong.append(f"{line}: {target}")
        elif anchor and where.suffix == ".md":
            known = anchors(text) if where == page else anchors_of(where)
            wrong += [] if anchor in known else [f"{line}: {target}: no such heading"]
    return wrong


def exists(path):
    """In the tree; {a,b} and * stand for something, a source may have no ending, a design note only a number."""
    pattern = re.sub(r"\{[^}]*\}|<[^>]*>", "*", path).rstrip("/")
    patterns = [pattern, pattern + ".*", pattern + "-*" if re.search(r"/\d{4}$", pattern) else pattern]
    return path.startswith(NOT_IN_THE_TREE) or any(next(ROOT.glob(one), None) for one in patterns)


def missing_paths(text):
    """Paths of the repository in backticks, and in the blocks, that lead nowhere."""
    return [f"{line}: {path}" for line, code in inline_code(text)
            for path in re.findall(rf"(?<![\w/.-]){REPOSITORY_PATH}", code) if not exists(path)]


def missing_pages(text):
    """Pages of docs/ that comments, messages and annotations name."""
    return [f"{line_at(text, found.start())}: {found[0]}"
            for found in re.finditer(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg|png)\b", text) if not exists(found[0])]


def reachable(start):
    """The pages that links lead to from this one; of a folder, those that it would be shown with."""
    found, ahead = {start}, [start]
    while ahead:
        page = ahead.pop()
        for _, target in links(page.read_text()):
            path = (page.parent / target.partition("#")[0]).resolve()
            shown = sorted(path.glob("*.md")) if path.is_dir() else [path]
            new = {one for one in shown if "://" not in target and one.suffix == ".md" and one.is_file()} - found
            found |= new
            ahead += new
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors_lead_somewhere(page):
    assert broken_links(page.read_text(), page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_that_a_page_names_are_in_the_tree(page):
    assert missing_paths(page.read_text()) == []


@pytest.mark.parametrize("folder", ["src", "deploy", "tools", "bench", "tests/lint"])
def test_pages_that_sources_and_messages_name_exist(folder):
    named = {name_of(path): missing_pages(path.read_text()) for path in below(folder)
             if path.suffix in (".cc", ".h", ".py", ".yaml", ".yml", ".json", ".service", ".tpl", ".txt", ".sh", "")
             and not path.stem.endswith(("_test", "_fuzz"))}
    assert {path: missing for path, missing in named.items() if missing} == {}


def test_each_page_of_docs_can_be_reached_from_the_readme():
    found = reachable(ROOT / "README.md")
    assert [name_of(page) for page in below("docs", "*.md") if page not in found] == []


def test_each_picture_is_shown_somewhere():
    shown = {(page.parent / target).resolve() for page in PAGES for _, target in links(page.read_text())}
    pictures = [path for path in below("docs") if path.suffix in (".svg", ".png", ".gif")]
    assert [name_of(path) for path in pictures if path not in shown] == []


def test_no_page_has_tabs_in_its_text_or_a_fence_that_is_not_closed():
    for page in PAGES:
        text = page.read_text()
        assert len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 0, name_of(page)
        assert "\t" not in prose(text), name_of(page)


# --- that these can fail


@pytest.mark.parametrize("wrong", [
    "[x](nowhere.md)", "[x](README.md#no-such-heading)", "![x](pictures/none.svg)", "[x](#nothing-here)",
    "[a\nlink](over/lines.md)", '<img src="docs/none.svg">', "[x][y]\n\n[y]: nowhere.md", "[x](../outside.md)"])
def test_a_broken_link_is_noticed(wrong):
    assert broken_links(f"# Here\n\n{wrong}\n", ROOT / "README.md")


@pytest.mark.parametrize("right", [
    "[x](CHANGELOG.md)", "[x](docs/lint.md#wrong-on-purpose)", "[x](#twice-1)", "[x](#a-b--c-of-d)", "`[x](no.md)`",
    "[x](https://example.org/nothing)", "[x](deploy/)"])
def test_a_link_that_leads_somewhere_is_not_complained_about(right):
    page = f"# Twice\n\n## Twice\n\n## `A B`: & [C](d) *of* D?\n\n```\n[x](nowhere.md)\n```\n{right}\n"
    assert broken_links(page.replace("(d)", "(docs)").replace(": &", " &"), ROOT / "README.md") == []


def test_a_path_that_is_not_there_is_noticed():
    assert missing_paths("See `src/base/no_such_thing.h`.") and missing_paths("`deploy/kubernetes/none.yaml`")
    assert not missing_paths("`src/base/log.{h,cc}` and `docs/runbooks/` and `a/src/b`")
    assert missing_pages('"read docs/runbooks/no-such-page.md"')


def test_a_page_that_nobody_links_to_is_noticed(tmp_path):
    (tmp_path / "README.md").write_text("[a](a.md)")
    (tmp_path / "a.md").write_text("[back](README.md) [b](folder)")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/README.md").write_text("# B")
    (tmp_path / "alone.md").write_text("[a](a.md)")
    assert {page.name for page in reachable(tmp_path / "README.md")} == {"README.md", "a.md"}
    assert len(reachable(tmp_path / "README.md")) == 3
