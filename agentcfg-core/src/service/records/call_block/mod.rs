//! Blocks of model calls: a record for each call would take four times the room.

mod rows;

use serde::Deserialize;
use uuid::Uuid;

use self::rows::{Rows, RowsWriter};
use super::entity::{Entity, EntityKey};
use super::read::Entries;
use super::usage::StoredCall;
use crate::error::Error;
use crate::model::{CallId, WorkspaceId};
use crate::store::Kind;

/// Calls of one process that ended within a second, in the order of their identifiers. The key is the last of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Rows")]
pub(in crate::service) struct CallBlock(Vec<(CallId, StoredCall)>);

impl Entity for CallBlock {
    const KIND: Kind = Kind::UsageCall;
}

/// A block that is to be written.
#[derive(Debug)]
pub(in crate::service) struct NewCallBlock {
    last: CallId,
    rows: Rows,
}

impl Entity for Rows {
    const KIND: Kind = CallBlock::KIND;
}

impl CallBlock {
    /// The most milliseconds between the first and the last identifier of a block.
    pub(in crate::service) const SPAN: i64 = 1000;
    /// The most bytes of a block, so that the embedded store keeps it in one page.
    const BYTES: usize = 3950;
    /// From this many calls in a second on, those that share texts come together. Of fewer, the last block would be a
    /// great part that fills no page.
    const MANY: usize = 200;

    /// The blocks of these calls. The same calls make the same blocks.
    pub(in crate::service) fn of(mut calls: Vec<(CallId, &StoredCall)>) -> Vec<NewCallBlock> {
        calls.sort_by_key(|(id, _)| *id);
        let mut blocks = Vec::new();
        let mut rest = &mut calls[..];
        while let Some((first, _)) = rest.first() {
            let end = first.millis() + Self::SPAN;
            let within = rest.partition_point(|(id, _)| id.millis() <= end);
            let second = &mut rest[..within];
            let is_many = within >= Self::MANY;
            if is_many {
                second.sort_by(|(_, one), (_, other)| one.shared().cmp(&other.shared()));
            }
            let mut taken = 0;
            while taken < within && (is_many || taken == 0) {
                let (block, count) = NewCallBlock::first_of(&second[taken..]);
                taken += count;
                blocks.push(block);
            }
            rest = &mut rest[taken..];
        }
        blocks
    }

    /// The calls in the order of their identifiers.
    pub(in crate::service) fn into_calls(self) -> Vec<(CallId, StoredCall)> {
        self.0
    }
}

impl TryFrom<Rows> for CallBlock {
    type Error = &'static str;

    fn try_from(rows: Rows) -> Result<Self, Self::Error> {
        let mut calls = rows.calls()?;
        calls.sort_by_key(|(id, _)| *id);
        Ok(Self(calls))
    }
}

impl NewCallBlock {
    /// The block of as many of these calls as it can have, from the first on, and their number.
    fn first_of(calls: &[(CallId, &StoredCall)]) -> (Self, usize) {
        let process = calls.first().map_or(0, |(_, call)| call.process);
        let mut rows = RowsWriter::new(process);
        let belongs =
            |(id, call): &&(CallId, &StoredCall)| call.process == process && rows.add(*id, call, CallBlock::BYTES);
        let count = calls.iter().take_while(belongs).count();
        let last = calls[..count].iter().map(|(id, _)| *id).max();
        let block = Self {
            last: last.unwrap_or_else(|| CallId::new(Uuid::nil())),
            rows: rows.finish(),
        };
        (block, count)
    }

    /// The key of the block.
    pub(in crate::service) fn key(&self, workspace: WorkspaceId) -> EntityKey<Rows> {
        EntityKey::in_workspace(workspace, self.last.to_string())
    }

    /// The block as it is written.
    pub(in crate::service) fn rows(&self) -> &Rows {
        &self.rows
    }
}

impl EntityKey<CallBlock> {
    /// The last call of the block, from the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when it names none.
    pub(in crate::service) fn last_call(&self) -> Result<CallId, Error> {
        self.item().parse().map_err(|error| self.unreadable(error))
    }
}

