//! The written form of a block of calls: rows in bytes, and a table of the texts that they share.

use std::sync::Arc;

use base64ct::{Base64Unpadded, Encoding};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::Uuid;

use crate::model::{CallId, Usd};
use crate::service::records::budgets::ProcessTag;
use crate::service::records::usage::{CallGroup, StoredCall, StoredTokens};

/// Calls as they are written.
///
/// A row has, one after the other: the milliseconds from the identifier before it to its own, the rest of the identifier, how
/// much earlier the call ended, the place of its group, that of its path, [flags](flag), attempts, the numbers that the
/// flags name, the duration and the request. A place that is one past the known groups is of a new one, which follows it.
/// Numbers are variable-length integers of 7 bits a byte (LEB128); a text is the number of its place in the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::service) struct Rows {
    #[serde(rename = "w")]
    process: ProcessTag,
    #[serde(rename = "t")]
    texts: Vec<String>,
    #[serde(rename = "c", serialize_with = "to_base64", deserialize_with = "from_base64")]
    bytes: Vec<u8>,
}

/// The flags of a row.
mod flag {
    pub(super) const STREAM: u128 = 1;
    pub(super) const ESTIMATED: u128 = 1 << 1;
    pub(super) const COST: u128 = 1 << 2;
    pub(super) const FIRST_BYTE: u128 = 1 << 3;
    /// The first of five, for the tokens that are not 0.
    pub(super) const TOKENS: u128 = 1 << 4;
}

/// How a row has the identifier of its request.
mod request {
    /// The bytes of a UUID that was written with hyphens.
    pub(super) const HYPHENATED: u128 = 0;
    /// The bytes of a UUID that was written as 32 digits.
    pub(super) const DIGITS: u128 = 1;
    /// This and the place of its text.
    pub(super) const TEXT: u128 = 2;
}

/// How many bytes of an identifier are its time.
const TIME: usize = 6;

impl Rows {
    /// The calls, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// What is wrong, where these are no rows.
    pub(super) fn calls(&self) -> Result<Vec<(CallId, StoredCall)>, &'static str> {
        let mut reader = RowsReader {
            rows: self,
            rest: &self.bytes,
            groups: Vec::new(),
            millis: 0,
        };
        let mut calls = Vec::new();
        while !reader.rest.is_empty() {
            calls.push(reader.row()?);
        }
        Ok(calls)
    }
}

/// Reads the rows of a block.
struct RowsReader<'a> {
    rows: &'a Rows,
    rest: &'a [u8],
    groups: Vec<Arc<CallGroup>>,
    millis: i64,
}

