//! The resources and their values.
mod ids;
pub use ids::{InvalidId, WorkspaceId, parse_uuid};
