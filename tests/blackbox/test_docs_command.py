"""`fathom docs` prints the pages of docs/ from the binary, so that a message can name one wherever it is read."""

import subprocess

import pytest

from conftest import FATHOM, ROOT, clean_environment, run_fathom
from docs_pages import links

DOCS = ROOT / "docs"


def embedded():
    """{name: file}; an index has the name of its folder."""
    pages = [page for page in sorted(DOCS.rglob("*.md"))
             if page.parent.name != "design" and page.name != "ARCHITECTURE.md"]
    return {page.parent.name if page.stem == "README" and page.parent != DOCS else page.stem: page for page in pages}


def test_no_two_pages_have_one_name():
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name != "design" and page.name != "ARCHITECTURE.md"]
    assert len(embedded()) == len(pages) > 40
    assert {"README", "runbooks", "moving", "no-events", "configuration", "metrics"} <= set(embedded())


@pytest.mark.parametrize("name, page", embedded().items(), ids=embedded())
def test_a_page_is_printed_as_it_is(name, page):
    done = subprocess.run([FATHOM, "docs", name], env=clean_environment(), capture_output=True, check=True)
    assert done.stdout == page.read_bytes()
    assert done.stderr == b""


def test_without_a_name_all_are_listed_with_their_titles():
    done = run_fathom("docs")
    assert (done.returncode, done.stderr) == (0, "")
    listed = dict(line.split(None, 1) for line in done.stdout.splitlines())
    titles = {name: next(line[2:] for line in page.read_text().splitlines() if line.startswith("# "))
              for name, page in embedded().items()}
    assert listed == titles
    assert list(listed) == sorted(listed)


def linked():
    """(page, target) of each link that needs the repository."""
    return sorted({(name, target) for name, page in embedded().items()
                   for _, target in links(page.read_text()) if "://" not in target and not target.startswith("#")})


@pytest.mark.parametrize("target", sorted({target for _, target in linked()}))
def test_what_a_link_leads_to_can_be_opened(target):
    done = subprocess.run([FATHOM, "docs", target], env=clean_environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {(embedded()[name].parent / target.partition("#")[0]).resolve() for name, to in linked() if to == target}
    for page in pages:
        shown = page / "README.md" if page.is_dir() else page
        if shown.exists():
            assert done.stdout == shown.read_bytes(), shown
        else:
            listed = done.stdout.decode().split()
            assert listed and all((ROOT / path).is_file() for path in listed)


def test_with_a_url_links_are_below_it():
    for extra in (["--docs-url", "https://wiki/fathom/docs"], ["--docs-url=https://wiki/fathom/docs/"]):
        text = run_fathom("docs", *extra, "no-events").stdout
        targets = [target for _, target in links(text) if not target.startswith("#")]
        assert targets and all(target.startswith("https://wiki/fathom/docs/") for target in targets)
    assert "(https://wiki/fathom/deploy/" in run_fathom("docs", *extra, "lint").stdout
    by_variable = run_fathom("docs", "no-events", env={"FATHOM_DOCS_URL": "https://wiki/fathom/docs"})
    assert by_variable.stdout == text


@pytest.mark.parametrize("name, near", [("no-event", "no-events"), ("metric", "metrics"), ("quickstrat", "quickstart")])
def test_an_unknown_page_is_answered_with_the_nearest(name, near):
    done = run_fathom("docs", name)
    assert (done.returncode, done.stdout) == (78, "")
    assert f"'{name}'" in done.stderr and f"did you mean '{near}'?" in done.stderr


@pytest.mark.parametrize("args", [["nothing-like-any-page"], ["no-events", "churn"], ["ARCHITECTURE"]],
                         ids=["unknown", "two", "for-contributors"])
def test_wrong_usage_exits_with_78(args):
    done = run_fathom("docs", *args)
    assert (done.returncode, done.stdout) == (78, "")
    assert "fathom docs" in done.stderr
