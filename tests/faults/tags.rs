//! Entity tags after restores: no tag from before a restore matches or comes back after it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use agentcfg_tests::harness::{Dice, Response, Server, Studio, eventually, run, scratch, setting};
use serde_json::{Value, json};

/// Restores in the short form; `CASES` sets another number.
const RESTORES: usize = 4;
const WRITERS: usize = 3;
const AGENTS: usize = 4;
/// A backup begins after at most this many changes.
const CHANGES: usize = 40;
/// The most stale tags, the newest ones, that are sent after a restore; all are compared.
const TRIED: usize = 1000;

/// The tags that any server has answered, in order.
#[derive(Default)]
struct Tags(Mutex<Vec<String>>);

impl Tags {
    fn note(&self, answer: &Response) {
        self.0.lock().unwrap().push(bare(&answer.etag()));
    }

    fn all(&self) -> Vec<String> {
        let mut tags = self.0.lock().unwrap();
        let mut known = HashSet::new();
        tags.retain(|tag| known.insert(tag.clone()));
        tags.clone()
    }
}

/// A tag without the suffix that names the coding of the body.
fn bare(tag: &str) -> String {
    tag.replace("-gzip\"", "\"")
}

fn start(data: &Path) -> Server {
    Server::builder()
        .data(data)
        .set("default_plan", "enterprise")
        .set("session_rate_limit", "1000000")
        .start()
}

/// Changes agents until it is stopped, and notes the tags of all answers.
fn write(studio: &Studio<'_>, writer: usize, mut dice: Dice, stop: &AtomicBool, tags: &Tags, changes: &AtomicUsize) {
    while !stop.load(Ordering::SeqCst) {
        let id = format!("w{writer}-{}", dice.below(AGENTS));
        let answer = match dice.below(6) {
            0 => studio.restore(&id),
            1 => studio.remove(&id),
            _ => studio.change(&id, &json!({"role": format!("{}", dice.below(1000))})),
        };
        if answer.status == 200 && answer.header("etag").is_some() {
            tags.note(&answer);
        }
        changes.fetch_add(1, Ordering::SeqCst);
        tags.note(&studio.list());
        tags.note(
            &studio
                .list_request(&format!("&state=all&agent_id={id}"))
                .send()
                .expect(200),
        );
    }
}

/// Tries all tags of earlier servers: none matches, whatever the request.
fn verify(studio: &Studio<'_>, stale: &[String], dice: &mut Dice) -> usize {
    let mut fresh = HashSet::from([bare(&studio.list().etag())]);
    let active = studio.agent_ids();
    for id in &active {
        let list = studio.list_request(&format!("&agent_id={id}")).send().expect(200);
        fresh.insert(bare(&list.etag()));
    }
    for tag in stale {
        assert!(!fresh.contains(tag), "{tag} came back");
    }
    // Many in each request, and some alone, on a random agent.
    let mut tried = 0;
    let stale = &stale[stale.len().saturating_sub(TRIED)..];
    for some in stale
        .chunks(40)
        .map(<[String]>::to_vec)
        .chain(stale.iter().take(5).map(|tag| vec![tag.clone()]))
    {
        let any = some.join(", ");
        let list = studio.list_request("").header("If-None-Match", &any).send();
        assert_eq!(list.status, 200, "a stale tag matches: {list:?}");
        if !active.is_empty() {
            let id = &active[dice.below(active.len())];
            for method in ["PATCH", "DELETE"] {
                let request = studio.on_agent(method, id).header("If-Match", &any);
                request.json(&json!({"role": "lost"})).send().expect(412);
            }
            let list = studio
                .list_request(&format!("&agent_id={id}"))
                .header("If-None-Match", &any)
                .send();
            assert_eq!(list.status, 200, "a stale tag matches: {list:?}");
        }
        tried += some.len();
    }
    tried
}

#[test]
fn no_tag_from_before_a_restore_matches_after_it() {
    let mut dice = Dice::of("tags");
    let restores = setting("CASES", RESTORES);
    let place = scratch();
    let tags = Tags::default();
    let mut server = start(&place.path().join("data-0"));
    let founder = Studio::on(&server);
    for writer in 0..WRITERS {
        for number in 0..AGENTS {
            founder.create(&format!("w{writer}-{number}"), &Value::Null).expect(201);
        }
    }
    let identity = founder.identity();
    let mut tried = 0;
    for restore in 1..=restores {
        let studio = identity.on(&server);
        let (changes, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let [data, copy, next] = [
            server.data().to_owned(),
            place.path().join(format!("copy-{restore}")),
            place.path().join(format!("data-{restore}")),
        ];
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (studio, stop, tags, changes, dice) = (&studio, &stop, &tags, &changes, dice.split(writer));
                scope.spawn(move || write(studio, writer, dice, stop, tags, changes));
            }
            let reached = |count: usize| eventually("changes are made", || changes.load(Ordering::SeqCst) >= count);
            reached(1 + dice.below(CHANGES));
            run([
                "backup".as_ref(),
                "--data".as_ref(),
                data.as_os_str(),
                "--out".as_ref(),
                copy.as_os_str(),
            ])
            .succeeded();
            // Changes after the backup are lost, and versions are assigned a second time.
            reached(changes.load(Ordering::SeqCst) + 1 + dice.below(CHANGES));
            stop.store(true, Ordering::SeqCst);
        });
        run([
            "restore".as_ref(),
            "--from".as_ref(),
            copy.as_os_str(),
            "--data".as_ref(),
            next.as_os_str(),
        ])
        .succeeded();
        for secret in ["master.key", "session.key"] {
            std::fs::copy(data.join(secret), next.join(secret)).unwrap();
        }
        server.stop();
        server = start(&next);
        let studio = identity.on(&server);
        let stale = tags.all();
        tried += verify(&studio, &stale, &mut dice);
        // Also not when as many changes were made again.
        for number in 0..10 {
            for id in studio.agent_ids() {
                studio
                    .change(&id, &json!({"role": format!("again {number}")}))
                    .expect(200);
            }
        }
        tried += verify(&studio, &stale, &mut dice);
        std::fs::remove_file(copy).unwrap();
        std::fs::remove_dir_all(data).unwrap();
    }
    println!("FIGURES tags: {restores} restores under writers, {tried} stale tags tried, 0 matched or came back");
    assert!(tried > 0);
}
