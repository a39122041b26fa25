//! Sums over calls: adding a call, adding up sums, and how a sum is shown.

use super::durations::{percentile, range_of};
use crate::model::{UsageRow, Usd};
use crate::service::records::{StoredCall, Sums};

impl Sums {
    /// Counts a call.
    pub(super) fn count(&mut self, call: &StoredCall) {
        self.calls += 1;
        self.errors += u64::from(call.group.status >= 400);
        self.tokens.add(&call.tokens);
        self.cost = self.cost.saturating_add(call.cost.unwrap_or(Usd::ZERO));
        self.unpriced += u64::from(call.cost.is_none());
        self.estimated += u64::from(call.estimated);
        self.duration_ms = self.duration_ms.saturating_add(call.duration_ms);
        self.first_byte_ms = self
            .first_byte_ms
            .saturating_add(call.first_byte_ms.unwrap_or_default());
        *self.durations.entry(range_of(call.duration_ms)).or_default() += 1;
    }

    /// Adds another sum.
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.tokens.add(&other.tokens);
        self.cost = self.cost.saturating_add(other.cost);
        self.unpriced += other.unpriced;
        self.estimated += other.estimated;
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
        self.first_byte_ms = self.first_byte_ms.saturating_add(other.first_byte_ms);
        for (range, count) in &other.durations {
            *self.durations.entry(*range).or_default() += count;
        }
    }

    /// The sum as the API shows it, without what it is grouped by.
    pub(super) fn row(&self) -> UsageRow {
        UsageRow {
            calls: self.calls,
            errors: self.errors,
            input_tokens: self.tokens.input,
            cached_input_tokens: self.tokens.cached_input,
            cache_write_tokens: self.tokens.cache_write,
            output_tokens: self.tokens.output,
            reasoning_tokens: self.tokens.reasoning,
            cost_usd: self.cost,
            unpriced_calls: self.unpriced,
            estimated_calls: self.estimated,
            duration_ms: self.duration_ms,
            first_byte_ms: self.first_byte_ms,
            p50_ms: percentile(&self.durations, 50),
            p95_ms: percentile(&self.durations, 95),
            ..UsageRow::default()
        }
    }
}
