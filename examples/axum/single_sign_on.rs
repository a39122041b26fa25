//! Users of your app open the dashboard with the session that they have there, without a second sign-in.
//!
//! The dashboard has a cookie of its own. [`open_dashboard`] sets it for the user of the app's session, whose
//! identifier is the session token. The service asks [`AppSessions`] about that token on each request, so that a
//! sign-out of the app also ends the dashboard's session.
//!
//! ```text
//! cargo run -p agentcfg-example-axum --example single_sign_on
//! ```

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::sync::{Arc, RwLock};

use agentcfg_core::AgentCfg;
use agentcfg_core::clock::{Entropy, EntropyError, SystemEntropy};
use agentcfg_core::model::Timestamp;
use agentcfg_core::session::{Session, SessionError, SessionVerifier};
use agentcfg_core::store::MemoryStore;
use agentcfg_core::vault::{MasterKey, Vault};
use agentcfg_server::{App, Browser, Cors, Dashboard};
use axum::Router;
use axum::body::Body;
use axum::extract::{Form, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;

/// The cookie of the app.
const SESSION: &str = "app-session";

/// The sessions of the app: a random identifier, which its cookie holds, and the user.
#[derive(Default)]
struct AppSessions(RwLock<HashMap<String, String>>);

impl AppSessions {
    fn open(&self, user: String) -> Result<String, EntropyError> {
        let mut bytes = [0; 16];
        SystemEntropy.fill(&mut bytes)?;
        let id = format!("{:032x}", u128::from_ne_bytes(bytes));
        self.0.write().unwrap().insert(id.clone(), user);
        Ok(id)
    }

    /// The session of a request: its identifier, and the user.
    fn of(&self, headers: &HeaderMap) -> Option<(String, String)> {
        let cookies = headers.get(COOKIE)?.to_str().ok()?;
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let (_, id) = pairs.find(|(name, _)| *name == SESSION)?;
        let user = self.0.read().unwrap().get(id).cloned()?;
        Some((id.to_owned(), user))
    }

    fn close(&self, id: &str) {
        self.0.write().unwrap().remove(id);
    }
}

#[async_trait::async_trait]
impl SessionVerifier for AppSessions {
    async fn verify(&self, token: &str, _now: Timestamp) -> Result<Session, SessionError> {
        let open = self.0.read().unwrap();
        let user = open
            .get(token)
            .ok_or(SessionError::Invalid("no session has this identifier"))?;
        Ok(Session::new(user.clone()))
    }

    fn ready(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

/// What a refused request is answered with.
type Refused = (StatusCode, String);

fn refused(status: StatusCode, why: &str) -> Refused {
    (status, why.to_owned())
}

#[derive(Clone)]
struct Host {
    sessions: Arc<AppSessions>,
    agents: App,
}

/// Refuses a request that a page of another site has caused (cross-site request forgery).
///
/// The dashboard checks that for its own requests. A route of the app that opens or ends its session has to do it, too:
/// otherwise a foreign page signs a user in or out unasked. `none` is an address that the user has typed.
fn from_own_page(headers: &HeaderMap) -> Result<(), Refused> {
    let site = headers.get(HeaderName::from_static("sec-fetch-site"));
    match site.map(|site| site.as_bytes()) {
        Some(b"same-origin" | b"none") => Ok(()),
        _ => Err(refused(
            StatusCode::FORBIDDEN,
            "the request comes from a page of another site",
        )),
    }
}

/// The app's own page.
async fn page(State(host): State<Host>, headers: HeaderMap) -> Html<String> {
    Html(match host.sessions.of(&headers) {
        Some((_, user)) => format!(
            "<!doctype html><title>Host</title><h1>Hello {user}</h1><a href=/agentcfg/ui/sign-in>Agents</a>\
             <form method=post action=/sign-out><button>Sign out</button></form>"
        ),
        None => "<!doctype html><title>Host</title><h1>Sign in</h1>\
                 <form method=post action=/sign-in><label>User <input name=user></label><button>Sign in</button></form>"
            .to_owned(),
    })
}

/// `POST /sign-in`: a real app asks for a password here.
async fn sign_in(
    State(host): State<Host>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Result<Response, Refused> {
    from_own_page(&headers)?;
    let user = form
        .get("user")
        .filter(|user| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_lowercase()));
    let user = user.ok_or_else(|| refused(StatusCode::BAD_REQUEST, "user must be a name in small letters"))?;
    let opened = host.sessions.open(user.clone());
    let id = opened.map_err(|error| refused(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))?;
    let cookie = format!("{SESSION}={id}; Path=/; HttpOnly; SameSite=Lax");
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

/// `GET /agentcfg/ui/sign-in`: opens the dashboard for the user of the app's session, and leads to the app's page
/// without one. The dashboard's own page for signing in asks by HEAD whether this path redirects, and then shows a
/// button that leads here.
async fn open_dashboard(State(host): State<Host>, method: Method, headers: HeaderMap) -> Result<Response, Refused> {
    let (id, _) = match host.sessions.of(&headers) {
        Some(session) if method == Method::GET => session,
        _ => return Ok(Redirect::to("/").into_response()),
    };
    from_own_page(&headers)?;
    let mut request = Request::post("/api/sessions").header(AUTHORIZATION, format!("Bearer {id}"));
    // The name of the cookie may depend on it.
    if let Some(name) = headers.get(HOST) {
        request = request.header(HOST, name);
    }
    let request = request.body(Body::empty());
    let request = request.map_err(|error| refused(StatusCode::BAD_REQUEST, &error.to_string()))?;
    let opened = host.agents.respond(request).await;
    let cookie = opened.headers().get(SET_COOKIE).cloned();
    let cookie = cookie.ok_or_else(|| refused(opened.status(), "the dashboard opened no session"))?;
    Ok(([(SET_COOKIE, cookie)], Redirect::to("/agentcfg/")).into_response())
}

/// `POST /sign-out`: the next request of the dashboard is refused, because the service asks for the session.
async fn sign_out(State(host): State<Host>, headers: HeaderMap) -> Result<Redirect, Refused> {
    from_own_page(&headers)?;
    if let Some((id, _)) = host.sessions.of(&headers) {
        host.sessions.close(&id);
    }
    Ok(Redirect::to("/"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let sessions = Arc::new(AppSessions::default());
    // The service keeps the identifiers of sessions sealed under it. A real app keeps the key beside its store.
    let vault = Vault::new(vec![MasterKey::generate(&SystemEntropy)?])?;
    let service = AgentCfg::builder(MemoryStore::new())
        .sessions(Arc::clone(&sessions))
        .vault(vault)
        .build();
    // In production: `Browser::default().public_url("https://app.example.com/agentcfg")?`.
    let agents = App::new(service, Cors::default())
        .with_browser(Browser::default().listening_on_loopback(true))
        .with_dashboard(Dashboard::default());
    let app = Router::new()
        .route("/", get(page))
        .route("/sign-in", post(sign_in))
        .route("/sign-out", post(sign_out))
        .route("/agentcfg", get(async || Redirect::permanent("/agentcfg/")))
        .route("/agentcfg/ui/sign-in", get(open_dashboard))
        .with_state(Host {
            sessions,
            agents: agents.clone(),
        })
        .nest_service("/agentcfg/", agents);

    let listener = TcpListener::bind(env::var("LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned())).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
