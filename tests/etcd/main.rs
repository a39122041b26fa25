//! etcd: the store on a real cluster of three members that the tests start themselves, and several server processes on
//! one cluster.
//!
//! The tests look for `etcd` and `etcdctl` in the path. Without them they report it and pass; with `CI=true` they fail.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

use agentcfg_core::model;

mod cluster;
mod conformance;
mod end_to_end;
mod full_database;
mod large_changes;
mod members;
mod migrate;
mod moments;
mod nemesis;
mod restore;
mod round_trips;
mod security;

// The oracle of moments.
#[allow(dead_code, unused_imports)]
#[path = "../moments/mod.rs"]
mod oracle;

// What holds for several servers on one database holds on a cluster as well, so the tests are the same.
#[path = "../postgres/counting_proxy.rs"]
mod counting_proxy;
// Of the proxies, each suite uses a part.
#[path = "../postgres/contract_misuse.rs"]
mod contract_misuse;
#[allow(dead_code)]
#[path = "../nemesis/mod.rs"]
mod faults;
#[path = "../postgres/feed.rs"]
mod feed;
#[path = "../postgres/load.rs"]
mod load;
#[path = "../postgres/migration.rs"]
mod migration;
#[path = "../postgres/models.rs"]
mod models;
#[allow(dead_code)]
#[path = "../postgres/server.rs"]
mod server;
#[path = "../postgres/several_servers.rs"]
mod several_servers;
#[path = "../postgres/sign_in.rs"]
mod sign_in;

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
#[path = "../postgres/store_model.rs"]
mod store_model;
