"""No example misleads: `fathom lint` has nothing against the pages and the files in deploy/, it really sees the engines
in them, no example sets a block size, and where a page shows one it says what it must match."""

import json
import re

import pytest

from conftest import ROOT, run_fathom
from docs_pages import DEPLOYED, PAGES, blocks, below, line_at, name_of

FOR_USERS = [page for page in PAGES if page == ROOT / "README.md" or name_of(page).startswith(("docs/", "deploy/"))]
# A chart's templates are text with holes; what they render to is looked at by the chart's own tests.
LINTED = [path for path in DEPLOYED if path.suffix in (".yaml", ".yml", ".toml", ".sh", ".json")
          and "templates" not in path.parts]
TOGETHER = {folder: [path for path in LINTED if path.parent == folder] for folder in {path.parent for path in LINTED}}

ENGINE = re.compile(r"\bvllm serve\b|\bvllm\.entrypoints\.openai\.api_server\b|\bsglang\.launch_server\b"
                    r"|\bsglang serve\b|\btrtllm-serve\b|\bdynamo\.(?:vllm|sglang|trtllm)\b")


def lint(*paths):
    """The findings, and whether everything could be read."""
    done = run_fathom("lint", "--format", "json", *paths)
    assert done.returncode in (0, 1, 2), done.stderr
    report = json.loads(done.stdout)
    return report["findings"], report["unread"]


def complaints(*paths):
    findings, unread = lint(*paths)
    return [f"{one['file']}:{one['line']}: {one['message']} [{one['id']}]" for one in findings] + unread


@pytest.mark.parametrize("path", [*FOR_USERS, *LINTED], ids=name_of)
def test_lint_has_nothing_against_it(path):
    assert complaints(path) == []


@pytest.mark.parametrize("folder", sorted(TOGETHER), ids=name_of)
def test_lint_has_nothing_against_what_is_deployed_together(folder):
    assert complaints(*TOGETHER[folder]) == []


def test_lint_has_nothing_against_all_of_it():
    assert complaints(*LINTED, ROOT / "docs", ROOT / "README.md") == []


# --- that it saw what is there


def spoiled(text):
    """The same engines, told not to keep what they computed."""
    text = re.sub(r"(\bvllm serve(?: +(?!-)[^\s`\\]+)?)", r"\1 --no-enable-prefix-caching", text)
    text = re.sub(r"(\bsglang\.launch_server|\bsglang serve)\b", r"\1 --disable-radix-cache", text)
    text = re.sub(r"(\bvllm\.entrypoints\.openai\.api_server)\b", r"\1 --no-enable-prefix-caching", text)
    return re.sub(r"enable_block_reuse: *true", "enable_block_reuse: false", text)


def engine_blocks(text):
    """Blocks with an engine that `spoiled` can spoil."""
    return [block for block in blocks(text) if ENGINE.search(block.text) and spoiled(block.text) != block.text
            and "wrong on purpose" not in block.text]


def blocks_not_seen(text, folder):
    """Blocks whose engine the linter does not find, because a mistake in it goes unnoticed."""
    unseen = []
    for number, block in enumerate(engine_blocks(text)):
        page = folder / f"{number}.md"
        page.write_text(f"# Spoiled\n\n```{block.language}\n{spoiled(block.text)}```\n")
        findings, _ = lint(page)
        if not any(one["id"] == "prefix-caching-off" for one in findings):
            unseen.append(f"{block.line}: {ENGINE.search(block.text)[0]}")
    return unseen


@pytest.mark.parametrize("page", [page for page in FOR_USERS if engine_blocks(page.read_text())], ids=name_of)
def test_lint_sees_the_engines_on_the_page(page, tmp_path):
    assert blocks_not_seen(page.read_text(), tmp_path) == []


ENGINE_FILES = [path for path in LINTED if re.search(r"kv-events-config|event_buffer_max_size", path.read_text())
                and path.suffix in (".yaml", ".yml")]


@pytest.mark.parametrize("path", ENGINE_FILES, ids=name_of)
def test_lint_sees_the_engines_in_the_example(path, tmp_path):
    """Published where a port is free, or kept until they are polled: what is wrong with either is noticed."""
    text = path.read_text()
    wrong = [(re.sub(r"(publisher\"?: *\"?)zmq", r"\1null", text), "publisher-off"),
             (text.replace("tcp://*:5657", "tcp://*:5557"), "port-collision"),
             (re.sub(r"event_buffer_max_size: *\d+", "event_buffer_max_size: 0", text), "event-buffer-off")]
    tried = [(spoilt, rule) for spoilt, rule in wrong if spoilt != text]
    assert tried
    for spoilt, rule in tried:
        copy = tmp_path / path.name
        copy.write_text(spoilt)
        assert rule in {one["id"] for one in lint(copy)[0]}, rule


