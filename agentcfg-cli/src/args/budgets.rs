//! The arguments of `agentcfg budgets`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Budgets {
    /// List the budgets of the workspace, with what is spent and reserved in their current periods.
    List,
    /// Make a budget, or change its limit and action. Calls of all servers are held to it from then on.
    #[command(after_help = "\
Examples:
  agentcfg budgets set 250 --period month
  agentcfg budgets set 2.50 --agent writer --period day
  agentcfg budgets set 100 --key 4fQ8mZr2LkV7xN0bTy6W --warn")]
    Set {
        /// What the calls of a period may cost, in USD.
        #[arg(value_name = "USD")]
        limit: String,
        #[command(flatten)]
        budget: BudgetPlace,
        /// Make all calls and only say in the audit log, the feed and webhooks when 50, 80 and 100 % are spent.
        #[arg(long)]
        warn: bool,
    },
    /// Remove a budget.
    #[command(after_help = "\
Example:
  agentcfg budgets remove --agent writer --period day")]
    Remove {
        #[command(flatten)]
        budget: BudgetPlace,
    },
    /// Set what ended servers had taken of the budgets to what the usage says that they have spent.
    Settle,
}

/// Which budget is meant: that of the workspace, if no agent, key or user is named.
#[derive(Debug, Args)]
pub struct BudgetPlace {
    /// The budget of this agent.
    #[arg(long, value_name = "AGENT", group = "scope")]
    pub agent: Option<String>,
    /// The budget of the API key with this identifier.
    #[arg(long, value_name = "ID", group = "scope")]
    pub key: Option<String>,
    /// The budget of this user.
    #[arg(long, value_name = "USER", group = "scope")]
    pub user: Option<String>,
    /// After which time the budget begins again: day, month or total.
    #[arg(long, value_name = "PERIOD", default_value = "month")]
    pub period: String,
}
