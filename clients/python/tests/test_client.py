"""The REST API through both clients, against the real server."""

from __future__ import annotations

import asyncio
import inspect
import socket
import threading
from typing import Any

import pytest

from agentcfg import NO_RETRIES, AsyncClient, Client, Timeouts, errors, types
from agentcfg._async_methods import AsyncMethods
from agentcfg._sync_methods import SyncMethods
from conftest import Server, Studio
from fake_clock import FakeClock


def test_an_agent_from_creation_to_its_end(studio: Studio) -> None:
    owner = studio.owner
    created = owner.create_agent({"agent_id": "writer", "display_name": "Writer & co"}, message="first/second?")
    assert (created.value["workspace_id"], created.version) == (studio.workspace, 1)
    changed = owner.update_agent("writer", {"model": "gpt-5.5"}, if_match=created.etag)
    assert (changed.value["model"], changed.version) == ("gpt-5.5", 2)
    with pytest.raises(errors.PreconditionFailed) as stale:
        owner.update_agent("writer", {"model": "x"}, if_match=created.etag)
    assert stale.value.status == 412 and stale.value.request_id and not stale.value.may_have_been_applied
    versions = owner.list_agent_versions(agent_id="writer", limit=1)
    assert [row["version"] for row in versions] == [2]
    assert owner.get_agent_version("writer", version=1)["message"] == "first/second?"
    compared = owner.diff_agent_versions("1", agent_id="writer", to="2")
    assert isinstance(compared, dict)
    assert compared["changes"] == {"model": {"from": None, "to": "gpt-5.5"}}
    rolled_back = owner.roll_back_agent("writer", {"version": 1})
    assert (rolled_back.value["model"], rolled_back.version) == (None, 3)
    listed = owner.list_agents()
    assert [agent["agent_id"] for agent in listed.value] == ["writer"] and listed.cursor
    with pytest.raises(errors.NotModified) as same:
        owner.list_agents(if_none_match=listed.etag)
    assert same.value.cursor == listed.cursor
    owner.delete_agent("writer")
    assert owner.list_agents(state="inactive").value[0]["is_active"] is False
    with pytest.raises(errors.Conflict, match="can be restored"):
        owner.create_agent({"agent_id": "writer", "display_name": "Writer"})
    assert owner.restore_agent("writer").value["is_active"]


def test_a_refusal_names_the_fields(studio: Studio) -> None:
    body: Any = {"agent_id": "x", "display_name": " ", "capabilities": ["a", ""], "parameters": {"größe, x": "y"}}
    with pytest.raises(errors.BadRequest) as invalid:
        studio.owner.create_agent(body)
    assert invalid.value.fields == ("display_name", "capabilities[1]", "parameters.größe, x")
    with pytest.raises(errors.BadRequest) as parameter:
        studio.owner.list_agents(limit=0)
    assert parameter.value.fields == ("limit",)
    many: Any = {"agent_id": "x", "display_name": "X", **{f"unknown_{number}": 1 for number in range(1000)}}
    with pytest.raises(errors.BadRequest) as cut:
        studio.owner.create_agent(many)
    assert cut.value.fields[0] == "unknown_0" and 10 < len(cut.value.fields) < 1000
    with pytest.raises(errors.NotFound) as missing:
        studio.owner.get_agent_version("x")
    assert missing.value.fields == () and missing.value.current_etag is None


@pytest.mark.parametrize("length", [10, 5000])
def test_a_412_has_the_current_tag_for_callers_that_may_read(studio: Studio, length: int) -> None:
    studio.agent("a", description="x" * 500, persona_prompt="x" * length)
    stale = studio.owner.list_agents(agent_id="a").etag
    studio.edit("a", model="one")
    current = studio.owner.list_agents(agent_id="a").etag
    for permissions, tag in [(["agents:configure", "agents:read"], current), (["agents:configure"], None)]:
        with Client(studio.server.url, studio.key("write", permissions=permissions)) as client:
            with pytest.raises(errors.PreconditionFailed) as failed:
                client.update_agent("a", {"model": "two"}, if_match=stale)
            assert failed.value.current_etag == tag != stale
    studio.owner.update_agent("a", {"model": "two"}, if_match=current)

    async def run() -> None:
        token = studio.server.token("ada")
        async with AsyncClient(studio.server.url, token, workspace=studio.workspace) as client:
            with pytest.raises(errors.PreconditionFailed) as failed:
                await client.delete_agent("a", if_match=stale)
            assert failed.value.current_etag == (await client.list_agents(agent_id="a")).etag

    asyncio.run(run())