def test_examples_of_each_engine_are_looked_at():
    shown = " ".join(block.text for page in FOR_USERS for block in engine_blocks(page.read_text()))
    assert {"vllm serve", "sglang.launch_server"} <= set(ENGINE.findall(shown))
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        assert any(engine in path.name for path in ENGINE_FILES), engine


# --- block sizes

SETTING = re.compile(
    r"(?:--(?:kv-(?:cache-)?)?block-size|--page-size|\b(?:DYN|FATHOM)_\w*BLOCK_SIZE|(?<!\")\btokens_per_block"
    r"|\bkv-cache-block-size|(?<![\w\"-])(?:block_size|page_size|page-size))"
    r"(?:`? (?:of \w+ )?to |[ =:]+\"?|\"?\s+value: *\"?| is (?:set to )?)(\d+)\b")
ENGINES_NUMBERS = {"vLLM": 16, "TensorRT-LLM": 32, "SGLang": 1}


def has_note(text):
    return re.search(r"\bmatch", text) and all(
        re.search(rf"{engine}(?:'s)?\W+(?:\w+\W+){{0,3}}{number}\b", text)
        for engine, number in ENGINES_NUMBERS.items())


def around(text, line):
    """The block that the line is in, if any, and six lines around that."""
    lines = text.splitlines()
    first = last = line
    for block in blocks(text):
        if block.line <= line < block.line + block.text.count("\n"):
            first, last = block.line, block.line + block.text.count("\n")
    return "\n".join(lines[max(0, first - 8):last + 6])


# A row of docs/configuration.md: flag, variables, default.
DEFAULT = re.compile(r"^\| `--[\w-]*(?:block|page)-size`(?: \|[^|\n]*){2} \| `(\d+)` \|", re.MULTILINE)


def bare_numbers(text):
    """Settings of a block size without what it must match beside them."""
    return [f"{line}: {found[0]}" for found in [*SETTING.finditer(text), *DEFAULT.finditer(text)]
            for line in [line_at(text, found.start())] if found[1] != "0" and not has_note(around(text, line))]


@pytest.mark.parametrize("path", [*FOR_USERS, *DEPLOYED], ids=name_of)
def test_a_block_size_stands_beside_what_it_must_match(path):
    assert bare_numbers(path.read_text()) == []


def sizes_set(text):
    """In comments they may be spoken of. SGLang's page may be larger than one, if the note is there."""
    code = re.sub(r"(^|\s)(#|//).*$", "", text, flags=re.MULTILINE)
    return [found[0] for found in SETTING.finditer(code)
            if not (re.search(r"page.size", found[0]) and has_note(text))]


@pytest.mark.parametrize("path", [*DEPLOYED, *below("deploy", "*.md")], ids=name_of)
def test_no_example_sets_a_block_size(path):
    assert sizes_set(path.read_text()) == []


@pytest.mark.parametrize("path", [path for path in DEPLOYED if path in ENGINE_FILES or path.name == "fathom.yaml"],
                         ids=name_of)
def test_an_example_says_where_its_block_size_comes_from(path):
    assert re.search(r"#.*block.size", path.read_text(), re.IGNORECASE)


# --- that these can fail

NOTE = "Must match the backend: vLLM 16, TensorRT-LLM 32, SGLang 1."


@pytest.mark.parametrize("setting", [
    "DYN_KV_CACHE_BLOCK_SIZE=32", "- name: DYN_KV_CACHE_BLOCK_SIZE\n  value: \"32\"", "--block-size 16",
    "--page-size=64", "tokens_per_block: 32", "fathom serve --kv-cache-block-size 16", "Set `--page-size` to 16",
    "block_size=16"])
def test_a_number_without_its_note_is_noticed(setting):
    assert bare_numbers(f"# Page\n\n```\n{setting}\n```\n") and sizes_set(setting)
    assert bare_numbers(f"# Page\n\n{NOTE}\n\n```\n{setting}\n```\n") == []
    assert bare_numbers(f"{setting}\n" + "\n" * 9 + NOTE), "too far away"
    assert bare_numbers(f"{setting}\n{NOTE.replace('32', '64')}")


def test_a_default_without_its_note_is_noticed():
    row = "| `--block-size` | `FATHOM_BLOCK_SIZE` |  | `16` | 1 to 65536 | Tokens per block."
    assert bare_numbers(f"{row} |\n") and bare_numbers(f"{row} {NOTE} |\n") == []
    assert bare_numbers(row.replace("`16`", "`0`") + " |\n") == []


def test_a_page_that_lint_complains_about_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\nvllm serve M --no-enable-prefix-caching\n```\n")
    assert complaints(page)


def test_a_block_that_lint_does_not_understand_is_noticed(tmp_path):
    seen = "```\nvllm serve M --port 1\n```\n"
    assert engine_blocks(seen) and blocks_not_seen(seen, tmp_path) == []
    assert blocks_not_seen("```json\n{\"x\": \"vllm serve M\"}\n```\n", tmp_path)
