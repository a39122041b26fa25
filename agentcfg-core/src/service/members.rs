//! Members of a workspace. The last owner stays.

use super::access::Access;
use super::change::{Applied, Attempt, Change};
use super::{AgentCfg, Caller, not_found, schema};
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Member, Permission, Role, Success, TargetType, WorkspaceId};
use crate::store::{Check, Kind, Partition, Scan, Write};
use crate::validate::{self, Faults};

/// A user's membership as it was found, and the check that it stays so.
struct Found {
    member: Option<Member>,
    unchanged: Check,
}

impl AgentCfg {
    /// The members of a workspace in the order in which they came.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `users:read` in the workspace.
    pub async fn list_members(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<Member>, Error> {
        let access = self.access(caller, workspace, Permission::UsersRead).await?;
        let scanned = self
            .store()
            .scan(&Scan::all(Partition::Workspace(access.workspace()), Kind::Member))
            .await?;
        let mut members = scanned
            .entries
            .iter()
            .map(|(key, record)| schema::decode::<Member>(key, record))
            .collect::<Result<Vec<_>, _>>()?;
        members.sort_by(|a, b| (a.created_at, &a.user_id).cmp(&(b.created_at, &b.user_id)));
        Ok(members)
    }

    /// Gives a user a role in a workspace, whether the user has one there or not. The same role
    /// again changes and records nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the user's identifier, [`ErrorKind::Forbidden`] without
    /// `members:manage`, or when an owner is made or unmade by somebody who is none,
    /// [`ErrorKind::Conflict`] when no owner would be left.
    pub async fn set_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &str,
        role: Role,
    ) -> Result<Member, Error> {
        check_user_id(user_id)?;
        self.settle(|| self.try_set_member(caller, workspace, user_id, role))
            .await
    }

    async fn try_set_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &str,
        role: Role,
    ) -> Result<Attempt<Member>, Error> {
        let access = self.access(caller, workspace, Permission::MembersManage).await?;
        let Found {
            member: before,
            unchanged,
        } = self.find_member(&access, user_id).await?;
        let before_role = before.as_ref().map(|member| member.role);
        only_owners_change_owners(&access, before_role, Some(role))?;
        let now = self.now();
        let after = match &before {
            Some(member) if member.role == role => return Ok(Attempt::Done(member.clone())),
            Some(member) => Member { role, ..member.clone() },
            None => Member {
                user_id: user_id.to_owned(),
                role,
                created_at: now,
            },
        };
        let mut change = Change::new(&access, now, Action::MemberSet, TargetType::Member, user_id)
            .check(unchanged)
            .replace(schema::member(access.workspace(), user_id), before.as_ref(), &after)?;
        if before.is_none() {
            change = change.put(schema::membership(user_id, access.workspace()), &schema::Present {})?;
        }
        let change = count_owners(change, access.workspace(), before_role, Some(role));
        self.finish(change, after).await
    }

    /// Removes a member. Members may remove themselves.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for the user's identifier, [`ErrorKind::Forbidden`] without
    /// `members:manage`, or for an owner when the caller is none, [`ErrorKind::NotFound`] when the
    /// user is no member, [`ErrorKind::Conflict`] for the last owner.
    pub async fn remove_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &str,
    ) -> Result<Success, Error> {
        check_user_id(user_id)?;
        self.settle(|| self.try_remove_member(caller, workspace, user_id)).await
    }

    async fn try_remove_member(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        user_id: &str,
    ) -> Result<Attempt<Success>, Error> {
        let access = self.membership(caller, workspace).await?;
        if caller.user_id().ok() != Some(user_id) {
            access.require(Permission::MembersManage)?;
        }
        let Found { member, unchanged } = self.find_member(&access, user_id).await?;
        let before = member.ok_or_else(|| not_found("member", user_id))?;
        only_owners_change_owners(&access, Some(before.role), None)?;
        let change = Change::new(&access, self.now(), Action::MemberRemoved, TargetType::Member, user_id)
            .tell(Some(&before), None)?
            .check(unchanged)
            .write(Write::Delete(schema::member(access.workspace(), user_id)))
            .write(Write::Delete(schema::membership(user_id, access.workspace())));
        let change = count_owners(change, access.workspace(), Some(before.role), None);
        self.finish(change, Success::OK).await
    }

    async fn finish<T>(&self, change: Change<'_>, value: T) -> Result<Attempt<T>, Error> {
        match self.apply(change).await? {
            Applied::Done(_) => Ok(Attempt::Done(value)),
            Applied::Raced => Ok(Attempt::Raced),
            Applied::Limit => Err(Error::new(
                ErrorKind::Conflict,
                "this is the workspace's last owner: make another member an owner first",
            )),
        }
    }

    async fn find_member(&self, access: &Access, user_id: &str) -> Result<Found, Error> {
        let key = schema::member(access.workspace(), user_id);
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        Ok(match record {
            Some(record) => Found {
                member: Some(schema::decode(&key, &record)?),
                unchanged: Check::Version(key, record.version),
            },
            None => Found {
                member: None,
                unchanged: Check::Absent(key),
            },
        })
    }
}

fn check_user_id(user_id: &str) -> Result<(), Error> {
    let mut faults = Faults::default();
    validate::user_id(user_id, &mut faults);
    Ok(faults.into_result()?)
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

/// Adds to the change what it does to the number of owners.
fn count_owners<'a>(change: Change<'a>, id: WorkspaceId, before: Option<Role>, after: Option<Role>) -> Change<'a> {
    let owners = |role: Option<Role>| i64::from(role == Some(Role::Owner));
    match owners(after) - owners(before) {
        0 => change,
        delta => change.write(Write::Add {
            counter: schema::further_owners(id),
            delta,
            max: None,
        }),
    }
}
