//! Every route with every kind of credential in every kind of place: who may do what.
//!
//! What is expected stands in `expected.txt`, three lines for each route of the server's own table. A
//! route without its lines fails, and so do lines without a route.

mod credentials;
mod requests;
mod table;

use agentcfg_server::api::routes;
use agentcfg_tests::harness::{Response, Server, Studio};

use self::credentials::{Credential, credentials};
use self::requests::{Place, Recipe, recipe};
use self::table::{Table, expected};

/// The three kinds of place, from the view of those whose credentials are tried: their workspace,
/// one of somebody else, and one that is not there.
const PLACES: [&str; 3] = ["own", "foreign", "absent"];

#[test]
fn every_route_has_its_expectations_and_every_expectation_its_route() {
    let table = expected();
    let mut missing = Vec::new();
    for route in routes::all() {
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
    let known: Vec<_> = routes::all()
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
fn every_credential_may_do_in_every_workspace_what_the_table_says() {
    let server = Server::builder()
        .set("session_rate_limit", "1000000")
        .set("default_plan", "enterprise")
        // Nobody listens there: a model call that is granted ends in 502, and nothing leaves the machine.
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
    for route in routes::all() {
        let recipe = recipe(route.method, route.path).expect("another test sees to that");
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

/// Tries one route in one place with every credential. What is refused must leave no trace.
fn try_all(recipe: &Recipe, place: &Place<'_>, credentials: &[Credential], table: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = |credential: &Credential| table.get(&recipe.name(), place.name, credential.name);
    let (allowed, refused): (Vec<_>, Vec<_>) = credentials.iter().partition(|credential| expected(credential) < 300);
    recipe.prepare(place);
    let trail = place.trail();
    for credential in refused {
        wrong.extend(compare(
            &recipe.send(place, credential),
            expected(credential),
            place,
            credential,
        ));
    }
    if place.trail() != trail {
        wrong.push(format!(
            "{} {}: what was refused left a trace",
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
