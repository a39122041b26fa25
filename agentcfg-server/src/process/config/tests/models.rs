//! The catalogue of models: providers, models and managed credentials.

use std::fs;

use super::*;

#[test]
fn models_are_a_list_of_tables() {
    let dir = tempfile::tempdir().unwrap();
    let config = from_file(
        dir.path(),
        "cache_mb = 1\n[[models]]\nid = 'a'\nprovider = 'openai'\n\n[[models]]\nid = 'b'\nprovider = 'anthropic'\n\
         display_name = 'B'\nstatus = 'coming_soon'\n",
    )
    .unwrap();
    let shown: Vec<String> = config
        .models
        .iter()
        .map(|model| {
            format!(
                "{} {} {} {}",
                model.provider, model.id, model.display_name, model.status
            )
        })
        .collect();
    assert_eq!(shown, ["openai a a available", "anthropic b B coming_soon"]);
    assert!(from_file(dir.path(), "models = []").unwrap().models.is_empty());
    for (bad, words) in [
        ("models = 'a'", "must be a list of tables"),
        ("models = ['a']", "model 1: must be a table"),
        ("models = [{ provider = 'openai' }]", "model 1: id is required"),
        ("models = [{ id = 'a' }]", "model 1: provider is required"),
        ("models = [{ id = 1, provider = 'openai' }]", "id must be a string"),
        (
            "models = [{ id = 'a', provider = 'Acme' }]",
            "provider must be 1 to 32 of a-z, 0-9 and -, the first a letter, got \"Acme\"",
        ),
        (
            "models = [{ id = 'a', provider = 'openai', status = 'soon' }]",
            "status must be one of available, coming_soon",
        ),
        (
            "models = [{ id = 'a', provider = 'openai', price = '1' }]",
            "unknown key price",
        ),
        (
            "models = [{ id = '', provider = 'openai' }]",
            "must be 1 to 100 characters",
        ),
        (
            "models = [{ id = 'a', provider = 'openai' }, { id = 'a', provider = 'anthropic' }]",
            "\"a\" is listed twice",
        ),
    ] {
        let error = from_file(dir.path(), bad).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("a.toml:1"), "{bad}: {error}");
    }
}

#[test]
fn further_providers_have_an_api_and_keys_of_their_own() {
    const AZURE: &str = "providers = [{ id = 'azure-eu', api = 'openai', base_url = 'https://a.example/openai/v1/', auth_header = \
                         'api-key', display_name = 'Azure' }]\n";
    let dir = tempfile::tempdir().unwrap();
    let load = |text: &str, env: &[(&str, &str)]| {
        let path = dir.path().join("a.toml");
        fs::write(&path, text).unwrap();
        let flags = Flags {
            config: Some(path),
            ..Flags::default()
        };
        Config::load(flags, env.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    };
    let with_key =
        format!("{AZURE}provider_api_keys = {{ azure-eu = 'sk-1' }}\nmodels = [{{ id = 'a', provider = 'azure-eu' }}]");
    let config = load(&with_key, &[]).unwrap();
    let azure = &config.providers[0];
    assert_eq!(
        (azure.base_url(), azure.name(), azure.header().as_str()),
        ("https://a.example/openai/v1", "Azure", "api-key")
    );
    let keys: Vec<_> = config
        .managed_credentials()
        .map(|(id, key)| (id.to_string(), key.expose().to_owned()))
        .collect();
    assert_eq!(keys, [("azure-eu".to_owned(), "sk-1".to_owned())]);
    let file = dir.path().join("key");
    fs::write(&file, "sk-2\n").unwrap();
    for (name, value, key) in [
        ("AGENTCFG_PROVIDER_API_KEY_AZURE_EU", "sk-3", "sk-3"),
        (
            "AGENTCFG_PROVIDER_API_KEY_AZURE_EU_FILE",
            file.to_str().unwrap(),
            "sk-2",
        ),
    ] {
        let config = load(AZURE, &[(name, value)]).unwrap();
        assert_eq!(config.provider_api_keys.values().next().unwrap().expose(), key);
        let error = load(&with_key, &[(name, value)]).unwrap_err().to_string();
        assert!(error.contains("in another place too"), "{error}");
    }
    let config = load("", &[("AGENTCFG_PROVIDER_API_KEY_OPENAI", "sk-4")]).unwrap();
    let (id, key) = config.managed_credentials().next().unwrap();
    assert_eq!((id.as_str(), key.expose()), ("openai", "sk-4"));
    let table = |id: &str, rest: &str| format!("providers = [{{ id = '{id}', {rest} }}]");
    for (text, env, words) in [
        (
            table("openai", "api = 'openai', base_url = 'http://a'"),
            None,
            "openai is there already",
        ),
        (
            table("Azure", "api = 'openai', base_url = 'http://a'"),
            None,
            "id must be 1 to 32",
        ),
        (
            table("a", "api = 'google', base_url = 'http://a'"),
            None,
            "api must be one of anthropic, openai",
        ),
        (table("a", "api = 'openai'"), None, "base_url is required"),
        (
            table("a", "api = 'openai', base_url = 'a'"),
            None,
            "base_url must be http:// or https://",
        ),
        (
            table("a", "api = 'openai', base_url = 'http://u:secret@a'"),
            None,
            "base_url must be",
        ),
        (
            table("a", "api = 'openai', base_url = 'http://a', auth_header = 'cookie'"),
            None,
            "auth_header must be one of",
        ),
        (
            table("a", "api = 'openai', base_url = 'http://a', model = 'b'"),
            None,
            "unknown key model",
        ),
        (
            format!("{AZURE}provider_api_keys = {{ azure = 'k' }}"),
            None,
            "key for azure, which providers does not list",
        ),
        (format!("{AZURE}provider_api_keys = 'k'"), None, "must be a table"),
        (
            format!("{AZURE}provider_api_keys = {{ azure-eu = 'a b' }}"),
            None,
            "1 to 500 visible ASCII",
        ),
        (
            "openai_api_key = 'a'\nprovider_api_keys = { openai = 'b' }".to_owned(),
            None,
            "keep one",
        ),
        (
            String::new(),
            Some("AGENTCFG_PROVIDER_API_KEY_AZURE"),
            "is for no provider",
        ),
        (
            "providers = [{ id = 'x', api = 'openai', base_url = 'https://a' }, \
             { id = 'x-file', api = 'openai', base_url = 'https://b' }]"
                .to_owned(),
            Some("AGENTCFG_PROVIDER_API_KEY_X_FILE"),
            "may be the key for x-file and the file of the key for x",
        ),
        (
            "models = [{ id = 'a', provider = 'acme' }]".to_owned(),
            None,
            "a.toml:1): the provider acme of model 1 is not known",
        ),
        (
            "embedding_models = [{ id = 'a', provider = 'acme' }]".to_owned(),
            None,
            "a.toml:1): the provider acme of embedding model 1 is not known",
        ),
    ] {
        let env: Vec<_> = env.iter().map(|name| (*name, "k")).collect();
        let error = load(&text, &env).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("secret@"), "{text}: {error}");
    }
}

