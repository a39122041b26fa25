//! Races between uses and withdrawals of rights: owners, keys and members.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use agentcfg_tests::harness::{Studio, Wire, at_once, unique};
use serde_json::{Value, json};

#[test]
fn an_owner_remains_when_all_owners_leave_concurrently() {
    for _ in 0..5 {
        let studio = Studio::open();
        let mut owners = vec![studio.user.clone()];
        for _ in 0..5 {
            let user = unique("owner");
            studio.set_member(&user, "owner").expect(200);
            owners.push(user);
        }
        let tokens: Vec<_> = owners.iter().map(|owner| studio.server.token(owner)).collect();
        let statuses = at_once(owners.len(), |number| {
            let target = format!(
                "/api/workspaces/members?workspace_id={}&user_id={}",
                studio.id, owners[number]
            );
            let method = if number % 2 == 0 { "DELETE" } else { "PUT" };
            let request = studio.server.request(method, target).bearer(&tokens[number]);
            let request = if number % 2 == 0 {
                request
            } else {
                request.json(&json!({"role": "viewer"}))
            };
            request.send().status
        });
        assert_eq!(
            statuses.iter().filter(|status| **status == 200).count(),
            5,
            "{statuses:?}"
        );
        assert_eq!(
            statuses.iter().filter(|status| **status == 409).count(),
            1,
            "{statuses:?}"
        );
    }
}

#[test]
fn two_owners_who_demote_each_other_leave_one_owner() {
    for _ in 0..5 {
        let studio = Studio::open();
        let second = unique("second");
        studio.set_member(&second, "owner").expect(200);
        let pair = [
            (studio.owner.clone(), second.clone()),
            (studio.server.token(&second), studio.user.clone()),
        ];
        let statuses = at_once(2, |number| {
            let (token, other) = &pair[number];
            let target = format!("/api/workspaces/members?workspace_id={}&user_id={other}", studio.id);
            studio
                .server
                .put(target)
                .bearer(token)
                .json(&json!({"role": "member"}))
                .send()
                .status
        });
        assert_eq!(
            statuses.iter().filter(|status| **status == 200).count(),
            1,
            "{statuses:?}"
        );
        let owners = pair.iter().filter(|(token, _)| {
            let target = format!("/api/workspaces?workspace_id={}", studio.id);
            studio
                .server
                .patch(target)
                .bearer(token)
                .json(&json!({"name": "mine"}))
                .send()
                .status
                == 200
        });
        assert_eq!(owners.count(), 1);
    }
}

/// Changes an agent repeatedly with a credential, on several connections, while `end` withdraws its
/// right. Requests that start after `end` has returned must be refused with `refusal`.
fn while_in_use(studio: &Studio<'_>, credential: &str, refusal: u16, end: impl Fn()) {
    let ended = AtomicBool::new(false);
    let target = format!("/api/agents/configs?workspace_id={}&agent_id=a", studio.id);
    let request = studio
        .server
        .patch(target)
        .bearer(credential)
        .json(&json!({"role": "x"}));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut wire = Wire::connect(studio.server.address());
                let mut refused = 0;
                while refused < 5 {
                    let late = ended.load(Ordering::SeqCst);
                    let answer = request.send_on(&mut wire);
                    assert!([200, refusal].contains(&answer.status), "{answer:?}");
                    assert!(!late || answer.status == refusal, "accepted after the end: {answer:?}");
                    refused += usize::from(answer.status == refusal);
                }
            });
        }
        let entries = studio.audit().len();
        // `end` runs in the middle of the load.
        agentcfg_tests::harness::eventually("the credential is in use", || studio.audit().len() > entries + 20);
        end();
        ended.store(true, Ordering::SeqCst);
    });
}

/// Asserts that the log has no entry of the actor after the entry of this action.
fn assert_no_entry_after(studio: &Studio<'_>, actor: &str, action: &str) {
    for entry in studio.audit() {
        assert_ne!(entry["actor"]["id"], actor, "after {action}: {entry}");
        if entry["action"] == action {
            return;
        }
    }
    panic!("no {action} in the log");
}

#[test]
fn a_key_is_refused_once_its_revocation_is_acknowledged() {
    for _ in 0..3 {
        let studio = Studio::open();
        studio.create("a", &Value::Null).expect(201);
        let key = studio.key_with(&json!({"rate_limit": 1_000_000}));
        while_in_use(&studio, &key.key, 401, || studio.revoke(&key));
        assert_no_entry_after(&studio, &key.id, "api_key.revoked");
    }
}

#[test]
fn a_member_is_refused_once_the_removal_is_acknowledged() {
    let server = agentcfg_tests::harness::Server::builder()
        .set("session_rate_limit", "1000000")
        .start();
    for _ in 0..3 {
        let studio = Studio::on(&server);
        studio.create("a", &Value::Null).expect(201);
        let user = unique("leaving");
        studio.set_member(&user, "member").expect(200);
        while_in_use(&studio, &server.token(&user), 403, || {
            let target = format!("/api/workspaces/members?workspace_id={}&user_id={user}", studio.id);
            server.delete(target).bearer(&studio.owner).send().expect(200);
        });
        assert_no_entry_after(&studio, &user, "member.removed");
    }
}
