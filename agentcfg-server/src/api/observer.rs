//! Observers of answers, such as metrics.

use std::net::IpAddr;
#[cfg(feature = "process")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentcfg_core::service::EndedCall;
use hyper::Method;

use super::trace::{Span, TraceContext, TracedCall};

/// A request that was answered.
///
/// ```
/// use agentcfg_server::Answered;
/// fn label(answered: &Answered<'_>) -> String {
///     format!("{} {} {}", answered.method, answered.route, answered.status)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Answered<'a> {
    /// The method of the request.
    pub method: &'a Method,
    /// The template of the route, `none` where no route fits. It is never the path that the client sent, so that
    /// clients cannot choose how many different values there are.
    pub route: &'static str,
    /// The status code of the response.
    pub status: u16,
    /// Whether the status is a refusal of the service: not so for a status that a provider gave to a model call.
    pub refused: bool,
    /// Time from the head of the request to the head of the response.
    pub took: Duration,
    /// The identifier of the request, as in `X-Request-Id`.
    pub request_id: &'a str,
    /// The id of the API key or the user, when the credential is valid and the observer [wants](Observer::wants_caller)
    /// it.
    pub caller: Option<&'a str>,
    /// The id in an API key that was refused with 401, if the key has its form: an observer that
    /// [wants](Observer::wants_caller) callers gets it, so that the owner of an expired or revoked key can be found.
    pub refused_key: Option<&'a str>,
    /// The address of the client, when the observer [wants](Observer::wants_caller) callers and the listener knows it.
    pub client: Option<IpAddr>,
    /// The length of the response's body; `None` for a stream.
    pub bytes: Option<u64>,
    /// The span of the request, when the observer [traces](Observer::wants_traces).
    pub span: Option<Span>,
}

/// Is called for every answer of an [`App`](crate::App), on the task that answers: an implementation must not block.
///
/// ```
/// use agentcfg_server::{Answered, Observer};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[derive(Default)]
/// struct Failures(AtomicU64);
///
/// impl Observer for Failures {
///     fn answered(&self, answered: &Answered<'_>) {
///         if answered.status >= 500 {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// A response is about to be sent.
    fn answered(&self, answered: &Answered<'_>);

    /// Whether answers must name their caller. By default they do not, which saves a copy of the id for each.
    fn wants_caller(&self) -> bool {
        false
    }

    /// A stream of changes was opened. The default does nothing.
    fn stream_opened(&self) {}

    /// A stream of changes has ended. The default does nothing.
    fn stream_closed(&self) {}

    /// A model call has ended. The default does nothing.
    fn model_call_ended(&self, call: &EndedCall) {
        let _ = call;
    }

    /// Whether requests and model calls are traced. By default they are not, which costs nothing.
    fn wants_traces(&self) -> bool {
        false
    }

    /// New identifiers for a span, in the trace of `parent` where there is one. They are asked for where the observer
    /// [wants traces](Self::wants_traces). The default has none, so that nothing is traced.
    fn new_span(&self, parent: Option<&TraceContext>) -> Option<TraceContext> {
        let _ = parent;
        None
    }

    /// A model call with a span has ended: one attempt of it. The default does nothing.
    fn model_call_traced(&self, call: &TracedCall<'_>) {
        let _ = call;
    }

    /// An event is about to be sent on a stream that had sent all earlier ones. `lag` is the time since its commit. The
    /// default does nothing.
    fn event_sent(&self, lag: Duration) {
        let _ = lag;
    }
}

/// Several observers as one. Each method of [`Observer`] must be here too, since its default would call none of them.
#[cfg(feature = "process")]
pub struct Observers(pub Vec<Arc<dyn Observer>>);

#[cfg(feature = "process")]
impl Observer for Observers {
    fn wants_caller(&self) -> bool {
        self.0.iter().any(|observer| observer.wants_caller())
    }

    fn answered(&self, answered: &Answered<'_>) {
        self.0.iter().for_each(|observer| observer.answered(answered));
    }

    fn stream_opened(&self) {
        self.0.iter().for_each(|observer| observer.stream_opened());
    }

    fn stream_closed(&self) {
        self.0.iter().for_each(|observer| observer.stream_closed());
    }

    fn model_call_ended(&self, call: &EndedCall) {
        self.0.iter().for_each(|observer| observer.model_call_ended(call));
    }

    fn wants_traces(&self) -> bool {
        self.0.iter().any(|observer| observer.wants_traces())
    }

    fn new_span(&self, parent: Option<&TraceContext>) -> Option<TraceContext> {
        self.0.iter().find_map(|observer| observer.new_span(parent))
    }

    fn model_call_traced(&self, call: &TracedCall<'_>) {
        self.0.iter().for_each(|observer| observer.model_call_traced(call));
    }

    fn event_sent(&self, lag: Duration) {
        self.0.iter().for_each(|observer| observer.event_sent(lag));
    }
}

/// Measures one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(
        clippy::disallowed_methods,
        reason = "a duration to report, no time that a rule depends on"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
