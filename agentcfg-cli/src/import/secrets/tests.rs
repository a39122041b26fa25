//! What is refused as a literal secret, and what is not.

use super::*;

#[test]
fn literals_are_found_and_references_are_not() {
    for (key, text) in [
        ("url", "https://user:pass@example.com/mcp"),
        ("url", "https://example.com/mcp?api_key=abcdef123"),
        ("note", "ghp_0123456789abcdef0123"),
        ("url", "https://x.example.com/?sig=aBcD1234efGH5678ijKL"),
        ("url", "https://mcp.zapier.com/api/mcp/s/aBcD1234efGH5678/mcp"),
        ("note", "Server=x;User Id=sa;Password=hunter2abc;"),
        ("note", "host=db dbname=desk password=hunter"),
    ] {
        assert_eq!(secrets(&[Entry::new(key, Node::text(text))], &[]).len(), 1, "{text}");
    }
    for text in [
        "https://${USER}:${PASS}@example.com",
        "https://example.com/mcp",
        "sk-",
        "You ask for a token.",
        "Server=x;User Id=sa;Password=${PASSWORD};",
        "password=hunter",
        "host={host} password={password}",
        "user=required password=required",
        "https://contoso2024@dev.example.com/contoso2024/_git/x",
        "https://deploy@x.example.com/",
    ] {
        assert!(
            secrets(&[Entry::new("url", Node::text(text))], &[]).is_empty(),
            "{text}"
        );
    }
    let in_env = |key: &str, text: &str| {
        let env = Node::map(vec![Entry::new(key, Node::text(text))]);
        secrets(&[Entry::new("env", env)], &[]).len()
    };
    assert_eq!(in_env("DESK_TOKEN", "plain-literal"), 1);
    assert_eq!(in_env("DESK_TOKEN", "${DESK_TOKEN}"), 0);
    assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-hunter2}"), 1);
    assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-}"), 0);
    assert_eq!(in_env("DB_PASSWORD", "${DB_PASSWORD:-${OTHER}}"), 0);
    assert_eq!(in_env("DB_HOST", "${DB_HOST:-localhost}"), 0);
    assert_eq!(in_env("DB_PASSWORD", "pw"), 1);
    assert_eq!(in_env("PASSPHRASE", "correct-horse-battery"), 1);
    assert_eq!(in_env("X_SECRET", "prefix ${A} hunter2secret"), 1);
    assert_eq!(in_env("X_SECRET", "Bearer ${A} v2"), 0);
    let signed = "AWS4-HMAC-SHA256 Credential=${KEY}/20261101/eu/s3/aws4_request, Signature=${SIGNATURE}";
    assert_eq!(in_env("Authorization", signed), 0);
    assert_eq!(in_env("DB_PASSWORD", "correct horse"), 1);
    assert_eq!(in_env("Authorization", "Bearer abc"), 1);
    assert_eq!(in_env("COOKIE_SECURE", "true"), 0);
    assert_eq!(in_env("LOG_LEVEL", "debugging"), 0);
    assert_eq!(in_env("Authorization", "Bearer abcdefgh"), 1);
    assert_eq!(in_env("Authorization", "Bearer $DESK_TOKEN"), 0);
    assert_eq!(in_env("DESK_API_KEY", "COPILOT_MCP_DESK_API_KEY"), 0);
    assert_eq!(in_env("MODEL", "claude-sonnet-5-20260101"), 0);
    assert_eq!(in_env("DESK", "9f8a7b6c5d4e3f2a1b0c9d8e"), 1);
    let args = |args: &[&str]| {
        let args = Node::list(args.iter().map(|arg| Node::text(*arg)).collect());
        secrets(&[Entry::new("args", args)], &[]).len()
    };
    assert_eq!(args(&["--token", "abcdefgh"]), 1);
    assert_eq!(args(&["--token=abcdefgh", "--port=8080"]), 1);
    assert_eq!(args(&["--token", "${TOKEN}", "--verbose", "x"]), 0);
    let ghp = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for secret in [
        vec!["--header", "Authorization: Bearer Tr0ub4dor"],
        vec!["--header=Authorization: Bearer abcdefgh"],
        vec!["-H", "X-Api-Key:abcdefgh12"],
        vec!["-HX-Api-Key: abcdefgh12"],
        vec!["-e", "DESK_TOKEN=abcdefgh"],
        vec!["-eDESK_TOKEN=abcdefgh"],
        vec!["DESK_PASSWORD=abcdefgh"],
        vec![&format!("Authorization: Bearer {ghp}")],
        vec!["--endpoint", &format!("https://example.com/s/{ghp}/mcp")],
    ] {
        assert_eq!(args(&secret), 1, "{secret:?}");
    }
    for plain in [
        vec!["--header", "Authorization: Bearer ${TOKEN}"],
        vec!["--header=Accept: application/json", "-H", "X-Api-Key: ${env:KEY}"],
        vec!["-e", "DESK_TOKEN", "-e", "LOG_LEVEL=info", "--env=REGION=eu-west-1"],
        vec!["--sort-key", "created_at", "run", "https://example.com:8080/a"],
    ] {
        assert_eq!(args(&plain), 0, "{plain:?}");
    }
    let command = |line: &str| secrets(&[Entry::new("command", Node::text(line))], &[]).len();
    assert_eq!(command("x --token Tr0ub4dor"), 1);
    assert_eq!(
        command("curl -H 'Authorization: Bearer abcdefgh' https://example.com"),
        1
    );
    assert_eq!(command(&format!("x {ghp}")), 1);
    assert_eq!(command("npx -y @desk/mcp --token $TOKEN --port 8080"), 0);
    assert_eq!(
        command(r#"node -e "let d='';process.stdin.on('data',c=>d+=c&&d[0])""#),
        0
    );
    assert_eq!(in_env("X-Key", "Tr0ub4dor&3xyz"), 1);
    assert_eq!(in_env("K", "Tr0ub4dor&3xyz"), 1);
    assert_eq!(in_env("SORT_KEY", "created_at"), 0);
    for reference in ["${X:-d}", "${X:-changeme}", "${input:x}", "${env:X}", "%X%"] {
        assert_eq!(in_env("API_KEY", reference), 0, "{reference}");
    }
    assert_eq!(in_env("API_KEY", &format!("${{X:-{ghp}}}")), 1);
    for token in [
        "xoxb-1234567890-abcdefghijkl",
        "AKIAIOSFODNN7EXAMPLE",
        "glpat-abcdefghij0123456789",
        "sk-ant-api03-abcdefgh",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop",
    ] {
        assert_eq!(in_env("FOO", &format!("a {token}")), 1, "{token}");
    }
    let setting = |key: &str, text: &str| secrets(&[Entry::new(key, Node::text(text))], &[]).len();
    assert_eq!(setting("tokenizer", "cl100k_base_of_models"), 0);
    assert_eq!(setting("authorization", "always"), 0);
    assert_eq!(setting("authorization", "abcdef0123456"), 1);
}

