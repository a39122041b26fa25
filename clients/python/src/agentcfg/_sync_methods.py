"""The methods of the synchronous client.

Made by tools/generate.py from the OpenAPI document of the server; do not edit.
"""

from __future__ import annotations

from typing import TypeVar

from . import types
from .calls import Answer, Call, answer, read_list, read_object, read_object_or_list, read_success

T = TypeVar("T")


class SyncMethods:
    """The endpoints of the API. What differs is how a call is sent."""

    def send(self, call: Call[T]) -> T:
        """Send a call, with retries, and read its response."""
        raise NotImplementedError

    def list_agents(
        self,
        *,
        workspace_id: str | None = None,
        agent_id: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        at: str | None = None,
        revision: int | None = None,
        if_none_match: str | None = None,
    ) -> Answer[list[types.Agent]]:
        """List agents.

        Returns the agents of a workspace, oldest first and in one response unless `limit` and `offset` choose a part of
        it: the active ones, unless `state` chooses others.

        The entity tag changes with every change in the workspace. With `agent_id` it is the tag of that agent's record,
        for use in `If-Match`.

        With `at` or `revision` the list is the one that was answered then. A list at a revision never changes.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/configs",
                answer(read_list),
                query={
                    "workspace_id": workspace_id,
                    "agent_id": agent_id,
                    "state": state,
                    "limit": limit,
                    "offset": offset,
                    "at": at,
                    "revision": revision,
                },
                headers={"If-None-Match": if_none_match},
                workspace="required",
            )
        )

    def create_agent(self, body: types.NewAgent, *, message: str | None = None) -> Answer[types.Agent]:
        """Create an agent.

        Creates an active agent. Fields that are left out are null, an empty array or an empty object in the answer.

        409 means that the `agent_id` is taken in the workspace, be it by a deleted agent, which can be restored. Of
        several requests for the last place of the plan, one succeeds.

        Needs the permission `agents:configure`.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/configs",
                answer(read_object),
                query={"message": message},
                body=body,
                workspace="body",
            )
        )

    def update_agent(
        self,
        agent_id: str,
        body: types.AgentPatch,
        *,
        workspace_id: str | None = None,
        message: str | None = None,
        if_match: str | None = None,
    ) -> Answer[types.Agent]:
        """Change an agent.

        Replaces the given fields of an active agent and keeps the others. `updated_at` moves forward every time, even
        for an empty object. A change of the content makes a new version.

        Needs the permission `agents:configure`.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/agents/configs",
                answer(read_object),
                query={"agent_id": agent_id, "workspace_id": workspace_id, "message": message},
                headers={"If-Match": if_match},
                body=body,
                workspace="optional",
            )
        )

    def delete_agent(
        self, agent_id: str, *, workspace_id: str | None = None, message: str | None = None, if_match: str | None = None
    ) -> None:
        """Delete an agent.

        Deactivates an agent: lists no longer show it, its record is kept, and its `agent_id` stays taken.

        Needs the permission `agents:configure`.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/agents/configs",
                read_success,
                query={"agent_id": agent_id, "workspace_id": workspace_id, "message": message},
                headers={"If-Match": if_match},
                workspace="optional",
            )
        )

    def restore_agent(
        self, agent_id: str, *, workspace_id: str | None = None, message: str | None = None, if_match: str | None = None
    ) -> Answer[types.Agent]:
        """Restore a deleted agent.

        Makes a deleted agent active again, unchanged. No body is read.

        409 means that the agent is active.

        Needs the permission `agents:configure`.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/configs/restore",
                answer(read_object),
                query={"agent_id": agent_id, "workspace_id": workspace_id, "message": message},
                headers={"If-Match": if_match},
                workspace="optional",
            )
        )

    def apply_agents(
        self,
        body: types.ApplyAgents,
        *,
        workspace_id: str | None = None,
        dry_run: bool | None = None,
        message: str | None = None,
    ) -> types.AppliedAgents:
        """Apply agents.

        Brings up to 1,000 agents to the state that the body names, all in one change or none: agents are created,
        changed and, where they were deleted, restored. A field that is left out gets its default, so the outcome
        depends on the body alone.

        A `set` remembers its agents. With `prune`, those of the set that the body does not name are deactivated and
        leave the set; no other agents are.

        409 means that an agent belongs to another set. 412 means that an agent of the body or of the set has changed
        since `base`, or that storage was restored since. 422 means that more agents would be active than before and
        than the plan allows.

        Needs the permission `agents:configure`; a dry run needs `agents:read` alone.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/apply",
                read_object,
                query={"workspace_id": workspace_id, "dry_run": dry_run, "message": message},
                body=body,
                workspace="required",
            )
        )

    def list_agent_status(self, *, workspace_id: str | None = None) -> list[types.AgentStatus]:
        """See what the agents are doing.

        Returns an entry for each active agent, in the order of the agent list. An agent that has not reported lately is
        `offline`.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call("GET", "/api/agents/status", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def report_agent_status(
        self, agent_id: str, body: types.StatusReport, *, workspace_id: str | None = None
    ) -> types.AgentStatus:
        """Report what an agent is doing.

        Replaces the agent's last report. A report counts for a time that the deployment chooses, 120 seconds unless
        configured; report again before it runs out. Reports are not audited and do not change the agent's record and
        tags.

        Needs the permission `tasks:update`.
        """
        return self.send(
            Call(
                "PUT",
                "/api/agents/status",
                read_object,
                query={"agent_id": agent_id, "workspace_id": workspace_id},
                body=body,
                workspace="optional",
                is_idempotent=True,
            )
        )

    def list_status_history(
        self, *, workspace_id: str | None = None, agent_id: str | None = None, since: str | None = None
    ) -> list[types.StatusChange]:
        """See what the agents were doing.

        Returns the changes of the live status of the last 24 hours, oldest first: a report that says something else
        than the one before, and the moment at which the last report of an agent ceased to count. At most the last 288
        changes of an agent are kept, in memory by each server from what it sees; `History-Since` says since when.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/status/history",
                read_list,
                query={"workspace_id": workspace_id, "agent_id": agent_id, "since": since},
                workspace="required",
            )
        )

    def who_am_i(self) -> types.WhoAmI:
        """Say who the caller is.

        Returns the identity behind the credential, when it ends, and the workspaces that it opens, each with what the
        caller may do there and how many agents its plan allows.

        Any good credential will do.
        """
        return self.send(Call("GET", "/api/whoami", read_object, query={}))

    def list_agent_versions(
        self,
        *,
        agent_id: str | None = None,
        workspace_id: str | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> list[types.AgentVersion]:
        """List the versions of an agent.

        Returns the versions of an agent without their content, newest first. Deactivated agents have versions too.
        Without `agent_id` it returns the current version of each active agent instead.

        Each change of an agent's content is a version: 1, 2, 3, … without gaps. A version never changes.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/versions",
                read_list,
                query={"agent_id": agent_id, "workspace_id": workspace_id, "limit": limit, "before": before},
                workspace="optional",
            )
        )

    def get_agent_version(
        self,
        agent_id: str,
        *,
        workspace_id: str | None = None,
        version: int | None = None,
        label: str | None = None,
        at: str | None = None,
        revision: int | None = None,
    ) -> types.AgentVersionDetail:
        """Read a version of an agent.

        Returns one version with its content: that of the number `version`, the one that `label` points at, or the one
        that was current at a time or a revision; without any of them the current one. Where there is none the answer is
        404, never another version.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/version",
                read_object,
                query={
                    "agent_id": agent_id,
                    "workspace_id": workspace_id,
                    "version": version,
                    "label": label,
                    "at": at,
                    "revision": revision,
                },
                workspace="optional",
            )
        )

    def diff_agent_versions(
        self, from_: str, *, agent_id: str | None = None, workspace_id: str | None = None, to: str | None = None
    ) -> types.Comparison:
        """Compare two versions of an agent, or two labels.

        Returns the fields that differ, and the difference of the personas as a unified diff. The answer names the
        versions by their numbers.

        Without `agent_id`, `from` and `to` are labels, `latest` among them: the answer has an element for each active
        agent that has both, in the order of the list of agents, with how many versions they are apart, the names of the
        fields that differ, and how many lines the persona gains and loses. All of it is of one moment.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/diff",
                read_object_or_list,
                query={"agent_id": agent_id, "workspace_id": workspace_id, "from": from_, "to": to},
                workspace="optional",
            )
        )

    def roll_back_agent(
        self,
        agent_id: str,
        body: types.Rollback,
        *,
        workspace_id: str | None = None,
        message: str | None = None,
        if_match: str | None = None,
    ) -> Answer[types.Agent]:
        """Give an agent the content of an earlier version.

        Makes a new version with the content of the version that the body names, by its number or a label. Where the
        agent has that content already nothing changes.

        Needs the permission `agents:configure`.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/rollback",
                answer(read_object),
                query={"agent_id": agent_id, "workspace_id": workspace_id, "message": message},
                headers={"If-Match": if_match},
                body=body,
                workspace="optional",
            )
        )

    def render_agent_prompt(
        self,
        agent_id: str,
        *,
        body: types.PromptValues | None = None,
        workspace_id: str | None = None,
        version: int | None = None,
        label: str | None = None,
    ) -> types.RenderedPrompt:
        """Render the prompt of an agent.

        Returns what a model call with these values of variables would fill in: the model, the persona with the values
        in place, and the settings. Where the agent's definition declares `variables`, each `{{name}}` of a declared one
        is replaced by the value, else by the default, else by nothing. With `version` or `label` all of it is that of
        that version of the agent. A required variable without a value is answered with 400, and so is a value of a
        variable that is not declared.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/prompt",
                read_object,
                query={"agent_id": agent_id, "workspace_id": workspace_id, "version": version, "label": label},
                body=body,
                workspace="optional",
                is_read=True,
            )
        )

    def list_agent_labels(
        self, *, workspace_id: str | None = None, agent_id: str | None = None, label: str | None = None
    ) -> list[types.AgentLabel]:
        """List labels.

        Returns the labels of a workspace, those of deactivated agents too, by agent and label. The reserved label
        `latest` is not listed.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/labels",
                read_list,
                query={"workspace_id": workspace_id, "agent_id": agent_id, "label": label},
                workspace="required",
            )
        )

    def set_agent_label(
        self,
        agent_id: str,
        label: str,
        body: types.LabelTarget,
        *,
        workspace_id: str | None = None,
        message: str | None = None,
    ) -> types.AgentLabel:
        """Move a label to a version.

        Makes the label if the agent does not have it; an agent has at most 20. With `expected_version` the label is
        moved only if it points at that version now, or does not exist for null; otherwise the answer is 412. The same
        version again changes nothing.

        Needs the permission `agents:release`.
        """
        return self.send(
            Call(
                "PUT",
                "/api/agents/labels",
                read_object,
                query={"agent_id": agent_id, "label": label, "workspace_id": workspace_id, "message": message},
                body=body,
                workspace="optional",
            )
        )

    def remove_agent_label(
        self, agent_id: str, label: str, *, workspace_id: str | None = None, message: str | None = None
    ) -> None:
        """Remove a label.

        The version that it points at stays. A label that the agent does not have is 404.

        Needs the permission `agents:release`.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/agents/labels",
                read_success,
                query={"agent_id": agent_id, "label": label, "workspace_id": workspace_id, "message": message},
                workspace="optional",
            )
        )

    def promote_agent_labels(
        self,
        body: types.Promotion,
        *,
        workspace_id: str | None = None,
        dry_run: bool | None = None,
        message: str | None = None,
    ) -> list[types.PromotedLabel]:
        """Move a label of several agents to where another one points.

        Each active agent that has the label `from`, those of a `set`, or each one that `agent_ids` names, gets the
        label `to` on the same version, in one commit. An agent that is named and lacks `from` is 404, and nothing
        changes. At most 1,000 agents are moved. With `base` the answer is 412 if a label `from` or `to` has moved
        since; an edit of an agent moves `latest`.

        Needs the permission `agents:release`; a dry run needs `agents:read` alone.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/labels/promote",
                read_list,
                query={"workspace_id": workspace_id, "dry_run": dry_run, "message": message},
                body=body,
                workspace="required",
            )
        )

    def list_released_agents(
        self,
        *,
        workspace_id: str | None = None,
        label: str | None = None,
        agent_id: str | None = None,
        if_none_match: str | None = None,
    ) -> Answer[list[types.ReleasedAgent]]:
        """Read what a label releases.

        Returns the version of each active agent that the label points at, with its content, in the order of the list of
        agents. A label that no agent has releases nothing.

        The entity tag changes only when the answer does. A reader keeps its copy current with `If-None-Match`, or with
        the change feed after the cursor of the answer.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/released",
                answer(read_list),
                query={"workspace_id": workspace_id, "label": label, "agent_id": agent_id},
                headers={"If-None-Match": if_none_match},
                workspace="required",
            )
        )

    def list_label_moves(
        self,
        label: str,
        *,
        workspace_id: str | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> list[types.LabelMoves]:
        """List the moves of a label.

        Returns the commits that moved the label, newest first, each with the agents whose label it moved. To page, pass
        the last `revision` as `before`.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/agents/labels/history",
                read_list,
                query={
                    "workspace_id": workspace_id,
                    "label": label,
                    "agent_id": agent_id,
                    "limit": limit,
                    "before": before,
                },
                workspace="required",
            )
        )

    def restore_agent_labels(
        self,
        body: types.LabelRestore,
        *,
        workspace_id: str | None = None,
        dry_run: bool | None = None,
        message: str | None = None,
    ) -> list[types.RestoredLabel]:
        """Put a label back to where it was.

        The label of every agent goes to where it was at the revision: it is moved, set again or removed, all in one
        commit. Deactivated agents are among them. Where nothing has moved, nothing is recorded.

        With `base` the answer is 412 if the label of any agent has moved since. 422 means that more than 1,000 labels
        would move, or that an agent has 20 labels.

        Needs the permission `agents:release`; a dry run needs `agents:read` alone.
        """
        return self.send(
            Call(
                "POST",
                "/api/agents/labels/restore",
                read_list,
                query={"workspace_id": workspace_id, "dry_run": dry_run, "message": message},
                body=body,
                workspace="required",
            )
        )

    def list_workspaces(self) -> list[types.WorkspaceView]:
        """List the caller's workspaces.

        Returns the workspaces that the session's user is a member of, each with the user's role, or the one workspace
        of an API key, without a role.

        Any good credential will do.
        """
        return self.send(Call("GET", "/api/workspaces", read_list, query={}))

    def create_workspace(self, body: types.NewWorkspace) -> types.Workspace:
        """Create a workspace.

        Creates a workspace on the deployment's default plan and makes the caller its owner. 422 means that the caller
        owns as many workspaces as the deployment allows.

        No permission is needed. API keys are refused: a session token is needed.
        """
        return self.send(Call("POST", "/api/workspaces", read_object, query={}, body=body))

    def update_workspace(self, body: types.WorkspacePatch, *, workspace_id: str | None = None) -> types.Workspace:
        """Rename a workspace or change its plan.

        Changes the name, the plan or both. Operators, whom the deployment's configuration names, alone may change
        plans; for a change of the plan alone they need no membership, and an unknown workspace is answered with 404.

        Needs the permission `workspace:manage`, unless an operator changes the plan alone. API keys are refused: a
        session token is needed.
        """
        return self.send(
            Call(
                "PATCH",
                "/api/workspaces",
                read_object,
                query={"workspace_id": workspace_id},
                body=body,
                workspace="required",
            )
        )

    def delete_workspace(self, confirm: str, *, workspace_id: str | None = None) -> None:
        """Delete a workspace.

        Deletes a workspace with all that it holds, for good; `GET /api/workspaces/export` gives a copy of it. From the
        answer on, its API keys are answered with 401 and its members with 403. Its records are removed from storage in
        the background.

        A server that restores an older backup has the workspace again.

        Needs the permission `workspace:manage`. API keys are refused: a session token is needed.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/workspaces",
                read_success,
                query={"workspace_id": workspace_id, "confirm": confirm},
                workspace="required",
            )
        )

    def list_members(self, *, workspace_id: str | None = None) -> list[types.Member]:
        """List the members of a workspace.

        Returns all members, in the order in which they joined, with `name` and `email` where the token of their last
        sign-in had these claims.

        Needs the permission `users:read`.
        """
        return self.send(
            Call(
                "GET", "/api/workspaces/members", read_list, query={"workspace_id": workspace_id}, workspace="required"
            )
        )

    def set_member(self, user_id: str, body: types.RoleChange, *, workspace_id: str | None = None) -> types.Member:
        """Add a member or change a role.

        Adds a user with a role, or changes the role of a member. The same role again changes nothing. Only owners may
        make a user an owner or change the role of an owner. Where the deployment names a claim for groups, the member
        `group:<name>` stands for each user whose session token names that group.

        409 means that the workspace would be left without an owner.

        Needs the permission `members:manage`. API keys are refused: a session token is needed.
        """
        return self.send(
            Call(
                "PUT",
                "/api/workspaces/members",
                read_object,
                query={"workspace_id": workspace_id, "user_id": user_id},
                body=body,
                workspace="required",
            )
        )

    def remove_member(self, user_id: str, *, workspace_id: str | None = None) -> None:
        """Remove a member.

        Ends a membership. Every member may end their own; only owners may end an owner's.

        409 means that the workspace would be left without an owner.

        Needs the permission `members:manage`, except to remove oneself. API keys are refused: a session token is
        needed.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/workspaces/members",
                read_success,
                query={"workspace_id": workspace_id, "user_id": user_id},
                workspace="required",
            )
        )

    def list_api_keys(self, *, workspace_id: str | None = None) -> list[types.ApiKey]:
        """List API keys.

        Returns the API keys of a workspace, with those that are revoked or expired. Secrets are never shown.

        Needs the permission `api_keys:read`.
        """
        return self.send(
            Call("GET", "/api/api-keys", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def create_api_key(self, body: types.NewApiKey) -> types.CreatedApiKey:
        """Create an API key.

        Creates an API key. Its plaintext is shown in this answer alone.

        `permissions` takes permissions of the scope away. With `agents` the key reads, calls, changes and releases
        those agents alone: naming another one, and what concerns the whole workspace, is 403. `label` pins its model
        calls, prompts and releases.

        Needs the permission `api_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(Call("POST", "/api/api-keys", read_object, query={}, body=body, workspace="body"))

    def revoke_api_key(self, key_id: str) -> None:
        """Revoke an API key.

        Revokes an API key at once: the next request with it is answered with 401. The key stays listed.

        404 covers keys that are unknown, revoked before, or of a workspace that the caller is not a member of.

        Needs the permission `api_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(Call("DELETE", "/api/api-keys", read_success, query={"key_id": key_id}))

    def rotate_api_key(self, key_id: str, *, body: types.RotateApiKey | None = None) -> types.CreatedApiKey:
        """Replace an API key.

        Creates a key with the name, the environment, the scope and the limits of another one, and with its lifetime
        where it has one. The old key ends after the overlap, and never later than it would have. The body may be left
        out.

        404 covers keys that are unknown, or of a workspace that the caller is not a member of; a key that has ended is
        409.

        Needs the permission `api_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(Call("POST", "/api/api-keys/rotate", read_object, query={"key_id": key_id}, body=body))

    def list_audit_log(
        self,
        *,
        workspace_id: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        actor: str | None = None,
        action: str | None = None,
        target_type: str | None = None,
        target_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: int | None = None,
        view: str | None = None,
    ) -> list[types.AuditEntry]:
        """Read the audit log.

        Returns the changes in a workspace, each with its actor and time, newest first. An entry must match all filters
        that are given; `limit` and `offset` count the entries that do. To page through a log that grows, pass the last
        `revision` as `before`. With `view=summary` the values are left out: `changes` has null for each path, at most
        100, and `paths` says how many there are where they are more.

        Needs the permission `audit_log:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/audit-log",
                read_list,
                query={
                    "workspace_id": workspace_id,
                    "limit": limit,
                    "offset": offset,
                    "actor": actor,
                    "action": action,
                    "target_type": target_type,
                    "target_id": target_id,
                    "since": since,
                    "until": until,
                    "before": before,
                    "view": view,
                },
                workspace="required",
            )
        )

    def read_changes(
        self,
        *,
        workspace_id: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        wait: int | None = None,
    ) -> Answer[list[types.ChangeEvent]]:
        """Read or follow the changes.

        Returns the changes in a workspace after a position, in their order. `Change-Cursor` of the list of agents is
        the position at which the list was read, and the one here the position to read on from: a list and then the
        changes after its cursor miss nothing and repeat nothing. Applied in order to that list, the `changes` give the
        list now. Without `audit_log:read` only the events of agents and their labels are shown.

        With `Accept: text/event-stream` the same comes as server-sent events. `change` is one event, with its cursor as
        `id`. `bookmark` has the position at the beginning and every 15 seconds. `status`, on request, is one entry of
        the live status with `reported_at`: all entries at first, then each that changed. With `label` an event that
        does nothing but move this label has `released`: the versions that it points at from then on, with their
        content, at most 128 KiB of them. `gone` is the last event when the list must be read again, `end` otherwise;
        both say why in `error`. A stream ends when its credential does, when the role is lowered, at a shutdown of the
        server, and after 8 to 12 minutes.

        410 means that the position is of another epoch of the store, or from the future: read the list again. 429 also
        means that the caller has 10 streams, or the server as many as it may have.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/changes",
                answer(read_list),
                query={"workspace_id": workspace_id, "after": after, "limit": limit, "wait": wait},
                workspace="required",
                patience=wait or 0,
            )
        )

    def list_models(self, *, workspace_id: str | None = None) -> list[types.ModelInfo]:
        """List the models on offer.

        Returns the catalogue of the deployment, each model with the credential that its next call would use: the
        workspace's own, the managed one, or none. Prices are in USD per million tokens, as the operator has entered
        them.

        Needs the permission `agents:read`.
        """
        return self.send(
            Call("GET", "/api/models", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def list_provider_keys(self, *, workspace_id: str | None = None) -> list[types.ProviderKeyInfo]:
        """List provider keys.

        Returns the providers for which the workspace has saved a credential of its own, never the credential itself.

        Needs the permission `settings:read`.
        """
        return self.send(
            Call("GET", "/api/provider-keys", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def save_provider_key(
        self, provider: str, body: types.NewProviderKey, *, workspace_id: str | None = None
    ) -> types.ProviderKeyInfo:
        """Save a provider key.

        Saves the workspace's own credential for a provider, or replaces it; the next model call uses it. It is sealed
        before it is stored and never shown again. 403 also when the plan does not allow own keys, and 503 when the
        deployment has no master key.

        Needs the permission `provider_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(
            Call(
                "PUT",
                "/api/provider-keys",
                read_object,
                query={"workspace_id": workspace_id, "provider": provider},
                body=body,
                workspace="required",
            )
        )

    def delete_provider_key(self, provider: str, *, workspace_id: str | None = None) -> None:
        """Delete a provider key.

        Deletes the workspace's own credential for a provider, on every plan; the next model call uses the managed one,
        if there is one.

        Needs the permission `provider_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/provider-keys",
                read_success,
                query={"workspace_id": workspace_id, "provider": provider},
                workspace="required",
            )
        )

    def test_provider_key(self, provider: str, *, workspace_id: str | None = None) -> types.ProviderKeyTest:
        """Test a provider key.

        Asks the provider for its list of models with the saved key, which costs nothing. The answer is 200 whatever the
        provider says: `ok` tells whether it takes the key, and `message` is its own where it refuses. 404 where no key
        is saved.

        Needs the permission `provider_keys:manage`. API keys are refused: a session token is needed.
        """
        return self.send(
            Call(
                "POST",
                "/api/provider-keys/test",
                read_object,
                query={"workspace_id": workspace_id, "provider": provider},
                workspace="required",
            )
        )

    def get_usage(
        self,
        *,
        workspace_id: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        by: str | None = None,
        agent_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        key: str | None = None,
        label: str | None = None,
        top: int | None = None,
    ) -> list[types.UsageRow]:
        """Read the usage of models.

        Adds up the model calls of a workspace: tokens as the providers report them, and their cost by the prices of the
        catalogue. A call is there within a second of its end. What a provider did not report is estimated by a quarter
        of the bytes, and counts in `estimated_calls`. Without `by` there is one row, or none without calls. An answer
        of more than 10,000 rows is refused.

        Needs the permission `analytics:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/usage",
                read_list,
                query={
                    "workspace_id": workspace_id,
                    "from": from_,
                    "to": to,
                    "by": by,
                    "agent_id": agent_id,
                    "model": model,
                    "provider": provider,
                    "key": key,
                    "label": label,
                    "top": top,
                },
                workspace="required",
            )
        )

    def list_usage_calls(
        self,
        *,
        workspace_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
        agent_id: str | None = None,
        key: str | None = None,
        model: str | None = None,
        status: int | None = None,
    ) -> list[types.UsageCall]:
        """List model calls.

        Returns single model calls, newest first, for as long as the deployment keeps them. Nothing of prompts and
        answers is among it. `actor` is null without the permission `audit_log:read`.

        Needs the permission `analytics:read`.
        """
        return self.send(
            Call(
                "GET",
                "/api/usage/calls",
                read_list,
                query={
                    "workspace_id": workspace_id,
                    "limit": limit,
                    "before": before,
                    "agent_id": agent_id,
                    "key": key,
                    "model": model,
                    "status": status,
                },
                workspace="required",
            )
        )

    def list_budgets(self, *, workspace_id: str | None = None) -> list[types.Budget]:
        """List budgets.

        Returns the budgets of a workspace with what is spent and reserved of each in its current period. What another
        server has spent is there within a second. `unsettled_usd` is what servers had taken that ended without giving
        it back; it counts as spent until the period ends, or it is settled.

        Needs the permission `analytics:read`.
        """
        return self.send(
            Call("GET", "/api/budgets", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def set_budget(
        self,
        scope: str,
        period: str,
        body: types.BudgetLimit,
        *,
        workspace_id: str | None = None,
        scope_id: str | None = None,
    ) -> types.Budget:
        """Make a budget or change its limit.

        Model calls of all servers are held to it from then on. Before a call is sent, each budget that covers it
        reserves what the call can cost at most; its end replaces that by the cost. Where the rest is smaller, the cap
        of the body on output tokens is lowered to what the rest pays for, if that is at least 256 tokens; otherwise the
        call is 402. Under `warn` all calls are made, and the events of the thresholds say how much is spent. A new
        budget counts what its current period has spent already. A workspace has at most 500 budgets.

        Needs the permission `budgets:manage`.
        """
        return self.send(
            Call(
                "PUT",
                "/api/budgets",
                read_object,
                query={"workspace_id": workspace_id, "scope": scope, "scope_id": scope_id, "period": period},
                body=body,
                workspace="required",
            )
        )

    def remove_budget(
        self, scope: str, period: str, *, workspace_id: str | None = None, scope_id: str | None = None
    ) -> None:
        """Remove a budget.

        Calls in flight end as they would have. A budget that does not exist is 404.

        Needs the permission `budgets:manage`.
        """
        return self.send(
            Call(
                "DELETE",
                "/api/budgets",
                read_success,
                query={"workspace_id": workspace_id, "scope": scope, "scope_id": scope_id, "period": period},
                workspace="required",
            )
        )

    def settle_budgets(self, *, workspace_id: str | None = None) -> list[types.Budget]:
        """Settle what ended servers had taken of budgets.

        A server takes slices of a budget, so that a call costs no round trip of its own. One that is killed cannot give
        them back. This sets `unsettled_usd` of each budget to 0, and adds to `spent_usd` what the usage says that the
        server has spent of it.

        Needs the permission `budgets:manage`.
        """
        return self.send(
            Call("POST", "/api/budgets/settle", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def list_webhooks(self, *, workspace_id: str | None = None) -> list[types.Webhook]:
        """List webhooks.

        Returns the webhooks of a workspace. Secrets are never shown.

        Needs the permission `webhooks:read`.
        """
        return self.send(
            Call("GET", "/api/webhooks", read_list, query={"workspace_id": workspace_id}, workspace="required")
        )

    def create_webhook(self, body: types.NewWebhook) -> types.WebhookWithSecret:
        """Create a webhook.

        Creates a webhook, which gets the events after its creation. Messages are signed as Standard Webhooks describes,
        with the `secret` of this answer, which no other answer shows. They name what was changed and by whom, and never
        contain prompts or secrets.

        The URL must be `https` on port 443, without user information and fragment. Every address of its host must be
        public, which is checked at each attempt. The deployment can make exceptions for hosts. At most 20 webhooks a
        workspace, then 422. 503 when the deployment has no master key.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("POST", "/api/webhooks", read_object, query={}, body=body, workspace="body"))

    def update_webhook(self, webhook_id: str, body: types.WebhookPatch) -> types.Webhook:
        """Change a webhook.

        Replaces the fields that the body names. With `"enabled": true` a webhook goes on from its cursor, with the
        events that were not delivered. A change that changes nothing is not recorded.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("PATCH", "/api/webhooks", read_object, query={"webhook_id": webhook_id}, body=body))

    def delete_webhook(self, webhook_id: str) -> None:
        """Delete a webhook.

        Deletes a webhook and the record of its deliveries. A message that is being sent may still arrive.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("DELETE", "/api/webhooks", read_success, query={"webhook_id": webhook_id}))

    def test_webhook(self, webhook_id: str) -> types.WebhookDelivery:
        """Send a test.

        Sends an event of the type `webhook.test` at once, also to a webhook that is disabled, and answers how it went.
        It is sent once, and its failure never disables the webhook.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("POST", "/api/webhooks/test", read_object, query={"webhook_id": webhook_id}, patience=15))

    def replay_webhook(self, webhook_id: str, body: types.WebhookReplay) -> types.Webhook:
        """Send events again.

        Moves the cursor of a webhook back, to a cursor of its workspace or to the `start` of the log. The events after
        it are sent again, each with the `webhook-id` that it had, so that a receiver can leave out those that it knows.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("POST", "/api/webhooks/replay", read_object, query={"webhook_id": webhook_id}, body=body))

    def rotate_webhook_secret(self, webhook_id: str) -> types.WebhookWithSecret:
        """Rotate the secret of a webhook.

        Gives the webhook a new secret, which no other answer shows. For 24 hours messages are signed with both secrets.

        Needs the permission `webhooks:manage`.
        """
        return self.send(Call("POST", "/api/webhooks/rotate-secret", read_object, query={"webhook_id": webhook_id}))

    def list_webhook_deliveries(self, webhook_id: str) -> list[types.WebhookDelivery]:
        """List attempts to deliver.

        Returns the last 100 attempts to deliver to a webhook, tests included.

        Needs the permission `webhooks:read`.
        """
        return self.send(Call("GET", "/api/webhooks/deliveries", read_list, query={"webhook_id": webhook_id}))

    def list_all_workspaces(self) -> list[types.Workspace]:
        """List all workspaces.

        Returns the workspaces of the deployment in the order of their creation. 403 for users who are no operators.

        No permission is needed. API keys are refused: a session token is needed.
        """
        return self.send(Call("GET", "/api/operator/workspaces", read_list, query={}))

    def find_api_key(self, key_id: str) -> types.ApiKey:
        """Find an API key.

        Returns the record of an API key of any workspace, such as of one that was found where it should not be. 403 for
        users who are no operators.

        No permission is needed. API keys are refused: a session token is needed.
        """
        return self.send(Call("GET", "/api/operator/api-keys", read_object, query={"key_id": key_id}))

    def revoke_any_api_key(self, key_id: str) -> None:
        """Revoke an API key of any workspace.

        Revokes an API key at once: the next request with it is answered with 401. The audit log of its workspace has
        the entry, with the actor `operator`. 403 for users who are no operators.

        404 covers keys that are unknown or revoked before.

        No permission is needed. API keys are refused: a session token is needed.
        """
        return self.send(Call("DELETE", "/api/operator/api-keys", read_success, query={"key_id": key_id}))

    def remove_user(self, user_id: str) -> None:
        """Remove a user from all workspaces.

        Ends all memberships and all browser sessions of a user. From then on workspaces refuse tokens of the user, also
        where a group would let the user in, and the user can create no workspace. An owner lets the user into a
        workspace again by making the user a member. API keys that the user has created stay. The audit log of each
        workspace has the entry, with the actor `operator`. 403 for users who are no operators. The same again changes
        nothing.

        409 names a workspace that would be left without an owner, and changes nothing. 404 is for a user who has never
        signed in and is no member of a workspace.

        No permission is needed. API keys are refused: a session token is needed.
        """
        return self.send(Call("DELETE", "/api/operator/users", read_success, query={"user_id": user_id}))

    def get_health(self) -> types.Health:
        """See whether the process is up.

        Answers as soon as the server accepts requests; storage is not read.

        No credential is needed.
        """
        return self.send(Call("GET", "/healthz", read_object, query={}))

    def get_readiness(self) -> types.Readiness:
        """Check whether requests can be served.

        Reads a record from storage and reports whether that succeeded within a second. A server that is about to stop
        answers 503. While storage serves reads and cannot take changes, such as on a full disk, the answer is 200 with
        the status `degraded`, so that a load balancer goes on sending reads here. An external identity provider is
        asked every 10 seconds; while it does not answer, `sessions` is `unavailable`, and API keys work.

        No credential is needed.
        """
        return self.send(Call("GET", "/readyz", read_object, query={}))
