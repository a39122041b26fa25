//! Valid and forged tokens, and rotation of keys. The keys under `keys/` are for tests alone.

mod forged;
mod key_sets;
mod rotation;

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::EncodingKey;
use jsonwebtoken::jwk::Jwk;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::*;

const ISSUER: &str = "https://id.example.com";
const AUDIENCE: &str = "agentcfg";

/// Seconds since the Unix epoch at which the tests begin.
const START: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis((START + seconds) * 1000)
}

/// A key pair of the provider, or of an attacker.
struct Pair {
    key: EncodingKey,
    algorithm: Algorithm,
}

fn rsa() -> Pair {
    Pair {
        key: EncodingKey::from_rsa_der(include_bytes!("keys/rsa-a.der")),
        algorithm: Algorithm::RS256,
    }
}

fn other_rsa() -> Pair {
    Pair {
        key: EncodingKey::from_rsa_der(include_bytes!("keys/rsa-b.der")),
        algorithm: Algorithm::RS256,
    }
}

fn ec() -> Pair {
    Pair {
        key: EncodingKey::from_ec_der(include_bytes!("keys/ec.der")),
        algorithm: Algorithm::ES256,
    }
}

fn ed() -> Pair {
    Pair {
        key: EncodingKey::from_ed_der(include_bytes!("keys/ed.der")),
        algorithm: Algorithm::EdDSA,
    }
}

fn all_three() -> [Pair; 3] {
    [rsa(), ec(), ed()]
}

impl Pair {
    fn name(&self) -> String {
        format!("{:?}", self.algorithm)
    }

    /// The public half, with this key id.
    fn jwk(&self, key_id: &str) -> Value {
        let mut jwk = serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = key_id.into();
        jwk
    }

    /// Signs these two texts as they are.
    fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }

    fn sign(&self, key_id: &str, claims: &Value) -> String {
        let header = json!({"alg": self.name(), "kid": key_id});
        self.sign_text(&header.to_string(), &claims.to_string())
    }

    /// A valid token.
    fn token(&self, key_id: &str) -> String {
        self.sign(key_id, &claims())
    }
}

fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Claims that are valid for an hour, and an hour more for the tests that move the clock.
fn claims() -> Value {
    json!({"sub": "ada", "iss": ISSUER, "aud": AUDIENCE, "iat": START, "exp": START + 7200})
}

fn key_set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// A provider whose answer the test sets, and which waits until the test releases it, where the test holds it.
struct Provider {
    answer: Mutex<Result<String, &'static str>>,
    fetches: AtomicUsize,
    leave: Semaphore,
}

impl Provider {
    fn new(set: &str) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(Ok(set.to_owned())),
            fetches: AtomicUsize::new(0),
            leave: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    fn answers(&self, answer: Result<String, &'static str>) {
        *self.answer.lock().unwrap() = answer;
    }

    /// From now on an answer needs [`Provider::let_go`].
    fn hold(&self) {
        self.leave.forget_permits(Semaphore::MAX_PERMITS);
    }

    fn let_go(&self) {
        self.leave.add_permits(1);
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    fn sessions(self: &Arc<Self>) -> JwksSessions {
        JwksSessions::new(ISSUER, AUDIENCE, Fetch(Arc::clone(self)))
    }
}

struct Fetch(Arc<Provider>);

#[async_trait]
impl FetchJwks for Fetch {
    async fn fetch(&self) -> Result<Vec<u8>, FetchError> {
        self.0.fetches.fetch_add(1, Ordering::SeqCst);
        self.0.leave.acquire().await.unwrap().forget();
        let answer = self.0.answer.lock().unwrap().clone();
        match answer {
            Ok(text) => Ok(text.into_bytes()),
            Err("panic") => panic!("a fetch that panics"),
            Err(why) => Err(FetchError(why.to_owned())),
        }
    }
}

async fn judge(set: &str, token: &str) -> Result<Session, SessionError> {
    Provider::new(set).sessions().verify(token, at(60)).await
}

fn is_invalid(answer: &Result<Session, SessionError>) -> bool {
    matches!(answer, Err(SessionError::Invalid(_)))
}

fn is_unavailable(answer: &Result<Session, SessionError>) -> bool {
    matches!(answer, Err(SessionError::Unavailable(_)))
}
