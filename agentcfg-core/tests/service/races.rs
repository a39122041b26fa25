//! Invariants under concurrency: on threads with both stores, and in many interleavings on one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentcfg_core::model::{
    AgentFilter, AgentPatch, CreatedApiKey, NewAgent, NewWorkspace, Parameters, Patch, Precondition, Role, Scope,
    WorkspaceId,
};
use agentcfg_core::{Error, ErrorKind};
use tokio::task::JoinSet;

use super::support::race::{at_once, everywhere, tally};
use super::support::{ANY, World};

#[test]
fn one_concurrent_creation_takes_the_last_slot() {
    everywhere(Some(3), |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "a").await;
        world.agent(workspace, "ada", "b").await;
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            async move {
                service
                    .create_agent(
                        &ada,
                        NewAgent::new(workspace, format!("n{number}").parse().unwrap(), "N"),
                    )
                    .await
            }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::PlanLimit), (1, 7));
        assert_eq!(world.listed(workspace, "ada").await.len(), 3);
    });
}

#[test]
fn concurrent_creations_make_as_many_workspaces_as_a_user_may_own() {
    everywhere(Some(3), |world| async move {
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            async move {
                service
                    .create_workspace(&ada, NewWorkspace::new(format!("{number}")))
                    .await
            }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::PlanLimit), (3, 5));
        let listed = world.service.list_workspaces(&world.user("ada")).await;
        assert_eq!(listed.unwrap().len(), 3);
    });
}

#[test]
fn one_concurrent_creation_takes_an_identifier() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            async move {
                service
                    .create_agent(
                        &ada,
                        NewAgent::new(workspace, "same".parse().unwrap(), format!("{number}")),
                    )
                    .await
            }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::Conflict), (1, 7));
        assert_eq!(world.log(workspace, "ada").await.len(), 2);
        let winner = results.into_iter().find_map(Result::ok).unwrap();
        let list = world
            .service
            .list_agents(&world.user("ada"), workspace, &AgentFilter::default())
            .await;
        assert_eq!(list.unwrap().value.agents().unwrap(), [winner.value]);
    });
}

#[test]
fn a_workspace_always_keeps_an_owner() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        let users = ["ada", "bob", "cyd"];
        for user in ["bob", "cyd"] {
            world.member(workspace, "ada", user, Role::Owner).await;
        }
        // Each owner demotes the next one and leaves.
        at_once(6, |number| {
            let service = world.service.clone();
            let (caller, next) = (world.user(users[number % 3]), users[(number + 1) % 3]);
            async move {
                if number < 3 {
                    service
                        .set_member(&caller, workspace, &next.parse().unwrap(), Role::Viewer)
                        .await
                        .map(drop)
                } else {
                    service
                        .remove_member(&caller, workspace, &users[number % 3].parse().unwrap())
                        .await
                        .map(drop)
                }
            }
        })
        .await;
        let mut owners = Vec::new();
        for user in users {
            let views = world.service.list_workspaces(&world.user(user)).await.unwrap();
            if views.iter().any(|view| view.role == Some(Role::Owner)) {
                owners.push(user);
            }
        }
        assert!(!owners.is_empty());
        // The count of owners is still right: all but the last one can leave.
        for (left, user) in owners.iter().enumerate() {
            let result = world
                .service
                .remove_member(&world.user(user), workspace, &user.parse().unwrap())
                .await;
            assert_eq!(result.is_ok(), left + 1 < owners.len());
        }
    });
}

#[test]
fn one_writer_wins_with_if_match() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        let new = NewAgent::new(workspace, "writer".parse().unwrap(), "W");
        let tag = world.service.create_agent(&world.user("ada"), new).await.unwrap().tag;
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            let patch = AgentPatch::default().role(format!("{number}"));
            async move {
                service
                    .update_agent(&ada, None, "writer", patch, &Precondition::matches(tag))
                    .await
            }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::Precondition), (1, 7));
    });
}

#[test]
fn updates_of_different_fields_lose_nothing() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let text = |number: usize| Patch::Set(format!("#{number}{number}{number}"));
        let results = at_once(8, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            let none = AgentPatch::default();
            let patch = match number {
                0 => none.role(text(0)),
                1 => none.description(text(1)),
                2 => none.model(text(2)),
                3 => none.color(text(3)),
                4 => none.persona_prompt(text(4)),
                5 => none.display_name("five"),
                6 => none.capabilities(Some(vec!["six".into()])),
                _ => none.parameters(Some(Parameters::from([("seven".into(), 7.into())]))),
            };
            async move { service.update_agent(&ada, None, "writer", patch, ANY).await }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::Unavailable), (8, 0));
        let list = world
            .service
            .list_agents(&world.user("ada"), workspace, &AgentFilter::default())
            .await
            .unwrap();
        let agent = &list.value.agents().unwrap()[0];
        let fields = [
            &agent.role,
            &agent.description,
            &agent.model,
            &agent.color,
            &agent.persona_prompt,
        ];
        for (number, field) in fields.into_iter().enumerate() {
            assert_eq!(Patch::from(field.clone()), text(number));
        }
        assert_eq!(
            (&*agent.display_name, &agent.capabilities[..]),
            ("five", &["six".to_owned()][..])
        );
        assert_eq!(agent.parameters["seven"], 7.into());
        // Every update advanced the time and the tag, and has its entry in the log.
        let mut seen: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        seen.sort_by_key(|tagged| tagged.value.updated_at);
        assert!(
            seen.windows(2)
                .all(|pair| pair[0].value.updated_at < pair[1].value.updated_at)
        );
        assert_eq!(seen[7].value, *agent);
        assert_eq!(world.log(workspace, "ada").await.len(), 10);
    });
}

