"""The time limit of a step, and its end from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from agentcfg import NO_RETRIES, AsyncClient, errors
from agentcfg.client import within


def test_a_result_comes_back_and_so_does_a_failure() -> None:
    async def work(failure: Exception | None) -> int:
        await asyncio.sleep(0)
        if failure is not None:
            raise failure
        return 7

    assert asyncio.run(within(20, work(None))) == 7
    with pytest.raises(ValueError, match="of the work"):
        asyncio.run(within(20, work(ValueError("of the work"))))


def test_the_time_ends_the_work() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(20)
        finally:
            ended.append("work")

    with pytest.raises(errors.TimedOut):
        asyncio.run(within(0.01, work()))
    assert ended == ["work"]


@pytest.mark.parametrize("failure", [None, ValueError("of the work")])
def test_an_end_that_comes_together_with_the_result_is_not_lost(failure: Exception | None) -> None:
    async def run() -> None:
        came: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def work() -> int:
            return await came

        task = asyncio.create_task(within(20, work()))
        await asyncio.sleep(0.01)
        if failure is None:
            came.set_result(7)
        else:
            came.set_exception(failure)
        await asyncio.sleep(0)  # the work is done, and `within` has not gone on
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


class Body(httpx.AsyncByteStream):
    """A body that notes its end."""

    def __init__(self) -> None:
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"{}"

    async def aclose(self) -> None:
        self.is_closed = True


def test_a_response_that_comes_together_with_the_end_is_closed() -> None:
    body = Body()

    class Late(httpx.AsyncBaseTransport):
        def __init__(self) -> None:
            self.came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            await self.came
            return httpx.Response(200, stream=body)

    async def run() -> None:
        transport = Late()
        async with AsyncClient("http://agents.example.com", "k", retry=NO_RETRIES, transport=transport) as client:
            task = asyncio.create_task(client.who_am_i())
            await asyncio.sleep(0.01)
            transport.came.set_result(None)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert body.is_closed
