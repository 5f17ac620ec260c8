"""Go's text/template, as much of it as the chart needs: what it does not know is an error, never a guess.

Where Helm would print `<no value>` or nothing for something that is not there, this fails.
"""

import re

ACTION = re.compile(r"\{\{(-(?=\s))?\s*(.*?)\s*((?<=\s)-)?\}\}", re.S)
TOKEN = re.compile(r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*") |
    (?P<raw>`[^`]*`) |
    (?P<number>-?\d+(?:\.\d+)?) |
    (?P<variable>\$\w*) |
    (?P<sign>:=|=|\||\(|\)|,) |
    (?P<field>\.\w+) |
    (?P<dot>\.) |
    (?P<word>\w+)
)""", re.X)
CONSTANTS = {"true": True, "false": False, "nil": None}


class TemplateError(Exception):
    pass


# --- reading


def actions_of(text):
    """Texts and actions in turn, with the blanks taken off that `{{-` and `-}}` take off."""
    at, pieces, trim = 0, [], False
    for found in ACTION.finditer(text):
        before = text[at:found.start()]
        if trim:
            before = before.lstrip()
        if found.group(1):
            before = before.rstrip()
        pieces.append(("text", before))
        if not found.group(2).startswith("/*"):
            pieces.append(("action", found.group(2)))
        at, trim = found.end(), bool(found.group(3))
    pieces.append(("text", text[at:].lstrip() if trim else text[at:]))
    return pieces


def tokens_of(action):
    at, tokens = 0, []
    while at < len(action):
        found = TOKEN.match(action, at)
        if not found:
            raise TemplateError(f"cannot read '{action[at:]}'")
        blank = action[at:at + 1].isspace()
        tokens.append((found.lastgroup, found.group(found.lastgroup), blank))
        at = found.end()
    return tokens


class Parser:
    """Nodes are tuples, the first of which says what they are."""

    def __init__(self, text):
        self.pieces = actions_of(text)
        self.at = 0

    def parse(self):
        nodes, end = self.block(())
        assert end is None
        return nodes

    def block(self, ends):
        """Up to one of `ends`: the nodes, and the action that ended them."""
        nodes = []
        while self.at < len(self.pieces):
            kind, value = self.pieces[self.at]
            self.at += 1
            if kind == "text":
                nodes.append(("text", value))
                continue
            word, _, rest = value.partition(" ")
            if word in ends:
                return nodes, value
            nodes.append(self.node(word, rest, value))
        if ends:
            raise TemplateError(f"no {' or '.join(ends)} to the end")
        return nodes, None

    def node(self, word, rest, whole):
        if word == "define":
            body, _ = self.block(("end",))
            return "define", rest.strip().strip('"'), body
        if word in ("if", "with", "range"):
            return self.branch(word, rest)
        if word in ("else", "end"):
            raise TemplateError(f"'{whole}' belongs to nothing")
        return "print", Pipeline(whole)

    def branch(self, word, rest):
        body, end = self.block(("else", "end"))
        other = []
        if end != "end":
            following = end.removeprefix("else").strip()
            if following:
                inner, _, condition = following.partition(" ")
                other = [self.branch(inner, condition)]
            else:
                other, _ = self.block(("end",))
        return word, Pipeline(rest), body, other


class Pipeline:
    """[$variable :=] command | command ..."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.at = 0
        self.targets, self.declares = self.assignment()
        self.commands = self.pipe()
        if self.at != len(self.tokens):
            raise TemplateError(f"too much in '{text}'")

    def assignment(self):
        kinds = [(kind, value) for kind, value, _ in self.tokens[:4]]
        for count in (1, 2):
            sign = 2 * count - 1
            if len(kinds) > sign and kinds[sign][1] in (":=", "=") and kinds[0][0] == "variable":
                self.at = sign + 1
                return [kinds[2 * i][1] for i in range(count)], kinds[sign][1] == ":="
        return [], False

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else (None, None, False)

    def pipe(self):
        commands = [self.command()]
        while self.peek()[1] == "|":
            self.at += 1
            commands.append(self.command())
        return commands

    def command(self):
        operands = []
        while self.peek()[0] and self.peek()[1] not in ("|", ")"):
            operands.append(self.operand())
        if not operands:
            raise TemplateError(f"nothing to do in '{self.text}'")
        return operands

    def operand(self):
        kind, value, _ = self.peek()
        self.at += 1
        if value == "(":
            term = ("pipe", self.pipe())
            if self.peek()[1] != ")":
                raise TemplateError(f"no ) in '{self.text}'")
            self.at += 1
        elif kind == "string":
            term = ("value", value[1:-1].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\"))
        elif kind == "raw":
            term = ("value", value[1:-1])
        elif kind == "number":
            term = ("value", float(value) if "." in value else int(value))
        elif kind == "variable":
            term = ("variable", value)
        elif kind == "field":
            term = ("field", ("dot",), value[1:])
        elif kind == "dot":
            term = ("dot",)
        elif kind == "word":
            term = ("value", CONSTANTS[value]) if value in CONSTANTS else ("function", value)
        else:
            raise TemplateError(f"'{value}' in '{self.text}'")
        while self.peek()[0] == "field" and not self.peek()[2]:
            term = ("field", term, self.peek()[1][1:])
            self.at += 1
        return term


# --- running


class Templates:
    def __init__(self, functions):
        self.functions = {**functions, "include": self.include}
        self.defined = {}

    def add(self, name, text):
        """A file: what it defines is known to all."""
        try:
            nodes = Parser(text).parse()
        except TemplateError as error:
            raise TemplateError(f"{name}: {error}") from None
        self.defined[name] = nodes
        for node in nodes:
            if node[0] == "define":
                self.defined[node[1]] = node[2]

    def include(self, name, dot):
        if name not in self.defined:
            raise TemplateError(f"there is no template '{name}'")
        return Run(self, dot).block(self.defined[name], {"$": dot}, dot)


def written(value):
    if value is None:
        raise TemplateError("what is printed here is not there")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        raise TemplateError("a map or a list is printed without toYaml")
    return str(value)


class Run:
    def __init__(self, templates, root):
        self.templates = templates
        self.root = root

    def block(self, nodes, scope, dot):
        scope = Scope(scope)
        return "".join(self.node(node, scope, dot) for node in nodes)

    def node(self, node, scope, dot):
        kind = node[0]
        if kind == "text":
            return node[1]
        if kind == "define":
            return ""
        if kind == "print":
            value = self.assign(node[1], scope, dot)
            return "" if node[1].targets else written(value)
        _, pipeline, body, other = node
        inner = Scope(scope)
        value = self.assign(pipeline, inner, dot) if kind != "range" else self.run(pipeline, scope, dot)
        if not value:
            return self.block(other, inner, dot)
        if kind == "range":
            return self.each(value, pipeline.targets, body, inner, dot)
        return self.block(body, inner, value if kind == "with" else dot)

    def each(self, values, targets, body, scope, dot):
        pairs = sorted(values.items()) if isinstance(values, dict) else enumerate(values)
        out = []
        for key, value in pairs:
            inner = Scope(scope)
            for name, item in zip(targets, [value] if len(targets) == 1 else [key, value]):
                inner.declare(name, item)
            out.append(self.block(body, inner, value))
        return "".join(out)

    def assign(self, pipeline, scope, dot):
        value = self.run(pipeline, scope, dot)
        for name in pipeline.targets:
            (scope.declare if pipeline.declares else scope.set)(name, value)
        return value

    def run(self, pipeline, scope, dot):
        try:
            return self.pipe(pipeline.commands, scope, dot)
        except TemplateError as error:
            raise TemplateError(f"{error}; in '{pipeline.text}'") from None

    def pipe(self, commands, scope, dot):
        piped = []
        for command in commands:
            first, *rest = command
            args = [self.value(operand, scope, dot) for operand in rest] + piped
            if first[0] == "function":
                result = self.function(first[1])(*args)
            else:
                result = self.value(first, scope, dot)
                if args:
                    if not callable(result):
                        raise TemplateError("a value is called like a function")
                    result = result(*args)
            piped = [result]
        return piped[0]

    def function(self, name):
        if name not in self.templates.functions:
            raise TemplateError(f"the function '{name}' is not known here")
        return self.templates.functions[name]

    def value(self, operand, scope, dot):
        kind = operand[0]
        if kind == "value":
            return operand[1]
        if kind == "dot":
            return dot
        if kind == "variable":
            return scope.get(operand[1])
        if kind == "pipe":
            return self.pipe(operand[1], scope, dot)
        if kind == "function":
            return self.function(operand[1])()
        holder = self.value(operand[1], scope, dot)
        if not isinstance(holder, dict):
            raise TemplateError(f"'.{operand[2]}' of something that is no map")
        return holder.get(operand[2])


class Scope:
    """Variables, which blocks inside may change, and declare anew for themselves."""

    def __init__(self, outer):
        self.outer = outer
        self.own = {}

    def declare(self, name, value):
        self.own[name] = value

    def holder(self, name):
        scope = self
        while isinstance(scope, Scope):
            if name in scope.own:
                return scope.own
            scope = scope.outer
        if name in scope:
            return scope
        raise TemplateError(f"the variable {name} is not declared")

    def get(self, name):
        return self.holder(name)[name]

    def set(self, name, value):
        self.holder(name)[name] = value
