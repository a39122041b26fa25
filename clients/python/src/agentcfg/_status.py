"""Reports of what an agent does, for as long as it does it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Protocol

from . import types
from ._holder import logger

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


def _unsent(agent_id: str, error: Exception) -> None:
    logger.warning("the status of %s was not reported: %s", agent_id, error)


class _Line:
    """The work of one agent. What began last is reported; without work the agent is idle."""

    def __init__(self) -> None:
        self._reports: list[types.StatusReport] = []
        self._changes = 0
        self._sent = 0
        self._lock = threading.Lock()

    def begin(self, report: types.StatusReport) -> int:
        """Add work, and return the number of this change."""
        with self._lock:
            self._reports.append(report)
            return self._changed()

    def end(self, report: types.StatusReport) -> int:
        """Remove work, and return the number of this change."""
        with self._lock:
            self._reports = [other for other in self._reports if other is not report]
            return self._changed()

    def repeat(self, report: types.StatusReport) -> int | None:
        """Return the number of a change after which this work is reported again; `None` while other work is."""
        with self._lock:
            return self._changed() if self._reports and self._reports[-1] is report else None

    def due(self, change: int | None) -> types.StatusReport | None:
        """Return what holds now; `None` where a report has been sent since this change."""
        with self._lock:
            if change is None or self._sent >= change:
                return None
            self._sent = self._changes
            return self._reports[-1] if self._reports else {"status": "idle"}

    def _changed(self) -> int:
        self._changes += 1
        return self._changes


class Line(_Line):
    """The work of one agent, of threads. Its reports are sent one after another, so that they arrive in order."""

    def __init__(self) -> None:
        """Begin without work."""
        super().__init__()
        self.sending = threading.Lock()


class AsyncLine(_Line):
    """The work of one agent, of tasks. Its reports are sent one after another, so that they arrive in order."""

    def __init__(self) -> None:
        """Begin without work."""
        super().__init__()
        self.sending = asyncio.Lock()


class StatusReports:
    """`working` while the block runs, repeated before it grows old; after it what else the agent does, or `idle`."""

    def __init__(
        self, client: SyncReporter, agent_id: str, report: types.StatusReport, interval: float, line: Line | None = None
    ) -> None:
        """Nothing is sent before the block begins."""
        self._client = client
        self._agent_id = agent_id
        self._report = report
        self._interval = interval
        self._line = line or Line()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="agentcfg-status", daemon=True)

    def __enter__(self) -> None:
        """Report the work, and begin to repeat it."""
        change = self._line.begin(self._report)
        try:
            self._send(change)
            self._thread.start()
        except BaseException:
            self._line.end(self._report)
            raise

    def __exit__(self, *_: object) -> None:
        """Report the end of the work."""
        self._ended.set()
        self._thread.join()
        self._send(self._line.end(self._report))

    def _repeat(self) -> None:
        while not self._ended.wait(self._interval):
            self._send(self._line.repeat(self._report))

    def _send(self, change: int | None) -> None:
        with self._line.sending:
            report = self._line.due(change)
            if report is None:
                return
            try:
                self._client.report_agent_status(self._agent_id, report)
            except Exception as error:
                _unsent(self._agent_id, error)


class AsyncStatusReports:
    """`working` while the block runs, repeated before it grows old; after it what else the agent does, or `idle`."""

    def __init__(
        self,
        client: AsyncReporter,
        agent_id: str,
        report: types.StatusReport,
        interval: float,
        line: AsyncLine | None = None,
    ) -> None:
        """Nothing is sent before the block begins."""
        self._client = client
        self._agent_id = agent_id
        self._report = report
        self._interval = interval
        self._line = line or AsyncLine()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        """Report the work, and begin to repeat it."""
        change = self._line.begin(self._report)
        try:
            await self._send(change)
        except BaseException:
            self._line.end(self._report)
            raise
        self._task = asyncio.create_task(self._repeat())

    async def __aexit__(self, *_: object) -> None:
        """Report the end of the work."""
        change = self._line.end(self._report)
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._send(change)

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._send(self._line.repeat(self._report))

    async def _send(self, change: int | None) -> None:
        async with self._line.sending:
            report = self._line.due(change)
            if report is None:
                return
            try:
                await self._client.report_agent_status(self._agent_id, report)
            except Exception as error:
                _unsent(self._agent_id, error)
