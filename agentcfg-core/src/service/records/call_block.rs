//! Blocks of model calls: a record for each call would take four times the room.

use std::iter;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use super::budgets::ProcessTag;
use super::entity::{Entity, EntityKey};
use super::read::Entries;
use super::usage::{CallGroup, StoredCall, StoredTokens};
use crate::error::Error;
use crate::model::{CallId, Usd, WorkspaceId};
use crate::store::Kind;

/// Calls of one process that ended within a second, in the order of their identifiers. The key is the last of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub(in crate::service) struct CallBlock(Vec<(CallId, StoredCall)>);

impl Entity for CallBlock {
    const KIND: Kind = Kind::UsageCall;
}

impl CallBlock {
    /// The most milliseconds between the first and the last identifier of a block.
    pub(in crate::service) const SPAN: i64 = 1000;
    /// The most bytes of a block, so that the embedded store keeps it in one page.
    const BYTES: usize = 3950;
    /// How many calls before a call are searched for the same texts, to know how long it makes the block.
    const NEAR: usize = 16;

    /// The blocks of these calls. The same calls make the same blocks.
    pub(in crate::service) fn of(mut calls: Vec<(CallId, StoredCall)>) -> Vec<Self> {
        calls.sort_by_key(|(id, _)| *id);
        let mut blocks: Vec<Self> = Vec::new();
        let mut bytes = 0;
        for (id, call) in calls {
            let row = row_length(id, &call);
            let texts = call.texts();
            let block = blocks.last_mut().filter(|Self(block)| {
                let is_near = |(first, other): &(CallId, StoredCall)| {
                    id.millis() - first.millis() <= Self::SPAN && other.process == call.process
                };
                let repeats = |(_, other): &(CallId, StoredCall)| other.group == call.group && other.path == call.path;
                bytes += row;
                if !block.iter().rev().take(Self::NEAR).any(repeats) {
                    bytes += texts;
                }
                bytes <= Self::BYTES && block.first().is_some_and(is_near)
            });
            match block {
                Some(Self(block)) => block.push((id, call)),
                None => {
                    bytes = Written::EMPTY + row + texts;
                    blocks.push(Self(vec![(id, call)]));
                }
            }
        }
        blocks
    }

    /// The key of the block, which has a call at least.
    pub(in crate::service) fn key(&self, workspace: WorkspaceId) -> EntityKey<Self> {
        let last = self.0.last().map(|(id, _)| id.to_string());
        EntityKey::in_workspace(workspace, last.unwrap_or_default())
    }

