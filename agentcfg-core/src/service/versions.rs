//! Versions of agents: reading and comparing them.

use super::access::Access;
use super::agents::agent_key;
use super::blocking::blocking;
use super::chunked_reads;
use super::past::is_there;
use super::records::{self, Content, Encoded, Entries, Stored, StoredLabels, StoredVersion, VersionHead};
use super::serialized_record::SerializedRecord;
use super::{AgentCfg, Caller, diff, not_found, text_lines};
use crate::error::{Error, ErrorKind};
use crate::model::{
    AgentConfig, AgentDiff, AgentId, AgentVersion, AgentVersionDetail, AsOf, IdRef, Label, Permission, StoredAgent,
    VersionPage, VersionSelector, WorkspaceId,
};
use crate::store::Check;
use crate::validate::{DEFAULT_LIMIT, quoted};

/// How many versions are read at once. Their contents are dropped before the next ones are read.
const PAGE: usize = 64;

/// The lines around a change in a diff.
const CONTEXT: usize = 3;

/// An agent with its labels, read together.
pub(super) struct AgentWithLabels {
    pub(super) agent: StoredAgent,
    pub(super) labels: StoredLabels,
}

impl AgentCfg {
    /// Lists the versions of an agent, newest first, without their content. Deactivated agents have versions too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read`, [`ErrorKind::NotFound`] for an unknown agent.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let patch = AgentPatch::default().model("gpt-5.5");
    /// service.update_agent(&ada, Some(studio), "writer", patch, &Precondition::None).await?;
    /// let versions = service.list_versions(&ada, Some(studio), "writer", VersionPage::default()).await?;
    /// assert_eq!(versions.iter().map(|version| version.version).collect::<Vec<_>>(), [2, 1]);
    /// # Ok(()) }) }
    /// ```
    pub async fn list_versions(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        page: VersionPage,
    ) -> Result<Vec<AgentVersion>, Error> {
        let agent_id = agent_id.into();
        let access = self.access_default(caller, workspace, Permission::AgentsRead).await?;
        let found = self.agent_with_labels(&access, agent_id).await?;
        let current = found.agent.version();
        let mut last = page
            .before
            .map_or(current, |before| current.min(before.saturating_sub(1)));
        let limit = usize::try_from(page.limit.map_or(DEFAULT_LIMIT, u64::from)).unwrap_or(usize::MAX);
        let mut versions = Vec::new();
        while last > 0 && versions.len() < limit {
            let after = records::version(access.workspace(), agent_id.as_str(), last + 1);
            let entries = Entries::<VersionHead>::in_workspace(access.workspace()).after(&after);
            let count = (limit - versions.len()).min(PAGE);
            let page = entries.descending().bounded(count, chunked_reads::BYTES);
            let page = self.scan(page).await?;
            let of = agent_id.as_str().to_owned();
            // Where the first versions are removed, those of another agent follow.
            let decode = move |version: Encoded<VersionHead>| match version.key().number_of(&of) {
                Some(_) => version.value().map(Some),
                None => Ok(None),
            };
            last = 0;
            for version in chunked_reads::decoded(page, decode)
                .await?
                .into_iter()
                .map_while(|version| version)
            {
                versions.push(found.labelled(&version));
                last = version.version - 1;
            }
        }
        Ok(versions)
    }

