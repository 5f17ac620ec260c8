"""What would `helm template` print? For charts that use no more than what is below."""

import hashlib
import json
from copy import deepcopy

import jsonschema
import yaml

from chart.go_template import TemplateError, Templates


def to_yaml(value):
    return yaml.safe_dump(value, default_flow_style=False, width=1 << 20).removesuffix("\n...\n").rstrip("\n")


def indent(spaces, text):
    return "\n".join(" " * spaces + line for line in text.split("\n"))


def fail(message):
    raise TemplateError(message)


def product(*values):
    result = 1
    for value in values:
        result *= int(value)
    return result


FUNCTIONS = {
    "add": lambda *values: sum(map(int, values)),
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "base": lambda path: path.rstrip("/").rsplit("/", 1)[-1],
    "contains": lambda part, text: part in text,
    "default": lambda otherwise, value=None: value or otherwise,
    "dict": lambda *items: dict(zip(items[::2], items[1::2])),
    "eq": lambda first, *others: any(first == other for other in others),
    "fail": fail,
    "get": lambda values, key: values.get(key, ""),
    "gt": lambda a, b: a > b,
    "has": lambda value, values: value in values,
    "index": lambda values, key: values.get(key),
    "int": lambda value: int(value or 0),
    "list": lambda *values: list(values),
    "mul": product,
    "ne": lambda a, b: a != b,
    "nindent": lambda spaces, text: "\n" + indent(spaces, text),
    "not": lambda value: not value,
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "print": lambda *values: "".join(map(str, values)),
    "printf": lambda form, *values: form % values,
    "quote": lambda value: json.dumps(str(value)),
    "replace": lambda old, new, text: text.replace(old, new),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "ternary": lambda yes, no, which: yes if which else no,
    "toYaml": to_yaml,
    "trimSuffix": lambda end, text: text.removesuffix(end),
    "trunc": lambda length, text: text[:length],
}


def merged(below, above):
    """As Helm merges values: maps key by key, all else as a whole, and null takes a key away."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return deepcopy(above)
    out = deepcopy(below)
    for key, value in above.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


class HelmChart:
    def __init__(self, folder, usual=None):
        """`usual`: values that all renderings have, unless others stand above them."""
        self.folder = folder
        self.usual = usual or {}
        self.about = yaml.safe_load((folder / "Chart.yaml").read_text())
        self.schema = json.loads((folder / "values.schema.json").read_text())

    def values(self, *above):
        """The chart's own with others above them, each a path or a map; refused if the schema does."""
        values = merged(yaml.safe_load((self.folder / "values.yaml").read_text()), self.usual)
        for layer in above:
            values = merged(values, layer if isinstance(layer, dict) else yaml.safe_load(layer.read_text()))
        jsonschema.Draft7Validator(self.schema).validate(values)
        return values

    def render(self, *above, release="fathom", namespace="llm"):
        """The text of each file under templates/, by name; notes among them."""
        templates = Templates(FUNCTIONS)
        names = sorted(path for path in (self.folder / "templates").iterdir())
        for path in names:
            templates.add(f"{self.about['name']}/templates/{path.name}", path.read_text())
        context = self.context(self.values(*above), release, namespace)
        rendered = {}
        for path in names:
            if path.suffix == ".tpl":
                continue
            name = f"{self.about['name']}/templates/{path.name}"
            try:
                rendered[path.name] = templates.include(name, context)
            except TemplateError as error:
                raise TemplateError(f"{path.name}: {error}") from None
        return rendered

    def context(self, values, release, namespace):
        return {
            "Values": values,
            "Chart": {key[:1].upper() + key[1:]: value for key, value in self.about.items()},
            "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
            "Template": {"BasePath": f"{self.about['name']}/templates"},
            "Files": {"Get": lambda name: (self.folder / name).read_text()},
        }

    def manifest(self, *above, **where):
        """One YAML stream, as `helm template` prints it."""
        texts = {name: text for name, text in self.render(*above, **where).items() if name != "NOTES.txt"}
        return "".join(f"---\n# Source: {name}\n{text.strip()}\n" for name, text in texts.items() if text.strip())

    def objects(self, *above, **where):
        return [each for each in yaml.safe_load_all(self.manifest(*above, **where)) if each]
