use std::error::Error as _;

use super::*;
use crate::ErrorKind;
use crate::model::{ActorType, Role};
use crate::service::records::{self, StoredProviderKey};
use crate::store::Write;

async fn save(
    service: &AgentCfg,
    studio: &Workspace,
    text: &str,
) -> Result<crate::model::ProviderKeyInfo, crate::Error> {
    service
        .save_provider_key(&ada(service), studio.id, Provider::OPENAI, &credential(text))
        .await
}

#[tokio::test]
async fn saving_and_deleting_changes_the_very_next_call() {
    let service = builder(memory())
        .vault(vault(&[1]))
        .managed_credential(Provider::OPENAI, credential("sk-managed"))
        .build();
    let studio = workspace(&service).await;
    agent(&service, studio.id, "writer", None).await;
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), "sk-managed");
    let first = save(&service, &studio, "sk-first").await.unwrap();
    assert_eq!(first.created_at, first.updated_at);
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), "sk-first");
    let second = save(&service, &studio, "sk-second").await.unwrap();
    assert_eq!(second.created_at, first.created_at);
    assert!(
        second.updated_at > first.updated_at,
        "also while the clock stands still"
    );
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), "sk-second");
    assert_eq!(
        service.list_provider_keys(&ada(&service), studio.id).await.unwrap(),
        [second]
    );

    let other = next(&service, studio.id, Provider::ANTHROPIC).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::NotConfigured, "a key is one provider's");
    let delete = async || {
        service
            .delete_provider_key(&ada(&service), studio.id, Provider::OPENAI)
            .await
    };
    delete().await.unwrap();
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), "sk-managed");
    assert_eq!(delete().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(
        service
            .list_provider_keys(&ada(&service), studio.id)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn the_plan_is_checked_on_each_call() {
    let service = builder(memory())
        .vault(vault(&[1]))
        .managed_credential(Provider::OPENAI, credential("sk-managed"))
        .build();
    let studio = workspace(&service).await;
    agent(&service, studio.id, "writer", None).await;
    set_plan(&service, studio.id, Plan::Free).await;
    let error = save(&service, &studio, CANARY).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.message().ends_with("pro, team, enterprise"), "{error}");

    for plan in [Plan::Pro, Plan::Team, Plan::Enterprise] {
        set_plan(&service, studio.id, plan).await;
        save(&service, &studio, CANARY).await.unwrap();
        assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), CANARY);
        set_plan(&service, studio.id, Plan::Free).await;
        assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), "sk-managed");
        let listed = service.list_provider_keys(&ada(&service), studio.id).await.unwrap();
        assert_eq!(listed.len(), 1, "the key stays");
    }
    set_plan(&service, studio.id, Plan::Team).await;
    assert_eq!(
        next(&service, studio.id, Provider::OPENAI).await.unwrap(),
        CANARY,
        "and works again"
    );
    set_plan(&service, studio.id, Plan::Free).await;
    let deleted = service
        .delete_provider_key(&ada(&service), studio.id, Provider::OPENAI)
        .await;
    assert!(deleted.is_ok(), "every plan allows to delete");
}

#[tokio::test]
async fn roles_and_keys_get_what_the_table_says() {
    let service = service(&memory(), &[1]);
    let studio = workspace(&service).await;
    for (user, role) in [("vera", Role::Viewer), ("max", Role::Member), ("amy", Role::Admin)] {
        service
            .set_member(&ada(&service), studio.id, &user.parse().unwrap(), role)
            .await
            .unwrap();
    }
    for (user, lists, saves) in [
        ("vera", false, false),
        ("max", true, false),
        ("amy", true, true),
        ("eve", false, false),
    ] {
        let caller = service.trusted_user(user).unwrap();
        let listed = service.list_provider_keys(&caller, studio.id).await;
        assert_eq!(listed.is_ok(), lists, "{user}");
        let saved = service
            .save_provider_key(&caller, studio.id, Provider::OPENAI, &credential(CANARY))
            .await;
        assert_eq!(saved.is_ok(), saves, "{user}");
        let deleted = service.delete_provider_key(&caller, studio.id, Provider::OPENAI).await;
        assert_eq!(deleted.is_ok(), saves, "{user}");
    }
    let (environment, scope) = (crate::model::Environment::Production, crate::model::Scope::Admin);
    let new = crate::model::NewApiKey::new(studio.id, "ci", environment, scope);
    let created = service.create_api_key(&ada(&service), new).await.unwrap();
    let caller = service.authenticate(&created.key).await.unwrap();
    assert!(service.list_provider_keys(&caller, studio.id).await.is_ok());
    let saved = service
        .save_provider_key(&caller, studio.id, Provider::OPENAI, &credential(CANARY))
        .await;
    assert_eq!(
        saved.unwrap_err().kind(),
        ErrorKind::Forbidden,
        "no API key saves provider keys"
    );
}

#[tokio::test]
async fn without_a_master_key_nothing_can_be_saved() {
    let service = builder(memory()).build();
    let studio = workspace(&service).await;
    let error = save(&service, &studio, CANARY).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConfigured);
    assert!(error.message().contains("no master key"), "{error}");
}

