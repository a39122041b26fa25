"""The REST API as typed methods: `Client` and `AsyncClient`."""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx

from . import calls, types
from ._async_methods import AsyncMethods
from ._sync_methods import SyncMethods
from ._version import __version__
from .calls import ApiResponse, Call, Key
from .errors import AgentCfgError, RateLimit, may_pass
from .timing import FEED_MAX_DELAY, FEED_MIN_DELAY, SYSTEM_CLOCK, Backoff, Clock, Retries, RetryPolicy, Timeouts

T = TypeVar("T")
ClientType = TypeVar("ClientType", bound="Client")
AsyncClientType = TypeVar("AsyncClientType", bound="AsyncClient")

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""The size of a response that a client accepts unless it is given another one."""

POLL_WAIT = 25
"""How many seconds the server waits for a change before it answers a poll."""


class _Shared:
    """What both clients have: settings, and the making of requests."""

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
    ) -> None:
        self.url = calls.check_url(url)
        self.workspace: str | None = workspace
        self.timeouts = timeouts or Timeouts()
        self.retry = retry or RetryPolicy()
        self.rate_limit: RateLimit | None = None
        self.max_response_bytes = max_response_bytes
        self._clock = clock
        self._key = calls.key_source(key)

    def __repr__(self) -> str:
        """Show the server and no secret."""
        return f"{type(self).__name__}({self.url!r}, key=[redacted], workspace={self.workspace!r})"

    @property
    def _settings(self) -> dict[str, Any]:
        headers = {
            "accept": "application/json",
            "user-agent": f"agentcfg-python/{__version__}",
        }
        return {"headers": headers, "follow_redirects": False}

    def _timeout(self, seconds: float, read: float | None = None) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=min(seconds, self.timeouts.connect), read=read or seconds)

    def _request(self, http: httpx.Client | httpx.AsyncClient, call: Call[Any], seconds: float) -> httpx.Request:
        headers = {name: value for name, value in call.headers.items() if value is not None}
        headers["authorization"] = f"Bearer {self._key()}"
        content = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = encoded(call.body)
        return http.build_request(
            call.method,
            self.url + call.target(),
            headers=headers,
            content=content,
            timeout=self._timeout(seconds),
        )

    def _retries(self, call: Call[Any]) -> Retries:
        return Retries(
            self.retry,
            self.timeouts,
            is_idempotent=call.may_be_repeated,
            patience=call.patience,
            clock=self._clock,
        )

    def _poll_backoff(self) -> Backoff:
        return Backoff(FEED_MIN_DELAY, FEED_MAX_DELAY, self._clock)

    def _is_success(self, response: httpx.Response) -> bool:
        self.rate_limit = calls.rate_limit(response.headers) or self.rate_limit
        return response.is_success

    def _limit(self, response: httpx.Response) -> int:
        return self.max_response_bytes if response.is_success else calls.MAX_ERROR_BYTES


def context(verify: ssl.SSLContext | bool) -> ssl.SSLContext | bool:
    """Return what connections are verified by."""
    return default_context() if verify is True else verify


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


class Client(_Shared, SyncMethods):
    """A client of one server with one credential. Threads may share it.

    `key` is an API key or a session token, or a function that returns the one to use now. `workspace` is the workspace
    of calls that name none; without it, the only one of the credential. Each method names a failure by the class of its
    error, see `agentcfg.errors`.
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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Make a client; nothing is sent before the first call."""
        super().__init__(
            url,
            key,
            workspace=workspace,
            timeouts=timeouts,
            retry=retry,
            max_response_bytes=max_response_bytes,
            clock=clock,
        )
        self._lock = threading.Lock()
        self._http = httpx.Client(verify=context(verify), transport=transport, **self._settings)

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
            if self.workspace is None:
                self.workspace = calls.only_workspace(self.who_am_i())
            return self.workspace

    def send(self, call: Call[T]) -> T:
        """Send a call, with retries, and read its response."""
        call = call.in_workspace(self.workspace_id() if call.lacks_workspace else self.workspace)
        retries = self._retries(call)
        while True:
            try:
                return call.read(self._attempt(call, retries.time_for_attempt()))
            except AgentCfgError as error:
                delay = retries.delay_after(error)
                if delay is None:
                    raise (error.of_a_change() if call.changes else error) from error.__cause__
            self._clock.sleep(delay)

    def export_workspace(self, *, workspace_id: str | None = None) -> Iterator[types.ExportLine]:
        """Read all records of a workspace, one after another, as they were at one revision.

        Needs a session of an owner. The export is never repeated by itself.
        """
        workspace_id = workspace_id or self.workspace_id()
        call = Call("GET", "/api/workspaces/export", calls.read_object, query={"workspace_id": workspace_id})
        with self._opened(call, self.timeouts.attempt) as response:
            if not self._is_success(response):
                raise calls.refusal(response.status_code, response.headers, self._body(response, None))
            for line in response.iter_lines():
                yield json.loads(line)

    def follow_changes(
        self, after: str = "now", *, workspace_id: str | None = None
    ) -> Generator[types.ChangeEvent, None, None]:
        """Follow the changes of a workspace after a cursor, `now` or `start`, without an end.

        Failures that may pass are waited out. All others are raised: `Gone` means that the cursor is no longer one of
        the workspace. An event's `cursor` is where to go on from.
        """
        backoff = self._poll_backoff()
        while True:
            try:
                page = self.read_changes(workspace_id=workspace_id, after=after, limit=1000, wait=POLL_WAIT)
            except AgentCfgError as error:
                if not may_pass(error):
                    raise
                self._clock.sleep(backoff.next() + (error.retry_after or 0.0))
                continue
            backoff.reset()
            yield from page.value
            after = calls.cursor_of(page)

    @contextmanager
    def _opened(self, call: Call[Any], seconds: float) -> Generator[httpx.Response, None, None]:
        try:
            response = self._http.send(self._request(self._http, call, seconds), stream=True)
            try:
                yield response
            finally:
                response.close()
        except httpx.TransportError as error:
            raise calls.transport_error(error) from error
        except (httpx.InvalidURL, httpx.DecodingError) as error:
            raise calls.errors.AnswerError(str(error)) from error

    def _attempt(self, call: Call[Any], seconds: float) -> ApiResponse:
        deadline = self._clock.monotonic() + seconds
        with self._opened(call, seconds) as response:
            is_success = self._is_success(response)
            body = self._body(response, deadline)
            if not is_success:
                raise calls.refusal(response.status_code, response.headers, body)
            return ApiResponse(response.status_code, response.headers, body)

    def _body(self, response: httpx.Response, deadline: float | None) -> bytes:
        body, limit = bytearray(), self._limit(response)
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limit:
                if response.is_success:
                    raise calls.too_long(limit)
                break
            if deadline is not None and self._clock.monotonic() > deadline:
                raise calls.timed_out()
        return bytes(body)


class AsyncClient(_Shared, AsyncMethods):
    """A client of one server with one credential, for `asyncio`. As `Client`, with methods to await."""

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Make a client; nothing is sent before the first call."""
        super().__init__(
            url,
            key,
            workspace=workspace,
            timeouts=timeouts,
            retry=retry,
            max_response_bytes=max_response_bytes,
            clock=clock,
        )
        self._http = httpx.AsyncClient(verify=context(verify), transport=transport, **self._settings)

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
        if self.workspace is None:
            self.workspace = calls.only_workspace(await self.who_am_i())
        return self.workspace

    async def send(self, call: Call[T]) -> T:
        """Send a call, with retries, and read its response."""
        call = call.in_workspace(await self.workspace_id() if call.lacks_workspace else self.workspace)
        retries = self._retries(call)
        while True:
            try:
                return call.read(await self._attempt(call, retries.time_for_attempt()))
            except AgentCfgError as error:
                delay = retries.delay_after(error)
                if delay is None:
                    raise (error.of_a_change() if call.changes else error) from error.__cause__
            await self._clock.wait(delay)

    async def export_workspace(self, *, workspace_id: str | None = None) -> AsyncIterator[types.ExportLine]:
        """Read all records of a workspace, one after another, as they were at one revision.

        Needs a session of an owner. The export is never repeated by itself.
        """
        workspace_id = workspace_id or await self.workspace_id()
        call = Call("GET", "/api/workspaces/export", calls.read_object, query={"workspace_id": workspace_id})
        seconds = self.timeouts.attempt
        async with self._opened(self._request(self._http, call, seconds), seconds) as response:
            await self._raise_for_status(response)
            async for line in response.aiter_lines():
                yield json.loads(line)

    async def follow_changes(
        self, after: str = "now", *, workspace_id: str | None = None
    ) -> AsyncGenerator[types.ChangeEvent, None]:
        """Follow the changes of a workspace after a cursor, `now` or `start`, without an end.

        Failures that may pass are waited out. All others are raised: `Gone` means that the cursor is no longer one of
        the workspace. An event's `cursor` is where to go on from.
        """
        backoff = self._poll_backoff()
        while True:
            try:
                page = await self.read_changes(workspace_id=workspace_id, after=after, limit=1000, wait=POLL_WAIT)
            except AgentCfgError as error:
                if not may_pass(error):
                    raise
                await self._clock.wait(backoff.next() + (error.retry_after or 0.0))
                continue
            backoff.reset()
            for event in page.value:
                yield event
            after = calls.cursor_of(page)

    @asynccontextmanager
    async def open_changes(
        self, after: str, silence: float, *, workspace_id: str | None = None
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Open the stream of changes after a cursor; it is broken after `silence` seconds without a byte."""
        query: dict[str, calls.QueryValue] = {
            "workspace_id": workspace_id or await self.workspace_id(),
            "after": after,
        }
        headers = {"accept": "text/event-stream"}
        call = Call("GET", "/api/changes", calls.read_object, query=query, headers=headers)
        request = self._request(self._http, call, self.timeouts.attempt)
        request.extensions["timeout"] = self._timeout(self.timeouts.attempt, read=silence).as_dict()
        async with self._opened(request, self.timeouts.attempt) as response:
            await self._raise_for_status(response)
            yield response.aiter_bytes()

    @asynccontextmanager
    async def _opened(self, request: httpx.Request, seconds: float) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and receive the head of its response within these seconds."""
        try:
            response = await asyncio.wait_for(self._http.send(request, stream=True), seconds)
            try:
                yield response
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise calls.transport_error(error) from error
        except (httpx.InvalidURL, httpx.DecodingError) as error:
            raise calls.errors.AnswerError(str(error)) from error
        except asyncio.TimeoutError as error:
            raise calls.timed_out() from error

    async def _attempt(self, call: Call[Any], seconds: float) -> ApiResponse:
        try:
            return await asyncio.wait_for(self._exchange(call, seconds), seconds)
        except asyncio.TimeoutError as error:
            raise calls.timed_out() from error

    async def _exchange(self, call: Call[Any], seconds: float) -> ApiResponse:
        async with self._opened(self._request(self._http, call, seconds), seconds) as response:
            await self._raise_for_status(response)
            return ApiResponse(response.status_code, response.headers, await self._body(response))

    async def _raise_for_status(self, response: httpx.Response) -> None:
        if not self._is_success(response):
            raise calls.refusal(response.status_code, response.headers, await self._body(response))

    async def _body(self, response: httpx.Response) -> bytes:
        body, limit = bytearray(), self._limit(response)
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > limit:
                if response.is_success:
                    raise calls.too_long(limit)
                break
        return bytes(body)
