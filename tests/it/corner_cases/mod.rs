//! The same API in its corner cases, subject by subject: forms of values, orders of checks, limits.

mod agents;
mod api_keys;
mod apply;
mod audit;
mod bodies;
mod check_order;
mod compression;
mod conditions;
mod cors;
mod framing;
mod header_limits;
mod malformed;
mod members;
mod operations;
mod operators;
mod paths;
mod queries;
mod rate_limit;
mod sessions;
mod status;
mod stored_values;
mod timeouts;
mod unread_answers;
mod workspace_choice;
mod workspace_deletion;
mod workspaces;

/// The target of a request for an endpoint, with those of the values that it has parameters for.
fn target_with(endpoint: &agentcfg_server::Definition, values: &[(&str, &str)]) -> String {
    let known = |(name, value): &(&str, &str)| {
        let is_known = endpoint.parameters.iter().any(|parameter| parameter.name == *name);
        is_known.then(|| format!("{name}={value}"))
    };
    let query: Vec<_> = values.iter().filter_map(known).collect();
    format!("{}?{}", endpoint.route.path, query.join("&"))
}
