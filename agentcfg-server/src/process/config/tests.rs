mod models;
mod otlp;
mod provider;

use std::fs;
use std::path::Path;
use std::time::Duration;

use agentcfg_core::model::{Plan, WorkspaceCreation};

use super::*;

fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn from_env(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(Flags::default(), env(pairs))
}

fn fault(pairs: &[(&str, &str)]) -> String {
    from_env(pairs).unwrap_err().to_string()
}

fn from_file(dir: &Path, text: &str) -> Result<Config, ConfigError> {
    let path = dir.join("a.toml");
    fs::write(&path, text).unwrap();
    Config::load(
        Flags {
            config: Some(path),
            ..Flags::default()
        },
        [],
    )
}

#[test]
fn the_default_file_equals_the_defaults_and_lists_every_setting_once() {
    let dir = tempfile::tempdir().unwrap();
    let default = Config {
        names_data: true,
        ..Config::default()
    };
    assert_eq!(from_file(dir.path(), DEFAULT_TOML).unwrap(), default);
    let names: Vec<&str> = DEFAULT_TOML
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split_once(" = "))
        .map(|(name, _)| name)
        // The tables within a list are indented; their keys are not settings.
        .filter(|name| !name.starts_with(' '))
        .collect();
    assert_eq!(names, SETTINGS.iter().map(|setting| setting.name).collect::<Vec<_>>());
}

#[test]
fn the_command_line_wins_over_the_environment_which_wins_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.toml");
    fs::write(&path, "listen = '127.0.0.1:1'\ndata = 'file'\nstatus_ttl = 7\n").unwrap();
    let flags = Flags {
        config: Some(path),
        data: None,
        listen: Some("127.0.0.1:3".to_owned()),
        ..Flags::default()
    };
    let config = Config::load(
        flags,
        env(&[
            ("AGENTCFG_LISTEN", "127.0.0.1:2"),
            ("AGENTCFG_DATA", "env"),
            ("PATH", "x"),
        ]),
    )
    .unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.data, Path::new("env"));
    assert_eq!(config.status_ttl, Duration::from_secs(7));
    assert_eq!(config.cache_mb, Config::default().cache_mb);
}

#[test]
fn an_unknown_key_in_the_file_is_named_with_its_line_and_the_nearest_key() {
    let dir = tempfile::tempdir().unwrap();
    let error = from_file(dir.path(), "# hello\nlisten = '127.0.0.1:1'\nstatus-tll = 5\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown setting status-tll"), "{error}");
    assert!(error.contains("a.toml:3"), "{error}");
    assert!(error.contains("did you mean status_ttl?"), "{error}");
    let error = from_file(dir.path(), "[server]\nport = 1\n").unwrap_err().to_string();
    assert!(error.contains("unknown setting server"), "{error}");
}

#[test]
fn a_file_that_is_not_toml_is_reported_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let error = from_file(dir.path(), "listen = '127.0.0.1:1'\ndata = \n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("a.toml:2"), "{error}");
    let missing = Flags {
        config: Some(dir.path().join("none.toml")),
        ..Flags::default()
    };
    let error = Config::load(missing, []).unwrap_err().to_string();
    assert!(error.contains("none.toml"), "{error}");
}

#[test]
fn all_faults_of_all_layers_come_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.toml");
    fs::write(&path, "listen = 7420\nnope = 1\n").unwrap();
    let flags = Flags {
        config: Some(path),
        listen: Some("x".to_owned()),
        ..Flags::default()
    };
    let error = Config::load(flags, env(&[("AGENTCFG_CACHE_MB", "0")])).unwrap_err();
    assert_eq!(error.problems().len(), 4, "{error}");
    assert!(error.to_string().contains("listen ("), "{error}");
    assert!(error.to_string().contains("got 7420"), "{error}");
    assert!(
        error
            .to_string()
            .contains("AGENTCFG_CACHE_MB (environment): must be a whole number from 1 to 1048576, got \"0\"")
    );
    assert!(
        error
            .to_string()
            .contains("--listen (command line): must be an IP address and a port")
    );
}

