/** Texts that explain, and the code of model calls: they are in snippets.json, which is read after the first screen. */
import type texts from "../texts.json";
import { type Resource, useResource } from "./cache";

/** What snippets.mjs makes. The id of a tool's snippet is the same in both APIs. */
export interface Code {
  id: string;
  name: string;
  api: string;
  text: string;
}

/** The sentences that `Told` shows, by their names. */
export type Help = keyof (typeof texts)["help"];

interface Texts {
  help: Record<Help, string>;
  /** The groups of the sheet of shortcuts; keys are divided by spaces. */
  keys: [title: string, rows: [what: string, keys: string][]][];
  code: Code[];
}

export const useTexts = (): Resource<Texts> => useResource("providers", "snippets.json");
