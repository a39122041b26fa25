//! Names of those who made changes: records of changes have identifiers alone.

use std::collections::HashMap;

use agentcfg_client::model::{Actor, WorkspaceId};

use crate::output::Output;
use crate::session::Session;

/// The names of API keys and members by their identifiers.
pub struct ActorNames(HashMap<String, String>);

impl ActorNames {
    /// Reads the names that the credential may see; identifiers are shown of the others. JSON has no names.
    pub async fn read(session: &Session, workspace: WorkspaceId, output: &Output) -> Self {
        let mut names = HashMap::new();
        if !output.is_json() {
            let (keys, members) = tokio::join!(
                session.client.list_api_keys(workspace),
                session.client.list_members(workspace)
            );
            let keys = keys.unwrap_or_default().into_iter();
            names.extend(keys.map(|key| (key.id.to_string(), key.name)));
            let members = members.unwrap_or_default().into_iter();
            names.extend(members.filter_map(|member| Some((member.user_id.to_string(), member.name?))));
        }
        Self(names)
    }

    /// An actor as people know it: by the name, with the identifier in parentheses.
    pub fn shown(&self, actor: &Actor) -> String {
        match self.0.get(&actor.id) {
            Some(name) => format!("{name} ({})", actor.id),
            None => actor.id.clone(),
        }
    }
}