#[test]
fn every_kind_of_value_has_its_rule() {
    for (name, value) in [
        ("LISTEN", "localhost"),
        ("DATA", ""),
        ("OPERATORS", "a,,b"),
        ("DEFAULT_PLAN", "gold"),
        ("PLAN_LIMIT_FREE", "-1"),
        ("SESSION_RATE_LIMIT", "1000001"),
        ("STATUS_TTL", "2m"),
        ("WRITE_SCOPE_CONFIGURES_AGENTS", "yes"),
        ("CORS_ORIGINS", "https://a.example/"),
        ("SESSION_SECRET", "short"),
        ("OPENAI_BASE_URL", "api.openai.com"),
        ("ANTHROPIC_BASE_URL", "https://api.example.com/?key=1"),
        ("OPENAI_API_KEY", "sk with blanks"),
        ("ANTHROPIC_API_KEY", ""),
        ("MASTER_KEYS", "short"),
        ("MODELS", "gpt-5.5"),
        ("SESSION_PROVIDER", "ldap"),
        ("OIDC_ISSUER", ""),
        ("OIDC_AUDIENCE", "a\u{7}"),
        ("OIDC_JWKS_URL", "keys"),
        ("INTROSPECTION_URL", "ftp://a.example"),
        ("INTROSPECTION_CLIENT_ID", ""),
        ("INTROSPECTION_CLIENT_SECRET", ""),
        ("USERINFO_URL", "https://user:pass@a.example/me"),
        ("USERINFO_APIKEY", "a b"),
        ("METRICS_LISTEN", "9090"),
        ("LOG", "a=b=c"),
        ("LOG_FORMAT", "xml"),
        ("MAX_CONNECTIONS", "0"),
        ("HEADER_TIMEOUT", "0"),
        ("SHUTDOWN_TIMEOUT", ""),
    ] {
        let error = fault(&[(&format!("AGENTCFG_{name}"), value)]);
        assert!(
            error.starts_with(&format!("AGENTCFG_{name} (environment): must be")),
            "{error}"
        );
    }
}

#[test]
fn lists_are_separated_by_commas() {
    let config = from_env(&[
        ("AGENTCFG_OPERATORS", "ann, bob"),
        ("AGENTCFG_CORS_ORIGINS", ""),
        ("AGENTCFG_DEFAULT_PLAN", "team"),
        ("AGENTCFG_LOG_FORMAT", "json"),
        ("AGENTCFG_METRICS_LISTEN", "127.0.0.1:9"),
        ("AGENTCFG_COMPRESSION", "false"),
    ])
    .unwrap();
    assert_eq!(config.operators, ["ann", "bob"]);
    assert!(config.cors_origins.is_empty());
    for of_a_file in [r#"["ann", "bob"]"#, "[ 'ann' ]"] {
        let message = fault(&[("AGENTCFG_OPERATORS", of_a_file)]);
        assert!(message.contains("without brackets and quotes, got "), "{message}");
    }
    assert_eq!(config.default_plan, Plan::Team);
    assert_eq!(config.log_format, LogFormat::Json);
    assert_eq!(config.metrics_listen.unwrap().port(), 9);
    assert!(!config.compression && Config::default().compression);
    assert!(fault(&[("AGENTCFG_COMPRESSION", "gzip")]).contains("true or false"));
    let config = from_env(&[
        ("AGENTCFG_OIDC_REQUIRED_CLAIMS", "groups=a=b, email_verified=true"),
        ("AGENTCFG_WORKSPACE_CREATION", "operators"),
    ])
    .unwrap();
    let claims: Vec<_> = config.oidc_required_claims.iter().map(ToString::to_string).collect();
    assert_eq!(claims, ["groups=a=b", "email_verified=true"]);
    assert_eq!(config.workspace_creation, WorkspaceCreation::Operators);
    assert!(fault(&[("AGENTCFG_OIDC_REQUIRED_CLAIMS", "groups")]).contains("groups=staff"));
    assert!(fault(&[("AGENTCFG_WORKSPACE_CREATION", "owners")]).contains("one of anyone, operators"));
    // One of a list that breaks the rule is named.
    let origins = fault(&[("AGENTCFG_CORS_ORIGINS", "https://a.example, b.example")]);
    assert!(origins.ends_with("got \"b.example\""), "{origins}");
    let set = |text: &str| from_env(&[("AGENTCFG_CORS_ORIGINS", text)]).map(|config| config.cors_origins);
    let good = set("https://a.example:443,http://[::1]:80,http://b.example:443").unwrap();
    let expected = ["https://a.example", "http://[::1]", "http://b.example:443"];
    assert_eq!(good, expected, "as browsers send them");
    for bad in [
        "https://:",
        "https://a:99999",
        "https://a:",
        "https://",
        "https://A",
        "https://u@a",
    ] {
        assert!(set(bad).is_err(), "{bad}");
    }
}