#[tokio::test]
async fn a_key_that_does_not_open_is_an_error_that_says_so_and_never_a_fall_back() {
    let store = memory();
    let service = builder(Arc::clone(&store))
        .vault(vault(&[1]))
        .managed_credential(Provider::OPENAI, credential("sk-managed"))
        .build();
    let (studio, other) = (workspace(&service).await, workspace(&service).await);
    agent(&service, studio.id, "writer", None).await;
    save(&service, &studio, CANARY).await.unwrap();
    save(&service, &other, "sk-other").await.unwrap();

    let refused = async |why: &str| {
        let error = next(&service, studio.id, Provider::OPENAI).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{why}: {error}");
        assert!(error.message().contains("cannot be decrypted"), "{why}: {error}");
        let shown = format!("{error} {error:?} {:?}", error.source());
        assert!(
            !shown.contains("canary") && !shown.contains("managed\""),
            "{why}: {shown}"
        );
    };
    service.set_vault(vault(&[2]));
    refused("another master key").await;
    service.set_vault(vault(&[1]));

    // An attacker with access to the storage moves a record to another workspace.
    let keys: [Key; 2] = [studio.id, other.id].map(|id| records::provider_key(id, Provider::OPENAI).into());
    let stored_keys = store.get(&keys).await.unwrap();
    let value = |index: usize| &stored_keys[index].as_ref().unwrap().value;
    let put = async |value: Vec<u8>| {
        let batch = Batch {
            checks: Vec::new(),
            writes: vec![Write::Put(keys[0].clone(), value)],
        };
        store.commit(batch).await.unwrap();
    };
    put(value(1).to_vec()).await;
    refused("moved from another workspace").await;
    let mut stored: StoredProviderKey = serde_json::from_slice(value(0)).unwrap();
    let mut bytes = stored.sealed.as_bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    stored.sealed = crate::vault::Sealed::from_bytes(bytes).unwrap();
    put(records::encode(&stored).unwrap()).await;
    refused("changed").await;
    put(value(0).to_vec()).await;
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), CANARY);
}

#[tokio::test]
async fn each_change_is_in_the_audit_log_without_the_key() {
    let service = service(&memory(), &[1]);
    let studio = workspace(&service).await;
    save(&service, &studio, CANARY).await.unwrap();
    save(&service, &studio, "sk-canary-second").await.unwrap();
    service
        .delete_provider_key(&ada(&service), studio.id, Provider::OPENAI)
        .await
        .unwrap();
    let log = service.audit_log(&ada(&service), studio.id, 0, 3).await.unwrap();
    let text = serde_json::to_string(&log).unwrap();
    let actions: Vec<&str> = log.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        ["provider_key.deleted", "provider_key.saved", "provider_key.saved"]
    );
    assert!(
        log.iter()
            .all(|entry| entry.target.kind.as_str() == "provider_key" && entry.target.id == "openai")
    );
    assert_eq!(log[2].changes["provider"].to, "openai");
    assert!(!text.contains("canary") && !text.contains("sealed"), "{text}");
}

#[cfg(feature = "redb")]
#[tokio::test]
async fn no_record_holds_the_plaintext_in_any_form() {
    use base64ct::{Base64, Encoding};

    use crate::store::redb::{RedbOptions, RedbStore};
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = Arc::new(RedbStore::open(&path, RedbOptions::default()).unwrap());
    let service = builder(Arc::clone(&store) as _).vault(vault(&[1])).build();
    let studio = workspace(&service).await;
    agent(&service, studio.id, "writer", None).await;
    save(&service, &studio, CANARY).await.unwrap();
    assert_eq!(next(&service, studio.id, Provider::OPENAI).await.unwrap(), CANARY);
    let mut backup = Vec::new();
    store.backup(&mut backup).unwrap();
    let file = std::fs::read(&path).unwrap();
    let call = service
        .resolve_model_call(
            &ada(&service),
            None,
            "writer",
            &ModelRequest::new(Provider::OPENAI, "v1/responses"),
        )
        .await
        .unwrap();
    let shown = format!("{call:?} {:?}", service.vault());

    let hex: String = crate::hex::encode(CANARY.as_bytes());
    // The middle of a base64 text depends on where it starts, so each of the three ways is looked for.
    let base64 = (0..3).map(|skip| Base64::encode_string(&CANARY.as_bytes()[skip..skip + 24]));
    let master_key = "01".repeat(32);
    for form in [CANARY.to_owned(), hex.clone(), hex.to_uppercase(), master_key]
        .into_iter()
        .chain(base64)
    {
        for (what, bytes) in [
            ("backup", &backup),
            ("file", &file),
            ("Debug", &shown.clone().into_bytes()),
        ] {
            assert!(
                !bytes.windows(form.len()).any(|window| window == form.as_bytes()),
                "{form} in {what}"
            );
        }
    }
    assert!(
        !backup.windows(32).any(|window| window == [1; 32]),
        "the master key in the backup"
    );
}

#[tokio::test]
async fn keys_of_a_lost_master_key_can_be_discarded() {
    let store = memory();
    let first = service(&store, &[1]);
    let studio = workspace(&first).await;
    for provider in &[Provider::ANTHROPIC, Provider::OPENAI] {
        first
            .save_provider_key(&ada(&first), studio.id, *provider, &credential(CANARY))
            .await
            .unwrap();
    }
    let without = builder(Arc::clone(&store)).build();
    assert_eq!(
        without.forget_master_keys().await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(without.discard_provider_keys("restore").await.unwrap(), 2);
    without.forget_master_keys().await.unwrap();
    assert!(without.master_keys_needed().await.unwrap().keys.is_empty());

    let second = service(&store, &[2]);
    second.adopt_master_keys().await.unwrap();
    let log = second.audit_log(&ada(&second), studio.id, 0, 2).await.unwrap();
    assert!(
        log.iter()
            .all(|entry| entry.actor.kind == ActorType::Operator && entry.actor.id == "restore")
    );
    save(&second, &studio, CANARY).await.unwrap();
}
