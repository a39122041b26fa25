"""The examples of the documentation: their types, and what they print, against the real server."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from conftest import ROOT, Server, Studio
from provider import Provider

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAGES = ["docs/python.md", "clients/python/README.md", "README.md"]


def examples(page: str) -> list[str]:
    """Return the examples of a page that use this package."""
    found = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [example for example in found if "agentcfg" in example]


def expected(example: str) -> list[str]:
    return re.findall(r"# → (.*)$", example, re.MULTILINE)


@pytest.fixture
def documented(provider: Provider, tmp_path: Path) -> Iterator[Studio]:
    """The workspace that the pages speak of."""
    providers = {"openai_base_url": provider.url, "anthropic_base_url": provider.url}
    server = Server(tmp_path, openai_api_key="o", anthropic_api_key="a", session_rate_limit="1000000", **providers)
    studio = server.studio()
    definition: Any = {"variables": {"customer": {"required": True}}}
    agents: Any = [
        {
            "agent_id": "support",
            "display_name": "Support",
            "model": "gpt-5.5",
            "persona_prompt": "You help {{customer}}.",
            "definition": definition,
        },
        {"agent_id": "writer", "display_name": "Writer", "model": "claude-sonnet-5-5", "persona_prompt": "You write."},
    ]
    studio.owner.apply_agents({"agents": agents})
    studio.owner.promote_agent_labels({"from": "latest", "to": "production"})
    yield studio
    server.kill()


def run(example: str) -> tuple[dict[str, Any], list[str]]:
    """Return what an example defines and what it prints."""
    names: dict[str, Any] = {"__name__": "example"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "example", "exec"), names)
    return names, printed.getvalue().splitlines()


def test_the_examples_print_what_they_say(documented: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTCFG_URL", documented.server.url)
    monkeypatch.setenv("AGENTCFG_API_KEY", documented.key("admin"))
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    defined: dict[str, Any] = {}
    for page in reversed(PAGES):  # that of the examples that change agents is the last one
        for example in examples(page):
            names, printed = run(example)
            if "# →" in example:
                assert printed == expected(example), example
            defined.update(names)
    check_receiver(defined["receive"])


def check_receiver(receive: Any) -> None:
    body = '{"type": "label.set", "data": {"target": {"type": "agent", "id": "writer"}}}'
    now = datetime.now(timezone.utc)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": standardwebhooks.Webhook(SECRET).sign("msg_1", now, body),
    }
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert receive(body.encode(), headers) == 204
        assert receive(body.encode() + b" ", headers) == 400
    assert printed.getvalue() == "label.set writer\n"


def test_the_loader_is_short() -> None:
    for page in PAGES:
        loader = next(example for example in examples(page) if "AgentCfg(" in example)
        assert len([line for line in loader.splitlines() if line.strip()]) <= 8, page


def test_the_examples_have_types(tmp_path: Path) -> None:
    paths = [str(ROOT / "clients/python/src")]
    settings = {"typeCheckingMode": '"strict"', "pythonVersion": '"3.10"', "extraPaths": str(paths)}
    lines = [f"{name} = {value}" for name, value in settings.items()]
    (tmp_path / "pyproject.toml").write_text("\n".join(["[tool.pyright]", *lines, ""]))
    for page in PAGES:
        for number, example in enumerate(examples(page)):
            (tmp_path / f"{page.replace('/', '_')}_{number}.py").write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
