//! The real client against the binary.

use agentcfg_client::model::{
    AgentPatch, AuditFilter, LabelFilter, LabelTarget, NewAgent, Precondition, Promotion, Rollback, VersionPage,
};
use agentcfg_tests::harness::Studio;

#[tokio::test]
async fn a_release_and_its_undoing() {
    let studio = Studio::open();
    let (client, workspace) = (studio.client(), Some(studio.id));
    let new = NewAgent::new(studio.id, "writer".parse().unwrap(), "Writer").persona_prompt("Be brief.\n");
    let created = client.create_agent(&new).await.unwrap();
    assert_eq!(created.version, 1);
    let patch = AgentPatch::default().persona_prompt("Be verbose.\n");
    let why = client.with_message("Longer notes".parse().unwrap());
    let changed = why
        .update_agent(workspace, "writer", &patch, &Precondition::matches(created.tag))
        .await
        .unwrap();
    assert_eq!(changed.version, 2);
    let production = "production".parse().unwrap();
    client
        .set_label(workspace, "writer", &production, &LabelTarget::new(1))
        .await
        .unwrap();

    let agents = client.agents().in_workspace(studio.id);
    let released = agents.label("production").get("writer").await.unwrap();
    assert_eq!(released.config, created.value.config());
    assert_eq!(agents.get("writer").await.unwrap().message.unwrap(), "Longer notes");
    assert!(agents.label("beta").get("writer").await.unwrap_err().is_not_found());
    let diff = client
        .diff_versions(workspace, "writer", "production", "latest")
        .await
        .unwrap();
    assert!(diff.prompt_diff.unwrap().ends_with("-Be brief.\n+Be verbose.\n"));

    let promotion = Promotion::new("latest".parse().unwrap(), production.clone());
    let promoted = client.promote_labels(studio.id, &promotion, false).await.unwrap();
    assert_eq!((promoted[0].version, promoted[0].previous_version), (2, Some(1)));
    let lost = LabelTarget::new(1).expected_version(1);
    let lost = client.set_label(workspace, "writer", &production, &lost).await;
    assert!(lost.unwrap_err().is_precondition_failed());
    let back = client
        .roll_back_agent(
            workspace,
            "writer",
            &Rollback::to_version(1),
            &Precondition::matches(changed.tag),
        )
        .await
        .unwrap();
    assert_eq!(back.version, 3);
    let versions = client
        .list_versions(workspace, "writer", VersionPage::default())
        .await
        .unwrap();
    assert_eq!(versions[0].restored_from, Some(1));
    assert_eq!(client.current_versions(workspace).await.unwrap(), versions[..1]);

    let filter = AuditFilter::default().action("label.*");
    let log = client.search_audit_log(studio.id, &filter).await.unwrap();
    assert_eq!(log.len(), 2);
    let before = agents.revision(log[1].revision).list().await.unwrap();
    assert_eq!(before.value, std::slice::from_ref(&changed.value));
    let then = agents.at(created.value.created_at).list().await.unwrap();
    assert_eq!(then.value, [created.value]);
    let labels = client.list_labels(studio.id, LabelFilter::default()).await.unwrap();
    assert_eq!((labels.len(), labels[0].version), (1, 2));
    client.remove_label(workspace, "writer", &production).await.unwrap();
    assert!(
        client
            .list_labels(studio.id, LabelFilter::default())
            .await
            .unwrap()
            .is_empty()
    );
}
