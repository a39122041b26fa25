"""What a label releases at one moment, and what is known about how current it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Literal

from . import types
from .agent import Agent
from .errors import AgentCfgError, NoSuchAgent

_CURSOR = re.compile(r"(.*)-c([0-9]+)")


@dataclass(frozen=True)
class Position:
    """A position in the change feed. Revisions are compared within one epoch of one workspace alone."""

    cursor: str
    """The text that the server gave."""
    epoch: str
    """What the cursor names besides the revision."""
    revision: int
    """The revision; -1 where the text shows none."""

    @classmethod
    def of(cls, cursor: str) -> Position:
        """Read a cursor. A text of another form is a position that is comparable with itself alone."""
        found = _CURSOR.fullmatch(cursor)
        return cls(cursor, found[1], int(found[2])) if found else cls(cursor, cursor, -1)

    def is_before(self, other: Position) -> bool:
        """Whether this is certainly an earlier state than the other one."""
        return self.epoch == other.epoch and self.revision < other.revision


class Snapshot(Mapping[str, Agent]):
    """The active agents that bear a label, by `agent_id`, all of one moment. It never changes.

    Agents that are read from one snapshot belong together, whatever is released meanwhile.
    """

    label: str
    """The label."""

    def __init__(self, label: str, agents: Mapping[str, Agent]) -> None:
        """Keep these agents, in their order."""
        self.label = label
        self._agents = MappingProxyType(dict(agents))

    @classmethod
    def of(cls, label: str, released: list[types.ReleasedAgent]) -> Snapshot:
        """Make a snapshot of the answer of `GET /api/agents/released`."""
        return cls(label, {row["agent_id"]: Agent.of(row) for row in released})

    def replaced(self, released: Iterable[types.ReleasedAgent]) -> Snapshot | None:
        """Return a snapshot with these agents in place of those of the same ids; `None` where one of them is new."""
        agents = {**self._agents, **{row["agent_id"]: Agent.of(row) for row in released}}
        return Snapshot(self.label, agents) if len(agents) == len(self) else None

    def __getitem__(self, agent_id: str) -> Agent:
        """Return an agent; `NoSuchAgent` names those that there are."""
        try:
            return self._agents[agent_id]
        except KeyError:
            names = ", ".join(list(self._agents)[:20]) or "none"
            message = f"no active agent {agent_id!r} bears the label {self.label!r}; those that do: {names}"
            raise NoSuchAgent(message) from None

    def __contains__(self, agent_id: object) -> bool:
        """Whether the label releases an agent."""
        return agent_id in self._agents

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids of the agents, oldest agent first."""
        return iter(self._agents)

    def __len__(self) -> int:
        """Return the number of agents."""
        return len(self._agents)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same agents. Most of those of two snapshots in a row are the same objects."""
        return self._agents == other._agents if isinstance(other, Snapshot) else super().__eq__(other)

    def __reduce__(self) -> tuple[type[Snapshot], tuple[str, dict[str, Agent]]]:
        """Let a snapshot be copied and pickled."""
        return type(self), (self.label, dict(self._agents))

    def __repr__(self) -> str:
        """Show the label and the versions."""
        return f"Snapshot({self.label!r}, {{{', '.join(f'{a.agent_id}: {a.version}' for a in self.values())}}})"


@dataclass(frozen=True)
class Change:
    """A step from one snapshot to the next: everything that one release has changed."""

    before: Snapshot
    """What was released before; empty at the first state."""
    after: Snapshot
    """What is released now."""

    @property
    def added(self) -> tuple[str, ...]:
        """The agents that were not released before."""
        return tuple(name for name in self.after if name not in self.before)

    @property
    def removed(self) -> tuple[str, ...]:
        """The agents that are no longer released: the label was removed, or the agent was deactivated."""
        return tuple(name for name in self.before if name not in self.after)

    @property
    def changed(self) -> tuple[str, ...]:
        """The agents that another version is released of, or after a restore of the server other content."""
        before, after = self.before, self.after
        return tuple(name for name in after if name in before and not before[name].is_same_version(after[name]))


@dataclass(frozen=True)
class Health:
    """How current the state in memory is."""

    source: Literal["server", "cache"] | None
    """Where the state is from; `None` before there is one."""
    is_live: bool
    """Whether changes are followed, by a stream or by long polls, so that a release is seen at once."""
    as_of: datetime | None
    """When the server last confirmed the state, in UTC. While it is live that is less than half a minute ago."""
    age: timedelta | None
    """The time since then."""
    error: AgentCfgError | None
    """The last failure, until the server has confirmed the state again."""
    cache_error: Exception | None
    """Why the cache file could not be read or written, until it could."""