#[test]
fn unknown_variables_are_errors_unless_kubernetes_set_them() {
    assert!(fault(&[("AGENTCFG_LISTN", "x")]).contains("did you mean AGENTCFG_LISTEN?"));
    assert!(fault(&[("AGENTCFG_listen", "x")]).contains("did you mean AGENTCFG_LISTEN?"));
    assert!(fault(&[("AGENTCFG_LISTEN_FILE", "x")]).contains("only secrets are read from files"));
    assert!(fault(&[("AGENTCFG_", "x")]).contains("unknown environment variable AGENTCFG_"));
    assert!(fault(&[("AGENTCFG_PORT_X_TCP", "x")]).contains("unknown"));
    let links = [
        ("AGENTCFG_SERVICE_HOST", "10.0.0.1"),
        ("AGENTCFG_SERVICE_PORT", "7420"),
        ("AGENTCFG_SERVICE_PORT_HTTP", "7420"),
        ("AGENTCFG_PORT", "tcp://10.0.0.1:7420"),
        ("AGENTCFG_PORT_7420_TCP", "tcp://10.0.0.1:7420"),
        ("AGENTCFG_PORT_7420_TCP_PROTO", "tcp"),
        ("AGENTCFG_PORT_7420_TCP_PORT", "7420"),
        ("AGENTCFG_PORT_7420_TCP_ADDR", "10.0.0.1"),
        ("AGENTCFG_PORT_53_UDP_ADDR", "10.0.0.1"),
        ("AGENTCFG_SERVER_SERVICE_HOST", "10.0.0.1"),
        ("AGENTCFG_SERVER_SERVICE_PORT_HTTP", "1"),
        ("AGENTCFG_SERVER_PORT_7420_TCP_ADDR", "10.0.0.1"),
    ];
    assert_eq!(from_env(&links).unwrap(), Config::default());
}

#[test]
fn a_secret_may_come_from_a_file_and_never_shows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let long = "0123456789abcdef0123456789abcdef";
    fs::write(&path, format!("{long}\n")).unwrap();
    let file = path.to_str().unwrap();
    let config = from_env(&[("AGENTCFG_SESSION_SECRET_FILE", file)]).unwrap();
    assert_eq!(config.session_secret.as_ref().unwrap().expose(), long);
    assert!(!format!("{config:?}").contains(long));

    let error = fault(&[
        ("AGENTCFG_SESSION_SECRET_FILE", file),
        ("AGENTCFG_SESSION_SECRET", long),
    ]);
    assert!(error.contains("both set"), "{error}");
    let error = fault(&[("AGENTCFG_SESSION_SECRET", "hunter2")]);
    assert!(
        error.contains("at least 32 bytes") && !error.contains("hunter2"),
        "{error}"
    );
    let error = fault(&[("AGENTCFG_SESSION_SECRET_FILE", "/nonexistent/s")]);
    assert!(error.contains("/nonexistent/s"), "{error}");
}

#[test]
fn toml_values_keep_their_types() {
    let dir = tempfile::tempdir().unwrap();
    let config = from_file(
        dir.path(),
        "operators = ['a']\nmax_connections = 1_000\ncache_mb = 0x10\n",
    )
    .unwrap();
    assert_eq!((config.max_connections, config.cache_mb), (1000, 16));
    assert_eq!(config.operators, ["a"]);
    for members in [
        "'http://etcd-1:2379,http://etcd-2:2379'",
        "['http://etcd-1:2379', 'http://etcd-2:2379']",
    ] {
        let config = from_file(dir.path(), &format!("etcd_endpoints = {members}\n")).unwrap();
        assert_eq!(
            config.etcd_endpoints.as_deref(),
            Some("http://etcd-1:2379,http://etcd-2:2379")
        );
    }
    for bad in [
        "etcd_endpoints = [1]",
        "etcd_endpoints = ['']",
        "operators = 'a'",
        "operators = [1]",
        "operators = ['group:staff']",
        "cache_mb = '1'",
        "cache_mb = 1.5",
        "log = true",
        "status_ttl = -1",
    ] {
        let error = from_file(dir.path(), bad).unwrap_err().to_string();
        assert!(error.contains("must be"), "{bad}: {error}");
    }
}

