"""The REST API as typed methods: `Client` and `AsyncClient`."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any, Generic, TypeVar

import httpx

from . import calls, types
from ._async_methods import AsyncMethods
from ._sync_methods import SyncMethods
from ._version import __version__
from .calls import ApiResponse, Call, Key
from .errors import AgentCfgError, RateLimit, may_pass
from .timing import (
    FEED_MAX_DELAY,
    FEED_MIN_DELAY,
    SYSTEM_CLOCK,
    Backoff,
    Clock,
    Retries,
    RetryPolicy,
    Timeouts,
    asked_delay,
)

T = TypeVar("T")
Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)
Transport = TypeVar("Transport", httpx.BaseTransport, httpx.AsyncBaseTransport)
ClientType = TypeVar("ClientType", bound="Client")
AsyncClientType = TypeVar("AsyncClientType", bound="AsyncClient")

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""The size of a response that a client accepts unless it is given another one."""

POLL_WAIT = 25
"""How many seconds the server waits for a change before it answers a poll."""


class _Core(Generic[Http, Transport]):
    """What both clients do, written once, as coroutines. A client gives the input and output that they need.

    Those of the synchronous client block, so that its coroutines never wait, and `_run` runs them without a loop.
    """

    def __init__(
        self,
        url: str,
        key: Key,
        *,
        workspace: str | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Clock = SYSTEM_CLOCK,
        verify: ssl.SSLContext | bool = True,
        transport: Transport | None = None,
    ) -> None:
        """Make a client; nothing is sent before the first call."""
        self.url = calls.check_url(url)
        self.workspace: str | None = calls.check_workspace(workspace)
        self.timeouts = timeouts or Timeouts()
        self.retry = retry or RetryPolicy()
        self.rate_limit: RateLimit | None = None
        self.max_response_bytes = max_response_bytes
        self._clock = clock
        self._key = calls.key_source(key)
        headers = {"accept": "application/json", "user-agent": f"agentcfg-python/{__version__}"}
        verify = default_context() if verify is True else verify
        self._http: Http = self._connect(
            {"headers": headers, "follow_redirects": False, "verify": verify, "transport": transport}
        )

    def __repr__(self) -> str:
        """Show the server and no secret."""
        return f"{type(self).__name__}({self.url!r}, key=[redacted], workspace={self.workspace!r})"

    # What each client has in a form of its own.

    def _connect(self, settings: dict[str, Any]) -> Http:
        """Make the pool of connections."""
        raise NotImplementedError

    async def _head(self, request: httpx.Request, seconds: float) -> httpx.Response:
        """Send a request, and return the response without its body."""
        raise NotImplementedError

    async def _body(self, response: httpx.Response, seconds: float) -> bytes:
        """Receive the body, and close the response."""
        raise NotImplementedError

    async def _wait(self, seconds: float) -> None:
        raise NotImplementedError

    async def _default_workspace(self) -> str:
        """Return the workspace of calls that name none."""
        raise NotImplementedError

    # Calls.

    async def _ask_workspace(self) -> str:
        if self.workspace is None:
            self.workspace = calls.only_workspace(await self._send(calls.WHO_AM_I))
        return self.workspace

    async def _send(self, call: Call[T]) -> T:
        call = call.in_workspace(await self._default_workspace() if call.lacks_workspace else self.workspace)
        retries = Retries(
            self.retry,
            self.timeouts,
            is_idempotent=call.may_be_repeated,
            patience=call.patience,
            clock=self._clock,
        )
        while True:
            try:
                return call.read(await self._attempt(call, retries.time_for_attempt()))
            except AgentCfgError as error:
                delay = retries.delay_after(error)
                if delay is None:
                    raise (error.of_a_change() if call.changes else error) from error.__cause__
            await self._wait(delay)

    async def _attempt(self, call: Call[Any], seconds: float) -> ApiResponse:
        deadline = self._clock.monotonic() + seconds
        response = await self._opened(call, seconds)
        with exchange(response):
            body = await self._body(response, max(0.0, deadline - self._clock.monotonic()))
        return ApiResponse(response.status_code, response.headers, body)

    async def _opened(self, call: Call[Any], seconds: float, silence: float | None = None) -> httpx.Response:
        """Send a call, and return a successful response without its body, which may pause for `silence` seconds."""
        if self._http.is_closed:
            raise calls.errors.InputError("the client is closed")
        headers = {name: calls.check_header(name, value) for name, value in call.headers.items() if value is not None}
        headers["authorization"] = f"Bearer {self._key()}"
        content = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = encoded(call.body)
        timeout = httpx.Timeout(seconds, connect=min(seconds, self.timeouts.connect), read=silence or seconds)
        with exchange():
            url = _parsed(self.url + call.target())
            request = self._http.build_request(call.method, url, headers=headers, content=content, timeout=timeout)
            response = await self._head(request, seconds)
            self.rate_limit = calls.rate_limit(response.headers) or self.rate_limit
            if response.is_success:
                return response
            try:
                body = await self._body(response, seconds)
            except (httpx.NetworkError, httpx.ProtocolError, httpx.DecodingError):
                body = b""  # the status alone says which failure it is
        raise calls.refusal(response.status_code, response.headers, body)

    async def _next_changes(self, following: _Following) -> list[types.ChangeEvent]:
        """Wait for the next page of changes, and wait out the failures that may pass."""
        while True:
            try:
                page = await self._send(calls.read_changes(following.after, following.wait, following.workspace_id))
            except AgentCfgError as error:
                if not may_pass(error):
                    raise
                await self._wait(following.backoff.next() + asked_delay(error))
                continue
            following.backoff.reset()
            following.after, following.wait = calls.cursor_of(page), POLL_WAIT
            return page.value

    async def _open_export(self, workspace_id: str | None) -> httpx.Response:
        query: dict[str, calls.QueryValue] = {"workspace_id": workspace_id or await self._default_workspace()}
        call = Call("GET", "/api/workspaces/export", calls.read_object, query=query)
        return await self._opened(call, self.timeouts.attempt)


