/** Releases: the board of what runs where, and the history of what was released. */
import { go, href, route } from "../../base/route";
import { can } from "../../base/session";
import { Segments } from "../../parts/fields";
import { NotPermitted, Page } from "../../parts/page";
import { Board } from "./board";
import { ReleaseHistory } from "./history";
import { Review } from "./review";

type Tab = "board" | "history";

export function Releases() {
  const named = route.value.params.get("tab");
  if (named === "review") return can("agents:release") ? <Review /> : <NotPermitted needs="agents:release" />;
  const tab: Tab = named === "history" ? "history" : "board";
  return (
    <Page
      title="Releases"
      buttons={
        <Segments<Tab>
          label="Part"
          value={tab}
          onPick={(value) => go(href("releases", { tab: value === "board" ? null : value }))}
          choices={[
            ["board", "Board"],
            ["history", "History"],
          ]}
        />
      }
    >
      {tab === "board" ? <Board /> : <ReleaseHistory />}
    </Page>
  );
}
