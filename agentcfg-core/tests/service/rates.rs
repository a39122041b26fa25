//! Fixed rate windows of keys and users.

use agentcfg_core::model::{NewApiKey, Scope};

use super::support::{World, at, new_key};

#[tokio::test]
async fn the_window_of_a_key_starts_with_its_first_request_and_lasts_a_minute() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    for (limit, allowed) in [(None, 100), (Some(1), 1), (Some(7), 7)] {
        let new = NewApiKey {
            rate_limit: limit,
            ..new_key(workspace, Scope::Read)
        };
        let key = world.service.create_api_key(&world.user("ada"), new).await.unwrap();
        let caller = world.service.authenticate(&key.key).await.unwrap();
        for window in 0..2 {
            let first = world.service.admit(&caller).await;
            let reset = first.status.reset_unix_millis;
            assert_eq!(
                (first.allowed, first.status.limit, first.status.remaining),
                (true, allowed, allowed - 1)
            );
            assert_eq!(first.retry_after_millis, 60_000, "window {window}");
            for used in 1..allowed {
                world.clock.advance_millis(1);
                let next = world.service.admit(&caller).await;
                assert_eq!((next.allowed, next.status.remaining), (true, allowed - used - 1));
                assert_eq!(next.status.reset_unix_millis, reset);
            }
            world.clock.advance_millis(59_999 - i64::from(allowed - 1));
            let over = world.service.admit(&caller).await;
            assert_eq!(
                (over.allowed, over.status.remaining, over.retry_after_millis),
                (false, 0, 1)
            );
            // Setting the clock back does not refill the window.
            world.clock.advance_millis(-30_000);
            let back = world.service.admit(&caller).await;
            assert_eq!((back.allowed, back.status.reset_unix_millis), (false, reset));
            world.clock.advance_millis(30_001);
        }
    }
}

#[tokio::test]
async fn users_and_keys_have_separate_windows() {
    let world = World::with(|settings| settings.session_rate_limit = 2);
    let workspace = world.workspace("ada").await;
    let (_, first) = world.key_caller(workspace, "ada", Scope::Read).await;
    let (_, second) = world.key_caller(workspace, "ada", Scope::Read).await;
    let (ada, bob) = (world.user("ada"), world.user("bob"));
    for _ in 0..2 {
        assert!(world.service.admit(&ada).await.allowed);
    }
    assert!(!world.service.admit(&ada).await.allowed);
    for caller in [&bob, &first, &second] {
        assert!(world.service.admit(caller).await.allowed);
    }
    assert_eq!(world.service.admit(&bob).await.status.limit, 2);
    assert_eq!(world.service.admit(&first).await.status.remaining, 98);
}

#[tokio::test]
async fn the_reset_is_shown_in_whole_seconds_rounded_up() {
    let world = World::new();
    world.workspace("ada").await;
    let start = at("2026-11-20T09:30:00Z").unix_millis() / 1000;
    let status = world.service.admit(&world.user("ada")).await.status;
    assert_eq!((status.limit, status.reset_unix_seconds()), (600, start + 60));
    world.clock.advance_millis(60_001);
    let status = world.service.admit(&world.user("ada")).await.status;
    assert_eq!(status.reset_unix_seconds(), start + 121);
}
