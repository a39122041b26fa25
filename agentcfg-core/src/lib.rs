//! Every rule of agentcfg.
pub mod model;
#[cfg(feature = "engine")]
pub mod store;
