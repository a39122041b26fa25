//! The values of variables in a header field.

use agentcfg_core::model::VariableValues;
use agentcfg_core::validate::{Faults, read_json, shown};
use hyper::header::HeaderName;
use serde_json::Value;

use super::readers::{BrokenRules, refuse};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

const AGENT_VARIABLES: HeaderName = HeaderName::from_static("agent-variables");

/// The greatest length of the header field in bytes.
const MAX_BYTES: usize = 8 << 10;

/// The values of the variables of a model call.
pub struct Variables;

impl Parameter for Variables {
    type Value<'a> = Option<VariableValues>;

    const DOC: ParameterDoc = ParameterDoc::header(
        "AgentVariables",
        "Agent-Variables",
        Shape::Text,
        "The values of the variables that the agent's definition declares: a JSON object of texts in ASCII, with other \
         characters as `\\u` escapes, at most 8 KiB. A variable that is left out has its default, else it is empty; a required one \
         without either is answered with 400, and so is a name that is not declared.",
    )
    .example(r#""{\"product\":\"Boards\"}""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<VariableValues>, Failure> {
        let mut fields = request.headers.get_all(AGENT_VARIABLES).iter();
        let Some(field) = fields.next() else {
            return Ok(None);
        };
        if fields.next().is_some() {
            refuse(&Self::DOC, "must not be there more than once", faults);
            return Ok(None);
        }
        let text = field.as_bytes();
        if text.len() > MAX_BYTES {
            let rule = format!("must be at most {MAX_BYTES} bytes, got {}", text.len());
            refuse(&Self::DOC, rule, faults);
            return Ok(None);
        }
        if !text.is_ascii() {
            refuse(
                &Self::DOC,
                "must be ASCII: write other characters as \\u escapes",
                faults,
            );
            return Ok(None);
        }
        let values = match read_json(text) {
            Ok(Value::Object(members)) => members,
            Ok(_) => {
                refuse(&Self::DOC, "must be a JSON object of texts", faults);
                return Ok(None);
            }
            Err(invalid) => {
                invalid.report(&Self::DOC, faults);
                return Ok(None);
            }
        };
        let mut texts = VariableValues::new();
        for (name, value) in values {
            match value {
                Value::String(text) if !text.contains('\0') => {
                    texts.insert(name, text);
                }
                Value::String(_) => {
                    let rule = format!("must not have a NUL character in {}", shown(&name));
                    refuse(&Self::DOC, rule, faults);
                }
                _ => refuse(&Self::DOC, format!("must have a text as {}", shown(&name)), faults),
            }
        }
        Ok(Some(texts))
    }
}
