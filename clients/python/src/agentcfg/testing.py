"""`AgentCfg` and `AsyncAgentCfg` without a server, for the tests of apps."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from . import _status, types
from ._holder import Holder
from ._status import DEFAULT_INTERVAL, AsyncLine, AsyncStatusReports, Line, StatusReports
from .agent import Agent
from .client import AsyncClient, Client
from .errors import AgentCfgError, ExchangeError, InputError
from .mirror import AgentCfg, AsyncAgentCfg
from .snapshot import Snapshot

URL = "http://agentcfg.invalid"
RELEASED_AT = "2026-01-01T00:00:00.000Z"
_AGENT_ID = re.compile(r"[a-z0-9_-]{1,50}")
_LABEL = re.compile(r"(?![0-9]+$)[a-z0-9][a-z0-9._-]{0,35}")


class Fields(TypedDict, total=False):
    """The configuration of an agent; what is left out has its default."""

    display_name: str
    role: str | None
    description: str | None
    agent_type: types.AgentType
    model: str | None
    color: str | None
    persona_prompt: str | None
    capabilities: list[str]
    parameters: dict[str, float]
    definition: Mapping[str, Any] | None


class Report(TypedDict):
    """A status that the app has reported."""

    agent_id: str
    report: types.StatusReport


class _Fake:
    """What both fakes can do besides what the real ones can."""

    label: str
    _holder: Holder
    reports: list[Report]
    """The statuses that the app has reported, in order."""

    _is_closed: bool
    _versions: dict[str, types.ReleasedAgent]

    def _begin(self, agents: Mapping[str, Fields]) -> None:
        if not _LABEL.fullmatch(self.label):
            raise InputError(f"label must be 1 to 36 of a-z, 0-9, ., _ and -, and not digits alone, got {self.label!r}")
        self.reports = []
        self._versions = {}
        self.release(agents)

    def release(self, agents: Mapping[str, Fields | None]) -> None:
        """Release new versions of these agents in one step, and remove those that are `None`. Others stay.

        As on the server, the content of the last version makes no new one, and an agent that comes back counts on.
        """
        for agent_id, fields in agents.items():
            _check(agent_id, fields or {})
        if self._is_closed:
            return
        current = dict(self._holder.snapshot()) if self._holder.health().source else dict[str, Agent]()
        for agent_id, fields in agents.items():
            if fields is None:
                current.pop(agent_id, None)
            else:
                row = _row(agent_id, self.label, 1, fields)
                last = self._versions.get(agent_id)
                if last is not None:
                    row["version"] = last["version"] + (row["config"] != last["config"])
                self._versions[agent_id] = row
                current[agent_id] = Agent.of(row)
        self._holder.publish(Snapshot(self.label, current), source="server")
        self._holder.confirm(is_live=True)

    def disconnect(self, error: AgentCfgError | None = None) -> None:
        """Behave as when the server is gone: the state stays, and `health` shows the failure."""
        self._holder.failed(error or ExchangeError("the fake is disconnected"))

    def reconnect(self) -> None:
        """Behave as when the server is back."""
        self._holder.confirm(is_live=True)


class FakeAgentCfg(_Fake, AgentCfg):
    """An `AgentCfg` that holds what a test gives it, and is ready at once."""

    def __init__(self, agents: Mapping[str, Fields] | None = None, *, label: str = "production") -> None:
        """Release these agents, by their ids."""
        AgentCfg.__init__(self, URL, "fake", label=label)
        self._begin(agents or {})

    def _start(self) -> None:
        """Start no thread."""

    @property
    def client(self) -> Client:
        """There is no server."""
        raise InputError("a fake has no server")

    def report_status(
        self, agent_id: str, *, working: str, task_id: str | None = None, interval: float = DEFAULT_INTERVAL
    ) -> StatusReports:
        """Record the reports in `reports`."""
        line = self._lines.setdefault(agent_id, _RecordedLine())
        return StatusReports(_Recorder(self.reports), agent_id, _status.working(working, task_id), interval, line)


class FakeAsyncAgentCfg(_Fake, AsyncAgentCfg):
    """An `AsyncAgentCfg` that holds what a test gives it, and is ready at once."""

    def __init__(self, agents: Mapping[str, Fields] | None = None, *, label: str = "production") -> None:
        """Release these agents, by their ids."""
        AsyncAgentCfg.__init__(self, URL, "fake", label=label)
        self._begin(agents or {})

    def _start(self) -> None:
        """Start no task."""

    @property
    def client(self) -> AsyncClient:
        """There is no server."""
        raise InputError("a fake has no server")

    def report_status(
        self, agent_id: str, *, working: str, task_id: str | None = None, interval: float = DEFAULT_INTERVAL
    ) -> AsyncStatusReports:
        """Record the reports in `reports`."""
        line, report = self._lines.setdefault(agent_id, _AsyncRecordedLine()), _status.working(working, task_id)
        return AsyncStatusReports(_AsyncRecorder(self.reports), agent_id, report, interval, line)


class _RecordedLine(Line):
    """Records at once."""

    def _wake(self) -> None:
        due = self._due()
        if due is not None:
            self._send(*due)
            self._reported = self._changes


class _AsyncRecordedLine(AsyncLine):
    """Records at once."""

    async def _wake(self) -> None:
        due = self._due()
        if due is not None:
            await self._send(*due)
            self._note(self._changes)


class _Recorder:
    def __init__(self, reports: list[Report]) -> None:
        self._reports = reports

    def report_agent_status(self, agent_id: str, body: types.StatusReport) -> None:
        self._reports.append({"agent_id": agent_id, "report": body})


class _AsyncRecorder:
    def __init__(self, reports: list[Report]) -> None:
        self._reports = reports

    async def report_agent_status(self, agent_id: str, body: types.StatusReport) -> None:
        self._reports.append({"agent_id": agent_id, "report": body})


def _check(agent_id: str, fields: Mapping[str, Any]) -> None:
    if not _AGENT_ID.fullmatch(agent_id):
        raise InputError(f"agent_id must be 1 to 50 of a-z, 0-9, - and _, got {agent_id!r}")
    unknown = [name for name in fields if name not in Fields.__annotations__]
    if unknown:
        raise InputError(f"{', '.join(unknown)} of {agent_id} is no field of an agent")


def _row(agent_id: str, label: str, version: int, fields: Fields) -> types.ReleasedAgent:
    defaults: Fields = {
        "display_name": agent_id,
        "role": None,
        "description": None,
        "agent_type": "ai",
        "model": None,
        "color": None,
        "persona_prompt": None,
        "capabilities": [],
        "parameters": {},
    }
    config = cast("types.AgentConfig", {**defaults, **copy.deepcopy(fields)})
    if config.get("definition") is None:  # a server has it only where one is set
        config.pop("definition", None)
    return {"agent_id": agent_id, "label": label, "version": version, "updated_at": RELEASED_AT, "config": config}
