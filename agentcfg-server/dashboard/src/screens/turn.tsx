/** A turn of the playground: a message, and its answers beside each other. */
import type { Answer } from "../base/answer";
import { number, plural } from "../base/text";
import type { Model } from "../base/types";
import { price, took } from "../base/usage";
import { cx } from "../parts/base";
import { Marked } from "../parts/comparison";
import { Banner, Failure } from "../parts/feedback";
import { Segments } from "../parts/fields";
import { Markdown } from "../parts/markdown";

/** A version, named by "label x", "version 3", "draft" or "" for the current one, and a model in place of its own. */
export interface Column {
  id: number;
  of: string;
  model: string;
}

export interface Turn {
  text: string;
  answers: Record<number, Answer>;
  compared?: boolean;
}

function cost(answer: Answer, model: Model | undefined): number | null {
  if (answer.cost !== null) return answer.cost;
  if (answer.input === null || answer.output === null || model?.input_price == null) return null;
  return (answer.input * model.input_price + answer.output * (model.output_price ?? 0)) / 1e6;
}

export function TurnRow({
  turn,
  place,
  columns,
  models,
  used,
  compare,
}: {
  turn: Turn;
  place: number;
  columns: Column[];
  models: Model[];
  used: (Model | undefined)[];
  compare: (compared: boolean) => void;
}) {
  const answers = columns.map(({ id }) => turn.answers[id]);
  const costs = answers.map((answer, i) => answer && cost(answer, models.find(({ id }) => id === answer.model) ?? used[i]));
  // Answers that came to their end are compared.
  const done = answers.filter((answer) => answer && !answer.running && !answer.error && !answer.ended);
  const paid = costs.filter((_, i) => done.includes(answers[i]));
  const least = (of: (number | null | undefined)[]): number => Math.min(...of.map((value) => value ?? Infinity));
  const quick = least(done.map((answer) => answer!.took));
  const cheap = paid.some((value) => value !== paid[0]) ? least(paid) : null;
  const first = answers[0]?.text ?? "";
  return (
    <>
      <div class="turn">
        <span class="count">{place}</span>
        <p class="grow">{turn.text}</p>
        {done.length > 1 && (
          <Segments<"answers" | "difference">
            label="Show"
            value={turn.compared ? "difference" : "answers"}
            onPick={(value) => compare(value === "difference")}
            choices={[
              ["answers", "Answers"],
              ["difference", "Difference"],
            ]}
          />
        )}
      </div>
      {answers.map((answer, i) => {
        if (!answer) return <div key={i} class="answer-cell" />;
        const foot = [
          answer.first !== null && `first ${took(answer.first)}`,
          answer.input && `${number(answer.input)} in`,
          answer.output && plural(answer.output, "token"),
          answer.version,
          answer.attempts > 1 && `${answer.model} answered, as attempt ${answer.attempts}`,
        ].filter(Boolean);
        return (
          <div key={i} class="answer-cell" role="group" aria-label={`Answer ${i + 1}`} aria-busy={answer.running}>
            <Failure what="The call failed." error={answer.error} />
            {turn.compared && i > 0 ? (
              <p class="compared">
                <Marked from={first} to={answer.text} />
              </p>
            ) : (
              <Markdown text={answer.text} />
            )}
            {answer.running && <span class="caret" aria-hidden="true" />}
            {answer.ended === "cut" && (
              <Banner tone="warn" title="The answer is not complete.">
                The provider broke it off.
              </Banner>
            )}
            {!answer.error && (
              <p class="hint row answer-foot">
                <span class="grow">
                  <span class={cx(done.length > 1 && answer.took === quick && "best")}>
                    {answer.running ? "Writing," : answer.ended === "stopped" ? "Stopped after" : "Answered in"}{" "}
                    {took(answer.took)}
                  </span>
                  {foot.length > 0 && `, ${foot.join(", ")}`}
                </span>
                {costs[i] != null && (
                  <span class={cx(!answer.ended && costs[i] === cheap && "best")}>
                    {answer.cost === null && "≈ "}
                    {price(costs[i]!)}
                  </span>
                )}
              </p>
            )}
          </div>
        );
      })}
    </>
  );
}
