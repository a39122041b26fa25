//! The query of a request.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use agentcfg_core::validate::{Faults, shown};
use percent_encoding::percent_decode_str;
use smallvec::SmallVec;

use crate::http::errors::Failure;

/// The parameters of a query.
#[derive(Debug, Default)]
pub struct Query<'a> {
    /// Names and values, in their order.
    pub(crate) parameters: Parameters<'a>,
}

/// Names and values; the usual number of them needs no allocation.
type Parameters<'a> = SmallVec<[(Cow<'a, str>, Cow<'a, str>); 2]>;

impl<'a> Query<'a> {
    /// Reads the query of a URI, in which parameters of some names may be given more than once.
    ///
    /// # Errors
    ///
    /// 400 for another parameter given twice, and for percent-encoding that is none or is not UTF-8.
    pub fn parse(query: Option<&'a str>, may_repeat: impl Fn(&str) -> bool) -> Result<Self, Failure> {
        let mut parameters = Parameters::new();
        let mut rest = query.unwrap_or_default();
        while !rest.is_empty() {
            let (pair, others) = split(b'&', rest);
            rest = others;
            if pair.is_empty() {
                continue;
            }
            let (name, value) = split(b'=', pair);
            let (name, value) = (decode(name)?, decode(value)?);
            if parameters.iter().any(|(known, _)| *known == name) && !may_repeat(&name) {
                return Err(Failure::parameter(shown(&name), "must be given once"));
            }
            parameters.push((name, value));
        }
        Ok(Self { parameters })
    }

    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_ref())
    }

    /// A parameter that must be there.
    ///
    /// # Errors
    ///
    /// 400 when it is missing or empty.
    pub fn required(&self, name: &str) -> Result<&str, Failure> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Failure::required(name))
    }

    /// A whole number within bounds, if it is given. Faults are reported together.
    pub fn number(&self, name: &str, bounds: RangeInclusive<u64>, faults: &mut Faults) -> Option<u64> {
        let text = self.get(name)?;
        let field = format_args!("the query parameter {name}");
        // `parse` alone would accept a sign.
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            faults.push(field, "must be a whole number that is not negative");
            return None;
        }
        let Ok(number) = text.parse() else {
            faults.push(field, format_args!("must be at most {}", bounds.end()));
            return None;
        };
        if !bounds.contains(&number) {
            let (least, most) = bounds.into_inner();
            faults.push(field, format_args!("must be {least} to {most}, got {number}"));
            return None;
        }
        Some(number)
    }
}

/// The query as it was written, without the parameters of these names; `None` when nothing is left.
///
/// # Errors
///
/// As [`Query::parse`].
pub fn query_without(query: Option<&str>, names: &[&str]) -> Result<Option<String>, Failure> {
    let mut kept = Vec::new();
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let name = decode(pair.split_once('=').map_or(pair, |(name, _)| name))?;
        if !names.contains(&&*name) {
            kept.push(pair);
        }
    }
    Ok((!kept.is_empty()).then(|| kept.join("&")))
}

/// Splits a text at the first such byte, which is ASCII. Without one, all of the text is before it.
fn split(byte: u8, text: &str) -> (&str, &str) {
    memchr::memchr(byte, text.as_bytes()).map_or((text, ""), |at| (&text[..at], &text[at + 1..]))
}

/// Decodes a part of a query: `%XX` is a byte, `+` is a space.
fn decode(text: &str) -> Result<Cow<'_, str>, Failure> {
    if memchr::memchr2(b'%', b'+', text.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let text = text.replace('+', " ");
    // The decoder would leave an incomplete escape as it is.
    let is_escape = |after: &str| {
        after
            .as_bytes()
            .iter()
            .take(2)
            .filter(|byte| byte.is_ascii_hexdigit())
            .count()
            == 2
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err(Failure::bad_request(
            "the query must be percent-encoded: % needs two hexadecimal digits",
        ));
    }
    percent_decode_str(&text)
        .decode_utf8()
        .map(|decoded| Cow::Owned(decoded.into_owned()))
        .map_err(|_| Failure::bad_request("the query must be percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_names_are_unique() {
        let query = Query::parse(Some("a=%C3%A9+%2B&b&&c=d=e"), |_| false).unwrap();
        assert_eq!(
            (query.get("a"), query.get("b"), query.get("c"), query.get("x")),
            (Some("é +"), Some(""), Some("d=e"), None)
        );
        let repeated = |name: &str| name == "include[]";
        assert!(Query::parse(Some("a=1&include[]=x&include%5B%5D=y"), repeated).is_ok());
        assert!(Query::parse(Some("a=1&a=2&include[]=y"), repeated).is_err());
        for query in ["a=1&a=1", "a=1&%61=2", "a=%ff", "a=%", "a=%4", "a=%zz"] {
            assert_eq!(Query::parse(Some(query), |_| false).unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn a_query_goes_on_without_some_of_its_parameters() {
        let without = |query| query_without(Some(query), &["agent_id"]).unwrap();
        assert_eq!(without("agent_id=a"), None);
        assert_eq!(without(""), None);
        assert_eq!(
            without("a=%2F&agent%5Fid=x&&b+c&agent_id2").as_deref(),
            Some("a=%2F&b+c&agent_id2")
        );
        assert_eq!(query_without(None, &[]).unwrap(), None);
    }

    #[test]
    fn numbers_are_whole_and_within_bounds() {
        let read = |text| {
            let mut faults = Faults::default();
            let number = Query::parse(Some(text), |_| false)
                .unwrap()
                .number("n", 1..=1000, &mut faults);
            faults.into_result().map(|()| number)
        };
        for (text, number) in [("n=1", Some(1)), ("n=1000", Some(1000)), ("other=1", None)] {
            assert_eq!(read(text).unwrap(), number, "{text}");
        }
        for text in ["n=0", "n=1001", "n=-1", "n=+1", "n=x", "n=", "n=99999999999999999999"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
