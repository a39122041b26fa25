//! The files of the dashboard.

use std::sync::LazyLock;

use crate::http::static_file::{StaticFile, embedded};

/// One file, by its name.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) content: StaticFile,
}

/// All files, the page first.
pub(super) static FILES: LazyLock<[File; 7]> = LazyLock::new(|| {
    [
        File {
            name: "index.html",
            content: embedded!("text/html; charset=utf-8", "/dashboard/dist/index.html"),
        },
        File {
            name: "app.js",
            content: embedded!("text/javascript; charset=utf-8", "/dashboard/dist/app.js"),
        },
        File {
            name: "chunk.js",
            content: embedded!("text/javascript; charset=utf-8", "/dashboard/dist/chunk.js"),
        },
        File {
            name: "later.js",
            content: embedded!("text/javascript; charset=utf-8", "/dashboard/dist/later.js"),
        },
        File {
            name: "app.css",
            content: embedded!("text/css; charset=utf-8", "/dashboard/dist/app.css"),
        },
        File {
            name: "icon.svg",
            content: embedded!("image/svg+xml", "/dashboard/dist/icon.svg"),
        },
        File {
            name: "snippets.json",
            content: embedded!("application/json", "/dashboard/dist/snippets.json"),
        },
    ]
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_file_have_the_same_content() {
        for File { name, content } in FILES.iter() {
            assert!(
                content.unpacked() == content.plain(),
                "{name} differs from its compressed form"
            );
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
