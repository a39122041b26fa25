//! Fixed rate windows of keys and users.

use agentcfg_core::model::Scope;
use agentcfg_core::service::EntryError;

use super::support::{World, at, new_key};

#[tokio::test]
async fn the_window_of_a_key_starts_with_its_first_request_and_lasts_a_minute() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    for (limit, allowed) in [(None, 100), (Some(1), 1), (Some(7), 7)] {
        let new = new_key(workspace, Scope::Read).rate_limit(limit);
        let key = world.service.create_api_key(&world.user("ada"), new).await.unwrap();
        let caller = world.service.authenticate(&key.key).await.unwrap();
        for window in 0..2 {
            let first = world.service.admit(&caller).await.unwrap();
            let reset = first.reset_unix_millis;
            assert_eq!((first.limit, first.remaining), (allowed, allowed - 1));
            assert_eq!(reset, world.now().unix_millis() + 60_000, "window {window}");
            for used in 1..allowed {
                world.clock.advance_millis(1);
                let next = world.service.admit(&caller).await.unwrap();
                assert_eq!(next.remaining, allowed - used - 1);
                assert_eq!(next.reset_unix_millis, reset);
            }
            world.clock.advance_millis(59_999 - i64::from(allowed - 1));
            let over = world.service.admit(&caller).await.unwrap_err();
            assert_eq!((over.status.remaining, over.retry_after_millis), (0, 1));
            // Setting the clock back does not refill the window.
            world.clock.advance_millis(-30_000);
            let back = world.service.admit(&caller).await.unwrap_err();
            assert_eq!(back.status.reset_unix_millis, reset);
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
        assert!(world.service.admit(&ada).await.is_ok());
    }
    assert!(world.service.admit(&ada).await.is_err());
    for caller in [&bob, &first, &second] {
        assert!(world.service.admit(caller).await.is_ok());
    }
    assert_eq!(world.service.admit(&bob).await.unwrap().limit, 2);
    assert_eq!(world.service.admit(&first).await.unwrap().remaining, 98);
}

#[tokio::test]
async fn the_reset_is_shown_in_whole_seconds_rounded_up() {
    let world = World::new();
    world.workspace("ada").await;
    let start = at("2026-11-20T09:30:00Z").unix_millis() / 1000;
    let status = world.service.admit(&world.user("ada")).await.unwrap();
    assert_eq!((status.limit, status.reset_unix_seconds()), (600, start + 60));
    world.clock.advance_millis(60_001);
    let status = world.service.admit(&world.user("ada")).await.unwrap();
    assert_eq!(status.reset_unix_seconds(), start + 121);
}

#[tokio::test]
async fn a_refused_entry_counts_and_has_the_figures_too() {
    let world = World::new();
    let workspace = world.workspace("ada").await;
    let new = new_key(workspace, Scope::Read).rate_limit(2);
    let key = world.service.create_api_key(&world.user("ada"), new).await.unwrap();
    // The first entry reads the record, the second finds the key in memory.
    for remaining in [1, 0] {
        let entry = world.service.enter(&key.key).await.unwrap();
        assert_eq!((entry.rate.limit, entry.rate.remaining), (2, remaining));
        assert_eq!(entry.caller.key_workspace(), Some(workspace));
    }
    world.clock.advance_millis(58_500);
    let Err(EntryError::RateLimited { limited, caller }) = world.service.enter(&key.key).await else {
        panic!("the limit is used up");
    };
    assert_eq!(caller.actor().id, key.record.id.as_str());
    assert_eq!((limited.status.limit, limited.status.remaining), (2, 0));
    assert_eq!(limited.retry_after_seconds(), 2);
    assert_eq!(
        limited.to_string(),
        "rate limit of 2 requests per minute exceeded, try again in 2 s"
    );
    assert!(matches!(
        world.service.enter("svc_live_").await,
        Err(EntryError::Credential(_))
    ));
}

#[tokio::test]
async fn a_clock_that_was_set_by_hours_locks_no_key_out() {
    const HOURS: i64 = 5 * 3_600_000;
    let world = World::with(|settings| settings.session_rate_limit = 1);
    let workspace = world.workspace("ada").await;
    let new = new_key(workspace, Scope::Read).rate_limit(1);
    let key = world.service.create_api_key(&world.user("ada"), new).await.unwrap();
    let key = world.service.authenticate(&key.key).await.unwrap();
    for caller in [world.user("ada"), key] {
        // The clock runs ahead while a window opens, and is set right within it.
        world.clock.step_millis(HOURS);
        let reset = world.service.admit(&caller).await.unwrap().reset_unix_millis;
        world.clock.step_millis(-HOURS);
        let limited = world.service.admit(&caller).await.unwrap_err();
        assert_eq!(limited.status.reset_unix_millis, reset, "a step back refills nothing");
        assert!(limited.retry_after_seconds() <= 61);
        world.clock.advance_millis(61_000);
        assert!(world.service.admit(&caller).await.is_ok());
        world.clock.advance_millis(61_000);
    }
}
