//! The API: one request from its head to its response, and what each endpoint does.

pub mod answer;
pub mod app;
pub mod call;
pub mod endpoint;
pub mod endpoints;
pub mod model_calls;
pub mod openapi;
pub mod routes;
pub mod schema;
