//! API keys: every request reads the key's record and counts in its rate window.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::Shared;
use crate::failure::Failure;

const WINDOW_MILLIS: i64 = 60_000;

pub struct KeyRecord {
    pub id: String,
    pub workspace_id: String,
    pub rate_limit: u32,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
}

impl KeyRecord {
    pub fn owns(&self, workspace: &str) -> Result<(), Failure> {
        if self.workspace_id == workspace {
            Ok(())
        } else {
            Err(Failure::Forbidden)
        }
    }

    fn is_good(&self) -> bool {
        let now = crate::store::now();
        self.revoked_at.is_none() && self.expires_at.as_ref().is_none_or(|end| *end > now)
    }
}

pub fn hash(plaintext: &str) -> [u8; 32] {
    Sha256::digest(plaintext.as_bytes()).into()
}

/// Fixed windows of one minute, one for each key.
#[derive(Default)]
pub struct Windows(Mutex<HashMap<String, Window>>);

#[derive(Clone, Copy)]
struct Window {
    ends_at: i64,
    used: u32,
}

impl Windows {
    fn count(&self, key_id: &str) -> Window {
        let now = Utc::now().timestamp_millis();
        let fresh = Window {
            ends_at: now + WINDOW_MILLIS,
            used: 0,
        };
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.entry(key_id.to_owned()).or_insert(fresh);
        if window.ends_at <= now {
            *window = fresh;
        }
        window.used += 1;
        *window
    }
}

pub async fn check(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let record = match authenticate(&shared, request.headers()).await {
        Ok(record) => Arc::new(record),
        Err(failure) => return failure.into_response(),
    };
    let window = shared.windows.count(&record.id);
    let limit = record.rate_limit;
    let mut response = if window.used > limit {
        Failure::TooMany.into_response()
    } else {
        request.extensions_mut().insert(record);
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert("x-ratelimit-limit", limit.into());
    headers.insert("x-ratelimit-remaining", limit.saturating_sub(window.used).into());
    headers.insert("x-ratelimit-reset", (window.ends_at as u64).div_ceil(1000).into());
    if let Ok(id) = HeaderValue::try_from(Uuid::new_v4().to_string()) {
        headers.insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

async fn authenticate(shared: &Shared, headers: &HeaderMap) -> Result<KeyRecord, Failure> {
    let plaintext = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .ok_or(Failure::Unauthorized)?;
    let found = shared.store.key_by_hash(hash(plaintext)).await?;
    found.filter(KeyRecord::is_good).ok_or(Failure::Unauthorized)
}
