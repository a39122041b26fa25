"""Keeps the state current: one list of what is released, then the change feed from its cursor on."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import Any, NoReturn, get_args

from . import _cache, types
from ._events import Event, EventReader
from ._holder import Holder, logger
from .calls import Answer, cursor_of, read_changes, tag_in, timed_out
from .client import POLL_WAIT, AsyncClient
from .errors import (
    AgentCfgError,
    AnswerError,
    BadRequest,
    ExchangeError,
    Forbidden,
    Gone,
    InputError,
    Lagging,
    NotModified,
    Outcome,
    RateLimited,
    StatusError,
    may_pass,
)
from .snapshot import Position, Snapshot
from .timing import FEED_MAX_DELAY, FEED_MIN_DELAY, Backoff, Clock, asked_delay, poll_gap, read_gap

# How long a stream may be silent before it counts as dead. It has a bookmark every 15 seconds.
SILENCE = 25.0
# For how long the word of the server counts. After that it is asked for changes before the next stream is opened.
FRESH = 20.0
# How often the time of the last confirmation is written to the file while nothing changes.
SAVE_EVERY = 60.0
# For how many seconds polls replace the stream, where the server has no room for another one or the way to it lets none
# through. Then the stream is tried again.
POLL_FOR = 300.0
# After how many streams without an event the way to the server counts as one that lets none through.
FRUITLESS_STREAMS = 3
# The delay after the server has refused the credential, with jitter of as much on top. The refusal may be withdrawn.
REFUSED_DELAY = 30.0


_ACTIONS = frozenset(get_args(types.Action))
# The path of a change of one of several agents: its id has no slash, the field may.
_PATH_OF_MANY = re.compile(r"agents/[^/]+/(.+)")


class StreamEnded(Exception):
    """The server has ended the stream in order, and says when to come back."""

    def __init__(self, retry: float | None) -> None:
        """Note the delay."""
        super().__init__()
        self.retry = retry


def may_release(event: Mapping[str, Any], label: str) -> bool:
    """Whether an event may change what a label releases. Events of a later release of the server may."""
    if event.get("type") not in _ACTIONS:
        return True
    target: Mapping[str, Any] = event.get("target") or {}
    changes: Mapping[str, Any] = event.get("changes") or {}
    names: list[str] = []
    for path in changes:
        of_many = _PATH_OF_MANY.fullmatch(path)
        if of_many:
            names.append(of_many[1])
        elif target.get("type") == "agent":
            names.append(path)
    for name in names:
        family, _, moved = name.partition("/")
        if family == "labels" and moved:
            if moved == label:
                return True
        elif name == "is_active" or label == "latest":
            return True
    return False


@contextmanager
def promised(what: str) -> Generator[None, None, None]:
    """Turn the failures of reading something of the server that is not what it should be into one of this package."""
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise AnswerError(f"{what} is not what agentcfg promises: {error!r}") from error


def decoded(event: Event) -> types.ChangeEvent:
    """Return the change that an event of the stream holds."""
    with promised("an event"):
        change: Any = json.loads(event.data)
        if not isinstance(change["cursor"], str):
            raise TypeError("its cursor is no text")
    return change


class Follower:
    """Reads what a label releases into a holder, for as long as it runs."""

    def __init__(
        self, client: AsyncClient, holder: Holder, cache: _cache.CacheFile | None, cache_after: float, clock: Clock
    ) -> None:
        """Note where from and where to; nothing is sent before `run`."""
        self._client = client
        self._holder = holder
        self._cache = cache
        self._cache_after = cache_after
        self._clock = clock
        self._backoff = Backoff(FEED_MIN_DELAY, FEED_MAX_DELAY, clock)
        self._saved: _cache.Saved | None = None
        self._loaded: _cache.Saved | None = None
        # From where the feed leads on; `None` when the list must be read first.
        self._after: str | None = None
        # How many streams in a row have ended without an event after the first bookmark.
        self._fruitless = 0
        # When the list may be read again because of an event.
        self._next_read = clock.monotonic()
        # When the server said last that the state is current.
        self._confirmed = clock.monotonic()
        # Whether the workspace is one that the cache file named.
        self._is_workspace_cached = False

    async def run(self) -> None:
        """Keep the state current until the task is cancelled."""
        self._load()
        patience = asyncio.get_running_loop().call_later(self._cache_after, self._use_cache, None)
        try:
            while True:
                await self._clock.wait(await self._step())
        finally:
            patience.cancel()
            self._holder.lost()
            self._save_at_end()

    async def _step(self) -> float:
        """Read and follow until something ends it, and return the seconds until the next attempt."""
        try:
            if self._after is None:
                self._after = await self._read()
                self._is_workspace_cached = False
                self._backoff.reset()
            if self._fruitless >= FRUITLESS_STREAMS:
                await self._poll_for_a_while()
            elif self._fruitless or self._clock.monotonic() - self._confirmed > FRESH:
                # Proxies may hold streams back: what they should have brought is asked for before the next one.
                await self._poll(0)
                await self._confirm()
            await self._stream(self._after)
            await self._poll_for_a_while()
            return 0.0
        except StreamEnded as ended:
            self._holder.failed(None)
            # The server draws the delay at random for each stream.
            return self._backoff.next() if ended.retry is None else min(ended.retry, FEED_MAX_DELAY)
        except Gone:
            self._after = None
            self._holder.failed(None)
            return self._backoff.next()
        except AgentCfgError as error:
            return self._failed(error)
        except Exception as error:
            logger.exception("following the changes has failed")
            return self._failed(AnswerError(f"following the changes has failed: {error!r}"))

    def _failed(self, error: AgentCfgError) -> float:
        is_refusal = isinstance(error, InputError) or error.is_refusal
        if isinstance(error, Forbidden) and is_refusal and self._is_workspace_cached:
            # The credential may be of another workspace than the file.
            self._is_workspace_cached = False
            self._client.workspace = self._loaded = self._holder.etag = None
            return 0.0
        # Without a file, an answer of something else than the server ends a start: the URL may be wrong.
        self._holder.failed(error, is_final=is_refusal or (self._loaded is None and not may_pass(error)))
        if not is_refusal:
            self._use_cache(error)
        elif self._loaded is not None:
            # The server is there, and its word counts.
            self._loaded = self._holder.etag = None
        if is_refusal and not isinstance(error, BadRequest):
            self._after = None
            return REFUSED_DELAY * (1 + self._clock.random())
        return self._backoff.next() + asked_delay(error)

    # The list.

    async def _read_after(self, event: Position) -> None:
        """Read what is released after an event: at once, but for a burst, of which each read covers many events.

        Those that come meanwhile are no news any more after it.
        """
        wait = self._next_read - self._clock.monotonic()
        if wait > 0:
            await self._clock.wait(wait)
        await self._read(event)
        self._next_read = self._clock.monotonic() + read_gap(self._client.rate_limit, self._clock)

    async def _read(self, at_least: Position | None = None) -> str:
        """Read what is released now, and return its position in the feed."""
        holder = self._holder
        try:
            found = await self._client.list_released_agents(label=holder.label, if_none_match=holder.etag)
        except NotModified as same:
            at = self._position(same, at_least)
            if self._loaded is None:
                holder.position = at
                await self._confirm()
                return at.cursor
            agents, etag = self._loaded.agents, holder.etag
        else:
            at = self._position(found, at_least)
            agents, etag = found.value, found.etag
        with promised("the answer"):
            snapshot = Snapshot.of(holder.label, agents)
        await self._publish(snapshot, agents, etag, at)
        return at.cursor

    async def _replace(self, events: list[types.ChangeEvent], at: Position) -> bool:
        """Publish the state after events that say what they release, as one step. Returns whether they say all.

        Where an agent that was not released before stands in the list, they do not say.
        """
        saved, own = self._saved, self._holder.position
        if saved is None or own is None or own.epoch != at.epoch or not all("released" in event for event in events):
            return False
        with promised("an event"):
            rows = {row["agent_id"]: row for event in events for row in event.get("released", ())}
            snapshot = self._holder.snapshot().replaced(rows.values())
        if snapshot is None:
            return False
        agents = [rows.get(row["agent_id"], row) for row in saved.agents]
        await self._publish(snapshot, agents, None, at)  # the tag of the list is not known
        return True

    async def _publish(self, snapshot: Snapshot, agents: list[Any], etag: str | None, at: Position) -> None:
        self._holder.etag = etag
        self._holder.position = at
        self._saved = _cache.Saved(
            workspace_id=self._client.workspace or "",
            label=self._holder.label,
            tag=tag_in(etag),
            cursor=at.cursor,
            agents=agents,
            confirmed_at=self._clock.now(),
        )
        self._loaded = None
        self._holder.publish(snapshot, source="server")
        self._confirmed = self._clock.monotonic()
        await self._save()

    async def _confirm(self, *, is_live: bool | None = None) -> None:
        """Note that the server has just said that the state is current, now and then in the file too."""
        self._holder.confirm(is_live=is_live)
        self._confirmed = self._clock.monotonic()
        now = self._clock.now()
        if self._saved is not None and now - self._saved.confirmed_at > SAVE_EVERY:
            self._saved = replace(self._saved, confirmed_at=now)
            await self._save()

    def _position(self, answered: Answer[Any] | NotModified, at_least: Position | None) -> Position:
        """Return where an answer is, and never go back: one of several servers may answer from an earlier state."""
        position = Position.of(cursor_of(answered))
        for seen in (at_least, self._holder.position):
            if seen is not None and position.is_before(seen):
                raise Lagging(f"the answer is of revision {position.revision}, after one of {seen.revision}")
        return position

    # The feed.

    async def _stream(self, after: str) -> None:
        """Follow a stream until it ends. Returns where the server has no room for one."""
        before, self._fruitless = self._fruitless, self._fruitless + 1
        async with AsyncExitStack() as stack:
            try:
                pieces = await stack.enter_async_context(self._client.open_changes(after, self._holder.label, SILENCE))
            except AgentCfgError as error:
                is_from_server = isinstance(error, StatusError) and error.is_from_server
                if is_from_server or error.outcome is Outcome.NOT_APPLIED:
                    self._fruitless = before  # there was none: no connection, or a refusal of the server itself
                if isinstance(error, RateLimited):
                    return
                raise
            await self._follow(pieces)

    async def _follow(self, pieces: AsyncIterator[bytes]) -> NoReturn:
        """Take what a stream brings, until it ends."""
        reader = EventReader(self._client.max_response_bytes)
        heard, is_first = self._clock.monotonic(), True
        async for piece in pieces:
            events = reader.take(piece)
            if events:
                await self._take(events, reader.retry, is_first=is_first)
                is_first = False
            now = self._clock.monotonic()
            if events or reader.is_within_event:
                heard = now
            elif now - heard > SILENCE:
                # A proxy sends comments, and there is no server behind it.
                raise timed_out()
        raise ExchangeError("the stream of changes broke", outcome=Outcome.UNKNOWN)

    async def _poll_for_a_while(self) -> None:
        """Ask for changes again and again, in place of a stream."""
        end, wait = self._clock.monotonic() + POLL_FOR, 0
        while self._clock.monotonic() < end:
            begun = self._clock.monotonic()
            await self._poll(wait)
            await self._confirm(is_live=True)
            wait = POLL_WAIT
            gap = poll_gap(self._client.rate_limit, self._clock) - (self._clock.monotonic() - begun)
            if gap > 0:
                await self._clock.wait(gap)

    async def _poll(self, wait: int) -> None:
        """Ask for changes once."""
        page = await self._client.send(read_changes(self._after, wait, None))
        cursor = cursor_of(page)
        news = [event for event in page.value if self._is_news(event)]
        if news:
            await self._read_after(Position.of(news[-1]["cursor"]))
        self._after = cursor
        self._backoff.reset()

    async def _take(self, events: list[Event], retry: float | None, *, is_first: bool) -> None:
        """Take events that came together, and read the list once at most."""
        # A stream opens with a bookmark of the position that was asked for. That proves nothing: a proxy that passes it
        # on may hold back what follows.
        proofs = events[1:] if is_first and events[0].name == "bookmark" else events
        if proofs:
            self._fruitless = 0
        news: list[types.ChangeEvent] = []
        for event in events:
            if event.name == "change":
                change = decoded(event)
                if self._is_news(change):
                    news.append(change)
            elif event.name == "gone":
                raise Gone("the position in the change feed is gone")
        if news:
            at = Position.of(news[-1]["cursor"])
            if not await self._replace(news, at):
                await self._read_after(at)
        for event in events:
            if event.id is not None:
                self._after = event.id
            if event.name == "end":
                # The answer to the next connection says whether the credential is the reason.
                raise StreamEnded(retry)
        if proofs:
            self._backoff.reset()
        # A bookmark comes after all changes until then. A single change may be one of many that are still on their way.
        if any(event.name == "bookmark" for event in proofs):
            await self._confirm(is_live=True)
        else:
            self._holder.opened()

    def _is_news(self, event: types.ChangeEvent) -> bool:
        """Whether an event may change what the label releases, and the list was not read after it."""
        own, position = self._holder.position, Position.of(event["cursor"])
        is_known = own is not None and own.epoch == position.epoch and own.revision >= position.revision
        return not is_known and may_release(event, self._holder.label)

    # The file.

    def _load(self) -> None:
        if self._cache is None:
            return
        try:
            self._loaded = self._cache.load()
            if self._loaded is not None:
                Snapshot.of(self._holder.label, self._loaded.agents)
            self._holder.cache_failed(None)
        except Exception as error:
            self._loaded = None
            self._holder.cache_failed(error)
        if self._loaded is not None:
            self._holder.etag = f'"{self._loaded.tag}"' if self._loaded.tag else None
            if self._client.workspace is None:
                self._client.workspace = self._loaded.workspace_id
                self._is_workspace_cached = True

    def _use_cache(self, error: AgentCfgError | None) -> None:
        """Serve what the file has, because the server does not answer."""
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return
        logger.warning("starting with the state of the cache file: %s", error or "the server has not answered yet")
        self._saved = loaded
        self._holder.publish(Snapshot.of(loaded.label, loaded.agents), source="cache", as_of=loaded.confirmed_at)

    async def _save(self) -> None:
        cache, saved = self._cache, self._saved
        if cache is None or saved is None:
            return
        try:
            saving = asyncio.get_running_loop().run_in_executor(None, self._write, cache, saved)
        except RuntimeError:
            return  # the interpreter ends and starts no thread: `_save_at_end` writes
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            await asyncio.wait({saving})  # the file does not change after the end
            raise

    def _save_at_end(self) -> None:
        """Note in the file until when its state was confirmed."""
        as_of = self._holder.health().as_of
        if self._cache is None or self._saved is None or as_of is None:
            return
        self._write(self._cache, replace(self._saved, confirmed_at=as_of.timestamp()))

    def _write(self, cache: _cache.CacheFile, saved: _cache.Saved) -> None:
        """Replace the file, and note whether that failed."""
        try:
            cache.save(saved)
        except Exception as error:
            self._holder.cache_failed(error)
        else:
            self._holder.cache_failed(None)
