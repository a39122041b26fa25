/** Members of the workspace and their roles. */
import { useState } from "preact/hooks";
import { call } from "../base/api";
import { invalidate } from "../base/cache";
import { useMembers } from "../base/data";
import { closePart, openPart, route } from "../base/route";
import { can, LOGIN_LINK, me, recheck, refresh, workspace } from "../base/session";
import { capital, count, isolated, plural } from "../base/text";
import type { Member, Role } from "../base/types";
import { Avatar, Badge, Button, options, Time, Told } from "../parts/base";
import { Confirm, FormDialog } from "../parts/dialog";
import { attempt, Reading, toast } from "../parts/feedback";
import { Field, Input, Select } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { Table } from "../parts/rows";

const ORDER: Role[] = ["viewer", "member", "admin", "owner"];

const an = (role: Role): string => `${/^[ao]/.test(role) ? "an" : "a"} ${role}`;
const isSelf = (user: string): boolean => user === me.value!.id;

/** The roles that one may give. */
const given = (owner: boolean) => options(ORDER.filter((role) => role !== "owner" || owner).map((role) => [role, capital(role)]));

const put = async (user: string, role: Role, workspace_id = workspace.value!.id): Promise<void> => {
  await call("PUT", "api/workspaces/members", { query: { workspace_id, user_id: user }, body: { role } });
  invalidate("members", "audit");
  if (isSelf(user)) await refresh();
};

export function Members() {
  const members = useMembers();
  const may = can("members:manage");
  const owner = workspace.value!.role === "owner";
  const adding = may && route.value.params.get("new") !== null;
  const [removing, setRemoving] = useState<Member | null>(null);
  const leaving = removing !== null && isSelf(removing.user_id);
  const owners = members.data?.filter(({ role }) => role === "owner").length ?? 0;
  const [asking, setAsking] = useState<{ member: Member; role: Role } | null>(null);
  const setRole = async ({ user_id: user, role: before }: Member, role: Role): Promise<void> => {
    // Another one may be shown when it is undone.
    const { id } = workspace.value!;
    await put(user, role);
    const undo = (): void => void attempt("Not changed back.", () => put(user, before, id));
    toast(`${user} is ${an(role)}.`, isSelf(user) || !can("members:manage") ? undefined : { label: "Undo", run: undo });
  };
  const pick = (member: Member, role: Role): void => {
    // A single key on the list picks a role: where that gives or takes much, or cannot be taken back, it is asked first.
    const great = [member.role, role].some((one) => one === "admin" || one === "owner");
    if (great || isSelf(member.user_id)) setAsking({ member, role });
    else void attempt(`${member.user_id} is still ${an(member.role)}.`, () => setRole(member, role));
  };
  return (
    <Page
      title="Members"
      trail={[{ label: "Settings" }]}
      buttons={
        may && (
          <Button kind="primary" icon="plus" onClick={() => openPart("new")}>
            Add member
          </Button>
        )
      }
    >
      <Lead>
        <Told of="members" />
      </Lead>
      <Reading of={members} what="The members" rows={4} />
      {members.data && (
        <>
          <Table
            name="Members"
            kind="members-table"
            columns={[
              ["User"],
              ["Role", "c-role"],
              ["May", "third"],
              ["Since", "right second c-changed"],
              may && ["Remove", "c-act", true],
            ]}
          >
            {members.data.map((member) => {
              const last = member.role === "owner" && owners === 1;
              const change = may && !last && (owner || member.role !== "owner");
              return (
                <tr key={member.user_id}>
                  <td>
                    <div class="agent-cell">
                      <Avatar id={member.user_id} name={member.name ?? member.user_id} type="human" />
                      <div class="two-lines">
                        <span class="clip block strong" dir="auto" title={member.email ?? member.user_id}>
                          {member.name ?? member.user_id}
                        </span>
                        {member.name && <code class="clip block">{member.user_id}</code>}
                      </div>
                      {isSelf(member.user_id) && <Badge>You</Badge>}
                    </div>
                  </td>
                  <td class="whole">
                    {change ? (
                      <Select
                        tool
                        aria-label={`Role of ${member.user_id}`}
                        value={member.role}
                        onPick={(role) => pick(member, role as Role)}
                      >
                        {given(owner)}
                      </Select>
                    ) : (
                      <>
                        {capital(member.role)}
                        {last && may && <span class="dim"> (the last one)</span>}
                      </>
                    )}
                  </td>
                  <td class="third dim whole">
                    <Told of={`role ${member.role}`} />
                  </td>
                  <td class="right dim second">
                    <Time at={member.created_at} />
                  </td>
                  {may && (
                    <td class="right">
                      {change && (
                        <Button
                          kind="quiet"
                          small
                          icon="close"
                          label={`Remove ${member.user_id}`}
                          onClick={() => setRemoving(member)}
                        />
                      )}
                    </td>
                  )}
                </tr>
              );
            })}
          </Table>
          <p class="table-foot">{plural(members.data.length, "member")}</p>
        </>
      )}
      {adding && <Add owner={owner} known={members.data ?? []} onClose={() => closePart("new")} />}
      {asking && (
        <Confirm
          title={`Make ${isSelf(asking.member.user_id) ? "yourself" : asking.member.user_id} ${an(asking.role)}?`}
          verb="Change role"
          onClose={() => setAsking(null)}
          run={() => setRole(asking.member, asking.role)}
        >
          Now: {an(asking.member.role)}. From the next request on, {an(asking.role)}: <Told of={`role ${asking.role}`} />
          {isSelf(asking.member.user_id) && " You may not be able to take this back yourself."}
        </Confirm>
      )}
      {removing && (
        <Confirm
          title={leaving ? `Leave ${isolated(workspace.value!.name)}?` : `Remove ${removing.user_id}?`}
          verb={leaving ? "Leave workspace" : "Remove member"}
          onClose={() => setRemoving(null)}
          run={async () => {
            await call("DELETE", "api/workspaces/members", {
              query: { workspace_id: workspace.value!.id, user_id: removing.user_id },
            });
            invalidate("members", "audit");
            toast(leaving ? "You left the workspace." : `${removing.user_id} is removed.`);
            await recheck();
          }}
        >
          The very next request is refused. Agents, versions and API keys that {leaving ? "you" : "they"} made stay.
        </Confirm>
      )}
    </Page>
  );
}

