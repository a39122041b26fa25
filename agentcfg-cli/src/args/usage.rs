//! The arguments of `agentcfg usage`.

use clap::Args;

/// Which calls to add up, and how.
#[derive(Debug, Args)]
pub struct Usage {
    /// What the sums are grouped by: up to 4 of hour, day, agent, version, label, model, provider, key, user, credential and
    /// status.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', default_value = "agent,model")]
    pub by: Vec<String>,
    /// Only calls that ended from this hour on, such as 2026-11-20T09:00:00Z. Without it: 30 days.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only calls that ended before this hour.
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// Only calls as this agent.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only calls of this model.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Only calls to this provider.
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,
    /// Only calls with this API key.
    #[arg(long, value_name = "ID")]
    pub key: Option<String>,
    /// Only calls whose version this label selected.
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Only so many values of the first column that is no time: those that cost most. All others are added up.
    #[arg(long, value_name = "NUMBER")]
    pub top: Option<u32>,
}