    /// The calls in the order of their identifiers.
    pub(in crate::service) fn into_calls(self) -> Vec<(CallId, StoredCall)> {
        self.0
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

/// A block as it is written: texts that calls share are there once.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(rename = "w")]
    process: ProcessTag,
    #[serde(rename = "g")]
    groups: Vec<CallGroup>,
    #[serde(rename = "x")]
    paths: Vec<String>,
    #[serde(rename = "c")]
    rows: Vec<Row>,
}

/// A call: its identifier; how much earlier it ended than the identifier was made, in milliseconds; the places of its group
/// and of its path; 1 for a stream and 2 for an estimate; attempts; tokens up to the last number that is not 0; cost; time of
/// the first byte and duration in milliseconds; and the request.
#[derive(Serialize, Deserialize)]
struct Row(
    Short,
    i64,
    usize,
    usize,
    u8,
    u32,
    Vec<u64>,
    Option<Usd>,
    Option<u64>,
    u64,
    Request,
);

impl Written {
    /// The length of a block without calls.
    const EMPTY: usize = 50;
}

/// The length of the row of a call as it is written, or a few bytes more.
fn row_length(id: CallId, call: &StoredCall) -> usize {
    /// The length of a row without numbers and texts: brackets, commas and quotes, the identifier, and three places.
    const FIXED: usize = 46;
    let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let tokens = shortened(call.tokens);
    let request = match call.request_id.len() {
        // A UUID.
        36 => 25,
        // Quotes, backslashes and control characters are escaped.
        length => {
            length
                + call
                    .request_id
                    .bytes()
                    .filter(|byte| !byte.is_ascii_alphanumeric())
                    .count()
                + 3
        }
    };
    FIXED
        + digits((id.millis() - call.ended_at).unsigned_abs())
        + digits(call.attempts.into())
        + tokens.iter().map(|tokens| digits(*tokens) + 1).sum::<usize>()
        + call.cost.map_or(4, |cost| cost.to_string().len() + 2)
        + call.first_byte_ms.map_or(4, digits)
        + digits(call.duration_ms)
        + request
}

const IS_STREAM: u8 = 1;
const IS_ESTIMATED: u8 = 2;

impl Serialize for CallBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut groups, mut paths) = (Vec::new(), Vec::new());
        let rows = self.0.iter().map(|(id, call)| {
            let flag = |is_set, flag| if is_set { flag } else { 0 };
            Row(
                Short(*id.as_uuid()),
                id.millis() - call.ended_at,
                place(&mut groups, &call.group),
                place(&mut paths, &call.path),
                flag(call.stream, IS_STREAM) | flag(call.estimated, IS_ESTIMATED),
                call.attempts,
                shortened(call.tokens),
                call.cost,
                call.first_byte_ms,
                call.duration_ms,
                Request(call.request_id.clone()),
            )
        });
        let rows = rows.collect();
        let process = self.0.first().map_or(0, |(_, call)| call.process);
        Written {
            process,
            groups,
            paths,
            rows,
        }
        .serialize(serializer)
    }
}

/// The numbers up to the last one that is not 0.
fn shortened(tokens: StoredTokens) -> Vec<u64> {
    let StoredTokens {
        input,
        output,
        cached_input,
        cache_write,
        reasoning,
    } = tokens;
    let mut tokens = vec![input, output, cached_input, cache_write, reasoning];
    while tokens.last() == Some(&0) {
        tokens.pop();
    }
    tokens
}

/// The place of a value among those of a block. Most calls have that of the one before.
fn place<T: Clone + PartialEq>(values: &mut Vec<T>, value: &T) -> usize {
    match values.iter().rposition(|known| known == value) {
        Some(place) => place,
        None => {
            values.push(value.clone());
            values.len() - 1
        }
    }
}

impl TryFrom<Written> for CallBlock {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let calls = written.rows.into_iter().map(|row| {
            let Row(id, earlier, group, path, flags, attempts, tokens, cost, first_byte_ms, duration_ms, request) = row;
            let id = CallId::new(id.0);
            let mut tokens = tokens.into_iter().chain(iter::repeat(0));
            let mut next = || tokens.next().unwrap_or_default();
            let call = StoredCall {
                ended_at: id.millis() - earlier,
                group: written.groups.get(group).ok_or("a call has no group")?.clone(),
                path: written.paths.get(path).ok_or("a call has no path")?.clone(),
                stream: flags & IS_STREAM != 0,
                attempts,
                estimated: flags & IS_ESTIMATED != 0,
                tokens: StoredTokens {
                    input: next(),
                    output: next(),
                    cached_input: next(),
                    cache_write: next(),
                    reasoning: next(),
                },
                cost,
                first_byte_ms,
                duration_ms,
                request_id: request.0,
                process: written.process,
            };
            Ok((id, call))
        });
        calls.collect::<Result<_, _>>().map(Self)
    }
}

/// A UUID in 22 characters.
struct Short(Uuid);

impl Short {
    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        Uuid::from_slice(&bytes).ok().map(Self)
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.as_bytes())
    }
}

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("no identifier of a call"))
    }
}

/// The identifier of a request, a UUID mostly: then it is a [`Short`] after this sign, which also begins other texts that
/// begin with it.
struct Request(String);

