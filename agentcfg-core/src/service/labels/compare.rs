//! The comparison of two labels: what moving one to where the other points would change, for each agent.

use similar::ChangeTag;

use super::super::blocking::blocking;
use super::super::chunked_reads::RECORDS;
use super::super::lists::Pair;
use super::super::records::{self, StoredVersion};
use super::super::serialized_record::SerializedRecord;
use super::super::{AgentCfg, Caller, diff, text_lines};
use crate::error::Error;
use crate::model::{Changes, Label, LabelDiff, Permission, WorkspaceId};
use crate::validate::Invalid;

impl AgentCfg {
    /// Compares what two labels point at, for each active agent that has both, in the order of the list of agents.
    /// `latest` is the current version.
    ///
    /// Which versions are compared is read in one snapshot.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forbidden`](crate::ErrorKind::Forbidden) without `agents:read` in the workspace,
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a text that no label can have.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// for agent in service.compare_labels(&ada, studio, "production", "latest").await? {
    ///     println!("{} is {} versions behind", agent.agent_id, agent.versions);
    /// }
    /// # Ok(()) }) }
    /// ```
    pub async fn compare_labels(
        &self,
        caller: &Caller,
        workspace: WorkspaceId,
        from: impl TryInto<Label, Error = Invalid>,
        to: impl TryInto<Label, Error = Invalid>,
    ) -> Result<Vec<LabelDiff>, Error> {
        let (from, to) = (from.try_into()?, to.try_into()?);
        let access = self.access(caller, workspace, Permission::AgentsRead).await?;
        let workspace = access.workspace();
        let _begun = self.begin_answer(caller).await?;
        let mut pairs = self.pairs(workspace, &from, &to, access.limits()).await?.into_iter();
        let mut compared = Vec::with_capacity(pairs.len());
        loop {
            let piece: Vec<Pair> = pairs.by_ref().take(RECORDS).collect();
            if piece.is_empty() {
                return Ok(compared);
            }
            compared.extend(self.compare_piece(workspace, piece).await?);
        }
    }

    async fn compare_piece(&self, workspace: WorkspaceId, pairs: Vec<Pair>) -> Result<Vec<LabelDiff>, Error> {
        let different = pairs.iter().filter(|pair| pair.from != pair.to);
        let keys = different.map(|pair| {
            let key = |number| records::version(workspace, &pair.agent_id, number).encoded();
            (key(pair.from), key(pair.to))
        });
        let found = self.read(keys.collect::<Vec<_>>()).await?;
        let missing = self.missing_version();
        let compare = move || {
            let mut found = found.into_iter();
            let compared = pairs.into_iter().map(|pair| {
                if pair.from == pair.to {
                    return pair.compared(None);
                }
                let (before, after) = found.next().ok_or_else(records::missing)?;
                let (before, after) = (
                    before.ok_or_else(missing)?.value()?,
                    after.ok_or_else(missing)?.value()?,
                );
                pair.compared(Some((before, after)))
            });
            compared.collect::<Result<Vec<_>, Error>>()
        };
        // Long personas of many agents take milliseconds.
        blocking(compare).await?
    }
}

impl Pair {
    /// The difference of the two versions; `None` where they are one.
    fn compared(self, versions: Option<(StoredVersion, StoredVersion)>) -> Result<LabelDiff, Error> {
        let (mut fields, mut lines) = (Vec::new(), Lines::default());
        if let Some((before, after)) = versions {
            let record = |version: &StoredVersion| SerializedRecord::of(&version.config);
            let changes = diff::changes(Some(&record(&before)?), Some(&record(&after)?))?;
            let changes: Changes = serde_json::from_slice(&changes).map_err(records::not_read)?;
            fields.extend(changes.into_keys());
            let text = |version: StoredVersion| version.config.persona_prompt.unwrap_or_default();
            lines = Lines::between(&text(before), &text(after));
        }
        Ok(LabelDiff {
            agent_id: self.agent_id,
            from: self.from,
            to: self.to,
            versions: self.from.abs_diff(self.to),
            fields,
            lines_added: lines.added,
            lines_removed: lines.removed,
        })
    }
}

/// How many lines were added and removed.
#[derive(Default)]
struct Lines {
    added: u64,
    removed: u64,
}

impl Lines {
    fn between(before: &str, after: &str) -> Self {
        let mut lines = Self::default();
        if before != after {
            text_lines::compare(before, after, |diff| {
                for change in diff.iter_all_changes() {
                    match change.tag() {
                        ChangeTag::Insert => lines.added += 1,
                        ChangeTag::Delete => lines.removed += 1,
                        ChangeTag::Equal => {}
                    }
                }
            });
        }
        lines
    }
}
