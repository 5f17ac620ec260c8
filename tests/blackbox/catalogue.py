"""The metrics that Fathom has, as docs/metrics.md says it: `fathom docs metrics` prints that page."""

import re

from conftest import ROOT

PAGE = ROOT / "docs/metrics.md"
PARTS = re.compile(r"^### (\w+)\n\n.*?^\* Type: (\w+)\n\* Labels: (.*?)^\* What to do: ", re.M | re.S)


def read_catalogue(page):
    """{name: (type, {label: its values, or None where they are no closed set})}"""
    catalogue = {}
    for name, kind, labels in PARTS.findall(page):
        names = {} if labels.strip() == "none" else {
            label: set(re.findall(r"`(\w+)`", values)) or None
            for label, values in re.findall(r"`(\w+)`(?:\s+\(([^)]*)\))?(?:;|$)", labels.strip())}
        catalogue[name] = (kind, names)
    return catalogue


CATALOGUE = read_catalogue(PAGE.read_text())


def family_of(series):
    """The family of a series: those of a histogram have endings."""
    base = re.sub(r"_(bucket|sum|count)$", "", series)
    return base if CATALOGUE.get(base, ("", {}))[0] == "histogram" else series


def selectors(text):
    """(metric, {label: the values that are named}) for each metric that the text speaks of."""
    found = []
    for name, labels in re.findall(r"\b((?:fathom|kv_router)_\w+[a-z])\b(?:\{([^}]*)\})?", text):
        values = {label: set(value.split("|"))
                  for label, value in re.findall(r'(\w+)(?:=~|!=|!~|=)"([^"]*)"', labels)}
        found.append((family_of(name), values))
    return found


def unknown(text, others=()):
    """What the text says of metrics, and the catalogue does not."""
    wrong = []
    for name, labels in selectors(text):
        if name not in CATALOGUE:
            wrong.append(name)
            continue
        known = CATALOGUE[name][1]
        for label, values in labels.items():
            if label in others:
                continue
            if label not in known:
                wrong.append(f"{name} has no label {label}")
            elif known[label] is not None and values - known[label]:
                wrong.append(f"{name}: {label} is never {values - known[label]}")
    return wrong
