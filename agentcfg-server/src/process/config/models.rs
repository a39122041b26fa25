//! The catalogue of models in the TOML file: lists of tables.

use agentcfg_core::model::{ModelPrices, ModelStatus, Price, Provider};
use agentcfg_core::routing::{Catalogue, CatalogueModel, EmbeddingModel};
use toml::de::{DeTable, DeValue};

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

const EMBEDDING_FIELDS: [&str; 3] = ["id", "provider", "input_price"];

/// Reads the models and checks them by the rules of a catalogue.
pub(super) fn read(value: &Value<'_>) -> Result<Vec<CatalogueModel>, String> {
    let models = tables(value, "model", "id, provider, display_name and status", model)?;
    Catalogue::default()
        .with_models(models.clone())
        .map_err(|error| error.to_string())?;
    Ok(models)
}

/// Reads the models of embeddings and checks them by the rules of a catalogue.
pub(super) fn read_embeddings(value: &Value<'_>) -> Result<Vec<EmbeddingModel>, String> {
    let models = tables(
        value,
        "embedding model",
        "id, provider and input_price",
        embedding_model,
    )?;
    Catalogue::default()
        .with_embedding_models(models.clone())
        .map_err(|error| error.to_string())?;
    Ok(models)
}

/// Reads a list of tables. `what` is one of them, and `fields` are their usual keys, for the faults.
fn tables<T>(
    value: &Value<'_>,
    what: &str,
    fields: &str,
    read: fn(&Table<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let Value::Toml(value) = value else {
        return Err("must be a list of tables in the TOML file, it cannot come from the environment".to_owned());
    };
    let DeValue::Array(items) = value else {
        return Err(format!("must be a list of tables with {fields}"));
    };
    let items = items.iter().enumerate().map(|(i, item)| {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(format!("{what} {} must be a table", i + 1));
        };
        read(&Table(table)).map_err(|fault| format!("{what} {}: {fault}", i + 1))
    });
    items.collect()
}

fn model(table: &Table<'_>) -> Result<CatalogueModel, String> {
    table.check(&FIELDS)?;
    let id = table.required("id")?;
    Ok(CatalogueModel {
        id: id.to_owned(),
        provider: table.provider()?,
        // The status and the display name have defaults: `available`, and the identifier.
        display_name: table.text("display_name")?.unwrap_or(id).to_owned(),
        status: match table.text("status")? {
            None => ModelStatus::Available,
            Some(status) => status
                .parse()
                .map_err(|rule| format!("status {rule}, got {status:?}"))?,
        },
        prices: table.prices()?,
        max_output_tokens: table.tokens("max_output_tokens")?,
    })
}

fn embedding_model(table: &Table<'_>) -> Result<EmbeddingModel, String> {
    table.check(&EMBEDDING_FIELDS)?;
    Ok(EmbeddingModel {
        id: table.required("id")?.to_owned(),
        provider: table.provider()?,
        input_price: table.price("input_price")?,
    })
}

/// A table of a list.
struct Table<'a>(&'a DeTable<'a>);

impl Table<'_> {
    /// Refuses keys that are none of these.
    fn check(&self, fields: &[&str]) -> Result<(), String> {
        let mut names = self.0.iter().map(|(key, _)| key.get_ref().as_ref());
        match names.find(|name| !fields.contains(name)) {
            Some(name) => Err(format!("unknown key {name}, there are {}", fields.join(", "))),
            None => Ok(()),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.0.get(name).map(|value| value.get_ref().as_str()) {
            Some(Some(text)) => Ok(Some(text)),
            Some(None) => Err(format!("{name} must be a string")),
            None => Ok(None),
        }
    }

    fn required(&self, name: &str) -> Result<&str, String> {
        self.text(name)?.ok_or_else(|| format!("{name} is required"))
    }

    fn provider(&self) -> Result<Provider, String> {
        let provider = self.required("provider")?;
        provider
            .parse::<Provider>()
            .map_err(|rule| format!("provider {rule}, got {provider:?}"))
    }

    /// A price in USD per million tokens: a number, or its text.
    fn price(&self, name: &str) -> Result<Option<Price>, String> {
        let text = match self.0.get(name).map(|value| value.get_ref()) {
            None => return Ok(None),
            Some(DeValue::Integer(number)) => number.as_str(),
            Some(DeValue::Float(number)) => number.as_str(),
            Some(DeValue::String(text)) => text,
            Some(_) => return Err(format!("{name} must be a number of USD per million tokens")),
        };
        let price = text.parse::<Price>();
        price
            .map(Some)
            .map_err(|rule| format!("{name} {rule} (USD per million tokens), got {text}"))
    }

    /// The prices of a model, which has all of them or none.
    fn prices(&self) -> Result<Option<ModelPrices>, String> {
        let cached_input = self.price("cached_input_price")?;
        let cache_write = self.price("cache_write_price")?;
        let output = self.price("output_price")?;
        match self.price("input_price")? {
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

    /// A positive number of tokens.
    fn tokens(&self, name: &str) -> Result<Option<u64>, String> {
        const MOST: u64 = 1_000_000_000;
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse::<u64>().ok(),
            _ => None,
        };
        match number.filter(|number| (1..=MOST).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} must be an integer from 1 to {MOST}")),
        }
    }
}
