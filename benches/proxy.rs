//! Model calls through the server, against nginx as a reverse proxy before the same upstream, and the upstream alone.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use agentcfg_benches::paced::{Pace, Paced};
use agentcfg_benches::process::Server;
use agentcfg_benches::product::Product;
use agentcfg_benches::stats::{Series, rounds, seconds};
use agentcfg_benches::{Failure, nginx, request, wrk};

const CONNECTIONS: usize = 64;
const WHOLE: &str = r#"{"messages":[{"role":"user","content":"Draft the notes for 2.4."}]}"#;
const STREAMED: &str = r#"{"stream":true,"messages":[{"role":"user","content":"Draft the notes for 2.4."}]}"#;
const AGENT: &str = r#"{"agent_id":"writer","display_name":"Writer","model":"gpt-5.5","persona_prompt":"You write release notes: short, exact, and in the words of the reader."}"#;

/// The three ways to the upstream.
struct Ways {
    upstream: Server,
    nginx: Server,
    product: Server,
    keys: Vec<String>,
}

/// One way to the upstream: where the call goes, and the process that passes it on.
struct Way<'a> {
    address: SocketAddr,
    path: &'static str,
    proxy: Option<&'a Server>,
}

fn main() -> Result<(), Failure> {
    let product = Product::build()?;
    let data = tempfile::tempdir()?;
    let ways = Ways::start(&product, data.path())?;
    println!(
        "| answer | load | upstream alone, calls/s | nginx, calls/s | agentcfg, calls/s | ratio (agentcfg / nginx) | CPU of nginx, µs a call | CPU of agentcfg, µs a call | added by nginx, µs | added by agentcfg, µs |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    ways.closed("JSON, 1 KiB", WHOLE, 1)?;
    let most = ways.closed("JSON, 1 KiB", WHOLE, CONNECTIONS)?;
    ways.closed("50 events", STREAMED, 1)?;
    ways.closed("50 events", STREAMED, CONNECTIONS)?;
    ways.half(most / 2.0)
}

impl Ways {
    /// Starts the upstream, nginx and the server, with a workspace whose own provider key is used.
    fn start(product: &Product, data: &std::path::Path) -> Result<Self, Failure> {
        let upstream = Server::start(Command::new(env!("CARGO_BIN_EXE_bench-server")).arg("provider"))?;
        let nginx = nginx::start(upstream.address, data)?;
        let base_url = format!("http://{}", upstream.address);
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
        let ways = Self {
            upstream,
            nginx,
            product: server,
            keys: workspace.keys,
        };
        // Every way gives the answer of the upstream. The first use of each key costs a password hash.
        for (body, expected) in [(WHOLE, "chat.completion\""), (STREAMED, "chat.completion.chunk\"")] {
            for way in ways.all() {
                for key in &ways.keys {
                    let answer = request::send(way.address, "POST", way.path, key, body)?;
                    if !answer.starts_with("HTTP/1.1 200") || !answer.contains(expected) {
                        return Err(answer.into());
                    }
                }
            }
        }
        Ok(ways)
    }

    fn all(&self) -> [Way<'_>; 3] {
        const DIRECT: &str = "/v1/chat/completions";
        const CALL: &str = "/api/agents/model-calls/openai/v1/chat/completions?agent_id=writer";
        let way = |server: &Server, path, proxy| Way {
            address: server.address,
            path,
            proxy,
        };
        [
            way(&self.upstream, DIRECT, None),
            way(&self.nginx, DIRECT, Some(&self.nginx)),
            way(&self.product, CALL, Some(&self.product)),
        ]
    }

    /// A key for each round, so that none reaches its rate limit.
    fn key(&self, round: usize) -> &str {
        &self.keys[round % self.keys.len()]
    }

    /// Measures the three ways in turn, in rounds of which the first only warms up. `run` puts figures of its load and
    /// returns how many calls were answered and refused.
    fn measure(
        &self,
        run: impl Fn(&Way<'_>, usize, Duration, &mut Figures) -> Result<(u64, u64), Failure>,
    ) -> Result<[Figures; 3], Failure> {
        let mut measured: [Figures; 3] = Default::default();
        let time = Duration::from_secs_f64(seconds(3.0));
        for round in 0..=rounds(5) {
            if round == 1 {
                measured = Default::default();
            }
            for (way, figures) in self.all().iter().zip(&mut measured) {
                let before = way.proxy.map_or(0.0, Server::cpu_seconds);
                let (answered, refused) = run(way, round, time, figures)?;
                if refused > 0 {
                    return Err(format!("{refused} calls were refused").into());
                }
                let cpu = way.proxy.map_or(0.0, Server::cpu_seconds) - before;
                figures.cpu.push(cpu * 1e6 / answered as f64);
            }
        }
        Ok(measured)
    }

    /// A closed loop over this many connections. Returns the calls per second of the product.
    fn closed(&self, answer: &str, body: &str, connections: usize) -> Result<f64, Failure> {
        let [direct, nginx, product] = self.measure(|way, round, time, figures| {
            let outcome = wrk::post(way.address, way.path, self.key(round), body, connections, time)?;
            figures.per_second.push(outcome.per_second());
            figures.took.push(connections as f64 * 1e6 / outcome.per_second());
            Ok((outcome.answered, outcome.refused))
        })?;
        println!(
            "| {answer} | {connections} in flight | {} | {} | {} | {} | {} | {} | {} | {} |",
            direct.per_second,
            nginx.per_second,
            product.per_second,
            product.per_second.over(&nginx.per_second),
            nginx.cpu,
            product.cpu,
            nginx.took.minus(&direct.took),
            product.took.minus(&direct.took),
        );
        Ok(product.per_second.median())
    }

    /// An open loop at a fixed rate.
    fn half(&self, per_second: f64) -> Result<(), Failure> {
        let pace = Pace {
            connections: CONNECTIONS,
            per_second,
            status: 200,
        };
        let [direct, nginx, product] = self.measure(|way, round, time, figures| {
            let calls: Arc<[Vec<u8>]> = Arc::new([request::post(way.path, self.key(round), WHOLE).into_bytes()]);
            let outcome = Paced::start(way.address, pace, &calls)?.run_for(time)?;
            figures.per_second.push(outcome.per_second());
            figures.took.push(outcome.percentile(0.5) * 1e3);
            figures.slowest.push(outcome.percentile(0.99) * 1e3);
            Ok((outcome.answered, outcome.refused))
        })?;
        for (name, nginx_added, product_added) in [
            (
                "half, p50",
                nginx.took.minus(&direct.took),
                product.took.minus(&direct.took),
            ),
            (
                "half, p99",
                nginx.slowest.minus(&direct.slowest),
                product.slowest.minus(&direct.slowest),
            ),
        ] {
            println!(
                "| JSON, 1 KiB | {name} | {} | {} | {} | {} | {} | {} | {nginx_added} | {product_added} |",
                direct.per_second,
                nginx.per_second,
                product.per_second,
                product.per_second.over(&nginx.per_second),
                nginx.cpu,
                product.cpu,
            );
        }
        Ok(())
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
}
