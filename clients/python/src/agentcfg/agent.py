"""An agent as a label releases it, in memory."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from . import types
from .errors import PromptError

# Only spaces may surround the name; a name that is not declared stays as it is, from its first brace on.
_PLACEHOLDER = re.compile(r"\{\{ *([A-Za-z0-9_]+) *\}\}")


@dataclass(frozen=True)
class Agent:
    """The configuration of an agent at the version that its label points at. It never changes."""

    agent_id: str
    """Identifier within the workspace."""
    label: str
    """The label that releases this version."""
    version: int
    """The number of the version."""
    updated_at: str
    """When the label was last moved, RFC 3339; for `latest`, when the version was made."""
    display_name: str
    """Name for people."""
    role: str | None = None
    """Job title."""
    description: str | None = None
    """What the agent is for."""
    agent_type: types.AgentType = "ai"
    """AI or human."""
    model: str | None = None
    """Name of the model that the agent runs on; `None` where none is set or the text is empty."""
    color: str | None = None
    """Avatar colour."""
    persona_prompt: str | None = None
    """The persona as it is stored, with its placeholders."""
    capabilities: tuple[str, ...] = ()
    """Capability tags."""
    _parameters: Mapping[str, float] = field(default_factory=lambda: dict[str, float](), repr=False)
    _definition: Mapping[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, released: types.ReleasedAgent) -> Agent:
        """Make an agent of a row of `GET /api/agents/released`."""
        config = released["config"]
        return cls(
            agent_id=released["agent_id"],
            label=released["label"],
            version=released["version"],
            updated_at=released["updated_at"],
            display_name=config["display_name"],
            role=config.get("role"),
            description=config.get("description"),
            agent_type=config["agent_type"],
            model=config.get("model") or None,
            color=config.get("color"),
            persona_prompt=config.get("persona_prompt"),
            capabilities=tuple(config["capabilities"]),
            _parameters=config["parameters"],
            _definition=cast("Mapping[str, Any] | None", config.get("definition")),
        )

    def is_same_version(self, other: Agent) -> bool:
        """Whether both are one version with one content, whenever the label was moved to it."""
        return self is other or (self.version == other.version and self == replace(other, updated_at=self.updated_at))

    @property
    def parameters(self) -> dict[str, float]:
        """The sliders of the personality, as a copy."""
        return dict(self._parameters)

    @property
    def definition(self) -> dict[str, Any]:
        """The definition, as a copy; empty where none is set."""
        return copy.deepcopy(dict(self._definition or {}))

    @property
    def model_settings(self) -> dict[str, Any]:
        """The settings of model calls (`definition.model_settings`), as a copy; empty where there are none."""
        return copy.deepcopy(dict(self._part("model_settings")))

    @property
    def tools(self) -> list[Any]:
        """The tools (`definition.tools`), as a copy; empty where there are none."""
        tools: list[Any] = (self._definition or {}).get("tools") or []
        return copy.deepcopy(tools)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables that the prompt may be given."""
        return tuple(self._part("variables"))

    def prompt(self, /, **variables: str) -> str | None:
        """Return the persona with the values of its variables, as a model call through the server would fill it in.

        A variable without a value is its default, else an empty text. `PromptError` names every required variable that
        is missing, and every one that the agent does not declare. The prompt is
        `None` for an agent without a persona, and where nothing is left of it.
        """
        declared = self._part("variables")
        wrong = [f"variables.{name} is not a variable of the agent" for name in variables if name not in declared]
        wrong += [f"variables.{name} must be a text" for name, value in variables.items() if not _is_text(value)]
        if self.persona_prompt:
            wrong += [
                f"variables.{name} is required"
                for name, variable in declared.items()
                if variable.get("required") and "default" not in variable and name not in variables
            ]
        if wrong:
            raise PromptError(f"{self.agent_id}: {'; '.join(wrong)}")

        values: dict[str, str] = {
            name: variables[name] if name in variables else variable.get("default", "")
            for name, variable in declared.items()
        }
        return _replaced(self.persona_prompt or "", values) or None

    def __hash__(self) -> int:
        """Return the hash of what names the content: agents that are equal have the same."""
        return hash((self.agent_id, self.label, self.version))

    def _part(self, name: str) -> Mapping[str, Any]:
        part: Mapping[str, Any] = (self._definition or {}).get(name) or {}
        return part


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """Replace in one pass, from left to right. An opening brace that begins no declared name stays, alone."""
    pieces: list[str] = []
    at = 0
    while (opening := text.find("{{", at)) >= 0:
        pieces.append(text[at:opening])
        found = _PLACEHOLDER.match(text, opening)
        if found and found[1] in values:
            pieces.append(values[found[1]])
            at = found.end()
        else:
            pieces.append("{")
            at = opening + 1
    pieces.append(text[at:])
    return "".join(pieces)
