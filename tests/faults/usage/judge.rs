//! Compares the ledger and the budgets with the bill.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::Studio;
use serde_json::Value;

use super::biller::{Bill, Bills, INPUT, OUTPUT};
use super::load::{Call, Done, End};

/// How long before the kill of its server a call may have ended whose row is missing: rows are written within a
/// second, and the caller sees the end a little later or earlier than the server.
const UNWRITTEN: Duration = Duration::from_millis(1500);

/// What budgets showed as unsettled, over time.
pub type Unsettled = Vec<(Instant, Vec<i64>)>;

/// The kill of a server.
pub struct Kill {
    pub at: Instant,
    /// What it had logged.
    pub log: String,
}

/// The figures of a run.
#[derive(Debug, Default)]
pub struct Figures {
    pub calls: usize,
    pub refused: usize,
    /// Refusals of calls that the rest of the budget, less all reservations, covered.
    pub falsely_refused: usize,
    pub unavailable: usize,
    /// Calls whose server was killed.
    pub lost: usize,
    /// Those of them that the provider bills.
    pub lost_and_billed: usize,
    /// Calls of killed servers without a row, and those with a row that is an estimate.
    pub without_row: usize,
    pub estimated: usize,
    /// Billionths of a USD that were billed beyond the limits.
    pub overspent: i64,
    /// Budgets that have spent what the rows of their calls cost, and the others: what calls without a row cost is in
    /// them, where the server had reported it before it was killed.
    pub exact_budgets: usize,
    pub other_budgets: usize,
}

impl Figures {
    /// `gone` is the time after a kill until budgets show what the server held.
    pub fn of(
        done: &Done,
        bills: &Bills,
        (limit, budgets): (i64, usize),
        unsettled: &Unsettled,
        gone: Duration,
    ) -> Self {
        let count = |end: End| done.calls.iter().filter(|call| call.end == end).count();
        let lost = done.calls.iter().filter(|call| call.end == End::Lost);
        let mut billed = vec![0; budgets];
        for call in &done.calls {
            billed[call.budget] += bills.of.get(&call.number).map_or(0, |bill| bill.nanos());
        }
        let falsely_refused = done.refusals.iter().filter(|refusal| {
            let known = unsettled.iter().find(|(at, _)| *at >= refusal.at + gone);
            let known = known.or(unsettled.last()).map_or(0, |(_, of)| of[refusal.budget]);
            limit - refusal.committed - known >= refusal.least
        });
        Self {
            calls: count(End::Whole),
            refused: count(End::Refused),
            falsely_refused: falsely_refused.count(),
            unavailable: count(End::Unavailable),
            lost: count(End::Lost),
            lost_and_billed: lost.filter(|call| bills.of.contains_key(&call.number)).count(),
            overspent: billed.iter().map(|billed| (billed - limit).max(0)).sum(),
            ..Self::default()
        }
    }
}

/// A row of the ledger.
#[derive(Debug, Clone, Copy)]
struct Row {
    bill: Bill,
    is_estimated: bool,
}

fn bill(row: &Value) -> Bill {
    let tokens = |name: &str| row[name].as_i64().unwrap();
    Bill {
        input: tokens("input_tokens"),
        output: tokens("output_tokens"),
    }
}

fn read(studio: &Studio<'_>, target: String) -> Value {
    let request = studio.server.get(target).bearer(&studio.owner);
    request.send().expect(200).json()
}

/// The rows of the ledger, by the numbers of their calls.
fn rows(studio: &Studio<'_>) -> HashMap<u32, Vec<Row>> {
    let (mut rows, mut before) = (HashMap::<u32, Vec<Row>>::new(), String::new());
    loop {
        let target = format!("/api/usage/calls?workspace_id={}&limit=1000{before}", studio.id);
        let page = read(studio, target);
        let page = page.as_array().unwrap();
        let Some(last) = page.last() else { return rows };
        before = format!("&before={}", last["id"].as_str().unwrap());
        for row in page {
            let number = row["request_id"].as_str().unwrap().strip_prefix("call-").unwrap();
            rows.entry(number.parse().unwrap()).or_default().push(Row {
                bill: bill(row),
                is_estimated: row["estimated"] == true,
            });
        }
    }
}

/// The billionths of a decimal text.
pub fn nanos(text: &Value) -> i64 {
    let text = text.as_str().unwrap();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<9}").parse().unwrap()
}

/// What the calls of a budget cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// By the rows of the ledger.
    pub of_rows: i64,
    /// By the bill, of calls without a row.
    pub without_row: i64,
}

/// Compares the ledger of a store whose servers have all ended with the bill. `kills` has the moment for each process
/// that was killed. Returns what the calls of each budget cost.
pub fn judge_ledger(
    studio: &Studio<'_>,
    done: &Done,
    bills: &Bills,
    kills: &HashMap<usize, Kill>,
    figures: &mut Figures,
) -> (Vec<String>, HashMap<usize, Cost>) {
    let (mut rows, mut wrong, mut costs) = (rows(studio), Vec::new(), HashMap::<usize, Cost>::new());
    let mut sums = HashMap::<usize, Bill>::new();
    for call in &done.calls {
        let found = rows.remove(&call.number).unwrap_or_default();
        let billed = bills.of.get(&call.number);
        for row in &found {
            let sum = sums.entry(call.budget).or_insert(Bill { input: 0, output: 0 });
            sum.input += row.bill.input;
            sum.output += row.bill.output;
        }
        match (&*found, billed) {
            ([row], Some(billed)) if row.bill == *billed && !row.is_estimated => {}
            ([row], Some(_)) if call.end == End::Lost && row.is_estimated => figures.estimated += 1,
            ([], Some(billed)) if is_excused(call, kills) => {
                figures.without_row += 1;
                costs.entry(call.budget).or_default().without_row += billed.nanos();
            }
            ([], None) if call.end != End::Whole => {}
            _ => {
                let kill = kills.get(&call.process);
                let killed = kill.map(|kill| (kill.at - call.ended, log_end(&kill.log)));
                wrong.push(format!(
                    "{found:?} for the bill {billed:?} of {call:?}, its server was killed after {killed:?}"
                ));
            }
        }
    }
    wrong.extend(
        rows.into_iter()
            .map(|(number, rows)| format!("rows of the unknown call {number}: {rows:?}")),
    );
    let target = format!("/api/usage?workspace_id={}&by=agent", studio.id);
    let found = read(studio, target);
    for row in found.as_array().unwrap() {
        let budget = row["agent"]
            .as_str()
            .unwrap()
            .strip_prefix("agent-")
            .unwrap()
            .parse()
            .unwrap();
        let of_rows = sums.remove(&budget);
        if Some(bill(row)) != of_rows {
            wrong.push(format!("the sums {row} for rows with {of_rows:?}"));
        }
        let cost = bill(row).input * INPUT + bill(row).output * OUTPUT;
        if nanos(&row["cost_usd"]) != cost {
            wrong.push(format!("the cost of {row} is {cost}"));
        }
        costs.entry(budget).or_default().of_rows = cost;
    }
    wrong.extend(sums.keys().map(|budget| format!("no sums of the budget {budget}")));
    (wrong, costs)
}

fn is_excused(call: &Call, kills: &HashMap<usize, Kill>) -> bool {
    let kill = kills.get(&call.process);
    kill.is_some_and(|kill| call.end == End::Lost || call.ended + UNWRITTEN >= kill.at)
}

/// The last lines of a log.
fn log_end(log: &str) -> Vec<&str> {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].to_vec()
}
