//! A budget that three servers spend while they are killed: what the provider bills never exceeds the limit.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use agentcfg_tests::harness::Dice;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::server::{Api, Server, token};

/// Billionths of a USD for a token of gpt-5.5.
const INPUT: u64 = 5_000;
const OUTPUT: u64 = 30_000;

/// A provider that bills each call as it arrives: all of the cap, and a third of the bytes.
struct Biller {
    address: SocketAddr,
    bill: Arc<AtomicU64>,
}

impl Biller {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bill = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&bill);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // A connection that breaks is one of a killed server.
                std::thread::spawn(move || answer(stream, &counted));
            }
        });
        Self { address, bill }
    }

    fn billed(&self) -> u64 {
        self.bill.load(Ordering::SeqCst)
    }
}

fn answer(stream: TcpStream, bill: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end().split_once(':') {
                None if line.trim_end().is_empty() => break,
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let sent: Value = serde_json::from_slice(&body)?;
        let output = sent["max_output_tokens"].as_u64().unwrap_or(u64::from(u32::MAX));
        let input = (length as u64).div_ceil(3);
        bill.fetch_add(input * INPUT + output * OUTPUT, Ordering::SeqCst);
        let usage = json!({"output": [], "usage": {"input_tokens": input, "output_tokens": output}}).to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
        writer.write_all(format!("{head}{}\r\n\r\n{usage}", usage.len()).as_bytes())?;
    }
}

/// The nanos of a decimal text.
fn nanos(text: &Value) -> u64 {
    let text = text.as_str().unwrap();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<9}").parse().unwrap()
}

/// `AGENTCFG_TEST_BUDGET_KILLS` runs it longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_exact_over_servers_that_are_killed() {
    let Some(cluster) = Cluster::shared() else { return };
    let kills = std::env::var("AGENTCFG_TEST_BUDGET_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let biller = Biller::start();
    let base_url = format!("http://{}", biller.address);
    let settings = [
        ("openai_base_url", &*base_url),
        ("openai_api_key", "sk-managed"),
        ("managed_models", "any"),
    ];
    let database = cluster.database();
    let start = || Server::with(&database, &settings);
    let first = start();
    let ada = token("ada");
    let workspace = first.api(&ada).workspace().await;
    first.api(&ada).create(&workspace, "writer").await.expect(201);
    let (_, key) = first.api(&ada).key(&workspace, "write", 1_000_000).await;
    let budgets = format!("/api/budgets?workspace_id={workspace}");
    let limit = json!({"limit_usd": format!("{}", 2 * kills)});
    let path = format!("{budgets}&scope=agent&scope_id=writer&period=total");
    let set = first.api(&ada).send("PUT", &path, "", Some(limit)).await.unwrap();
    set.expect(200);

    // Callers use whatever server is there; each call costs from 0.003 to 0.06 USD.
    let addresses = Arc::new(RwLock::new(vec![first.address()]));
    let mut servers = vec![first];
    for _ in 0..2 {
        servers.push(start());
        addresses.write().unwrap().push(servers.last().unwrap().address());
    }
    let ended = Arc::<AtomicUsize>::default();
    let mut callers = JoinSet::new();
    for caller in 0..24_u64 {
        let (addresses, key, ended) = (Arc::clone(&addresses), key.clone(), Arc::clone(&ended));
        callers.spawn(async move {
            let mut dice = Dice::new(caller + 1);
            let mut refused = 0;
            while refused < 3 {
                let address = addresses.read().unwrap()[dice.below(3)];
                let api = Api {
                    address,
                    credential: key.clone(),
                };
                let body = json!({"model": "gpt-5.5", "input": "x", "max_output_tokens": 100 + dice.below(1900)});
                let path = "/api/agents/model-calls/openai/v1/responses?agent_id=writer";
                match api.send("POST", path, "", Some(body)).await {
                    Ok(answer) if answer.status == 402 => refused += 1,
                    Ok(answer) if answer.status == 200 => {
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                    // The server was killed, or stops.
                    Ok(_) | Err(_) => tokio::task::yield_now().await,
                }
            }
        });
    }
    for kill in 0..kills {
        let before = ended.load(Ordering::SeqCst);
        // Some calls end between two kills, unless the budget is used up.
        let progress = async {
            while ended.load(Ordering::SeqCst) < before + 20 && !callers.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
                if biller.billed() + 100_000_000 > 2 * kills * 1_000_000_000 {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(20), progress).await;
        let place = (kill % 3) as usize;
        drop(servers.remove(place));
        servers.insert(place, start());
        addresses.write().unwrap()[place] = servers[place].address();
    }
    while callers.join_next().await.is_some() {}

    let limit = 2 * kills * 1_000_000_000;
    let billed = biller.billed();
    assert!(billed <= limit, "{billed} were billed of {limit}");
    assert!(billed * 2 > limit, "the budget is used: {billed} of {limit}");
    // Nothing that was billed is forgotten: what killed servers had taken counts, once they are known to be gone.
    let mut counted = 0;
    for _ in 0..300 {
        let budget = servers[0].api(&ada).get(&budgets).await.expect(200);
        counted = ["spent_usd", "reserved_usd", "unsettled_usd"]
            .map(|name| nanos(&budget[0][name]))
            .iter()
            .sum();
        if counted >= billed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(
        counted >= billed && counted <= limit,
        "{counted} are counted of {billed}"
    );
}