def test_labels(studio: Studio) -> None:
    owner = studio.owner
    studio.agent("a", label="staging")
    studio.agent("b", label=None)
    start = listed = owner.list_agents().cursor
    assert owner.set_agent_label("b", "staging", {"label": "latest", "expected_version": None})["version"] == 1
    with pytest.raises(errors.PreconditionFailed):
        owner.promote_agent_labels({"from": "staging", "to": "production", "base": start})
    plan = owner.promote_agent_labels({"from": "staging", "to": "production"}, dry_run=True)
    assert [(row["agent_id"], row["previous_version"]) for row in plan] == [("a", None), ("b", None)]
    assert owner.list_agent_labels(label="production") == []
    assert owner.promote_agent_labels({"from": "staging", "to": "production"}) == plan
    history = owner.list_label_moves("production")
    assert [(move["agent_id"], move["from"], move["to"]) for move in history[0]["moves"]] == [
        ("a", None, 1),
        ("b", None, 1),
    ]
    restored = owner.restore_agent_labels({"label": "production", "revision": history[0]["revision"] - 1})
    assert [(row["agent_id"], row["version"]) for row in restored] == [("a", None), ("b", None)]
    assert owner.list_released_agents(label="production").value == []
    owner.apply_agents({"agents": [{"agent_id": "a", "display_name": "A"}], "set": "team"})
    moved = owner.promote_agent_labels({"from": "latest", "to": "production", "set": "team"})
    assert [row["agent_id"] for row in moved] == ["a"]
    assert owner.list_released_agents(label="production", agent_id="a").value[0]["version"] == 2
    owner.remove_agent_label("a", "production")
    with pytest.raises(errors.NotFound):
        owner.remove_agent_label("a", "production")
    page = owner.read_changes(after=listed, limit=1)
    assert (page.value[0]["type"], page.cursor == page.value[0]["cursor"]) == ("label.set", True)


def test_the_comparison_of_labels_and_the_current_versions_need_no_agent(studio: Studio) -> None:
    studio.agent("a", persona_prompt="one")
    studio.edit("a", persona_prompt="two")
    compared = [{"agent_id": "a", "from": 1, "to": 2, "versions": 1, "fields": ["persona_prompt"]}]

    def shown(comparison: types.Comparison) -> list[dict[str, Any]]:
        assert isinstance(comparison, list)
        return [{name: value for name, value in row.items() if "lines" not in name} for row in comparison]

    # A user of several workspaces, and a client that has not asked for its only one yet.
    for key, workspace in [(studio.server.token("ada"), studio.workspace), (studio.key(), None)]:
        with Client(studio.server.url, key, workspace=workspace) as client:
            assert shown(client.diff_agent_versions("production", to="latest")) == compared
        with Client(studio.server.url, key, workspace=workspace) as client:
            assert [row["version"] for row in client.list_agent_versions()] == [2]

    async def run() -> None:
        async with AsyncClient(studio.server.url, studio.key()) as client:
            assert shown(await client.diff_agent_versions("production", to="latest")) == compared
        async with AsyncClient(studio.server.url, studio.key()) as client:
            assert [row["version"] for row in await client.list_agent_versions()] == [2]

    asyncio.run(run())


