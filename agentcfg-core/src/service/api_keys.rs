//! API keys: create, list, rotate, revoke.

use std::collections::HashSet;

use super::access::Access;
use super::change::Change;
use super::records::{self, EntityKey, Entries, Stored, StoredApiKey, StoredUse, WorkspaceApiKey};
use super::retry::Attempt;
use super::{AgentCfg, Caller, no_api_key, not_found};
use crate::clock::SECOND;
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, ApiKey, ApiKeyId, CreatedApiKey, DEFAULT_KEY_RATE_LIMIT, IdRef, NewApiKey, Permission, PermissionSet,
    RotateApiKey, Success, TargetType, Timestamp, WorkspaceId,
};
use crate::token;
use crate::validate::{Faults, IntoValid, Invalid};

/// A key and its last use, from one read.
type KeyAndUse = (Option<Stored<StoredApiKey>>, Option<Stored<StoredUse>>);

impl AgentCfg {
    /// The API keys of a workspace in the order of their creation, revoked and expired ones too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `api_keys:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for key in service.list_api_keys(&ada, studio).await? {
    ///     println!("{}: last used {:?}", key.name, key.last_used_at);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn list_api_keys(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<ApiKey>, Error> {
        let access = self.access(caller, workspace, Permission::ApiKeysRead).await?;
        let entries = Entries::<WorkspaceApiKey>::in_workspace(access.workspace());
        let keys = |index: &[EntityKey<WorkspaceApiKey>]| {
            let ids = index.iter().map(EntityKey::item);
            Ok(ids
                .map(|id| (records::api_key(id), records::key_use(id)))
                .collect::<Vec<_>>())
        };
        let (_, found) = self.scan_linked(entries, keys).await?;
        let mut listed = self.listed_keys(found);
        listed.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(listed)
    }

    /// Some API keys as the list shows them, with the workspace's revision in the same snapshot.
    pub(super) async fn api_keys_of(
        &self,
        workspace: WorkspaceId,
        ids: &[String],
    ) -> Result<(Vec<ApiKey>, u64), Error> {
        let keys = ids.iter().map(|id| (records::api_key(id), records::key_use(id)));
        let query = (records::revision(workspace), keys.collect::<Vec<_>>());
        let (revision, found) = self.read(query).await?;
        Ok((self.listed_keys(found), revision))
    }

    /// Stored keys with their last uses, as they are listed.
    pub(super) fn listed_keys(&self, found: Vec<KeyAndUse>) -> Vec<ApiKey> {
        let found = found.into_iter();
        let listed = found.filter_map(|(stored, written)| {
            let stored = stored?.value;
            let written = written.map(|written| written.value.last_used_at);
            let last_used_at = self.inner.uses.pending(&stored.id).max(written);
            Some(stored.listed(last_used_at))
        });
        listed.collect()
    }

    /// Creates an API key. Its plaintext is in the answer alone; the store keeps a hash.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Invalid`] for a field out of its bounds or an expiry in the past,
    /// [`ErrorKind::Forbidden`] without `api_keys:manage` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let new = NewApiKey::new(studio, "Nightly build", Environment::Production, Scope::Read).rate_limit(600);
    /// let created = service.create_api_key(&ada, new).await?;
    /// assert!(created.key.starts_with("svc_live_"));
    /// # Ok(()) }) }
    /// ```
    pub async fn create_api_key(
        &self,
        caller: &Caller,
        new: impl IntoValid<NewApiKey>,
    ) -> Result<CreatedApiKey, Error> {
        let new = new.into_valid()?.into_inner();
        if new.expires_at.is_some_and(|end| end <= self.now()) {
            return Err(Invalid::new("expires_at", "must be in the future").into());
        }
        // A deployment may grant less to a scope.
        let mut faults = Faults::default();
        new.require_within(self.settings().permissions_of(new.scope), &mut faults);
        faults.into_result()?;
        // Authorise first, so that a refused request costs no slow hash.
        self.access(caller, new.workspace_id, Permission::ApiKeysManage).await?;
        let minted = token::mint(new.environment, self.entropy())?;
        let hash = self.hash_plaintext(&minted.plaintext).await?;
        let record = self
            .retry_lost_races(|| self.try_create_api_key(caller, &new, &minted.id, &hash))
            .await?;
        Ok(CreatedApiKey {
            record,
            key: minted.plaintext.to_string(),
        })
    }

    async fn try_create_api_key(
        &self,
        caller: &Caller,
        new: &NewApiKey,
        id: &ApiKeyId,
        hash: &str,
    ) -> Result<Attempt<ApiKey>, Error> {
        let access = self.access(caller, new.workspace_id, Permission::ApiKeysManage).await?;
        let now = self.now();
        let stored = StoredApiKey {
            id: id.clone(),
            workspace_id: access.workspace(),
            name: new.name.clone(),
            environment: new.environment,
            scope: new.scope,
            permissions: new.permissions.as_deref().map(|permissions| {
                let distinct: PermissionSet = permissions.iter().copied().collect();
                distinct.iter().collect()
            }),
            agents: new.agents.as_deref().map(|agents| {
                let mut seen = HashSet::new();
                agents
                    .iter()
                    .filter(|agent_id| seen.insert(*agent_id))
                    .cloned()
                    .collect()
            }),
            label: new.label.clone(),
            rate_limit: new.rate_limit.unwrap_or(DEFAULT_KEY_RATE_LIMIT),
            expires_at: new.expires_at,
            created_at: now,
            revoked_at: None,
            replaced_by: None,
            hash: hash.to_owned(),
        };
        let change = Change::new(&access, now, Action::ApiKeyCreated, TargetType::ApiKey, id.as_str())
            .create(records::api_key(id), &stored)?
            .put(records::workspace_api_key(access.workspace(), id), &WorkspaceApiKey {})?;
        self.apply(change).await?.attempt(stored.listed(None))
    }

    /// Revokes an API key: the next request with it is refused, on every instance.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for a key that is unknown, revoked already, or of a workspace that
    /// the user is no member of; [`ErrorKind::Forbidden`] without `api_keys:manage`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # let new = NewApiKey::new(studio, "Nightly build", Environment::Production, Scope::Read);
    /// # let created = service.create_api_key(&ada, new).await?;
    /// service.revoke_api_key(&ada, &created.record.id).await?;
    /// assert!(service.authenticate(&created.key).await.is_err());
    /// # Ok(()) }) }
    /// ```
    pub async fn revoke_api_key(
        &self,
        caller: &Caller,
        key_id: impl Into<IdRef<'_, ApiKeyId>>,
    ) -> Result<Success, Error> {
        let key_id = key_id.into();
        caller.user_id()?;
        self.retry_lost_races(|| self.try_revoke_api_key(caller, key_id)).await
    }

    async fn try_revoke_api_key(
        &self,
        caller: &Caller,
        key_id: IdRef<'_, ApiKeyId>,
    ) -> Result<Attempt<Success>, Error> {
        let (found, access) = self.managed_key(caller, key_id).await?;
        self.revoke_found_key(&access, found).await
    }

    /// Revokes a key that was read. One that is revoked already is not found.
    pub(super) async fn revoke_found_key(
        &self,
        access: &Access,
        found: Stored<StoredApiKey>,
    ) -> Result<Attempt<Success>, Error> {
        let before = &found.value;
        let id = before.id.to_string();
        if before.revoked_at.is_some() {
            return Err(not_found("API key", &id));
        }
        let now = self.now();
        let after = StoredApiKey {
            revoked_at: Some(now),
            ..before.clone()
        };
        let change = Change::new(access, now, Action::ApiKeyRevoked, TargetType::ApiKey, id).replace(found, &after)?;
        self.apply(change).await?.attempt(Success::OK)
    }

    /// Replaces an API key by a new one with the same name, environment, scope and limit, and with the same lifetime
    /// where the old one has one. The old key ends after the overlap, and never later than it would have.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] and [`ErrorKind::Forbidden`] as [`Self::revoke_api_key`]; [`ErrorKind::Conflict`] for a
    /// key that has ended; [`ErrorKind::Invalid`] for an overlap out of its bounds.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// # use agentcfg_core::model::RotateApiKey;
    /// # let new = NewApiKey::new(studio, "Nightly build", Environment::Production, Scope::Read);
    /// # let old = service.create_api_key(&ada, new).await?;
    /// let new = service.rotate_api_key(&ada, &old.record.id, RotateApiKey::default()).await?;
    /// assert!(service.authenticate(&new.key).await.is_ok());
    /// assert!(service.authenticate(&old.key).await.is_err(), "it ended at once");
    /// # Ok(()) }) }
    /// ```
    pub async fn rotate_api_key(
        &self,
        caller: &Caller,
        key_id: impl Into<IdRef<'_, ApiKeyId>>,
        rotate: impl IntoValid<RotateApiKey>,
    ) -> Result<CreatedApiKey, Error> {
        let key_id = key_id.into();
        caller.user_id()?;
        let rotate = rotate.into_valid()?.into_inner();
        // Authorise first, so that a refused request costs no slow hash.
        let (found, _) = self.managed_key(caller, key_id).await?;
        let minted = token::mint(found.value.environment, self.entropy())?;
        let hash = self.hash_plaintext(&minted.plaintext).await?;
        let record = self
            .retry_lost_races(|| self.try_rotate_api_key(caller, key_id, rotate, &minted.id, &hash))
            .await?;
        Ok(CreatedApiKey {
            record,
            key: minted.plaintext.to_string(),
        })
    }

    async fn try_rotate_api_key(
        &self,
        caller: &Caller,
        key_id: IdRef<'_, ApiKeyId>,
        rotate: RotateApiKey,
        new_id: &ApiKeyId,
        hash: &str,
    ) -> Result<Attempt<ApiKey>, Error> {
        let (found, access) = self.managed_key(caller, key_id).await?;
        let (old, now) = (&found.value, self.now());
        if !old.is_valid_at(now) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the API key was revoked or has expired: create a new one",
            ));
        }
        let lifetime = self.lifetime(old).await?;
        let end = now.plus_millis(i64::from(rotate.overlap_seconds) * SECOND);
        let new = StoredApiKey {
            id: new_id.clone(),
            expires_at: lifetime.map(|millis| now.plus_millis(millis)),
            created_at: now,
            replaced_by: None,
            hash: hash.to_owned(),
            ..old.clone()
        };
        let ending = StoredApiKey {
            expires_at: Some(old.expires_at.map_or(end, |sooner| sooner.min(end))),
            replaced_by: Some(new_id.clone()),
            ..old.clone()
        };
        let new_key = records::api_key(new_id);
        let change = Change::new(&access, now, Action::ApiKeyRotated, TargetType::ApiKey, key_id.as_str())
            .replace(found, &ending)?
            .check(new_key.absent())
            .put(new_key, &new)?
            .put(
                records::workspace_api_key(access.workspace(), new_id),
                &WorkspaceApiKey {},
            )?;
        self.apply(change).await?.attempt(new.listed(None))
    }

    /// The milliseconds from a key's creation to the expiry that was chosen for it; `None` for a key without one. The
    /// expiry of a key that was rotated is the end of its overlap, so the lifetime is read from the last key that
    /// replaced it.
    async fn lifetime(&self, key: &StoredApiKey) -> Result<Option<i64>, Error> {
        let mut last = key.clone();
        while let Some(next) = last.replaced_by.take() {
            if let Some(found) = self.read(records::api_key(next.as_str())).await? {
                last = found.value;
            }
        }
        let millis = |end: Timestamp| end.unix_millis() - last.created_at.unix_millis();
        Ok(last.expires_at.map(millis))
    }

    /// An API key, for a caller who may manage it.
    async fn managed_key(
        &self,
        caller: &Caller,
        key_id: IdRef<'_, ApiKeyId>,
    ) -> Result<(Stored<StoredApiKey>, Access), Error> {
        let unknown = || no_api_key(key_id);
        if !key_id.is_possible() {
            return Err(unknown());
        }
        let found = self
            .read(records::api_key(key_id.as_str()))
            .await?
            .ok_or_else(unknown)?;
        let access = self
            .membership(caller, found.value.workspace_id)
            .await
            .map_err(|error| match error.kind() {
                ErrorKind::Forbidden => unknown(),
                _ => error,
            })?;
        access.require(Permission::ApiKeysManage)?;
        Ok((found, access))
    }
}
