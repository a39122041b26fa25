use super::*;
use crate::ErrorKind;
use crate::service::{MasterKeyError, RewrapProgress};

/// More than fits into one commit of a rotation.
const WORKSPACES: usize = 70;

async fn filled(store: &Arc<dyn Store>, workspaces: usize) -> Vec<Workspace> {
    let service = service(store, &[1]);
    service.adopt_master_keys().await.unwrap();
    let mut made = Vec::new();
    for n in 0..workspaces {
        let studio = workspace(&service).await;
        agent(&service, studio.id, "writer", None).await;
        save(&service, studio.id, &format!("sk-{n}")).await.unwrap();
        made.push(studio);
    }
    made
}

async fn save(service: &AgentCfg, workspace: WorkspaceId, text: &str) -> Result<(), crate::Error> {
    service
        .save_provider_key(&ada(service), workspace, Provider::OPENAI, &credential(text))
        .await
        .map(drop)
}

async fn all_open(service: &AgentCfg, workspaces: &[Workspace]) {
    for (n, studio) in workspaces.iter().enumerate() {
        assert_eq!(
            next(service, studio.id, Provider::OPENAI).await.unwrap(),
            format!("sk-{n}")
        );
    }
}

async fn rewrap(service: &AgentCfg) -> Result<(RewrapProgress, Vec<u64>), MasterKeyError> {
    let mut steps = Vec::new();
    let done = service
        .rewrap_provider_keys(&mut |progress| steps.push(progress.examined))
        .await?;
    Ok((done, steps))
}

async fn needed(service: &AgentCfg) -> Vec<u8> {
    let names: Vec<_> = [1, 2, 3].map(|byte| (key(byte).id(), byte)).into();
    let needed = service.master_keys_needed().await.unwrap();
    needed
        .keys
        .iter()
        .map(|id| names.iter().find(|(name, _)| name == id).unwrap().1)
        .collect()
}

#[tokio::test]
async fn a_rotation_seals_all_keys_again_and_reports_its_progress() {
    let store = memory();
    let workspaces = filled(&store, WORKSPACES).await;
    let service = service(&store, &[2, 1]);
    let (done, steps) = rewrap(&service).await.unwrap();
    assert_eq!((done.examined, done.rewrapped, done.unreadable), (70, 70, 0));
    assert_eq!(steps, [64, 70]);
    assert_eq!(needed(&service).await, [2]);
    service.set_vault(vault(&[2]));
    all_open(&service, &workspaces).await;
    let again = rewrap(&service).await.unwrap().0;
    assert_eq!((again.examined, again.rewrapped), (70, 0));
}

