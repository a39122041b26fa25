//! The header fields that are forwarded to the provider and back.
//!
//! Both are allow-lists. A field on neither list is dropped: credentials of any kind, cookies, the accounts
//! that a call is billed to, and whatever belongs to one connection alone.

use agentcfg_core::model::{CredentialHeader, ProviderApi};
use agentcfg_core::secret::ProviderCredential;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use memchr::memmem;
use percent_encoding::percent_decode;

use crate::http::response::ACCEL_BUFFERING;

const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const API_KEY: HeaderName = HeaderName::from_static("api-key");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PROVIDER_REQUEST_ID: HeaderName = HeaderName::from_static("x-provider-request-id");

/// The version of Anthropic's API for callers that ask for none. It is required there.
const DEFAULT_ANTHROPIC_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// The `User-Agent` of callers that send none. Some providers refuse calls without one.
const DEFAULT_USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("agentcfg/", env!("CARGO_PKG_VERSION")));

/// The fields that are forwarded to the provider when the caller sends them.
///
/// `accept-encoding` is among them because `content-encoding` comes back. `openai-organization` and `openai-project`
/// are not: they say who pays, which is for the owner of the credential to decide.
const TO_PROVIDER: [HeaderName; 9] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_TYPE,
    header::USER_AGENT,
    ANTHROPIC_VERSION,
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
    IDEMPOTENCY_KEY,
    HeaderName::from_static("x-client-request-id"),
];

