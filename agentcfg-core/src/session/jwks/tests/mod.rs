//! Valid and forged tokens, and rotation of keys. The keys under `keys/` are for tests alone.

mod forged;
mod key_sets;
mod rotation;
mod vectors;

use std::sync::atomic::{AtomicUsize, Ordering};

use base64ct::{Base64UrlUnpadded, Encoding};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
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
    /// DER, or the secret of an algorithm with HMAC.
    key: Vec<u8>,
    algorithm: Algorithm,
}

fn rsa() -> Pair {
    Pair {
        key: include_bytes!("keys/rsa-a.der").to_vec(),
        algorithm: Algorithm::RS256,
    }
}

fn other_rsa() -> Pair {
    Pair {
        key: include_bytes!("keys/rsa-b.der").to_vec(),
        algorithm: Algorithm::RS256,
    }
}

fn ec() -> Pair {
    Pair {
        key: include_bytes!("keys/ec.der").to_vec(),
        algorithm: Algorithm::ES256,
    }
}

fn ed() -> Pair {
    Pair {
        key: include_bytes!("keys/ed.der").to_vec(),
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

    fn rsa(&self) -> RsaKeyPair {
        RsaKeyPair::from_der(&self.key).unwrap()
    }

    fn ec(&self) -> EcdsaKeyPair {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &self.key, &SystemRandom::new()).unwrap()
    }

    fn ed(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&self.key).unwrap()
    }

    /// The public half, with this key id.
    fn jwk(&self, key_id: &str) -> Value {
        let mut jwk = match self.algorithm {
            Algorithm::ES256 => {
                let pair = self.ec();
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)})
            }
            Algorithm::EdDSA => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(self.ed().public_key())}),
            _ => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(self.rsa().public());
                json!({"kty": "RSA", "n": encode(public.n), "e": encode(public.e)})
            }
        };
        jwk["alg"] = self.name().into();
        jwk["kid"] = key_id.into();
        jwk
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let rsa = |padding: &'static dyn RsaEncoding| {
            let pair = self.rsa();
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(padding, &SystemRandom::new(), message, &mut signature)
                .unwrap();
            signature
        };
        let hmac = |algorithm| {
            hmac::sign(&hmac::Key::new(algorithm, &self.key), message)
                .as_ref()
                .to_vec()
        };
        match self.algorithm {
            Algorithm::HS256 => hmac(hmac::HMAC_SHA256),
            Algorithm::HS384 => hmac(hmac::HMAC_SHA384),
            Algorithm::HS512 => hmac(hmac::HMAC_SHA512),
            Algorithm::RS256 => rsa(&RSA_PKCS1_SHA256),
            Algorithm::RS384 => rsa(&RSA_PKCS1_SHA384),
            Algorithm::RS512 => rsa(&RSA_PKCS1_SHA512),
            Algorithm::PS256 => rsa(&RSA_PSS_SHA256),
            Algorithm::PS512 => rsa(&RSA_PSS_SHA512),
            Algorithm::ES256 => self.ec().sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
            Algorithm::EdDSA => self.ed().sign(message).as_ref().to_vec(),
            other => panic!("no test signs with {other:?}"),
        }
    }

    /// Signs these two texts as they are.
    fn sign_text(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        format!("{message}.{}", encode(self.signature(message.as_bytes())))
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

fn encode(bytes: impl AsRef<[u8]>) -> String {
    Base64UrlUnpadded::encode_string(bytes.as_ref())
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
