//! Rotation of keys, and a provider that fails, stalls or would be flooded with fetches.

use super::*;

fn set(pairs: &[(&str, Pair)]) -> String {
    key_set(&pairs.iter().map(|(id, pair)| pair.jwk(id)).collect::<Vec<_>>())
}

/// Lets every task run that can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn without_keys_nothing_is_known() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    provider.answers(Err("down"));
    let sessions = provider.sessions();
    let token = rsa().token("1");
    assert!(sessions.ready().is_err());
    assert!(is_unavailable(&sessions.verify(&token, at(0)).await));
    // A token that is malformed is refused as such nevertheless.
    assert!(is_invalid(&sessions.verify("nonsense", at(0)).await));
    assert_eq!(provider.fetches(), 1);
    // Tokens do not flood a provider that is down.
    for _ in 0..20 {
        assert!(is_unavailable(&sessions.verify(&token, at(0)).await));
    }
    assert_eq!(provider.fetches(), 1);

    provider.answers(Ok(set(&[("1", rsa())])));
    assert!(sessions.verify(&token, at(1)).await.is_ok());
    assert!(sessions.ready().is_ok());
    assert_eq!(provider.fetches(), 2);
}

#[tokio::test]
async fn a_new_key_is_found_with_its_first_token() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    assert!(sessions.verify(&rsa().token("1"), at(1)).await.is_ok());
    provider.answers(Ok(set(&[("1", rsa()), ("2", ec())])));
    assert!(sessions.verify(&ec().token("2"), at(2)).await.is_ok());
    assert_eq!(provider.fetches(), 2);

    // The next rotation has to wait until half a minute is over.
    provider.answers(Ok(set(&[("2", ec()), ("3", ed())])));
    assert!(is_invalid(&sessions.verify(&ed().token("3"), at(31)).await));
    assert_eq!(provider.fetches(), 2);
    assert!(sessions.verify(&ed().token("3"), at(32)).await.is_ok());
    assert_eq!(provider.fetches(), 3);
    // The first key is gone now.
    assert!(is_invalid(&sessions.verify(&rsa().token("1"), at(33)).await));
}

#[tokio::test]
async fn a_flood_of_unknown_keys_is_one_fetch_and_known_keys_pass() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    provider.hold();
    let mut flood = tokio::task::JoinSet::new();
    for i in 0..500 {
        let sessions = sessions.clone();
        let token = other_rsa().token("2");
        let token = if i % 2 == 0 {
            token
        } else {
            other_rsa().token(&format!("random-{i}"))
        };
        flood.spawn(async move { sessions.verify(&token, at(5)).await });
    }
    settle().await;
    assert_eq!(provider.fetches(), 2);
    // The fetch stalls, and valid tokens pass.
    assert!(sessions.verify(&rsa().token("1"), at(5)).await.is_ok());
    provider.answers(Ok(set(&[("1", rsa()), ("3", ed())])));
    provider.let_go();
    while let Some(answer) = flood.join_next().await {
        assert!(is_invalid(&answer.unwrap()));
    }
    assert_eq!(provider.fetches(), 2);
    assert!(sessions.verify(&ed().token("3"), at(5)).await.is_ok());
    for second in 6..35 {
        assert!(is_invalid(&sessions.verify(&other_rsa().token("x"), at(second)).await));
        assert!(sessions.verify(&rsa().token("1"), at(second)).await.is_ok());
    }
    assert_eq!(provider.fetches(), 2);
}

#[tokio::test]
async fn a_cancelled_caller_does_not_cancel_the_fetch() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    provider.hold();
    provider.answers(Ok(set(&[("1", rsa()), ("2", ec())])));
    let leaving = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.verify(&other_rsa().token("x"), at(1)).await }
    });
    settle().await;
    assert_eq!(provider.fetches(), 2);
    leaving.abort();
    assert!(leaving.await.unwrap_err().is_cancelled());
    provider.let_go();
    settle().await;
    assert!(sessions.verify(&ec().token("2"), at(2)).await.is_ok());
    assert_eq!(provider.fetches(), 2);
}

