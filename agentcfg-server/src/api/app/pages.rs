//! What an app answers besides its endpoints: the documentation and the dashboard.

use hyper::Response;
use hyper::http::request::Parts;

use super::AppShared;
use crate::api::docs;
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