#[test]
fn addresses_of_providers_lead_to_one_place() {
    for (text, kept) in [
        ("https://api.example.com", "https://api.example.com"),
        ("http://127.0.0.1:8080//", "http://127.0.0.1:8080"),
        ("http://[::1]:9/openai/v2/", "http://[::1]:9/openai/v2"),
        ("https://v1", "https://v1"),
        ("https://gateway.internal/a-b_c.d", "https://gateway.internal/a-b_c.d"),
    ] {
        assert_eq!(
            from_env(&[("AGENTCFG_OPENAI_BASE_URL", text)]).unwrap().openai_base_url,
            kept
        );
    }
    for text in [
        "",
        "ftp://a",
        "https://",
        "https:///v1",
        "https://a/v1",
        "https://a/v1/",
        "https://a/openai/v1",
        "https://a b",
        "https://a/?q=1",
        "https://a/#f",
        "https://a/../b",
        "https://a/b//c",
        "https://a/%2e%2e",
        "https://a:0",
        "https://a:x",
        "https://a:",
        "https://[1:2",
        "https://a\\b",
        "HTTPS://a",
    ] {
        assert!(from_env(&[("AGENTCFG_OPENAI_BASE_URL", text)]).is_err(), "{text}");
    }
    let error = fault(&[("AGENTCFG_ANTHROPIC_BASE_URL", "https://user:hunter2@api.example.com")]);
    assert!(
        error.contains("without credentials") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn prices_of_models_are_exact() {
    let dir = tempfile::tempdir().unwrap();
    let config = from_file(
        dir.path(),
        "models = [{ id = 'a', provider = 'openai', input_price = 2, cached_input_price = 0.075, output_price = '10.50', \
         max_output_tokens = 8192 }, { id = 'b', provider = 'openai' }]\n\
         embedding_models = [{ id = 'e', provider = 'openai', input_price = 0.02 }]\n",
    )
    .unwrap();
    let prices = config.models[0].prices.unwrap();
    assert_eq!(
        (
            prices.input.to_string(),
            prices.cached_input.unwrap().to_string(),
            prices.cache_write,
            prices.output.unwrap().to_string(),
        ),
        ("2".to_owned(), "0.075".to_owned(), None, "10.5".to_owned())
    );
    assert_eq!(config.models[0].max_output_tokens, Some(8192));
    assert_eq!(
        (config.models[1].prices, config.models[1].max_output_tokens),
        (None, None)
    );
    assert_eq!(config.embedding_models[0].input_price.unwrap().to_string(), "0.02");
    for (bad, words) in [
        ("input_price = -1", "input_price must be a decimal number"),
        ("input_price = 0.0001", "input_price must have at most 3 decimals"),
        ("input_price = 1000001", "input_price must be at most 1000000"),
        ("input_price = true", "input_price must be a number"),
        (
            "output_price = 1",
            "input_price is required where another price is given",
        ),
        ("max_output_tokens = 0", "max_output_tokens must be an integer from 1"),
    ] {
        let models = format!("models = [{{ id = 'a', provider = 'openai', {bad} }}]");
        let error = from_file(dir.path(), &models).unwrap_err().to_string();
        assert!(error.contains(words), "{bad}: {error}");
    }
    let twice = "embedding_models = [{ id = 'e', provider = 'openai' }, { id = 'e', provider = 'openai' }]";
    let error = from_file(dir.path(), twice).unwrap_err().to_string();
    assert!(error.contains("\"e\" is listed twice"), "{error}");
}
