//! The settings of identity providers, and settings without effect.

use super::{fault, from_env};

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

#[test]
fn settings_whose_effect_is_hardly_meant_are_warned_of() {
    let warnings = |pairs: &[(&str, &str)]| from_env(pairs).unwrap().warnings;
    for name in ["OIDC_REQUIRED_CLAIMS", "OIDC_GROUPS_CLAIM"] {
        let variable = format!("AGENTCFG_{name}");
        let value = if name == "OIDC_GROUPS_CLAIM" {
            "roles"
        } else {
            "groups=staff"
        };
        let said = warnings(&[(variable.as_str(), value)]);
        assert!(
            matches!(&said[..], [one] if one.starts_with(&name.to_lowercase()) && one.contains("agentcfg-server token")),
            "{said:?}"
        );
    }
    let said = warnings(&[("AGENTCFG_WORKSPACE_CREATION", "operators")]);
    assert!(
        matches!(&said[..], [one] if one.contains("no user can create a workspace")),
        "{said:?}"
    );
    let with_operators = [
        ("AGENTCFG_WORKSPACE_CREATION", "operators"),
        ("AGENTCFG_OPERATORS", "root"),
    ];
    assert!(warnings(&with_operators).is_empty());
}

#[test]
fn hosts_without_the_proxy_are_checked() {
    for good in [
        "localhost,.internal,example.com,10.0.0.0/8,::1,2001:db8::/32,192.0.2.7,a_b.c-d",
        "*",
        "",
    ] {
        assert!(from_env(&[("AGENTCFG_NO_PROXY", good)]).is_ok(), "{good}");
    }
    for (bad, words) in [
        ("10.0.0.0/99", "networks such as 10.0.0.0/8"),
        ("http://foo", "without scheme and port"),
        ("foo:8080", "without scheme and port"),
        ("*.internal", "domains such as .internal"),
        ("10.0.0", "got \"10.0.0\""),
        ("a..b", "got \"a..b\""),
        (".", "got \".\""),
        ("*,localhost", "* alone"),
    ] {
        let error = fault(&[("AGENTCFG_NO_PROXY", bad)]);
        assert!(error.starts_with("AGENTCFG_NO_PROXY (environment): must be"), "{error}");
        assert!(error.contains(words), "{bad}: {error}");
    }
}