def test_keys_members_audit_and_export(studio: Studio) -> None:
    owner = studio.owner
    created = owner.create_api_key({"name": "ci", "environment": "production", "scope": "read"})
    with Client(studio.server.url, created["key"]) as reader:
        assert reader.workspace_id() == studio.workspace
        assert reader.list_agents().value == []
        with pytest.raises(errors.Forbidden, match="agents:configure"):
            reader.create_agent({"agent_id": "x", "display_name": "X"})
        rotated = owner.rotate_api_key(created["id"])
        with pytest.raises(errors.Unauthorized):
            reader.list_agents()
    owner.revoke_api_key(rotated["id"])
    assert all(key["revoked_at"] or key["expires_at"] for key in owner.list_api_keys())
    owner.set_member("bob", {"role": "viewer"})
    assert {member["user_id"] for member in owner.list_members()} == {"ada", "bob"}
    owner.remove_member("bob")
    assert owner.list_audit_log(action="member.*", limit=1)[0]["action"] == "member.removed"
    owner.save_provider_key("openai", {"api_key": "sk-x"})
    assert [key["provider"] for key in owner.list_provider_keys()] == ["openai"]
    owner.delete_provider_key("openai")
    assert owner.list_models()[0]["credential"] == "none"
    kinds = [line["kind"] for line in owner.export_workspace()]
    assert kinds[0] == "workspace" and "audit" in kinds
    with Client(studio.server.url, studio.key()) as reader, pytest.raises(errors.Forbidden):
        next(reader.export_workspace())
    assert owner.update_workspace({"name": "Renamed"})["name"] == "Renamed"
    owner.delete_workspace("Renamed")
    assert studio.workspace not in [row["id"] for row in owner.list_workspaces()]


def test_changes_are_followed(own_server: Server) -> None:
    studio = own_server.studio()
    key = studio.key("write")
    with Client(own_server.url, key) as client:
        changes = client.follow_changes("start")
        studio.agent("a")
        seen = [next(changes), next(changes)]
        own_server.kill()
        timer = threading.Timer(0.1, own_server.start)
        timer.start()
        changes = client.follow_changes(seen[0]["cursor"])
        assert next(changes) == seen[1]
        timer.join()
        studio.edit("a", model="x")
        assert next(changes)["type"] == "agent.updated"
        with pytest.raises(errors.BadRequest, match="after"):
            next(client.follow_changes("no cursor"))

    async def run() -> None:
        async with AsyncClient(own_server.url, key) as client:
            changes = client.follow_changes("start")
            assert [await changes.__anext__(), await changes.__anext__()] == seen
            await changes.aclose()

    asyncio.run(run())


def test_webhooks(studio: Studio) -> None:
    owner = studio.owner
    created = owner.create_webhook({"url": "https://hooks.example.com/x", "types": ["label.*"]})
    assert created["secret"].startswith("whsec_")
    identifier = created["id"]
    assert owner.update_webhook(identifier, {"enabled": False})["enabled"] is False
    assert owner.rotate_webhook_secret(identifier)["secret"] != created["secret"]
    owner.replay_webhook(identifier, {"after": "start"})
    assert owner.list_webhook_deliveries(identifier) == []
    assert [webhook["id"] for webhook in owner.list_webhooks()] == [identifier]
    owner.delete_webhook(identifier)
    assert owner.list_webhooks() == []


def test_the_asynchronous_client(studio: Studio) -> None:
    async def run() -> None:
        async with AsyncClient(studio.server.url, studio.key("write")) as client:
            created = await client.create_agent({"agent_id": "a", "display_name": "A"})
            assert created.version == 1
            with pytest.raises(errors.NotFound) as missing:
                await client.get_agent_version("a", version=9)
            assert missing.value.request_id
            assert client.rate_limit is not None and client.rate_limit.limit == 100_000
        async with AsyncClient(studio.server.url, studio.server.token("ada"), workspace=studio.workspace) as owner:
            kinds = [line["kind"] async for line in owner.export_workspace()]
            assert kinds[0] == "workspace" and "audit" in kinds

    asyncio.run(run())


def test_both_clients_have_the_same_methods() -> None:
    def signatures(methods: type) -> dict[str, str]:
        return {
            name: str(inspect.signature(method)) for name, method in inspect.getmembers(methods, inspect.isfunction)
        }

    assert signatures(SyncMethods) == signatures(AsyncMethods)


