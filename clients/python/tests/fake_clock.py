"""A clock that waits for nothing."""

from __future__ import annotations

import asyncio

from agentcfg.timing import Clock


class FakeClock(Clock):
    """Records each wait, and moves its time by as much. Chance is always in the middle."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return 1_000_000.0 + self.time

    def monotonic(self) -> float:
        return self.time

    def random(self) -> float:
        return 0.5

    def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.time += seconds

    async def wait(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)  # other tasks go on, and the end of this one is seen
