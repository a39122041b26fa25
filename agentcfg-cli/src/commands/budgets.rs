//! Budgets of model calls.

use agentcfg_client::model::{Budget, BudgetAction, BudgetLimit, BudgetPeriod, BudgetScope, UserId};
use agentcfg_core::validate::{Fault, Invalid};

use super::context::Context;
use crate::args::{BudgetPlace, Budgets};
use crate::failure::{Code, CommandFailure, Result};
use crate::output::{Output, minute, or_dash};
use crate::session::parse;

pub async fn run(context: &mut Context, command: Budgets) -> Result<Code> {
    let session = context.session()?;
    let (client, workspace) = (&session.client, session.workspace().await?);
    let output = &mut context.output;
    match command {
        Budgets::List => show(output, &client.list_budgets(workspace).await?)?,
        Budgets::Set { limit, budget, warn } => {
            let place = Place::of(&budget)?;
            let action = if warn { BudgetAction::Warn } else { BudgetAction::Refuse };
            let limit = BudgetLimit::new(parse("limit_usd", &limit)?).action(action);
            let set = client
                .set_budget(workspace, place.scope, place.id.as_ref(), place.period, &limit)
                .await?;
            output.show(&set, |output| {
                let period = match set.period {
                    BudgetPeriod::Total => "in total".to_owned(),
                    period => format!("a {period}"),
                };
                output.line(format_args!(
                    "the budget of {} is {} USD {period}",
                    of(&set),
                    set.limit_usd
                ))
            })?;
        }
        Budgets::Remove { budget } => {
            let Place { scope, id, period } = Place::of(&budget)?;
            client.remove_budget(workspace, scope, id.as_ref(), period).await?;
            let done = serde_json::json!({"success": true});
            output.show(&done, |output| output.line(format_args!("removed")))?;
        }
        Budgets::Settle => show(output, &client.settle_budgets(workspace).await?)?,
    }
    Ok(Code::Done)
}

/// What identifies a budget.
struct Place {
    scope: BudgetScope,
    id: Option<UserId>,
    period: BudgetPeriod,
}

impl Place {
    fn of(named: &BudgetPlace) -> Result<Self> {
        let (scope, name, id) = match named {
            BudgetPlace { agent: Some(agent), .. } => (BudgetScope::Agent, "agent", Some(agent)),
            BudgetPlace { key: Some(key), .. } => (BudgetScope::Key, "key", Some(key)),
            BudgetPlace { user: Some(user), .. } => (BudgetScope::User, "user", Some(user)),
            _ => (BudgetScope::Workspace, "", None),
        };
        Ok(Self {
            scope,
            id: id
                .map(|id| id.parse().map_err(|error| of_option(name, &error)))
                .transpose()?,
            period: parse("period", &named.period)?,
        })
    }
}

/// The refusal of a value of an option, which names the option and not the type of its value.
fn of_option(name: &str, error: &Invalid) -> CommandFailure {
    let rules: Vec<_> = error.faults().iter().map(Fault::rule).collect();
    CommandFailure::error(format_args!("--{name} {}", rules.join("; ")))
}

/// What a budget covers, in words.
fn of(budget: &Budget) -> String {
    match &budget.scope_id {
        Some(id) => format!("the {} {id}", budget.scope),
        None => "the workspace".to_owned(),
    }
}

fn show(output: &mut Output, budgets: &[Budget]) -> Result<()> {
    output.show(&budgets, |output| {
        let row = |budget: &Budget| {
            vec![
                budget.scope.to_string(),
                or_dash(budget.scope_id.clone()),
                budget.period.to_string(),
                budget.limit_usd.to_string(),
                budget.action.to_string(),
                budget.spent_usd.to_string(),
                budget.reserved_usd.to_string(),
                budget.unsettled_usd.to_string(),
                or_dash(budget.resets_at.map(minute)),
            ]
        };
        let header = [
            "SCOPE",
            "ID",
            "PERIOD",
            "LIMIT",
            "ACTION",
            "SPENT",
            "RESERVED",
            "UNSETTLED",
            "RESETS",
        ];
        output.table(&header, budgets.iter().map(row).collect())
    })
}
