//! What to do about a failure.

use std::error::Error;

use agentcfg_core::error::causes;
use rustls::CertificateError;

use crate::failure::CommandFailure;
use crate::session::{CA_FILE, Origin, Origins};

/// What a URL of a server must be.
pub(super) const WITHOUT_API: &str =
    "The URL is the address of the server alone, such as http://127.0.0.1:7420, without /api.";

/// Whether a URL ends with the path of the API, to which the client adds it again.
fn names_the_api(url: &str) -> bool {
    url.trim_end_matches('/').ends_with("/api")
}

/// Whether a server answered the beginning of TLS with something else.
fn speaks_no_tls(error: &agentcfg_client::Error) -> bool {
    causes(error)
        .last()
        .is_some_and(|cause| cause.to_string().contains("corrupt message"))
}

/// What to do about a certificate that was refused; `None` where the error is another.
fn of_certificate(error: &(dyn Error + 'static)) -> Option<String> {
    let fault = causes(error).find_map(|cause| match cause.downcast_ref() {
        Some(rustls::Error::InvalidCertificate(fault)) => Some(fault),
        _ => None,
    })?;
    let hint = match fault {
        CertificateError::UnknownIssuer => format!(
            "If you trust the authority of the certificate, set {CA_FILE} to a PEM file with it."
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "The certificate is for another name: use that name in the URL, or give the server a certificate for this one."
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "The certificate of the server has expired and must be renewed. Check the clock of this machine too.".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "The certificate of the server is not valid yet. Check the clock of this machine.".to_owned()
        }
        CertificateError::Other(other) if other.0.to_string() == "CaUsedAsEndEntity" => {
            "Give the server another certificate. `openssl req -x509` makes one without CA:TRUE if you add `-addext \
             basicConstraints=critical,CA:FALSE`."
                .to_owned()
        }
        _ => "The server, or a proxy in front of it, needs another certificate.".to_owned(),
    };
    Some(hint)
}

const MAYBE_APPLIED: &str = "The server may have made the change. Check before you try again.";

/// What to do about an error of a proxy in front of the server, which does not number its answers.
fn of_proxy(failure: &CommandFailure, error: &agentcfg_client::Error) -> Option<String> {
    if !failure.is_of_another_server() {
        return None;
    }
    let hint = match error.status()? {
        407 => "A proxy on the way needs a user and a password: HTTP_PROXY=http://user:password@host:port",
        413 => {
            "A proxy in front of the server refuses requests of this size. Raise its limit, such as client_max_body_size of nginx, \
             or keep the agents in several directories, each with a set of its own."
        }
        502 => {
            "A proxy in front of the server has no connection to it. Check that agentcfg-server runs where the proxy expects it."
        }
        503 => "A proxy in front of the server has no server that takes requests now. Try again later.",
        504 => {
            "A proxy in front of the server has not waited for its answer. Raise its limit, such as proxy_read_timeout of nginx."
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The host in a URL, with the brackets of an IPv6 address removed.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    }
}

/// What to do about a failure.
pub(super) fn hint(failure: &CommandFailure, origins: Option<&Origins>) -> Option<String> {
    let error = match failure {
        CommandFailure::Call(error) => error,
        CommandFailure::Other { hint, .. } => return hint.clone(),
        CommandFailure::Files(_) | CommandFailure::OutputClosed => return None,
    };
    let hint = if error.is_connect() && speaks_no_tls(error) {
        "The server speaks no TLS on this port: its URL begins with http://".to_owned()
    } else if let Some(hint) = of_certificate(error) {
        hint
    } else if error.is_proxy() {
        let host = origins.map_or("HOST", |origins| host(&origins.url));
        format!(
            "The proxy is from HTTPS_PROXY, HTTP_PROXY or ALL_PROXY in the environment. Correct it, or go past it with NO_PROXY={host}"
        )
    } else if error.is_connect() {
        match origins.map(|origins| &origins.of_url) {
            Some(Origin::Environment(name)) => {
                format!("Start a server there, such as `agentcfg-server dev`, or set {name} to another one.")
            }
            _ => "Start a server there, such as `agentcfg-server dev`, or sign in to another: agentcfg login --url URL"
                .to_owned(),
        }
    } else if let Some(hint) = of_proxy(failure, error) {
        hint
    } else if failure.is_of_another_server() && !error.is_rate_limited() && error.status() < Some(500) {
        "Another program than agentcfg-server has answered. Check the URL and what is in front of the server."
            .to_owned()
    } else if error.is_not_found() && origins.is_some_and(|origins| names_the_api(&origins.url)) {
        WITHOUT_API.to_owned()
    } else if error.is_unauthorized() {
        match origins.map(|origins| &origins.of_secret) {
            Some(Origin::Environment(name)) => {
                format!("The credential is from {name}, which is wrong, revoked or expired.")
            }
            Some(Origin::CommandLine(_) | Origin::Default) => {
                "The credential is wrong, revoked, expired, or one of another server.".to_owned()
            }
            Some(Origin::Context(name)) => format!(
                "The credential of the context {name} was revoked or has expired. Replace it with `agentcfg --context {name} login`."
            ),
            _ => "The credential of `agentcfg login` was revoked or has expired. Sign in again.".to_owned(),
        }
    } else if error.is_forbidden() && error.message().contains("session token") {
        "Sign in as a user: `agentcfg login`, with a token of your identity provider or of `agentcfg-server token`."
            .to_owned()
    } else if error.is_forbidden() {
        "`agentcfg whoami` shows the workspaces and permissions of the credential.".to_owned()
    } else if error.is_rate_limited() {
        let seconds = error.retry_after()?.as_secs();
        format!("Try again in {} s.", seconds.max(1))
    } else if error.may_have_been_applied() {
        return Some(MAYBE_APPLIED.to_owned());
    } else {
        return None;
    };
    Some(match error.may_have_been_applied() {
        true => format!("{hint} {MAYBE_APPLIED}"),
        false => hint,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no connection")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn the_host_of_a_url_is_what_no_proxy_takes() {
        for (url, expected) in [
            ("https://agents.example.com/agentcfg", "agents.example.com"),
            ("http://127.0.0.1:7420", "127.0.0.1"),
            ("http://[::1]:7420/", "::1"),
        ] {
            assert_eq!(host(url), expected);
        }
    }

    #[test]
    fn a_refused_certificate_has_its_own_way_out() {
        let hint = |fault: CertificateError| {
            let error = io::Error::other(rustls::Error::InvalidCertificate(fault));
            of_certificate(&Outer(io::Error::other(error))).unwrap()
        };
        assert!(hint(CertificateError::UnknownIssuer).contains("AGENTCFG_CA_FILE"));
        assert!(hint(CertificateError::NotValidForName).contains("another name"));
        assert!(hint(CertificateError::Expired).contains("has expired"));
        assert!(hint(CertificateError::NotValidYet).contains("not valid yet"));
        assert!(hint(CertificateError::Revoked).contains("another certificate"));
        assert_eq!(of_certificate(&Outer(io::Error::other("reset"))), None);
    }
}
