//! Provider keys: a workspace's own credentials for model providers, sealed at rest.

use super::access::Access;
use super::change::Change;
use super::records::{self, Entries, SealedKey, Stored, StoredProviderKey};
use super::retry::Attempt;
use super::{AgentCfg, Caller, known_provider, no_member, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::{Action, Actor, Permission, Plan, Provider, ProviderKeyInfo, Success, TargetType, WorkspaceId};
use crate::routing::CatalogueProvider;
use crate::secret::ProviderCredential;
use crate::validate::quoted;

impl AgentCfg {
    /// The provider keys that a workspace has saved, in the order in which they were first saved.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `settings:read` in the workspace.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for key in service.list_provider_keys(&ada, studio).await? {
    ///     println!("{}: replaced at {}", key.provider, key.updated_at);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn list_provider_keys(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<Vec<ProviderKeyInfo>, Error> {
        let access = self.access(caller, workspace, Permission::SettingsRead).await?;
        let keys = Entries::<StoredProviderKey>::in_workspace(access.workspace());
        let keys: Vec<StoredProviderKey> = self.scan(keys).await?.into_values()?;
        let mut listed: Vec<_> = keys.iter().map(StoredProviderKey::listed).collect();
        listed.sort_by_key(|info| (info.created_at, info.provider));
        Ok(listed)
    }

    /// The provider of this name, for managing a workspace's key for it.
    ///
    /// Only callers who may manage provider keys learn that there is no such provider.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] when there is none, or [`ErrorKind::Forbidden`] instead without `provider_keys:manage`.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// assert_eq!(service.provider_named(&ada, studio, "openai").await?, Provider::OPENAI);
    /// let unknown = service.provider_named(&ada, studio, "acme").await;
    /// assert_eq!(unknown.unwrap_err().kind(), agentcfg_core::ErrorKind::NotFound);
    /// # Ok(()) }) }
    /// ```
    pub async fn provider_named(&self, caller: &Caller, workspace: WorkspaceId, name: &str) -> Result<Provider, Error> {
        if let Ok(provider) = name.parse()
            && self.catalogue().provider(provider).is_some()
        {
            return Ok(provider);
        }
        self.authorize(caller, workspace, Permission::ProviderKeysManage)
            .await?;
        let known = self.catalogue().provider_names();
        Err(Error::new(
            ErrorKind::NotFound,
            format!("provider {} not found, there are {known}", quoted(name)),
        ))
    }

    /// Saves a workspace's key for a provider, in place of the one that was there. The next model call
    /// uses it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `provider_keys:manage`, for an API key, and on a plan that does
    /// not allow own keys; [`ErrorKind::NotConfigured`] when this service has no master key.
    ///
    /// ```
    /// use agentcfg_core::clock::SystemEntropy;
    /// use agentcfg_core::model::{NewWorkspace, Plan, Provider};
    /// use agentcfg_core::secret::ProviderCredential;
    /// use agentcfg_core::vault::{MasterKey, Vault};
    /// use agentcfg_core::{AgentCfg, Settings, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .settings(Settings::default().default_plan(Plan::Pro))?
    ///     .vault(Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?)
    ///     .build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let key = ProviderCredential::new("sk-canary")?;
    /// service.save_provider_key(&ada, studio.id, Provider::OPENAI, &key).await?;
    /// assert_eq!(service.list_provider_keys(&ada, studio.id).await?[0].provider, Provider::OPENAI);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn save_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
        credential: &ProviderCredential,
    ) -> Result<ProviderKeyInfo, Error> {
        caller.user_id()?;
        known_provider(&self.catalogue(), provider)?;
        self.retry_lost_races(|| self.try_save_provider_key(caller, workspace, provider, credential))
            .await
    }

    async fn try_save_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
        credential: &ProviderCredential,
    ) -> Result<Attempt<ProviderKeyInfo>, Error> {
        let access = self.access(caller, workspace, Permission::ProviderKeysManage).await?;
        let key = records::provider_key(access.workspace(), provider);
        let keys = (
            records::workspace_plan(access.workspace()),
            key.clone(),
            records::master_keys(),
        );
        let (found_plan, before, list) = self.read(keys).await?;
        let found_plan = found_plan.ok_or_else(no_member)?;
        let plan = found_plan.value.plan;
        if !plan.allows_provider_keys() {
            return Err(not_on(plan));
        }
        let sealing = self.sealing(list, "provider keys")?;
        let workspace = access.workspace();
        let sealed = sealing
            .vault
            .seal_under(sealing.key, workspace, provider, credential, self.entropy())?;
        let fingerprint = sealing.vault.fingerprint(sealing.key, workspace, credential);
        let (Some(sealed), Some(fingerprint)) = (sealed, fingerprint) else {
            return self.lacks_sealing_key(sealing).await;
        };
        let now = before
            .as_ref()
            .map_or(self.now(), |before| self.after(before.value.updated_at));
        let stored = StoredProviderKey {
            provider,
            created_at: before.as_ref().map_or(now, |before| before.value.created_at),
            updated_at: now,
            sealed,
            fingerprint,
        };
        let info = stored.listed();
        let change = Change::new(
            &access,
            now,
            Action::ProviderKeySaved,
            TargetType::ProviderKey,
            provider.as_str(),
        )
        // The audit entry has the same fields as the list, so nothing that is sealed.
        .audit_diff(
            before.as_ref().map(|before| before.value.listed()).as_ref(),
            Some(&info),
        )?
        .check(found_plan.unchanged())
        .check(key.unchanged(before.as_ref()))
        .put(key, &stored)?
        .put(records::sealed_key(access.workspace(), provider), &SealedKey {})?;
        let change = sealing.guard(change, self.entropy())?;
        self.apply(change).await?.attempt(info)
    }

    /// The saved key of a workspace for a provider, for a test of it: what a call with it needs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `provider_keys:manage` and for an API key, [`ErrorKind::NotFound`] when none is
    /// saved, [`ErrorKind::Internal`] when it does not open.
    pub async fn saved_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
    ) -> Result<SavedProviderKey, Error> {
        caller.user_id()?;
        let access = self.access(caller, workspace, Permission::ProviderKeysManage).await?;
        let known = known_provider(&self.catalogue(), provider)?.clone();
        let found = self.read(records::provider_key(access.workspace(), provider)).await?;
        let found = found.ok_or_else(|| not_found("provider key", provider.as_str()))?;
        let credential = self.open_provider_key(access.workspace(), provider, &found.value.sealed)?;
        Ok(SavedProviderKey {
            provider: known,
            credential,
        })
    }

    /// Deletes a workspace's key for a provider, on every plan. The next model call goes without it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `provider_keys:manage` and for an API key,
    /// [`ErrorKind::NotFound`] when none is saved.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let none = service.delete_provider_key(&ada, studio, Provider::OPENAI).await;
    /// assert_eq!(none.unwrap_err().kind(), agentcfg_core::ErrorKind::NotFound);
    /// # Ok(()) }) }
    /// ```
    pub async fn delete_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
    ) -> Result<Success, Error> {
        caller.user_id()?;
        self.retry_lost_races(|| self.try_delete_provider_key(caller, workspace, provider))
            .await
    }

    async fn try_delete_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
    ) -> Result<Attempt<Success>, Error> {
        let access = self.access(caller, workspace, Permission::ProviderKeysManage).await?;
        self.remove_provider_key(&access, provider).await
    }

    /// As [`Self::delete_provider_key`] in the name of an operator, who needs no membership.
    pub(super) async fn try_discard_provider_key(
        &self,
        workspace: WorkspaceId,
        provider: Provider,
        operator: &str,
    ) -> Result<Attempt<Success>, Error> {
        let Some(entry) = self.read(records::sealed_key(workspace, provider)).await? else {
            return Ok(Attempt::Done(Success::OK));
        };
        let actor = Actor::operator(operator);
        let access = Access::without_membership(workspace, actor, entry.unchanged());
        self.remove_provider_key(&access, provider).await
    }

    async fn remove_provider_key(&self, access: &Access, provider: Provider) -> Result<Attempt<Success>, Error> {
        let found: Stored<StoredProviderKey> = self
            .read(records::provider_key(access.workspace(), provider))
            .await?
            .ok_or_else(|| not_found("provider key", provider.as_str()))?;
        let change = Change::new(
            access,
            self.now(),
            Action::ProviderKeyDeleted,
            TargetType::ProviderKey,
            provider.as_str(),
        )
        .audit_diff(Some(&found.value.listed()), None)?
        .check(found.unchanged())
        .delete(found.key)
        .delete(records::sealed_key(access.workspace(), provider));
        self.apply(change).await?.attempt(Success::OK)
    }
}

/// A saved provider key, opened.
///
/// `Debug` does not show the credential.
///
/// ```
/// use agentcfg_core::service::SavedProviderKey;
/// fn address(key: &SavedProviderKey) -> String {
///     format!("{}/v1/models", key.provider.base_url())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SavedProviderKey {
    /// Whose key it is.
    pub provider: CatalogueProvider,
    /// The key.
    pub credential: ProviderCredential,
}

/// The error of a plan that does not allow own keys; it names those that do.
fn not_on(plan: Plan) -> Error {
    let others: Vec<&str> = Plan::ALL
        .iter()
        .filter(|plan| plan.allows_provider_keys())
        .map(|plan| plan.as_str())
        .collect();
    Error::new(
        ErrorKind::Forbidden,
        format!(
            "the plan {plan} does not allow own provider keys, these plans do: {}",
            others.join(", ")
        ),
    )
}
