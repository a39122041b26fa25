/** Screens and parts of the second file, which is loaded as soon as the first one is on its way. */
import { signal } from "../base/signals";
import type { JSX } from "preact";
import type { AgentState } from "../base/data";
import { Button, Skeleton } from "./base";
import { Banner } from "./feedback";
import { Page } from "./page";

type Loaded = typeof import("../later");

const loaded = signal<Loaded | null>(null);
const notLoaded = signal(false);

/** A tab then has one build of all of them. */
export const loadLater = (): void =>
  void import("../later").then(
    (all) => (loaded.value = all),
    () => (notLoaded.value = true),
  );

function Waiting() {
  return notLoaded.value ? (
    <Banner
      tone="bad"
      title="This page could not be loaded."
      action={
        <Button small onClick={() => location.reload()}>
          Try again
        </Button>
      }
    >
      The server may have been updated, or cannot be reached.
    </Banner>
  ) : (
    <Skeleton rows={6} tall />
  );
}

/** A screen, with the title that stands while it is loaded. */
export function LaterScreen({ name, title }: { name: string; title: string }): JSX.Element {
  if (loaded.value) return loaded.value.LATER[name]!();
  return (
    <Page title={title}>
      <Waiting />
    </Page>
  );
}

/** A tab of an agent. */
export function LaterTab({ name, state }: { name: keyof Loaded["TABS"]; state: AgentState }): JSX.Element {
  return loaded.value ? loaded.value.TABS[name](state) : <Waiting />;
}

/** A part of a screen. */
export function LaterPart({ name }: { name: string }): JSX.Element {
  return loaded.value ? loaded.value.LATER[name]!() : <Waiting />;
}
