"""Command lines on pages and in examples are ones that the programs accept: the command exists, its flags are of
that very command, its values are not refused, and files of options have keys that there are. Flags of engines and of
other routers are in tests/data/foreign_names.yaml, so that a typo in one is noticed, too."""

import re
import shlex
from functools import cache

import pytest
import yaml

from conftest import ROOT, run_fathom
from docs_pages import (CURRENT, DEPLOYED, FOREIGN, READ, blocks, calls_in_example, calls_in_page, code_of, fenced,
                        flags_in, foreign, inline_code, line_at, name_of, program_flags, shell_blocks,
                        simple_commands)

# --- commands and flags


def wrong_calls(text, found_in=calls_in_page):
    """Fathom's command lines that it would not accept."""
    wrong = []
    for line, arguments in found_in(text):
        command = arguments[0] if arguments else "--help"
        if command.startswith("--") or command.isupper() or command == "…":
            continue
        if command not in program_flags():
            wrong.append(f"{line}: fathom {command}")
            continue
        used = {word.partition("=")[0] for word in arguments if re.match(r"--[a-z]", word)}
        known = program_flags()[command] | ({"--ops", "--json"} if command == "bench" else set())
        wrong += [f"{line}: fathom {command} {flag}" for flag in sorted(used - known)]
    return wrong


@cache
def flags_of_tools():
    """Of ./dev, and of the programs in bench/, tools/ and tests/."""
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", (ROOT / "dev").read_text()))
    for path in [*(ROOT / "bench").glob("*.py"), *(ROOT / "tools").iterdir()]:
        named |= set(re.findall(r"[\"'](--[a-z][\w-]+)[\"']", path.read_text())) if path.is_file() else set()
    # bench/routing.py makes these of the names of its parts; --ops is of `fathom bench index`.
    return named | {f"--only-{part}" for part in ("virtual", "cohorts", "trust", "sockets")} | {"--ops"}


def unknown_flags(text):
    ours = set().union(*program_flags().values())
    # "--router-…" is any that begins so, and what an error complains about is wrong.
    whole = re.sub(r"--[\w-]+-(?=[…*]|\.\.\.)|--[\w-]+(?=: no such option)", "", text)
    return sorted(flags_in(whole) - ours - foreign("flags") - flags_of_tools())


@cache
def commands_of_dev():
    shown = re.search(r"<<'HELP'\n(.*?)^HELP$", (ROOT / "dev").read_text(), re.MULTILINE | re.DOTALL)[1]
    return set(re.findall(r"^  (\w+)", shown, re.MULTILINE))


def wrong_dev_commands(text):
    """./dev commands, and benchmarks and presets of them, that there are not."""
    wrong = []
    for found in re.finditer(r"\./dev(?: +([\w-]+))?(?: +([\w-]+))?", text):
        command, argument = found.groups()
        if command and command.isupper():
            continue
        fine = command is None or command in commands_of_dev()
        if command == "bench" and argument and not argument.startswith("-") and not argument.isupper():
            fine = (ROOT / f"bench/{argument}.py").exists()
        wrong += [] if fine else [f"{line_at(text, found.start())}: {found[0]}"]
    return wrong


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_command_lines_are_accepted_by_their_command(page):
    assert wrong_calls(page.read_text()) == []


@pytest.mark.parametrize("path", DEPLOYED, ids=name_of)
def test_command_lines_in_examples_are_accepted_by_their_command(path):
    assert wrong_calls(path.read_text(), calls_in_example) == []


# Scripts of the package call Debian's tools; test_package.py runs them.
@pytest.mark.parametrize("page", [page for page in READ if not page.read_text().startswith("#!")], ids=name_of)
def test_flags_exist(page):
    assert unknown_flags(page.read_text()) == []


# How other programs are started; the flags that follow must be of that very program.
PROGRAMS = [("vLLM", r"vllm serve|-m vllm\.entrypoints\.openai\.api_server"),
            ("SGLang", r"-m sglang\.launch_server|sglang serve"),
            ("TensorRT-LLM", r"trtllm-serve"),
            ("Dynamo", r"-m dynamo\.\w+"),
            ("SGLang's router", r"-m sglang_router\.launch_router|sglang-router|smg"),
            ("vLLM's router", r"vllm-router")]


def wrong_foreign_arguments(words):
    joined = shlex.join(words)
    for program, start in PROGRAMS:
        begun = re.search(rf"(?:^|\s|/)(?:{start})(?=\s|$)(.*)", joined, re.DOTALL)
        if begun:
            used = {word.partition("=")[0] for word in shlex.split(begun[1]) if re.match(r"--[a-z]", word)}
            return [f"{program} {flag}" for flag in sorted(used - set(FOREIGN["flags"][program]))]
    return []


def wrong_foreign_calls(text):
    """Command lines of engines and other routers with flags that those do not have."""
    code = [(block.line + offset, words) for block in shell_blocks(text)
            for offset, words in simple_commands(block.text)]
    code += [(line, words) for line, span in inline_code(text) for _, words in simple_commands(span)]
    return [f"{line}: {wrong}" for line, words in code for wrong in wrong_foreign_arguments(words)]


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_command_lines_of_other_programs_have_flags_of_theirs(page):
    assert wrong_foreign_calls(page.read_text()) == []


