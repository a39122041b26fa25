//! The API: one request from its head to its response, and what each endpoint does.

mod app;
mod endpoints;
mod model_calls;
mod observer;
mod openapi;
mod routes;

pub use app::App;
pub use model_calls::{ModelCalls, Patience};
pub use observer::{Answered, Observer};
pub use routes::{Content, Needs, Operation, ROUTES, Route};
