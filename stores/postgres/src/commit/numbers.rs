//! The numbers of the writes of merged batches: which additions a counter takes together, and to which writes the
//! numbers in the answers of the statements belong.

use std::collections::HashMap;

use agentcfg_core::store::StoreError;
use tokio_postgres::Row as Answer;
use uuid::Uuid;

use super::super::pipeline::Param;
use super::super::read::column;
use super::super::sql::MAX;

/// The write with this index of the batch with this index.
pub(super) type Source = (usize, usize);

/// An addition of one batch to a counter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addend {
    pub(super) source: Source,
    pub(super) delta: i64,
    pub(super) max: Option<u64>,
}

/// The numbers to which all additions of a group can be made, one after another.
pub(super) struct Range {
    pub(super) sum: i128,
    pub(super) least: i128,
    pub(super) greatest: i128,
}

impl Range {
    pub(super) fn of(addends: &[Addend]) -> Self {
        let mut range = Self {
            sum: 0,
            least: 0,
            greatest: i128::from(MAX),
        };
        for addend in addends {
            range.sum += i128::from(addend.delta);
            let bound = addend.max.filter(|_| addend.delta > 0).unwrap_or(MAX);
            range.least = range.least.max(-range.sum);
            range.greatest = range.greatest.min(i128::from(bound) - range.sum);
        }
        range
    }
}

/// How the answer of a statement is read: which writes its numbers belong to.
pub(super) enum Decoder {
    Nothing,
    /// The numbers of the writes of these keys.
    Numbers(HashMap<(Param, String), Source>),
    /// The sums of these counters after these additions.
    Sums(HashMap<(Param, String), Vec<Addend>>),
    /// The numbers of the last of these entries.
    Heads(HashMap<Param, Vec<Source>>),
}

impl Decoder {
    /// The numbers in an answer.
    pub(super) fn decode(&self, row: &Answer) -> Result<Vec<(Source, u64)>, StoreError> {
        let parse = |text: &String| {
            text.parse::<u64>()
                .map_err(|_| StoreError::Corrupt(format!("a write returned {text:?} instead of a number")))
        };
        let names = || -> Result<Vec<(Param, String)>, StoreError> {
            let items: Vec<String> = column(row, 1)?;
            Ok(answered_scopes(row)?.into_iter().zip(items).collect())
        };
        let mut decoded = Vec::new();
        match self {
            Self::Nothing => {}
            Self::Numbers(sources) => {
                let numbers: Vec<String> = column(row, 2)?;
                for (name, number) in names()?.iter().zip(&numbers) {
                    if let Some(source) = sources.get(name) {
                        decoded.push((*source, parse(number)?));
                    }
                }
            }
            Self::Sums(addends) => {
                let numbers: Vec<String> = column(row, 2)?;
                for (name, number) in names()?.iter().zip(&numbers) {
                    // Backwards: each addition gave the number before the ones behind it.
                    let mut sum = i128::from(parse(number)?);
                    for addend in addends.get(name).into_iter().flatten().rev() {
                        decoded.push((addend.source, u64::try_from(sum).unwrap_or(u64::MAX)));
                        sum -= i128::from(addend.delta);
                    }
                }
            }
            Self::Heads(sources) => {
                let numbers: Vec<String> = column(row, 1)?;
                for (scope, number) in answered_scopes(row)?.iter().zip(&numbers) {
                    let last = parse(number)?;
                    let entries = sources.get(scope).into_iter().flatten().rev();
                    decoded.extend(entries.zip(0..).map(|(source, back)| (*source, last - back)));
                }
            }
        }
        Ok(decoded)
    }
}

fn answered_scopes(row: &Answer) -> Result<Vec<Param>, StoreError> {
    if let Ok(ids) = column::<Vec<Uuid>>(row, 0) {
        return Ok(ids.into_iter().map(Param::Uuid).collect());
    }
    Ok(column::<Vec<String>>(row, 0)?.into_iter().map(Param::Text).collect())
}
