//! What an app is made of, and what its requests share.

use std::sync::Arc;

use agentcfg_core::AgentCfg;
use agentcfg_core::webhook::Transport;
use hyper::Response;
use hyper::http::request::Parts;

use crate::api::docs;
use crate::api::feed::Streams;
use crate::api::model_calls::ModelCalls;
use crate::api::observer::Observer;
use crate::api::routes::Resource;
#[cfg(feature = "dashboard")]
use crate::api::ui::{self, Dashboard};
use crate::http::errors::Failure;
use crate::http::request::RequestIds;
use crate::http::{Body, BodyBudget, Browser, Compression, Cors};

/// What all clones of an app share, behind a count of the references of one connection; see
/// [`App::for_connection`](super::App::for_connection).
#[allow(clippy::redundant_allocation, reason = "the outer count is one connection's")]
pub(super) type Handle = Arc<Arc<Shared>>;

/// What the requests of an app share.
pub(super) struct Shared {
    pub(super) service: AgentCfg,
    /// `None` where no origin is allowed.
    pub(super) cors: Option<Cors>,
    pub(super) compression: Compression,
    pub(super) request_ids: RequestIds,
    pub(super) model_calls: Option<ModelCalls>,
    pub(super) webhooks: Option<Arc<dyn Transport>>,
    pub(super) body_budget: BodyBudget,
    pub(super) streams: Streams,
    pub(super) browser: Browser,
    #[cfg(feature = "dashboard")]
    pub(super) dashboard: Option<Dashboard>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl Shared {
    /// The parts of an app that has nothing but a service.
    pub(super) fn new(service: AgentCfg, cors: Cors) -> Self {
        Self {
            service,
            cors: cors.allows_any().then_some(cors),
            compression: Compression::on(),
            request_ids: RequestIds::new(),
            model_calls: None,
            webhooks: None,
            body_budget: BodyBudget::default(),
            streams: Streams::default(),
            browser: Browser::default(),
            #[cfg(feature = "dashboard")]
            dashboard: None,
            observer: None,
        }
    }

    /// The same parts for another app, with a sequence of request ids of its own.
    pub(super) fn again(&self) -> Self {
        Self {
            service: self.service.clone(),
            cors: self.cors.clone(),
            compression: self.compression.clone(),
            request_ids: RequestIds::new(),
            model_calls: self.model_calls.clone(),
            webhooks: self.webhooks.clone(),
            body_budget: self.body_budget.clone(),
            streams: self.streams.clone(),
            browser: self.browser.clone(),
            #[cfg(feature = "dashboard")]
            dashboard: self.dashboard.clone(),
            observer: self.observer.clone(),
        }
    }

    /// The answer of a page, if there is one at this path: the documentation, or the dashboard.
    pub(super) async fn page(
        &self,
        resource: Option<&Resource>,
        head: &Parts,
    ) -> Option<Result<Response<Body>, Failure>> {
        if resource.is_some() {
            return None;
        }
        match docs::answer(head, &self.compression).await {
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