#[tokio::test]
async fn keys_outlive_fetches_that_fail() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    for (i, answer) in [
        Err("down"),
        Err("panic"),
        Ok("<html>".to_owned()),
        Ok("{}".to_owned()),
        Ok(r#"{"keys": 1}"#.to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        provider.answers(answer);
        let now = at(60 * (1 + i64::try_from(i).unwrap()));
        // An unknown key may be a new one, which cannot be checked now.
        assert!(is_unavailable(&sessions.verify(&ec().token("2"), now).await));
        assert!(sessions.verify(&rsa().token("1"), now).await.is_ok());
        assert!(is_invalid(&sessions.verify(&other_rsa().token("1"), now).await));
        assert_eq!(provider.fetches(), i + 2);
    }
    assert!(sessions.ready().is_err(), "the last attempt has failed");
    provider.answers(Ok(set(&[("2", ec())])));
    assert!(sessions.verify(&ec().token("2"), at(400)).await.is_ok());
    assert!(sessions.ready().is_ok());
    assert!(is_invalid(&sessions.verify(&rsa().token("1"), at(401)).await));
}

#[tokio::test]
async fn a_probe_tells_whether_the_provider_can_be_reached() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.probe(at(0)).await;
    assert!(sessions.ready().is_ok());
    provider.answers(Err("down"));
    // One that follows at once is none.
    sessions.probe(at(1)).await;
    assert!(sessions.ready().is_ok());
    sessions.probe(at(10)).await;
    assert!(sessions.ready().is_err());
    assert!(
        sessions.verify(&rsa().token("1"), at(10)).await.is_ok(),
        "the keys are still known"
    );
    provider.answers(Ok(set(&[("1", rsa())])));
    sessions.probe(at(20)).await;
    assert!(sessions.ready().is_ok());
    assert_eq!(provider.fetches(), 3);
}

#[tokio::test]
async fn removed_keys_go_with_time() {
    let provider = Provider::new(&set(&[("1", rsa()), ("2", ec())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    provider.answers(Ok(set(&[("2", ec())])));
    let token = rsa().token("1");
    for second in [1, 60, 599] {
        sessions.refresh(at(second)).await;
        assert!(sessions.verify(&token, at(second)).await.is_ok());
    }
    assert_eq!(provider.fetches(), 1);
    // A token may start the fetch of old keys; it does not wait for it.
    assert!(sessions.verify(&token, at(600)).await.is_ok());
    settle().await;
    assert_eq!(provider.fetches(), 2);
    assert!(is_invalid(&sessions.verify(&token, at(601)).await));
    // Without any token, the periodic check starts it.
    provider.answers(Ok(set(&[("3", ed())])));
    sessions.refresh(at(1201)).await;
    assert!(is_invalid(&sessions.verify(&ec().token("2"), at(1201)).await));
    assert!(sessions.verify(&ed().token("3"), at(1201)).await.is_ok());
}

#[tokio::test]
async fn a_provider_that_withdraws_all_keys_is_believed() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(0)).await;
    provider.answers(Ok(key_set(&[])));
    sessions.refresh(at(600)).await;
    assert!(is_unavailable(&sessions.verify(&rsa().token("1"), at(600)).await));
    assert!(sessions.ready().is_err());
}

#[tokio::test]
async fn many_first_tokens_share_the_first_fetch() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    provider.hold();
    let sessions = provider.sessions();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (sessions, token) = (sessions.clone(), rsa().token("1"));
        waiting.spawn(async move { sessions.verify(&token, at(0)).await });
    }
    settle().await;
    provider.let_go();
    while let Some(answer) = waiting.join_next().await {
        assert!(answer.unwrap().is_ok());
    }
    assert_eq!(provider.fetches(), 1);
}

#[tokio::test]
async fn a_clock_that_is_set_back_does_not_keep_keys_forever() {
    let provider = Provider::new(&set(&[("1", rsa())]));
    let sessions = provider.sessions();
    sessions.refresh(at(3600)).await;
    // A difference of seconds is the age of a request that waited, and starts no fetch.
    sessions.refresh(at(3590)).await;
    assert_eq!(provider.fetches(), 1);
    sessions.refresh(at(0)).await;
    assert_eq!(provider.fetches(), 2);
}
