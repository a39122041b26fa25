//! The credential of a request.

use std::borrow::Cow;
use std::fmt;

use agentcfg_core::{AgentCfg, Caller, Error};
use hyper::Method;
use hyper::header::{self, HeaderMap};

use crate::api::route::Needs;
use crate::http::browser::Cookie;
use crate::http::errors::Failure;
use crate::http::request::HeadFields;
use crate::http::{Browser, Cors};

/// What a request authenticates with.
#[derive(Clone, Copy)]
pub(super) enum Credential<'a> {
    /// `Authorization: Bearer <credential>`.
    Bearer(&'a str),
    /// The cookie of a browser session.
    Cookie(&'a str),
    /// A login code in the body.
    Code,
}

impl<'a> Credential<'a> {
    /// Finds the credential of a request to an endpoint with these needs. With `Authorization`, a cookie is ignored;
    /// and with an API key of a model call, whose clients may send it as the providers take it.
    ///
    /// # Errors
    ///
    /// 401 without a credential; 403 for a page, where only programs may call.
    pub(super) fn of(
        needs: Needs,
        is_model_call: bool,
        fields: &HeadFields<'a>,
        headers: &'a HeaderMap,
        browser: &Browser,
        cors: Option<&Cors>,
    ) -> Result<Self, Failure> {
        if let Needs::Bearer = needs {
            check_no_page(fields, browser, cors, headers)?;
        }
        if fields.authorization.is_none() {
            if let Needs::SessionOrCode = needs {
                return Ok(Self::Code);
            }
            if is_model_call && let Some(key) = provider_key(headers)? {
                return Ok(Self::Bearer(key));
            }
            if let Some(cookie) = browser.cookie(Cookie::Session, headers) {
                return Ok(Self::Cookie(cookie));
            }
            if is_model_call {
                let message = "missing credentials: send the header Authorization: Bearer <credential>, or an API key in \
                               x-api-key or api-key";
                return Err(Failure::unauthorized(message));
            }
        }
        fields.bearer().map(Self::Bearer)
    }

    /// Refuses a change by cookie that does not come from a page of this server.
    ///
    /// # Errors
    ///
    /// 403 as [`Browser::check_same_origin`].
    pub(super) fn check_origin(self, method: &Method, headers: &HeaderMap, browser: &Browser) -> Result<(), Failure> {
        match self {
            Self::Cookie(_) if !matches!(*method, Method::GET | Method::HEAD) => browser.check_same_origin(headers),
            Self::Cookie(_) | Self::Bearer(_) | Self::Code => Ok(()),
        }
    }

    /// The credential of a user's session; `None` for an API key.
    pub(super) fn session(self) -> Option<SessionCredential<'a>> {
        match self {
            Self::Bearer(token) => Some(SessionCredential::Token(token.into())),
            Self::Cookie(cookie) => Some(SessionCredential::Cookie(cookie.into())),
            Self::Code => None,
        }
    }
}

/// The credential of a user's session, which can end while a request lasts.
#[derive(Clone)]
pub enum SessionCredential<'a> {
    /// A session token.
    Token(Cow<'a, str>),
    /// The cookie of a browser session.
    Cookie(Cow<'a, str>),
}

impl fmt::Debug for SessionCredential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Both texts are secret.
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::Cookie(_) => "Cookie",
        })
    }
}

impl SessionCredential<'_> {
    /// The same credential, for a stream that outlives its request.
    pub fn into_owned(self) -> SessionCredential<'static> {
        match self {
            Self::Token(token) => SessionCredential::Token(token.into_owned().into()),
            Self::Cookie(cookie) => SessionCredential::Cookie(cookie.into_owned().into()),
        }
    }

    /// Verifies the credential again. This counts no request.
    ///
    /// # Errors
    ///
    /// As [`AgentCfg::authenticate`].
    pub async fn verify(&self, service: &AgentCfg) -> Result<Caller, Error> {
        match self {
            Self::Token(token) => service.authenticate(token).await,
            Self::Cookie(cookie) => service.authenticate_browser_session(cookie).await,
        }
    }
}

/// The header fields in which the SDKs of providers send a key.
const KEY_FIELDS: [&str; 2] = ["x-api-key", "api-key"];

/// The credential in a field of the providers' SDKs, if there is one.
///
/// # Errors
///
/// 401 with several fields, and with one that is empty or no text.
fn provider_key(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let mut fields = KEY_FIELDS.iter().flat_map(|name| headers.get_all(*name));
    let Some(field) = fields.next() else { return Ok(None) };
    if fields.next().is_some() {
        let message = "invalid credentials: send one of the headers Authorization, x-api-key and api-key, once";
        return Err(Failure::unauthorized(message));
    }
    let key = std::str::from_utf8(field.as_bytes())
        .unwrap_or_default()
        .trim_matches(' ');
    match key.is_empty() {
        true => Err(Failure::unauthorized("invalid credentials: the key is empty")),
        false => Ok(Some(key)),
    }
}

/// Refuses a request from a page, for an endpoint that only programs may call.
///
/// # Errors
///
/// 403 with a foreign `Origin` that CORS does not allow, and with a cookie but no `Authorization`.
fn check_no_page(
    fields: &HeadFields<'_>,
    browser: &Browser,
    cors: Option<&Cors>,
    headers: &HeaderMap,
) -> Result<(), Failure> {
    if browser.has_foreign_origin(headers) && !cors.is_some_and(|cors| cors.allows(headers)) {
        return Err(Failure::forbidden(
            "pages of this origin may not call, see the setting cors_origins",
        ));
    }
    if fields.authorization.is_none() && headers.contains_key(header::COOKIE) {
        return Err(Failure::forbidden(
            "cookies are refused here: send the header Authorization: Bearer <credential>",
        ));
    }
    Ok(())
}
