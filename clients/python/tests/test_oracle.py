"""Mirrors under kills of the server show only states that the label had, and in their order."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from agentcfg import AgentCfg, Change, Client, Snapshot
from agentcfg.types import LabelMoves
from conftest import Server, Studio, Watch

NAMES = [f"agent-{number}" for number in range(6)]
ROUNDS = 5
State = tuple[tuple[str, int], ...]


def state(snapshot: Snapshot) -> State:
    return tuple(sorted((agent.agent_id, agent.version) for agent in snapshot.values()))


def states(moves: list[LabelMoves]) -> list[State]:
    """Replay the history of a label: its states from the first on."""
    current: dict[str, int] = {}
    found: list[State] = [()]
    for commit in reversed(moves):
        for move in commit["moves"]:
            if move["to"] is None:
                current.pop(move["agent_id"], None)
            else:
                current[move["agent_id"]] = move["to"]
        found.append(tuple(sorted(current.items())))
    return found


class Seen:
    """Everything that a mirror has shown."""

    def __init__(self, cfg: AgentCfg) -> None:
        self.cfg = cfg
        self.watch = Watch(cfg)
        self.states: list[State] = []
        cfg.on_change(self.note)

    def note(self, change: Change) -> None:
        self.states.append(state(change.after))

    def until(self, last: State) -> None:
        while state(self.cfg.snapshot) != last:
            self.watch.next()


def release_at_random(studio: Studio, chance: random.Random) -> None:
    """Move the label a few times: of one agent, of many in one commit, away, and back."""
    owner = studio.owner
    for _ in range(4):
        kind = chance.choice(["one", "many", "removal", "restore"])
        if kind == "one":
            studio.release(name := chance.choice(NAMES), chance.randint(1, versions(owner)[name]))
        elif kind == "many":
            studio.apply(chance.sample(NAMES, 4), model=f"m{chance.random()}")
            owner.promote_agent_labels({"from": "latest", "to": "production"})
        elif kind == "removal":
            borne = owner.list_agent_labels(label="production")
            if borne:
                owner.remove_agent_label(chance.choice(borne)["agent_id"], "production")
        else:
            revision = chance.choice(owner.list_label_moves("production"))["revision"]
            owner.restore_agent_labels({"label": "production", "revision": revision})


def versions(owner: Client) -> dict[str, int]:
    return {row["agent_id"]: row["version"] for row in owner.list_agent_versions()}


def test_mirrors_show_only_states_that_the_label_had(own_server: Server, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    studio = own_server.studio()
    studio.apply(NAMES, model="first")
    studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
    mirrors = [
        Seen(AgentCfg(own_server.url, studio.key(), cache=tmp_path / f"{number % 2}.json", workspace=studio.workspace))
        for number in range(4)
    ]
    for seen in mirrors:
        seen.cfg.wait_ready()
    shown: set[State] = set()
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            for seen in mirrors:
                shown.add(state(seen.cfg.snapshot))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(ROUNDS):
            release_at_random(studio, chance)
            own_server.kill()
            late = Seen(
                AgentCfg(own_server.url, studio.owner._key(), cache=tmp_path / "0.json", workspace=studio.workspace)
            )
            late.cfg.wait_ready()
            mirrors.append(late)
            own_server.start()
            release_at_random(studio, chance)
        history = studio.owner.list_label_moves("production", limit=1000)
        had = states(history)
        for seen in mirrors:
            seen.until(had[-1])
    finally:
        ended.set()
        reader.join()
        for seen in mirrors:
            seen.cfg.close()
    assert shown <= set(had)
    for seen in mirrors:
        at = 0
        for one in seen.states:
            assert one in had[at:], f"{one} after {had[at]}"
            at = had.index(one, at)
