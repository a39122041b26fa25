//! The catalogue of models in the TOML file: a list of tables.

use agentcfg_core::model::{ModelStatus, Provider};
use agentcfg_core::routing::{Catalogue, CatalogueModel};
use toml::de::{DeTable, DeValue};

use super::value::Value;

const FIELDS: [&str; 4] = ["id", "provider", "display_name", "status"];

/// Reads the models and checks them by the rules of a catalogue.
pub(super) fn read(value: &Value<'_>) -> Result<Vec<CatalogueModel>, String> {
    let Value::Toml(value) = value else {
        return Err("must be a list of tables in the TOML file, it cannot come from the environment".to_owned());
    };
    let DeValue::Array(items) = value else {
        return Err("must be a list of tables with id, provider, display_name and status".to_owned());
    };
    let mut models = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        let DeValue::Table(table) = item.get_ref() else {
            return Err(format!("model {} must be a table", i + 1));
        };
        models.push(model(table).map_err(|fault| format!("model {}: {fault}", i + 1))?);
    }
    Catalogue::default()
        .with_models(models.clone())
        .map_err(|error| error.to_string())?;
    Ok(models)
}

fn model(table: &DeTable<'_>) -> Result<CatalogueModel, String> {
    for (key, _) in table {
        let name = key.get_ref().as_ref();
        if !FIELDS.contains(&name) {
            return Err(format!("unknown key {name}, there are {}", FIELDS.join(", ")));
        }
    }
    let text = |name: &str| match table.get(name).map(|value| value.get_ref().as_str()) {
        Some(Some(text)) => Ok(Some(text)),
        Some(None) => Err(format!("{name} must be a string")),
        None => Ok(None),
    };
    let required = |name: &str| text(name)?.ok_or_else(|| format!("{name} is required"));
    let id = required("id")?;
    let provider = required("provider")?;
    Ok(CatalogueModel {
        id: id.to_owned(),
        provider: provider
            .parse::<Provider>()
            .map_err(|rule| format!("provider {rule}, got {provider:?}"))?,
        // The status and the display name have defaults: `available`, and the identifier.
        display_name: text("display_name")?.unwrap_or(id).to_owned(),
        status: match text("status")? {
            None => ModelStatus::Available,
            Some(status) => status
                .parse()
                .map_err(|rule| format!("status {rule}, got {status:?}"))?,
        },
    })
}
