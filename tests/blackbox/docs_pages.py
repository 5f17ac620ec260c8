"""Reads what users read: the Markdown pages and the files in deploy/, with the line of everything found.

Checks are functions of a text that return what is wrong with it, so that each can be shown to notice a
text that was spoiled.
"""

import re
import shlex
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import PurePosixPath

import yaml

from conftest import ROOT, run_fathom

FOREIGN = yaml.safe_load((ROOT / "tests/data/foreign_names.yaml").read_text())
NOT_OURS = {"node_modules", "build", ".pytest_cache", ".git", "__pycache__"}


def below(folder, pattern="*"):
    return sorted(path for path in (ROOT / folder).rglob(pattern)
                  if path.is_file() and not NOT_OURS & set(path.relative_to(ROOT).parts[:-1]))


def name_of(path):
    return str(path.relative_to(ROOT))


PAGES = below(".", "*.md")
# What the pages for users consist of; the others are for those who change the program. Modules of the scripts that
# make packages call other programs, not this one.
DEPLOYED = [path for path in below("deploy") if path.suffix not in (".md", ".png", ".py")]
# Of a history, names that have gone are right.
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]
READ = [*CURRENT, *DEPLOYED]


def foreign(kind):
    """Names of one kind that belong to other programs."""
    return {name for names in FOREIGN[kind].values() for name in names}


# --- Markdown


@dataclass
class Block:
    info: str   # what stands behind the three backticks
    text: str
    line: int   # of its first line

    @property
    def language(self):
        return self.info.partition(" ")[0]


def blocks(text):
    """The fenced blocks, whatever they are indented by."""
    found, lines = [], text.splitlines()
    at = 0
    while at < len(lines):
        fence = re.match(r"( *)(`{3,}|~{3,})(.*)$", lines[at])
        if not fence:
            at += 1
            continue
        indent, marks, info = fence.groups()
        end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == marks), len(lines))
        inside = [line.removeprefix(indent) for line in lines[at + 1:end]]
        found.append(Block(info.strip(), "".join(line + "\n" for line in inside), at + 2))
        at = end + 1
    return found


def prose(text):
    """The text with empty lines in place of fenced blocks and HTML comments, so that lines keep their numbers."""
    lines = text.splitlines()
    for block in blocks(text):
        for number in range(block.line - 2, min(block.line + block.text.count("\n"), len(lines))):
            lines[number] = ""
    return re.sub(r"<!--.*?-->", lambda comment: "\n" * comment[0].count("\n"), "\n".join(lines),
                  flags=re.DOTALL)


def line_at(text, position):
    return text.count("\n", 0, position) + 1


