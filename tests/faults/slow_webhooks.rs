//! Many webhooks of one owner whose receivers are slow: the events of another tenant are sent at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentcfg_tests::harness::{Server, Studio, at_once, scratch, setting, until};
use serde_json::{Value, json};

use crate::crowds::raise_open_files;
use crate::receiver::Receiver;

/// Slow webhooks in the short form: more than there are sessions. `CASES` sets another number.
const WEBHOOKS: usize = 600;
const OF_A_WORKSPACE: usize = 20;
/// How long the slow receiver takes for each answer: a second less than the sender waits.
const SLOW: Duration = Duration::from_secs(14);
/// Events of the other tenant, and the pauses between them: in the full form they last until slow receivers were
/// waited for several times.
const EVENTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_IN_FULL: Duration = Duration::from_secs(3);
/// The time in which each of them must arrive.
const IN_TIME: Duration = Duration::from_secs(1);
/// Clients that fill the store.
const CLIENTS: usize = 8;

fn webhook(studio: &Studio<'_>, receiver: &Receiver) {
    let body = json!({"workspace_id": studio.id, "url": receiver.url("/hook")});
    let request = studio.server.post("/api/webhooks").bearer(&studio.owner);
    request.json(&body).send().expect(201);
}

fn change(studio: &Studio<'_>, number: usize) -> u64 {
    studio
        .change("a", &json!({"role": format!("role {number}")}))
        .expect(200);
    studio.audit_page(1)[0]["revision"].as_u64().unwrap()
}

#[test]
fn slow_webhooks_of_one_owner_delay_no_other_tenant() {
    raise_open_files();
    let webhooks = setting("CASES", WEBHOOKS);
    let (slow, prompt) = (Receiver::start(), Receiver::start());
    slow.pause(SLOW);
    let place = scratch();
    let server = Server::builder()
        .data(place.path().join("data"))
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .set("max_workspaces_per_user", "0")
        .set(
            "webhook_allowed_hosts",
            format!("{},{}", slow.address(), prompt.address()),
        )
        .set("log", "error")
        .start();
    let first = Studio::on(&server);
    let workspaces: Vec<Studio<'_>> = (0..webhooks / OF_A_WORKSPACE).map(|_| first.sibling()).collect();
    let tenant = Studio::on(&server);
    tenant.create("a", &Value::Null).expect(201);
    webhook(&tenant, &prompt);
    at_once(CLIENTS, |client| {
        for studio in workspaces.iter().skip(client).step_by(CLIENTS) {
            studio.create("a", &Value::Null).expect(201);
            for _ in 0..OF_A_WORKSPACE {
                webhook(studio, &slow);
            }
        }
    });
    let is_over = AtomicBool::new(false);
    let mut times = thread::scope(|scope| {
        // Each slow webhook has always something to send.
        for client in 0..2 {
            let (workspaces, is_over) = (&workspaces, &is_over);
            scope.spawn(move || {
                for (number, studio) in workspaces.iter().cycle().skip(client).step_by(2).enumerate() {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    studio
                        .change("a", &json!({"role": format!("role {number}")}))
                        .expect(200);
                }
            });
        }
        until("slow receivers are waited for", || {
            (slow.count() >= webhooks.min(100)).then_some(())
        });
        let times: Vec<_> = (0..EVENTS)
            .map(|number| {
                thread::sleep(if webhooks > WEBHOOKS { PAUSE_IN_FULL } else { PAUSE });
                let changed = Instant::now();
                let revision = change(&tenant, number);
                until("the event of the other tenant arrives", || {
                    let last = prompt.messages().last().map(|message| message.revision());
                    (last == Some(revision)).then_some(())
                });
                changed.elapsed()
            })
            .collect();
        is_over.store(true, Ordering::SeqCst);
        times
    });
    times.sort();
    println!(
        "FIGURES {} webhooks of one owner with receivers that take {SLOW:?}, {} messages to them: \
         {EVENTS} events of another tenant arrived after {} ms (median), {} ms at most",
        workspaces.len() * OF_A_WORKSPACE,
        slow.count(),
        times[EVENTS / 2].as_millis(),
        times[EVENTS - 1].as_millis()
    );
    assert!(times[EVENTS / 2] <= IN_TIME, "{times:?}");
    // One that waits for a slow receiver takes longer, and a busy machine does not.
    assert!(times[EVENTS - 1] < SLOW / 2, "{times:?}");
}
