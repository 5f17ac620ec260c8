"""python _tokens_python.py tokenizers|tiktoken MODEL_FOLDER RUNS FILE...: as _tokens_node.mjs, with
the library of that name."""

import json
import sys
import time
from pathlib import Path


def hugging_face(folder):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def byte_alphabet():
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {
        **{chr(byte): byte
           for byte in shown}, **{chr(256 + i): byte
                                  for i, byte in enumerate(hidden)}
    }


def tiktoken_encoding(folder):
    """The same vocabulary: ids are in the order of merges, which is what tiktoken goes by."""
    import tiktoken
    whole = json.loads((folder / "tokenizer.json").read_text())
    alphabet = byte_alphabet()
    ranks = {
        bytes(alphabet[c] for c in entry): number
        for entry, number in whole["model"]["vocab"].items()
    }
    split = next(part for part in whole["pre_tokenizer"]["pretokenizers"]
                 if part["type"] == "Split")
    encoding = tiktoken.Encoding(
        "model", pat_str=split["pattern"]["Regex"], mergeable_ranks=ranks,
        special_tokens={token["content"]: token["id"]
                        for token in whole["added_tokens"]})
    return lambda text: encoding.encode(text, allowed_special="all")


def measure(encode, file, runs):
    texts = [json.loads(line) for line in Path(file).read_bytes().rstrip(b"\n").split(b"\n")]
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        ids = [encode(text) for text in texts]
        seconds.append(time.perf_counter() - begun)
    digest = 0
    for one in (number for numbers in ids for number in numbers):
        digest = (digest * 31 + one) & 0xFFFFFFFF
    return {"seconds": seconds, "tokens": sum(map(len, ids)), "digest": digest}


def main():
    library, folder, runs, *files = sys.argv[1:]
    encode = {"tokenizers": hugging_face, "tiktoken": tiktoken_encoding}[library](Path(folder))
    print(json.dumps({"files": [measure(encode, file, int(runs)) for file in files]}))


main()
