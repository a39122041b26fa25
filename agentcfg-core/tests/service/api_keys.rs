//! The life cycle of API keys: creation, use, expiry, revocation.

use agentcfg_core::model::{
    AgentFilter, AgentId, AgentPatch, Environment, Label, NewAgent, NewApiKey, Permission, Role, RotateApiKey, Scope,
    VersionSelector, WorkspaceId,
};
use agentcfg_core::store::{Batch, Key, Kind, Write};
use agentcfg_core::{AgentCfg, Caller, Error, ErrorKind, token};

use super::support::{ANY, Shared, Unstamped, World, at, failure, kind, new_key};

#[tokio::test]
async fn a_new_key_shows_its_plaintext_once_and_works() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for (environment, prefix) in [
        (Environment::Production, "svc_live_"),
        (Environment::Development, "svc_test_"),
    ] {
        let new = new_key(workspace, Scope::Read).environment(environment);
        let created = world.service.create_api_key(&ada, new).await.unwrap();
        assert!(created.key.starts_with(prefix) && created.key.len() == 78);
        assert_eq!(token::parse(&created.key), Some(&*created.record.id));
        assert_eq!((created.record.rate_limit, created.record.last_used_at), (100, None));
        assert_eq!((created.record.expires_at, created.record.revoked_at), (None, None));
        assert!(!format!("{created:?}").contains(&created.key));
        let listed = world.service.list_api_keys(&ada, workspace).await.unwrap();
        assert_eq!(listed.last(), Some(&created.record));
        let text = serde_json::to_string(&listed).unwrap();
        assert!(!text.contains(&created.key) && !text.contains("argon2"), "{text}");
        assert_eq!(
            world.service.authenticate(&created.key).await.unwrap().key_workspace(),
            Some(workspace)
        );
        world.clock.advance_millis(1);
    }
}

#[tokio::test]
async fn a_limited_key_names_its_agent_its_label_and_its_end() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (end, label): (_, Label) = (at("2026-11-20T10:00:00Z"), "production".parse().unwrap());
    let caller = async |new: NewApiKey| {
        let key = world.service.create_api_key(&world.user("ada"), new).await.unwrap().key;
        world.service.authenticate(&key).await.unwrap()
    };
    for (agents, only) in [(&["writer"][..], Some("writer")), (&["editor", "writer"], None)] {
        let agents: Vec<AgentId> = agents.iter().map(|id| id.parse().unwrap()).collect();
        let new = new_key(workspace, Scope::Read).agents(agents).label(label.clone());
        let caller = caller(new.expires_at(end)).await;
        assert_eq!(caller.only_agent().map(AgentId::as_str), only);
        assert!(caller.may_name("writer").is_ok());
        assert_eq!(kind(caller.may_name("other")), ErrorKind::Forbidden);
        assert_eq!((caller.pinned_label(), caller.expires_at()), (Some(&label), Some(end)));
        let selected = caller.select_version(VersionSelector::Current);
        assert_eq!(selected.unwrap(), VersionSelector::Label("production"));
        let other = caller.select_version(VersionSelector::Version(1));
        assert_eq!(kind(other), ErrorKind::Forbidden);
    }
    assert_eq!(caller(new_key(workspace, Scope::Read)).await.expires_at(), None);
}