/// The blocks that have all calls from this moment on, in milliseconds. Their first calls can be earlier. Between two
/// blocks the calls are not in order: those of a block can be [`CallBlock::SPAN`] earlier than one of the block before.
pub(in crate::service) fn calls_from(workspace: WorkspaceId, millis: i64) -> Entries<CallBlock> {
    Entries::in_workspace(workspace).after_item(Some(first_item(millis)))
}

/// The blocks that have all calls before this one, from the last to the first. They have others too.
pub(in crate::service) fn calls_before(workspace: WorkspaceId, call: CallId) -> Entries<CallBlock> {
    let end = call.millis() + CallBlock::SPAN + 1;
    Entries::in_workspace(workspace)
        .descending()
        .after_item(Some(first_item(end)))
}

/// A text before the identifiers of this moment and after all earlier ones: their first 48 bits are the time.
fn first_item(millis: i64) -> Box<str> {
    let time = format!("{:012x}", millis.max(0));
    format!("{}-{}", &time[..8], &time[8..]).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use base64ct::{Base64Unpadded, Encoding};
    use proptest::prelude::*;

    use super::*;
    use crate::model::{CredentialSource, Provider, Usd};
    use crate::service::records::budgets::ProcessTag;
    use crate::service::records::usage::{CallGroup, StoredTokens};

    fn id(millis: i64, random: u64) -> CallId {
        let high = u128::try_from(millis).unwrap() << 80;
        CallId::new(Uuid::from_u128(high | 0x7000_8000_0000_0000_0000 | u128::from(random)))
    }

    fn call(
        id: CallId,
        earlier: i64,
        texts: u8,
        request_id: String,
        numbers: [u64; 5],
        process: ProcessTag,
    ) -> StoredCall {
        StoredCall {
            ended_at: id.millis() - earlier,
            group: Arc::new(CallGroup {
                agent_id: format!("agent-{}", texts % 4),
                version: u64::from(texts % 3),
                label: texts.is_multiple_of(2).then(|| "production".to_owned()),
                key: None,
                user: Some("ada".to_owned()),
                provider: Provider::OPENAI,
                model: Some("gpt-5.5".to_owned()),
                credential: CredentialSource::Workspace,
                status: 200,
            }),
            path: format!("v1/{}", "x".repeat(usize::from(texts) * 40)),
            stream: texts.is_multiple_of(5),
            attempts: u32::from(texts),
            estimated: texts.is_multiple_of(7),
            tokens: StoredTokens {
                input: numbers[0],
                cached_input: numbers[1],
                cache_write: numbers[2],
                output: numbers[3],
                reasoning: numbers[4],
            },
            cost: texts.is_multiple_of(3).then(|| Usd::from_nanos(numbers[0].into())),
            first_byte_ms: (texts % 2 == 1).then_some(numbers[1]),
            duration_ms: numbers[2],
            request_id,
            process,
        }
    }

    fn request() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u128>().prop_map(|bits| Uuid::from_u128(bits).to_string()),
            any::<u128>().prop_map(|bits| Uuid::from_u128(bits).simple().to_string()),
            any::<u128>().prop_map(|bits| Uuid::from_u128(bits).to_string().to_uppercase()),
            "[~a-z0-9\"\\\\é]{0,12}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Blocks have all calls, each within its bounds, and are read as they were written.
        #[test]
        fn blocks_have_the_calls_that_they_were_made_of(
            calls in prop::collection::vec(
                (0_i64..3_000, any::<u64>(), -9_i64..50, any::<u8>(), request(), any::<[u64; 5]>(), 0_u32..2),
                0..400,
            )
        ) {
            let mut calls: Vec<(CallId, StoredCall)> = calls
                .into_iter()
                .map(|(millis, random, earlier, texts, request, numbers, process)| {
                    let id = id(1_800_000_000_000 + millis, random);
                    (id, call(id, earlier, texts, request, numbers, process))
                })
                .collect();
            let blocks = CallBlock::of(calls.iter().map(|(id, call)| (*id, call)).collect());
            let mut read = Vec::new();
            for block in &blocks {
                let text = serde_json::to_string(block.rows()).unwrap();
                let found = serde_json::from_str::<CallBlock>(&text).unwrap().into_calls();
                prop_assert!(text.len() <= CallBlock::BYTES || found.len() == 1, "{} bytes", text.len());
                let (first, last) = (found.first().unwrap().0, found.last().unwrap().0);
                prop_assert!(last.millis() - first.millis() <= CallBlock::SPAN);
                let key = EntityKey::<CallBlock>::of(block.key(WorkspaceId::new(Uuid::nil())).into());
                prop_assert_eq!(key.last_call().unwrap(), last);
                prop_assert!(found.is_sorted_by_key(|(id, _)| *id));
                prop_assert!(found.iter().all(|(_, call)| call.process == found[0].1.process));
                read.extend(found);
            }
            read.sort_by_key(|(id, _)| *id);
            calls.sort_by_key(|(id, _)| *id);
            prop_assert_eq!(format!("{read:?}"), format!("{calls:?}"));
        }
    }

    /// The lengths of the blocks of calls, 4 a millisecond.
    fn lengths(call: impl Fn(u64, CallId, String) -> StoredCall) -> Vec<usize> {
        let calls = (0..2_000_u64).map(|i| {
            let id = id(
                1_800_000_000_000 + i64::try_from(i / 4).unwrap(),
                i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            );
            let request = u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834);
            (id, call(i, id, Uuid::from_u128(request).to_string()))
        });
        let calls: Vec<_> = calls.collect();
        let blocks = CallBlock::of(calls.iter().map(|(id, call)| (*id, call)).collect());
        let length = |block: &NewCallBlock| serde_json::to_string(block.rows()).unwrap().len();
        blocks.iter().map(length).collect()
    }

    #[test]
    fn a_call_among_others_takes_75_bytes_of_the_file() {
        let lengths = lengths(|_, id, request| call(id, 0, 0, request, [1200, 0, 2500, 350, 0], 1_234_567_890));
        // With a page of 4096 bytes for each.
        assert!(lengths.len() * 4096 < 2_000 * 75, "{lengths:?}");
    }

    /// 250 kinds of calls: each with the key of its agent.
    #[test]
    fn a_call_among_others_of_many_agents_and_models_takes_100_bytes_of_the_file() {
        let lengths = lengths(|i, id, request| {
            let call = call(id, 0, 0, request, [1200, 0, 2500, 350, 0], 1_234_567_890);
            let (agent, model) = (i * 7 % 50, i % 5);
            let group = CallGroup {
                agent_id: format!("release-writer-{agent}"),
                key: Some(format!("4fQ8mZr2LkV7xN0bTy{agent:02}")),
                user: None,
                model: Some(format!("claude-sonnet-{model}")),
                ..(*call.group).clone()
            };
            StoredCall {
                group: Arc::new(group),
                ..call
            }
        });
        assert!(lengths.len() * 4096 < 2_000 * 100, "{lengths:?}");
    }

    proptest! {
        /// Bytes that are no rows are refused, and never a panic.
        #[test]
        fn other_bytes_are_no_panic(bytes in prop::collection::vec(0_u8..32, 0..200), texts in 0_usize..4) {
            let texts = vec!["openai"; texts];
            let text = serde_json::json!({ "w": 1, "t": texts, "c": Base64Unpadded::encode_string(&bytes) }).to_string();
            let _ = serde_json::from_str::<CallBlock>(&text);
        }
    }

    #[test]
    fn a_block_that_ends_within_a_call_is_refused() {
        let id = id(1_800_000_000_000, 7);
        let call = call(id, 0, 1, "r".into(), [1, 2, 3, 4, 5], 7);
        let [block] = &CallBlock::of(vec![(id, &call)])[..] else {
            panic!("one block")
        };
        let written = serde_json::to_value(block.rows()).unwrap();
        let bytes = Base64Unpadded::decode_vec(written["c"].as_str().unwrap()).unwrap();
        for end in 1..bytes.len() {
            let mut cut = written.clone();
            cut["c"] = Base64Unpadded::encode_string(&bytes[..end]).into();
            assert!(serde_json::from_value::<CallBlock>(cut).is_err(), "{end} bytes");
        }
    }
}
