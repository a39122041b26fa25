//! Which agents an apply deactivates, and how many of them it may.

use std::collections::BTreeSet;
use std::path::Path;

use agentcfg_client::Client;
use agentcfg_client::model::{AgentId, AppliedAgents, ApplyAgents, SetName, WorkspaceId};

use super::plan;
use crate::args::PruneLimit;
use crate::failure::{CommandFailure, Result, count};
use crate::file;

/// The active agents of a set.
pub async fn members(client: &Client, workspace: WorkspaceId, set: &SetName) -> Result<BTreeSet<AgentId>> {
    // The API has no other way to the members for one who is not an owner: they are what an apply of nothing would take
    // out.
    let nothing = ApplyAgents::default().set(set.clone()).prune(true);
    let pruned = client.apply_agents(workspace, &nothing, true).await?;
    let members = pruned.results.into_iter().filter(plan::is_deactivated);
    Ok(members.map(|agent| agent.agent_id).collect())
}

/// Why a plan deactivates more agents than it may; `None` if it does not. A set that loses most of its agents has often
/// lost its files, to a subdirectory for example.
pub async fn refusal(
    client: &Client,
    workspace: WorkspaceId,
    set: Option<&SetName>,
    planned: &AppliedAgents,
    limit: Option<PruneLimit>,
    dir: &Path,
) -> Result<Option<CommandFailure>> {
    let deactivated: Vec<&str> = planned
        .results
        .iter()
        .filter(|agent| plan::is_deactivated(agent))
        .map(|agent| agent.agent_id.as_str())
        .collect();
    let Some(set) = set.filter(|_| !deactivated.is_empty()) else {
        return Ok(None);
    };
    let agents = match limit {
        Some(PruneLimit::All) => return Ok(None),
        Some(PruneLimit::Number(limit)) if deactivated.len() <= limit => return Ok(None),
        Some(PruneLimit::Number(_)) => count(deactivated.len(), "agent"),
        None => {
            let members = members(client, workspace, set).await?.len();
            if !is_most(deactivated.len(), members) {
                return Ok(None);
            }
            format!("{} of the {}", deactivated.len(), count(members, "agent"))
        }
    };
    let mut message = format!(
        "the apply deactivates {agents} of the set {set}, and is refused: {}",
        deactivated.join(", ")
    );
    for ignored in ignored(dir) {
        message += &format!("\n       {ignored}");
    }
    let hint = format!(
        "Check that {} has all files of the set. If the agents are meant to go, add --prune-limit {}, or --prune-limit all.",
        dir.display(),
        deactivated.len()
    );
    Ok(Some(CommandFailure::error(message).hint(hint)))
}

/// Whether so many agents of a set are all of them, or several and more than a third.
fn is_most(deactivated: usize, members: usize) -> bool {
    deactivated >= members || (deactivated > 1 && deactivated * 3 > members)
}

/// A line for each subdirectory that has files of agents, which an apply does not read.
pub fn ignored(dir: &Path) -> impl Iterator<Item = String> {
    file::subdirectories_with_agents(dir).into_iter().map(|(dir, files)| {
        let are = if files == 1 { "is" } else { "are" };
        format!(
            "{} has {} of agents, which {are} ignored",
            dir.display(),
            count(files, "file")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_several_that_are_more_than_a_third_are_most() {
        for (deactivated, members, expected) in [
            (1, 1, true),
            (2, 2, true),
            (1, 2, false),
            (1, 3, false),
            (2, 6, false),
            (2, 5, true),
            (33, 100, false),
            (34, 100, true),
        ] {
            assert_eq!(is_most(deactivated, members), expected, "{deactivated} of {members}");
        }
    }
}