function Add({ owner, known, onClose }: { owner: boolean; known: Member[]; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  // Spaces around an id would make another member that looks the same.
  const user = typed.trim();
  const [role, setRole] = useState<Role>("member");
  const [tried, setTried] = useState(false);
  const fault = !user
    ? "A member needs a user id."
    : count(user) > 200
      ? "The limit is 200 characters."
      : known.some((member) => member.user_id === user)
        ? `${user} is a member already.`
        : null;
  const add = async (): Promise<void> => {
    await put(user, role);
    toast(`${user} is a member.`);
  };
  return (
    <FormDialog
      narrow
      title="Add a member"
      verb="Add member"
      check={() => {
        setTried(true);
        return !fault;
      }}
      run={add}
      failed="Not added."
      onClose={onClose}
    >
      <Field
        label="User id"
        hint={
          <>
            <Told of="user id" />{" "}
            <code>
              {LOGIN_LINK} {user || "ID"}
            </code>{" "}
            on the server prints their link.
          </>
        }
        error={tried ? fault : null}
      >
        {(field) => <Input {...field} mono value={typed} onText={setTyped} autocomplete="off" spellcheck={false} data-first />}
      </Field>
      <Field label="Role" hint={<Told of={`role ${role}`} />}>
        {(field) => (
          <Select {...field} value={role} onPick={(value) => setRole(value as Role)}>
            {given(owner)}
          </Select>
        )}
      </Field>
    </FormDialog>
  );
}
