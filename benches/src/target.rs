//! Servers with the same work: lists of a workspace's agents, and durable creates of agents in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::process::Server;
use crate::product::{Product, Workspace};
use crate::stats::{Series, rounds, seconds};
use crate::{Failure, cargo, load, request};

/// The kind of request that a server is measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// The list of the workspace's agents.
    List,
    /// The durable creation of an agent.
    Create,
}

impl Work {
    /// The name in the tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
        }
    }
}

/// One or more servers that share one workspace.
pub struct Target {
    /// The name in the tables.
    pub name: &'static str,
    /// The addresses of the servers.
    pub addresses: Vec<SocketAddr>,
    /// The workspace of the lists.
    pub workspace: Workspace,
    /// The workspaces in which agents are created, in turn.
    pub workspaces: Vec<Workspace>,
    _servers: Vec<Server>,
}

impl Target {
    fn new(name: &'static str, servers: Vec<Server>, workspace: Workspace) -> Self {
        Self {
            name,
            addresses: servers.iter().map(|server| server.address).collect(),
            workspaces: vec![workspace.clone()],
            workspace,
            _servers: servers,
        }
    }

    /// The product on a data directory.
    pub fn embedded(product: &Product, data: &Path) -> Result<Self, Failure> {
        let server = product.serve(data)?;
        let workspace = product.workspace(server.address)?;
        Ok(Self::new("agentcfg", vec![server], workspace))
    }

    /// This many servers of the product on one PostgreSQL, with this many workspaces.
    pub fn shared(product: &Product, cluster: &Cluster, servers: usize, workspaces: usize) -> Result<Self, Failure> {
        cluster.create("agentcfg")?;
        let url = cluster.url("agentcfg");
        Self::several(product, servers, workspaces, || product.serve_database(&url))
    }

    /// This many servers of the product on one etcd cluster, with this many workspaces.
    pub fn on_etcd(product: &Product, endpoints: &str, servers: usize, workspaces: usize) -> Result<Self, Failure> {
        Self::several(product, servers, workspaces, || product.serve_etcd(endpoints))
    }

    fn several(
        product: &Product,
        servers: usize,
        workspaces: usize,
        serve: impl Fn() -> std::io::Result<Server>,
    ) -> Result<Self, Failure> {
        let started: Vec<Server> = (0..servers).map(|_| serve()).collect::<Result<_, _>>()?;
        let workspace = product.workspace(started[0].address)?;
        let mut target = Self::new("agentcfg", started, workspace);
        for _ in 1..workspaces {
            target.workspaces.push(product.small_workspace(target.addresses[0])?);
        }
        Ok(target)
    }

    /// One server of the product on a PostgreSQL that it reaches by another port.
    pub fn shared_over(product: &Product, cluster: &Cluster, port: u16) -> Result<Self, Failure> {
        cluster.create("agentcfg")?;
        let server = product.serve_database(&cluster.url_over("agentcfg", port))?;
        let workspace = product.workspace(server.address)?;
        Ok(Self::new("agentcfg", vec![server], workspace))
    }

    /// Express on PostgreSQL, with this many workspaces.
    pub fn express(cluster: &Cluster, workspaces: usize) -> Result<Self, Failure> {
        cluster.create("express")?;
        let mut node = node("express")?;
        node.env("WORKSPACES", workspaces.to_string());
        Self::peer("Express + PostgreSQL", node.env("DATABASE_URL", cluster.url("express")))
    }

    /// Fastify on SQLite.
    pub fn fastify(data: &Path) -> Result<Self, Failure> {
        let mut node = node("fastify")?;
        Self::peer("Fastify + SQLite", node.arg(data.join("fastify.db")))
    }

    /// axum on SQLite.
    pub fn axum(data: &Path) -> Result<Self, Failure> {
        let manifest = peer("axum").join("Cargo.toml");
        let target_dir = cargo::root().join("target/peers");
        let (manifest, target_dir) = (manifest.to_string_lossy(), target_dir.to_string_lossy());
        let program = cargo::build(&["--manifest-path", &manifest, "--target-dir", &target_dir])?;
        Self::peer("axum + SQLite", Command::new(program).arg(data.join("axum.db")))
    }

    /// Starts a peer program, which creates its workspaces by itself, each with a key.
    fn peer(name: &'static str, command: &mut Command) -> Result<Self, Failure> {
        let server = Server::start(command)?;
        let facts = |name: &'static str| server.facts.iter().filter(move |fact| fact.0 == name);
        let workspaces: Vec<Workspace> = facts("workspace")
            .zip(facts("key"))
            .map(|((_, id), (_, key))| Workspace {
                id: id.clone(),
                keys: vec![key.clone()],
            })
            .collect();
        let first = workspaces.first().cloned().ok_or("the peer has no workspace")?;
        let target = Self::new(name, vec![server], first);
        Ok(Self { workspaces, ..target })
    }

