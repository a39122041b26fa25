//! Groups of the identity provider as members of workspaces.
//!
//! A member whose `user_id` is `group:<name>` stands for each user whose session token names that group in the claim
//! that the setting `groups_claim` names, while such a token is valid. A membership of the user's own wins, and for a
//! user whom an operator has removed it alone counts.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::records::{self, EntityKey, Stored, StoredUser, Transaction};
use super::{AgentCfg, Settings};
use crate::error::Error;
use crate::model::{Member, UserId, WorkspaceId};
use crate::validate::{GROUP, Invalid, is_group_id};

/// The most groups of a user that count: more than fit into most tokens, and each is a record to read.
const MOST: usize = 1000;

/// Refuses the identifier of a group where a user is meant.
pub(super) fn require_user(user_id: &str) -> Result<(), Invalid> {
    match is_group_id(user_id) {
        true => Err(Invalid::new(
            "user_id",
            "must not begin with group:, which stands for a group",
        )),
        false => Ok(()),
    }
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
    let groups = groups.filter_map(|name| format!("{GROUP}{name}").parse().ok());
    let distinct: BTreeSet<UserId> = groups.collect();
    if distinct.len() > MOST {
        tracing::warn!(
            groups = distinct.len(),
            "a session token names more groups than are looked up: the first {MOST} in their order count"
        );
    }
    distinct.into_iter().take(MOST).collect()
}

/// What decides whether a user may enter a workspace, as one read asks for it: the user's record, and the memberships
/// that can let the user in, of which the first is the user's own.
pub(super) type Rights = (EntityKey<StoredUser>, Vec<EntityKey<Member>>);

/// What a read of [`Rights`] has found.
pub(super) type FoundRights = (Option<Stored<StoredUser>>, Vec<Option<Stored<Member>>>);

/// The keys of the records that decide whether a user may enter a workspace.
pub(super) fn rights(workspace: WorkspaceId, user_id: &UserId, groups: &[UserId]) -> Rights {
    let ids = std::iter::once(user_id).chain(groups);
    let memberships = ids.map(|id| records::member(workspace, id)).collect();
    (records::user(user_id), memberships)
}

/// Whether an operator has removed the user.
pub(super) fn is_removed(user: Option<&Stored<StoredUser>>) -> bool {
    user.is_some_and(|user| user.value.removed_at.is_some())
}

impl AgentCfg {
    /// Refuses the identifier of a group where no claim names groups.
    pub(super) fn check_group(&self, user_id: &UserId) -> Result<(), Error> {
        let Some(name) = user_id.strip_prefix(GROUP) else {
            return Ok(());
        };
        let rule = match (&self.settings().groups_claim, name) {
            (None, _) => "must not begin with group:, because no claim names the groups of users (oidc_groups_claim)",
            (Some(_), "") => "must have the name of a group after group:",
            (Some(_), _) => return Ok(()),
        };
        Err(Invalid::new("user_id", rule).into())
    }

    /// Notes a user who has come in by a group and has never signed in. A failure changes nothing: the next request
    /// tries again.
    pub(super) async fn note_user(&self, user_id: &UserId) {
        let key = records::user(user_id);
        let noted = async {
            let transaction = Transaction::default().check(key.absent());
            self.commit(transaction.put(key.clone(), &StoredUser::default())?).await
        };
        if let Err(error) = noted.await {
            tracing::debug!(?error, %user_id, "could not note a user who has come in by a group");
        }
    }

    /// The groups of a user that count, which are none where an operator has removed the user; and whether there is a
    /// record of the user.
    pub(super) async fn groups_that_count<'a>(
        &self,
        user_id: &UserId,
        groups: &'a [UserId],
    ) -> Result<(&'a [UserId], bool), Error> {
        if groups.is_empty() {
            return Ok((groups, true));
        }
        let user = self.read(records::user(user_id)).await?;
        let groups = if is_removed(user.as_ref()) { &[] } else { groups };
        Ok((groups, user.is_some()))
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