    /// Reads one version of an agent with its content. Deactivated agents have versions too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`] without `agents:read`, [`ErrorKind::NotFound`] for an unknown agent and where the
    /// selector finds no version, [`ErrorKind::Invalid`] for a revision that is not there yet.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let first = service.get_version(&ada, Some(studio), "writer", 1).await?;
    /// assert_eq!(first.config.display_name, "Writer");
    /// assert!(service.get_version(&ada, Some(studio), "writer", "production").await.is_err(), "there is no such label");
    /// # Ok(()) }) }
    /// ```
    pub async fn get_version<'a>(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        selector: impl Into<VersionSelector<'a>>,
    ) -> Result<AgentVersionDetail, Error> {
        let (agent_id, selector) = (agent_id.into(), selector.into());
        let access = self.access_default(caller, workspace, Permission::AgentsRead).await?;
        if let VersionSelector::Revision(revision) = selector {
            is_there(revision, self.revision(&access).await?)?;
        }
        let found = self.agent_with_labels(&access, agent_id).await?;
        let number = match selector {
            VersionSelector::At(at) if AsOf::At(at).is_present(|| self.now()) => found.agent.version(),
            VersionSelector::At(at) => self.version_at(&found, AsOf::At(at)).await?,
            VersionSelector::Revision(revision) => self.version_at(&found, AsOf::Revision(revision)).await?,
            selector => found.number(selector)?,
        };
        let StoredVersion {
            version,
            created_at,
            actor,
            message,
            restored_from,
            config,
            revision: _,
        } = self.version(&found.agent, number).await?;
        Ok(AgentVersionDetail {
            labels: found.labels.of_version(version),
            agent_id: found.agent.agent.agent_id.clone(),
            version,
            created_at,
            actor: Some(actor),
            message,
            restored_from,
            is_active: found.agent.agent.is_active,
            config,
        })
    }

    /// The number of the version that was current at a moment in the past.
    async fn version_at(&self, found: &AgentWithLabels, as_of: AsOf) -> Result<u64, Error> {
        let agent = &found.agent.agent;
        let none = || {
            Error::new(
                ErrorKind::NotFound,
                format!("the agent {:?} had no version then", agent.agent_id),
            )
        };
        let past = self.past_of(agent.workspace_id, as_of, found.agent.clone()).await?;
        past.map(|(_, number)| number).ok_or_else(none)
    }

    /// Compares two versions of an agent.
    ///
    /// # Errors
    ///
    /// As [`Self::get_version`].
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let patch = AgentPatch::default().persona_prompt("Be brief.\n");
    /// service.update_agent(&ada, Some(studio), "writer", patch, &Precondition::None).await?;
    /// let diff = service.diff_versions(&ada, Some(studio), "writer", 1, VersionSelector::Current).await?;
    /// assert_eq!((diff.from, diff.to), (1, 2));
    /// assert!(diff.prompt_diff.unwrap().ends_with("+Be brief.\n"));
    /// # Ok(()) }) }
    /// ```
    pub async fn diff_versions<'a>(
        &self,
        caller: &Caller,
        workspace: Option<WorkspaceId>,
        agent_id: impl Into<IdRef<'_, AgentId>>,
        from: impl Into<VersionSelector<'a>>,
        to: impl Into<VersionSelector<'a>>,
    ) -> Result<AgentDiff, Error> {
        let (agent_id, from, to) = (agent_id.into(), from.into(), to.into());
        let access = self.access_default(caller, workspace, Permission::AgentsRead).await?;
        let found = self.agent_with_labels(&access, agent_id).await?;
        let (from, to) = (found.number(from)?, found.number(to)?);
        let before = self.version(&found.agent, from).await?.config;
        let after = self.version(&found.agent, to).await?.config;
        let changes = diff::changes(
            Some(&SerializedRecord::of(&before)?),
            Some(&SerializedRecord::of(&after)?),
        )?;
        let changes = serde_json::from_slice(&changes).map_err(records::not_read)?;
        let compare = move || prompt_diff((from, before.persona_prompt), (to, after.persona_prompt));
        // Two long prompts of short lines take milliseconds.
        let prompt_diff = blocking(compare).await?;
        Ok(AgentDiff {
            agent_id: found.agent.agent.agent_id,
            from,
            to,
            changes,
            prompt_diff,
        })
    }

    async fn agent_with_labels(&self, access: &Access, agent_id: IdRef<'_, AgentId>) -> Result<AgentWithLabels, Error> {
        let labels = records::labels(access.workspace(), agent_id.as_str());
        let (agent, labels) = self.read((agent_key(access, agent_id)?, labels)).await?;
        Ok(AgentWithLabels {
            agent: agent.ok_or_else(|| not_found("agent", agent_id.as_str()))?.value,
            labels: labels.map(|labels| labels.value).unwrap_or_default(),
        })
    }

    /// The number of the version that a number or a label names, and its content unless it is the current one.
    pub(super) async fn selected_content(
        &self,
        access: &Access,
        agent: &StoredAgent,
        selector: VersionSelector<'_>,
    ) -> Result<(u64, Option<AgentConfig>), Error> {
        let labels = match selector {
            VersionSelector::Label(_) => {
                self.read(records::labels(access.workspace(), &agent.agent.agent_id))
                    .await?
            }
            _ => None,
        };
        let found = AgentWithLabels {
            agent: agent.clone(),
            labels: labels.map(|labels| labels.value).unwrap_or_default(),
        };
        let number = found.number(selector)?;
        let config = match number == agent.version() {
            true => None,
            false => Some(self.version(agent, number).await?.config),
        };
        Ok((number, config))
    }

    /// Reads a version that was made.
    pub(super) async fn version(&self, agent: &StoredAgent, number: u64) -> Result<StoredVersion, Error> {
        Ok(self.made_version(agent, number).await?.value)
    }

    /// The check that a version that was made is still there. The current one is never removed.
    pub(super) async fn check_of_version(&self, agent: &StoredAgent, number: u64) -> Result<Option<Check>, Error> {
        match number == agent.version() {
            true => Ok(None),
            false => {
                let found: Stored<VersionHead> = self.made_version(agent, number).await?;
                Ok(Some(found.unchanged()))
            }
        }
    }

    async fn made_version<C: Content>(
        &self,
        agent: &StoredAgent,
        number: u64,
    ) -> Result<Stored<StoredVersion<C>>, Error> {
        let agent = &agent.agent;
        let found = self
            .read(records::version(agent.workspace_id, &agent.agent_id, number))
            .await?;
        found.ok_or_else(|| self.version_is_removed(format_args!("version {number} of the agent {:?}", agent.agent_id)))
    }
}

