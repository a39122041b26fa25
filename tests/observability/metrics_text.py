"""Reads what a server answers at `/metrics`, and the names that an expression of Prometheus uses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Labels that Prometheus adds to all that it scrapes.
ADDED = {"job", "instance"}
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)(?:=~|!~|!=|=)"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r'\b((?:agentcfg_|process_)\w+|up\b)(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?')
_GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")


@dataclass
class Exposed:
    """The metrics of one answer in the text format."""

    described: set[str] = field(default_factory=set)
    typed: set[str] = field(default_factory=set)
    labels: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Exposed:
        """Read an answer."""
        found = cls()
        for line in text.splitlines():
            if line.startswith("# HELP "):
                found.described.add(line.split()[2])
            elif line.startswith("# TYPE "):
                found.typed.add(line.split()[2])
            elif line and not line.startswith("#"):
                sample = _SAMPLE.match(line)
                assert sample, line
                found.labels.setdefault(sample[1], set()).update(label_names(sample[2] or ""))
        return found

    def has(self, name: str) -> bool:
        """Whether there are samples of this name, with a help text and a type."""
        families = {name, re.sub(r"_(bucket|sum|count)$", "", name)}
        return name in self.labels and bool(families & self.described) and bool(families & self.typed)

    def faults(self, expression: str) -> list[str]:
        """What an expression names that is not exposed."""
        faults: list[str] = []
        grouped: set[str] = set(ADDED)
        for name, matchers in selectors(expression):
            known = ADDED | self.labels.get(name, set())
            grouped |= known
            if name != "up" and not self.has(name):
                faults.append(f"no metric {name}")
            faults += [f"no label {label} of {name}" for label in label_names(matchers) if label not in known]
        faults += [f"no label {label} to group by" for label in grouping(expression) if label not in grouped]
        return faults


def label_names(text: str) -> list[str]:
    """The names of the labels in braces."""
    return [match[1] for match in _LABEL.finditer(text)]


def selectors(expression: str) -> list[tuple[str, str]]:
    """The metrics in an expression, with the text in their braces."""
    return [(match[1], match[2] or "") for match in _SELECTOR.finditer(expression)]


def grouping(expression: str) -> set[str]:
    """The labels that an expression groups by."""
    lists = [match[1] for match in _GROUPED.finditer(expression)]
    return {label.strip() for text in lists for label in text.split(",") if label.strip()}
