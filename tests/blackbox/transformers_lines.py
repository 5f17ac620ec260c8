"""Run by an interpreter that has transformers: answers each line on standard input, a JSON object with a folder and a
chat or a text, with the tokens that transformers makes of it. Nothing of Fathom is in here."""

import json
import sys

from transformers import AutoTokenizer

LOADED = {}


def tokenizer_of(folder):
    if folder not in LOADED:
        LOADED[folder] = AutoTokenizer.from_pretrained(folder)
    return LOADED[folder]


def answer(question):
    tokenizer = tokenizer_of(question["folder"])
    if "text" in question:
        return {"ids": tokenizer.encode(question["text"], add_special_tokens=question["special"]),
                "class": type(tokenizer).__name__}
    prompt = tokenizer.apply_chat_template(question["messages"], tools=question["tools"], tokenize=False,
                                           **question["values"])
    return {"prompt": prompt, "ids": tokenizer.encode(prompt, add_special_tokens=False)}


for line in sys.stdin:
    try:
        found = answer(json.loads(line))
    except Exception as error:  # whatever it is, the other side compares it
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(found), flush=True)
