//! Calls from web pages of other origins, as far as they are allowed.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};

use crate::api::routes;
use crate::http::response::{Body, insert};

const ALLOWED_HEADERS: &str = "Authorization, Content-Type, If-Match, If-None-Match, X-Request-Id";
const EXPOSED_HEADERS: &str = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, ETag, X-Request-Id, \
                               Retry-After, Location";

/// The origins whose pages may call.
#[derive(Debug, Clone, Default)]
pub struct Cors {
    origins: Vec<String>,
}

impl Cors {
    /// Allows these origins; `*` allows every one.
    pub fn new(origins: Vec<String>) -> Self {
        Self { origins }
    }

    /// The origin of the request, when it is allowed.
    fn origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        let allowed = self
            .origins
            .iter()
            .any(|known| known == "*" || known.as_bytes() == origin.as_bytes());
        allowed.then_some(origin)
    }

    /// The answer to a preflight for a path that exists.
    pub fn preflight(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        let asks = method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        if !asks || self.origin(headers).is_none() {
            return None;
        }
        let mut response = Response::new(Body::default());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let fields = response.headers_mut();
        insert(fields, header::ACCESS_CONTROL_ALLOW_METHODS, routes::allowed(path));
        fields.insert(
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            HeaderValue::from_static(ALLOWED_HEADERS),
        );
        fields.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        Some(response)
    }

    /// Lets an allowed origin's page read the response.
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