#[test]
fn the_count_of_active_agents_stays_exact() {
    everywhere(Some(4), |world| async move {
        let workspace = world.workspace("ada").await;
        for agent_id in ["a", "b", "c"] {
            world.agent(workspace, "ada", agent_id).await;
        }
        // Concurrent deletes, restores and creations of a few agents.
        at_once(18, |number| {
            let (service, ada) = (world.service.clone(), world.user("ada"));
            let agent_id = ["a", "b", "c"][number / 2 % 3];
            async move {
                match number % 2 {
                    _ if number >= 12 => {
                        let new = NewAgent::new(workspace, format!("n{}", number % 3).parse().unwrap(), "N");
                        service.create_agent(&ada, new).await.map(drop)
                    }
                    0 => service.delete_agent(&ada, None, agent_id, ANY).await.map(drop),
                    _ => service.restore_agent(&ada, None, agent_id, ANY).await.map(drop),
                }
            }
        })
        .await;
        let active = world.listed(workspace, "ada").await.len();
        assert!(active <= 4);
        // The free slots can be filled, and not one more.
        for number in active..=4 {
            let new = NewAgent::new(workspace, format!("z{number}").parse().unwrap(), "Z");
            let created = world.service.create_agent(&world.user("ada"), new).await;
            assert_eq!(created.is_ok(), number < 4, "with {number} active");
        }
    });
}

#[test]
fn one_concurrent_revocation_succeeds() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        let created = world.key(workspace, "ada", Scope::Read).await;
        let results = at_once(4, |_| {
            let (service, ada, id) = (world.service.clone(), world.user("ada"), created.record.id.clone());
            async move { service.revoke_api_key(&ada, &id).await }
        })
        .await;
        assert_eq!(tally(&results, ErrorKind::NotFound), (1, 3));
        assert_eq!(world.log(workspace, "ada").await.len(), 3);
    });
}

/// Makes calls again and again, each in a task of its own, while their key is revoked. Those that begin after the revocation
/// must be refused, and the log must not grow.
async fn call_while_revoked<F>(
    world: &World,
    workspace: WorkspaceId,
    key: &CreatedApiKey,
    calls: impl IntoIterator<Item = impl Fn() -> F + Send + 'static>,
) where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let revoked = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for call in calls {
        let revoked = Arc::clone(&revoked);
        tasks.spawn(async move {
            let mut after = 0;
            while after < 3 {
                let begun_after = revoked.load(Ordering::SeqCst);
                match call().await {
                    Ok(()) => assert!(!begun_after, "a revoked key did something"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unauthorized),
                }
                after += usize::from(begun_after);
                tokio::task::yield_now().await;
            }
        });
    }
    let ada = world.user("ada");
    world.service.revoke_api_key(&ada, &key.record.id).await.unwrap();
    let last = world.log(workspace, "ada").await.len();
    revoked.store(true, Ordering::SeqCst);
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(world.log(workspace, "ada").await.len(), last);
}

#[test]
fn nothing_that_begins_after_a_revocation_succeeds() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let created = world.key(workspace, "ada", Scope::Admin).await;
        let call = |_| {
            let (service, key) = (world.another_instance(), created.key.clone());
            move || {
                let (service, key) = (service.clone(), key.clone());
                async move {
                    let caller = service.authenticate(&key).await?;
                    let empty = AgentPatch::default();
                    service.update_agent(&caller, None, "writer", empty, ANY).await?;
                    Ok(())
                }
            }
        };
        call_while_revoked(&world, workspace, &created, (0..3).map(call)).await;
    });
}

#[test]
fn no_kept_caller_does_anything_that_begins_after_a_revocation() {
    everywhere(None, |world| async move {
        let workspace = world.workspace("ada").await;
        world.agent(workspace, "ada", "writer").await;
        let created = world.key(workspace, "ada", Scope::Admin).await;
        let mut calls = Vec::new();
        for is_read in [true, false] {
            let service = world.another_instance();
            let kept = service.authenticate(&created.key).await.unwrap();
            calls.push(move || {
                let (service, kept) = (service.clone(), kept.clone());
                async move {
                    if is_read {
                        service.list_agents(&kept, workspace, &AgentFilter::default()).await?;
                    } else {
                        let empty = AgentPatch::default();
                        service.update_agent(&kept, None, "writer", empty, ANY).await?;
                    }
                    Ok(())
                }
            });
        }
        call_while_revoked(&world, workspace, &created, calls).await;
    });
}
