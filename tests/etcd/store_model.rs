//! The reference model of a store, compiled from the file of the core.

pub use agentcfg_core::store::*;

#[path = "../../agentcfg-core/src/store/model_tests.rs"]
pub mod model_tests;
