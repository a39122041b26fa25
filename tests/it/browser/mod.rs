//! The dashboard's side of the API: sessions of browsers, login links, who the caller is, rotation of keys, and the
//! files.

mod files;
mod login;
mod rotation;
mod sessions;
mod whoami;

use agentcfg_tests::harness::{Response, Server};

/// The cookie that an answer sets, as a browser sends it back.
#[track_caller]
fn cookie(response: &Response) -> String {
    let field = response.header("set-cookie").unwrap_or_else(|| panic!("{response:?}"));
    field.split(';').next().unwrap().to_owned()
}

/// Signs a user in with a session token, and returns the cookie.
#[track_caller]
pub(crate) fn sign_in(server: &Server, token: &str) -> String {
    cookie(&server.post("/api/sessions").bearer(token).send().expect(204))
}

/// The code in a login link.
#[track_caller]
fn code(link: &str) -> &str {
    let link = link.trim();
    link.split_once("/#login=").unwrap_or_else(|| panic!("{link}")).1
}