#[tokio::test]
async fn every_bad_key_gets_the_same_answer() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let good = world.key(workspace, "ada", Scope::Read).await;
    let elsewhere = World::new();
    let other = elsewhere.workspace("ada").await;
    let unknown = elsewhere.key(other, "ada", Scope::Read).await.key;
    // The identifier of the good key, the secret of another one, and a valid checksum.
    let wrong_secret = with_checksum(&format!("{}{}", &good.key[..29], &unknown[29..72]));
    // The right secret with the prefix of the other environment.
    let wrong_prefix = with_checksum(&good.key[..72].replace("live", "test"));
    for text in [&wrong_secret, &wrong_prefix] {
        assert!(token::parse(text).is_some());
    }
    let expiring = new_key(workspace, Scope::Read).expires_at(at("2026-11-20T09:31:00Z"));
    let expired = world.service.create_api_key(&ada, expiring).await.unwrap().key;
    let revoked = world.key(workspace, "ada", Scope::Read).await;
    world.service.revoke_api_key(&ada, &revoked.record.id).await.unwrap();
    world.clock.advance_millis(60_000);
    let typo = good.key.replace("svc_live_", "svc_live-");
    let message = (ErrorKind::Unauthorized, "invalid credentials".to_owned());
    for text in [
        &unknown,
        &wrong_secret,
        &wrong_prefix,
        &expired,
        &revoked.key,
        &typo,
        &good.key[..77],
        "svc_",
        "svc_live_",
        &format!("{}0", good.key),
        "",
        "x.y.z",
        "svc_live_ä",
    ] {
        // Twice, with the good key in between: before and after verifications can be cached.
        for _ in 0..2 {
            assert_eq!(failure(world.service.authenticate(text).await), message, "{text}");
            world.service.authenticate(&good.key).await.unwrap();
        }
    }
}

/// Appends a valid checksum to the text of a key: CRC-32 as six base-62 digits.
fn with_checksum(body: &str) -> String {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut crc = !0_u32;
    for byte in body.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let mut rest = !crc;
    let mut digits = Vec::new();
    for _ in 0..6 {
        digits.insert(0, DIGITS[(rest % 62) as usize]);
        rest /= 62;
    }
    format!("{body}{}", String::from_utf8(digits).unwrap())
}

#[tokio::test]
async fn a_key_is_refused_from_its_expiry_on() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let expiring = |text: &str| new_key(workspace, Scope::Read).expires_at(at(text));
    for past in [
        "2026-11-20T09:29:59.999Z",
        "2026-11-20T09:30:00Z",
        "2026-11-20T10:30:00+01:00",
    ] {
        assert_eq!(
            failure(world.service.create_api_key(&ada, expiring(past)).await),
            (ErrorKind::Invalid, "expires_at must be in the future".into())
        );
    }
    let created = world
        .service
        .create_api_key(&ada, expiring("2026-11-20T10:30:01+01:00"))
        .await
        .unwrap();
    assert_eq!(created.record.expires_at, Some(at("2026-11-20T09:30:01Z")));
    world.clock.advance_millis(999);
    world.service.authenticate(&created.key).await.unwrap();
    world.clock.advance_millis(1);
    assert_eq!(
        kind(world.service.authenticate(&created.key).await),
        ErrorKind::Unauthorized
    );
    let listed = world.service.list_api_keys(&ada, workspace).await.unwrap();
    assert_eq!((listed.len(), listed[0].revoked_at), (1, None));
}

#[tokio::test]
async fn revocation_takes_effect_at_once_on_every_instance() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let created = world.key(workspace, "ada", Scope::Admin).await;
    let other = world.another_instance();
    // Both instances have verified the plaintext and cached the result.
    let held = world.service.authenticate(&created.key).await.unwrap();
    other.authenticate(&created.key).await.unwrap();
    world.service.revoke_api_key(&ada, &created.record.id).await.unwrap();
    assert_eq!(
        kind(world.service.authenticate(&created.key).await),
        ErrorKind::Unauthorized
    );
    assert_eq!(kind(other.authenticate(&created.key).await), ErrorKind::Unauthorized);
    // A caller that was authenticated before the revocation can change nothing afterwards.
    let created_late = world
        .service
        .create_agent(&held, NewAgent::new(workspace, "late".parse().unwrap(), "Late"))
        .await;
    assert_eq!(kind(created_late), ErrorKind::Unauthorized);
    assert!(world.listed(workspace, "ada").await.is_empty());
    let listed = world.service.list_api_keys(&ada, workspace).await.unwrap();
    assert!(listed[0].revoked_at.is_some());
}

