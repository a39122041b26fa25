//! A provider that bills each call as it arrives: at most a third of its bytes, and at most its cap.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use agentcfg_tests::harness::Dice;
use serde_json::{Value, json};

use crate::model_calls::read_request;

/// Billionths of a USD for a token of gpt-5.5.
pub const INPUT: i64 = 5_000;
pub const OUTPUT: i64 = 30_000;

/// The tokens that a call has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    pub input: i64,
    pub output: i64,
}

impl Bill {
    pub fn nanos(self) -> i64 {
        self.input * INPUT + self.output * OUTPUT
    }

    /// The answer that reports it.
    pub fn answer(self, number: u32) -> String {
        let usage = json!({"input_tokens": self.input, "output_tokens": self.output});
        json!({"id": format!("answer-{number}"), "output": [], "usage": usage}).to_string()
    }
}

/// The bills of all calls, by their numbers.
#[derive(Default)]
pub struct Bills {
    pub of: HashMap<u32, Bill>,
    /// The calls that arrived more than once.
    pub repeated: Vec<u32>,
}

/// The provider of this process. It ends with the process.
pub struct Biller {
    address: SocketAddr,
    bills: Arc<Mutex<Bills>>,
}

impl Biller {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let bills = Arc::<Mutex<Bills>>::default();
        let of_all = Arc::clone(&bills);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let bills = Arc::clone(&of_all);
                // A connection that breaks is one of a killed server.
                thread::spawn(move || serve(stream, &bills));
            }
        });
        Self { address, bills }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn bills(&self) -> MutexGuard<'_, Bills> {
        self.bills.lock().unwrap()
    }
}

fn serve(stream: TcpStream, bills: &Mutex<Bills>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(body) = read_request(&mut reader)? {
        let sent: Value = serde_json::from_slice(&body)?;
        let prompt = sent["input"].as_str().unwrap_or_default();
        let number: u32 = prompt.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap();
        let mut dice = Dice::new(number.into());
        let cap = sent["max_output_tokens"].as_u64().expect("each call has a cap");
        let bill = Bill {
            input: 1 + dice.below(body.len().div_ceil(3)) as i64,
            output: 1 + dice.below(cap as usize) as i64,
        };
        let mut bills = bills.lock().unwrap();
        if bills.of.insert(number, bill).is_some() {
            bills.repeated.push(number);
        }
        drop(bills);
        let text = bill.answer(number);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ";
        writer.write_all(format!("{head}{}\r\n\r\n{text}", text.len()).as_bytes())?;
    }
    Ok(())
}
