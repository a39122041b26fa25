"""Prompts that are rendered in memory are those that the server renders."""

from __future__ import annotations

from typing import Any

import pytest

from agentcfg import Agent, PromptError, errors, types
from conftest import Studio

VARIABLES: dict[str, Any] = {"a": {}, "b": {"default": "B"}, "_c1": {}, "needed": {"required": True, "default": "n"}}
CASES: list[tuple[str | None, dict[str, Any] | None, dict[str, str]]] = [
    ("{{a}} {{ a }} {{  a}}{{a  }}", VARIABLES, {"a": "1"}),
    ("{{b}}{{needed}}", VARIABLES, {}),
    ("{{b}}", VARIABLES, {"b": ""}),
    ("{{_c1}}-", VARIABLES, {}),
    ("{{other}} {{A}} {a} {{a}", VARIABLES, {"a": "1"}),
    ("{{{a}}} {{{{a}}}} {{{{{ a}}", VARIABLES, {"a": "1"}),
    ("{{ a\n}} {{a.b}} {{}} {{\ta}} {{", VARIABLES, {"a": "1"}),
    ("é{{a}}é{{\u00a0a}}", VARIABLES, {"a": "ü\n{{b}}"}),
    ("{{a}}", VARIABLES, {"a": "{{a}}{{b}}\\1"}),
    ("{{á}} {{aé}} {{a٣}}", VARIABLES, {"a": "1"}),
    ("{{a}}", None, {}),
    ("{{a}}", {}, {}),
    ("{{a}}", None, {"a": "1"}),
    ("{{a}}", VARIABLES, {"z": "1", "a": "2"}),
    ("x", {"must": {"required": True}, "also": {"required": True}, "may": {}}, {}),
    ("{{must}}", {"must": {"required": True}}, {"must": ""}),
    (None, {"must": {"required": True}}, {}),
    ("", {"must": {"required": True}}, {}),
    (None, VARIABLES, {"z": "1"}),
    (None, None, {}),
    ("{{a}}", VARIABLES, {}),
]


@pytest.mark.parametrize(("persona", "variables", "values"), CASES)
def test_the_prompt_is_that_of_the_server(
    prompts: Studio, persona: str | None, variables: dict[str, Any] | None, values: dict[str, str]
) -> None:
    body: Any = {
        "persona_prompt": persona,
        "definition": None if variables is None else {"variables": variables},
    }
    prompts.owner.update_agent("a", body)
    agent = Agent.of(prompts.owner.list_released_agents(label="latest").value[0])
    try:
        expected = prompts.owner.render_agent_prompt("a", body={"variables": values})["prompt"]
    except errors.BadRequest as refusal:
        with pytest.raises(PromptError) as refused:
            agent.prompt(**values)
        assert set(refused.value.message.removeprefix("a: ").split("; ")) == set(refusal.message.split("; "))
    else:
        assert agent.prompt(**values) == expected


@pytest.fixture(scope="module")
def prompts(server: Any) -> Studio:
    studio: Studio = server.studio()
    studio.agent("a", label=None)
    return studio


def test_a_value_that_is_no_text_is_refused() -> None:
    config: types.AgentConfig = {
        "display_name": "A",
        "role": None,
        "description": None,
        "agent_type": "ai",
        "model": "",
        "color": None,
        "persona_prompt": "{{n}}",
        "capabilities": [],
        "parameters": {},
        "definition": {"variables": {"n": {}}},
    }
    released: types.ReleasedAgent = {
        "agent_id": "a",
        "label": "production",
        "version": 1,
        "updated_at": "2026-11-20T09:30:00.123Z",
        "config": config,
    }
    agent = Agent.of(released)
    number: Any = 3
    with pytest.raises(PromptError, match=r"a: variables\.n must be a text"):
        agent.prompt(n=number)
    assert agent.model is None