/// Reads of each kind and two writes. None of them leaves anything that would make the next ones fail.
async fn uses(service: &AgentCfg, caller: &Caller, workspace: WorkspaceId) -> Vec<Result<(), Error>> {
    let one = AgentFilter::default().agent_id(Some("writer".parse().unwrap()));
    let patch = AgentPatch::default();
    vec![
        service
            .list_agents(caller, workspace, &AgentFilter::default())
            .await
            .map(drop),
        service.list_agents(caller, workspace, &one).await.map(drop),
        service.list_workspaces(caller).await.map(drop),
        service.agent_status(caller, workspace).await.map(drop),
        service.audit_log(caller, workspace, 0, 10).await.map(drop),
        service.list_api_keys(caller, workspace).await.map(drop),
        service.list_models(caller, workspace).await.map(drop),
        service.authorize(caller, workspace, Permission::AgentsRead).await,
        service.delete_agent(caller, None, "writer", ANY).await.map(drop),
        service.restore_agent(caller, None, "writer", ANY).await.map(drop),
        service.update_agent(caller, None, "writer", patch, ANY).await.map(drop),
    ]
}

/// A service on a store that gives stamps, one on a store that gives none, and one that reads ahead.
fn each_kind_of_service(world: &World) -> [AgentCfg; 3] {
    let unstamped = || Unstamped::new(&world.store);
    let remote = AgentCfg::builder(Shared(unstamped())).clock(std::sync::Arc::clone(&world.clock) as _);
    [world.another_instance(), world.behind(unstamped()), remote.build()]
}

#[tokio::test]
async fn a_kept_caller_does_nothing_after_the_revocation_of_its_key() {
    for number in 0..3 {
        let world = World::new();
        let service = &each_kind_of_service(&world)[number];
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let created = world.key(workspace, "ada", Scope::Admin).await;
        let mut kept = vec![service.authenticate(&created.key).await.unwrap()];
        for _ in 0..2 {
            kept.push(service.enter(&created.key).await.unwrap().caller);
        }
        for caller in &kept {
            for result in uses(service, caller, workspace).await {
                result.unwrap();
            }
        }
        world
            .service
            .revoke_api_key(&world.user("ada"), &created.record.id)
            .await
            .unwrap();
        for caller in &kept {
            for (number, result) in uses(service, caller, workspace).await.into_iter().enumerate() {
                assert_eq!(kind(result), ErrorKind::Unauthorized, "use {number}");
            }
        }
    }
}

#[tokio::test]
async fn a_kept_caller_does_nothing_after_its_key_expired() {
    for number in 0..3 {
        let world = World::new();
        let service = &each_kind_of_service(&world)[number];
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let new = new_key(workspace, Scope::Admin).expires_at(at("2026-11-20T09:30:01Z"));
        let created = world.service.create_api_key(&world.user("ada"), new).await.unwrap();
        let kept = [
            service.authenticate(&created.key).await.unwrap(),
            service.enter(&created.key).await.unwrap().caller,
        ];
        world.clock.advance_millis(999);
        for result in uses(service, &kept[0], workspace).await {
            result.unwrap();
        }
        world.clock.advance_millis(1);
        for caller in &kept {
            for (number, result) in uses(service, caller, workspace).await.into_iter().enumerate() {
                assert_eq!(kind(result), ErrorKind::Unauthorized, "use {number}");
            }
        }
    }
}

