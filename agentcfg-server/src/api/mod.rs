//! The API: from the head of a request to its response.

mod answer;
mod app;
mod call;
mod credential;
mod docs;
mod endpoint;
mod endpoints;
#[cfg(feature = "tower")]
mod entry_layer;
mod feed;
mod mcp;
mod model_calls;
mod observer;
#[cfg(test)]
mod openapi;
mod paged_array;
mod receive;
mod request_trace;
mod route;
mod routes;
mod schema;
mod strict_query;
mod trace;
#[cfg(feature = "dashboard")]
mod ui;

pub use app::App;
pub use call::Content;
pub use endpoint::Definition;
pub use endpoints::all as endpoints;
#[cfg(feature = "tower")]
pub use entry_layer::{EntryLayer, EntryService};
pub use feed::Streams;
pub use model_calls::{CallTimeouts, ModelCalls};
#[cfg(feature = "process")]
pub(crate) use observer::Observers;
pub use observer::{Answered, Observer};
pub use route::{Needs, Route};
pub use routes::all as routes;
pub use trace::{Span, TraceContext, TracedCall};
#[cfg(feature = "dashboard")]
pub use ui::{Dashboard, IdentityProvider, Pending, SignInError, SignedIn};
