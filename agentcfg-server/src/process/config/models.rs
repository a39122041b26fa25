//! The catalogue of models in the TOML file: lists of tables.

use agentcfg_core::model::{ModelPrices, ModelStatus, Price, Provider, ProviderApi};
use agentcfg_core::routing::{Catalogue, CatalogueModel, CatalogueProvider, EmbeddingModel};

use super::tables::{Row, tables};
use super::value::Value;

const FIELDS: [&str; 9] = [
    "id",
    "provider",
    "display_name",
    "status",
    "input_price",
    "cached_input_price",
    "cache_write_price",
    "output_price",
    "max_output_tokens",
];

/// No model answers with more tokens.
const MAX_OUTPUT_TOKENS: u64 = 1_000_000_000;

/// Reads the models. The catalogue checks them when all settings are read.
pub(super) fn read(value: &Value<'_>) -> Result<Vec<CatalogueModel>, String> {
    let models = tables(value, "model", &FIELDS, |row| {
        let id = row.required("id")?;
        let model = CatalogueModel::new(id, row.parsed("provider", row.required("provider")?)?)
            .display_name(row.text("display_name")?.unwrap_or(id))
            .prices(prices(row)?)
            .max_output_tokens(row.integer("max_output_tokens", 1, MAX_OUTPUT_TOKENS)?);
        Ok(match row.text("status")? {
            None => model,
            Some(status) => model.status(row.parsed::<ModelStatus>("status", status)?),
        })
    })?;
    let checked = with_providers(models.iter().map(|model| model.provider)).with_models(models.clone());
    checked.map(|_| models).map_err(|fault| fault.to_string())
}

/// Reads the models for embeddings.
pub(super) fn read_embedding(value: &Value<'_>) -> Result<Vec<EmbeddingModel>, String> {
    let models = tables(value, "embedding model", &["id", "provider", "input_price"], |row| {
        let provider = row.parsed("provider", row.required("provider")?)?;
        Ok(EmbeddingModel::new(row.required("id")?, provider).input_price(price(row, "input_price")?))
    })?;
    let checked = with_providers(models.iter().map(|model| model.provider)).with_embedding_models(models.clone());
    checked.map(|_| models).map_err(|fault| fault.to_string())
}

/// The prices of a model. With any of them, that of input is required.
fn prices(row: &Row<'_>) -> Result<Option<ModelPrices>, String> {
    let cached_input = price(row, "cached_input_price")?;
    let cache_write = price(row, "cache_write_price")?;
    let output = price(row, "output_price")?;
    match price(row, "input_price")? {
        Some(input) => Ok(Some(ModelPrices {
            input,
            cached_input,
            cache_write,
            output,
        })),
        None if cached_input.or(cache_write).or(output).is_some() => {
            Err("input_price is required where another price is given".to_owned())
        }
        None => Ok(None),
    }
}

/// A price in USD per million tokens.
fn price(row: &Row<'_>, key: &str) -> Result<Option<Price>, String> {
    let Some(text) = row.decimal(key)? else {
        return Ok(None);
    };
    let price = text.parse::<Price>();
    price
        .map(Some)
        .map_err(|rule| format!("{key} {rule} (USD per million tokens), got {text}"))
}

/// A catalogue that has these providers. Whether they exist is checked when all settings are read.
fn with_providers(providers: impl Iterator<Item = Provider>) -> Catalogue {
    providers.fold(Catalogue::default(), |catalogue, id| {
        let provider = CatalogueProvider::new(id, ProviderApi::OpenAi, "https://unknown");
        let with = provider.and_then(|provider| catalogue.clone().with_provider(provider));
        with.unwrap_or(catalogue)
    })
}
