//! Claims that a session token must have, so that not all users of an identity provider may use this service.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// A claim that every session token must have, written `name=value`.
///
/// The claim equals the value, or is an array with an element that does. A claim that is no text is compared as its
/// JSON text, so `email_verified=true` means the boolean: a text never equals a number or a boolean.
///
/// ```
/// use agentcfg_core::session::RequiredClaim;
/// let staff: RequiredClaim = "groups=staff".parse()?;
/// let claims = serde_json::json!({"groups": ["admins", "staff"]});
/// assert!(staff.is_met_by(claims.as_object().unwrap()));
/// assert_eq!(staff.to_string(), "groups=staff");
/// assert!("staff".parse::<RequiredClaim>().is_err());
/// # Ok::<(), agentcfg_core::session::InvalidClaim>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredClaim {
    name: String,
    value: String,
}

/// The error of a text that names no claim and its value.
///
/// ```
/// use agentcfg_core::session::RequiredClaim;
/// let error = "=staff".parse::<RequiredClaim>().unwrap_err();
/// assert_eq!(error.to_string(), "must be name=value, without blanks around name and value");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be name=value, without blanks around name and value")]
pub struct InvalidClaim;

impl FromStr for RequiredClaim {
    type Err = InvalidClaim;

    fn from_str(text: &str) -> Result<Self, InvalidClaim> {
        // The value may have more of these signs, as in a distinguished name.
        let (name, value) = text.split_once('=').ok_or(InvalidClaim)?;
        // No token has a claim with such a name or value, so that a claim with a blank too many would let no user in.
        let is_claim = |text: &str| !text.is_empty() && text.trim() == text;
        match is_claim(name) && is_claim(value) {
            false => Err(InvalidClaim),
            true => Ok(Self {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
        }
    }
}

impl fmt::Display for RequiredClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl RequiredClaim {
    /// Whether these claims of a token have it.
    ///
    /// ```
    /// use agentcfg_core::session::RequiredClaim;
    /// let verified: RequiredClaim = "email_verified=true".parse()?;
    /// let claims = serde_json::json!({"email_verified": "true"});
    /// assert!(!verified.is_met_by(claims.as_object().unwrap()), "a text is no boolean");
    /// # Ok::<(), agentcfg_core::session::InvalidClaim>(())
    /// ```
    pub fn is_met_by(&self, claims: &Map<String, Value>) -> bool {
        let Some(claim) = claims.get(&self.name) else {
            return false;
        };
        let contains_it = claim
            .as_array()
            .is_some_and(|values| values.iter().any(|value| self.is_value(value)));
        contains_it || self.is_value(claim)
    }

    fn is_value(&self, claim: &Value) -> bool {
        let meant = serde_json::from_str::<Value>(&self.value);
        match claim {
            Value::String(text) => *text == self.value && !matches!(meant, Ok(Value::Bool(_) | Value::Number(_))),
            other => serde_json::to_string(other).is_ok_and(|text| text == self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_equals_the_value_or_contains_it() {
        for (claim, value, is_met) in [
            (json!("staff"), "staff", true),
            (json!("staff "), "staff", false),
            (json!("Staff"), "staff", false),
            (json!(["other", "staff"]), "staff", true),
            (json!(["other"]), "staff", false),
            (json!([]), "staff", false),
            (json!([["staff"]]), "staff", false),
            (json!(["staff"]), "[\"staff\"]", true),
            (json!(true), "true", true),
            (json!("true"), "true", false),
            (json!(["true"]), "true", false),
            (json!([true]), "true", true),
            (json!(false), "true", false),
            (json!(7), "7", true),
            (json!("7"), "7", false),
            (json!(7.5), "7.5", true),
            (json!("7a"), "7a", true),
            (json!(null), "null", true),
            (json!({"a": 1}), "{\"a\":1}", true),
            (json!("cn=staff,dc=example"), "cn=staff,dc=example", true),
        ] {
            let required: RequiredClaim = format!("claim={value}").parse().unwrap();
            let claims = json!({"claim": claim});
            assert_eq!(
                required.is_met_by(claims.as_object().unwrap()),
                is_met,
                "{claim} {value}"
            );
            assert!(!required.is_met_by(&Map::new()));
        }
    }

    #[test]
    fn name_and_value_are_both_needed() {
        for text in ["", "=", "a", "a=", "=a", "a = b", " a=b", "a=b ", "a= "] {
            assert_eq!(text.parse::<RequiredClaim>(), Err(InvalidClaim), "{text}");
        }
    }
}
