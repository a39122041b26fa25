//! The catalogue of models in the TOML file: lists of tables.

use agentcfg_core::model::{ModelStatus, Provider, ProviderApi};
use agentcfg_core::routing::{Catalogue, CatalogueModel, CatalogueProvider, EmbeddingModel};

use super::tables::tables;
use super::value::Value;

/// Reads the models. The catalogue checks them when all settings are read.
pub(super) fn read(value: &Value<'_>) -> Result<Vec<CatalogueModel>, String> {
    let models = tables(value, "model", &["id", "provider", "display_name", "status"], |row| {
        let id = row.required("id")?;
        Ok(CatalogueModel {
            id: id.to_owned(),
            provider: row.parsed("provider", row.required("provider")?)?,
            // The status and the display name have defaults: `available`, and the identifier.
            display_name: row.text("display_name")?.unwrap_or(id).to_owned(),
            status: match row.text("status")? {
                None => ModelStatus::Available,
                Some(status) => row.parsed("status", status)?,
            },
        })
    })?;
    let checked = with_providers(models.iter().map(|model| model.provider)).with_models(models.clone());
    checked.map(|_| models).map_err(|fault| fault.to_string())
}

/// Reads the models for embeddings.
pub(super) fn read_embedding(value: &Value<'_>) -> Result<Vec<EmbeddingModel>, String> {
    let models = tables(value, "embedding model", &["id", "provider"], |row| {
        Ok(EmbeddingModel {
            id: row.required("id")?.to_owned(),
            provider: row.parsed("provider", row.required("provider")?)?,
        })
    })?;
    let checked = with_providers(models.iter().map(|model| model.provider)).with_embedding_models(models.clone());
    checked.map(|_| models).map_err(|fault| fault.to_string())
}

/// A catalogue that has these providers. Whether they exist is checked when all settings are read.
fn with_providers(providers: impl Iterator<Item = Provider>) -> Catalogue {
    providers.fold(Catalogue::default(), |catalogue, id| {
        let provider = CatalogueProvider::new(id, ProviderApi::OpenAi, "https://unknown");
        let with = provider.and_then(|provider| catalogue.clone().with_provider(provider));
        with.unwrap_or(catalogue)
    })
}
