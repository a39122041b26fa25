//! The web dashboard: its files, which are in the binary, at `/` and below `/ui/`. For its users: `docs/dashboard.md`.
//!
//! The files are what `agentcfg-server/dashboard` builds. They call the API and nothing else.

mod files;
mod sign_in;

use std::fmt;
use std::sync::Arc;

use agentcfg_core::AgentCfg;
use hyper::Response;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

use self::files::{FILES, File};
pub use self::sign_in::{IdentityProvider, Pending, SignInError, SignedIn};
use crate::http::errors::Failure;
use crate::http::static_file::{check_method, guard};
use crate::http::{Body, Browser, Compression};

/// The label of the dashboard in metrics.
pub(super) const ROUTE: &str = "/ui/{path}";

/// What pages may load: files and the API of this server alone, and no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The web dashboard.
///
/// ```
/// use agentcfg_core::{AgentCfg, store::MemoryStore};
/// use agentcfg_server::{App, Cors, Dashboard};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let app = App::new(AgentCfg::builder(MemoryStore::new()).build(), Cors::default());
/// let page = || hyper::Request::get("/").body(String::new());
/// assert_eq!(app.respond(page()?).await.status(), 404);
/// let app = app.with_dashboard(Dashboard::default());
/// assert_eq!(app.respond(page()?).await.status(), 200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Dashboard {
    provider: Option<Arc<dyn IdentityProvider>>,
}

impl Dashboard {
    /// Adds sign-in at an identity provider.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use agentcfg_server::{Dashboard, IdentityProvider};
    /// fn dashboard(provider: Arc<dyn IdentityProvider>) -> Dashboard {
    ///     Dashboard::default().with_provider(provider)
    /// }
    /// ```
    #[must_use]
    pub fn with_provider(self, provider: Arc<dyn IdentityProvider>) -> Self {
        Self {
            provider: Some(provider),
        }
    }

    /// The response, if the path is one of the dashboard.
    pub(super) async fn answer(
        &self,
        head: &Parts,
        service: &AgentCfg,
        browser: &Browser,
        compression: &Compression,
    ) -> Option<Result<Response<Body>, Failure>> {
        let path = head.uri.path();
        let file = find(path)?;
        if let Err(failure) = check_method(&head.method) {
            return Some(Err(failure));
        }
        let answer = match (&self.provider, path) {
            (Some(provider), "/ui/sign-in") => sign_in::begin(&**provider, service, browser, &head.headers).await,
            (Some(provider), "/ui/callback") => {
                sign_in::finish(&**provider, service, browser, &head.headers, head.uri.query()).await
            }
            _ => {
                let mut response = file.content.response(&head.headers, compression);
                protect(response.headers_mut(), browser.is_always_https(&head.headers));
                return Some(Ok(response));
            }
        };
        let mut response = answer.unwrap_or_else(|failure| refusal(&failure));
        let fields = response.headers_mut();
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        protect(fields, browser.is_always_https(&head.headers));
        Some(Ok(response))
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard")
            .field("provider", &self.provider.is_some())
            .finish()
    }
}

/// The page with the reason why a sign-in failed.
fn refusal(failure: &Failure) -> Response<Body> {
    let cause = failure.cause.as_deref().unwrap_or_default();
    tracing::warn!(
        status = failure.status.as_u16(),
        cause,
        "a sign-in failed: {}",
        failure.message
    );
    let mut response = sign_in::page("Not signed in", &failure.message, None);
    *response.status_mut() = failure.status;
    if failure.is_unauthorized() {
        let fields = response.headers_mut();
        fields.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Whether the dashboard has a page or a file at this path.
pub(super) fn has(path: &str) -> bool {
    find(path).is_some()
}

/// The file for a path. A path without a file extension is a screen of the page, which reads the path itself. The page
/// names its files by relative URLs, so they are found beside each screen.
fn find(path: &str) -> Option<&'static File> {
    let rest = match path {
        "/" | "/ui" => "",
        _ => match path.strip_prefix("/ui/") {
            Some(rest) if rest.is_empty() || rest.split('/').all(is_plain) => rest,
            Some(_) => return None,
            None => path
                .strip_prefix('/')
                .filter(|name| !name.contains('/') && name.contains('.'))?,
        },
    };
    let name = rest.rsplit('/').next().unwrap_or_default();
    if name.contains('.') {
        return FILES.iter().find(|file| file.name == name);
    }
    Some(&FILES[0])
}

fn is_plain(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(is_plain)
}

/// Adds the fields that keep a page from loading, leaking or being framed by anything else, and from plain HTTP where
/// the browser always comes by HTTPS.
fn protect(headers: &mut HeaderMap, is_always_https: bool) {
    guard(headers, POLICY);
    if is_always_https {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> Option<&'static str> {
        find(path).map(|file| file.name)
    }

    #[test]
    fn screens_are_the_page_and_files_are_beside_them() {
        for screen in ["/", "/ui", "/ui/", "/ui/agents", "/ui/agents/writer", "/ui/a-b_c~d/e"] {
            assert_eq!(name(screen), Some("index.html"), "{screen}");
        }
        for path in ["/app.js", "/ui/app.js", "/ui/agents/app.js"] {
            assert_eq!(name(path), Some("app.js"), "{path}");
        }
        for nothing in [
            "/index",
            "/ui/x.js",
            "/ui/../healthz",
            "/ui//app.js",
            "/ui/%2e%2e/x",
            "/ui/a%2fb",
            "/ui/.git",
            "/uix",
            "/api",
            "/x/app.js",
            "/ui/agents/",
            "",
            "/openapi.json",
            "/app.js/",
        ] {
            assert_eq!(name(nothing), None, "{nothing}");
        }
    }
}
