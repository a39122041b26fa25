//! The macro that makes the types of an agent from one list of its configurable fields.

/// Declares [`Agent`](super::Agent), [`AgentConfig`](super::AgentConfig), [`NewAgent`](super::NewAgent),
/// [`AgentPatch`](super::AgentPatch) and the record that is stored.
///
/// A line is `name: presence Type as Rule, example value;` with the documentation above it. The presences are those of
/// [`body!`](crate::body::body): `required` and `defaulted` fields always have a value, a `nullable` one may have none, and a
/// `sparse` one is in the record only where it has one.
macro_rules! agent_fields {
    (@is_nullable nullable) => { true };
    (@is_nullable sparse) => { true };
    (@is_nullable $presence:ident) => { false };
    (@write sparse $row:ident, $name:expr, $value:expr) => {
        if $value.is_some() {
            $row.serialize_field($name, $value)?;
        }
    };
    (@write $presence:ident $row:ident, $name:expr, $value:expr) => { $row.serialize_field($name, $value)?; };
    ($(
        $(#[doc = $doc:literal])+
        $field:ident: $presence:ident $type:ty as $rule:ty, example $example:tt;
    )+) => {
        crate::body::record! {
            /// An agent configuration.
            ///
            /// ```
            /// use agentcfg_core::model::Agent;
            /// fn card(agent: &Agent) -> String {
            ///     format!("{}, {}", agent.display_name, agent.role.as_deref().unwrap_or("no role"))
            /// }
            /// ```
            #[derive(Debug, Clone, PartialEq)]
            Agent {
                /// Identifier of the record, a UUID of version 7.
                id: required Uuid as rules::RecordId,
                /// The workspace that the agent belongs to.
                workspace_id: required WorkspaceId,
                /// Identifier within the workspace, fixed at creation.
                agent_id: required AgentId,
                $(
                    $(#[doc = $doc])+
                    $field: $presence $type as $rule,
                )+
                /// False once the agent was deleted, until it is restored.
                is_active: required bool,
                /// Creation time.
                created_at: required Timestamp,
                /// Time of the latest change; equals `created_at` until there is one.
                updated_at: required Timestamp,
            }
            examples: [{
                "id": "0192f0a4-10bb-7e91-8c02-5d7e9f1a2b33",
                "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                "agent_id": "release-writer",
                $((stringify!($field)): $example,)+
                "is_active": true,
                "created_at": "2026-11-20T09:30:00.123Z",
                "updated_at": "2026-11-20T10:05:41.007Z",
            }],
        }

        crate::body::record! {
            /// The content of an agent: the fields that a workspace configures. Each version of an agent has one.
            ///
            /// ```
            /// use agentcfg_core::model::{Agent, AgentConfig};
            /// fn has_changed(agent: &Agent, released: &AgentConfig) -> bool {
            ///     agent.config() != *released
            /// }
            /// ```
            #[derive(Debug, Clone, PartialEq)]
            AgentConfig {
                $(
                    $(#[doc = $doc])+
                    $field: $presence $type as $rule,
                )+
            }
            examples: [AgentConfig::example()],
        }

        $crate::model::with_schema::with_schema! {
            impl AgentConfig {
                /// A content with a value in each field, for the examples of schemas.
                pub(crate) fn example() -> serde_json::Value {
                    serde_json::json!({ $((stringify!($field)): $example,)+ })
                }
            }
        }

        impl Agent {
            /// The content of the agent.
            ///
            /// ```
            /// use agentcfg_core::model::Agent;
            /// fn persona(agent: &Agent) -> String {
            ///     agent.config().persona_prompt.unwrap_or_default()
            /// }
            /// ```
            pub fn config(&self) -> AgentConfig {
                AgentConfig {
                    $($field: self.$field.clone(),)+
                }
            }

            /// The agent with another content.
            ///
            /// ```
            /// use agentcfg_core::model::{Agent, AgentVersionDetail};
            /// fn as_it_was(agent: Agent, version: AgentVersionDetail) -> Agent {
            ///     agent.with_config(version.config)
            /// }
            /// ```
            #[must_use]
            pub fn with_config(mut self, config: AgentConfig) -> Self {
                $(self.$field = config.$field;)+
                self
            }

            /// Whether the content of another state of the agent is the same.
            pub(crate) fn has_content_of(&self, other: &Self) -> bool {
                true $(&& self.$field == other.$field)+
            }
        }

        impl AgentConfig {
            /// The fields, in the order in which a record has them.
            ///
            /// ```
            /// use agentcfg_core::model::AgentConfig;
            /// assert_eq!(AgentConfig::fields()[0].name, "display_name");
            /// ```
            pub const fn fields() -> &'static [super::ConfigField] {
                const {
                    &[$(super::ConfigField {
                        name: stringify!($field),
                        about: concat!($($doc),+).trim_ascii(),
                        values: <$rule as rules::Described>::VALUES,
                        is_nullable: agent_fields!(@is_nullable $presence),
                    }),+]
                }
            }

            /// The names of the fields that can be null, in the order of the fields.
            ///
            /// ```
            /// use agentcfg_core::model::AgentConfig;
            /// assert!(AgentConfig::nullable().any(|name| name == "role"));
            /// assert!(AgentConfig::nullable().all(|name| name != "display_name"));
            /// ```
            pub fn nullable() -> impl Iterator<Item = &'static str> {
                Self::fields().iter().filter(|field| field.is_nullable).map(|field| field.name)
            }
        }

        impl AgentConfig {
            /// The names of the fields, in the order in which a record has them, one after the other.
            pub(crate) const FIELDS: &[&str] = &[$(stringify!($field)),+];
        }

        /// An agent's record in the store: the agent, and how far its history goes.
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(from = "AgentRow")]
        pub(crate) struct StoredAgent {
            pub(crate) agent: Agent,
            pub(crate) history: AgentHistory,
        }

        crate::body::readable! {
            [
                /// The fields of a [`StoredAgent`] as they are written.
                #[derive(serde::Deserialize)]
                struct AgentRow
            ]
            [] id: required Uuid,
            [] workspace_id: required WorkspaceId,
            [] agent_id: required AgentId,
            $([] $field: $presence $type,)+
            [] is_active: required bool,
            [] created_at: required Timestamp,
            [] updated_at: required Timestamp,
            [] history: required AgentHistory,
        }

        impl From<AgentRow> for StoredAgent {
            fn from(row: AgentRow) -> Self {
                Self {
                    agent: Agent {
                        id: row.id,
                        workspace_id: row.workspace_id,
                        agent_id: row.agent_id,
                        $($field: row.$field,)+
                        is_active: row.is_active,
                        created_at: row.created_at,
                        updated_at: row.updated_at,
                    },
                    history: row.history,
                }
            }
        }

        impl serde::Serialize for StoredAgent {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;

                let agent = &self.agent;
                let mut row = serializer.serialize_struct("StoredAgent", 7 + AgentConfig::FIELDS.len())?;
                row.serialize_field("id", &agent.id)?;
                row.serialize_field("workspace_id", &agent.workspace_id)?;
                row.serialize_field("agent_id", &agent.agent_id)?;
                $(agent_fields!(@write $presence row, stringify!($field), &agent.$field);)+
                row.serialize_field("is_active", &agent.is_active)?;
                row.serialize_field("created_at", &agent.created_at)?;
                row.serialize_field("updated_at", &agent.updated_at)?;
                row.serialize_field("history", &self.history)?;
                row.end()
            }
        }

        crate::body::body! {
            /// What a new agent starts with. Null in a nullable field means the same as leaving it out.
            ///
            /// ```
            /// use agentcfg_core::model::{NewAgent, WorkspaceId};
            /// let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse()?;
            /// let agent = NewAgent::new(workspace, "writer".parse()?, "Writer").model("gpt-5.5");
            /// assert!(agent.validate().is_ok());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            ///
            /// A body with faults is refused with all of them:
            ///
            /// ```
            /// use agentcfg_core::model::NewAgent;
            /// let invalid = NewAgent::from_json(br##"{"agent_id":"A","color":"red"}"##).unwrap_err();
            /// assert_eq!(
            ///     invalid.to_string(),
            ///     "workspace_id is required; agent_id must be 1 to 50 of a-z, 0-9, - and _; \
            ///      display_name is required; color must be # and 3, 4, 6 or 8 hexadecimal digits"
            /// );
            /// ```
            #[derive(Debug, Clone, PartialEq)]
            create NewAgent {
                /// The workspace to create the agent in.
                workspace_id: required WorkspaceId,
                /// Identifier for the agent. One that a deleted agent had is not free again.
                agent_id: required AgentId,
                $(
                    $(#[doc = $doc])+
                    $field: $presence $type as $rule,
                )+
            }
            read_only: &["id", "is_active", "created_at", "updated_at"],
            examples: [
                {
                    "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                    "agent_id": "release-writer",
                    $((stringify!($field)): $example,)+
                },
                {
                    "workspace_id": "0192f0a1-7c3e-7d52-9a41-3f6b8c2d1e05",
                    "agent_id": "reviewer_2",
                    "display_name": "Ana",
                },
            ],
        }

        crate::body::body! {
            /// An agent as an apply wants it: what is left out is null, empty, or the default.
            ///
            /// ```
            /// use agentcfg_core::model::AgentSpec;
            /// let spec = AgentSpec::new("writer".parse()?, "Writer").model("gpt-5.5");
            /// assert!(spec.validate().is_ok());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[derive(Debug, Clone, PartialEq)]
            create AgentSpec {
                /// Accepted only with the workspace of the request.
                workspace_id: optional WorkspaceId,
                /// Identifier of the agent, which is created where there is none.
                agent_id: required AgentId,
                $(
                    $(#[doc = $doc])+
                    $field: $presence $type as $rule,
                )+
            }
            read_only: &["id", "is_active", "created_at", "updated_at"],
            examples: [{ "agent_id": "release-writer", $((stringify!($field)): $example,)+ }],
        }

        impl AgentSpec {
            /// An AI agent with the two required fields and nothing else.
            ///
            /// ```
            /// use agentcfg_core::model::AgentSpec;
            /// let writer = AgentSpec::new("writer".parse()?, "Writer");
            /// assert_eq!((&*writer.display_name, writer.role), ("Writer", None));
            /// # Ok::<(), agentcfg_core::validate::Invalid>(())
            /// ```
            pub fn new(agent_id: AgentId, display_name: impl Into<String>) -> Self {
                let mut new = Self {
                    workspace_id: None,
                    agent_id,
                    $($field: Default::default(),)+
                };
                new.display_name = display_name.into();
                new
            }

            /// The active agent with this content, and with these identifiers and times.
            pub(crate) fn to_agent(
                &self,
                workspace_id: WorkspaceId,
                (id, created_at, updated_at): (Uuid, Timestamp, Timestamp),
            ) -> Agent {
                Agent {
                    id,
                    workspace_id,
                    agent_id: self.agent_id.clone(),
                    $($field: self.$field.clone(),)+
                    is_active: true,
                    created_at,
                    updated_at,
                }
            }
        }

        crate::body::body! {
            /// The fields to change. A field that is given is replaced as a whole, one that is left out stays, and null
            /// empties a nullable one.
            ///
            /// ```
            /// use agentcfg_core::model::{AgentPatch, Patch};
            /// let patch = AgentPatch::default().role(Patch::Null).model("gpt-5.5");
            /// assert_eq!(serde_json::to_string(&patch)?, r#"{"role":null,"model":"gpt-5.5"}"#);
            /// # Ok::<(), serde_json::Error>(())
            /// ```
            #[derive(Debug, Clone, PartialEq, Default)]
            change AgentPatch {
                /// Accepted only with the value that the record has.
                workspace_id: required WorkspaceId,
                /// Accepted only with the value that the record has.
                ///
                /// It is compared as text, so that one that could be no identifier is refused like any other wrong one.
                agent_id: required String as rules::RepeatedAgentId,
                $(
                    $(#[doc = $doc])+
                    $field: $presence $type as $rule,
                )+
            }
            read_only: &["id", "is_active", "created_at", "updated_at"],
            examples: [
                { "model": "claude-sonnet-5-5", "role": null, "parameters": { "creativity": 0.4 } },
                {},
            ],
        }

        impl NewAgent {
            /// An AI agent with the three required fields and nothing else.
            ///
            /// ```
            /// use agentcfg_core::model::{AgentType, NewAgent};
            /// let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
            /// let writer = NewAgent::new(workspace, "writer".parse()?, "Writer");
            /// assert_eq!((writer.agent_type, writer.role), (AgentType::Ai, None));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn new(
                workspace_id: WorkspaceId,
                agent_id: AgentId,
                display_name: impl Into<String>,
            ) -> Self {
                let mut new = Self {
                    workspace_id,
                    agent_id,
                    $($field: Default::default(),)+
                };
                new.display_name = display_name.into();
                new
            }

            /// The agent's first record, with the identifiers and times that the service gives it.
            pub(crate) fn into_agent(self, id: Uuid, now: Timestamp) -> Agent {
                Agent {
                    id,
                    workspace_id: self.workspace_id,
                    agent_id: self.agent_id,
                    $($field: self.$field,)+
                    is_active: true,
                    created_at: now,
                    updated_at: now,
                }
            }
        }

        impl AgentPatch {
            /// Changes the agent's fields. The identity and the timestamps stay.
            ///
            /// ```
            /// use agentcfg_core::model::{Agent, AgentPatch, Patch};
            /// fn promote(agent: &mut Agent) {
            ///     let patch = AgentPatch::default().role("editor");
            ///     patch.apply(agent);
            /// }
            /// ```
            pub fn apply(self, agent: &mut Agent) {
                $(crate::body::Change::apply(self.$field, &mut agent.$field);)+
            }
        }
    };
}

pub(super) use agent_fields;