const SHORT: char = '~';

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let uuid = Uuid::try_parse(&self.0).ok();
        let short = uuid
            .filter(|uuid| uuid.as_hyphenated().to_string() == self.0)
            .map(Short);
        match short {
            Some(short) => serializer.collect_str(&format_args!("{SHORT}{}", short.text())),
            None if self.0.starts_with(SHORT) => serializer.collect_str(&format_args!("{SHORT}{SHORT}{}", self.0)),
            None => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some(rest) = text.strip_prefix(SHORT) else {
            return Ok(Self(text));
        };
        match rest.strip_prefix(SHORT) {
            Some(text) => Ok(Self(text.to_owned())),
            None => match Short::parse(rest) {
                Some(uuid) => Ok(Self(uuid.0.as_hyphenated().to_string())),
                None => Err(de::Error::custom("no identifier of a request")),
            },
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{CredentialSource, Provider};

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
            group: CallGroup {
                agent_id: format!("agent-{}", texts % 4),
                version: u64::from(texts % 3),
                label: texts.is_multiple_of(2).then(|| "production".to_owned()),
                key: None,
                user: Some("ada".to_owned()),
                provider: Provider::OPENAI,
                model: Some("gpt-5.5".to_owned()),
                credential: CredentialSource::Workspace,
                status: 200,
            },
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
        /// Blocks have all calls, each within its bounds, and are read as they were written.
        #[test]
        fn blocks_have_the_calls_that_they_were_made_of(
            calls in prop::collection::vec(
                (0_i64..5_000, any::<u64>(), 0_i64..50, any::<u8>(), request(), any::<[u64; 5]>(), 0_u32..2),
                0..200,
            )
        ) {
            let mut calls: Vec<(CallId, StoredCall)> = calls
                .into_iter()
                .map(|(millis, random, earlier, texts, request, numbers, process)| {
                    let id = id(1_800_000_000_000 + millis, random);
                    (id, call(id, earlier, texts, request, numbers, process))
                })
                .collect();
            let blocks = CallBlock::of(calls.clone());
            let mut read = Vec::new();
            for block in &blocks {
                let text = serde_json::to_string(block).unwrap();
                let CallBlock(found) = serde_json::from_str(&text).unwrap();
                let (first, last) = (found.first().unwrap().0, found.last().unwrap().0);
                prop_assert!(last.millis() - first.millis() <= CallBlock::SPAN);
                prop_assert_eq!(block.key(WorkspaceId::new(Uuid::nil())).last_call().unwrap(), last);
                prop_assert!(found.is_sorted_by_key(|(id, _)| *id));
                prop_assert!(found.iter().all(|(_, call)| call.process == found[0].1.process));
                read.extend(found);
            }
            calls.sort_by_key(|(id, _)| *id);
            prop_assert_eq!(format!("{read:?}"), format!("{calls:?}"));
        }
    }

    #[test]
    fn a_call_among_others_takes_120_bytes_of_the_file() {
        let calls = (0..2_000_u64).map(|i| {
            let id = id(
                1_800_000_000_000 + i64::try_from(i / 4).unwrap(),
                i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            );
            let request =
                Uuid::from_u128(u128::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834)).to_string();
            (id, call(id, 0, 0, request, [1200, 0, 2500, 350, 0], 1_234_567_890))
        });
        let blocks = CallBlock::of(calls.collect());
        let lengths: Vec<usize> = blocks
            .iter()
            .map(|block| serde_json::to_string(block).unwrap().len())
            .collect();
        assert!(lengths.iter().all(|length| *length <= CallBlock::BYTES), "{lengths:?}");
        assert!(lengths.iter().sum::<usize>() < 2_000 * 110, "{lengths:?}");
        // With a page of 4096 bytes for each.
        assert!(lengths.len() * 4096 < 2_000 * 125, "{} blocks", lengths.len());
    }
}