/// The fields of the response that are forwarded under their own name.
const FROM_PROVIDER: [HeaderName; 12] = [
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::LOCATION,
    header::RETRY_AFTER,
    HeaderName::from_static("openai-processing-ms"),
    HeaderName::from_static("openai-version"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-should-retry"),
];

/// Capacity for the fields of a typical answer, with rate figures of both sides.
const TYPICAL: usize = 12;

/// The prefix of Anthropic's rate figures, which are forwarded under [`PROVIDER_RATE`].
const ANTHROPIC_RATE: &str = "anthropic-ratelimit-";
/// The prefix of OpenAI's rate figures, which are forwarded in the same way: this service uses that prefix for its own.
const RATE: &str = "x-ratelimit-";
const PROVIDER_RATE: &str = "x-provider-ratelimit-";

/// The header fields of a request to a provider.
///
/// # Errors
///
/// When the credential cannot be sent in a header field, which no credential that was saved is.
pub fn to_provider(
    sent: &HeaderMap,
    api: ProviderApi,
    credential_header: CredentialHeader,
    credential: &ProviderCredential,
) -> Result<HeaderMap, header::InvalidHeaderValue> {
    let mut fields = HeaderMap::with_capacity(TO_PROVIDER.len() + 2);
    for name in &TO_PROVIDER {
        for value in sent.get_all(name) {
            fields.append(name, value.clone());
        }
    }
    fields.entry(header::USER_AGENT).or_insert(DEFAULT_USER_AGENT);
    if api == ProviderApi::Anthropic {
        fields.entry(ANTHROPIC_VERSION).or_insert(DEFAULT_ANTHROPIC_VERSION);
    }
    let (name, mut secret) = match credential_header {
        CredentialHeader::XApiKey => (X_API_KEY, HeaderValue::from_str(credential.expose())?),
        CredentialHeader::ApiKey => (API_KEY, HeaderValue::from_str(credential.expose())?),
        CredentialHeader::Authorization => {
            let bearer = format!("Bearer {}", credential.expose());
            (header::AUTHORIZATION, HeaderValue::from_str(&bearer)?)
        }
    };
    secret.set_sensitive(true);
    fields.insert(name, secret);
    Ok(fields)
}

/// Changes the fields of a request that is not the first attempt of its call: a provider would answer the same
/// `Idempotency-Key` with the failure of that one, or refuse it for another body.
pub fn of_another_attempt(fields: &mut HeaderMap, number: usize) {
    let Some(key) = fields.get(IDEMPOTENCY_KEY) else { return };
    let changed = [key.as_bytes(), format!("-{number}").as_bytes()].concat();
    // Digits can follow any value.
    if let Ok(changed) = HeaderValue::from_bytes(&changed) {
        fields.insert(IDEMPOTENCY_KEY, changed);
    }
}

/// The header fields of a provider's response as the caller gets them.
///
/// A field that repeats the credential of the request does not pass: the caller must not learn it, and a provider or a
/// gateway before it may echo what it was sent.
pub fn from_provider(received: &HeaderMap, credential: &ProviderCredential) -> HeaderMap {
    // With room for the fields of this service.
    let mut fields = HeaderMap::with_capacity(TYPICAL);
    // A page that a provider answers must not run in the origin of this service.
    fields.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    for (name, value) in received {
        if repeats(name, value, credential.expose()) {
            continue;
        }
        if let Some(name) = name_for_caller(name) {
            fields.append(name, value.clone());
        }
    }
    let content_type = fields.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if content_type.is_some_and(|text| text.starts_with(b"text/event-stream")) {
        // A proxy must pass each event on when it comes.
        fields.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    }
    fields
}

/// The shortest credential that is looked for: a shorter one is in texts by chance, such as `x` in `text/event-stream`,
/// and servers that check no key are given such ones.
const SHORTEST_SECRET: usize = 8;

/// Whether a field has the credential in its name or its value, as it is or percent-encoded.
fn repeats(name: &HeaderName, value: &HeaderValue, credential: &str) -> bool {
    if credential.len() < SHORTEST_SECRET {
        return false;
    }
    let contains = |text: &[u8]| memmem::find(text, credential.as_bytes()).is_some();
    // Names of fields are always in lower case here.
    let name = name.as_str();
    (name.len() >= credential.len()
        && memmem::find(name.as_bytes(), credential.to_ascii_lowercase().as_bytes()).is_some())
        || contains(value.as_bytes())
        || (value.as_bytes().contains(&b'%') && contains(&percent_decode(value.as_bytes()).collect::<Vec<_>>()))
}

fn name_for_caller(name: &HeaderName) -> Option<HeaderName> {
    if FROM_PROVIDER.contains(name) || name.as_str().starts_with(ANTHROPIC_RATE) {
        return Some(name.clone());
    }
    if *name == X_REQUEST_ID {
        return Some(PROVIDER_REQUEST_ID);
    }
    let figure = name.as_str().strip_prefix(RATE)?;
    format!("{PROVIDER_RATE}{figure}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in pairs {
            fields.append(*name, HeaderValue::from_static(value));
        }
        fields
    }

    fn credential() -> ProviderCredential {
        ProviderCredential::new("sk-provider").unwrap()
    }

    fn sent_to(sent: &HeaderMap, api: ProviderApi) -> HeaderMap {
        to_provider(sent, api, api.credential_header(), &credential()).unwrap()
    }

    #[test]
    fn only_what_is_listed_goes_out() {
        let sent = fields(&[
            ("authorization", "Bearer svc_live_mine"),
            ("x-api-key", "mine"),
            ("api-key", "mine"),
            ("proxy-authorization", "mine"),
            ("cookie", "mine"),
            ("openai-organization", "org-mine"),
            ("openai-project", "proj-mine"),
            ("host", "here"),
            ("connection", "keep-alive, x-api-key"),
            ("content-length", "2"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("upgrade", "websocket"),
            ("origin", "https://app.example.com"),
            ("referer", "https://app.example.com/secret"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-request-id", "mine"),
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("accept-encoding", "gzip"),
            ("user-agent", "sdk/1"),
            ("openai-beta", "assistants=v2"),
            ("idempotency-key", "k"),
        ]);
        let passed = fields(&[
            ("accept", "text/event-stream"),
            ("accept-encoding", "gzip"),
            ("content-type", "application/json"),
            ("user-agent", "sdk/1"),
            ("openai-beta", "assistants=v2"),
            ("idempotency-key", "k"),
            ("authorization", "Bearer sk-provider"),
        ]);
        assert_eq!(sent_to(&sent, ProviderApi::OpenAi), passed);
    }

    #[test]
    fn each_provider_gets_its_credential_as_it_wants_it() {
        let to_anthropic = sent_to(
            &fields(&[
                ("anthropic-beta", "a"),
                ("anthropic-beta", "b"),
                ("anthropic-version", "2024-01-01"),
            ]),
            ProviderApi::Anthropic,
        );
        assert_eq!(to_anthropic["x-api-key"], "sk-provider");
        assert_eq!(to_anthropic["anthropic-version"], "2024-01-01");
        assert_eq!(to_anthropic.get_all("anthropic-beta").iter().count(), 2);
        assert!(!to_anthropic.contains_key("authorization"));
        assert!(!format!("{to_anthropic:?}").contains("sk-provider"));

        let nothing = HeaderMap::new();
        let header = CredentialHeader::ApiKey;
        let to_azure = to_provider(&nothing, ProviderApi::OpenAi, header, &credential()).unwrap();
        assert_eq!(to_azure["api-key"], "sk-provider");
        assert!(!to_azure.contains_key("authorization"));
        let to_anthropic = sent_to(&nothing, ProviderApi::Anthropic);
        assert_eq!(to_anthropic["anthropic-version"], "2023-06-01");
        let to_openai = sent_to(&nothing, ProviderApi::OpenAi);
        assert!(!to_openai.contains_key("x-api-key") && !to_openai.contains_key("anthropic-version"));
        assert!(to_openai["user-agent"].to_str().unwrap().starts_with("agentcfg/"));
    }

    #[test]
    fn names_of_this_service_are_its_own() {
        let received = fields(&[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("retry-after", "7"),
            ("x-request-id", "req_1"),
            ("request-id", "req_2"),
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-reset", "1"),
            ("anthropic-ratelimit-tokens-remaining", "5"),
            ("location", "https://elsewhere.example"),
            ("set-cookie", "a=b"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("content-length", "10"),
            ("www-authenticate", "Basic"),
            ("openai-organization", "org-1"),
            ("anthropic-organization-id", "org-1"),
            ("access-control-allow-origin", "*"),
            ("alt-svc", "h3"),
            ("etag", "\"x\""),
        ]);
        let passed = fields(&[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("retry-after", "7"),
            ("x-provider-request-id", "req_1"),
            ("request-id", "req_2"),
            ("x-provider-ratelimit-limit-requests", "60"),
            ("x-provider-ratelimit-reset", "1"),
            ("anthropic-ratelimit-tokens-remaining", "5"),
            ("location", "https://elsewhere.example"),
            // Fields of this service.
            ("content-security-policy", "sandbox"),
            ("x-accel-buffering", "no"),
        ]);
        assert_eq!(from_provider(&received, &credential()), passed);
    }

    #[test]
    fn a_later_attempt_has_an_idempotency_key_of_its_own() {
        let mut sent = fields(&[("idempotency-key", "k1"), ("accept", "*/*")]);
        of_another_attempt(&mut sent, 2);
        assert_eq!(sent, fields(&[("idempotency-key", "k1-2"), ("accept", "*/*")]));
    }

    #[test]
    fn a_short_credential_takes_no_field_away() {
        let received = fields(&[("content-type", "text/event-stream"), ("retry-after", "7")]);
        let short = ProviderCredential::new("x").unwrap();
        let passed = from_provider(&received, &short);
        assert_eq!(passed["content-type"], "text/event-stream");
        assert_eq!(passed["x-accel-buffering"], "no");
        assert_eq!(passed["retry-after"], "7");
    }

    #[test]
    fn a_field_that_repeats_the_credential_does_not_pass() {
        let received = fields(&[
            ("content-type", "text/plain; key=sk-provider"),
            ("location", "https://elsewhere.example/?key=sk%2Dprovider&more"),
            ("x-request-id", "req-sk-provider-1"),
            ("request-id", "req_2"),
            ("retry-after", "sk-provider"),
            ("x-ratelimit-sk-provider", "1"),
            ("x-ratelimit-reset", "Bearer sk-provider"),
            ("cache-control", "no-store"),
            ("cache-control", "sk-provider"),
            ("openai-version", "sk-provide"),
        ]);
        let passed = fields(&[
            ("request-id", "req_2"),
            ("cache-control", "no-store"),
            ("openai-version", "sk-provide"),
            ("content-security-policy", "sandbox"),
        ]);
        assert_eq!(from_provider(&received, &credential()), passed);
    }
}
