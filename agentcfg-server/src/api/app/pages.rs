//! What an app answers where it has no endpoint: the documentation, the dashboard, preflights, 405 and 404.

use hyper::Response;
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;

use super::AppShared;
use crate::api::docs;
use crate::api::model_calls::Target;
use crate::api::routes::Resource;
#[cfg(feature = "dashboard")]
use crate::api::ui;
use crate::http::Body;
use crate::http::errors::Failure;

impl AppShared {
    /// The answer of a page, if there is one at this path: the documentation, or the dashboard.
    pub(super) async fn page(
        &self,
        resource: Option<&Resource>,
        head: &Parts,
    ) -> Option<Result<Response<Body>, Failure>> {
        if resource.is_some() {
            return None;
        }
        match docs::answer(head, &self.compression) {
            Some(answer) => Some(answer),
            None => self.screen(head).await,
        }
    }

    #[cfg(feature = "dashboard")]
    async fn screen(&self, head: &Parts) -> Option<Result<Response<Body>, Failure>> {
        let dashboard = self.dashboard.as_ref()?;
        let answer = dashboard.answer(head, &self.service, &self.browser, &self.compression);
        Box::pin(answer).await
    }

    #[cfg(not(feature = "dashboard"))]
    async fn screen(&self, _: &Parts) -> Option<Result<Response<Body>, Failure>> {
        None
    }

    /// The answer to a request that no endpoint and no page has: a preflight, 405 or 404.
    pub(super) fn unrouted(&self, resource: Option<&Resource>, head: &Parts) -> Result<Response<Body>, Failure> {
        let Some(resource) = resource else {
            let path = head.uri.path();
            if percent_decode_str(path).decode_utf8().is_err() {
                return Err(Failure::bad_request("the path must be percent-encoded UTF-8"));
            }
            let of_model_call = Target::why_unknown(path, &self.service.catalogue());
            let message = of_model_call.unwrap_or("there is nothing at this path, see /openapi.json for what there is");
            return Err(Failure::not_found(message));
        };
        let allowed = resource.allowed();
        let cors = self.cors.as_ref();
        let preflight = cors.and_then(|cors| cors.preflight(&head.method, allowed, &head.headers));
        preflight.ok_or_else(|| {
            let message = format!("{} is not allowed here, use {allowed}", head.method);
            Failure::method_not_allowed(message, allowed)
        })
    }

    /// The label in metrics of a path that no endpoint has.
    pub(super) fn label(&self, path: &str) -> &'static str {
        if docs::has(path) {
            return docs::ROUTE;
        }
        #[cfg(feature = "dashboard")]
        if self.dashboard.is_some() && ui::has(path) {
            return ui::ROUTE;
        }
        "none"
    }
}
