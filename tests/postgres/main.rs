//! PostgreSQL: the store on a real server that the tests start themselves, and several processes of
//! agentcfg on one database.
//!
//! The server's programs are looked for in the places of the distributions and in `AGENTCFG_TEST_PG_BIN`. Without them
//! the tests say so and pass; with `CI=true` they fail.

mod cluster;
mod conformance;
mod end_to_end;
mod instances;
mod load;
mod migrate;
mod outages;
mod pooler;
mod server;
mod trips;
