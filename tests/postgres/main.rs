//! PostgreSQL: the store on a real server that the tests start themselves, and several processes of
//! agentcfg on one database.
//!
//! The server's programs are looked for in the places of the distributions and in `AGENTCFG_TEST_PG_BIN`. Without them
//! the tests say so and pass; with `CI=true` they fail.

use agentcfg_core::model;

mod cluster;
mod conformance;
mod end_to_end;
mod instances;
mod load;
mod migrate;
mod models;
mod outages;
mod pooler;
mod server;
mod trips;

// The models that the other stores and the service are held against, by the same text.
#[allow(dead_code)]
#[path = "../../agentcfg-core/tests/service/model/mod.rs"]
mod service_model;
#[allow(dead_code, unused_imports)]
#[path = "../../agentcfg-core/tests/service/support/mod.rs"]
mod support;

#[allow(dead_code)]
mod store_model;