impl RowsReader<'_> {
    fn row(&mut self) -> Result<(CallId, StoredCall), &'static str> {
        self.millis = self.millis.wrapping_add(self.signed()?);
        let mut uuid = [0; 16];
        uuid[..TIME].copy_from_slice(&self.millis.to_be_bytes()[2..]);
        uuid[TIME..].copy_from_slice(self.take::<{ 16 - TIME }>()?);
        let id = CallId::new(Uuid::from_bytes(uuid));
        let ended_at = id.millis().saturating_sub(self.signed()?);
        let group = self.group()?;
        let path = self.text()?.to_owned();
        let flags: u128 = self.number()?;
        let attempts = self.number()?;
        let mut counts = [0; 5];
        for (place, count) in (0..).zip(&mut counts) {
            *count = self.number_if(flags & flag::TOKENS << place != 0)?.unwrap_or_default();
        }
        let [input, output, cached_input, cache_write, reasoning] = counts;
        let call = StoredCall {
            ended_at,
            group,
            path,
            stream: flags & flag::STREAM != 0,
            attempts,
            estimated: flags & flag::ESTIMATED != 0,
            tokens: StoredTokens {
                input,
                cached_input,
                cache_write,
                output,
                reasoning,
            },
            cost: self.number_if(flags & flag::COST != 0)?.map(Usd::from_nanos),
            first_byte_ms: self.number_if(flags & flag::FIRST_BYTE != 0)?,
            duration_ms: self.number()?,
            request_id: self.request()?,
            process: self.rows.process,
        };
        Ok((id, call))
    }

    fn group(&mut self) -> Result<Arc<CallGroup>, &'static str> {
        let place: usize = self.number()?;
        if place == self.groups.len() {
            let group = CallGroup {
                agent_id: self.text()?.to_owned(),
                version: self.number()?,
                label: self.optional()?,
                key: self.optional()?,
                user: self.optional()?,
                model: self.optional()?,
                provider: self.text()?.parse().map_err(|_| "no provider")?,
                credential: self.text()?.parse().map_err(|_| "no source of a credential")?,
                status: self.number()?,
            };
            self.groups.push(Arc::new(group));
        }
        self.groups.get(place).cloned().ok_or("a call has no group")
    }

    fn request(&mut self) -> Result<String, &'static str> {
        let form = self.number()?;
        if form >= request::TEXT {
            return self.text_at(form - request::TEXT).map(str::to_owned);
        }
        let uuid = Uuid::from_bytes(*self.take()?);
        Ok(match form {
            request::HYPHENATED => uuid.as_hyphenated().to_string(),
            _ => uuid.as_simple().to_string(),
        })
    }

    fn text(&mut self) -> Result<&str, &'static str> {
        let place = self.number()?;
        self.text_at(place)
    }

    fn optional(&mut self) -> Result<Option<String>, &'static str> {
        match self.number::<u128>()? {
            0 => Ok(None),
            place => self.text_at(place - 1).map(|text| Some(text.to_owned())),
        }
    }

    fn text_at(&self, place: u128) -> Result<&str, &'static str> {
        let text = usize::try_from(place).ok().and_then(|place| self.rows.texts.get(place));
        text.map(String::as_str).ok_or("a text is not in the table")
    }

    fn number_if<T: TryFrom<u128>>(&mut self, is_there: bool) -> Result<Option<T>, &'static str> {
        is_there.then(|| self.number()).transpose()
    }

    fn signed(&mut self) -> Result<i64, &'static str> {
        let written: u128 = self.number()?;
        let size = i64::try_from(written >> 1).map_err(|_| "a number is too great")?;
        Ok(if written & 1 == 0 { size } else { -size })
    }

    fn number<T: TryFrom<u128>>(&mut self) -> Result<T, &'static str> {
        let mut number = 0;
        for shift in (0..u128::BITS).step_by(7) {
            let [byte] = *self.take()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return T::try_from(number).map_err(|_| "a number is too great");
            }
        }
        Err("a number does not end")
    }

    fn take<const N: usize>(&mut self) -> Result<&[u8; N], &'static str> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or("a row ends within a value")?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Writes the rows of a block.
pub(super) struct RowsWriter {
    rows: Rows,
    /// The length of the texts as they are written.
    texts_length: usize,
    groups: Vec<Arc<CallGroup>>,
    millis: i64,
}

impl RowsWriter {
    /// The length of a block without rows.
    const EMPTY: usize = r#"{"w":4294967295,"t":[],"c":""}"#.len();

    pub(super) fn new(process: ProcessTag) -> Self {
        Self {
            rows: Rows {
                process,
                texts: Vec::new(),
                bytes: Vec::new(),
            },
            texts_length: 0,
            groups: Vec::new(),
            millis: 0,
        }
    }

    /// Adds a call if the block does not become longer than this with it. Returns
    /// whether it was added. The first one always is.
    pub(super) fn add(&mut self, id: CallId, call: &StoredCall, most: usize) -> bool {
        let before = (self.rows.bytes.len(), self.rows.texts.len(), self.texts_length);
        let (groups, millis) = (self.groups.len(), self.millis);
        self.row(id, call);
        let length = Self::EMPTY + (self.rows.bytes.len() * 4).div_ceil(3) + self.texts_length;
        let is_added = length <= most || before.0 == 0;
        if !is_added {
            self.rows.bytes.truncate(before.0);
            self.rows.texts.truncate(before.1);
            self.groups.truncate(groups);
            (self.texts_length, self.millis) = (before.2, millis);
        }
        is_added
    }

    pub(super) fn finish(self) -> Rows {
        self.rows
    }