    /// Bare hyper that answers with this target's list response.
    pub fn bare_hyper(&self, data: &Path, bench_server: &str) -> Result<Self, Failure> {
        let (_, server) = fixed(self.addresses[0], &self.workspace, data, bench_server)?;
        Ok(Self::new("bare hyper", vec![server], self.workspace.clone()))
    }

    /// The same target with its first server only.
    pub fn first(&self) -> Self {
        Self {
            name: self.name,
            addresses: self.addresses[..1].to_vec(),
            workspace: self.workspace.clone(),
            workspaces: self.workspaces.clone(),
            _servers: Vec::new(),
        }
    }

    /// The same servers with this many of the workspaces.
    pub fn in_workspaces(&self, workspaces: usize) -> Self {
        Self {
            name: self.name,
            addresses: self.addresses.clone(),
            workspace: self.workspace.clone(),
            workspaces: self.workspaces[..workspaces].to_vec(),
            _servers: Vec::new(),
        }
    }

    /// Requests per second of each target, measured in turn round by round, after a round that warms up.
    ///
    /// # Errors
    ///
    /// When a target refuses requests.
    pub async fn in_turn<const N: usize>(
        targets: &[Self; N],
        work: Work,
        clients: usize,
    ) -> Result<[Series; N], Failure> {
        let mut figures = [const { Series::new() }; N];
        for round in 0..=rounds(5) {
            for (at, target) in targets.iter().enumerate() {
                let run = format!("c{clients}-w{}-r{round}-{at}", target.workspaces.len());
                let figure = target.measure(work, clients, &run).await?;
                if round > 0 {
                    figures[at].push(figure);
                }
            }
        }
        Ok(figures)
    }

    /// Requests per second over all servers together, with this many clients. `run` distinguishes the agents
    /// of one run from those of another.
    pub async fn measure(&self, work: Work, clients: usize, run: &str) -> Result<f64, Failure> {
        let time = Duration::from_secs_f64(seconds(2.0));
        let mut runs = tokio::task::JoinSet::new();
        for (at, address) in self.addresses.iter().copied().enumerate() {
            let (workspaces, lists, run) = (self.workspaces.clone(), self.workspace.lists(), run.to_owned());
            let keys = lists.len();
            let clients = clients / self.addresses.len();
            runs.spawn(async move {
                match work {
                    Work::List => {
                        let list = move |number: u64, out: &mut Vec<u8>| {
                            out.extend_from_slice(&lists[number as usize % keys]);
                        };
                        load::run(address, clients, time, 200, list).await
                    }
                    Work::Create => {
                        let create = move |number: u64, out: &mut Vec<u8>| {
                            let workspace = &workspaces[number as usize % workspaces.len()];
                            let key = &workspace.keys[number as usize / workspaces.len() % workspace.keys.len()];
                            let agent_id = format!("{run}-{at}-{number}");
                            out.extend_from_slice(request::create(&workspace.id, key, &agent_id).as_bytes());
                        };
                        load::run(address, clients, time, 201, create).await
                    }
                }
            });
        }
        let mut total = 0.0;
        for outcome in runs.join_all().await {
            let outcome = outcome?;
            if outcome.refused > 0 {
                let all = outcome.answered + outcome.refused;
                return Err(format!("{}: {} of {all} were refused", self.name, outcome.refused).into());
            }
            total += outcome.per_second();
        }
        Ok(total)
    }
}

/// Captures one list response, and starts bare hyper with it.
pub fn fixed(
    address: SocketAddr,
    workspace: &Workspace,
    data: &Path,
    bench_server: &str,
) -> Result<(String, Server), Failure> {
    let path = request::list_path(&workspace.id);
    let answer = request::send(address, "GET", &path, &workspace.keys[0], "")?;
    // The baseline keeps its connections open as the product does.
    let answer = answer.replace("connection: close\r\n", "");
    let file = data.join("answer");
    std::fs::write(&file, &answer)?;
    let server = Server::start(Command::new(bench_server).arg("fixed").arg(&file))?;
    Ok((answer, server))
}

/// The directory of a peer.
fn peer(name: &str) -> PathBuf {
    cargo::root().join("benches/peers").join(name)
}

/// A command that runs Node in the directory of a peer.
fn node(name: &str) -> Result<Command, Failure> {
    let folder = peer(name);
    if !folder.join("node_modules").is_dir() {
        return Err(
            format!("benches/peers/{name} lacks its packages; scripts/bench.sh shows how to install them").into(),
        );
    }
    let mut node = Command::new("node");
    node.arg("server.js").current_dir(folder).env("NODE_ENV", "production");
    Ok(node)
}
