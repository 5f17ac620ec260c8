"""Log lines that pages show or quote are lines that the program writes: the message is a literal of the source, with
anything in place of what is put into it, and the fields are fields of some record. And whoever searches docs/ for a
warning finds it."""

import re
from functools import cache

import pytest

from docs_pages import READ, blocks, below, fenced, foreign, line_at, literals, name_of, prose, sources

RECORD = re.compile(r"^ {0,3}(?:\d{4}-\d\d-\d\dT[\d:.]+Z?\s+)?(?:INFO|WARN|ERROR)\s+(?![A-Za-z_]+::)(?!\|)(.+)$")


def beginnings(message):
    """The message, and what of it reads like one: its clauses from the first on."""
    yield message
    for clause in re.finditer(r"\.(?= )|(?=[:;,] )", message):
        if len(message[:clause.end()]) >= 12:
            yield message[:clause.end()]


@cache
def messages():
    """What records can say, as patterns: what is put into a message is anything."""
    found = set()
    for text in literals():
        for words in beginnings(text.partition("\n")[0]):
            parts = re.split(r"\{[^{}]*\}", words)
            if len("".join(parts)) >= 7 and re.match(r"[A-Za-z]", words):
                found.add(".+?".join(map(re.escape, parts)))
    return [re.compile(pattern) for pattern in sorted(found)]


@cache
def record_fields():
    return set(re.findall(r'\{"([a-z_]+)",', "".join(sources().values())))


def is_said(message):
    """Whether a record can have this message, with or without its fields; … at its end stands for anything."""
    whole = re.sub(r"(…|\.\.\.)$", "", message).strip()
    for pattern in messages():
        match = pattern.match(whole)
        if match and (pattern.fullmatch(whole) or re.match(r" [a-z_]+=", whole[match.end():])):
            return True
        if whole != message and len(whole) >= 12 and pattern.pattern.startswith(re.escape(whole)):
            return True
    return False


def unsaid_lines(text):
    """Records in blocks that Fathom does not write; Dynamo's name a module of Rust."""
    wrong = []
    for block in blocks(text):
        if block.language not in ("", "text", "console"):
            continue
        lines = block.text.splitlines()
        for offset, line in enumerate(lines):
            # Lines of records are long; in pages they go on in the next line, indented.
            goes_on = re.match(r".*(?:\n {4,}\S.*)*", "\n".join(lines[offset:]))[0]
            record = RECORD.match(" ".join(goes_on.split()) if RECORD.match(line) else "")
            if record and record[1] not in foreign("log_lines"):
                unknown = set(re.findall(r" ([a-z_]+)=", re.sub(r'"[^"]*"?', "", record[1]))) - record_fields()
                wrong += [f"{block.line + offset}: {record[1]}"] if unknown or not is_said(record[1]) else []
    return wrong


def unsaid_quotations(text):
    """Code spans behind "Log:" that read like a message, and first cells of tables of Fathom's lines."""
    words = prose(text)
    quoted = []
    for said in re.finditer(r"\bLog: (.*?)(?=\n\s*\n|\n\* |\n- |\n#|\Z)", words, re.DOTALL):
        sentence = re.split(r"\.\s+(?=[A-Z])", said[1])[0]
        quoted += [(said.start(), span) for span in re.findall(r"`([^`]+)`", sentence)
                   if re.match(r"[A-Z][\w-]*\s+\w", span)]
    for section in re.finditer(r"^## .*Fathom's log\n(.*?)(?=^## |\Z)", words, re.MULTILINE | re.DOTALL):
        for row in re.finditer(r"^\| (`.*?) \|", section[1], re.MULTILINE):
            quoted += [(section.start(1) + row.start(), span) for span in re.findall(r"`([^`]+)`", row[1])]
    return [f"{line_at(words, at)}: {span}" for at, span in quoted
            if " ".join(span.split()) not in foreign("log_lines") and not is_said(" ".join(span.split()))]


# --- lines of other programs


@cache
def foreign_lines():
    """What is known of Dynamo's and the engines' logs: recorded ones, the phrases that the doctor looks for, a list."""
    recorded = [path.read_text(errors="replace") for path in below("tests/data/logs")]
    return "\n".join([*recorded, *literals(), *foreign("log_lines")])


def is_known(quoted):
    """Whether the pieces between … are in a log, with any numbers."""
    pieces = [piece.strip() for piece in re.split(r"…|\.\.\.", quoted)]
    return all(re.search(re.sub(r"\d+", r"\\d+", re.escape(piece)), foreign_lines()) for piece in pieces if piece)


