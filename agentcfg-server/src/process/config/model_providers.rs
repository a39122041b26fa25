//! Providers beside the two of the default, and the managed credentials for them.

use std::collections::BTreeMap;

use agentcfg_core::model::{CredentialHeader, Provider, ProviderApi};
use agentcfg_core::routing::CatalogueProvider;
use agentcfg_core::secret::ProviderCredential;
use toml::de::DeValue;

use super::tables::tables;
use super::value::Value;
use crate::secret::Secret;

/// Managed credentials by provider.
pub(super) type ProviderKeys = BTreeMap<Provider, Secret>;

const KEYS: [&str; 5] = ["id", "api", "base_url", "display_name", "auth_header"];

/// Reads the providers.
pub(super) fn read(value: &Value<'_>) -> Result<Vec<CatalogueProvider>, String> {
    let providers = tables(value, "provider", &KEYS, |row| {
        let id: Provider = row
            .parsed("id", row.required("id")?)
            .map_err(|fault| fault.replace("provider ", ""))?;
        let api: ProviderApi = row.parsed("api", row.required("api")?)?;
        let url = row.required("base_url")?;
        let mut provider = CatalogueProvider::new(id, api, url).map_err(|rule| match url.contains('@') {
            // The text before an @ may be a password.
            true => format!("base_url {rule}"),
            false => format!("base_url {rule}, got {url:?}"),
        })?;
        if let Some(name) = row.text("display_name")? {
            provider = provider.display_name(name).map_err(|fault| fault.to_string())?;
        }
        if let Some(header) = row.text("auth_header")? {
            let header: CredentialHeader = row.parsed("auth_header", header)?;
            provider = provider.credential_header(header);
        }
        Ok(provider)
    })?;
    for (i, provider) in providers.iter().enumerate() {
        let id = provider.id();
        if [Provider::ANTHROPIC, Provider::OPENAI].contains(&id) {
            return Err(format!(
                "provider {}: {id} is there already, its address is {id}_base_url",
                i + 1
            ));
        }
        if providers[..i].iter().any(|other| other.id() == id) {
            return Err(format!("provider {}: the id {id} is listed twice", i + 1));
        }
    }
    Ok(providers)
}

/// Reads the managed credentials.
pub(super) fn read_keys(value: &Value<'_>) -> Result<ProviderKeys, String> {
    let Value::Toml(DeValue::Table(table)) = value else {
        return Err("must be a table of provider ids and their keys in the TOML file; in the environment, each key has a variable \
                    of its own, such as AGENTCFG_PROVIDER_API_KEY_AZURE_FILE"
            .to_owned());
    };
    let mut keys = ProviderKeys::new();
    for (id, key) in table {
        let id = id.get_ref();
        let provider = id.parse().map_err(|_| format!("{id:?} is no id of a provider"))?;
        let key = key
            .get_ref()
            .as_str()
            .ok_or_else(|| format!("the key for {id} must be a string"))?;
        keys.insert(provider, provider_key(provider, key)?);
    }
    Ok(keys)
}

/// The managed credential for a provider.
pub(super) fn provider_key(provider: Provider, key: &str) -> Result<Secret, String> {
    match ProviderCredential::new(key) {
        Ok(_) => Ok(Secret::new(key)),
        Err(_) => Err(format!(
            "the key for {provider} must be 1 to 500 visible ASCII characters"
        )),
    }
}

/// The provider whose variable has this name, in lower case and without its prefix: `-` is written as `_` there.
pub(super) fn of_variable(providers: &[CatalogueProvider], name: &str) -> Option<Provider> {
    let ids = providers.iter().map(CatalogueProvider::id);
    let mut ids = ids.chain([Provider::OPENAI, Provider::ANTHROPIC]);
    ids.find(|id| id.as_str().replace('-', "_") == name)
}