#[test]
fn keys_of_providers_and_master_keys_never_show() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = ("ab".repeat(32), "cd".repeat(32));
    let path = dir.path().join("keys");
    fs::write(&path, format!("{first}\n{second}\n")).unwrap();
    let config = from_env(&[
        ("AGENTCFG_MASTER_KEYS_FILE", path.to_str().unwrap()),
        ("AGENTCFG_OPENAI_API_KEY", "sk-canary"),
    ])
    .unwrap();
    let listed: Vec<&str> = config.master_keys.iter().map(Secret::expose).collect();
    assert_eq!(listed, [&first, &second]);
    assert_eq!(config.openai_api_key.as_ref().unwrap().expose(), "sk-canary");
    let shown = format!("{config:?}");
    assert!(!shown.contains("abab") && !shown.contains("canary"), "{shown}");

    fs::write(
        &path,
        format!("# As in a data directory.\n  # {first}\n{first}\n{second}\n"),
    )
    .unwrap();
    let commented = from_env(&[("AGENTCFG_MASTER_KEYS_FILE", path.to_str().unwrap())]).unwrap();
    assert_eq!(commented.master_keys, config.master_keys);

    let commas = from_env(&[("AGENTCFG_MASTER_KEYS", &format!("{first},{second}"))]).unwrap();
    assert_eq!(commas.master_keys, config.master_keys);
    assert!(
        from_file(dir.path(), "master_keys = []")
            .unwrap()
            .master_keys
            .is_empty()
    );
    assert!(fault(&[("AGENTCFG_MASTER_KEYS", ", ,")]).contains("at least one key"));
    for bad in [format!("{first},{first}"), format!("{first},{}", &second[1..])] {
        let error = fault(&[("AGENTCFG_MASTER_KEYS", &bad)]);
        assert!(error.contains("none twice") && !error.contains("cdcd"), "{error}");
    }
    let error = fault(&[("AGENTCFG_OPENAI_API_KEY", "sk-canary\u{e9}")]);
    assert!(!error.contains("canary"), "{error}");
}

#[test]
fn links_name_an_address_that_a_browser_can_open() {
    let config = Config::default();
    for (listen, url) in [
        ("127.0.0.1:7420", "http://127.0.0.1:7420"),
        ("192.0.2.7:7420", "http://192.0.2.7:7420"),
        ("0.0.0.0:7420", "http://127.0.0.1:7420"),
        ("[::]:7420", "http://[::1]:7420"),
    ] {
        assert_eq!(config.base_url(listen.parse().unwrap()), url);
    }
}

#[test]
fn an_empty_secret_is_refused_in_a_variable_and_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    let file = path.to_str().unwrap();
    for setting in SETTINGS.iter().filter(|setting| setting.secret) {
        // Tables of secrets do not come from the environment.
        if setting.name == "provider_api_keys" {
            continue;
        }
        let variable = setting.env();
        for empty in ["", " \n"] {
            let error = fault(&[(&variable, empty)]);
            assert!(
                error.starts_with(&format!("{variable} (environment): must be the secret, and is empty")),
                "{error}"
            );
            fs::write(&path, empty).unwrap();
            let error = fault(&[(&format!("{variable}_FILE"), file)]);
            assert!(
                error.starts_with(&format!("{variable}_FILE (file {file}): must be the secret")),
                "{error}"
            );
        }
    }
    fs::write(&path, "# no key\n").unwrap();
    let error = fault(&[("AGENTCFG_MASTER_KEYS_FILE", file)]);
    assert!(error.contains("at least one key"), "{error}");
}

#[test]
fn a_path_with_a_tilde_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["data", "tls_cert", "tls_key", "etcd_tls_ca", "outbound_ca_file"] {
        let variable = format!("AGENTCFG_{}", name.to_ascii_uppercase());
        for path in ["~", "~/a", "~ada/a"] {
            let error = fault(&[(&variable, path)]);
            assert!(
                error.contains(&format!("{variable} (environment): must be the whole path")),
                "{error}"
            );
            let error = from_file(dir.path(), &format!("{name} = {path:?}"))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("must be the whole path") && error.contains(path),
                "{error}"
            );
        }
    }
    assert_eq!(from_env(&[("AGENTCFG_DATA", "./~a")]).unwrap().data, Path::new("./~a"));
    let error = fault(&[("AGENTCFG_SESSION_SECRET_FILE", "~/secret")]);
    assert!(
        error.contains("AGENTCFG_SESSION_SECRET_FILE") && error.contains("whole path"),
        "{error}"
    );
    for flags in [
        Flags {
            data: Some("~/data".into()),
            ..Flags::default()
        },
        Flags {
            config: Some("~/a.toml".into()),
            ..Flags::default()
        },
    ] {
        let error = Config::load(flags, []).unwrap_err().to_string();
        assert!(error.starts_with("--") && error.contains("whole path"), "{error}");
    }
}
