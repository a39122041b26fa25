//! The servers, of which one can be killed and replaced.

use std::net::SocketAddr;
use std::sync::Mutex;

use agentcfg_tests::harness::Dice;

use crate::server::{Api, Server};

/// Server processes, each on its address of the database.
pub struct Servers {
    running: Mutex<Vec<Option<Server>>>,
    databases: Vec<String>,
}

impl Servers {
    /// Starts a server for each of these addresses of one database.
    pub async fn start(databases: Vec<String>) -> Self {
        let mut running = Vec::with_capacity(databases.len());
        for database in &databases {
            running.push(Some(server(database).await));
        }
        Self {
            running: Mutex::new(running),
            databases,
        }
    }

    /// The servers with this credential.
    pub fn apis(&self, credential: &str) -> Vec<Api> {
        let running = self.running.lock().unwrap();
        running.iter().flatten().map(|server| server.api(credential)).collect()
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.apis("").into_iter().map(|api| api.address).collect()
    }

    /// Kills a server and starts another one in its place.
    pub async fn replace(&self, dice: &mut Dice, changed: impl Fn(&Self)) {
        let killed = dice.below(self.databases.len());
        drop(self.running.lock().unwrap()[killed].take());
        changed(self);
        let server = server(&self.databases[killed]).await;
        self.running.lock().unwrap()[killed] = Some(server);
        changed(self);
    }
}

async fn server(database: &str) -> Server {
    let database = database.to_owned();
    // A failover may be under way.
    let start = move || Server::with(&database, &[("database_wait", "60")]);
    tokio::task::spawn_blocking(start).await.unwrap()
}