@functools.lru_cache(maxsize=256)
def _parsed(url: str) -> httpx.URL:
    """Return a URL, which never changes. Clients send to the same ones again and again, and parsing one is slow."""
    return httpx.URL(url)


class _Following:
    """A position in the changes of a workspace."""

    def __init__(self, after: str, workspace_id: str | None, clock: Clock) -> None:
        self.after = after
        # `now` is asked for its cursor at once: repeated after a failure, it would be a later moment.
        self.wait = 0 if after == "now" else POLL_WAIT
        self.workspace_id = workspace_id
        self.backoff = Backoff(FEED_MIN_DELAY, FEED_MAX_DELAY, clock)


class _Received:
    """A body that arrives in pieces, up to the size that the client accepts."""

    def __init__(self, response: httpx.Response, max_bytes: int) -> None:
        self.body = bytearray()
        self._response = response
        self._is_success = response.is_success
        self._limit = max_bytes if response.is_success else calls.MAX_ERROR_BYTES

    def take(self, piece: bytes) -> bool:
        """Add a piece, and return whether more is wanted."""
        self.body += piece
        if len(self.body) <= self._limit:
            return True
        if self._is_success:
            facts = calls.facts_of(self._response.status_code, self._response.headers)
            raise calls.too_long(self._limit, facts)
        return False


class _Lines:
    """JSON objects that arrive in pieces, each in a line. Only a line feed ends a line: texts hold other separators."""

    def __init__(self, max_bytes: int) -> None:
        self._rest = bytearray()
        self._limit = max_bytes

    def take(self, piece: bytes) -> Iterator[Any]:
        """Return the objects that a piece completes."""
        first, *starts = piece.split(b"\n")
        self._rest += first
        for start in starts:
            yield calls.read_line(bytes(self._rest))
            self._rest[:] = start
        if len(self._rest) > self._limit:
            raise calls.errors.AnswerError("a line of the answer is longer than the client accepts")

    def end(self) -> Iterator[Any]:
        """Return the object of the last line, where that has no end."""
        return self.take(b"\n") if self._rest else iter(())


@contextmanager
def exchange(begun: httpx.Response | None = None) -> Generator[None, None, None]:
    """Turn failures of connections into those of this package, which have the facts of a response that has begun."""
    try:
        yield
    except (httpx.TransportError, httpx.InvalidURL, httpx.DecodingError) as error:
        facts = None if begun is None else calls.facts_of(begun.status_code, begun.headers)
        if isinstance(error, httpx.TransportError):
            raise calls.transport_error(error, facts) from error
        raise calls.errors.AnswerError(str(error), facts=facts) from error


@functools.cache
def default_context() -> ssl.SSLContext:
    """Return the context of connections for which no other is given. It takes long to make, so clients share it."""
    return httpx.create_ssl_context()


