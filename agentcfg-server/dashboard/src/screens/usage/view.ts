import type { By, Span, UsageRow } from "../../base/usage";

/** What is drawn, all of one reading. */
export interface View {
  span: Span;
  by: By;
  /** By step and the chosen, by the chosen, by step, and of all. */
  steps: UsageRow[];
  sums: UsageRow[];
  whole: UsageRow[];
  total: UsageRow;
  before: UsageRow | null;
}
