//! Rules for numbers and moments.

use super::Rule;
use crate::model::Timestamp;
use crate::validate::{Faults, MAX_RATE_LIMIT};

/// The requests per minute of an API key: 1–1000000.
pub(crate) struct RequestsPerMinute;

/// A moment with any UTC offset. The service, which has the clock, compares it with the current time.
pub(crate) struct Moment;

impl Rule for RequestsPerMinute {
    type Value = u32;

    fn check(limit: &u32, field: &str, faults: &mut Faults) {
        if !(1..=MAX_RATE_LIMIT).contains(limit) {
            faults.push(field, format_args!("must be an integer from 1 to {MAX_RATE_LIMIT}"));
        }
    }
}

impl Rule for Moment {
    type Value = Timestamp;

    fn check(_: &Timestamp, _: &str, _: &mut Faults) {}
}
