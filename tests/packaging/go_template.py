"""The part of Go's templates and of Helm's functions that the chart uses. What it does not know is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\d+|[()|,]|:=|[$.\w]+)')
_BLOCKS = ("if", "with", "range", "define")


class Stop(Exception):
    """The template has called `fail`."""


class Templates:
    """Templates that include each other."""

    def __init__(self, *texts: str) -> None:
        """Take the definitions of these templates."""
        self._defined: dict[str, list[Any]] = {}
        for text in texts:
            self.render(text, {})

    def render(self, text: str, data: dict[str, Any]) -> str:
        """Return a template filled in with data."""
        nodes, rest = _parse(_split(text))
        if rest:
            raise ValueError(f"unexpected {rest[0]}")
        return self._write(nodes, data, {"$": data})

    def _write(self, nodes: list[Any], dot: Any, names: dict[str, Any]) -> str:
        out: list[str] = []
        for kind, *node in nodes:
            if kind == "text":
                out.append(node[0])
            elif kind == "define":
                self._defined[node[0].strip('"')] = node[1]
            elif kind == "range":
                out.append(self._each(node, dot, names))
            elif kind in ("if", "with"):
                condition, then, other = node
                value = self._value(condition, dot, names)
                scope = value if kind == "with" and value else dot
                out.append(self._write(then if value else other, scope, names))
            elif ":=" in node[0]:
                name, expression = node[0].split(":=")
                names[name.strip()] = self._value(expression, dot, names)
            else:
                value = self._value(node[0], dot, names)
                out.append("" if value is None else str(value))
        return "".join(out)

    def _each(self, node: list[Any], dot: Any, names: dict[str, Any]) -> str:
        expression, body, _ = node
        variables, _, expression = expression.rpartition(":=")
        found = self._value(expression, dot, names)
        pairs = sorted(found.items()) if isinstance(found, dict) else enumerate(found)
        out: list[str] = []
        for key, value in pairs:
            bound = dict(zip([name.strip() for name in variables.split(",")], [key, value], strict=False))
            out.append(self._write(body, value, {**names, **bound}))
        return "".join(out)

    def _value(self, expression: str, dot: Any, names: dict[str, Any]) -> Any:
        tokens = _TOKEN.findall(expression)
        if "".join(tokens) != re.sub(r"\s", "", expression) and '"' not in expression:
            raise ValueError(f"cannot read {expression!r}")
        value, rest = self._pipeline(tokens, dot, names)
        if rest:
            raise ValueError(f"unexpected {rest} in {expression!r}")
        return value

    def _pipeline(self, tokens: list[str], dot: Any, names: dict[str, Any]) -> tuple[Any, list[str]]:
        value: list[Any] = []
        while True:
            words: list[Any] = []
            function: str | None = None
            while tokens and tokens[0] not in ("|", ")"):
                token, *tokens = tokens
                if token == "(":
                    inner, tokens = self._pipeline(tokens, dot, names)
                    if tokens.pop(0) != ")":
                        raise ValueError("a parenthesis is not closed")
                    words.append(inner)
                elif token[0] in '".$' or token.isdigit():
                    words.append(_operand(token, dot, names))
                elif function is None and not words:
                    function = token
                else:
                    raise ValueError(f"unexpected {token}")
            words += value
            value = [self._call(function, words, names) if function else words[0]]
            if not tokens or tokens[0] == ")":
                return value[0], tokens
            tokens = tokens[1:]

    def _call(self, name: str, words: list[Any], names: dict[str, Any]) -> Any:
        if name == "include":
            return self._write(self._defined[words[0]], words[1], {"$": words[1]})
        return FUNCTIONS[name](*words)


def _fail(message: str) -> None:
    raise Stop(message)


def _indented(width: int, text: str) -> str:
    return "\n" + "\n".join(" " * width + line if line else "" for line in text.split("\n"))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "default": lambda given, value: value or given,
    "eq": lambda one, other: one == other,
    "fail": _fail,
    "has": lambda item, items: item in items,
    "list": lambda *items: list(items),
    "lower": str.lower,
    "ne": lambda one, other: one != other,
    "nindent": _indented,
    "not": lambda value: not value,
    "quote": lambda value: '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "ternary": lambda yes, no, condition: yes if condition else no,
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False).rstrip("\n"),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length],
    "upper": str.upper,
}


def _operand(token: str, dot: Any, names: dict[str, Any]) -> Any:
    if token.startswith('"'):
        return token[1:-1].replace('\\"', '"')
    if token.isdigit():
        return int(token)
    first, *path = token.split(".")
    value = names[first] if first else dot
    for part in path:
        if part:
            if part not in value:
                raise ValueError(f"{token}: there is no {part}")
            value = value[part]
    return value


def _split(text: str) -> list[tuple[str, str]]:
    """Return the texts and the actions. A dash beside the braces trims the text on its side."""
    texts, actions, at, trims = [], [], 0, False
    for found in _ACTION.finditer(text):
        left, action, right = found.groups()
        between = text[at : found.start()]
        between = between.lstrip() if trims else between
        texts.append(between.rstrip() if left else between)
        actions.append(action)
        at, trims = found.end(), bool(right)
    last = text[at:].lstrip() if trims else text[at:]
    pieces = [piece for pair in zip(texts, actions, strict=True) for piece in (("text", pair[0]), ("action", pair[1]))]
    return [*pieces, ("text", last)]


def _parse(pieces: list[tuple[str, str]]) -> tuple[list[Any], list[tuple[str, str]]]:
    """Return the nodes up to an `else` or `end` of an outer block, and what follows."""
    nodes: list[Any] = []
    while pieces:
        kind, text = pieces[0]
        word = text.split(" ", 1)[0]
        if kind == "action" and word in ("else", "end"):
            return nodes, pieces
        pieces = pieces[1:]
        if kind == "text":
            nodes.append(("text", text))
        elif word in _BLOCKS:
            then, pieces = _parse(pieces)
            other: list[Any] = []
            if pieces[0][1] == "else":
                other, pieces = _parse(pieces[1:])
            if pieces[0][1] != "end":
                raise ValueError(f"{text} has no end")
            pieces = pieces[1:]
            nodes.append((word, text.split(" ", 1)[1], then, other))
        else:
            nodes.append(("value", text))
    return nodes, []
