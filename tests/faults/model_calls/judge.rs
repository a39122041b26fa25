//! Judges what a caller, the providers and the usage ledger saw of each call by its plan.

use std::collections::HashMap;

use agentcfg_tests::harness::{Studio, message_of_provider, until};
use serde_json::Value;

use super::client::Got;
use super::plan::{Fate, Plan};

/// How calls ended.
#[derive(Debug, Default)]
pub struct Ends {
    pub whole: usize,
    /// The last failure of a provider, as it came.
    pub refused: usize,
    /// The last provider gave no answer.
    pub failed: usize,
    /// A part of an answer came before the connection broke.
    pub broken: usize,
}

impl Ends {
    pub fn add(&mut self, other: &Self) {
        self.whole += other.whole;
        self.refused += other.refused;
        self.failed += other.failed;
        self.broken += other.broken;
    }
}

/// What is wrong with the end of a call. `attempts` are those that the providers saw.
pub fn judge(plan: &Plan, got: &Got, attempts: &[usize], ends: &mut Ends) -> Result<(), String> {
    let made = plan.attempts();
    let number = made.len();
    let arrived = (1..=number).filter(|attempt| made[attempt - 1] != Fate::Gone);
    expect("attempts at providers", attempts, &*arrived.collect::<Vec<_>>())?;
    let last = made[number - 1];
    let pieces = plan.answer(number);
    match last {
        Fate::CutAfter(0) if got.status.is_none() => {
            ends.broken += 1;
            return expect("an answer that ended with its head", &got.is_whole, &false);
        }
        _ => expect("status", &got.status, &Some(last.status()))?,
    }
    let (model, tried) = (plan.model(number), number.to_string());
    expect("Agent-Model", &got.header("agent-model"), &Some(&*model))?;
    expect("Agent-Attempts", &got.header("agent-attempts"), &Some(&*tried))?;
    expect("X-Request-Id", &got.header("x-request-id"), &Some(&*plan.request_id()))?;
    match last {
        Fate::Whole => {
            ends.whole += 1;
            expect("a whole answer", &got.is_whole, &true)?;
            expect("body", &got.body, &pieces.concat())
        }
        Fate::CutAfter(sent) | Fate::Stalls(sent) => {
            ends.broken += 1;
            expect("a whole answer", &got.is_whole, &false)?;
            expect("body", &got.body, &pieces[..sent].concat())
        }
        Fate::Refused(_) => {
            ends.refused += 1;
            expect("a whole refusal", &got.is_whole, &true)?;
            expect("body", &got.body, &plan.refusal(number))
        }
        Fate::Gone | Fate::CutBefore | Fate::Hangs => {
            ends.failed += 1;
            let body: Value = serde_json::from_str(&got.body).map_err(|error| format!("{error}: {got:?}"))?;
            expect(
                "a message in the provider's form",
                &message_of_provider(&body).is_some(),
                &true,
            )?;
            let is_bought = made.iter().any(|fate| fate.is_estimated());
            let retry = if is_bought { "false" } else { "true" };
            expect("x-should-retry", &got.header("x-should-retry"), &Some(retry))
        }
    }
}

fn expect<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, meant: &T) -> Result<(), String> {
    match found == meant {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {meant:?}")),
    }
}

/// The rows of the ledger for each request, by its identifier; each group with its last attempt first.
pub type Rows = HashMap<String, Vec<Value>>;

/// Reads the ledger, once it has this many rows.
pub fn ledger(studio: &Studio<'_>, count: usize) -> Rows {
    let server = studio.server;
    let sums = format!("/api/usage?workspace_id={}&by=agent", studio.id);
    let calls = |row: &Value| row["calls"].as_u64().unwrap();
    until("the ledger has each attempt", || {
        let sums = server.get(&sums).bearer(&studio.owner).send().expect(200).json();
        let known: u64 = sums.as_array().unwrap().iter().map(calls).sum();
        (known >= count as u64).then_some(())
    });
    let (mut rows, mut before) = (Rows::new(), String::new());
    loop {
        let target = format!("/api/usage/calls?workspace_id={}&limit=1000{before}", studio.id);
        let page = server.get(target).bearer(&studio.owner).send().expect(200).json();
        let page = page.as_array().unwrap();
        let Some(last) = page.last() else { return rows };
        before = format!("&before={}", last["id"].as_str().unwrap());
        for row in page {
            let request = row["request_id"].as_str().unwrap().to_owned();
            rows.entry(request).or_default().push(row.clone());
        }
    }
}

/// What is wrong with the rows of a call.
pub fn judge_rows(plan: &Plan, rows: &mut Rows) -> Result<(), String> {
    let mut rows = rows.remove(&plan.request_id()).unwrap_or_default();
    rows.sort_by_key(|row| row["attempts"].as_u64());
    let made = plan.attempts();
    expect("rows of the ledger", &rows.len(), &made.len())?;
    for (attempt, (row, fate)) in (1..).zip(rows.iter().zip(made)) {
        let (input, output) = plan.tokens(attempt);
        let texts = ["provider", "model", "path"].map(|name| row[name].as_str().unwrap_or_default());
        let of = (&*plan.provider(attempt), &*plan.model(attempt), plan.api.path());
        expect("row", &(texts[0], texts[1], texts[2]), &of)?;
        let numbers = ["attempts", "status"].map(|name| row[name].as_u64().unwrap());
        expect("row", &numbers, &[attempt as u64, fate.status().into()])?;
        expect("estimated", &(row["estimated"] == true), &fate.is_estimated())?;
        let tokens = ["input_tokens", "output_tokens"].map(|name| row[name].as_u64().unwrap());
        match fate {
            Fate::Whole => expect("tokens", &tokens, &[input, output])?,
            Fate::Gone | Fate::Refused(_) => expect("tokens", &tokens, &[0, 0])?,
            Fate::Hangs | Fate::CutBefore => expect("an estimate", &(tokens[0] > 0), &true)?,
            Fate::CutAfter(_) | Fate::Stalls(_) => expect("an estimate", &(tokens[0] > 0), &true)?,
        }
    }
    Ok(())
}
