//! Who of a provider's users may use the service.

use serde_json::{Value, json};

use crate::http;
use crate::jwks::{claims_of, header_of};
use crate::provider::Provider;
use crate::service::{Service, assert_unauthorized, jwks};

/// A service that requires these claims, and a token with more claims than the provider gives.
async fn asked_with(provider: &Provider, required: &[&str], more: &Value) -> bool {
    let mut config = jwks(&provider.issuer);
    config.oidc_required_claims = required.iter().map(|claim| claim.parse().unwrap()).collect();
    let service = Service::start(config).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    let mut claims: Value = serde_json::from_str(&claims_of(&token)).unwrap();
    claims
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let token = provider.sign("RS256", &header_of(&token), &claims.to_string()).await;
    let answer = service.ask(&token).await;
    let is_admitted = answer.status() == 200;
    if !is_admitted {
        assert_unauthorized(&answer, "a claim is missing");
    }
    // A browser session is opened by the same rule.
    assert_eq!(service.sign_in(&token).await.status() == 204, is_admitted);
    service.stop().await;
    is_admitted
}

#[tokio::test]
async fn a_group_is_a_member_with_the_role_of_its_users() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let mut config = jwks(&provider.issuer);
    config.oidc_groups_claim = Some("groups".to_owned());
    let service = Service::start(config).await;
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    let claims: Value = serde_json::from_str(&claims_of(&token)).unwrap();
    let of = async |user: &str, groups: Value| {
        let mut claims = claims.clone();
        claims["sub"] = json!(user);
        claims["groups"] = groups;
        provider.sign("RS256", &header_of(&token), &claims.to_string()).await
    };
    let studio = service.workspace(&token).await;
    let members = format!("/api/workspaces/members?workspace_id={studio}");
    let set = async |user: &str, role: &str| {
        let path = format!("{members}&user_id={user}");
        service
            .call("PUT", &path, &token, json!({"role": role}))
            .await
            .status()
            .as_u16()
    };
    for (group, role) in [
        ("group:readers", "viewer"),
        ("group:admins", "admin"),
        ("group:owners", "owner"),
    ] {
        assert_eq!(set(group, role).await, 200, "{group}");
    }
    let listed = service.json(&members, &token).await;
    let listed: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member["user_id"].clone())
        .collect();
    assert_eq!(listed.len(), 4);
    assert!(listed.contains(&json!("group:readers")));

    let role = async |token: &str| {
        let whoami = service.json("/api/whoami", token).await;
        let workspaces = whoami["workspaces"].as_array().unwrap().clone();
        assert!(workspaces.len() <= 1);
        workspaces.first().map(|workspace| workspace["role"].clone())
    };
    let status = async |path: &str, token: &str| service.call("GET", path, token, Value::Null).await.status().as_u16();
    let agents = format!("/api/agents/configs?workspace_id={studio}");
    let audit = format!("/api/audit-log?workspace_id={studio}");
    let eve = of("eve", json!(["others"])).await;
    assert_eq!((role(&eve).await, status(&agents, &eve).await), (None, 403));
    let reader = of("grace", json!("readers")).await;
    assert_eq!(role(&reader).await, Some(json!("viewer")));
    assert_eq!(
        (status(&agents, &reader).await, status(&audit, &reader).await),
        (200, 403)
    );
    // Of several groups the highest role counts.
    let admin = of("grace", json!(["readers", "admins", "nowhere"])).await;
    assert_eq!(role(&admin).await, Some(json!("admin")));
    // The only workspace need not be named.
    let unknown = status("/api/agents/versions?agent_id=none", &admin).await;
    assert_eq!((status(&audit, &admin).await, unknown), (200, 404));
    // A membership of the user's own wins, even a lower one.
    assert_eq!(set("grace", "viewer").await, 200);
    assert_eq!(
        (role(&admin).await, status(&audit, &admin).await),
        (Some(json!("viewer")), 403)
    );
    // A browser session keeps the groups of its token.
    let cookie = service.cookie(&of("bob", json!(["admins"])).await).await;
    let whoami = http::json(&service.whoami(&cookie).await);
    assert_eq!(whoami["workspaces"][0]["role"], "admin");

    // A group of owners is not the last owner, and no user can be a group.
    let leave = format!("{members}&user_id=ada");
    assert_eq!(service.call("DELETE", &leave, &token, Value::Null).await.status(), 409);
    let forged = of("group:owners", json!([])).await;
    assert_unauthorized(&service.ask(&forged).await, "a group as a user");
    let owner = of("olga", json!(["owners"])).await;
    let remove = format!("{members}&user_id=group:admins");
    assert_eq!(service.call("DELETE", &remove, &owner, Value::Null).await.status(), 200);
    let admin = of("carol", json!(["admins"])).await;
    assert_eq!((role(&admin).await, status(&agents, &admin).await), (None, 403));
    service.stop().await;

    // Without the setting a group cannot be a member.
    let service = Service::start(jwks(&provider.issuer)).await;
    let studio = service.workspace(&token).await;
    let path = format!("/api/workspaces/members?workspace_id={studio}&user_id=group:readers");
    let refused = service.call("PUT", &path, &token, json!({"role": "viewer"})).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(service.call("DELETE", &path, &token, Value::Null).await.status(), 400);
    assert_unauthorized(&service.ask(&forged).await, "a group as a user");
    assert!(
        http::json(&refused)["error"]
            .as_str()
            .unwrap()
            .contains("user_id must not begin with group:")
    );
}

/// The shapes are those that the documentation of the providers shows: groups as a list (Keycloak, Okta, Entra), an
/// organisation as a text (Auth0), a hosted domain and a verified address (Google).
#[tokio::test]
async fn required_claims_hold_for_each_token() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    for (required, more, is_admitted) in [
        (&[][..], json!({}), true),
        (&["groups=agentcfg"], json!({"groups": ["staff", "agentcfg"]}), true),
        (&["groups=agentcfg"], json!({"groups": ["staff"]}), false),
        (&["groups=agentcfg"], json!({}), false),
        (&["org_id=org_7"], json!({"org_id": "org_7"}), true),
        (
            &["hd=example.com", "email_verified=true"],
            json!({"hd": "example.com", "email_verified": true}),
            true,
        ),
        (
            &["hd=example.com", "email_verified=true"],
            json!({"hd": "example.com", "email_verified": false}),
            false,
        ),
        (&["email_verified=true"], json!({"email_verified": "true"}), false),
    ] {
        assert_eq!(
            asked_with(&provider, required, &more).await,
            is_admitted,
            "{required:?} {more}"
        );
    }
}
