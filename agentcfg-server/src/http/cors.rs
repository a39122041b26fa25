//! Cross-origin resource sharing (CORS): calls from web pages of other origins.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::http::body::Body;
use crate::http::response::insert;

/// The header fields that a preflight is granted when it names none.
const ALLOWED_HEADERS: &str = "Authorization, X-Api-Key, Api-Key, Content-Type, If-Match, If-None-Match, X-Request-Id";
const EXPOSED_HEADERS: &str = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, ETag, X-Request-Id, \
                               Retry-After, Location, Agent-Version, Agent-Model, Agent-Attempts, Change-Cursor, \
                               History-Since, Fault-Fields, X-Should-Retry, Request-Id";

/// The origins whose pages may call.
///
/// ```
/// use agentcfg_server::Cors;
/// let none = Cors::default();
/// let dashboard = Cors::new(vec!["https://dashboard.example.com".into()]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cors {
    origins: Vec<String>,
}

/// The header fields that a page may send: all that its preflight names. SDKs send fields of their own, such as
/// `x-stainless-os`, and a field that the API does not know is ignored.
fn granted(headers: &HeaderMap) -> HeaderValue {
    let asked = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let names: Vec<String> = asked
        .iter()
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .map(|name| name.to_string())
        .collect();
    match HeaderValue::from_str(&names.join(", ")) {
        Ok(granted) if !names.is_empty() => granted,
        _ => HeaderValue::from_static(ALLOWED_HEADERS),
    }
}

impl Cors {
    /// Allows these origins; `*` allows every one.
    ///
    /// ```
    /// use agentcfg_server::Cors;
    /// let every_origin = Cors::new(vec!["*".into()]);
    /// ```
    pub fn new(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// Whether any origin is allowed.
    pub(crate) fn allows_any(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Whether the origin of the request is allowed.
    pub(crate) fn allows(&self, headers: &HeaderMap) -> bool {
        self.origin(headers).is_some()
    }

    /// The origin of the request if it is allowed.
    fn origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let allowed = self
            .origins
            .iter()
            .any(|known| known == "*" || known.as_bytes() == origin.as_bytes());
        allowed.then_some(origin)
    }

    /// The answer to a preflight for a path that has these methods.
    ///
    /// ```
    /// use agentcfg_server::Cors;
    /// use hyper::Method;
    /// use hyper::header::{ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN};
    /// let mut headers = HeaderMap::new();
    /// headers.insert(ORIGIN, HeaderValue::from_static("https://dashboard.example.com"));
    /// headers.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
    /// assert!(Cors::new(vec!["*".into()]).preflight(&Method::OPTIONS, "GET, POST", &headers).is_some());
    /// assert!(Cors::default().preflight(&Method::OPTIONS, "GET, POST", &headers).is_none());
    /// ```
    pub fn preflight(&self, method: &Method, allowed: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        let asks = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.origin(headers).is_none() {
            return None;
        }
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let fields = response.headers_mut();
        insert(fields, header::ACCESS_CONTROL_ALLOW_METHODS, allowed);
        fields.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, granted(headers));
        fields.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Some(response)
    }

    /// Lets an allowed origin's page read the response.
    ///
    /// ```
    /// use agentcfg_server::Cors;
    /// use hyper::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderMap, HeaderValue, ORIGIN};
    /// let request = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static("https://dashboard.example.com"))]);
    /// let mut response = HeaderMap::new();
    /// Cors::new(vec!["*".into()]).expose(&request, &mut response);
    /// assert_eq!(response[ACCESS_CONTROL_ALLOW_ORIGIN], "https://dashboard.example.com");
    /// ```
    pub fn expose(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        response.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = self.origin(request) {
            response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.insert(
                header::ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(EXPOSED_HEADERS),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted_to(asked: &[&'static str]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::ORIGIN, HeaderValue::from_static("https://app.example.com"));
        headers.insert(header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
        for field in asked {
            headers.append(header::ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static(field));
        }
        let cors = Cors::new(vec!["https://app.example.com".to_owned()]);
        let response = cors.preflight(&Method::OPTIONS, "POST", &headers).unwrap();
        let granted = &response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS];
        granted.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_preflight_grants_the_header_names_that_were_asked_for() {
        assert_eq!(
            granted_to(&["authorization,Content-Type, x-stainless-os", "x-stainless-lang"]),
            "authorization, content-type, x-stainless-os, x-stainless-lang"
        );
        assert_eq!(granted_to(&["x-a, no name, x-b"]), "x-a, x-b");
        for nothing in [&[][..], &[""], &[" , "]] {
            assert_eq!(granted_to(nothing), ALLOWED_HEADERS);
        }
    }
}
