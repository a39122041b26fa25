//! The files of the dashboard, plain and in gzip.

use std::sync::LazyLock;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use sha2::{Digest, Sha256};

use crate::http::compression::{IN_GZIP, asks_for_gzip};
use crate::http::request::names_tag;
use crate::http::{Body, Compression};

/// One file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    media_type: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    /// The entity tag of the plain form, which follows from the content.
    tag: String,
}

macro_rules! file {
    ($name:literal, $media_type:literal) => {
        File::new(
            $name,
            $media_type,
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard/dist/", $name)),
            include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard/dist/", $name, ".gz")),
        )
    };
}

/// All files, the page first.
pub(super) static FILES: LazyLock<[File; 4]> = LazyLock::new(|| {
    [
        file!("index.html", "text/html; charset=utf-8"),
        file!("app.js", "text/javascript; charset=utf-8"),
        file!("app.css", "text/css; charset=utf-8"),
        file!("icon.svg", "image/svg+xml"),
    ]
});

impl File {
    fn new(name: &'static str, media_type: &'static str, plain: &'static [u8], gzip: &'static [u8]) -> Self {
        let hash: [u8; 32] = Sha256::digest(plain).into();
        let tag = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self {
            name,
            media_type,
            plain,
            gzip,
            tag,
        }
    }

    /// The file in the form that the request negotiates, or 304 when the browser has it. The names do not change with the
    /// content, so that a browser asks each time.
    pub(super) fn response(&self, headers: &HeaderMap, compression: &Compression) -> Response<Body> {
        let in_gzip = compression.is_on() && asks_for_gzip(headers);
        let (content, suffix) = if in_gzip {
            (self.gzip, IN_GZIP)
        } else {
            (self.plain, "")
        };
        let is_known = names_tag(headers, &self.tag);
        let mut response = Response::new(if is_known {
            Body::default()
        } else {
            Body::Whole(Full::new(Bytes::from_static(content)))
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
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn both_forms_of_a_file_have_the_same_content() {
        for file in FILES.iter() {
            let mut unpacked = Vec::new();
            GzDecoder::new(file.gzip).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == file.plain, "{} differs from its compressed form", file.name);
        }
    }

    #[test]
    fn the_page_needs_nothing_that_the_policy_refuses() {
        let page = std::str::from_utf8(FILES[0].plain).unwrap();
        for refused in [
            "style=",
            "onclick=",
            "onload=",
            "javascript:",
            "<style",
            "http://",
            "//cdn",
        ] {
            assert!(!page.contains(refused), "{refused}");
        }
        for script in page.split("<script").skip(1) {
            let tag = script.split('>').next().unwrap();
            assert!(tag.contains("src="), "an inline script: {tag}");
        }
    }
}