/// A value among the variables of a program.
fn is_refused(map: &str, key: &str, value: Node) -> bool {
    !secrets(&[Entry::new(map, Node::map(vec![Entry::new(key, value)]))], &[]).is_empty()
}

#[test]
fn secrets_in_other_forms_are_found() {
    let hex = "0123456789abcdef0123456789abcdef";
    for (key, text) in [
        ("PRIVATE", "-----BEGIN RSA PRIVATE KEY-----\nMIIE"),
        ("DB_PASS", "hunter2"),
        ("DB_PWD", "hunter2"),
        ("GITHUB_PAT", "hunter2"),
        ("PASSWORD", "$uperS3cret!"),
        ("PASSWORD", "${hunter2"),
        ("PASSWORD", "supersecret${}"),
        ("CONFIG", r#"{"apiKey": "hunter2hunter2x"}"#),
        ("FOO", "ghp_abcdefghijklmnopqrst"),
        ("SECRET_KEY", "A1B2_C3D4E5F6G7H8"),
        ("Authorization", "Bearer hunter2${X}"),
        ("X-Auth", "Basic dXNlcjpwYXNz"),
        ("DSN", &format!("https://{hex}@sentry.io/1")),
        ("CALLBACK", "https://example.com/#access_token=abcdef123456"),
        ("HOOK", "https://hooks.slack.com/services/T0000/B0000/XXXXabcd1234"),
    ] {
        assert!(is_refused("env", key, Node::text(text)), "{key}: {text}");
    }
    let number = Node::at(Place::START, Value::Number("12345678".to_owned()));
    assert!(is_refused("env", "PASSWORD", number));
    assert!(is_refused("Headers", "X-Key", Node::text("hunter2-hunter2-hunter2")));
    assert!(is_refused("oauth", "clientSecret", Node::text("correcthorsebattery")));
    assert!(is_refused("model", "apiKey", Node::text("correcthorsebattery")));
    let typed = vec![
        Entry::new("type", Node::text("secret")),
        Entry::new("token", Node::text("abcdef123456")),
    ];
    assert!(is_refused("settings", "one", Node::map(typed)));
    let list = |key: &str, items: &[&str]| {
        let items = items.iter().map(|item| Node::text(*item)).collect();
        secrets(&[Entry::new(key, Node::list(items))], &[]).len()
    };
    assert_eq!(list("env", &["API_TOKEN=abcdef123456", "REGION=eu"]), 1);
    assert_eq!(list("args", &["-u", "admin:hunter2abc"]), 1);
    assert_eq!(list("args", &["--user=admin:hunter2abc"]), 1);
    assert_eq!(
        list(
            "args",
            &["-u", "1000:1000", "--user", "root:root", "-u", "admin:${PASSWORD}"]
        ),
        0
    );
    let line = Entry::new("command", Node::text("curl -u admin:hunter2abc https://example.com"));
    assert_eq!(secrets(&[line], &[]).len(), 1);
}

#[test]
fn settings_that_look_like_secrets_are_not_refused() {
    let hex = "0123456789abcdef0123456789abcdef";
    for (key, text) in [
        ("PROJECT_ID", hex),
        ("GIT_SHA", hex),
        ("TOKEN_BUDGET", "100000"),
        ("TOKEN_TIMEOUT", "3600"),
        ("SECRET_PROVIDER", "vault"),
        ("PASSWORD", "changeme"),
        ("PASSWORD_POLICY", "strong"),
        ("CONFIG", r#"{"apiKey": "${KEY}"}"#),
        ("API_KEY", "your-api-key"),
        ("API_KEY", "[YOUR_KEY]"),
        ("API_KEY", "insert-your-key"),
        ("API_KEY", "sk-..."),
        ("API_KEY", "sk-your-key"),
        ("BOT_TOKEN", "xoxb-your-bot-token"),
        ("GITHUB_TOKEN", "ghp_xxxxxxxxxxxxxxxxxxxx"),
        ("TOKEN", "op://vault/item/field1"),
        ("TOKEN", "env:API_KEY_2"),
        ("API_KEY", "K8S_AUTH0_OAUTH2_KEY"),
        ("Authorization", "token ${GITHUB_TOKEN}"),
        ("Authorization", "Bearer {{token}}"),
        ("Authorization", "Basic ${A:-${B}}"),
        ("URL", "https://git@example.com/x#section-1"),
        ("BYPASS", "on"),
    ] {
        assert!(!is_refused("env", key, Node::text(text)), "{key}: {text}");
    }
    let number = Node::at(Place::START, Value::Number("100000".to_owned()));
    assert!(!is_refused("env", "TOKEN_BUDGET", number));
    for name in ["hf_transformers_2_run", "sk-learn-pipeline-v2"] {
        let tools = Node::list(vec![Node::text(name)]);
        assert!(secrets(&[Entry::new("tools", tools)], &[]).is_empty(), "{name}");
    }
    let node = vec![
        Entry::new("lc", Node::at(Place::START, Value::Number("1".to_owned()))),
        Entry::new("type", Node::text("secret")),
        Entry::new("id", Node::list(vec![Node::text("OPENAI_API_KEY")])),
    ];
    assert!(!is_refused("kwargs", "api_key", Node::map(node)));
}

#[test]
fn names_that_credentials_often_have_are_searched() {
    for key in [
        "auth",
        "jwt",
        "bearer",
        "session",
        "accesskey",
        "key",
        "connection_string",
        "auth_header",
        "x-auth",
        "x-session",
        "session-id",
        "PROXY_AUTH",
    ] {
        for map in ["env", "headers", "http_headers"] {
            for value in ["hunter2secret", "s3cr3t-hunter2", "Bearer hunter2secret"] {
                assert!(is_refused(map, key, Node::text(value)), "{map}.{key}: {value}");
            }
            for value in ["${X}", "Bearer ${X}", "none", "oauth2", "<your-key>"] {
                assert!(!is_refused(map, key, Node::text(value)), "{map}.{key}: {value}");
            }
            assert!(!is_refused("settings", key, Node::text("hunter2secret")), "{key}");
        }
    }
    for (key, value) in [
        ("SESSION", "build-session-2026"),
        ("AUTH", "https://x.example.com/v2abc"),
        ("SESSION_NAME", "build2026session"),
        ("KEY", "ctrl+shift+p"),
        ("AUTH", "github-oauth"),
        ("AUTH_HEADER", "X-Api-Key"),
        ("JWT_ISSUER", "https://x.example.com"),
        ("CONNECTION_STRING", "Server=localhost;Database=desk2026"),
        ("CODE", "status2026ok"),
    ] {
        assert!(!is_refused("env", key, Node::text(value)), "{key}: {value}");
    }
    let helper = |text: &str| !secrets(&[Entry::new("headersHelper", Node::text(text))], &[]).is_empty();
    assert!(helper(
        "curl -H 'Authorization: Bearer hunter2secret' https://x.example.com"
    ));
    assert!(helper("/opt/bin/headers.sh --token hunter2secret"));
    assert!(!helper("/opt/bin/headers.sh --token ${TOKEN}"));
    let url = |query: &str| {
        let url = format!("https://x.example.com/mcp?{query}");
        !secrets(&[Entry::new("url", Node::text(url))], &[]).is_empty()
    };
    for name in ["auth", "accessKey", "jwt", "bearer", "code", "session", "session_id"] {
        assert!(url(&format!("a=b&{name}=hunter2secret")), "{name}");
        assert!(
            !url(&format!("{name}=${{X}}")) && !url(&format!("{name}=200")),
            "{name}"
        );
    }
    for query in [
        "code=en-US",
        "session=main-session",
        "auth=google",
        "id=a1b2c3d4e5f6",
        "page=abc12345",
    ] {
        assert!(!url(query), "{query}");
    }
}
