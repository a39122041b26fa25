//! Where spans are sent, by the settings or by the standard variables of OpenTelemetry.

use std::collections::BTreeMap;
use std::ffi::OsString;

use hyper::Uri;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use percent_encoding::percent_decode_str;

use super::choices::OtlpProtocol;
use super::value::Value;
use crate::identity::is_plain_url;
use crate::secret::Secret;

/// What is appended to `otlp_endpoint`.
const PATH: &str = "/v1/traces";

/// What the standard variables say that has no setting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Otel {
    /// The whole address of the collector for spans.
    pub(super) traces_url: Option<Uri>,
    /// What the deployment says of this server: names and values.
    pub(super) resource: Vec<(String, String)>,
}

/// Where spans are sent, and what they are of.
#[derive(Debug, Clone)]
pub struct Tracing {
    /// The whole address.
    pub url: Uri,
    /// The header fields of each request.
    pub fields: HeaderMap,
    /// What the deployment says of this server: names and values.
    pub resource: Vec<(String, String)>,
}

impl Tracing {
    /// Where spans are sent, if they are: by the setting, else by the standard variables.
    pub(super) fn of(endpoint: Option<&Uri>, headers: Option<&Secret>, otel: &Otel) -> Option<Self> {
        let url = match (endpoint, &otel.traces_url) {
            (Some(endpoint), _) => {
                let endpoint = endpoint.to_string();
                format!("{}{PATH}", endpoint.trim_end_matches('/')).parse().ok()?
            }
            (None, Some(url)) => url.clone(),
            (None, None) => return None,
        };
        let fields = headers.and_then(|text| fields(text.expose()));
        Some(Self {
            url,
            fields: fields.unwrap_or_default(),
            resource: otel.resource.clone(),
        })
    }
}

/// The address of a collector, to which a path is appended.
pub(super) fn endpoint(value: &Value<'_>) -> Result<Option<Uri>, String> {
    const RULE: &str = "the address of an OpenTelemetry collector such as http://collector:4318, without credentials, query and \
                        fragment, and without /v1/traces at the end, which is appended";
    let text = value.text(RULE, |text| {
        is_plain_url(text) && !text.contains('?') && !text.trim_end_matches('/').ends_with(PATH)
    })?;
    Ok(text.parse().ok())
}

/// The whole address of a collector.
pub(super) fn traces_url(value: &Value<'_>) -> Result<Option<Uri>, String> {
    let text = value.text("an http or https URL without credentials and fragment", is_plain_url)?;
    Ok(text.parse().ok())
}

/// Header fields as the standard variables have them.
pub(super) fn headers(value: &Value<'_>) -> Result<Option<Secret>, String> {
    const RULE: &str = "header fields such as authorization=Bearer%20token,x-tenant=7, without those of the connection";
    let text = value.text(RULE, |text| fields(text).is_some())?;
    Ok(Some(Secret::new(text)))
}

pub(super) fn protocol(value: &Value<'_>) -> Result<Option<OtlpProtocol>, String> {
    let choice = value.choice(&[("http/protobuf", OtlpProtocol::HttpProtobuf)]);
    choice.map(Some).map_err(|fault| {
        format!("{fault}; gRPC and JSON are not supported: give otlp_endpoint the port of the collector for HTTP, usually 4318")
    })
}

/// The header fields of a text: names and values with `=` between them, separated by commas, values percent-encoded.
fn fields(text: &str) -> Option<HeaderMap> {
    const OF_THE_CONNECTION: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];
    let mut fields = HeaderMap::new();
    for (name, value) in pairs(text)? {
        let name: HeaderName = name.parse().ok()?;
        let mut value = HeaderValue::from_str(&value).ok()?;
        if OF_THE_CONNECTION.contains(&name) {
            return None;
        }
        value.set_sensitive(true);
        fields.append(name, value);
    }
    Some(fields)
}

/// Names and values with `=` between them, separated by commas. Values are percent-encoded.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let name = name.trim();
            (!name.is_empty()).then(|| (name.to_owned(), value.into_owned()))
        })
        .collect()
}

/// The variables of OpenTelemetry. An empty one counts as absent.
pub(super) struct StandardVariables(BTreeMap<String, String>);

impl StandardVariables {
    /// The variables of an environment.
    pub(super) fn of(env: &[(OsString, OsString)]) -> Self {
        let text = |(name, value): &(OsString, OsString)| {
            let name = name.to_str().filter(|name| name.starts_with("OTEL_"))?;
            let value = value.to_str().map(str::trim).filter(|value| !value.is_empty())?;
            Some((name.to_owned(), value.to_owned()))
        };
        Self(env.iter().filter_map(text).collect())
    }

    /// The first of these that is there: its name and its value.
    pub(super) fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| Some((*name, self.0.get(*name)?.as_str())))
    }

    /// Whether they turn spans off.
    pub(super) fn are_off(&self) -> bool {
        let is = |name: &str, word: &str| self.0.get(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
        is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none")
    }

    /// What the deployment says of this server.
    ///
    /// # Errors
    ///
    /// The name of a variable that has another form.
    pub(super) fn resource(&self) -> Result<Vec<(String, String)>, &'static str> {
        let attributes = "OTEL_RESOURCE_ATTRIBUTES";
        let mut resource = match self.first(&[attributes]) {
            Some((name, text)) => pairs(text).ok_or(name)?,
            None => Vec::new(),
        };
        if let Some((_, name)) = self.first(&["OTEL_SERVICE_NAME"]) {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".to_owned(), name.to_owned()));
        }
        Ok(resource)
    }
}
