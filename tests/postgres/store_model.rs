//! The model of a store, by the same text as in the core.

pub use agentcfg_core::store::*;

#[path = "../../agentcfg-core/src/store/model_tests.rs"]
pub mod model_tests;
