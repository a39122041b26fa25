/** The overview: what needs a person, what it costs, what goes on, and the last changes. */
import { can } from "../../base/session";
import { LaterPart } from "../../parts/later";
import { Page } from "../../parts/page";
import { NewAgentLink } from "../agents";
import { Attention } from "./attention";
import { LastAgents, LastChanges } from "./last";
import { Setup, useSetup } from "./setup";

/** With so many steps done it is no longer the first thing. */
const LATE = 4;

export function Overview() {
  const steps = useSetup();
  const done = steps.filter((step) => step.done).length;
  const early = done < LATE && done < steps.length;
  const log = can("audit_log:read");
  return (
    <Page title="Overview" buttons={<NewAgentLink kind="primary" />}>
      <div class="overview">
        <div class="stack">
          {early && <Setup steps={steps} />}
          <Attention />
          <LaterPart name="overview-day" />
          <LaterPart name="overview-releases" />
        </div>
        <div class="stack">
          {can("analytics:read") && <LaterPart name="overview-cost" />}
          {log && <LaterPart name="overview-changes" />}
          {log ? <LastChanges /> : <LastAgents />}
          {!early && <Setup steps={steps} />}
        </div>
      </div>
    </Page>
  );
}