#[tokio::test]
async fn a_kept_caller_has_the_scope_that_its_key_has_now() {
    for number in 0..3 {
        let world = World::new();
        let service = &each_kind_of_service(&world)[number];
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let created = world.key(workspace, "ada", Scope::Admin).await;
        let kept = service.authenticate(&created.key).await.unwrap();
        let key = Key::global(&*created.record.id, Kind::ApiKey, "");
        let record = world
            .store
            .get(std::slice::from_ref(&key))
            .await
            .unwrap()
            .pop()
            .flatten()
            .unwrap();
        let narrowed = String::from_utf8(record.value.to_vec()).unwrap();
        let narrowed = narrowed.replace(r#""scope":"admin""#, r#""scope":"read""#);
        let batch = Batch {
            writes: vec![Write::Put(key, narrowed.into())],
            ..Batch::default()
        };
        world.store.commit(batch).await.unwrap();
        let results = uses(service, &kept, workspace).await;
        assert!(results[0].is_ok());
        for result in results.into_iter().skip(8) {
            assert_eq!(kind(result), ErrorKind::Forbidden);
        }
    }
}

#[tokio::test]
async fn a_read_ahead_serves_one_method_and_not_for_long() {
    let world = World::new();
    let [_, _, service] = each_kind_of_service(&world);
    let workspace = world.workspace("ada").await;
    let created = world.key(workspace, "ada", Scope::Read).await;
    service.authenticate(&created.key).await.unwrap();
    let listed = async |caller: &Caller| service.list_agents(caller, workspace, &AgentFilter::default()).await;
    let used = service.enter(&created.key).await.unwrap().caller;
    listed(&used).await.unwrap();
    let (young, old) = (
        service.enter(&created.key).await.unwrap().caller,
        service.enter(&created.key).await.unwrap().caller,
    );
    let ada = world.user("ada");
    world.service.revoke_api_key(&ada, &created.record.id).await.unwrap();
    // This request had begun before the revocation.
    listed(&young).await.unwrap();
    assert_eq!(kind(listed(&young).await), ErrorKind::Unauthorized);
    assert_eq!(kind(listed(&used).await), ErrorKind::Unauthorized);
    world.clock.advance_millis(1001);
    assert_eq!(kind(listed(&old).await), ErrorKind::Unauthorized);
}

#[tokio::test]
async fn revocation_needs_the_permission_and_an_active_key() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let (created, key) = world.key_caller(workspace, "ada", Scope::Admin).await;
    let id = &*created.record.id;
    let revoke = async |user: &str, id: &str| world.service.revoke_api_key(&world.user(user), id).await;
    for (user, role) in [("mel", Role::Member), ("vic", Role::Viewer)] {
        world.member(workspace, "ada", user, role).await;
        assert_eq!(kind(revoke(user, id).await), ErrorKind::Forbidden);
    }
    assert_eq!(kind(world.service.revoke_api_key(&key, id).await), ErrorKind::Forbidden);
    world.workspace("eve").await;
    // To users outside the workspace the key looks the same as one that does not exist.
    assert_eq!(failure(revoke("eve", id).await).1, format!("API key {id:?} not found"));
    for unknown in [
        "",
        "00000000000000000000",
        "\0",
        "a/b",
        "ä",
        &"x".repeat(5000),
        &created.key,
    ] {
        assert_eq!(kind(revoke("ada", unknown).await), ErrorKind::NotFound, "{unknown:?}");
        assert_eq!(kind(revoke("eve", unknown).await), ErrorKind::NotFound, "{unknown:?}");
    }
    world.member(workspace, "ada", "adi", Role::Admin).await;
    revoke("adi", id).await.unwrap();
    assert_eq!(kind(revoke("adi", id).await), ErrorKind::NotFound);
    assert_eq!(kind(revoke("mel", id).await), ErrorKind::Forbidden);
}

