//! Provider keys: a workspace's own credentials for model providers, sealed at rest.

use super::access::Access;
use super::change::{Applied, Attempt, Change};
use super::schema::{self, StoredMasterKeys, StoredProviderKey};
use super::{AgentCfg, Caller, not_found};
use crate::error::{Error, ErrorKind};
use crate::model::{
    Action, Actor, ActorType, Permission, Plan, Provider, ProviderKeyInfo, Success, TargetType, WorkspaceId,
};
use crate::secret::ProviderCredential;
use crate::store::{Check, Write};

impl AgentCfg {
    /// The provider keys that a workspace has saved, in the order in which they were first saved.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `settings:read` in the workspace.
    pub async fn list_provider_keys(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
    ) -> Result<Vec<ProviderKeyInfo>, Error> {
        let access = self.access(caller, workspace, Permission::SettingsRead).await?;
        let keys: Vec<_> = Provider::ALL
            .iter()
            .map(|provider| schema::provider_key(access.workspace(), *provider))
            .collect();
        let records = self.store().get(&keys).await?;
        let mut listed = Vec::new();
        for (key, record) in keys.iter().zip(&records) {
            if let Some(record) = record {
                listed.push(schema::decode::<StoredProviderKey>(key, record)?.listed());
            }
        }
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
    pub async fn provider_named(&self, caller: &Caller, workspace: WorkspaceId, name: &str) -> Result<Provider, Error> {
        if let Ok(provider) = name.parse() {
            return Ok(provider);
        }
        self.authorize(caller, workspace, Permission::ProviderKeysManage)
            .await?;
        let shown: String = name.chars().take(60).collect();
        let known: Vec<&str> = Provider::ALL.iter().map(|provider| provider.as_str()).collect();
        Err(Error::new(
            ErrorKind::NotFound,
            format!("provider {shown:?} not found, there are {}", known.join(" and ")),
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
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new())
    ///     .settings(Settings { default_plan: Plan::Pro, ..Settings::default() })
    ///     .vault(Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?)
    ///     .build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace { name: "Studio".into() }).await?;
    /// let key = ProviderCredential::new("sk-canary")?;
    /// service.save_provider_key(&ada, studio.id, Provider::OpenAi, &key).await?;
    /// assert_eq!(service.list_provider_keys(&ada, studio.id).await?[0].provider, Provider::OpenAi);
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
        self.settle(|| self.try_save_provider_key(caller, workspace, provider, credential))
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
        let keys = [
            schema::workspace(access.workspace()),
            schema::provider_key(access.workspace(), provider),
            schema::master_keys(),
        ];
        let records = self.store().get(&keys).await?;
        let [workspace_key, key, master_key] = keys;
        let plan = self.plan_in(&workspace_key, records[0].as_ref())?;
        if !plan.allows_provider_keys() {
            return Err(not_on(plan));
        }
        // The keyring is looked at after the store's list of master keys was read, and the commit holds
        // only while that list stands: once a rotation has named its new key, nothing is sealed under
        // an old one any more.
        let vault = self.vault().ok_or_else(|| {
            Error::new(
                ErrorKind::NotConfigured,
                "this server has no master key to seal provider keys with; its operator can configure one",
            )
        })?;
        let (sealing, master_keys_stand) = match &records[2] {
            Some(record) => {
                let stored: StoredMasterKeys = schema::decode(&master_key, record)?;
                let check = Check::Version(master_key.clone(), record.version);
                (stored.sealing_key().unwrap_or(vault.sealing_key()), check)
            }
            None => (vault.sealing_key(), Check::Absent(master_key.clone())),
        };
        let sealed = vault.seal_under(sealing, access.workspace(), provider, credential, self.entropy())?;
        let Some(sealed) = sealed else {
            let now = self
                .store()
                .get(std::slice::from_ref(&master_key))
                .await?
                .pop()
                .flatten();
            if version(now.as_ref()) != version(records[2].as_ref()) {
                // A whole rotation has passed between the read and the look at the keyring.
                return Ok(Attempt::Raced);
            }
            return Err(Error::new(
                ErrorKind::NotConfigured,
                "this server was not given the master key that provider keys are sealed with now; its operator can \
                 configure it",
            ));
        };
        let before: Option<StoredProviderKey> = records[1]
            .as_ref()
            .map(|record| schema::decode(&key, record))
            .transpose()?;
        let now = before
            .as_ref()
            .map_or(self.now(), |before| self.now().max(before.updated_at.plus_millis(1)));
        let stored = StoredProviderKey {
            provider,
            created_at: before.as_ref().map_or(now, |before| before.created_at),
            updated_at: now,
            sealed,
        };
        let info = stored.listed();
        let change = Change::new(
            &access,
            now,
            Action::ProviderKeySaved,
            TargetType::ProviderKey,
            provider.as_str(),
        )
        // What is told of a key is what the list tells of it.
        .tell(before.as_ref().map(StoredProviderKey::listed).as_ref(), Some(&info))?
        .check(Check::Version(workspace_key, version(records[0].as_ref())))
        .check(match &records[1] {
            Some(record) => Check::Version(key.clone(), record.version),
            None => Check::Absent(key.clone()),
        })
        .check(master_keys_stand)
        .put(key, &stored)?
        .put(schema::sealed_key(access.workspace(), provider), &schema::Present {})?;
        let change = if records[2].is_none() {
            let first = StoredMasterKeys {
                keys: vec![vault.check_value(self.entropy())?],
            };
            change.put(master_key, &first)?
        } else {
            change
        };
        Ok(match self.apply(change).await? {
            Applied::Done(_) => Attempt::Done(info),
            Applied::Raced | Applied::Limit => Attempt::Raced,
        })
    }

    /// Deletes a workspace's key for a provider, on every plan. The next model call goes without it.
    /// (Interface specification, *Provider key*.)
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `provider_keys:manage` and for an API key,
    /// [`ErrorKind::NotFound`] when none is saved.
    pub async fn delete_provider_key(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        provider: Provider,
    ) -> Result<Success, Error> {
        caller.user_id()?;
        self.settle(|| self.try_delete_provider_key(caller, workspace, provider))
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
        let key = schema::sealed_key(workspace, provider);
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let Some(record) = record else {
            return Ok(Attempt::Done(Success::OK));
        };
        let actor = Actor {
            kind: ActorType::Operator,
            id: operator.to_owned(),
        };
        let access = Access::without_membership(workspace, actor, Check::Version(key, record.version));
        self.remove_provider_key(&access, provider).await
    }

    async fn remove_provider_key(&self, access: &Access, provider: Provider) -> Result<Attempt<Success>, Error> {
        let key = schema::provider_key(access.workspace(), provider);
        let record = self.store().get(std::slice::from_ref(&key)).await?.pop().flatten();
        let record = record.ok_or_else(|| not_found("provider key", provider.as_str()))?;
        let before: StoredProviderKey = schema::decode(&key, &record)?;
        let change = Change::new(
            access,
            self.now(),
            Action::ProviderKeyDeleted,
            TargetType::ProviderKey,
            provider.as_str(),
        )
        .tell(Some(&before.listed()), None)?
        .check(Check::Version(key.clone(), record.version))
        .write(Write::Delete(key))
        .write(Write::Delete(schema::sealed_key(access.workspace(), provider)));
        Ok(match self.apply(change).await? {
            Applied::Done(_) => Attempt::Done(Success::OK),
            Applied::Raced | Applied::Limit => Attempt::Raced,
        })
    }
}

fn version(record: Option<&crate::store::Record>) -> u64 {
    record.map_or(0, |record| record.version)
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
