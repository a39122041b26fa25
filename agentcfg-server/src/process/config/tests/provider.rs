//! The settings of identity providers, and settings without effect.

use super::from_env;

#[test]
fn an_identity_provider_needs_its_settings() {
    let with = |pairs: &[(&str, &str)]| {
        let pairs: Vec<(String, &str)> = pairs
            .iter()
            .map(|(name, value)| (format!("AGENTCFG_{name}"), *value))
            .collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        from_env(&pairs)
    };
    let jwks = ("SESSION_PROVIDER", "jwks");
    let asked = ("SESSION_PROVIDER", "introspection");
    let issuer = ("OIDC_ISSUER", "https://id.example/tenant/");
    let audience = ("OIDC_AUDIENCE", "agentcfg");
    let url = ("INTROSPECTION_URL", "https://id.example/introspect");
    let id = ("INTROSPECTION_CLIENT_ID", "us");
    let secret = ("INTROSPECTION_CLIENT_SECRET", "hush");
    let user = ("USERINFO_URL", "http://auth:9999/user");
    for good in [
        &[][..],
        &[issuer, url, user],
        &[jwks, issuer, audience],
        &[
            jwks,
            ("OIDC_ISSUER", "tenant-7"),
            audience,
            ("OIDC_JWKS_URL", "http://id/keys?tenant=7"),
        ],
        &[asked, url, id, secret],
        &[asked, url, id, secret, issuer, audience],
        &[asked, user],
        &[asked, user, ("USERINFO_APIKEY", "anon")],
    ] {
        assert!(with(good).is_ok(), "{good:?}: {:?}", with(good));
    }
    for (bad, named) in [
        (&[jwks][..], &["oidc_issuer", "oidc_audience"][..]),
        (&[jwks, issuer], &["oidc_audience"]),
        (&[jwks, audience, ("OIDC_JWKS_URL", "http://id/keys")], &["oidc_issuer"]),
        (&[jwks, ("OIDC_ISSUER", "tenant-7"), audience], &["oidc_jwks_url"]),
        (
            &[jwks, ("OIDC_ISSUER", "https://id.example/?a"), audience],
            &["oidc_issuer"],
        ),
        (&[asked], &["introspection_url", "userinfo_url"]),
        (
            &[asked, url],
            &["introspection_client_id", "introspection_client_secret"],
        ),
        (&[asked, url, id], &["introspection_client_secret"]),
        (&[asked, url, id, secret, user], &["introspection_url", "userinfo_url"]),
    ] {
        let error = with(bad).unwrap_err().to_string();
        assert!(named.iter().all(|name| error.contains(name)), "{bad:?}: {error}");
        assert!(!error.contains("hush"));
    }
}

#[test]
fn settings_without_effect_are_named_with_the_reason() {
    let jwks = [
        ("AGENTCFG_SESSION_PROVIDER", "jwks"),
        ("AGENTCFG_OIDC_ISSUER", "https://id.example.com"),
        ("AGENTCFG_OIDC_AUDIENCE", "api"),
    ];
    let introspection = [
        ("AGENTCFG_SESSION_PROVIDER", "introspection"),
        ("AGENTCFG_INTROSPECTION_URL", "https://id.example.com/introspect"),
        ("AGENTCFG_INTROSPECTION_CLIENT_ID", "agentcfg"),
        ("AGENTCFG_INTROSPECTION_CLIENT_SECRET", "a secret"),
    ];
    let user = [
        ("AGENTCFG_SESSION_PROVIDER", "introspection"),
        ("AGENTCFG_USERINFO_URL", "https://id.example.com/user"),
        ("AGENTCFG_USERINFO_APIKEY", "anon"),
    ];
    let secret = "a secret of more than thirty-two bytes";
    let none: &[(&str, &str)] = &[];
    for (chosen, name, value, why) in [
        (
            none,
            "OIDC_ISSUER",
            "https://id.example.com",
            "session_provider is local",
        ),
        (none, "ETCD_PREFIX", "studio", "etcd_endpoints is not set"),
        (none, "DATABASE_POOL_SIZE", "7", "database_url is not set"),
        (none, "DATABASE_WAIT", "5", "the store is in the data directory"),
        (&jwks, "INTROSPECTION_CLIENT_ID", "x", "session_provider is jwks"),
        (&jwks, "OIDC_CLIENT_SECRET", "x", "oidc_client_id is not set"),
        (&jwks, "SESSION_SECRET", secret, "session_provider is not local"),
        (
            &introspection,
            "OIDC_CLIENT_ID",
            "x",
            "session_provider is introspection",
        ),
        (
            &introspection,
            "OIDC_JWKS_URL",
            "https://id.example.com/keys",
            "session_provider is introspection",
        ),
        (&introspection, "USERINFO_APIKEY", "x", "introspection_url is asked"),
        (&user, "OIDC_ISSUER", "https://id.example.com", "userinfo_url is asked"),
        (&user, "INTROSPECTION_CLIENT_ID", "x", "userinfo_url is asked"),
    ] {
        let variable = format!("AGENTCFG_{name}");
        let named = format!("{} is not used: {why}", name.to_lowercase());
        let all = [chosen, &[(variable.as_str(), value)]].concat();
        let warnings = from_env(&all).unwrap().warnings;
        assert!(
            warnings.iter().any(|said| said.starts_with(&named)),
            "{named}: {warnings:?}"
        );
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(from_env(chosen).unwrap().warnings.is_empty());
    }
    let client = [
        ("AGENTCFG_OIDC_CLIENT_ID", "dashboard"),
        ("AGENTCFG_OIDC_SCOPE", "openid email"),
    ];
    assert!(from_env(&[&jwks[..], &client].concat()).unwrap().warnings.is_empty());
}
