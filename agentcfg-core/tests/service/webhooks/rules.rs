//! Who may do what with webhooks, and what they may be.

use agentcfg_core::ErrorKind;
use agentcfg_core::model::{Action, EventTypes, MAX_WEBHOOKS, Role, WebhookPatch};

use super::*;

#[tokio::test]
async fn a_workspace_has_at_most_twenty() {
    let hooks = Hooks::new().await;
    let mut last = None;
    for _ in 0..MAX_WEBHOOKS {
        last = Some(hooks.create().await.webhook.id);
    }
    let new = || NewWebhook::new(hooks.studio, URL);
    let refused = hooks.service.create_webhook(&hooks.ada, new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PlanLimit);
    assert_eq!(
        refused.message(),
        "a workspace has at most 20 webhooks, delete one first"
    );
    hooks.service.delete_webhook(&hooks.ada, last.unwrap()).await.unwrap();
    // Of several at once for the last place, one succeeds.
    let attempts = (0..5).map(|_| {
        let (service, ada, new) = (hooks.service.clone(), hooks.ada.clone(), new());
        tokio::spawn(async move { service.create_webhook(&ada, new).await.is_ok() })
    });
    let mut created = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        created += u32::from(attempt.await.unwrap());
    }
    assert_eq!(created, 1);
}

#[tokio::test]
async fn a_url_must_be_public_https_unless_the_deployment_allows_it() {
    let hooks = Hooks::new().await;
    let create = async |url: &str| {
        let created = hooks
            .service
            .create_webhook(&hooks.ada, NewWebhook::new(hooks.studio, url))
            .await;
        created
            .map(|created| created.webhook)
            .map_err(|error| error.message().to_owned())
    };
    for (url, message) in [
        ("http://hooks.example.com/", "url must be https"),
        ("https://hooks.example.com:8443/", "url must use port 443"),
        ("https://127.0.0.1/", "url must not name an address that is not public"),
        (
            "https://[::ffff:169.254.169.254]/",
            "url must not name an address that is not public",
        ),
        ("https://user@hooks.example.com/", "url must not have user information"),
        ("http://hooks.internal:8081/", "url must be https"),
    ] {
        assert_eq!(create(url).await.unwrap_err(), message, "{url}");
    }
    let webhook = create("http://hooks.internal:8080/a?b=c").await.unwrap();
    assert_eq!(webhook.url, "http://hooks.internal:8080/a?b=c");
    let patch = WebhookPatch::default().url("http://10.0.0.1/");
    let refused = hooks
        .service
        .update_webhook(&hooks.ada, webhook.id, patch)
        .await
        .unwrap_err();
    assert_eq!(
        (refused.kind(), refused.message()),
        (ErrorKind::Invalid, "url must be https")
    );
}

#[tokio::test]
async fn a_change_replaces_what_it_names_and_is_audited() {
    let hooks = Hooks::new().await;
    let before = hooks.create().await.webhook;
    let unchanged = hooks
        .service
        .update_webhook(&hooks.ada, before.id, WebhookPatch::default())
        .await
        .unwrap();
    assert_eq!(unchanged, before);
    let patch = WebhookPatch::default()
        .types(Some(EventTypes::new(vec!["agent.updated".into()])))
        .description("Deploys")
        .ordered(true);
    let after = hooks
        .service
        .update_webhook(&hooks.ada, before.id, patch)
        .await
        .unwrap();
    assert_eq!(hooks.webhook(before.id).await, after);
    assert!(after.updated_at > before.updated_at);
    assert_eq!((after.description.as_deref(), after.ordered), (Some("Deploys"), true));
    assert_eq!((&after.url, after.cursor), (&before.url, before.cursor));
    let log = hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 2).await.unwrap();
    assert_eq!(
        (log[0].action, log[1].action),
        (Action::WebhookUpdated, Action::WebhookCreated)
    );
    let changed: Vec<_> = log[0].changes.keys().map(String::as_str).collect();
    assert_eq!(changed, ["description", "ordered", "types"]);
    assert!(log.iter().all(|entry| entry.target.id == before.id.to_string()));
}

#[tokio::test]
async fn webhooks_are_for_admins() {
    let hooks = Hooks::new().await;
    let id = hooks.create().await.webhook.id;
    let caller = async |user: &str, role| {
        let user_id = user.parse().unwrap();
        hooks
            .service
            .set_member(&hooks.ada, hooks.studio, &user_id, role)
            .await
            .unwrap();
        hooks.service.trusted_user(user).unwrap()
    };
    let (viewer, member) = (caller("vic", Role::Viewer).await, caller("mia", Role::Member).await);
    let (admin, outsider) = (
        caller("abe", Role::Admin).await,
        hooks.service.trusted_user("eve").unwrap(),
    );
    for (caller, kind) in [
        (&viewer, Some(ErrorKind::Forbidden)),
        (&member, Some(ErrorKind::Forbidden)),
        (&outsider, Some(ErrorKind::NotFound)),
        (&admin, None),
    ] {
        let patch = WebhookPatch::default().ordered(true);
        let ends = [
            hooks.service.webhook_deliveries(caller, id).await.map(drop),
            hooks.service.update_webhook(caller, id, patch).await.map(drop),
            hooks.service.test_webhook(caller, id, &*hooks.receiver).await.map(drop),
            hooks.service.rotate_webhook_secret(caller, id).await.map(drop),
            hooks.service.delete_webhook(caller, id).await.map(drop),
        ];
        for end in ends {
            assert_eq!(end.err().map(|error| error.kind()), kind);
        }
    }
    let listed = hooks.service.list_webhooks(&outsider, hooks.studio).await;
    assert_eq!(listed.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_webhook_starts_at_its_creation_also_among_other_changes() {
    let hooks = Hooks::new().await;
    let creating = (0..10).map(|_| {
        let (service, ada, new) = (
            hooks.service.clone(),
            hooks.ada.clone(),
            NewWebhook::new(hooks.studio, URL),
        );
        tokio::spawn(async move { service.create_webhook(&ada, new).await.unwrap().webhook })
    });
    for webhook in creating.collect::<Vec<_>>() {
        let webhook = webhook.await.unwrap();
        let log = hooks.service.audit_log(&hooks.ada, hooks.studio, 0, 100).await.unwrap();
        let number = log.len()
            - log
                .iter()
                .position(|entry| entry.target.id == webhook.id.to_string())
                .unwrap();
        assert_eq!(webhook.cursor.revision(), number as u64);
    }
}