#[tokio::test]
async fn a_rotation_killed_at_any_commit_is_taken_up_again() {
    for applies in [false, true] {
        for commits in 0.. {
            let store = memory();
            let workspaces = filled(&store, WORKSPACES).await;
            let killed = service(&Failing::after(&store, commits, applies), &[2, 1]);
            let finished = rewrap(&killed).await.is_ok();

            // The state can be served before the rotation is resumed, and without that.
            let next_start = service(&store, &[2, 1]);
            assert!(
                service(&store, &[1]).adopt_master_keys().await.is_err() || commits == 0,
                "killed at commit {commits}: the old key alone is refused"
            );
            all_open(&next_start, &workspaces).await;
            next_start.adopt_master_keys().await.unwrap();
            assert!(!finished || needed(&next_start).await == [2]);
            rewrap(&next_start).await.unwrap();
            assert_eq!(needed(&next_start).await, [2]);
            let new_alone = service(&store, &[2]);
            new_alone.adopt_master_keys().await.unwrap();
            all_open(&new_alone, &workspaces).await;
            if finished {
                assert_eq!(commits, 4, "adopt, two batches, drop the old key from the list");
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_or_missing_master_key_is_refused_before_anything_is_served() {
    let store = memory();
    filled(&store, 1).await;
    for keys in [&[2][..], &[2, 3]] {
        match service(&store, keys).adopt_master_keys().await.unwrap_err() {
            MasterKeyError::Missing { needed, given } => {
                assert_eq!(needed, [key(1).id()]);
                assert_eq!(given, keys.iter().map(|byte| key(*byte).id()).collect::<Vec<_>>());
            }
            other => panic!("{other}"),
        }
    }
    let error = builder(Arc::clone(&store))
        .build()
        .adopt_master_keys()
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with("was given none"), "{error}");
    service(&store, &[1]).adopt_master_keys().await.unwrap();
    let empty = memory();
    builder(empty).build().adopt_master_keys().await.unwrap();
}

#[tokio::test]
async fn nothing_is_sealed_under_an_old_key_once_a_new_one_is_named() {
    let store = memory();
    let workspaces = filled(&store, 1).await;
    let old = service(&store, &[1]);
    let both = service(&store, &[1, 2]);
    let new = service(&store, &[2, 1]);
    new.adopt_master_keys().await.unwrap();
    assert_eq!(needed(&new).await, [2, 1]);

    let error = save(&old, workspaces[0].id, "sk-late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotConfigured, "{error}");
    save(&both, workspaces[0].id, "sk-late").await.unwrap();
    let (done, _) = rewrap(&new).await.unwrap();
    assert_eq!(
        done.rewrapped, 0,
        "it was sealed under the store's key, not under the instance's first"
    );
    assert_eq!(next(&new, workspaces[0].id, Provider::OPENAI).await.unwrap(), "sk-late");
}

#[tokio::test]
async fn a_save_that_a_whole_rotation_overtakes_seals_under_the_new_key() {
    let store = memory();
    let studio = filled(&store, 1).await.remove(0);
    let rotating = service(&store, &[2, 1]);
    let slow = Meanwhile::on(&store, async move {
        rewrap(&rotating).await.unwrap();
    });
    // A first key of this provider, so that the rotation finds no key to seal again.
    let late = service(&slow, &[1, 2]);
    late.save_provider_key(&ada(&late), studio.id, Provider::ANTHROPIC, &credential("sk-late"))
        .await
        .unwrap();
    let new_alone = service(&store, &[2]);
    new_alone.adopt_master_keys().await.unwrap();
    assert_eq!(
        next(&new_alone, studio.id, Provider::ANTHROPIC).await.unwrap(),
        "sk-late"
    );
}

#[tokio::test]
async fn a_key_that_is_saved_during_its_rotation_wins() {
    let store = memory();
    let studio = filled(&store, 1).await.remove(0);
    let both = service(&store, &[2, 1]);
    both.adopt_master_keys().await.unwrap();
    let slow = Meanwhile::on(&store, async move {
        save(&both, studio.id, "sk-late").await.unwrap();
    });
    let (done, _) = rewrap(&service(&slow, &[2, 1])).await.unwrap();
    assert_eq!(done.rewrapped, 0, "it is sealed under the new key already");
    assert_eq!(
        next(&service(&store, &[2]), studio.id, Provider::OPENAI).await.unwrap(),
        "sk-late"
    );
}

#[tokio::test]
async fn a_plan_that_drops_while_a_key_is_saved_wins() {
    let store = memory();
    let studio = filled(&store, 1).await.remove(0);
    let operator = service(&store, &[1]);
    let slow = Meanwhile::on(&store, async move {
        set_plan(&operator, studio.id, crate::model::Plan::Free).await;
    });
    let error = save(&service(&slow, &[1]), studio.id, "sk-late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
}

/// Saves and calls that run during rotations and must not fail because of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saves_and_calls_succeed_during_rotations() {
    let store = memory();
    let workspaces = Arc::new(filled(&store, 8).await);
    let service = service(&store, &[1]);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let busy = tokio::spawn({
        let (service, workspaces, stop) = (service.clone(), Arc::clone(&workspaces), Arc::clone(&stop));
        async move {
            let mut rounds = 0;
            while !stop.load(Ordering::Relaxed) {
                for (n, studio) in workspaces.iter().enumerate() {
                    save(&service, studio.id, &format!("sk-{n}")).await.unwrap();
                    assert_eq!(
                        next(&service, studio.id, Provider::OPENAI).await.unwrap(),
                        format!("sk-{n}")
                    );
                }
                rounds += 1;
                tokio::task::yield_now().await;
            }
            rounds
        }
    });
    for byte in 2..40 {
        service.set_vault(vault(&[byte, byte - 1]));
        rewrap(&service).await.unwrap();
        service.set_vault(vault(&[byte]));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(busy.await.unwrap() > 0);
    all_open(&service, &workspaces).await;
}

#[tokio::test]
async fn a_key_that_does_not_open_is_counted_and_left_as_it_is() {
    let store = memory();
    let workspaces = filled(&store, 2).await;
    let places = workspaces
        .iter()
        .map(|studio| crate::service::records::provider_key(studio.id, Provider::OPENAI).into())
        .collect::<Vec<crate::store::Key>>();
    let records = store.get(&places).await.unwrap();
    let moved = records[0].as_ref().unwrap().value.to_vec();
    let batch = Batch {
        checks: Vec::new(),
        writes: vec![crate::store::Write::Put(places[1].clone(), moved.clone())],
    };
    store.commit(batch).await.unwrap();
    let service = service(&store, &[2, 1]);
    let (done, _) = rewrap(&service).await.unwrap();
    assert_eq!((done.rewrapped, done.unreadable), (1, 1));
    let left = store.get(&places).await.unwrap()[1].clone().unwrap();
    assert_eq!(&*left.value, moved);
}
