//! Files that never change while the process runs, plain and in gzip.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};
use sha2::{Digest, Sha256};

use crate::http::compression::{IN_GZIP, asks_for_gzip};
use crate::http::conditions::names_tag;
use crate::http::errors::Failure;
use crate::http::{Body, Compression};

/// One file.
#[derive(Debug)]
pub(crate) struct StaticFile {
    media_type: &'static str,
    plain: Bytes,
    gzip: Bytes,
    /// The entity tag of the plain form, which is derived from the content.
    tag: String,
}

impl StaticFile {
    /// A file whose two forms are in the binary; see [`embedded`].
    pub(crate) fn new(media_type: &'static str, plain: &'static [u8], gzip: &'static [u8]) -> Self {
        let (plain, gzip) = (Bytes::from_static(plain), Bytes::from_static(gzip));
        let hash: [u8; 32] = Sha256::digest(&plain).into();
        let tag = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self {
            media_type,
            plain,
            gzip,
            tag,
        }
    }

    /// The file in the negotiated form, or 304 when the browser has it. File names do not change with the content, so
    /// browsers ask each time.
    pub(crate) fn response(&self, headers: &HeaderMap, compression: &Compression) -> Response<Body> {
        let in_gzip = compression.is_on() && asks_for_gzip(headers);
        let (content, suffix) = if in_gzip {
            (&self.gzip, IN_GZIP)
        } else {
            (&self.plain, "")
        };
        let is_known = names_tag(headers, &self.tag);
        let mut response = Response::new(if is_known {
            Body::default()
        } else {
            Body::Whole(Full::new(content.clone()))
        });
        let tag = format!("\"{}{suffix}\"", self.tag);
        let fields = response.headers_mut();
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            fields.insert(header::ETAG, tag);
        }
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if compression.is_on() {
            fields.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        if in_gzip {
            fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }

    /// The content in its plain form.
    #[cfg(test)]
    pub(crate) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// What a client finds that unpacks the form in gzip.
    #[cfg(test)]
    pub(crate) fn unpacked(&self) -> Vec<u8> {
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::GzDecoder::new(&self.gzip[..]);
        std::io::Read::read_to_end(&mut reader, &mut unpacked).unwrap();
        unpacked
    }
}

/// A file of this package, with its form in gzip beside it.
macro_rules! embedded {
    ($media_type:literal, $path:literal) => {
        StaticFile::new(
            $media_type,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), $path)),
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), $path, ".gz")),
        )
    };
}
pub(crate) use embedded;

/// Accepts the methods that a file has.
///
/// # Errors
///
/// 405 for any method but `GET` and `HEAD`.
pub(crate) fn check_method(method: &Method) -> Result<(), Failure> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let message = format!("{method} is not allowed here, use GET, HEAD");
    Err(Failure::method_not_allowed(message, "GET, HEAD"))
}

/// Adds the fields that keep a page from loading, leaking or being framed by anything else than its policy names.
pub(crate) fn guard(headers: &mut HeaderMap, policy: &'static str) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
