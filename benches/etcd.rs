//! One and three servers on an etcd cluster of three members, against one server on PostgreSQL and Express on
//! PostgreSQL.
//!
//! Needs etcd, the programs of PostgreSQL, Node and the packages of `peers/express`; `scripts/bench.sh` installs them.

use agentcfg_benches::cluster::Cluster;
use agentcfg_benches::etcd::EtcdCluster;
use agentcfg_benches::product::Product;
use agentcfg_benches::target::{Target, Work};
use agentcfg_benches::{Failure, runtime};

const CLIENTS: usize = 64;
const WORKSPACES: usize = 64;
const AGENTS: usize = 20;

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let (members, database) = (EtcdCluster::start()?, Cluster::start()?);
    let runtime = runtime()?;
    let ours = Target::on_etcd(&product, &members.endpoints(), 3, WORKSPACES)?;
    let beside = Target::shared(&product, &database, 1, WORKSPACES)?;
    let theirs = Target::express(&database, WORKSPACES)?;
    for target in [&ours, &beside, &theirs] {
        target.workspace.seed(target.addresses[0], AGENTS)?;
    }
    println!(
        "\n| work | clients | workspaces | one server on etcd, requests/s | three on etcd | one on PostgreSQL | Express on PostgreSQL | one on etcd over PostgreSQL | one over Express | three over Express | three over one |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (work, clients, workspaces) in [
        (Work::List, CLIENTS, 1),
        (Work::Create, CLIENTS, 1),
        (Work::Create, CLIENTS, WORKSPACES),
    ] {
        let targets = [&ours.first(), &ours, &beside, &theirs].map(|target| target.in_workspaces(workspaces));
        let figures = runtime.block_on(Target::in_turn(&targets, work, clients))?;
        let [single, three, postgres, express] = &figures;
        println!(
            "| {} | {clients} | {workspaces} | {single} | {three} | {postgres} | {express} | {} | {} | {} | {} |",
            work.name(),
            single.over(postgres),
            single.over(express),
            three.over(express),
            three.over(single)
        );
    }
    // A lone writer has no use of more servers.
    let targets = [&ours.first(), &beside, &theirs].map(|target| target.in_workspaces(1));
    let [single, postgres, express] = &runtime.block_on(Target::in_turn(&targets, Work::Create, 1))?;
    println!(
        "| create | 1 | 1 | {single} | | {postgres} | {express} | {} | {} | | |",
        single.over(postgres),
        single.over(express)
    );
    Ok(())
}