@pytest.mark.parametrize("page", CURRENT, ids=name_of)
def test_commands_of_dev_exist(page):
    assert wrong_dev_commands(code_of(page.read_text())) == []


PLACEHOLDERS = re.compile(r"[$…<>]|\.\.\.|[A-Z]{4,}")


def refused_calls(text):
    """Command lines of `fathom serve` with values that it refuses; those with placeholders are not tried."""
    wrong = []
    for line, arguments in calls_in_page(text):
        if arguments[:1] != ["serve"] or "--help" in arguments or PLACEHOLDERS.search(" ".join(arguments[1:])):
            continue
        wrong += [f"{line}: {problem}" for problem in refused(arguments)]
    return wrong


def key_in(example):
    """The admin key, where an example brings one in by the environment."""
    lines = [line for line in example.splitlines() if not line.lstrip().startswith("#")]
    return {"FATHOM_ADMIN_KEY": "s3cret"} if "FATHOM_ADMIN_KEY" in "\n".join(lines) else {}


def refused(arguments, env=None):
    """What `fathom serve` has against its arguments. A file of the reader's machine is not on this one."""
    words = [word for at, word in enumerate(arguments)
             if not (word.startswith("--config") or arguments[at - 1] == "--config")]
    tried = run_fathom(*words, "--print-config", env=env)
    return [] if tried.returncode == 0 else [f"{shlex.join(arguments)}: {tried.stderr.strip()}"]


@pytest.mark.parametrize("page", [page for page in CURRENT if "fathom serve -" in page.read_text()], ids=name_of)
def test_values_on_command_lines_are_accepted(page):
    assert refused_calls(page.read_text()) == []


# --- the file of options


def documents(text):
    """The YAML documents of a text; what is no YAML has none."""
    try:
        return [one for one in yaml.safe_load_all(text) if isinstance(one, dict)]
    except yaml.YAMLError:
        return []


def is_configuration(document):
    """A file for --config has workers and options, and nothing of Kubernetes, compose or an engine."""
    keys = {str(key).replace("_", "-") for key in document}
    options = {flag.removeprefix("--") for flag in program_flags()["serve"]}
    return "workers" in keys and isinstance(document["workers"], list) or len(keys & options) * 2 > len(keys)


def refused_configurations(text, folder):
    wrong = []
    for block in blocks(text):
        for document in documents(block.text) if block.language in ("yaml", "yml") else []:
            wrong += refusal_of(document, folder, block.line)
    return wrong


def refusal_of(document, folder, where, env=None):
    if not is_configuration(document):
        return []
    file = folder / "fathom.yaml"
    file.write_text(yaml.safe_dump(document))
    tried = run_fathom("serve", "--config", file, "--print-config", env=env)
    return [] if tried.returncode == 0 else [f"{where}: {tried.stderr.strip()}"]


@pytest.mark.parametrize("page", [page for page in CURRENT if "```y" in page.read_text()], ids=name_of)
def test_files_of_options_are_accepted(page, tmp_path):
    assert refused_configurations(page.read_text(), tmp_path) == []


def embedded(value):
    """Texts of several lines in a document, as ConfigMaps have them, and the document itself."""
    if isinstance(value, dict):
        return [value, *(one for part in value.values() for one in embedded(part))]
    if isinstance(value, list):
        return [one for part in value for one in embedded(part)]
    return documents(value) if isinstance(value, str) and "\n" in value else []


@pytest.mark.parametrize("path", [path for path in DEPLOYED if path.suffix in (".yaml", ".yml")], ids=name_of)
def test_files_of_options_in_examples_are_accepted(path, tmp_path):
    assert [wrong for document in documents(path.read_text()) for part in embedded(document)
            if "apiVersion" not in part and "image" not in part
            for wrong in refusal_of(part, tmp_path, path.name, key_in(path.read_text()))] == []


# --- arguments in examples


def argument_lists(value):
    """(image, command and arguments) of what a document runs: containers, compose services."""
    found = []
    if isinstance(value, dict):
        if "image" in value and not isinstance(value["image"], dict):
            words = [word for key in ("entrypoint", "command", "args") for word in as_words(value.get(key))]
            found.append((str(value["image"]), words))
        found += [one for part in value.values() for one in argument_lists(part)]
    elif isinstance(value, list):
        found += [one for part in value for one in argument_lists(part)]
    return found


def as_words(value):
    return shlex.split(value) if isinstance(value, str) else [str(word) for word in value or []]


def wrong_arguments(image, words, env=None):
    if not re.search(r"(^|/)fathom(:|$)", image):
        script = " ".join(words[2:]) if words[1:2] in (["-c"], ["-ec"]) else shlex.join(words)
        return [wrong for _, command in simple_commands(script) for wrong in wrong_foreign_arguments(command)]
    words = [word for word in words if not word.endswith("fathom")]
    if not words or words[0] not in program_flags():
        return [f"no command: {words}"] if words else []
    used = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    unknown = sorted(used - program_flags()[words[0]])
    return unknown or (refused(words, env) if words[0] == "serve" and "$" not in shlex.join(words) else [])