impl AgentWithLabels {
    /// The number of the version that a number or a label names.
    pub(super) fn number(&self, selector: VersionSelector<'_>) -> Result<u64, Error> {
        let current = self.agent.version();
        let agent_id = &self.agent.agent.agent_id;
        match selector {
            VersionSelector::Current | VersionSelector::Label(Label::LATEST) => Ok(current),
            VersionSelector::Version(number) => is_version(number, current, agent_id),
            VersionSelector::Label(name) => self.labels.labels.get(name).map(|label| label.version).ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("the agent {agent_id:?} has no label {}", quoted(name)),
                )
            }),
            VersionSelector::At(_) | VersionSelector::Revision(_) => Err(Error::new(
                ErrorKind::Invalid,
                "a version must be named by its number or by a label here",
            )),
        }
    }

    fn labelled(&self, version: &VersionHead) -> AgentVersion {
        let labels = self.labels.of_version(version.version);
        shown(self.agent.agent.agent_id.clone(), version, labels)
    }
}

pub(super) fn shown(agent_id: AgentId, version: &VersionHead, labels: Vec<Label>) -> AgentVersion {
    AgentVersion {
        agent_id,
        version: version.version,
        created_at: version.created_at,
        actor: Some(version.actor.clone()),
        message: version.message.clone(),
        restored_from: version.restored_from,
        labels,
    }
}

/// Returns the number if the agent has a version with it.
pub(super) fn is_version(number: u64, current: u64, agent_id: &AgentId) -> Result<u64, Error> {
    if (1..=current).contains(&number) {
        return Ok(number);
    }
    Err(Error::new(
        ErrorKind::NotFound,
        format!("the agent {agent_id:?} has no version {number}, its versions are 1 to {current}"),
    ))
}

/// The difference of two personas as a unified diff; None when they are the same. No persona is an empty one here.
fn prompt_diff((from, before): (u64, Option<String>), (to, after): (u64, Option<String>)) -> Option<String> {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before == after {
        return None;
    }
    let names = (format!("version {from}"), format!("version {to}"));
    Some(text_lines::compare(&before, &after, |diff| {
        let mut unified = diff.unified_diff();
        unified.context_radius(CONTEXT).header(&names.0, &names.1).to_string()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: Option<&str>, after: Option<&str>) -> Option<String> {
        prompt_diff((1, before.map(str::to_owned)), (2, after.map(str::to_owned)))
    }

    #[test]
    fn prompts_are_compared_line_by_line() {
        assert_eq!(diff(Some("a\n"), Some("a\n")), None);
        assert_eq!(diff(None, None), None);
        assert_eq!(diff(None, Some("")), None);
        let changed = "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
        assert_eq!(diff(Some("a\nb\n"), Some("a\nc\n")).as_deref(), Some(changed));
        let made = "--- version 1\n+++ version 2\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n";
        assert_eq!(diff(None, Some("a")).as_deref(), Some(made));
        let returned = "--- version 1\n+++ version 2\n@@ -1,2 +1,2 @@\n-a\rb\r\n-d\r\n\\ No newline at end of file\n+a\rc\r\n+d\r\n";
        assert_eq!(
            diff(Some("a\rb\r\nd\r"), Some("a\rc\r\nd\r\n")).as_deref(),
            Some(returned)
        );
    }

    #[test]
    fn the_longest_prompts_are_compared_in_bounded_time() {
        let lines = |offset: u32| -> String {
            let line = |number: u32| char::from_u32(0x4e00 + number + offset).map(|line| format!("{line}\n"));
            (0..2500).filter_map(line).collect()
        };
        let text = diff(Some(&lines(0)), Some(&lines(2500))).unwrap_or_default();
        assert_eq!(text.lines().count(), 2 + 1 + 5000);
    }
}
