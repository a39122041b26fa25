"""Mirrors of the Python client in one process, for the benchmark `mirror`.

Usage: mirrors.py URL WORKSPACE MIRRORS_OF_EACH_KEY KEY…

It prints `ready` when all mirrors are live, and for each step of a mirror the version of `seed-0` and the time in
microseconds since 1970. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import sys
import time

from agentcfg import AsyncAgentCfg, Change


def note(change: Change) -> None:
    """Print what a mirror shows, and since when."""
    print(change.after["seed-0"].version, time.time_ns() // 1000, flush=True)


async def main() -> None:
    """Keep the mirrors until the input ends."""
    url, workspace, of_each, *keys = sys.argv[1:]
    mirrors = [AsyncAgentCfg(url, key, workspace=workspace) for key in keys for _ in range(int(of_each))]
    for mirror in mirrors:
        await mirror.wait_ready()
    while not all(mirror.health.is_live for mirror in mirrors):
        await asyncio.sleep(0.05)
    for mirror in mirrors:
        mirror.on_change(note)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for mirror in mirrors:
        await mirror.close()


asyncio.run(main())
