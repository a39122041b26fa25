"""Time limits, retries, and the clock that they are measured by."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass

from .errors import AgentCfgError, Outcome, RateLimit


@dataclass(frozen=True)
class Timeouts:
    """Time limits of a call, in seconds."""

    connect: float = 5.0
    """For one connection: name resolution, TCP and TLS."""
    attempt: float = 15.0
    """For one attempt, from connecting to the last byte of the response.

    `Client` has this limit for each piece of the response's header, and not for the whole header."""
    total: float = 45.0
    """For a call with all its retries and the delays between them."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often and with which delays a failed call is retried.

    Delays double from `min_delay` to `max_delay`; each gets random jitter of up to its own length on top. A server's
    `Retry-After` is waited out in full, with one such delay added. A delay that does not fit into the rest of
    `Timeouts.total` is not started: the call fails at once.

    Every call is repeated when the server has certainly not processed it: no connection, 429, a 503 of the server with
    `Retry-After`. Reads, dry runs and status reports are repeated too when the connection broke, no response came in
    time, or a proxy answered 502, 503 or 504. A change is not, because the server may have applied it:
    `AgentCfgError.may_have_been_applied` says whether to read the record before another try.
    """

    max_retries: int = 3
    """The maximum number of retries after the first attempt."""
    min_delay: float = 0.1
    """The first delay."""
    max_delay: float = 5.0
    """The longest delay, without its jitter."""


FEED_MIN_DELAY = 0.2
"""The first delay before a reader of the change feed asks again after a failure."""
FEED_MAX_DELAY = 10.0
"""The longest one without its jitter, and the longest that a server may ask for at the orderly end of a stream."""

MAX_ASKED_DELAY = 300.0
"""The longest `Retry-After` in seconds that a reader of the change feed waits for, be it that of a proxy."""

POLL_MIN_GAP = 2.0
"""The shortest time from one poll for changes to the next in seconds, where there is always a change."""
POLL_MAX_GAP = 60.0
"""The longest one, where the rate limit is nearly used up."""

READ_MIN_GAP = 0.1
"""The time in seconds from one read of what is released to the next, where changes come in a burst."""
READ_MAX_GAP = 20.0
"""The longest one, where the rate limit is nearly used up."""

NO_RETRIES = RetryPolicy(max_retries=0)
"""The policy that sends each request once."""


def asked_delay(error: AgentCfgError) -> float:
    """Return how long a reader of the change feed waits because the server asks for it."""
    return min(error.retry_after or 0.0, MAX_ASKED_DELAY)


def poll_gap(limit: RateLimit | None, clock: Clock) -> float:
    """Return the seconds from one poll to the next."""
    return _gap(limit, clock, POLL_MIN_GAP, POLL_MAX_GAP)


def read_gap(limit: RateLimit | None, clock: Clock) -> float:
    """Return the seconds from one read of what is released to the next: more once half of the rate limit is used."""
    if limit is not None and limit.remaining * 2 >= limit.limit:
        return READ_MIN_GAP
    return _gap(limit, clock, READ_MIN_GAP, READ_MAX_GAP)


def _gap(limit: RateLimit | None, clock: Clock, least: float, most: float) -> float:
    """Return a time between requests that use half of what the rate limit has left at most."""
    if limit is None:
        return least
    left = limit.reset.timestamp() - clock.now()
    return min(max(least, left / max(1, limit.remaining // 2)), most)


class Clock:
    """Time, waiting and chance. Tests give their own."""

    def now(self) -> float:
        """Return the seconds since 1970, UTC."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        return time.monotonic()

    def random(self) -> float:
        """Return a random number from 0 to 1."""
        return random.random()

    def sleep(self, seconds: float) -> None:
        """Block for this time."""
        time.sleep(seconds)

    async def wait(self, seconds: float) -> None:
        """Wait for this time without blocking the event loop."""
        await asyncio.sleep(seconds)


SYSTEM_CLOCK = Clock()
"""The clock of the machine."""


class Backoff:
    """Delays that double from one failure to the next, with jitter of up to their own length on top."""

    def __init__(self, min_delay: float, max_delay: float, clock: Clock) -> None:
        """Start with the first delay."""
        self._min_delay = min_delay
        self._max_delay = max_delay
        self._clock = clock
        self._delay = min_delay

    def next(self) -> float:
        """Return the next delay in seconds."""
        delay = self._delay
        self._delay = min(delay * 2, self._max_delay)
        return delay * (1 + self._clock.random())

    def reset(self) -> None:
        """Start again with the first delay."""
        self._delay = self._min_delay


class Retries:
    """The retries of one call: says after each failure how long to wait, or that the failure is final."""

    def __init__(
        self, policy: RetryPolicy, timeouts: Timeouts, *, is_idempotent: bool, patience: float, clock: Clock
    ) -> None:
        """Begin a call now. `patience` are seconds that the server may wait before each answer."""
        self._patience = patience
        self._left = policy.max_retries
        self._backoff = Backoff(policy.min_delay, policy.max_delay, clock)
        self._timeouts = timeouts
        self._is_idempotent = is_idempotent
        self._clock = clock
        self._deadline = clock.monotonic() + timeouts.total + patience

    def time_for_attempt(self) -> float:
        """Return how many seconds the next attempt may take."""
        attempt = self._timeouts.attempt + self._patience
        return max(0.0, min(attempt, self._deadline - self._clock.monotonic()))

    def delay_after(self, error: AgentCfgError) -> float | None:
        """Return the seconds to wait before another attempt; `None` when there is to be none."""
        retryable = error.outcome is Outcome.NOT_APPLIED or (error.outcome is Outcome.UNKNOWN and self._is_idempotent)
        if not retryable or self._left <= 0:
            return None
        self._left -= 1
        delay = self._backoff.next() + (error.retry_after or 0.0)
        return delay if delay < self._deadline - self._clock.monotonic() else None
