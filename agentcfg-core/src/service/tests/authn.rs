//! What a credential costs.

use super::*;
use crate::ErrorKind;
use crate::model::{Environment, NewApiKey, Scope};
use crate::token;

#[tokio::test]
async fn a_wrong_secret_costs_no_slow_hash() {
    let store = memory();
    let first = service(&store, &[1]);
    let new = NewApiKey {
        workspace_id: workspace(&first).await.id,
        name: "pipeline".into(),
        environment: Environment::Production,
        scope: Scope::Read,
        expires_at: None,
        rate_limit: None,
    };
    let key = first.create_api_key(&ada(&first), new).await.unwrap().key;
    // Started anew, the service has seen no key.
    let service = service(&store, &[1]);
    let has_hashed = || service.inner.authenticator.hashing.has_started();
    let refused = service.authenticate(&token::forged(&key)).await;
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Unauthorized);
    assert!(!has_hashed());
    assert!(service.authenticate(&key).await.is_ok());
    assert!(has_hashed());
    let refused = service.authenticate(&token::forged(&key)).await;
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Unauthorized);
}
