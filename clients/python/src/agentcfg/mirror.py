"""The configurations of a label, kept current in memory: `AgentCfg` and `AsyncAgentCfg`."""

from __future__ import annotations

import asyncio
import atexit
import os
import ssl
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from . import _status, calls
from ._cache import CacheFile
from ._follower import Follower
from ._holder import Holder, logger
from ._sdk import ModelCalls
from ._status import DEFAULT_INTERVAL, AsyncLine, AsyncStatusReports, Line, StatusReports
from .agent import Agent
from .calls import Key
from .client import AsyncClient, Client, within
from .errors import AgentCfgError, TimedOut
from .snapshot import Change, Health, Snapshot
from .timing import NO_RETRIES, SYSTEM_CLOCK, Clock, RetryPolicy, Timeouts

if TYPE_CHECKING:
    import anthropic
    import openai


AnyClient = TypeVar("AnyClient", Client, AsyncClient)
AgentCfgType = TypeVar("AgentCfgType", bound="AgentCfg")
AsyncAgentCfgType = TypeVar("AsyncAgentCfgType", bound="AsyncAgentCfg")


class Mirror:
    """What `AgentCfg` and `AsyncAgentCfg` have in common: the state in memory. Nothing here does input or output."""

    def __init__(
        self,
        url: str,
        key: Key,
        *,
        label: str = "production",
        workspace: str | None = None,
        cache: str | os.PathLike[str] | None = None,
        cache_after: float = 2.0,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        clock: Clock = SYSTEM_CLOCK,
        verify: ssl.SSLContext | bool = True,
    ) -> None:
        """Keep the settings; `AgentCfg` begins to read in the background, `AsyncAgentCfg` with `wait_ready`."""
        self.url = calls.check_url(url)
        self.label = label
        self.workspace = calls.check_workspace(workspace)
        self._key = key
        self._current_key = calls.key_source(key)
        self._timeouts = timeouts
        self._retry = retry
        self._clock = clock
        self._verify = verify
        self._cache = None if cache is None else CacheFile(cache, self.workspace, label)
        self._cache_after = cache_after
        self._holder = Holder(label, clock)
        self._prepare()

    def __repr__(self) -> str:
        """Show the server and no secret."""
        return f"{type(self).__name__}({self.url!r}, key=[redacted], label={self.label!r})"

    @property
    def snapshot(self) -> Snapshot:
        """All agents that the label releases, of one moment. Agents that belong together are read from one snapshot."""
        self._wake()
        return self._holder.snapshot()

    def agent(self, agent_id: str) -> Agent:
        """Return an agent from memory. `NoSuchAgent` when no active agent of this id bears the label."""
        return self.snapshot[agent_id]

    @property
    def health(self) -> Health:
        """How old the state is, where it is from, and what the last failure was."""
        self._wake()
        return self._holder.health()

    def on_change(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call a function after each step of the state from now on; the result of this method ends that.

        One release is one step, whatever number of agents it moves. The function is called by the thread, or the event
        loop, that follows the changes, so it should return soon.
        """
        return self._holder.on_change(listener)

    def _prepare(self) -> None:
        """Begin, as the last step of the construction."""

    def _wake(self) -> None:
        """Follow again, if that ended without being asked to."""

    def _follow(self, client: AsyncClient) -> Follower:
        return Follower(client, self._holder, self._cache, self._cache_after, self._clock)

    async def _keep(self, client: AsyncClient) -> None:
        """Keep the state current until the task is cancelled."""
        async with client:
            try:
                await self._follow(client).run()
            except Exception as error:
                logger.exception("following the changes has ended")
                reason = AgentCfgError(f"following the changes has ended: {error!r}")
                self._holder.failed(reason, is_final=True)

    def _client_of(self, kind: type[AnyClient], retry: RetryPolicy | None) -> AnyClient:
        return kind(
            self.url,
            self._key,
            workspace=self.workspace,
            timeouts=self._timeouts,
            retry=retry,
            clock=self._clock,
            verify=self._verify,
        )

    def _model_calls(self, agent_id: str, provider: str) -> ModelCalls:
        return ModelCalls(self.url, self._current_key(), agent_id, self.label, self.workspace, provider)


class AgentCfg(Mirror):
    """The configurations that a label releases, in memory, kept current by a thread. Threads may share it.

    - `url` is the server, with the path under which it is mounted if there is one.
    - `key` is an API key, of scope `read` at least, or a function that returns the one to use now.
    - A credential of several workspaces needs `workspace`.
    - `cache` names a file that keeps the last state: with it a start succeeds while the server is down.
    - A server that has not answered after `cache_after` seconds counts as down.


    `wait_ready`, which `with` calls, waits for the first state. Then `agent` and `snapshot` read from memory.
    """

    def _prepare(self) -> None:
        self._client: Client | None = None
        self._reporter: Client | None = None
        self._lines: dict[str, Line] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_forked = False
        _of_process.add(self)
        self._start()

    def _wake(self) -> None:
        """Follow again in the child of a fork, from its first use on: the thread is in the parent alone."""
        if self._is_forked:
            with self._lock:
                is_first, self._is_forked = self._is_forked, False
            if is_first:
                self._start()

    def _forget(self) -> None:
        """Leave the parent's thread, locks and connections to it."""
        self._lock = threading.Lock()
        self._client = self._reporter = self._loop = self._task = self._thread = None
        self._lines = {}
        self._holder.restart()
        self._is_forked = not self._is_closed

    def _start(self) -> None:
        # What is wrong in the environment, such as the URL of a proxy, fails here, and not in the thread.
        client = self._client_of(AsyncClient, NO_RETRIES)
        self._thread = threading.Thread(target=self._run, args=(client,), name="agentcfg", daemon=True)
        self._thread.start()

    def __enter__(self: AgentCfgType) -> AgentCfgType:
        """Wait for the first state."""
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread and the connections."""
        self.close()

    def wait_ready(self, timeout: float = 30.0) -> None:
        """Wait until there is a state: that of the server, or while it does not answer that of the cache file.

        Fails at once when the server refuses the key or the label, and with `NotReady` after `timeout` seconds.
        """
        self._wake()
        deadline = self._clock.monotonic() + timeout
        while True:
            moved = self._holder.moved()
            if self._holder.is_ready():
                return
            try:
                moved.result(min(max(0.0, deadline - self._clock.monotonic()), threading.TIMEOUT_MAX))
            except FutureTimeoutError:
                raise self._holder.not_ready(timeout) from None

    def close(self) -> None:
        """End the thread and the connections. The last state can still be read."""
        self._close()

    def _close(self, patience: float | None = None) -> None:
        with self._lock:
            self._is_closed = True
            loop, task, thread = self._loop, self._task, self._thread
        if loop is not None and task is not None:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(task.cancel)
        if thread is not None and thread is not threading.current_thread():
            thread.join(patience)
        self._holder.close()
        for line in list(self._lines.values()):
            line.close()
        with self._lock:
            for client in (self._client, self._reporter):
                if client is not None:
                    client.close()

    @property
    def client(self) -> Client:
        """The REST API with the same server and key."""
        with self._lock:
            if self._client is None:
                self._client = self._client_of(Client, self._retry)
            return self._client

    def report_status(
        self, agent_id: str, *, working: str, task_id: str | None = None, interval: float = DEFAULT_INTERVAL
    ) -> StatusReports:
        """Report an agent as working on the task of this title while a `with` block runs, and as idle after it.

        Where such blocks of one agent overlap, the work that began last is reported, and the agent is idle after the
        last one. The report is repeated every `interval` seconds, because the server forgets old ones. Reports are
        sent in the background: the block waits for none but, for a moment, the one of its end. One that fails is
        logged.
        """
        line = self._lines.setdefault(agent_id, Line())
        return StatusReports(self._reports(), agent_id, _status.working(working, task_id), interval, line)

    def _reports(self) -> Client:
        """Return what sends reports. It repeats none that has failed: the next one follows anyway."""
        with self._lock:
            if self._reporter is None:
                self._reporter = self._client_of(Client, NO_RETRIES)
            return self._reporter

    def openai(
        self,
        agent_id: str,
        *,
        variables: Mapping[str, str] | None = None,
        provider: str = "openai",
        **options: Any,
    ) -> openai.OpenAI:
        """Return OpenAI's client for model calls as this agent, with the version that the label points at.

        Needs the package `openai`, and a key that has `models:invoke`. `options` are further arguments of
        `openai.OpenAI`. `provider` names another provider of the server that speaks the same API.
        """
        import openai

        return openai.OpenAI(**self._model_calls(agent_id, provider).openai(openai.Omit(), variables, options))

    def anthropic(
        self,
        agent_id: str,
        *,
        variables: Mapping[str, str] | None = None,
        provider: str = "anthropic",
        **options: Any,
    ) -> anthropic.Anthropic:
        """Return Anthropic's client for model calls as this agent, with the version that the label points at.

        Needs the package `anthropic`, and a key that has `models:invoke`. `options` are further arguments of
        `anthropic.Anthropic`. `provider` names another provider of the server that speaks the same API.
        """
        import anthropic

        calls = self._model_calls(agent_id, provider)
        return anthropic.Anthropic(**calls.anthropic(anthropic.Omit(), variables, options))

    def _run(self, client: AsyncClient) -> None:
        # `asyncio.run` would wait at the end for a name that is being resolved.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._main(client))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    async def _main(self, client: AsyncClient) -> None:
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._loop = asyncio.get_running_loop()
                self._task = asyncio.create_task(self._keep(client))
        if self._task is None or is_closed:
            await client.close()
            return
        with suppress(asyncio.CancelledError):
            await self._task


_of_process: weakref.WeakSet[AgentCfg] = weakref.WeakSet()


def _after_fork() -> None:
    for cfg in list(_of_process):
        cfg._forget()  # pyright: ignore[reportPrivateUsage]


@atexit.register
def _at_exit() -> None:
    """Close what a program has left open, so that the cache file has the last state. A listener may never return."""
    for cfg in list(_of_process):
        cfg._close(patience=2.0)  # pyright: ignore[reportPrivateUsage]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class AsyncAgentCfg(Mirror):
    """The configurations that a label releases, in memory, kept current by a task of the event loop.

    As `AgentCfg`. The task begins with `wait_ready`, which `async with` calls.
    """

    def _prepare(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._client: AsyncClient | None = None
        self._reporter: AsyncClient | None = None
        self._lines: dict[str, AsyncLine] = {}
        self._is_closed = False

    async def __aenter__(self: AsyncAgentCfgType) -> AsyncAgentCfgType:
        """Wait for the first state."""
        try:
            await self.wait_ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the task and the connections."""
        await self.close()

    async def wait_ready(self, timeout: float = 30.0) -> None:
        """Wait until there is a state: that of the server, or while it does not answer that of the cache file.

        Fails at once when the server refuses the key or the label, and with `NotReady` after `timeout` seconds.
        """
        self._start()
        try:
            await within(timeout, self._ready())
        except TimedOut:
            raise self._holder.not_ready(timeout) from None

    def _start(self) -> None:
        task, loop = self._task, asyncio.get_running_loop()
        if self._is_closed or (task is not None and task.get_loop() is loop and not task.done()):
            return
        client = self._client_of(AsyncClient, NO_RETRIES)
        if task is not None:
            self._holder.begin()
            if task.get_loop() is not loop:
                # The loop before has ended, or is about to: what is bound to it is of no use here.
                self._client, self._reporter, self._lines = None, None, {}
        self._task = asyncio.create_task(self._keep(client))

    def _wake(self) -> None:
        """Note the end of an event loop that was left without ending its tasks."""
        if self._task is not None and self._task.get_loop().is_closed():
            self._holder.lost()

    async def close(self) -> None:
        """End the task and the connections. The last state can still be read."""
        self._is_closed = True
        try:
            if self._task is not None and self._task.get_loop() is asyncio.get_running_loop():
                self._task.cancel()
                await asyncio.wait({self._task})
        finally:
            self._holder.close()
            for line in self._lines.values():
                await line.close()
            for client in (self._client, self._reporter):
                if client is not None:
                    with suppress(RuntimeError):  # the loop of its connections has ended
                        await client.close()

    @property
    def client(self) -> AsyncClient:
        """The REST API with the same server and key."""
        if self._client is None:
            self._client = self._client_of(AsyncClient, self._retry)
        return self._client

    def report_status(
        self, agent_id: str, *, working: str, task_id: str | None = None, interval: float = DEFAULT_INTERVAL
    ) -> AsyncStatusReports:
        """Report an agent as working on the task of this title while an `async with` block runs, and as idle after it.

        Where such blocks of one agent overlap, the work that began last is reported, and the agent is idle after the
        last one. The report is repeated every `interval` seconds, because the server forgets old ones. Reports are
        sent in the background: the block waits for none but, for a moment, the one of its end. One that fails is
        logged.
        """
        line = self._lines.setdefault(agent_id, AsyncLine())
        return AsyncStatusReports(self._reports(), agent_id, _status.working(working, task_id), interval, line)

    def _reports(self) -> AsyncClient:
        """Return what sends reports. It repeats none that has failed: the next one follows anyway."""
        if self._reporter is None:
            self._reporter = self._client_of(AsyncClient, NO_RETRIES)
        return self._reporter

    def openai(
        self,
        agent_id: str,
        *,
        variables: Mapping[str, str] | None = None,
        provider: str = "openai",
        **options: Any,
    ) -> openai.AsyncOpenAI:
        """Return OpenAI's client for model calls as this agent, as `AgentCfg.openai`."""
        import openai

        return openai.AsyncOpenAI(**self._model_calls(agent_id, provider).openai(openai.Omit(), variables, options))

    def anthropic(
        self,
        agent_id: str,
        *,
        variables: Mapping[str, str] | None = None,
        provider: str = "anthropic",
        **options: Any,
    ) -> anthropic.AsyncAnthropic:
        """Return Anthropic's client for model calls as this agent, as `AgentCfg.anthropic`."""
        import anthropic

        calls = self._model_calls(agent_id, provider)
        return anthropic.AsyncAnthropic(**calls.anthropic(anthropic.Omit(), variables, options))

    async def _ready(self) -> None:
        while True:
            moved = self._holder.moved()
            if self._holder.is_ready():
                return
            await asyncio.shield(asyncio.wrap_future(moved))
