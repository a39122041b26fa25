"""Reports of what an agent does, for as long as it does it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from contextlib import suppress
from typing import Protocol

from . import types
from ._holder import logger
from .errors import AgentCfgError

DEFAULT_INTERVAL = 40.0
"""Seconds between two reports. The server forgets a report after two minutes unless it is configured otherwise."""


class SyncReporter(Protocol):
    """What sends a report."""

    def report_agent_status(self, agent_id: str, body: types.StatusReport) -> object:
        """Send a report."""
        ...


class AsyncReporter(Protocol):
    """What sends a report."""

    async def report_agent_status(self, agent_id: str, body: types.StatusReport) -> object:
        """Send a report."""
        ...


def working(title: str, task_id: str | None) -> types.StatusReport:
    """Return the report of work on a task."""
    return {"status": "working", "current_task_id": task_id or uuid.uuid4().hex, "current_task_title": title}


def _unsent(agent_id: str, error: AgentCfgError) -> None:
    logger.warning("the status of %s was not reported: %s", agent_id, error)


class StatusReports:
    """`working` while the block runs, repeated before it grows old; `idle` after it."""

    def __init__(self, client: SyncReporter, agent_id: str, report: types.StatusReport, interval: float) -> None:
        """Nothing is sent before the block begins."""
        self._client = client
        self._agent_id = agent_id
        self._report = report
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="agentcfg-status", daemon=True)

    def __enter__(self) -> None:
        """Report the work, and begin to repeat it."""
        self._send(self._report)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Report that the agent is idle."""
        self._ended.set()
        self._thread.join()
        self._send({"status": "idle"})

    def _repeat(self) -> None:
        while not self._ended.wait(self._interval):
            self._send(self._report)

    def _send(self, report: types.StatusReport) -> None:
        try:
            self._client.report_agent_status(self._agent_id, report)
        except AgentCfgError as error:
            _unsent(self._agent_id, error)


class AsyncStatusReports:
    """`working` while the block runs, repeated before it grows old; `idle` after it."""

    def __init__(self, client: AsyncReporter, agent_id: str, report: types.StatusReport, interval: float) -> None:
        """Nothing is sent before the block begins."""
        self._client = client
        self._agent_id = agent_id
        self._report = report
        self._interval = interval
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Report the work, and begin to repeat it."""
        await self._send(self._report)
        self._task = asyncio.create_task(self._repeat())

    async def __aexit__(self, *_: object) -> None:
        """Report that the agent is idle."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._send({"status": "idle"})

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._send(self._report)

    async def _send(self, report: types.StatusReport) -> None:
        try:
            await self._client.report_agent_status(self._agent_id, report)
        except AgentCfgError as error:
            _unsent(self._agent_id, error)
