//! The header fields of this service on the answer of a model call.

use hyper::header::{HeaderName, HeaderValue};

/// The model that the provider was asked for.
const AGENT_MODEL: HeaderName = HeaderName::from_static("agent-model");
/// How many providers were asked.
const AGENT_ATTEMPTS: HeaderName = HeaderName::from_static("agent-attempts");

/// The header fields that name the model and the number of attempts. A name that fits no header field is left out.
pub fn named(model: Option<&str>, attempts: usize) -> Vec<(HeaderName, HeaderValue)> {
    let model = model.filter(|model| model.is_ascii());
    let model = model.and_then(|model| HeaderValue::from_str(model).ok());
    model.map_or_else(Vec::new, |model| {
        vec![(AGENT_MODEL, model), (AGENT_ATTEMPTS, attempts.into())]
    })
}
