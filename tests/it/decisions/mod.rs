//! The same API in its corner cases, subject by subject: forms of values, orders of checks, limits.

mod agents;
mod api_keys;
mod apply;
mod audit;
mod bodies;
mod compression;
mod conditions;
mod cors;
mod framing;
mod heads;
mod malformed;
mod members;
mod operations;
mod order;
mod paths;
mod places;
mod queries;
mod rate_limit;
mod sessions;
mod status;
mod timeouts;
mod values;
mod workspace_end;
mod workspaces;
