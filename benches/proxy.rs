//! Model calls through the server, beside what else could stand before the same upstream: nginx, a bare reverse proxy of
//! hyper-util, and LiteLLM.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_benches::paced::{Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, litellm, nginx, request, wrk};

const CONNECTIONS: usize = 64;
const WHOLE: &str = r#"{"messages":[{"role":"user","content":"Draft the notes for 2.4."}]}"#;
const STREAMED: &str = r#"{"stream":true,"messages":[{"role":"user","content":"Draft the notes for 2.4."}]}"#;
const AGENT: &str = r#"{"agent_id":"writer","display_name":"Writer","model":"gpt-5.5","persona_prompt":"You write release notes: short, exact, and in the words of the reader."}"#;

const DIRECT: &str = "/v1/chat/completions";
const THROUGH_AGENT: &str = "/api/agents/model-calls/openai/v1/chat/completions?agent_id=writer";

/// A way to the upstream.
struct Way {
    name: &'static str,
    server: Server,
    path: &'static str,
    /// What the caller adds to the body.
    more: &'static str,
}

impl Way {
    fn direct(name: &'static str, server: Server) -> Self {
        Self {
            name,
            server,
            path: DIRECT,
            more: "",
        }
    }

    /// The body of a call on this way.
    fn body(&self, body: &str) -> String {
        body.replacen('{', &format!("{{{}", self.more), 1)
    }

    const fn address(&self) -> SocketAddr {
        self.server.address
    }
}

/// The ways in the order of the rows. The first is the upstream itself, the second is the baseline.
struct Ways {
    all: Vec<Way>,
    keys: Vec<String>,
}

const UPSTREAM: usize = 0;
const BASELINE: usize = 1;
const PRODUCT: &str = "agentcfg";

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let mut ways = Ways::start(&product, data.path())?;
    println!(
        "| answer | load | through | calls/s | ratio (this / nginx) | CPU, µs a call | added to the upstream alone, µs | resident, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    ways.closed("JSON, 1 KiB", WHOLE, 1)?;
    let most = ways.closed("JSON, 1 KiB", WHOLE, CONNECTIONS)?;
    ways.closed("50 events", STREAMED, 1)?;
    ways.closed("50 events", STREAMED, CONNECTIONS)?;
    ways.half(most / 2.0)?;
    // In rounds of its own: it works on for seconds after its callers have left, which would slow the others.
    ways.replace_by_litellm(data.path())?;
    ways.closed("JSON, 1 KiB", WHOLE, 1)?;
    ways.closed("JSON, 1 KiB", WHOLE, CONNECTIONS)?;
    // With 64 in flight its streams take longer than wrk waits for an answer.
    ways.closed("50 events", STREAMED, 1)?;
    Ok(())
}

