//! The names and the addresses of users, as their session tokens had them at the last sign-in.

use serde_json::{Map, Value};

use super::AgentCfg;
use super::records::{self, Profile, Stored, StoredUser, Transaction};
use super::retry::Attempt;
use crate::error::Error;
use crate::model::{Member, UserId};

/// The greatest number of characters of a claim that is shown. A longer one counts as missing.
const LONGEST: usize = 320;

impl Profile {
    /// What the claims of a token say.
    pub(super) fn of_claims(claims: &Map<String, Value>) -> Self {
        let text = |name: &str| {
            let text = claims.get(name).and_then(Value::as_str)?.trim();
            let is_shown = !text.is_empty() && text.chars().count() <= LONGEST && !text.chars().any(char::is_control);
            is_shown.then(|| text.to_owned())
        };
        Self {
            name: text("name"),
            email: text("email"),
        }
    }
}

impl AgentCfg {
    /// Keeps what the token of a sign-in said of its user. A claim that it lacks is removed.
    pub(super) async fn note_sign_in(&self, user_id: &UserId, profile: &Profile) -> Result<(), Error> {
        self.retry_lost_races(|| self.try_note_sign_in(user_id, profile)).await
    }

    async fn try_note_sign_in(&self, user_id: &UserId, profile: &Profile) -> Result<Attempt<()>, Error> {
        let key = records::user(user_id);
        let found = self.read(key.clone()).await?;
        let check = key.unchanged(found.as_ref());
        let after = match found {
            Some(found) if found.value.profile == *profile => return Ok(Attempt::Done(())),
            Some(found) => StoredUser {
                profile: profile.clone(),
                ..found.value
            },
            // The record also shows that the user has signed in.
            None => StoredUser {
                profile: profile.clone(),
                removed_at: None,
            },
        };
        let transaction = Transaction::default().check(check).put(key, &after)?;
        self.commit(transaction).await?.attempt(())
    }

    /// Members with what is known of their users.
    pub(super) async fn with_profiles(&self, members: Vec<Member>) -> Result<Vec<Member>, Error> {
        let keys: Vec<_> = members.iter().map(|member| records::user(&member.user_id)).collect();
        let users = self.read_many(keys).await?;
        Ok(members.into_iter().zip(users).map(with_profile).collect())
    }
}

/// A member with what is known of the user.
pub(super) fn with_profile((member, user): (Member, Option<Stored<StoredUser>>)) -> Member {
    let profile = user.map(|user| user.value.profile).unwrap_or_default();
    Member {
        name: profile.name,
        email: profile.email,
        ..member
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_a_text_of_bounded_length() {
        let long = "x".repeat(LONGEST + 1);
        for (claims, name, email) in [
            (json!({}), None, None),
            (
                json!({"name": " Ada Lovelace ", "email": "ada@example.com"}),
                Some("Ada Lovelace"),
                Some("ada@example.com"),
            ),
            (json!({"name": "", "email": "  "}), None, None),
            (json!({"name": 7, "email": ["ada@example.com"]}), None, None),
            (json!({"name": long, "email": "a\nb"}), None, None),
            (json!({"name": "é".repeat(LONGEST)}), Some(&*"é".repeat(LONGEST)), None),
        ] {
            let profile = Profile::of_claims(claims.as_object().unwrap());
            assert_eq!(
                (profile.name.as_deref(), profile.email.as_deref()),
                (name, email),
                "{claims}"
            );
        }
    }
}
