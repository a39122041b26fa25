//! The head of a request on an HTTP/2 stream, in the form that it has in HTTP/1.1.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Uri};

use crate::listen::framing::{Fault, is_host};

/// Gives a request the form that it has in HTTP/1.1: the host in `Host`, the path alone in the URI. What the framing of
/// HTTP/1.1 is refused for is refused here too.
pub(super) fn prepare<B>(mut request: Request<B>) -> Result<Request<B>, (Fault, Box<HeaderMap>)> {
    match host(&request) {
        Ok(named) => {
            if let Some(host) = named {
                request.headers_mut().insert(header::HOST, host);
            }
            if request.method() != Method::CONNECT {
                let path = request.uri().path_and_query().cloned();
                *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
            }
            Ok(request)
        }
        Err(fault) => Err((fault, Box::new(std::mem::take(request.headers_mut())))),
    }
}

/// The host that `:authority` names, if there is no field `Host`.
fn host<B>(request: &Request<B>) -> Result<Option<HeaderValue>, Fault> {
    let mut fields = request.headers().get_all(header::HOST).iter();
    let (field, more) = (fields.next(), fields.next());
    if more.is_some() {
        return Err(Fault::TwoHosts);
    }
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let name = match (authority, field.map(HeaderValue::as_bytes)) {
        (Some(authority), Some(field)) if !authority.eq_ignore_ascii_case(field) => return Err(Fault::OtherHost),
        (Some(name), _) | (None, Some(name)) => name,
        (None, None) => return Err(Fault::NoAuthority),
    };
    if !is_host(name) {
        return Err(Fault::Host);
    }
    if field.is_some() {
        return Ok(None);
    }
    HeaderValue::from_bytes(name).map(Some).map_err(|_| Fault::Host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(authority: Option<&str>, fields: &[&str]) -> Result<Option<String>, Fault> {
        let uri = authority.map_or_else(|| "/x".to_owned(), |authority| format!("https://{authority}/x"));
        let mut request = Request::builder().uri(uri);
        for field in fields {
            request = request.header(header::HOST, *field);
        }
        let host = host(&request.body(()).unwrap())?;
        Ok(host.map(|host| host.to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_request_names_one_host() {
        assert_eq!(
            named(Some("a.example:8443"), &[]),
            Ok(Some("a.example:8443".to_owned()))
        );
        assert_eq!(named(Some("[::1]:8443"), &[]), Ok(Some("[::1]:8443".to_owned())));
        assert_eq!(named(Some("a.example"), &["A.example"]), Ok(None));
        assert_eq!(named(None, &["a.example"]), Ok(None));
        assert_eq!(named(None, &[]), Err(Fault::NoAuthority));
        assert_eq!(named(Some("a.example"), &["b.example"]), Err(Fault::OtherHost));
        assert_eq!(named(None, &["a.example", "a.example"]), Err(Fault::TwoHosts));
        assert_eq!(named(Some("u:p@a.example"), &[]), Err(Fault::Host));
        assert_eq!(named(None, &["a b"]), Err(Fault::Host));
    }
}