def encoded(body: object) -> bytes:
    """Return a body as compact JSON."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise calls.errors.InputError(f"the body cannot be written as JSON: {error}") from None


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a coroutine of the synchronous client has waited")


class Client(_Core[httpx.Client, httpx.BaseTransport], SyncMethods):
    """A client of one server with one credential. Threads may share it.

    `key` is an API key or a session token, or a function that returns the one to use now. `workspace` is the workspace
    of calls that name none; without it, the only one of the credential. Each method names a failure by the class of its
    error, see `agentcfg.errors`.
    """

    def __enter__(self: ClientType) -> ClientType:
        """Return the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def workspace_id(self) -> str:
        """Return the workspace of calls that name none; asks the server once if it must."""
        with self._lock:
            return _run(self._ask_workspace())

    def send(self, call: Call[T]) -> T:
        """Send a call, with retries, and read its response."""
        return _run(self._send(call))

    def export_workspace(self, *, workspace_id: str | None = None) -> Iterator[types.ExportLine]:
        """Read all records of a workspace, one after another, as they were at one revision.

        Needs a session of an owner. The export is never repeated by itself.
        """
        with exchange(), closing(_run(self._open_export(workspace_id))) as response:
            lines = _Lines(self.max_response_bytes)
            for piece in response.iter_bytes():
                yield from lines.take(piece)
            yield from lines.end()

    def follow_changes(
        self, after: str = "now", *, workspace_id: str | None = None
    ) -> Generator[types.ChangeEvent, None, None]:
        """Follow the changes of a workspace after a cursor, `now` or `start`, without an end.

        Failures that may pass are waited out. All others are raised: `Gone` means that the cursor is no longer one of
        the workspace. An event's `cursor` is where to go on from.
        """
        following = _Following(after, workspace_id, self._clock)
        while True:
            yield from _run(self._next_changes(following))

    def _connect(self, settings: dict[str, Any]) -> httpx.Client:
        self._lock = threading.Lock()
        return httpx.Client(**settings)

    async def _head(self, request: httpx.Request, seconds: float) -> httpx.Response:
        return self._http.send(request, stream=True)

    async def _body(self, response: httpx.Response, seconds: float) -> bytes:
        deadline = self._clock.monotonic() + seconds
        received = _Received(response, self.max_response_bytes)
        with closing(response):
            for piece in response.iter_bytes():
                if not received.take(piece):
                    break
                if self._clock.monotonic() > deadline:
                    raise calls.timed_out()
        return bytes(received.body)

    async def _wait(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    async def _default_workspace(self) -> str:
        return self.workspace_id()


class AsyncClient(_Core[httpx.AsyncClient, httpx.AsyncBaseTransport], AsyncMethods):
    """A client of one server with one credential, for `asyncio`. As `Client`, with methods to await."""

    async def __aenter__(self: AsyncClientType) -> AsyncClientType:
        """Return the client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def workspace_id(self) -> str:
        """Return the workspace of calls that name none; asks the server if it must."""
        return await self._ask_workspace()

    async def send(self, call: Call[T]) -> T:
        """Send a call, with retries, and read its response."""
        return await self._send(call)

    async def export_workspace(self, *, workspace_id: str | None = None) -> AsyncIterator[types.ExportLine]:
        """Read all records of a workspace, one after another, as they were at one revision.

        Needs a session of an owner. The export is never repeated by itself.
        """
        with exchange():
            response = await self._open_export(workspace_id)
            try:
                lines = _Lines(self.max_response_bytes)
                async for piece in response.aiter_bytes():
                    for line in lines.take(piece):
                        yield line
                for line in lines.end():
                    yield line
            finally:
                await response.aclose()

    async def follow_changes(
        self, after: str = "now", *, workspace_id: str | None = None
    ) -> AsyncGenerator[types.ChangeEvent, None]:
        """Follow the changes of a workspace after a cursor, as `Client.follow_changes`."""
        following = _Following(after, workspace_id, self._clock)
        while True:
            for event in await self._next_changes(following):
                yield event

    @asynccontextmanager
    async def open_changes(
        self, after: str, label: str, silence: float, *, workspace_id: str | None = None
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Open the stream of changes after a cursor, of which those that move the label have what it releases then.

        It is broken after `silence` seconds without a byte.
        """
        query: dict[str, calls.QueryValue] = {
            "workspace_id": workspace_id or await self.workspace_id(),
            "after": after,
            "label": label,
        }
        call = Call("GET", "/api/changes", calls.read_object, query=query, headers={"accept": "text/event-stream"})
        with exchange():
            response = await self._opened(call, self.timeouts.attempt, silence)
            try:
                yield response.aiter_bytes()
            finally:
                await response.aclose()

    def _connect(self, settings: dict[str, Any]) -> httpx.AsyncClient:
        return httpx.AsyncClient(**settings)

    async def _head(self, request: httpx.Request, seconds: float) -> httpx.Response:
        came: list[httpx.Response] = []

        async def send() -> httpx.Response:
            came.append(await self._http.send(request, stream=True))
            return came[0]

        try:
            return await within(seconds, send())
        except BaseException:
            for response in came:  # together with the end of the wait
                await response.aclose()
            raise

    async def _body(self, response: httpx.Response, seconds: float) -> bytes:
        async def receive() -> bytes:
            received = _Received(response, self.max_response_bytes)
            async for piece in response.aiter_bytes():
                if not received.take(piece):
                    break
            return bytes(received.body)

        try:
            return await within(seconds, receive())
        finally:
            await response.aclose()

    async def _wait(self, seconds: float) -> None:
        await self._clock.wait(seconds)

    async def _default_workspace(self) -> str:
        return await self.workspace_id()


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for these seconds at most.

    `asyncio.wait_for` loses a cancellation that comes together with the result before Python 3.12: a task that waits
    so may never end. This raises it in every case.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # seen: the caller gets the reason why the wait has ended
    raise calls.timed_out()