def test_a_rate_limit_beyond_the_time_of_a_call_fails_at_once(studio: Studio) -> None:
    clock = FakeClock()
    with Client(studio.server.url, studio.key(rate_limit=1), clock=clock) as client:
        client.who_am_i()
        with pytest.raises(errors.RateLimited) as limited:
            client.who_am_i()
    assert limited.value.retry_after is not None and limited.value.retry_after > 45 and clock.waits == []
    assert limited.value.rate_limit is not None and limited.value.rate_limit.remaining == 0


def test_a_server_that_does_not_answer_is_not_waited_for(silent_server: str) -> None:
    timeouts = Timeouts(attempt=0.05)
    with Client(silent_server, "svc_test_x", timeouts=timeouts, retry=NO_RETRIES) as client:
        with pytest.raises(errors.TimedOut) as late:
            client.who_am_i()
        with pytest.raises(errors.TimedOut) as late_change:
            client.revoke_api_key("x")
    assert not late.value.may_have_been_applied and late_change.value.may_have_been_applied

    async def run() -> None:
        async with AsyncClient(silent_server, "svc_test_x", timeouts=timeouts, retry=NO_RETRIES) as client:
            with pytest.raises(errors.TimedOut):
                await client.who_am_i()

    asyncio.run(run())


def test_a_stream_that_is_silent_counts_as_dead() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"5\r\n:abc\n\r\n")
        await reader.read()  # until the client closes the connection
        writer.close()

    async def run() -> None:
        pieces: list[bytes] = []
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            async with AsyncClient(f"http://{host}:{port}", "k", workspace="w") as client:
                with pytest.raises(errors.TimedOut):
                    async with client.open_changes("now", "production", 0.05) as stream:
                        async for piece in stream:
                            pieces.append(piece)
        assert pieces == [b":abc\n"]

    asyncio.run(run())


def test_a_server_that_is_not_there_is_tried_again(studio: Studio) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    clock = FakeClock()
    with Client(url, "svc_test_x", clock=clock) as client, pytest.raises(errors.ConnectError) as absent:
        client.revoke_api_key("x")
    assert clock.waits == [0.15, 0.3, 0.6] and not absent.value.may_have_been_applied


@pytest.mark.parametrize(
    ("url", "key", "reason"),
    [
        ("localhost:7420", "k", "url must begin with http"),
        ("ftp://host", "k", "url must begin with http"),
        ("http://", "k", "url must begin with http"),
        ("http://host/?x", "k", "no user, query or fragment"),
        ("http://u@host", "k", "no user, query or fragment"),
        ("http://:p@host", "k", "no user, query or fragment"),
        ("http://[::1", "k", "url is not valid"),
        ("http://host:99999", "k", "url is not valid"),
        ("http://host", "", "key is empty"),
        ("http://host", "a\nb", "key holds a space"),
    ],
)
def test_settings_are_checked(url: str, key: str, reason: str) -> None:
    with pytest.raises(errors.InputError, match=reason):
        Client(url, key)


SEPARATORS = "a\u2028b\u2029c\u0085d\x1ce"


def test_an_export_of_texts_with_line_separators(studio: Studio) -> None:
    studio.agent("a", persona_prompt=SEPARATORS)
    lines = list(studio.owner.export_workspace())

    async def read() -> list[Any]:
        token = studio.server.token("ada")
        async with AsyncClient(studio.server.url, token, workspace=studio.workspace) as owner:
            return [line async for line in owner.export_workspace()]

    assert any(line["kind"] == "agent" and line["record"]["persona_prompt"] == SEPARATORS for line in lines), lines
    assert asyncio.run(read())[: len(lines)] == lines, "the export itself is in the audit log"


def test_half_of_a_surrogate_pair_is_not_sent(studio: Studio) -> None:
    with pytest.raises(errors.InputError, match="surrogate pair"):
        studio.owner.list_agents(agent_id="\ud83d")


def test_a_body_that_is_no_json_is_not_sent(studio: Studio) -> None:
    with pytest.raises(errors.InputError, match="cannot be written as JSON"):
        studio.owner.update_agent("a", {"parameters": {"x": float("nan")}})
