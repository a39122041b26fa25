//! The usage of model calls: sums, and single calls.

use super::price::Usd;
use super::word_enum::word_enum;
use super::{Actor, CallId, CredentialSource, Provider, Timestamp};
use crate::body::record;
use crate::model::into_field::settable;

word_enum! {
    /// What sums of usage can be grouped by.
    UsageColumn {
        /// The hour in which calls ended.
        Hour = "hour",
        /// The day in UTC on which calls ended.
        Day = "day",
        /// The agent.
        Agent = "agent",
        /// The version of the agent.
        Version = "version",
        /// The label that selected the version.
        Label = "label",
        /// The model.
        Model = "model",
        /// The provider.
        Provider = "provider",
        /// The API key that called.
        Key = "key",
        /// The user who called.
        User = "user",
        /// Whose credential paid.
        Credential = "credential",
        /// The status of the answer.
        Status = "status",
    }, non_exhaustive
}

record! {
    /// Sums over model calls. A field of a grouping is there where it was asked for.
    ///
    /// ```
    /// use agentcfg_core::model::UsageRow;
    /// fn line(row: &UsageRow) -> String {
    ///     let agent = row.agent.value().map_or("no agent", String::as_str);
    ///     format!("{agent}: {} calls, {} USD", row.calls, row.cost_usd)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    UsageRow {
        /// The beginning of the hour in which the calls ended.
        hour: chosen Timestamp,
        /// The day in UTC on which the calls ended, such as `2026-11-20`.
        day: chosen String,
        /// Identifier of the agent.
        agent: chosen String,
        /// The number of the agent's version.
        version: chosen u64,
        /// The label that selected the version; null where none did.
        label: chosen String,
        /// The model; null where the call named none.
        model: chosen String,
        /// The provider.
        provider: chosen Provider,
        /// Identifier of the API key; null for a user's calls.
        key: chosen String,
        /// Identifier of the user; null for calls with an API key.
        user: chosen String,
        /// Whose credential paid.
        credential: chosen CredentialSource,
        /// The status of the answers. 502 and 504 are answers of this service, and 499 is a caller that left before the answer.
        status: chosen u32,
        /// There, and true, where the row is that of all values beyond `top`.
        other: sparse bool,
        /// Calls, each attempt of one as a call of its own.
        calls: required u64,
        /// Calls with a status of 400 and above.
        errors: required u64,
        /// Input tokens, with those of caches.
        input_tokens: required u64,
        /// Input tokens that were read from a cache.
        cached_input_tokens: required u64,
        /// Input tokens that were written to a cache.
        cache_write_tokens: required u64,
        /// Output tokens, with those of reasoning.
        output_tokens: required u64,
        /// Output tokens of reasoning.
        reasoning_tokens: required u64,
        /// The cost in USD, exact to a billionth.
        cost_usd: required Usd,
        /// Calls with tokens whose model has no price.
        unpriced_calls: required u64,
        /// Calls whose tokens were estimated.
        estimated_calls: required u64,
        /// Milliseconds of all calls together.
        duration_ms: required u64,
        /// Milliseconds until the answers began, of all calls together.
        first_byte_ms: required u64,
        /// Half of the calls took at most this many milliseconds, within 10 %.
        p50_ms: required u64,
        /// 95 % of the calls took at most this many milliseconds, within 10 %.
        p95_ms: required u64,
    }
    examples: [{
        "agent": "release-writer",
        "model": "claude-sonnet-5-5",
        "calls": 118,
        "errors": 2,
        "input_tokens": 240_118,
        "cached_input_tokens": 200_000,
        "cache_write_tokens": 0,
        "output_tokens": 40_004,
        "reasoning_tokens": 0,
        "cost_usd": "0.500276",
        "unpriced_calls": 0,
        "estimated_calls": 1,
        "duration_ms": 302_118,
        "first_byte_ms": 61_004,
        "p50_ms": 2432,
        "p95_ms": 5376,
    }],
}

