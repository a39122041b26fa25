use super::*;
use crate::process::config::{Flags, Tracing};

fn loaded(env: &[(&str, &str)]) -> Result<Config, String> {
    let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    Config::load(Flags::default(), env).map_err(|error| error.to_string())
}

fn tracing(env: &[(&str, &str)]) -> Option<Tracing> {
    loaded(env).unwrap().tracing()
}

fn url(env: &[(&str, &str)]) -> Option<String> {
    tracing(env).map(|tracing| tracing.url.to_string())
}

const ENDPOINT: &str = "AGENTCFG_OTLP_ENDPOINT";

#[test]
fn spans_go_to_the_endpoint_of_the_settings_else_of_the_standard_variables() {
    assert_eq!(url(&[]), None);
    for endpoint in ["http://collector:4318", "http://collector:4318/"] {
        assert_eq!(url(&[(ENDPOINT, endpoint)]).unwrap(), "http://collector:4318/v1/traces");
    }
    assert_eq!(
        url(&[(ENDPOINT, "https://otel.example.com/otlp")]).unwrap(),
        "https://otel.example.com/otlp/v1/traces"
    );
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base:4318");
    let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://whole:4318/spans");
    assert_eq!(url(&[base]).unwrap(), "http://base:4318/v1/traces");
    assert_eq!(url(&[base, whole]).unwrap(), "http://whole:4318/spans");
    assert_eq!(
        url(&[base, whole, (ENDPOINT, "http://own:4318")]).unwrap(),
        "http://own:4318/v1/traces"
    );
    assert_eq!(url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), None);
    assert_eq!(url(&[base, ("OTEL_SDK_DISABLED", "true")]), None);
    assert_eq!(url(&[base, ("OTEL_TRACES_EXPORTER", "none")]), None);
}

#[test]
fn header_fields_and_the_resource_are_read() {
    let base = (ENDPOINT, "http://collector:4318");
    let own = ("AGENTCFG_OTLP_HEADERS", "authorization=Bearer%20a%3Db, x-tenant=7=8");
    let standard = ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=9");
    let fields = tracing(&[base, own, standard]).unwrap().fields;
    assert_eq!(
        (&fields["authorization"], &fields["x-tenant"]),
        (&"Bearer a=b".parse().unwrap(), &"7=8".parse().unwrap())
    );
    assert!(fields["authorization"].is_sensitive());
    assert_eq!(tracing(&[base, standard]).unwrap().fields["x-tenant"], "9");

    let attributes = (
        "OTEL_RESOURCE_ATTRIBUTES",
        "service.name=a,deployment.environment.name=test%2C1",
    );
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = pair("deployment.environment.name", "test,1");
    let resource = |env: &[(&str, &str)]| tracing(env).unwrap().resource;
    assert_eq!(
        resource(&[base, attributes]),
        [pair("service.name", "a"), environment.clone()]
    );
    assert_eq!(
        resource(&[base, attributes, ("OTEL_SERVICE_NAME", "b")]),
        [environment, pair("service.name", "b")]
    );
    let doubtful = loaded(&[base, ("OTEL_RESOURCE_ATTRIBUTES", "no pair")]).unwrap();
    assert!(
        doubtful.warnings[0].starts_with("OTEL_RESOURCE_ATTRIBUTES is not used"),
        "{:?}",
        doubtful.warnings
    );
}

#[test]
fn what_cannot_be_used_is_refused_by_its_name() {
    let base = (ENDPOINT, "http://collector:4318");
    for (name, value, words) in [
        (
            ENDPOINT,
            "collector:4318",
            "must be the address of an OpenTelemetry collector",
        ),
        (
            ENDPOINT,
            "http://collector:4318/v1/traces",
            "without /v1/traces at the end",
        ),
        (ENDPOINT, "http://collector:4318/?a=b", "without credentials, query"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "grpc://collector:4317",
            "must be the address",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "nonsense",
            "must be an http or https URL",
        ),
        (
            "AGENTCFG_OTLP_PROTOCOL",
            "grpc",
            "must be one of http/protobuf, got \"grpc\"; gRPC and JSON are not supported",
        ),
        ("AGENTCFG_OTLP_HEADERS", "canary", "must be header fields such as"),
        ("AGENTCFG_OTLP_HEADERS", "host=canary", "must be header fields such as"),
    ] {
        let error = loaded(&[(name, value)]).unwrap_err();
        assert!(error.contains(name) && error.contains(words), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "nonsense"),
    ] {
        let error = loaded(&[base, (name, value)]).unwrap_err();
        assert!(error.contains(name), "{error}");
        // Nothing is refused where nothing is sent.
        assert!(loaded(&[(name, value)]).is_ok());
    }
    let both = [
        base,
        ("AGENTCFG_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    assert!(loaded(&both).is_ok(), "the setting wins");
    let unused = loaded(&[("AGENTCFG_OTLP_HEADERS", "a=b")]).unwrap();
    assert_eq!(unused.warnings, ["otlp_headers is not used: otlp_endpoint is not set"]);
}
