//! Who the caller is, and the sessions of browsers.

use agentcfg_core::AgentCfg;
use agentcfg_core::model::{SignIn, WhoAmI};
use agentcfg_core::validate::Valid;
use bytes::Bytes;
use hyper::header::HeaderMap;

use super::tags::SESSIONS;
use crate::api::answer::{Json, Kind, SetCookie, Written};
use crate::api::call::{Call, Content};
use crate::api::credential::SessionCredential;
use crate::api::endpoint::{Definition, Doc, Endpoint, Example, Runner, Values};
use crate::api::route::{Needs, Route};
use crate::api::schema::{ReadJson, Schema};
use crate::http::Browser;
use crate::http::browser::Cookie;
use crate::http::errors::Failure;
use crate::http::request::MAX_OPEN_BODY;
use crate::http::response::Reply;

const PATH: &str = "/api/sessions";

/// The endpoints of this module.
pub(super) const ENDPOINTS: &[Definition] = &[Definition::of::<Me>(), OPEN, Definition::of::<Close>()];

/// `GET /api/whoami`
pub struct Me;

impl Endpoint for Me {
    const ROUTE: Route = Route::get("/api/whoami", Needs::Credential);

    const DOC: Doc = Doc::new(
        "whoAmI",
        SESSIONS,
        "Say who the caller is",
        "Returns the identity behind the credential, when it ends, and the workspaces that it opens, each with what the \
         caller may do there and how many agents its plan allows.",
    )
    .answer(
        "The caller.",
        &[
            Example(
                "user",
                r#"{
                    "workspaces": [
                        {
                            "id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                            "name": "Studio North",
                            "plan": "team",
                            "role": "viewer",
                            "scope": null,
                            "permissions": ["tasks:read", "projects:read", "agents:read", "analytics:read"],
                            "active_agents": 12,
                            "agent_limit": 100,
                            "limits": {"persona_prompt": 5000}
                        }
                    ]
                }"#,
            ),
            Example(
                "api_key",
                r#"{
                    "type": "api_key",
                    "id": "4fQ8mZr2LkV7xN0bTy6W",
                    "expires_at": null,
                    "workspaces": [
                        {
                            "id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                            "name": "Studio North",
                            "plan": "enterprise",
                            "role": null,
                            "scope": "read",
                            "permissions": ["tasks:read", "projects:read", "agents:read", "analytics:read"],
                            "active_agents": 12,
                            "agent_limit": null,
                            "limits": {"persona_prompt": 5000}
                        }
                    ]
                }"#,
            ),
        ],
    );

    type Input = ();
    type Body = ();
    type Answer = Json<WhoAmI>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        Ok(Json(call.service.whoami(call.caller).await?))
    }
}

/// `POST /api/sessions`. With a login code in place of a credential, [`redeem`] answers it.
const OPEN: Definition = Definition {
    route: Route::post(PATH, Needs::SessionOrCode),
    doc: Doc::new(
        "openSession",
        SESSIONS,
        "Sign a browser in",
        "Sets a cookie that stands for the user: for a session token that is sent as bearer, or for the code of a login link, \
         which works once. With a token the body is not read.\n\n\
         The cookie is `HttpOnly` and `SameSite=Strict`, and `Secure` with the prefix `__Host-` except for a server on \
         loopback without TLS. It ends after 24 hours, or 8 hours without a request; with an external identity provider it \
         ends with the token. For every method but GET and HEAD a request with the cookie must come from a page of this \
         server. A request with `Authorization` ignores it.",
    )
    .bodies(&[Example("code", r#"{"code": "not-a-code-but-an-example"}"#)])
    .answer("The browser is signed in.", &[]),
    parameters: &[],
    max_body: MAX_OPEN_BODY,
    content: Content::OptionalJson(Schema::of_body::<Valid<SignIn>>()),
    answer: SetCookie::DOC,
    run: Runner::Called(|call, _| Ok(Box::pin(open(call)))),
    guard: None,
};

const NO_CREDENTIAL: &str = "missing credentials: send the header Authorization: Bearer <session token>, or a body with the \
                             code of a login link";

/// Signs a browser in with the session token of the caller.
async fn open(call: &Call<'_>) -> Result<Reply, Failure> {
    let Some(SessionCredential::Token(token)) = call.session() else {
        return Err(Failure::unauthorized(NO_CREDENTIAL));
    };
    let session = call.service.open_browser_session(call.caller, &token).await?;
    Ok(Reply::cookie(call.session_cookie(&session)?))
}

/// Signs a browser in with the login code in a body.
///
/// # Errors
///
/// 400 for a body without a code, 401 for a code that is not valid.
pub(crate) async fn redeem(
    service: &AgentCfg,
    browser: &Browser,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Reply, Failure> {
    if body.is_empty() {
        return Err(Failure::unauthorized(NO_CREDENTIAL));
    }
    let code = Valid::<SignIn>::read_json(body, service.limits())?.into_inner().code;
    let session = service.redeem_login_code(&code).await?;
    let cookie = browser.set_cookie(Cookie::Session, &session.cookie, session.seconds, headers)?;
    Ok(Reply::cookie(cookie))
}

/// `DELETE /api/sessions`
pub struct Close;

impl Endpoint for Close {
    const ROUTE: Route = Route::delete(PATH, Needs::Session);

    const DOC: Doc = Doc::new(
        "closeSession",
        SESSIONS,
        "Sign a browser out",
        "Ends the session of the cookie: the next request with it is answered with 401. A session token ends by itself, so a \
         request with one is 400.",
    )
    .answer("The session has ended, and the cookie is removed.", &[]);

    type Input = ();
    type Body = ();
    type Answer = Written<SetCookie>;

    async fn run(call: &Call<'_>, (): Values<'_, Self>, (): ()) -> Result<Self::Answer, Failure> {
        call.service.close_browser_session(call.caller).await?;
        Ok(Reply::cookie(call.removed_cookie()?).into())
    }
}
