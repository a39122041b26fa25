//! Readers of values: bodies, cursors, URLs.

use agentcfg_core::model::{
    After, AgentPatch, AgentSpec, AllowedHost, ApplyAgents, Cursor, Host, LabelTarget, NewAgent, NewApiKey, NewWebhook,
    NewWorkspace, NoFields, Promotion, RoleChange, Rollback, RotateApiKey, SignIn, StatusReport, WebhookPatch,
    WebhookReplay, WebhookUrl, WorkspacePatch,
};
use agentcfg_core::secret::ProviderCredential;
use agentcfg_core::validate::{Invalid, Valid};
use hyper::Uri;
use serde::Serialize;
use serde_json::Value;

use crate::text;

/// The bodies of requests. The first byte chooses one.
pub fn bodies(input: &[u8]) {
    type Reader = fn(&[u8]);
    const READERS: &[Reader] = &[
        |body| read(body, NewAgent::from_json),
        |body| read(body, AgentPatch::from_json),
        |body| read(body, AgentSpec::from_json),
        |body| read(body, ApplyAgents::from_json),
        |body| read(body, NewApiKey::from_json),
        |body| read(body, RotateApiKey::from_json),
        |body| read(body, NewWorkspace::from_json),
        |body| read(body, WorkspacePatch::from_json),
        |body| read(body, RoleChange::from_json),
        |body| read(body, StatusReport::from_json),
        |body| read(body, LabelTarget::from_json),
        |body| read(body, Promotion::from_json),
        |body| read(body, Rollback::from_json),
        |body| read(body, NewWebhook::from_json),
        |body| read(body, WebhookPatch::from_json),
        |body| read(body, WebhookReplay::from_json),
        |body| read(body, SignIn::from_json),
        |body| drop(NoFields::from_json(body)),
        |body| drop(ProviderCredential::from_json(body)),
    ];
    let Some((choice, body)) = input.split_first() else {
        return;
    };
    READERS[usize::from(*choice) % READERS.len()](body);
}

/// Reads a body. A faulty one has a message, and a good one is read back from its own JSON as the same.
fn read<T: Serialize>(body: &[u8], from_json: fn(&[u8]) -> Result<Valid<T>, Invalid>) {
    let read = match from_json(body) {
        Ok(read) => read.into_inner(),
        Err(invalid) => {
            assert!(!invalid.faults().is_empty(), "a refusal names a fault");
            let message = invalid.to_string();
            assert!(
                message.len() <= 16 * body.len() + 4096,
                "a message of {} bytes",
                message.len()
            );
            return;
        }
    };
    // The reader of the product is strict: what it takes is JSON for every other one.
    let _: Value = serde_json::from_slice(body).expect("a body that is taken is JSON");
    let written = serde_json::to_vec(&read).expect("a body can be written");
    let again = from_json(&written).unwrap_or_else(|invalid| panic!("what was read is refused: {invalid}"));
    let written_again = serde_json::to_vec(&again.into_inner()).expect("a body can be written");
    assert_eq!(written, written_again);
}

/// Cursors, as `after`, `base` and `Last-Event-ID` have them.
pub fn cursor(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(cursor) = text.parse::<Cursor>() {
        let written = cursor.to_string();
        assert!(written.eq_ignore_ascii_case(text), "{text} is read as {written}");
        assert_eq!(written.parse(), Ok(cursor));
    }
    if let Ok(after) = text.parse::<After>() {
        assert_eq!(after.to_string().parse(), Ok(after));
    }
}

/// URLs of webhooks and their exceptions: what is checked is what is connected to.
pub fn webhook_url(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Ok(allowed) = text.parse::<AllowedHost>() {
        assert_eq!(allowed.to_string().parse(), Ok(allowed.clone()), "{text}");
        assert!([80, 443].iter().any(|port| allowed.includes(&host_of(&allowed), *port)) || text.contains(':'));
    }
    let Ok(url) = text.parse::<WebhookUrl>() else { return };
    if url.check(&[]).is_ok() {
        assert!(text[..8].eq_ignore_ascii_case("https://"), "{text}");
        if let Host::Address(address) = url.host() {
            assert!(agentcfg_core::address::is_public(*address), "{text}");
        }
    }
    // The connection goes to the host and port that hyper reads in the same text.
    let Ok(uri) = text.parse::<Uri>() else { return };
    let host = uri.host().expect("a URL has a host").trim_matches(['[', ']']);
    let shown = url.host().to_string();
    assert!(
        shown.trim_matches(['[', ']']).eq_ignore_ascii_case(host)
            || host.parse().is_ok_and(|read| same(url.host(), read)),
        "{text}: {shown} is checked and {host} connected to"
    );
    if let Some(port) = uri.port_u16() {
        assert_eq!(port, url.port(), "{text}");
    }
}

fn same(host: &Host, read: std::net::IpAddr) -> bool {
    *host == Host::Address(read)
}

fn host_of(allowed: &AllowedHost) -> Host {
    let text = allowed.to_string();
    let url: WebhookUrl = format!("https://{text}/")
        .parse()
        .expect("an exception is the host of a URL");
    url.host().clone()
}
