//! PostgreSQL: the store on a real server that the tests start themselves, and several server
//! processes on one database.
//!
//! The tests look for the programs of PostgreSQL in the directories of the distributions and in
//! `AGENTCFG_TEST_PG_BIN`. Without them they report it and pass; with `CI=true` they fail.

use agentcfg_core::model;

mod budgets;
mod changes;
mod clocks;
mod cluster;
mod conformance;
mod contract_misuse;
mod counting_proxy;
mod end_to_end;
mod feed;
mod groups;
mod history;
mod load;
mod migrate;
mod migration;
mod models;
mod moments;
mod nemesis;
mod outages;
mod pooler;
mod removal;
mod round_trips;
mod server;
mod several_servers;
mod sign_in;
mod webhooks;

// The oracle of moments.
#[allow(dead_code, unused_imports)]
#[path = "../moments/mod.rs"]
mod oracle;

// Random clients, the checker of what they saw, and the proxies, of which each suite uses a part.
#[allow(dead_code)]
#[path = "../nemesis/mod.rs"]
mod faults;

// The receiver of webhooks of the other end-to-end tests.
#[allow(dead_code)]
#[path = "../webhooks/receiver.rs"]
mod receiver;

// The reference models of the other stores and of the service, compiled from the same files.
#[path = "../../agentcfg-core/tests/service/budget_scenarios.rs"]
mod budget_scenarios;
#[path = "../../agentcfg-core/tests/service/budget_settlement.rs"]
mod budget_settlement;
#[path = "../../agentcfg-core/tests/service/random_numbers.rs"]
mod random_numbers;
#[allow(dead_code)]
#[path = "../../agentcfg-core/tests/service/model/mod.rs"]
mod service_model;
#[allow(dead_code, unused_imports)]
#[path = "../../agentcfg-core/tests/service/status_model.rs"]
mod status_model;
#[allow(dead_code, unused_imports)]
#[path = "../../agentcfg-core/tests/service/support/mod.rs"]
mod support;
#[path = "../../agentcfg-core/tests/service/usage_ledger.rs"]
mod usage_ledger;

#[allow(dead_code)]
mod store_model;
