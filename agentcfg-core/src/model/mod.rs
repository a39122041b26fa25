//! The resources and their values: what travels over the wire and into the store.
//!
//! Nothing here needs an engine; the client uses exactly these types.

mod agent;
mod agent_fields;
mod agent_filter;
mod api_key;
mod audit;
mod epoch;
mod ids;
mod named;
mod patch;
mod permission;
mod provider;
mod rate;
#[cfg(feature = "schema")]
pub mod schema;
mod status;
mod tag;
mod text_id;
mod time;
mod whoami;
mod wire;
mod workspace;

pub use agent::{Agent, AgentPatch, AgentType, NewAgent, Parameters};
pub use agent_filter::{AgentFilter, AgentState};
pub use api_key::{ApiKey, CreatedApiKey, DEFAULT_KEY_RATE_LIMIT, Environment, NewApiKey, RotateApiKey};
pub use audit::{Action, Actor, ActorType, AuditEntry, Change, Changes, Target, TargetType};
pub use epoch::{Epoch, InvalidEpoch};
pub use ids::{InvalidId, WorkspaceId, parse_uuid};
pub use named::UnknownWord;
pub use patch::Patch;
pub use permission::{Permission, PermissionSet, Role, Scope};
pub use provider::{CredentialSource, ModelInfo, ModelStatus, Provider, ProviderKeyInfo};
pub use rate::RateStatus;
pub use status::{AgentStatus, LiveStatus, StatusReport};
pub use tag::{Expected, InvalidTag, Precondition, Tag, Tagged};
#[cfg(feature = "engine")]
pub(crate) use text_id::TextId;
pub use text_id::{AgentId, ApiKeyId, IdRef, UserId};
pub use time::{InvalidTimestamp, Timestamp};
pub use whoami::{CallerType, CallerWorkspace, SignIn, WhoAmI};
pub use wire::{ErrorBody, Success};
pub use workspace::{Member, NewWorkspace, Plan, PlanLimits, RoleChange, Workspace, WorkspacePatch, WorkspaceView};