def unknown_quotations(text):
    """First cells of tables of lines that Dynamo or engines write."""
    words = prose(text)
    wrong = []
    for section in re.finditer(r"^## Lines in (?:Dynamo's|the engines') logs?\n(.*?)(?=^## |\Z)", words, re.M | re.S):
        for row in re.finditer(r"^\| (`.*?) \|", section[1], re.MULTILINE):
            wrong += [f"{line_at(words, section.start(1) + row.start())}: {quoted}"
                      for quoted in re.findall(r"`([^`]+)`", row[1]) if not is_known(quoted)]
    return wrong


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_lines_of_other_programs_are_known(page):
    assert unknown_quotations(page.read_text()) == []


# --- lines of ours


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_log_lines_are_those_of_the_program(page):
    assert unsaid_lines(page.read_text()) + unsaid_quotations(page.read_text()) == []


# --- from the log to the page

# The commands that are no server say what is wrong where they are called.
NOT_SERVING = re.compile(r"src/(lab|diagnose)/|src/cli/(mock|demo|bench|doctor|lint|listen|tokenize)")


def warnings():
    """Literals that are written as warnings or errors."""
    found = set()
    for path, text in sources().items():
        if NOT_SERVING.search(str(path)):
            continue
        for call in re.finditer(r"log\w*\.(?:Warn|Error)\(\s*((?:\"(?:[^\"\\\n]|\\.)*\"\s*)+)", text):
            found.add("".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', call[1])))
    return sorted(found)


def not_found(message, text):
    """Whether nobody would find the message's first clause in the text."""
    clause = re.split(r"[:;.,{]", message)[0].strip()
    return clause not in " ".join(text.split())


def test_each_warning_is_found_in_the_docs():
    text = "\n".join(page.read_text() for page in below("docs", "*.md") if page.parent.name != "design")
    assert len(warnings()) > 10
    assert [message for message in warnings() if not_found(message, text)] == []


# --- that these can fail


@pytest.mark.parametrize("wrong", [
    "INFO  Auto-configured block size to 32 (from worker reports)",
    "WARN  A rank is doubtful: no_events cause=no_events",
    "WARN  Worker is not healthy; no requests are sent to it uri=http://10.0.0.2:8000",
    "2026-02-16T14:38:53.950Z INFO  Listening on something",
    "ERROR Frontend KV block size (16) matches worker block size (32)."])
def test_a_wrong_log_line_is_noticed(wrong):
    assert unsaid_lines(fenced(wrong))


@pytest.mark.parametrize("wrong", ["A rank is doubtful: no_events", "Auto-configured block size to 32",
                                   "Worker is not healthy; requests are sent to it"])
def test_a_wrong_quotation_is_noticed(wrong):
    assert unsaid_quotations(f"* Log: `{wrong}`, and so on.")
    assert unsaid_quotations(f"* Log: `A rank is trusted again`, or\n  `{wrong}`.")
    assert unsaid_quotations(f"## Lines in Fathom's log\n\n| line | do |\n|---|---|\n| `{wrong}` | nothing |\n")


def test_a_wrong_line_of_another_program_is_noticed():
    table = "## Lines in Dynamo's log\n\n| line | do |\n|---|---|\n| `{}` | nothing |\n"
    assert unknown_quotations(table.format("Failed to find the parent block"))
    assert unknown_quotations(table.format("Selected worker: … cached blocks: 9, tree size: 7")) == []


@pytest.mark.parametrize("right", [
    "INFO  Auto-configured KV block size to 32 (from worker reports) model=llama workers=4",
    "WARN  A rank is doubted: no_events url=http://10.0.0.2:8000 cause=no_events",
    "2026-02-16T14:38:53.950961Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: anything",
    "ERROR Frontend KV block size (16) does not match worker block size (32).",
    "WARN  Worker is not healthy; no requests are\n      sent to it url=http://10.0.0.2:8000",
    "INFO  Selected worker: worker_id=5 dp_rank=0, logit: 15026.054, cached blocks: 93, tree size: 93"])
def test_a_log_line_that_the_program_writes_is_not_complained_about(right):
    assert unsaid_lines(fenced(right)) == []


def test_a_warning_that_no_page_has_is_noticed():
    message = warnings()[0]
    assert not_found(message, "# Page\n\nAnother thing.") and not not_found(message, f"# Page\n\n`{message}`")
