//! Members of a workspace. The last owner cannot be removed.

use super::access::Access;
use super::change::Change;
use super::groups::is_removed;
use super::profiles::with_profile;
use super::records::{self, EntityKey, Entries, Membership, Outcome, Stored};
use super::retry::Attempt;
use super::{AgentCfg, Caller, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::word_enum::OpenSet;
use crate::model::{Action, Member, Permission, Role, Success, TargetType, Timestamp, UserId, WorkspaceId};
use crate::validate::is_group_id;

impl AgentCfg {
    /// The members of a workspace in the order in which they joined, with the names and addresses that the tokens of
    /// their last sign-ins had.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `users:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let members = service.list_members(&ada, studio).await?;
    /// assert_eq!(members[0].user_id, "ada");
    /// assert_eq!(members[0].role, Role::Owner);
    /// # Ok(()) }) }
    /// ```
    pub async fn list_members(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
        let access = self.access(caller, workspace, Permission::UsersRead).await?;
        self.members_in_order(access.workspace()).await
    }

    async fn members_in_order(&self, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
        let entries = Entries::<Member>::in_workspace(workspace);
        let users = |members: &[EntityKey<Member>]| {
            let users = members.iter().map(|member| records::user(member.item()));
            Ok(users.collect::<Vec<_>>())
        };
        let (members, users) = self.scan_linked(entries, users).await?;
        let members = members.into_values()?.into_iter();
        let mut members: Vec<_> = members.zip(users).map(with_profile).collect();
        members.sort_by(|a, b| (a.created_at, &a.user_id).cmp(&(b.created_at, &b.user_id)));
        Ok(members)
    }

    /// The owner who has been in the workspace for the longest time; `None` while it is being deleted.
    pub(super) async fn first_owner(&self, workspace: WorkspaceId) -> Result<Option<UserId>, Error> {
        let mut members = self.members_in_order(workspace).await?.into_iter();
        let owner = members.find(|member| member.role == Role::Owner && !is_group_id(&member.user_id));
        Ok(owner.map(|owner| owner.user_id))
    }

    /// Gives a user a role in a workspace, whether the user has one there or not. The same role
    /// again changes and records nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `members:manage`, or when a caller who is no owner makes or removes an owner,
    /// [`ErrorKind::Conflict`] when no owner would be left.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_member(&ada, studio, &"grace".parse()?, Role::Member).await?;
    /// let grace = service.trusted_user("grace")?;
    /// assert!(service.list_agents(&grace, studio, &Default::default()).await.is_ok());
    /// # Ok(()) }) }
    /// ```
    pub async fn set_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &UserId,
        role: Role,
    ) -> Result<Member, Error> {
        let role = role.known("role")?;
        self.retry_lost_races(|| self.try_set_member(caller, workspace, user_id, role))
            .await
    }

    async fn try_set_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &UserId,
        role: Role,
    ) -> Result<Attempt<Member>, Error> {
        let access = self.access(caller, workspace, Permission::MembersManage).await?;
        self.check_group(user_id)?;
        let key = records::member(access.workspace(), user_id);
        let (found, user) = self.read((key.clone(), records::user(user_id))).await?;
        let is_removed = is_removed(user.as_ref());
        let shown = |member| with_profile((member, user));
        let before = found.as_ref().map(|found| &found.value);
        let before_role = before.map(|member| member.role);
        only_owners_change_owners(&access, before_role, Some(role))?;
        if before.is_none() && is_removed && access.role != Some(Role::Owner) {
            let message = format!("an operator has removed the user {user_id:?}: only an owner lets the user in again");
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        let now = self.now();
        let after = match before {
            Some(member) if member.role == role => return Ok(Attempt::Done(shown(member.clone()))),
            Some(member) => Member { role, ..member.clone() },
            None => Member {
                user_id: user_id.clone(),
                role,
                created_at: now,
                name: None,
                email: None,
            },
        };
        let mut change = Change::new(&access, now, Action::MemberSet, TargetType::Member, user_id.as_str())
            .save(key, found, &after)?;
        if before_role.is_none() {
            change = change.put(records::membership(user_id, access.workspace()), &Membership {})?;
        }
        let change = count_owners(change, access.workspace(), user_id, before_role, Some(role));
        self.finish(change, shown(after)).await
    }

    /// Removes a member. Members may remove themselves.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `members:manage`, or for an owner when the caller is none,
    /// [`ErrorKind::NotFound`] when the user is no member, [`ErrorKind::Conflict`] for the last owner.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// service.set_member(&ada, studio, &"grace".parse()?, Role::Viewer).await?;
    /// service.remove_member(&ada, studio, &"grace".parse()?).await?;
    /// let last = service.remove_member(&ada, studio, &"ada".parse()?).await;
    /// assert_eq!(last.unwrap_err().kind(), agentcfg_core::ErrorKind::Conflict);
    /// # Ok(()) }) }
    /// ```
    pub async fn remove_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &UserId,
    ) -> Result<Success, Error> {
        self.retry_lost_races(|| self.try_remove_member(caller, workspace, user_id))
            .await
    }

    async fn try_remove_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &UserId,
    ) -> Result<Attempt<Success>, Error> {
        let access = self.membership(caller, workspace).await?;
        self.check_group(user_id)?;
        if caller.user_id().ok() != Some(user_id) {
            access.require(Permission::MembersManage)?;
        }
        let found = self.read(records::member(access.workspace(), user_id)).await?;
        let found = found.ok_or_else(|| not_found("member", user_id))?;
        only_owners_change_owners(&access, Some(found.value.role), None)?;
        let change = member_removed(&access, self.now(), found)?;
        self.finish(change, Success::OK).await
    }

    async fn finish<T>(&self, change: Change<'_>, value: T) -> Result<Attempt<T>, Error> {
        match self.apply(change).await? {
            Outcome::Done(_) => Ok(Attempt::Done(value)),
            Outcome::Raced => Ok(Attempt::Raced),
            Outcome::Limit => Err(Error::new(
                ErrorKind::Conflict,
                "this is the workspace's last owner: make another member an owner first",
            )),
        }
    }
}

fn only_owners_change_owners(access: &Access, before: Option<Role>, after: Option<Role>) -> Result<(), Error> {
    let touches_an_owner = before == Some(Role::Owner) || after == Some(Role::Owner);
    if touches_an_owner && access.role != Some(Role::Owner) {
        return Err(Error::new(
            ErrorKind::Forbidden,
            "only an owner makes or unmakes owners",
        ));
    }
    Ok(())
}

/// The change that removes a member.
pub(super) fn member_removed(access: &Access, now: Timestamp, found: Stored<Member>) -> Result<Change<'_>, Error> {
    let (workspace, user_id, role) = (access.workspace(), found.value.user_id.clone(), found.value.role);
    let change = Change::new(access, now, Action::MemberRemoved, TargetType::Member, user_id.as_str())
        .remove(found)?
        .delete(records::membership(&user_id, workspace));
    Ok(count_owners(change, workspace, &user_id, Some(role), None))
}

/// Adds the difference in the number of owners to the change.
fn count_owners<'a>(
    change: Change<'a>,
    id: WorkspaceId,
    user_id: &UserId,
    before: Option<Role>,
    after: Option<Role>,
) -> Change<'a> {
    // A group may have no users, so that it never is the last owner.
    let owners = |role: Option<Role>| i64::from(role == Some(Role::Owner) && !is_group_id(user_id));
    match owners(after) - owners(before) {
        0 => change,
        delta => change.add(records::further_owners(id), delta, None),
    }
}