#[tokio::test]
async fn a_key_stays_valid_after_its_creator_has_left() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    world.member(workspace, "ada", "adi", Role::Admin).await;
    let created = world.key(workspace, "adi", Scope::Read).await;
    world
        .service
        .remove_member(&world.user("ada"), workspace, &"adi".parse().unwrap())
        .await
        .unwrap();
    let caller = world.service.authenticate(&created.key).await.unwrap();
    world
        .service
        .list_agents(&caller, workspace, &Default::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_setting_keeps_write_keys_from_configuring_agents() {
    for allowed in [true, false] {
        let world = World::with(|settings| settings.write_scope_configures_agents = allowed);
        let workspace = world.workspace("ada").await;
        let (_, key) = world.key_caller(workspace, "ada", Scope::Write).await;
        let created = world
            .service
            .create_agent(&key, NewAgent::new(workspace, "writer".parse().unwrap(), "W"))
            .await;
        assert_eq!(created.is_ok(), allowed);
        assert_eq!(
            key.check_scope(agentcfg_core::model::Permission::AgentsConfigure)
                .is_ok(),
            allowed
        );
        // The setting restricts write keys only.
        let (_, admin) = world.key_caller(workspace, "ada", Scope::Admin).await;
        world
            .service
            .create_agent(&admin, NewAgent::new(workspace, "editor".parse().unwrap(), "E"))
            .await
            .unwrap();
        let member = world.member(workspace, "ada", "mel", Role::Member).await;
        world
            .service
            .update_agent(&member, None, "editor", AgentPatch::default(), ANY)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn last_used_at_is_visible_at_once_and_durable_after_a_flush() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let created = world.key(workspace, "ada", Scope::Read).await;
    let last_used =
        async |service: &agentcfg_core::AgentCfg| service.list_api_keys(&ada, workspace).await.unwrap()[0].last_used_at;
    assert_eq!(last_used(&world.service).await, None);
    let mut wrong = created.key.clone();
    wrong.replace_range(40..41, if &wrong[40..41] == "x" { "y" } else { "x" });
    let _ = world.service.authenticate(&with_checksum(&wrong[..72])).await;
    assert_eq!(last_used(&world.service).await, None);
    world.service.authenticate(&created.key).await.unwrap();
    assert_eq!(last_used(&world.service).await, Some(at("2026-11-20T09:30:00Z")));
    assert_eq!(last_used(&world.another_instance()).await, None);
    world.service.flush().await.unwrap();
    assert_eq!(
        last_used(&world.another_instance()).await,
        Some(at("2026-11-20T09:30:00Z"))
    );
    // The reported time lags by less than a minute.
    for _ in 0..40 {
        world.clock.advance_millis(3_000);
        world.service.authenticate(&created.key).await.unwrap();
    }
    let lag = at("2026-11-20T09:32:00Z").unix_millis() - last_used(&world.service).await.unwrap().unix_millis();
    assert!((0..60_000).contains(&lag), "{lag}");
    world.service.flush().await.unwrap();
    assert_eq!(
        last_used(&world.service).await,
        last_used(&world.another_instance()).await
    );
}

#[tokio::test]
async fn the_last_use_never_moves_back_between_servers() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    let created = world.key(workspace, "ada", Scope::Read).await;
    let (early, late) = (world.another_instance(), world.another_instance());
    early.authenticate(&created.key).await.unwrap();
    world.clock.advance_millis(20_000);
    late.authenticate(&created.key).await.unwrap();
    // The server that saw the later use writes first.
    late.flush().await.unwrap();
    early.flush().await.unwrap();
    let listed = world.service.list_api_keys(&ada, workspace).await.unwrap();
    assert_eq!(listed[0].last_used_at, Some(world.now()));
}

#[tokio::test]
async fn a_key_that_is_rotated_again_gives_the_lifetime_that_it_had() {
    const DAY: i64 = 86_400_000;
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let ada = world.user("ada");
    for lifetime in [None, Some(DAY)] {
        let ends = |millis: i64| lifetime.map(|lifetime| world.now().plus_millis(lifetime + millis));
        let new = new_key(workspace, Scope::Read).expires_at(ends(0));
        let old = world.service.create_api_key(&ada, new).await.unwrap().record;
        let rotate = async || {
            let overlap = RotateApiKey::default().overlap_seconds(3600);
            let made = world.service.rotate_api_key(&ada, &old.id, overlap).await;
            made.unwrap().record.expires_at
        };
        world.clock.advance_millis(60_000);
        assert_eq!(rotate().await, ends(0));
        // The old key ends with its overlap now, which is no lifetime for a second one.
        world.clock.advance_millis(60_000);
        assert_eq!(rotate().await, ends(0));
        world.clock.advance_millis(60_000);
        assert_eq!(rotate().await, ends(0));
        let listed = world.service.list_api_keys(&ada, workspace).await.unwrap();
        let old = listed.iter().find(|key| key.id == old.id).unwrap();
        assert_eq!(old.expires_at, Some(world.now().plus_millis(3_600_000 - 120_000)));
    }
}
