//! The resources and their values: what travels over the wire and into the store.
//!
//! Nothing here needs an engine; the client uses exactly these types.

mod agent;
mod agent_fields;
mod agent_filter;
mod agent_mirror;
mod agent_set;
mod api_key;
mod audit;
mod budget;
mod change_event;
pub(crate) mod change_path;
mod config_field;
mod cursor;
mod definition;
mod epoch;
mod error_body;
pub(crate) mod event_family;
mod event_types;
mod export;
mod ids;
pub(crate) mod into_field;
mod json_body;
mod label;
mod no_fields;
mod patch;
mod permission;
mod price;
mod prompt;
mod provider;
mod rate_status;
mod release;
#[cfg(feature = "schema")]
pub mod schema;
mod status;
mod tag;
mod text_id;
mod time;
mod usage;
mod version;
mod webhook;
mod webhook_url;
mod whoami;
pub(crate) mod with_schema;
pub(crate) mod word_enum;
mod workspace;

pub use agent::{Agent, AgentConfig, AgentPatch, AgentSpec, AgentType, NewAgent, Parameters};
pub(crate) use agent::{AgentHistory, StoredAgent};
pub use agent_filter::{AgentFilter, AgentState};
pub use agent_mirror::{AgentMirror, MirrorGap};
pub use agent_set::{AgentSet, AppliedAgent, AppliedAgents, ApplyAction, ApplyAgents};
pub use api_key::{ApiKey, CreatedApiKey, DEFAULT_KEY_RATE_LIMIT, Environment, NewApiKey, RotateApiKey};
pub use audit::{Action, Actor, ActorType, AuditEntry, AuditFilter, AuditSummary, Change, Changes, Target, TargetType};
pub use budget::{Budget, BudgetAction, BudgetLimit, BudgetPeriod, BudgetScope};
pub use change_event::{After, ChangeEvent, StatusEvent};
pub use config_field::{ConfigField, FieldValues};
pub use cursor::{Cursor, CursorError};
pub use definition::{Definition, ModelSettings};
pub use epoch::{Epoch, InvalidEpoch};
pub use error_body::{ErrorBody, Success};
pub use event_types::EventTypes;
pub use export::{ExportLine, ExportedVersion, ReportedStatus};
pub use ids::{CallId, InvalidId, WebhookId, WorkspaceId, parse_uuid};
pub use into_field::IntoField;
pub use json_body::JsonBody;
pub use label::{AgentLabel, LabelFilter, LabelTarget, PromotedLabel, Promotion};
pub use no_fields::NoFields;
pub use patch::Patch;
pub use permission::{Permission, PermissionSet, Role, Scope};
pub use price::{InvalidAmount, ModelPrices, Price, TokenUsage, Usd};
pub use prompt::{PromptValues, RenderedPrompt, VariableValues};
pub use provider::{
    CredentialHeader, CredentialSource, ModelInfo, ModelStatus, Provider, ProviderApi, ProviderKeyInfo, ProviderKeyTest,
};
pub use rate_status::RateStatus;
pub use release::{LabelHistoryFilter, LabelMove, LabelMoves, LabelRestore, ReleasedAgent, RestoredLabel};
pub use status::{AgentStatus, LiveStatus, StatusChange, StatusReport};
pub use tag::{Expected, InvalidTag, Precondition, Tag, Tagged, entity_tags};
pub(crate) use text_id::TextId;
pub use text_id::{AgentId, ApiKeyId, IdRef, Label, Message, SetName, UserId};
pub use time::{InvalidTimestamp, Timestamp};
pub use usage::{UsageCall, UsageCallFilter, UsageColumn, UsageFilter, UsageRow};
pub use version::{
    AgentDiff, AgentVersion, AgentVersionDetail, AsOf, Comparison, LabelDiff, Rollback, VersionPage, VersionSelector,
    VersionedAgent,
};
pub use webhook::{
    DisabledReason, InvalidReplayFrom, MAX_WEBHOOKS, NewWebhook, ReplayFrom, Webhook, WebhookDelivery, WebhookPatch,
    WebhookReplay, WebhookWithSecret,
};
pub(crate) use webhook_url::MAX_URL;
pub use webhook_url::{AllowedHost, Host, InvalidUrl, WebhookUrl};
pub use whoami::{CallerType, CallerWorkspace, Limits, SignIn, WhoAmI};
pub use word_enum::UnknownWord;
pub use workspace::{
    Member, NewWorkspace, Plan, PlanLimits, RoleChange, Workspace, WorkspaceCreation, WorkspacePatch, WorkspaceView,
};