impl Ways {
    /// Starts the upstream and all that passes calls on to it. The server has a workspace whose own provider key is used.
    fn start(product: &Product, data: &Path) -> Result<Self, Failure> {
        let upstream = Server::start(Command::new(env!("CARGO_BIN_EXE_bench-server")).arg("provider"))?;
        let address = upstream.address;
        let pass = Server::start(
            Command::new(env!("CARGO_BIN_EXE_bench-server"))
                .arg("pass")
                .arg(address.to_string()),
        )?;
        let base_url = format!("http://{address}");
        let server = product.serve_with(&data.join("data"), "AGENTCFG_OPENAI_BASE_URL", &base_url)?;
        let workspace = product.workspace(server.address)?;
        let saved = product.send(
            server.address,
            "PUT",
            &format!("/api/provider-keys?workspace_id={}&provider=openai", workspace.id),
            r#"{"api_key":"sk-bench-0123456789abcdef0123456789abcdef"}"#,
        )?;
        let agent = AGENT.replacen('{', &format!(r#"{{"workspace_id":"{}","#, workspace.id), 1);
        let made = request::send(
            server.address,
            "POST",
            "/api/agents/configs",
            &workspace.keys[0],
            &agent,
        )?;
        for (answer, status) in [(saved, "HTTP/1.1 200"), (made, "HTTP/1.1 201")] {
            if !answer.starts_with(status) {
                return Err(answer.into());
            }
        }
        let all = vec![
            Way::direct("nothing", upstream),
            Way::direct("nginx", nginx::start(address, data)?),
            Way::direct("hyper-util", pass),
            Way {
                path: THROUGH_AGENT,
                ..Way::direct(PRODUCT, server)
            },
        ];
        let ways = Self {
            all,
            keys: workspace.keys,
        };
        ways.check()?;
        Ok(ways)
    }

    /// Ends all ways but the first two, and starts LiteLLM. Without a database it has one key, and no limits.
    fn replace_by_litellm(&mut self, data: &Path) -> Result<(), Failure> {
        self.all.truncate(BASELINE + 1);
        self.keys.truncate(1);
        let litellm = litellm::start(self.all[UPSTREAM].address(), &self.keys[0], data)?;
        self.all.push(Way {
            more: r#""model":"gpt-5.5","#,
            ..Way::direct("LiteLLM", litellm)
        });
        self.check()
    }

    /// Every way gives the answer of the upstream. The first use of each key costs a password hash.
    fn check(&self) -> Result<(), Failure> {
        for (body, expected) in [(WHOLE, "chat.completion\""), (STREAMED, "chat.completion.chunk\"")] {
            for way in &self.all {
                for key in &self.keys {
                    let answer = request::send(way.address(), "POST", way.path, key, &way.body(body))?;
                    if !answer.starts_with("HTTP/1.1 200") || !answer.contains(expected) {
                        return Err(format!("{}: {answer}", way.name).into());
                    }
                }
            }
        }
        Ok(())
    }

    /// A key for each round, so that none reaches its rate limit.
    fn key(&self, round: usize) -> &str {
        &self.keys[round % self.keys.len()]
    }

    /// Measures the ways in turn, in rounds of which the first only warms up. `run` puts figures of its load and
    /// returns how many calls were answered and refused.
    fn measure(
        &self,
        run: impl Fn(&Way, usize, Duration, &mut Figures) -> Result<(u64, u64), Failure>,
    ) -> Result<Vec<Figures>, Failure> {
        let none = || self.all.iter().map(|_| Figures::default()).collect::<Vec<_>>();
        let mut measured = none();
        let time = Duration::from_secs_f64(seconds(3.0));
        for round in 0..=rounds(5) {
            if round == 1 {
                measured = none();
            }
            for (way, figures) in self.all.iter().zip(&mut measured) {
                self.all.iter().for_each(|way| way.server.wait_until_idle());
                let before = way.server.cpu_seconds();
                let (answered, refused) = run(way, round, time, figures)?;
                if refused > 0 {
                    return Err(format!("{}: {refused} calls were refused", way.name).into());
                }
                let cpu = way.server.cpu_seconds() - before;
                figures.cpu.push(cpu * 1e6 / answered as f64);
                figures.resident.push(way.server.resident_mib());
            }
        }
        Ok(measured)
    }

    /// A closed loop over this many connections. Returns the calls per second of the product.
    fn closed(&self, answer: &str, body: &str, connections: usize) -> Result<f64, Failure> {
        let measured = self.measure(|way, round, time, figures| {
            let (key, body) = (self.key(round), way.body(body));
            let outcome = wrk::post(way.address(), way.path, key, &body, connections, time)?;
            figures.per_second.push(outcome.per_second());
            figures.took.push(connections as f64 * 1e6 / outcome.per_second());
            Ok((outcome.answered, outcome.refused))
        })?;
        let load = format!("{connections} in flight");
        self.print(&measured, answer, &load, |figures| &figures.took);
        let product = self.all.iter().position(|way| way.name == PRODUCT);
        Ok(product.map_or(f64::NAN, |i| measured[i].per_second.median()))
    }

    /// An open loop at a fixed rate.
    fn half(&self, per_second: f64) -> Result<(), Failure> {
        let pace = Pace {
            connections: CONNECTIONS,
            per_second,
            status: 200,
        };
        let measured = self.measure(|way, round, time, figures| {
            let call = request::post(way.path, self.key(round), &way.body(WHOLE));
            let calls: Arc<[Vec<u8>]> = Arc::new([call.into_bytes()]);
            let outcome = Paced::start(way.address(), pace, &calls)?.run_for(time)?;
            figures.per_second.push(outcome.per_second());
            figures.took.push(outcome.percentile(0.5) * 1e3);
            figures.slowest.push(outcome.percentile(0.99) * 1e3);
            Ok((outcome.answered, outcome.refused))
        })?;
        self.print(&measured, "JSON, 1 KiB", "half, p50", |figures| &figures.took);
        self.print(&measured, "JSON, 1 KiB", "half, p99", |figures| &figures.slowest);
        Ok(())
    }

    /// Prints a row for each way; `took` picks the time of a call that is shown.
    fn print(&self, measured: &[Figures], answer: &str, load: &str, took: impl Fn(&Figures) -> &Series) {
        for (i, (way, figures)) in self.all.iter().zip(measured).enumerate() {
            let added = match i {
                UPSTREAM => String::new(),
                _ => took(figures).minus(took(&measured[UPSTREAM])).to_string(),
            };
            println!(
                "| {answer} | {load} | {} | {} | {} | {} | {added} | {} |",
                way.name,
                figures.per_second,
                figures.per_second.over(&measured[BASELINE].per_second),
                figures.cpu,
                figures.resident,
            );
        }
    }
}

/// The measurements of one way.
#[derive(Default)]
struct Figures {
    per_second: Series,
    /// Microseconds of processor time of the proxy for each call.
    cpu: Series,
    /// Microseconds that a call took: the mean of a closed loop, the median of an open one.
    took: Series,
    /// Microseconds within which 99 of 100 calls of an open loop were answered.
    slowest: Series,
    /// MiB of resident memory after the round.
    resident: Series,
}
