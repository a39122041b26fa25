"""The current state, which the follower writes and the threads of an app read."""

from __future__ import annotations

import logging
import threading
from asyncio import CancelledError
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Literal

from .errors import AgentCfgError, NotReady
from .snapshot import Change, Health, Position, Snapshot
from .timing import Clock

logger = logging.getLogger("agentcfg")

Listener = Callable[[Change], None]


class Holder:
    """Holds one snapshot, which is replaced as a whole."""

    def __init__(self, label: str, clock: Clock) -> None:
        """Begin without a state."""
        self.label = label
        self.etag: str | None = None
        self.position: Position | None = None
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._source: Literal["server", "cache"] | None = None
        self._as_of: float | None = None
        self._is_live = False
        self._is_closed = False
        self._error: AgentCfgError | None = None
        self._is_final = False
        self._cache_error: Exception | None = None
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        self._moved: Future[None] = Future()

    # For readers.

    def snapshot(self) -> Snapshot:
        """Return the current snapshot."""
        snapshot = self._snapshot
        if snapshot is None:
            raise NotReady("there is no state yet: call wait_ready first") from self._error
        return snapshot

    def is_ready(self) -> bool:
        """Whether there is a state. Fails when there is none and waiting does not help."""
        if self._snapshot is not None:
            return True
        if self._error is not None and self._is_final:
            raise self._error
        if self._is_closed:
            raise NotReady("the client is closed")
        return False

    def not_ready(self, seconds: float) -> NotReady:
        """Return the error of a wait without a result."""
        reason = f": {self._error}" if self._error else ""
        return NotReady(f"no state within {seconds:g} seconds{reason}")

    def moved(self) -> Future[None]:
        """Return what is done at the next event. Take it before reading the state."""
        return self._moved

    def health(self) -> Health:
        """Return how current the state is."""
        with self._lock:
            as_of = self._as_of
            return Health(
                source=self._source,
                is_live=self._is_live,
                as_of=None if as_of is None else datetime.fromtimestamp(as_of, timezone.utc),
                age=None if as_of is None else timedelta(seconds=max(0.0, self._clock.now() - as_of)),
                error=self._error,
                cache_error=self._cache_error,
            )

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call a function after each change; the result ends that."""
        self._listeners.append(listener)

        def remove() -> None:
            with suppress(ValueError):  # removed already
                self._listeners.remove(listener)

        return remove

    # For writers.

    def publish(self, snapshot: Snapshot, *, source: Literal["server", "cache"], as_of: float | None = None) -> None:
        """Replace the state, and tell the listeners if it differs."""
        with self._lock:
            before = self._snapshot
            is_other = before is None or before != snapshot
            if is_other:
                self._snapshot = snapshot
            self._source = source
            self._as_of = self._clock.now() if as_of is None else as_of
            if source == "server":
                self._error = None
        change = Change(before if before is not None else Snapshot(self.label, {}), snapshot)
        if is_other and self._listeners and (before is None or change.added or change.removed or change.changed):
            for listener in list(self._listeners):
                if listener not in self._listeners:
                    continue  # another one has removed it
                try:
                    listener(change)
                except (Exception, CancelledError):  # the second one is that of a task whose result it has asked for
                    logger.exception("a listener of changes has failed")
        self.notify()

    def confirm(self, *, is_live: bool | None = None) -> None:
        """Note that the server has just said that the state is current, and whether its stream is open."""
        with self._lock:
            self._as_of = self._clock.now()
            self._source = "server"
            self._error = None
            was_live = self._is_live
            self._is_live = was_live if is_live is None else is_live
            is_other = self._is_live is not was_live
        if is_other:
            self.notify()

    def opened(self) -> None:
        """Note that the stream is open, which does not confirm the state yet."""
        with self._lock:
            was_live, self._is_live = self._is_live, True
            self._error = None
        if not was_live:
            self.notify()

    def failed(self, error: AgentCfgError | None, *, is_final: bool = False) -> None:
        """Note a failure, or with `None` the orderly end of a stream."""
        with self._lock:
            known = self._error
            is_known = known is not None and error is not None and known.message == error.message
            self._error = error or self._error
            self._is_final = is_final
            self._is_live = False
        if error is not None:
            logger.log(logging.DEBUG if is_known else logging.WARNING, "not in touch with the server: %s", error)
        self.notify()

    def lost(self) -> None:
        """Note that the changes are no longer followed."""
        with self._lock:
            was_live, self._is_live = self._is_live, False
        if was_live:
            self.notify()

    def begin(self) -> None:
        """Forget the last failure: the changes are followed again."""
        with self._lock:
            self._error, self._is_final = None, False

    def restart(self) -> None:
        """Begin again in the child of a fork, where no thread follows and locks may be held for ever."""
        self._lock = threading.Lock()
        self._moved = Future()
        self._is_live = False

    def cache_failed(self, error: Exception | None) -> None:
        """Note whether the last use of the cache file failed."""
        if error is not None:
            logger.warning("the cache file is not usable: %s", error)
        self._cache_error = error

    def close(self) -> None:
        """Wake all who wait: no state will come any more."""
        self._is_closed = True
        self._is_live = False
        self.notify()

    def notify(self) -> None:
        """Wake all who wait for an event."""
        with self._lock:
            moved, self._moved = self._moved, Future()
        moved.set_result(None)