def inline_code(text):
    """(line, code) of each code span outside of fenced blocks."""
    words = prose(text)
    return [(line_at(words, span.start()), " ".join(span[2].split()))
            for span in re.finditer(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", words, re.DOTALL)
            if "\n\n" not in span[2]]


def without_code(text):
    """The prose without its code spans, for links and headings are not looked for in them."""
    return re.sub(r"(?<!`)(`+)(?!`)((?:(?!\n\n).)+?)(?<!`)\1(?!`)", lambda span: re.sub(r"[^\n]", "x", span[0]),
                  prose(text), flags=re.DOTALL)


def links(text):
    """(line, target) of each link and image."""
    words = without_code(text)
    inline = re.finditer(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", words)
    named = re.finditer(r"^\[[^\]]+\]:\s+(\S+)", words, re.MULTILINE)
    html = re.finditer(r"<(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=\"([^\"\s]+)", words)
    return [(line_at(words, link.start()), link[1]) for way in (inline, named, html) for link in way]


def slug(heading):
    """The anchor that GitHub gives a heading."""
    shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    shown = re.sub(r"<[^>]+>", "", shown).strip().lower()
    return re.sub(r"[^\w\- ]", "", shown.replace("`", "").replace("*", "")).replace(" ", "-")


def anchors(text):
    """All that can stand behind # in a link to this page."""
    found, times = set(), {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", prose(text), re.MULTILINE):
        name = slug(heading)
        seen = times[name] = times.get(name, -1) + 1
        found.add(f"{name}-{seen}" if seen else name)
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def code_of(text):
    """All code of a page, in blocks and in the text."""
    return "\n".join([*(block.text for block in blocks(text)), *(code for _, code in inline_code(text))])


def fenced(text, info=""):
    """A page with one block, for tests of these tests."""
    return f"# Page\n\n```{info}\n{text}\n```\n"


# --- command lines

SEPARATORS = set("();<>|&")
BEFORE_A_COMMAND = {"sudo", "exec", "env", "nohup", "time", "if", "then", "do", "while", "until", "!", "else", "--"}


def split_words(line):
    """The words of a line by the shell's rules, or None where it goes on in the next one."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        return list(reader)
    except ValueError:
        return None


def without_comment(line):
    return re.sub(r"(^|\s)#(?!\S*['\"]\S*$).*$", "", line)


def logical_lines(code):
    """(offset, words) of each line with those that continue it; what is no shell is left out."""
    lines, at = code.splitlines(), 0
    while at < len(lines):
        start, text, words = at, "", None
        for end in range(at, min(at + 40, len(lines))):
            line = without_comment(lines[end])
            text += line[:-1] if line.endswith("\\") else line
            words = None if line.endswith("\\") else split_words(text)
            if words is not None:
                at = end
                break
            text += "" if line.endswith("\\") else "\n"
        if words:
            yield start, words
        at += 1


def simple_commands(code):
    """(offset, words) of each command between pipes, semicolons and the like."""
    for offset, words in logical_lines(code):
        command = []
        for word in [*words, ";"]:
            if set(word) <= SEPARATORS:
                if command:
                    yield offset, command
                command = []
            else:
                command.append(word.removeprefix("$"))


def arguments_of_fathom(words):
    """What follows the program's name where this command runs it, else None."""
    for at, word in enumerate(words):
        runs_here = all(before in BEFORE_A_COMMAND or re.match(r"\w+=|-|\d", before) or before == "timeout"
                        for before in words[:at]) or words[at - 1] in ("--", "-c")
        if PurePosixPath(word).name == "fathom" and runs_here:
            return words[at + 1:]
        if re.fullmatch(r"(?:\S+/)?fathom:[\w.-]+", word) and "run" in words[:at]:
            return words[at + 1:]
    return None


def calls(code):
    """(offset, arguments) of each time that the code runs fathom."""
    for offset, words in simple_commands(code):
        arguments = arguments_of_fathom(words)
        if arguments is not None:
            yield offset, arguments


def shell_blocks(text):
    """Blocks that may show commands; those in which programs' files or data are shown are none."""
    return [block for block in blocks(text) if block.language in ("", "sh", "bash", "console", "shell")]


def calls_in_page(text):
    """(line, arguments) of each fathom command on a page, in blocks and in the text."""
    found = [(block.line + offset, arguments) for block in shell_blocks(text)
             for offset, arguments in calls(block.text)]
    return found + [(line, arguments) for line, code in inline_code(text) for _, arguments in calls(code)]


def calls_in_example(text):
    """(line, arguments) of each fathom command in a file of deploy/, also in its comments."""
    found = []
    bare = re.sub(r"^\s*#+ ?", "", text, flags=re.MULTILINE)
    for line in re.finditer(r"(?:.*\\\n)*.*", bare):
        words = re.sub(r"^\s*(?:Exec\w+=[-+!@:]*|(?:CMD|ENTRYPOINT)\b|- )", "", line[0])
        if words.lstrip().startswith("["):
            words = re.sub(r"[\[\],]", " ", words)
        found += [(line_at(bare, line.start()), arguments) for _, arguments in calls(words) if is_meant(arguments)]
    return found


def is_meant(arguments):
    """A command, or what was meant to be one; not a sentence that begins with the program's name."""
    return any(word.startswith("--") for word in arguments) or bool(
        get_close_matches("".join(arguments[:1]), program_commands(), cutoff=0.75))


# --- what the program has


@cache
def program_commands():
    return set(re.findall(r"^  (\w+) ", run_fathom("--help").stdout, re.MULTILINE))


def flags_of_help(shown):
    flags = {f"--{no}{name}" for name in re.findall(r"^  --\[no-\]([\w-]+)", shown, re.MULTILINE)
             for no in ("", "no-")}
    flags |= set(re.findall(r"^  (--[a-z][\w-]*)", shown, re.MULTILINE))
    return flags | set(re.findall(r"\balso\s+(--[a-z][\w-]*)", shown)) | {"--help"}


@cache
def program_flags():
    """{command: its flags}."""
    return {command: flags_of_help(run_fathom(command, "--help").stdout) for command in program_commands()}


def flags_in(text):
    """Flags that a text names, by themselves or in a command."""
    return set(re.findall(r"(?<![\w\-./{])--[a-z][\w-]*\w(?!\.[a-z])", text))


@cache
def sources():
    return {path: path.read_text() for path in sorted((ROOT / "src").rglob("*.[ch]*"))
            if path.suffix in (".cc", ".h") and not path.stem.endswith(("_test", "_fuzz"))}


@cache
def literals():
    """All strings of the program; neighbours are one."""
    found = set()
    for text in sources().values():
        code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
        for run in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
            pieces = re.findall(r'"((?:[^"\\\n]|\\.)*)"', run)
            found.add("".join(pieces).replace('\\"', '"').replace("\\n", "\n"))
    return found
