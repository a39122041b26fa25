//! The models that a workspace can call.

use super::records;
use super::{AgentCfg, Caller, no_member};
use crate::error::Error;
use crate::model::{ModelInfo, Permission, Plan, Provider, WorkspaceId};
use crate::routing::{self, CatalogueModel, CredentialFacts};

impl AgentCfg {
    /// The models of the catalogue, each with the credential that the workspace's next call would take.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace.
    ///
    /// ```
    /// use agentcfg_core::model::{CredentialSource, NewWorkspace};
    /// use agentcfg_core::{AgentCfg, store::MemoryStore};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let service = AgentCfg::builder(MemoryStore::new()).build();
    /// let ada = service.trusted_user("ada")?;
    /// let studio = service.create_workspace(&ada, NewWorkspace::new("Studio")).await?;
    /// let models = service.list_models(&ada, studio.id).await?;
    /// assert_eq!(models.len(), 7);
    /// assert!(models.iter().all(|model| model.credential == CredentialSource::None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn list_models(&self, caller: &Caller, workspace: WorkspaceId) -> Result<Vec<ModelInfo>, Error> {
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let catalogue = self.catalogue();
        let providers = catalogue.providers();
        let keys = providers
            .iter()
            .map(|provider| records::provider_key(access.workspace(), provider.id()).encoded());
        let plan = records::workspace_plan(access.workspace());
        let (plan, keys) = self.read((plan, keys.collect::<Vec<_>>())).await?;
        let plan = plan.ok_or_else(no_member)?.value.plan;
        let listed = |model: &CatalogueModel| {
            let at = providers.iter().position(|known| known.id() == model.provider)?;
            let (provider, has_key) = (&providers[at], keys[at].is_some());
            Some(ModelInfo {
                id: model.id.clone(),
                provider: model.provider,
                provider_name: provider.name().to_owned(),
                provider_api: provider.api(),
                display_name: model.display_name.clone(),
                status: model.status,
                credential: routing::credential(self.facts(model.provider, plan, has_key)).0,
                input_price: model.prices.map(|prices| prices.input),
                cached_input_price: model.prices.and_then(|prices| prices.cached_input),
                cache_write_price: model.prices.and_then(|prices| prices.cache_write),
                output_price: model.prices.and_then(|prices| prices.output),
                max_output_tokens: model.max_output_tokens,
            })
        };
        // The catalogue refuses models of other providers.
        Ok(catalogue.models().iter().filter_map(listed).collect())
    }

    /// What decides whose credential a call to a provider takes.
    pub(super) fn facts(&self, provider: Provider, plan: Plan, has_key: bool) -> CredentialFacts {
        CredentialFacts {
            provider,
            plan,
            has_key,
            is_managed: self.managed(provider).is_some(),
        }
    }
}
