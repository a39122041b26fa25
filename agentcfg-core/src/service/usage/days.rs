//! The sums of a workspace by day, agent and model, for an export.

use std::collections::BTreeMap;

use super::query::day_text;
use crate::error::Error;
use crate::model::{Patch, UsageRow, WorkspaceId};
use crate::service::AgentCfg;
use crate::service::chunked_reads::{self, Chunks};
use crate::service::records::{self, SumTime, Sums};

/// The most days that are added up at a time.
const DAYS: usize = 31;

impl AgentCfg {
    /// The sums of the next days with calls after one, by day, agent and model, and the last of these days; `None`
    /// where there are no more.
    pub(in crate::service) async fn usage_days_after(
        &self,
        workspace: WorkspaceId,
        after: Option<i64>,
    ) -> Result<Option<(i64, Vec<UsageRow>)>, Error> {
        let first = SumTime::Day(after.map_or(0, |day| day + 1));
        let mut groups: BTreeMap<(i64, String, Option<String>), Sums> = BTreeMap::new();
        let mut days = 0;
        let mut last = None;
        let mut pieces = Chunks::of(records::usage_sums_from(workspace, first));
        'pieces: while let Some(piece) = pieces.next(self).await? {
            for (time, sum) in
                chunked_reads::decoded(piece, |record| Ok((record.key().time()?, record.value()?))).await?
            {
                let SumTime::Day(day) = time else { break 'pieces };
                if last != Some(day) {
                    if days == DAYS {
                        break 'pieces;
                    }
                    days += 1;
                    last = Some(day);
                }
                let group = (day, sum.group.agent_id, sum.group.model);
                groups.entry(group).or_default().add(&sum.sums);
            }
        }
        let row = |((day, agent, model), sums): ((i64, String, Option<String>), Sums)| UsageRow {
            day: Patch::Set(day_text(day)),
            agent: Patch::Set(agent),
            model: model.into(),
            ..sums.row()
        };
        Ok(last.map(|last| (last, groups.into_iter().map(row).collect())))
    }
}
