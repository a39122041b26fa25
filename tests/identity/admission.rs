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

/// The recipe of a provider in `docs/settings.md`, and a token of that provider.
///
/// The tokens are imitations, made from what the documentation of the providers shows; no provider is asked.
struct Recipe {
    provider: &'static str,
    issuer: &'static str,
    audience: &'static str,
    required: &'static [&'static str],
    groups: Option<&'static str>,
    /// Some providers write no `typ`.
    header: &'static str,
    /// All claims but `iat` and `exp`.
    claims: Value,
    /// The member of a workspace that stands for the user.
    member: &'static str,
    role: &'static str,
    /// The claim without which no user is admitted, and a value that admits none.
    decides: &'static str,
    other: Value,
}

const TYPED: &str = r#"{"alg":"RS256","kid":"a-RS256","typ":"JWT"}"#;
const UNTYPED: &str = r#"{"alg":"RS256","kid":"a-RS256"}"#;
const TENANT: &str = "https://login.microsoftonline.com/833ced3d-cb2e-41de-92f1-29e2af035ddc/v2.0";
const REGISTRATION: &str = "e18c04b1-4868-4b93-93d1-8d71f17ab99b";

fn recipes() -> Vec<Recipe> {
    // A user of few groups, and one of more than fit into a token.
    let entra = |more: Value| {
        let mut claims = json!({
            "aud": REGISTRATION,
            "iss": TENANT,
            "aio": "AXQAi/8TAAAA",
            "azp": "6731de76-14a6-49ae-97bc-6eba6914391e",
            "azpacr": "1",
            "name": "Ada Lovelace",
            "oid": "cb7eda1b-d09a-40ae-b8bb-37836ebc6abd",
            "preferred_username": "ada@example.com",
            "rh": "0.AAAA",
            "roles": ["agents.editor"],
            "scp": "access_as_user",
            "sub": "3OBtLXUC2ZrN_ADLNjW9X4o0lcd61py7lgHw3Skh77s",
            "tid": "833ced3d-cb2e-41de-92f1-29e2af035ddc",
            "uti": "nH8j4Hk5yUyo2ABcdEFGAA",
            "ver": "2.0",
        });
        claims
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        claims
    };
    vec![
        Recipe {
            provider: "Keycloak",
            issuer: "https://id.example.com/realms/acme",
            audience: "agentcfg",
            required: &["groups=/platform"],
            groups: Some("groups"),
            header: TYPED,
            claims: json!({
                "jti": "onrtac:9a4e6b0e-0ef1-4b0f-8a0f-3a1d4f1f0c11",
                "iss": "https://id.example.com/realms/acme",
                "aud": ["agentcfg", "account"],
                "sub": "f7a2c1de-4d3c-4b52-9c0e-6d0a5d1b2e3f",
                "typ": "Bearer",
                "azp": "agentcfg-dashboard",
                "sid": "0a1b2c3d-1111-4222-8333-444455556666",
                "acr": "1",
                "allowed-origins": ["https://agents.example.com"],
                "realm_access": {"roles": ["offline_access", "uma_authorization", "default-roles-acme"]},
                "resource_access": {"account": {"roles": ["manage-account", "view-profile"]}},
                "scope": "openid profile email",
                "email_verified": true,
                "name": "Ada Lovelace",
                "groups": ["/platform"],
                "preferred_username": "ada",
                "given_name": "Ada",
                "family_name": "Lovelace",
                "email": "ada@example.com",
            }),
            member: "group:/platform",
            role: "admin",
            decides: "groups",
            other: json!(["platform", "/platform/guests"]),
        },
        Recipe {
            provider: "Auth0",
            issuer: "https://acme.eu.auth0.com/",
            audience: "https://agents.example.com",
            required: &["permissions=use:agents"],
            groups: Some("https://example.com/groups"),
            header: TYPED,
            claims: json!({
                "https://example.com/groups": ["platform"],
                "iss": "https://acme.eu.auth0.com/",
                "sub": "auth0|6553da60a54af58e29493993",
                "aud": ["https://agents.example.com", "https://acme.eu.auth0.com/userinfo"],
                "azp": "K1AUPhZq8mRi0Q0pjhkfu1D7y6KjDQja",
                "scope": "openid profile email",
                "permissions": ["read:agents", "use:agents"],
            }),
            member: "group:platform",
            role: "member",
            decides: "permissions",
            other: json!(["read:agents"]),
        },
        Recipe {
            provider: "Microsoft Entra ID",
            issuer: TENANT,
            audience: REGISTRATION,
            required: &["roles=agents.editor"],
            groups: Some("groups"),
            header: TYPED,
            claims: entra(json!({
                "groups": ["3b2b0c93-acd8-4208-8eba-7a48db1cd4c0", "0760b6cf-170e-4a14-91b3-4b78e0739963"],
            })),
            member: "group:0760b6cf-170e-4a14-91b3-4b78e0739963",
            role: "member",
            decides: "roles",
            other: json!(["agents.reader"]),
        },
        Recipe {
            provider: "Microsoft Entra ID, too many groups",
            issuer: TENANT,
            audience: REGISTRATION,
            required: &["roles=agents.editor"],
            groups: Some("roles"),
            header: TYPED,
            claims: entra(json!({
                "_claim_names": {"groups": "src1"},
                "_claim_sources": {
                    "src1": {"endpoint": "https://graph.microsoft.com/v1.0/users/cb7eda1b/getMemberObjects"},
                },
            })),
            member: "group:agents.editor",
            role: "admin",
            decides: "roles",
            other: json!("agents.reader"),
        },
        Recipe {
            provider: "Google",
            issuer: "https://accounts.google.com",
            audience: "1234567890-abc.apps.googleusercontent.com",
            required: &["hd=example.com", "email_verified=true"],
            groups: None,
            header: TYPED,
            claims: json!({
                "iss": "https://accounts.google.com",
                "azp": "1234567890-abc.apps.googleusercontent.com",
                "aud": "1234567890-abc.apps.googleusercontent.com",
                "sub": "10769150350006150715113082367",
                "at_hash": "HK6E_P6Dh8Y93mRNtsDB1Q",
                "hd": "example.com",
                "email": "ada@example.com",
                "email_verified": true,
                "nonce": "0394852-3190485-2490358",
            }),
            member: "10769150350006150715113082367",
            role: "viewer",
            decides: "hd",
            other: json!("example.org"),
        },
        Recipe {
            provider: "Okta",
            issuer: "https://acme.okta.com/oauth2/default",
            audience: "api://default",
            required: &["groups=agentcfg"],
            groups: Some("groups"),
            header: UNTYPED,
            claims: json!({
                "ver": 1,
                "jti": "AT.BYBJNkCefidrwo0VtGLHIZCYfSAeOyB0tVPTB6eqFss",
                "iss": "https://acme.okta.com/oauth2/default",
                "aud": "api://default",
                "cid": "0oaipnnzumvqt5tiu1d6",
                "uid": "00uzrjisTQK1SlAMB1d5",
                "scp": ["openid", "profile"],
                "auth_time": 1_617_301_700,
                "sub": "ada@example.com",
                "groups": ["agentcfg", "agentcfg-admins"],
            }),
            member: "group:agentcfg-admins",
            role: "owner",
            decides: "groups",
            other: json!(["Everyone"]),
        },
        Recipe {
            provider: "GitHub through Dex",
            issuer: "https://dex.example.com",
            audience: "agentcfg",
            required: &["groups=acme:platform"],
            groups: Some("groups"),
            header: UNTYPED,
            claims: json!({
                "iss": "https://dex.example.com",
                "sub": "CgcyMzQyNzQ5EgZnaXRodWI",
                "aud": "agentcfg",
                "at_hash": "lSYJWJBoN0m8yLZLyBVTBQ",
                "email": "ada@example.com",
                "email_verified": true,
                "groups": ["acme:platform"],
                "name": "Ada Lovelace",
                "preferred_username": "ada",
                "federated_claims": {"connector_id": "github", "user_id": "2342749"},
            }),
            member: "group:acme:platform",
            role: "member",
            decides: "groups",
            other: json!(["acme:guests", "other:platform"]),
        },
    ]
}

