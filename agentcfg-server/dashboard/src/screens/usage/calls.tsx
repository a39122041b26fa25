/** The last model calls of an agent: when, by whom, with what outcome. */
import { useState } from "preact/hooks";
import { useNames } from "../../base/data";
import type { Resource } from "../../base/cache";
import { date, DAY, now, number, utc } from "../../base/text";
import { price, took } from "../../base/usage";
import { useCalls, type Call } from "../../base/usage-data";
import { ActorMark, Badge, Button, Told } from "../../parts/base";
import { Reading } from "../../parts/feedback";
import { Table } from "../../parts/rows";

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const MORE = 100;

export function LastCalls({ read, agent }: { read: Resource<Call[]>; agent: string }) {
  const [all, setAll] = useState(false);
  const more = useCalls({ agent_id: agent, limit: MORE }, all);
  const names = useNames();
  const calls = (all && more.data) || read.data;
  return (
    <section class="card">
      <header>
        <h2>Last calls</h2>
        {!all && read.data?.length === 10 && (
          <Button kind="quiet" small onClick={() => setAll(true)}>
            Show {MORE}
          </Button>
        )}
      </header>
      {!calls ? (
        <div class="card-body">
          <Reading of={read} what="The calls" rows={3} tall />
        </div>
      ) : calls.length === 0 ? (
        <p class="card-body dim">
          <Told of="no calls" />
        </p>
      ) : (
        <Table
          name="Last calls"
          kind="calls-table"
          columns={[
            ["Time", "c-time"],
            ["Version", "third"],
            ["Caller", "second"],
            ["Status", "c-status"],
            ["Tokens", "right large"],
            ["First byte", "right third"],
            ["In all", "right second"],
            ["Cost", "right c-cost"],
          ]}
        >
          {calls.map((call) => {
            const at = Date.parse(call.ended_at);
            return (
              <tr key={call.id}>
                <td class="c-time">
                  <time dateTime={call.ended_at} title={utc(at)}>
                    {now.value - at < DAY ? clock.format(at) : date(at)}
                  </time>
                </td>
                <td class="third">
                  <span class="row">
                    {call.version !== null && `v${call.version}`}
                    {call.label && <Badge tone="accent">{call.label}</Badge>}
                  </span>
                </td>
                <td class="second">
                  {call.actor && (
                    <span class="row">
                      <ActorMark actor={call.actor} name={names(call.actor)} />
                      <span class="clip">{names(call.actor)}</span>
                    </span>
                  )}
                </td>
                <td class="c-status" title={call.request_id ? `Request ${call.request_id}` : undefined}>
                  <Badge tone={call.status >= 400 ? "bad" : undefined}>{call.status}</Badge>
                </td>
                <td class="right large">
                  {number(call.input_tokens)} / {number(call.output_tokens)}
                </td>
                <td class="right third">{call.first_byte_ms === null ? "–" : took(call.first_byte_ms)}</td>
                <td class="right second">{took(call.duration_ms)}</td>
                <td class="right strong c-cost">{call.cost_usd === null ? "No price" : price(Number(call.cost_usd))}</td>
              </tr>
            );
          })}
        </Table>
      )}
    </section>
  );
}
