"""Model calls through the SDKs of the providers, the real server, and a provider of the test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from agentcfg import AgentCfg, AsyncAgentCfg
from conftest import Server
from provider import Provider

# What the SDKs take from the environment for the providers themselves.
ENVIRONMENT = [
    *("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL"),
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"),
]


def test_calls_are_those_of_the_released_agent(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "of-the-environment")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "Authorization: Bearer of-the-environment\nX-Api-Key: of-the-environment")
    urls = {"openai_base_url": provider.url, "anthropic_base_url": provider.url}
    server = Server(tmp_path, openai_api_key="o", anthropic_api_key="a", **urls)
    try:
        studio = server.studio()
        definition: Any = {"variables": {"product": {}}, "model_settings": {"temperature": 0.25}}
        studio.agent("support", model="gpt-5.5", persona_prompt="Help with {{product}}.", definition=definition)
        studio.edit("support", persona_prompt="A draft.")
        studio.agent("poet_1", model="claude-sonnet-5-5", persona_prompt="You rhyme.")
        key = studio.key("write")
        question: Any = [{"role": "user", "content": "Hi"}]
        with AgentCfg(server.url, key, workspace=studio.workspace) as cfg:
            client = cfg.openai("support", variables={"product": "Böards"}, max_retries=0)
            answer = client.chat.completions.create(model="", messages=question)
            assert answer.choices[0].message.content == "Hello from gpt-5.5"
            path, body = provider.calls.get_nowait()
            assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "gpt-5.5", 0.25)
            assert body["messages"][0] == {"role": "system", "content": "Help with Böards."}
            message = (
                cfg.anthropic("poet_1")
                .with_options(max_retries=1)
                .messages.create(model="", max_tokens=9, messages=question)
            )
            assert message.model == "claude-sonnet-5-5"
            path, body = provider.calls.get_nowait()
            assert (path, body["model"], body["system"]) == ("/v1/messages", "claude-sonnet-5-5", "You rhyme.")
            with pytest.raises(openai.NotFoundError, match="nothing"):
                cfg.openai("nothing").chat.completions.create(model="", messages=question)
            with pytest.raises(openai.NotFoundError):
                cfg.openai("support", provider="another").chat.completions.create(model="", messages=question)

        async def run() -> None:
            async with AsyncAgentCfg(server.url, key) as cfg:
                await cfg.openai("support").chat.completions.create(model="", messages=question)
                await cfg.anthropic("poet_1").messages.create(model="", max_tokens=9, messages=question)

        asyncio.run(run())
        assert provider.calls.get_nowait()[1]["messages"][0]["content"] == "Help with ."
        assert provider.calls.get_nowait()[1]["system"] == "You rhyme."
        sent = "".join(provider.headers)
        assert "of-the-environment" not in sent and key not in sent
    finally:
        server.kill()
