//! What operators of the deployment may do in workspaces that they have no part in.
//!
//! The settings name the operators. A change of theirs is in the audit log of each workspace that it changes, with the
//! actor `operator`.

use super::access::Access;
use super::chunked_reads::Chunks;
use super::feed::EndedEntry;
use super::groups::require_user;
use super::members::member_removed;
use super::records::{self, EntityKey, Entries, Membership, Outcome, StoredUser, Transaction, WorkspacePlace};
use super::retry::Attempt;
use super::{AgentCfg, Caller, no_api_key, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::{Actor, ApiKey, ApiKeyId, IdRef, Role, Success, UserId, Workspace, WorkspaceId};
use crate::validate::quoted;

/// How many workspaces an error names at most.
const NAMED: usize = 5;

impl AgentCfg {
    /// Requires that the caller is an operator, and returns the user.
    fn operator<'a>(&self, caller: &'a Caller) -> Result<&'a UserId, Error> {
        let user_id = caller.user_id()?;
        match self.is_operator(user_id) {
            true => Ok(user_id),
            false => Err(Error::new(
                ErrorKind::Forbidden,
                "only an operator of this deployment may do this",
            )),
        }
    }

    /// All workspaces of the deployment in the order of their creation, for operators.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key, and for a user who is no operator.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // The settings name no operator here.
    /// let refused = service.list_all_workspaces(&ada).await.unwrap_err();
    /// assert_eq!(refused.kind(), agentcfg_core::ErrorKind::Forbidden);
    /// # Ok(()) }) }
    /// ```
    pub async fn list_all_workspaces(&self, caller: &Caller) -> Result<Vec<Workspace>, Error> {
        self.operator(caller)?;
        let mut listed = Vec::new();
        let mut pieces = Chunks::of(records::workspace_places());
        while let Some(piece) = pieces.next(self).await? {
            let keys = piece
                .into_keys()
                .map(|place: EntityKey<WorkspacePlace>| Ok(records::workspace(place.workspace()?)));
            let keys = keys.collect::<Result<Vec<_>, Error>>()?;
            // One that is missing was deleted since.
            let found = self.read_many(keys).await?.into_iter().flatten();
            listed.extend(found.map(|workspace| workspace.value));
        }
        listed.sort_unstable_by_key(|workspace: &Workspace| (workspace.created_at, workspace.id));
        Ok(listed)
    }

    /// An API key of any workspace as the list of its workspace shows it, for operators.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key, and for a user who is no operator; [`ErrorKind::NotFound`] for an
    /// unknown key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // The settings name no operator here.
    /// assert!(service.find_api_key(&ada, "4fQ8mZr2LkV7xN0bTy6W").await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn find_api_key(&self, caller: &Caller, key_id: impl Into<IdRef<'_, ApiKeyId>>) -> Result<ApiKey, Error> {
        let key_id = key_id.into();
        self.operator(caller)?;
        let unknown = || no_api_key(key_id);
        if !key_id.is_possible() {
            return Err(unknown());
        }
        let id = key_id.as_str();
        let found = self.read((records::api_key(id), records::key_use(id))).await?;
        self.listed_keys(vec![found]).pop().ok_or_else(unknown)
    }

    /// Revokes an API key of any workspace, for operators: the next request with it is refused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key, and for a user who is no operator; [`ErrorKind::NotFound`] for a key
    /// that is unknown or revoked already.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// // The settings name no operator here.
    /// assert!(service.revoke_any_api_key(&ada, "4fQ8mZr2LkV7xN0bTy6W").await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn revoke_any_api_key(
        &self,
        caller: &Caller,
        key_id: impl Into<IdRef<'_, ApiKeyId>>,
    ) -> Result<Success, Error> {
        let key_id = key_id.into();
        let operator = self.operator(caller)?;
        let unknown = || no_api_key(key_id);
        if !key_id.is_possible() {
            return Err(unknown());
        }
        let revoke = || async {
            let found = self
                .read(records::api_key(key_id.as_str()))
                .await?
                .ok_or_else(unknown)?;
            let workspace = found.value.workspace_id;
            let access = Access::without_membership(workspace, Actor::operator(operator), found.unchanged());
            let access = access.in_request_of(caller);
            self.revoke_found_key(&access, found).await
        };
        self.retry_lost_races(revoke).await
    }

    /// Removes a user from all workspaces, for operators: ends all memberships and browser sessions. From then on
    /// workspaces refuse tokens of the user, also where a group would let the user in, and the user can create no
    /// workspace. An owner lets the user into a workspace again by [`AgentCfg::set_member`]. The same again changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] for an API key, and for a user who is no operator; [`ErrorKind::NotFound`] for a user
    /// who has never signed in and is no member of a workspace; [`ErrorKind::Conflict`] where the user is the last
    /// owner of a workspace: nothing is changed, unless another owner has left during the call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::collections::BTreeSet;
    /// use agentcfg_core::model::{NewWorkspace, Role};
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// let settings = Settings::default().operators(BTreeSet::from(["olga".to_owned()]));
    /// let service = AgentCfg::builder(MemoryStore::new()).settings(settings)?.build();
    /// let (olga, ada) = (service.trusted_user("olga")?, service.trusted_user("ada")?);
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// service.set_member(&ada, studio.id, &"eve".parse()?, Role::Admin).await?;
    ///
    /// service.remove_user(&olga, &"eve".parse()?).await?;
    /// assert_eq!(service.list_members(&ada, studio.id).await?.len(), 1);
    /// assert!(service.remove_user(&olga, &"ada".parse()?).await.is_err(), "she is the last owner");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_user(&self, caller: &Caller, user_id: &UserId) -> Result<Success, Error> {
        let operator = self.operator(caller)?;
        require_user(user_id)?;
        self.refuse_last_owner(user_id).await?;
        // First the mark, so that no group lets the user in any more, and no workspace of the user's can follow.
        let marked = self.retry_lost_races(|| self.try_mark_removed(user_id)).await;
        // Also when the outcome is unknown. Where a group has let the user in, no log has an entry that wakes the watches.
        self.entry_ended(EndedEntry::User(user_id.clone()));
        marked?;
        let memberships = self
            .scan(Entries::<Membership>::of(records::memberships(user_id)))
            .await?;
        for membership in memberships.into_keys() {
            let workspace = membership.workspace()?;
            self.retry_lost_races(|| self.try_end_membership((caller, operator), workspace, user_id))
                .await?;
        }
        self.close_browser_sessions_of(user_id).await?;
        tracing::warn!(%user_id, %operator, "an operator has removed a user from all workspaces");
        Ok(Success::OK)
    }

    /// Refuses the removal of a user who is the last owner of a workspace, or who is unknown.
    async fn refuse_last_owner(&self, user_id: &UserId) -> Result<(), Error> {
        let entries = Entries::<Membership>::of(records::memberships(user_id));
        let keys = |memberships: &[EntityKey<Membership>]| {
            let keys = memberships.iter().map(|membership| {
                let id = membership.workspace()?;
                Ok((
                    records::workspace(id),
                    records::member(id, user_id),
                    records::further_owners(id),
                ))
            });
            keys.collect::<Result<Vec<_>, Error>>()
        };
        let (_, found) = self.scan_linked(entries, keys).await?;
        if found.is_empty() && self.read(records::user(user_id)).await?.is_none() {
            return Err(not_found("user", user_id));
        }
        let owned = found.into_iter().filter_map(|(workspace, member, further_owners)| {
            let is_last = member?.value.role == Role::Owner && further_owners == 0;
            // A workspace that is being deleted has no record.
            workspace.filter(|_| is_last).map(|workspace| workspace.value)
        });
        let owned: Vec<_> = owned.collect();
        match owned.is_empty() {
            true => Ok(()),
            false => Err(last_owner(&owned)),
        }
    }

    async fn try_mark_removed(&self, user_id: &UserId) -> Result<Attempt<()>, Error> {
        let key = records::user(user_id);
        let found = self.read(key.clone()).await?;
        let check = key.unchanged(found.as_ref());
        let before = found.map(|found| found.value).unwrap_or_default();
        if before.removed_at.is_some() {
            return Ok(Attempt::Done(()));
        }
        let after = StoredUser {
            removed_at: Some(self.now()),
            ..before
        };
        let transaction = Transaction::default().check(check).put(key, &after)?;
        self.commit(transaction).await?.attempt(())
    }

    async fn try_end_membership(
        &self,
        (caller, operator): (&Caller, &UserId),
        id: WorkspaceId,
        user_id: &UserId,
    ) -> Result<Attempt<()>, Error> {
        let (workspace, found) = self
            .read((records::workspace(id), records::member(id, user_id)))
            .await?;
        // The deletion of a workspace ends its memberships itself.
        let (Some(workspace), Some(found)) = (workspace, found) else {
            return Ok(Attempt::Done(()));
        };
        let access = Access::without_membership(id, Actor::operator(operator), found.unchanged());
        let access = access.in_request_of(caller);
        let change = member_removed(&access, self.now(), found)?;
        match self.apply(change).await? {
            Outcome::Limit => Err(last_owner(&[workspace.value])),
            outcome => outcome.attempt(()),
        }
    }
}

/// The refusal of the removal of a last owner.
fn last_owner(workspaces: &[Workspace]) -> Error {
    let named = workspaces.iter().take(NAMED);
    let named: Vec<_> = named
        .map(|workspace| format!("{} ({})", workspace.id, quoted(&workspace.name)))
        .collect();
    let others = match workspaces.len().saturating_sub(NAMED) {
        0 => String::new(),
        others => format!(" and {others} others"),
    };
    Error::new(
        ErrorKind::Conflict,
        format!(
            "the user is the last owner of the workspace {}{others}: make another member an owner there first",
            named.join(", ")
        ),
    )
}