@pytest.mark.parametrize("path", [path for path in DEPLOYED if path.suffix in (".yaml", ".yml")], ids=name_of)
def test_arguments_in_examples_are_accepted(path):
    assert [wrong for document in documents(path.read_text()) for image, words in argument_lists(document)
            for wrong in wrong_arguments(image, words, key_in(path.read_text()))] == []


# --- that these can fail


def test_much_is_looked_at():
    assert sum(len(calls_in_page(page.read_text())) for page in CURRENT) > 100
    assert sum(len(calls_in_example(path.read_text())) for path in DEPLOYED) > 3
    shown = [document for page in CURRENT for block in blocks(page.read_text()) if block.language == "yaml"
             for document in documents(block.text)]
    assert sum(map(is_configuration, shown)) > 2
    images = [image for path in DEPLOYED if path.suffix in (".yaml", ".yml")
              for document in documents(path.read_text()) for image, _ in argument_lists(document)]
    assert {re.search(r"fathom|vllm|sglang|tensorrt-llm", image)[0] for image in images if image} == {
        "fathom", "vllm", "sglang", "tensorrt-llm"}


@pytest.mark.parametrize("wrong", [
    "fathom serv --port 1", "fathom serve --prot 1", "build/release/fathom lint --url x", "x=1 fathom mock --workers 3",
    "kubectl logs x | fathom doctor --mainfest y", "timeout 5 fathom serve --worker-urls a \\\n  --no-such b &",
    "kubectl exec x -- fathom listen --probe 3", "docker run --rm fathom:0.1.0 serve --prot 3",
    "vllm serve M --kv-events-config '{\"a\":\n  1}' && fathom serve --engine x"])
def test_a_wrong_command_line_is_noticed(wrong):
    assert wrong_calls(fenced(wrong, "sh")) and wrong_calls(fenced(wrong))
    assert "\n" in wrong or wrong_calls(f"Use `{wrong}` for it.")


def test_right_command_lines_are_not_complained_about():
    right = "fathom serve --http-port=1 --no-print-config # --prot\nkubectl -n llm get svc fathom\nfathom --help"
    assert wrong_calls(fenced(right)) == []
    assert len(calls_in_page(fenced(right))) == 2


def test_a_value_that_is_refused_is_noticed():
    assert refused_calls(fenced("fathom serve --host 0.0.0.0"))
    assert refused_calls(fenced("fathom serve --router-mode round-robbin"))
    assert refused_calls(fenced("fathom serve --router-mode round-robin --model-path $FILES")) == []


@pytest.mark.parametrize("check, wrong, right", [
    (unknown_flags, "vLLM's `--block-sized`", "vLLM's `--block-size`, `--router-…`"),
    (wrong_dev_commands, "./dev tset", "./dev test --fast"),
    (wrong_dev_commands, "./dev bench nothing", "./dev bench routing"),
])
def test_a_wrong_flag_or_command_is_noticed(check, wrong, right):
    assert check(wrong)
    assert check(right) == []


def test_a_wrong_file_of_options_is_noticed(tmp_path):
    wrong = "workers:\n  - url: http://a:1\n    ca_fiel: x"
    assert refused_configurations(fenced(wrong, "yaml"), tmp_path)
    assert refused_configurations(fenced(wrong.replace("ca_fiel", "ca_file"), "yaml"), tmp_path) == []
    assert refused_configurations(fenced("port: 1\nrouter-moed: kv\nhost: x", "yaml"), tmp_path)


def test_a_wrong_argument_in_an_example_is_noticed():
    container = {"spec": {"containers": [{"image": "fathom:0.1.0", "args": ["serve", "--prot=1"]}]}}
    (image, words), = argument_lists(container)
    assert wrong_arguments(image, words) == ["--prot"]
    assert wrong_arguments(image, ["serev"])
    assert wrong_arguments(image, ["serve", "--router-mode=kvv"])
    assert wrong_arguments("vllm/vllm-openai", ["vllm", "serve", "M", "--tp-size", "4"]) == ["vLLM --tp-size"]
    assert wrong_arguments("x", ["sh", "-c", "exec trtllm-serve M --tp-size 4"]) == ["TensorRT-LLM --tp-size"]


@pytest.mark.parametrize("wrong", [
    "#   fathom lint --prot x", "ExecStart=/usr/bin/fathom serve --conf x", 'ENTRYPOINT ["/usr/bin/fathom", "serv"]',
    "it's a comment\nfathom serve \\\n  --prot 1\nit's another"])
def test_a_wrong_command_line_in_an_example_is_noticed(wrong):
    assert wrong_calls(wrong, calls_in_example)


def test_a_flag_of_another_program_is_noticed():
    assert wrong_foreign_calls(fenced("CUDA_VISIBLE_DEVICES=0 vllm serve M --tp_size 4 &"))
    assert wrong_foreign_calls("Start `python3 -m sglang.launch_server --block-size 16`.")
    assert wrong_foreign_calls(fenced("python -m sglang.launch_server --tp-size 4")) == []
