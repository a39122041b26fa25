//! Agent configurations.

use agentcfg_core::model::{Agent, AgentPatch, NewAgent, Tagged};
use agentcfg_core::service::AgentFilter;
use agentcfg_core::validate::Faults;

use super::{Answer, Call};
use crate::http::request::{if_match, if_none_match, unmet};
use crate::http::response::Reply;

pub(super) async fn list(call: &Call<'_>) -> Answer {
    let workspace = call.query.required_workspace_id()?;
    let mut faults = Faults::default();
    let filter = AgentFilter {
        agent_id: call.query.get("agent_id").map(str::to_owned),
        limit: call.query.limit(&mut faults),
        offset: usize::try_from(call.query.offset(&mut faults)).unwrap_or(usize::MAX),
    };
    faults.into_result()?;
    let list = call.service.list_agents(call.caller, workspace, &filter).await?;
    let reply = Reply::list(list.value).tagged(list.tag);
    let reply = match filter.agent_id {
        // The tag is to be the record's own, whichever way a client comes by it.
        Some(_) => reply.plain(),
        None => reply,
    };
    Ok(match if_none_match(call.headers, list.tag) {
        true => reply.not_modified(),
        false => reply,
    })
}

pub(super) async fn create(call: &Call<'_>) -> Answer {
    let new = NewAgent::from_json(&call.body)?;
    Ok(tagged(&call.service.create_agent(call.caller, new).await?)?.created())
}

pub(super) async fn update(call: &Call<'_>) -> Answer {
    let agent_id = call.query.required("agent_id")?;
    let workspace = call.query.workspace_id()?;
    let patch = AgentPatch::from_json(&call.body)?;
    let condition = if_match(call.headers);
    tagged(
        &call
            .service
            .update_agent(call.caller, workspace, agent_id, patch, &condition)
            .await
            .map_err(|error| unmet(call.headers, error))?,
    )
}

pub(super) async fn delete(call: &Call<'_>) -> Answer {
    let agent_id = call.query.required("agent_id")?;
    let workspace = call.query.workspace_id()?;
    let condition = if_match(call.headers);
    Reply::json(
        &call
            .service
            .delete_agent(call.caller, workspace, agent_id, &condition)
            .await
            .map_err(|error| unmet(call.headers, error))?,
    )
}

pub(super) async fn restore(call: &Call<'_>) -> Answer {
    let agent_id = call.query.required("agent_id")?;
    let workspace = call.query.workspace_id()?;
    let condition = if_match(call.headers);
    tagged(
        &call
            .service
            .restore_agent(call.caller, workspace, agent_id, &condition)
            .await
            .map_err(|error| unmet(call.headers, error))?,
    )
}

fn tagged(agent: &Tagged<Agent>) -> Answer {
    Ok(Reply::json(&agent.value)?.tagged(agent.tag))
}
