//! Authorisation: every route with every kind of credential in every kind of place.
//!
//! `expected.txt` has three lines for each route of the server's own table. A route without its lines
//! fails the test, and so does a line without a route.

mod credentials;
mod requests;
mod table;

use agentcfg_server::routes;
use agentcfg_tests::harness::{Response, Server, Studio};

use self::credentials::{Credential, credentials};
use self::requests::{Place, Recipe, recipe};
use self::table::{Table, expected};

/// The kinds of place, relative to the tested credentials: their own workspace, a foreign one, and
/// one that does not exist.
const PLACES: [&str; 3] = ["own", "foreign", "absent"];

#[test]
fn the_table_covers_every_route_and_no_other() {
    let table = expected();
    let mut missing = Vec::new();
    for route in routes() {
        let name = format!("{} {}", route.method, route.path);
        for place in PLACES {
            if !table.has(&name, place) {
                missing.push(format!("expected.txt lacks the line `{name} {place}`"));
            }
        }
        if recipe(route.method, route.path).is_none() {
            missing.push(format!("requests.rs says nothing of {name}"));
        }
    }
    let known: Vec<_> = routes()
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    missing.extend(
        table
            .routes()
            .filter(|name| !known.contains(name))
            .map(|name| format!("expected.txt has {name}, which is no route")),
    );
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_credential_gets_the_status_of_the_table_on_every_route() {
    let server = Server::builder()
        .set("session_rate_limit", "1000000")
        .set("default_plan", "enterprise")
        // Nothing listens on this port: a permitted model call ends in 502, and nothing leaves the machine.
        .set("openai_base_url", "http://127.0.0.1:1")
        .set("openai_api_key", "managed")
        .start();
    let own = Studio::on(&server);
    let foreign = Studio::on(&server);
    let credentials = credentials(&own, &foreign);
    let table = expected();
    assert_eq!(
        table.credentials,
        credentials.iter().map(|credential| credential.name).collect::<Vec<_>>()
    );
    let mut wrong = Vec::new();
    for route in routes() {
        let recipe = recipe(route.method, route.path).expect("every route has a recipe");
        for place in PLACES {
            let place = Place::new(place, &own, &foreign);
            wrong.extend(try_all(&recipe, &place, &credentials, &table));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of the table is wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Tries one route in one place with every credential. Refused requests must not change the audit log.
fn try_all(recipe: &Recipe, place: &Place<'_>, credentials: &[Credential], table: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = |credential: &Credential| table.get(&recipe.name(), place.name, credential.name);
    let (allowed, refused): (Vec<_>, Vec<_>) = credentials.iter().partition(|credential| expected(credential) < 300);
    recipe.prepare(place);
    let before = place.audit_log();
    for credential in refused {
        wrong.extend(compare(
            &recipe.send(place, credential),
            expected(credential),
            place,
            credential,
        ));
    }
    if place.audit_log() != before {
        wrong.push(format!(
            "{} {}: a refused request changed the audit log",
            recipe.name(),
            place.name
        ));
    }
    for credential in allowed {
        recipe.prepare(place);
        wrong.extend(compare(
            &recipe.send(place, credential),
            expected(credential),
            place,
            credential,
        ));
        if recipe.method == "GET" {
            let head = recipe.send_as("HEAD", place, credential);
            wrong.extend(compare(&head, expected(credential), place, credential));
        }
    }
    wrong
}

fn compare(response: &Response, expected: u16, place: &Place<'_>, credential: &Credential) -> Option<String> {
    (response.status != expected).then(|| {
        let body = String::from_utf8_lossy(&response.body);
        let (request, status) = (&response.request, response.status);
        format!(
            "{} in {}: expected {expected}, got {status} {body} ({request})",
            credential.name, place.name
        )
    })
}