record! {
    /// One model call, or one attempt of it.
    ///
    /// ```
    /// use agentcfg_core::model::UsageCall;
    /// fn line(call: &UsageCall) -> String {
    ///     format!("{} {} {} in {} ms", call.ended_at, call.agent_id, call.status, call.duration_ms)
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    UsageCall {
        /// Identifier of the call. Later ones are greater.
        id: required CallId,
        /// When it ended.
        ended_at: required Timestamp,
        /// The agent that it was made as.
        agent_id: required String,
        /// The version of the agent.
        version: required u64,
        /// The label that selected the version.
        label: nullable String,
        /// Who called; null without the permission `audit_log:read`.
        actor: nullable Actor,
        /// The provider.
        provider: required Provider,
        /// The model, where it is known.
        model: nullable String,
        /// The path at the provider.
        path: required String,
        /// Whose credential paid.
        credential: required CredentialSource,
        /// The status of the answer. 502 and 504 are answers of this service, and 499 is a caller that left before the answer.
        status: required u32,
        /// Whether a stream was asked for or answered.
        stream: required bool,
        /// Which attempt of its request it was.
        attempts: required u32,
        /// Whether tokens were estimated.
        estimated: required bool,
        /// Input tokens, with those of caches.
        input_tokens: required u64,
        /// Input tokens that were read from a cache.
        cached_input_tokens: required u64,
        /// Input tokens that were written to a cache.
        cache_write_tokens: required u64,
        /// Output tokens, with those of reasoning.
        output_tokens: required u64,
        /// Output tokens of reasoning.
        reasoning_tokens: required u64,
        /// The cost in USD; null where the model has no price.
        cost_usd: nullable Usd,
        /// Milliseconds until the answer began; null where there was none.
        first_byte_ms: nullable u64,
        /// Milliseconds in all.
        duration_ms: required u64,
        /// The `X-Request-Id` of the request.
        request_id: required String,
    }
    examples: [{
        "id": "0192f0a4-10bc-7044-b1d7-9e2c4a6f8b10",
        "ended_at": "2026-11-20T10:05:41.007Z",
        "agent_id": "release-writer",
        "version": 3,
        "label": "production",
        "actor": { "type": "api_key", "id": "4fQ8mZr2LkV7xN0bTy6W" },
        "provider": "anthropic",
        "model": "claude-sonnet-5-5",
        "path": "v1/messages",
        "credential": "workspace",
        "status": 200,
        "stream": true,
        "attempts": 1,
        "estimated": false,
        "input_tokens": 2048,
        "cached_input_tokens": 1024,
        "cache_write_tokens": 0,
        "output_tokens": 312,
        "reasoning_tokens": 0,
        "cost_usd": "0.0052704",
        "first_byte_ms": 410,
        "duration_ms": 3120,
        "request_id": "req-118",
    }],
}

settable! {
    /// Which calls to add up, and how. The default adds up all calls of the last 30 days.
    ///
    /// ```
    /// use agentcfg_core::model::{UsageColumn, UsageFilter};
    /// let by_agent = UsageFilter::default().by(vec![UsageColumn::Agent, UsageColumn::Version]).top(10);
    /// assert_eq!(by_agent.by.len(), 2);
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    UsageFilter {
        /// Only calls that ended from this hour on; `None` for 30 days before the end.
        from: Option<Timestamp>,
        /// Only calls that ended before this hour; `None` for the end of the running one.
        to: Option<Timestamp>,
        /// What the sums are grouped by: up to 4, each once.
        by: Vec<UsageColumn>,
        /// Only calls as this agent.
        agent_id: Option<String>,
        /// Only calls of this model.
        model: Option<String>,
        /// Only calls to this provider.
        provider: Option<String>,
        /// Only calls with this API key.
        key: Option<String>,
        /// Only calls whose version this label selected.
        label: Option<String>,
        /// Only so many values of the first grouping that is no time, 1–50: those that cost most.
        top: Option<u32>,
    }
}

settable! {
    /// Which calls to list, newest first. The default lists the last 100.
    ///
    /// ```
    /// use agentcfg_core::model::UsageCallFilter;
    /// let failed = UsageCallFilter::default().status(502).limit(10);
    /// assert_eq!(failed.limit, Some(10));
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    UsageCallFilter {
        /// Only calls before the one of this identifier.
        before: Option<CallId>,
        /// Only calls as this agent.
        agent_id: Option<String>,
        /// Only calls with this API key.
        key: Option<String>,
        /// Only calls of this model.
        model: Option<String>,
        /// Only calls with this status.
        status: Option<u32>,
        /// The greatest number of calls, 1–1000; `None` for 100.
        limit: Option<u32>,
    }
}