#[tokio::test]
async fn tokens_in_the_shapes_of_known_providers_are_admitted_by_their_recipes() {
    let Some(provider) = Provider::start("a").await else {
        return;
    };
    let token = provider.sign_in("ada", Some("urn:agentcfg:RS256")).await.access_token;
    let times: Value = serde_json::from_str(&claims_of(&token)).unwrap();
    for recipe in recipes() {
        let name = recipe.provider;
        // The issuer is another one than the provider, so the keys have a configured URL.
        let mut config = jwks(recipe.issuer);
        config.oidc_jwks_url = Some(provider.url("/jwks").parse().unwrap());
        config.oidc_audience = Some(recipe.audience.to_owned());
        config.oidc_required_claims = recipe.required.iter().map(|claim| claim.parse().unwrap()).collect();
        config.oidc_groups_claim = recipe.groups.map(str::to_owned);
        let service = Service::start(config).await;
        let sign = async |claims: &Value| provider.sign("RS256", recipe.header, &claims.to_string()).await;
        let mut claims = recipe.claims.clone();
        claims["iat"] = times["iat"].clone();
        claims["exp"] = times["exp"].clone();
        let token = sign(&claims).await;
        assert_eq!(service.status(&token).await, 200, "{name}");

        // A user of the same claims makes the workspace.
        let mut owner = claims.clone();
        owner["sub"] = json!("owner");
        let owner = sign(&owner).await;
        let studio = service.workspace(&owner).await;
        let member = http::escape(recipe.member);
        let path = format!("/api/workspaces/members?workspace_id={studio}&user_id={member}");
        let set = service.call("PUT", &path, &owner, json!({"role": recipe.role})).await;
        assert_eq!(set.status(), 200, "{name}: {set:?}");
        let whoami = service.json("/api/whoami", &token).await;
        assert_eq!(whoami["workspaces"][0]["role"], recipe.role, "{name}: {whoami}");
        let agents = format!("/api/agents/configs?workspace_id={studio}");
        assert_eq!(
            service.call("GET", &agents, &token, Value::Null).await.status(),
            200,
            "{name}"
        );

        let mut without = claims.clone();
        without.as_object_mut().unwrap().remove(recipe.decides);
        let mut other = claims;
        other[recipe.decides] = recipe.other.clone();
        for refused in [without, other] {
            let token = sign(&refused).await;
            assert_unauthorized(&service.ask(&token).await, &format!("{name}: {refused}"));
            assert_eq!(service.sign_in(&token).await.status(), 401, "{name}: {refused}");
        }
        service.stop().await;
    }
}
