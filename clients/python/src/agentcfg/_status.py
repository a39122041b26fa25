"""Reports of what an agent does, for as long as it does it. They are sent in the background: no work waits for them."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Generic, Protocol, TypeVar

from . import types
from ._holder import logger

DEFAULT_INTERVAL = 40.0
"""Seconds between two reports. The server forgets a report after two minutes unless it is configured otherwise."""

PATIENCE = 1.5
"""How many seconds the end of a block waits at most until its end is reported."""


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


Reporter = TypeVar("Reporter", SyncReporter, AsyncReporter)


def working(title: str, task_id: str | None) -> types.StatusReport:
    """Return the report of work on a task."""
    return {"status": "working", "current_task_id": task_id or uuid.uuid4().hex, "current_task_title": title}


def _unsent(agent_id: str, error: Exception) -> None:
    logger.warning("the status of %s was not reported: %s", agent_id, error)


class Work(Generic[Reporter]):
    """A block of work, and what sends its reports."""

    def __init__(self, client: Reporter, agent_id: str, report: types.StatusReport, interval: float) -> None:
        """Nothing is sent before the block begins."""
        self.client = client
        self.agent_id = agent_id
        self.report = report
        self.interval = interval


class _Line(Generic[Reporter]):
    """The work of one agent. What began last is reported; without work the agent is idle.

    Changes have numbers. All that have come while a report was sent are reported as one.
    """

    def __init__(self) -> None:
        self._works: list[Work[Reporter]] = []
        self._last: Work[Reporter] | None = None
        self._changes: int = 0
        self._reported: int = 0

    def _stop(self) -> None:
        self._works = []
        self._reported = self._changes

    def _change(self, work: Work[Reporter], *, is_begin: bool) -> int:
        self._works = [other for other in self._works if other is not work]
        if is_begin:
            self._works.append(work)
        self._last = work
        self._changes += 1
        return self._changes

    def _due(self) -> tuple[Work[Reporter], types.StatusReport] | None:
        """Return what holds now and through which work it is sent; `None` where it was reported already."""
        if self._last is None or self._reported == self._changes:
            return None
        if self._works:
            return self._works[-1], self._works[-1].report
        return self._last, {"status": "idle"}


class Line(_Line[SyncReporter]):
    """The work of one agent, of threads. One thread sends its reports, so that they arrive in order."""

    def __init__(self) -> None:
        """Begin without work, and without a thread."""
        super().__init__()
        self._moved = threading.Condition()
        self._thread: threading.Thread | None = None

    def begin(self, work: Work[SyncReporter]) -> None:
        """Add work."""
        with self._moved:
            self._change(work, is_begin=True)
            self._wake()

    def end(self, work: Work[SyncReporter]) -> None:
        """Remove work, and wait for a moment until that is reported."""
        with self._moved:
            change = self._change(work, is_begin=False)
            self._wake()
            self._moved.wait_for(lambda: self._reported >= change, PATIENCE)

    def close(self) -> None:
        """Repeat no report any more, which ends the thread."""
        with self._moved:
            self._stop()
            self._moved.notify_all()

    def _wake(self) -> None:
        """Send what is due. The caller holds the lock."""
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="agentcfg-status", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the interpreter ends, or there are too many threads
                self._reported = self._changes
                logger.warning("a status was not reported: %s", error)
                return
            self._thread = thread
        self._moved.notify_all()

    def _run(self) -> None:
        while True:
            with self._moved:
                due = self._due()
                while due is None:
                    if not self._works:
                        self._thread = None
                        return
                    if not self._moved.wait(min(self._works[-1].interval, threading.TIMEOUT_MAX)):
                        self._changes += 1  # the report is repeated
                    due = self._due()
                change = self._changes
            self._send(*due)
            with self._moved:
                self._reported = change
                self._moved.notify_all()

    def _send(self, work: Work[SyncReporter], report: types.StatusReport) -> None:
        try:
            work.client.report_agent_status(work.agent_id, report)
        except Exception as error:
            _unsent(work.agent_id, error)


class AsyncLine(_Line[AsyncReporter]):
    """The work of one agent, of tasks. One task sends its reports, so that they arrive in order."""

    def __init__(self) -> None:
        """Begin without work, and without a task."""
        super().__init__()
        self._task: asyncio.Task[None] | None = None
        self._wakes: asyncio.Future[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    async def begin(self, work: Work[AsyncReporter]) -> None:
        """Add work."""
        self._change(work, is_begin=True)
        await self._wake()

    async def end(self, work: Work[AsyncReporter]) -> None:
        """Remove work, and wait for a moment until that is reported."""
        reported: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._change(work, is_begin=False), reported))
        await self._wake()
        await asyncio.wait({reported}, timeout=PATIENCE)

    async def close(self) -> None:
        """Repeat no report any more, and end the task, which may be sending one."""
        self._stop()
        task = self._task
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            self._task = None
            self._note(self._changes)
            await asyncio.wait({task})

    async def _wake(self) -> None:
        """Send what is due."""
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.create_task(self._run())
        elif self._wakes is not None and not self._wakes.done():
            self._wakes.set_result(None)

    async def _run(self) -> None:
        while True:
            due = self._due()
            while due is None:
                if not self._works:
                    self._task = None
                    return
                self._wakes = asyncio.get_running_loop().create_future()
                done, _ = await asyncio.wait({self._wakes}, timeout=self._works[-1].interval)
                if not done:
                    self._changes += 1  # the report is repeated
                due = self._due()
            change = self._changes
            await self._send(*due)
            self._note(change)

    async def _send(self, work: Work[AsyncReporter], report: types.StatusReport) -> None:
        try:
            await work.client.report_agent_status(work.agent_id, report)
        except Exception as error:
            _unsent(work.agent_id, error)

    def _note(self, change: int) -> None:
        """Note what is reported, and end the waits for it."""
        self._reported = change
        for number, reported in self._waiting:
            if number <= change and not reported.done():
                reported.set_result(None)
        self._waiting = [(number, reported) for number, reported in self._waiting if not reported.done()]


class StatusReports(Work[SyncReporter]):
    """`working` while the block runs, repeated before it grows old; after it what else the agent does, or `idle`."""

    def __init__(
        self, client: SyncReporter, agent_id: str, report: types.StatusReport, interval: float, line: Line | None = None
    ) -> None:
        """Nothing is sent before the block begins."""
        super().__init__(client, agent_id, report, interval)
        self._line = line or Line()

    def __enter__(self) -> None:
        """Report the work, and begin to repeat it."""
        self._line.begin(self)

    def __exit__(self, *_: object) -> None:
        """Report the end of the work."""
        self._line.end(self)


class AsyncStatusReports(Work[AsyncReporter]):
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
        super().__init__(client, agent_id, report, interval)
        self._line = line or AsyncLine()

    async def __aenter__(self) -> None:
        """Report the work, and begin to repeat it."""
        await self._line.begin(self)

    async def __aexit__(self, *_: object) -> None:
        """Report the end of the work."""
        await self._line.end(self)
