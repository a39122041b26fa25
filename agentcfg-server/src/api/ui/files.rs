//! The files of the dashboard.

use std::sync::LazyLock;

use crate::http::static_file::StaticFile;

/// One file, by its name.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) content: StaticFile,
}

macro_rules! file {
    ($name:literal, $media_type:literal) => {
        File {
            name: $name,
            content: StaticFile::embedded(
                $media_type,
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard/dist/", $name)),
                include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard/dist/", $name, ".gz")),
            ),
        }
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn both_forms_of_a_file_have_the_same_content() {
        for File { name, content } in FILES.iter() {
            let mut unpacked = Vec::new();
            GzDecoder::new(content.gzip()).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == content.plain(), "{name} differs from its compressed form");
        }
    }

    #[test]
    fn the_page_needs_nothing_that_the_policy_refuses() {
        let page = std::str::from_utf8(FILES[0].content.plain()).unwrap();
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