    fn row(&mut self, id: CallId, call: &StoredCall) {
        let millis = id.millis();
        self.signed(millis - self.millis);
        self.millis = millis;
        self.rows.bytes.extend(&id.as_uuid().as_bytes()[TIME..]);
        self.signed(millis - call.ended_at);
        match self.groups.iter().rposition(|known| *known == call.group) {
            Some(place) => self.place(place),
            None => self.group(&call.group),
        }
        self.text(&call.path);
        let tokens = listed(call.tokens);
        let flags = [
            (call.stream, flag::STREAM),
            (call.estimated, flag::ESTIMATED),
            (call.cost.is_some(), flag::COST),
            (call.first_byte_ms.is_some(), flag::FIRST_BYTE),
        ];
        let of_tokens = (0..)
            .zip(tokens)
            .map(|(place, count)| (count > 0, flag::TOKENS << place));
        let set = flags.into_iter().chain(of_tokens).filter(|(is_set, _)| *is_set);
        self.number(set.map(|(_, flag)| flag).sum::<u128>());
        self.number(call.attempts);
        for count in tokens.into_iter().filter(|count| *count > 0) {
            self.number(count);
        }
        if let Some(cost) = call.cost {
            self.number(cost.nanos());
        }
        if let Some(millis) = call.first_byte_ms {
            self.number(millis);
        }
        self.number(call.duration_ms);
        self.request(&call.request_id);
    }

    fn group(&mut self, group: &Arc<CallGroup>) {
        self.place(self.groups.len());
        self.groups.push(Arc::clone(group));
        let CallGroup {
            agent_id,
            version,
            label,
            key,
            user,
            provider,
            model,
            credential,
            status,
        } = &**group;
        self.text(agent_id);
        self.number(*version);
        for text in [label, key, user, model] {
            self.optional(text.as_deref());
        }
        self.text(provider.as_str());
        self.text(credential.as_str());
        self.number(*status);
    }

    fn request(&mut self, id: &str) {
        let uuid = Uuid::try_parse(id).unwrap_or_default();
        let form = if uuid.as_hyphenated().to_string() == id {
            request::HYPHENATED
        } else if uuid.as_simple().to_string() == id {
            request::DIGITS
        } else {
            let place = self.text_place(id) as u128;
            return self.number(request::TEXT + place);
        };
        self.number(form);
        self.rows.bytes.extend(uuid.as_bytes());
    }

    fn text(&mut self, text: &str) {
        let place = self.text_place(text);
        self.place(place);
    }

    /// A text as its place and one more, or 0.
    fn optional(&mut self, text: Option<&str>) {
        let number = text.map_or(0, |text| self.text_place(text) + 1);
        self.place(number);
    }

    /// The place of a text in the table, to which a new one is added.
    fn text_place(&mut self, text: &str) -> usize {
        let texts = &mut self.rows.texts;
        texts.iter().rposition(|known| known == text).unwrap_or_else(|| {
            texts.push(text.to_owned());
            // Beyond the quotes and the comma: quotes and backslashes take one more byte, control characters five.
            let escapes = text.bytes().map(|byte| match byte {
                b'"' | b'\\' => 1,
                0..=31 => 5,
                _ => 0,
            });
            self.texts_length += text.len() + 3 + escapes.sum::<usize>();
            texts.len() - 1
        })
    }

    fn place(&mut self, place: usize) {
        self.number(place as u128);
    }

    /// A number whose least bit says whether it is negative.
    fn signed(&mut self, number: i64) {
        self.number(u128::from(number.unsigned_abs()) << 1 | u128::from(number < 0));
    }

    fn number(&mut self, number: impl Into<u128>) {
        let mut rest = number.into();
        while rest > 0x7f {
            self.rows.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.rows.bytes.push(rest as u8);
    }
}

/// The counts in the order in which they are written.
fn listed(tokens: StoredTokens) -> [u64; 5] {
    let StoredTokens {
        input,
        output,
        cached_input,
        cache_write,
        reasoning,
    } = tokens;
    [input, output, cached_input, cache_write, reasoning]
}

fn to_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&Base64Unpadded::encode_string(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Base64Unpadded::decode_vec(&text).map_err(de::Error::custom)
}
