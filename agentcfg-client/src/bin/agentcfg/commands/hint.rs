//! What to do about a failure.

use crate::failure::Failure;
use crate::session::{Origin, Origins};

/// Whether a server answered the beginning of TLS with something else.
fn speaks_no_tls(error: &agentcfg_client::Error) -> bool {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes
        .last()
        .is_some_and(|cause| cause.to_string().contains("corrupt message"))
}

/// What to do about a failure.
pub(super) fn hint(failure: &Failure, origins: Option<&Origins>) -> Option<String> {
    let error = match failure {
        Failure::Call(error) => error,
        Failure::Other { hint, .. } => return hint.clone(),
        Failure::Files(_) | Failure::OutputClosed => return None,
    };
    let hint = if error.is_connect() && speaks_no_tls(error) {
        "The server speaks no TLS on this port: its URL begins with http://".to_owned()
    } else if error.is_connect() {
        match origins.map(|origins| origins.of_url) {
            Some(Origin::Environment(name)) => {
                format!("Start a server there, such as `agentcfg-server dev`, or set {name} to another one.")
            }
            _ => "Start a server there, such as `agentcfg-server dev`, or sign in to another: agentcfg login --url URL"
                .to_owned(),
        }
    } else if error.is_unauthorized() {
        match origins.map(|origins| origins.of_secret) {
            Some(Origin::Environment(name)) => {
                format!("The credential is from {name}, which is wrong, revoked or expired.")
            }
            Some(Origin::CommandLine(_) | Origin::Default) => {
                "The credential is wrong, revoked, expired, or one of another server.".to_owned()
            }
            _ => "The credential of `agentcfg login` was revoked or has expired. Sign in again.".to_owned(),
        }
    } else if error.is_forbidden() && error.message().contains("session token") {
        "Sign in as a user: `agentcfg login`, with a token of your identity provider or of `agentcfg-server token`."
            .to_owned()
    } else if error.is_forbidden() {
        "`agentcfg whoami` shows the workspaces and permissions of the credential.".to_owned()
    } else if error.may_have_been_applied() {
        "The server may have made the change. Check before you try again.".to_owned()
    } else if error.is_rate_limited() {
        let seconds = error.retry_after()?.as_secs();
        format!("Try again in {} s.", seconds.max(1))
    } else {
        return None;
    };
    Some(hint)
}
