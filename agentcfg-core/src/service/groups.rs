//! Groups of the identity provider as members of workspaces.
//!
//! A member whose `user_id` is `group:<name>` stands for each user whose session token names that group in the claim that the
//! setting `groups_claim` names, while such a token is valid. A membership of the user's own wins.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::access::Access;
use super::records::{self, EntityKey, Stored};
use super::{AgentCfg, Settings, no_member};
use crate::error::Error;
use crate::model::{Member, UserId, WorkspaceId};
use crate::validate::Invalid;

const PREFIX: &str = "group:";
/// The most groups of a user that count.
const MOST: usize = 200;

/// Whether a member's identifier is that of a group.
pub(super) fn is_group(user_id: &str) -> bool {
    user_id.starts_with(PREFIX)
}

/// The groups that the claims of a token name. A name that could be no member is passed over.
pub(super) fn of_claims(settings: &Settings, claims: &Map<String, Value>) -> Arc<[UserId]> {
    let named = settings.groups_claim.as_ref().and_then(|claim| claims.get(claim));
    let names = match named {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let groups = names.into_iter().filter(|name| !name.is_empty());
    let groups = groups.filter_map(|name| format!("{PREFIX}{name}").parse().ok());
    let distinct: BTreeSet<UserId> = groups.take(MOST).collect();
    distinct.into_iter().collect()
}

/// The keys of the memberships that can let a user into a workspace: first the user's own.
pub(super) fn memberships(workspace: WorkspaceId, user_id: &UserId, groups: &[UserId]) -> Vec<EntityKey<Member>> {
    let ids = std::iter::once(user_id).chain(groups);
    ids.map(|id| records::member(workspace, id)).collect()
}

/// The membership that counts, of those that [`memberships`] has found: the user's own, else the highest role of a group.
pub(super) fn deciding(found: Vec<Option<Stored<Member>>>) -> Option<Stored<Member>> {
    let mut found = found.into_iter();
    let own = found.next().flatten();
    own.or_else(|| found.flatten().max_by_key(|member| member.value.role))
}

impl AgentCfg {
    /// Refuses the identifier of a group where no claim names groups.
    pub(super) fn check_group(&self, user_id: &UserId) -> Result<(), Error> {
        match is_group(user_id) && self.settings().groups_claim.is_none() {
            false => Ok(()),
            true => {
                let rule = "must not begin with group:, because no claim names the groups of users (oidc_groups_claim)";
                Err(Invalid::new("user_id", rule).into())
            }
        }
    }

    /// The access of a user by the memberships that [`memberships`] has found.
    pub(super) fn access_by_memberships(
        &self,
        user_id: &UserId,
        workspace: WorkspaceId,
        found: Vec<Option<Stored<Member>>>,
    ) -> Result<Access, Error> {
        let member = deciding(found).ok_or_else(no_member)?;
        Ok(Access::of_member(user_id.clone(), workspace, member))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_claim_is_a_text_or_a_list_of_texts() {
        let settings = Settings::default().groups_claim(Some("groups".to_owned()));
        let long = "x".repeat(300);
        for (claims, expected) in [
            (json!({}), &[][..]),
            (json!({"groups": "staff"}), &["group:staff"]),
            (
                json!({"groups": ["b", "a", "b", "", 7, null, long]}),
                &["group:a", "group:b"],
            ),
            (json!({"groups": {"a": true}}), &[]),
            (json!({"other": ["a"]}), &[]),
        ] {
            let groups = of_claims(&settings, claims.as_object().unwrap());
            assert_eq!(
                groups.iter().map(UserId::as_str).collect::<Vec<_>>(),
                expected,
                "{claims}"
            );
            assert!(of_claims(&Settings::default(), claims.as_object().unwrap()).is_empty());
        }
    }
}
