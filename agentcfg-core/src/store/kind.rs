//! The kinds of records, and which records outside a workspace belong to one.

use crate::model::WorkspaceId;

/// The item of the counter of a workspace's active agents, which `check` compares with the agents.
pub(crate) const ACTIVE_AGENTS: &str = "active_agents";

/// What a [`Partition`](super::Partition) is kept by. Each [`Kind`] of record belongs to one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionKind {
    /// By a workspace: [`Partition::Workspace`](super::Partition::Workspace).
    Workspace,
    /// By a text, outside any workspace: [`Partition::Global`](super::Partition::Global).
    Global,
}

/// How the records of a kind outside the workspaces' partitions belong to those of another one, from whose keys their
/// own follow; see [`Kind::link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The kind that they belong to, in the partition of a workspace.
    pub to: Kind,
    /// The text of their partition.
    pub partition: KeyPart,
    /// Their item.
    pub item: KeyPart,
}

/// One part of a key, made of the key of the record that it belongs to; see [`Link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    /// The same text for all.
    Fixed(&'static str),
    /// The item of that key.
    Item,
    /// The workspace of that key.
    Workspace,
    /// The workspace and the item, with a slash between them.
    WorkspaceAndItem,
}

impl KeyPart {
    pub(super) fn of(self, workspace: WorkspaceId, item: &str) -> String {
        match self {
            Self::Fixed(text) => text.to_owned(),
            Self::Item => item.to_owned(),
            Self::Workspace => workspace.to_string(),
            Self::WorkspaceAndItem => format!("{workspace}/{item}"),
        }
    }

    /// The workspace in a text that was made so, where it names one.
    pub(super) fn workspace(self, text: &str) -> Option<WorkspaceId> {
        match self {
            Self::Fixed(_) | Self::Item => None,
            Self::Workspace => text.parse().ok(),
            Self::WorkspaceAndItem => text.split_once('/')?.0.parse().ok(),
        }
    }
}

/// Declares [`Kind`]: those in the partition of a workspace, and those outside, each with what it belongs to there:
/// `(none)`, or a [`Link`] as `(<kind>, <partition>, <item>)`.
macro_rules! kinds {
    (
        in_workspace { $($(#[doc = $about:literal])+ $kind:ident = $number:literal,)+ }
        global { $($(#[doc = $global_about:literal])+ $global:ident = $global_number:literal => ($($link:tt)+),)+ }
    ) => {
        const KINDS: usize = [$($number,)+ $($global_number,)+].len();

        /// The kind of record behind a key. The numbers are part of the file format: never reuse one.
        ///
        /// ```
        /// use agentcfg_core::store::Kind;
        /// assert_eq!(Kind::Agent as u8, 5);
        /// assert!(Kind::ALL.contains(&Kind::Agent));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[doc = $about])+ $kind = $number,)+
            $($(#[doc = $global_about])+ $global = $global_number,)+
        }

        impl Kind {
            /// Every kind, in the order of the keys.
            ///
            /// ```
            /// use agentcfg_core::store::Kind;
            /// assert!(Kind::ALL.is_sorted());
            /// ```
            pub const ALL: [Kind; KINDS] = [$(Self::$kind,)+ $(Self::$global,)+];

            /// The kind of partition that holds the records of this kind.
            pub const fn partition_kind(self) -> PartitionKind {
                match self {
                    $(Self::$kind)|+ => PartitionKind::Workspace,
                    $(Self::$global)|+ => PartitionKind::Global,
                }
            }

            /// How the records of this kind belong to those of a workspace; `None` for those in its partition, and for
            /// those that belong to no workspace.
            ///
            /// An engine that keeps something of deleted records finds by it what
            /// [`end_removal`](super::Store::end_removal) has to remove outside the workspace's partition.
            ///
            /// ```
            /// use agentcfg_core::store::{Kind, KeyPart};
            /// let link = Kind::Membership.link().ok_or("a membership belongs to a member")?;
            /// assert_eq!((link.to, link.partition, link.item), (Kind::Member, KeyPart::Item, KeyPart::Workspace));
            /// assert_eq!(Kind::Member.link(), None);
            /// # Ok::<(), &str>(())
            /// ```
            pub const fn link(self) -> Option<Link> {
                match self {
                    $(Self::$kind)|+ => None,
                    $(Self::$global => link!($($link)+),)+
                }
            }
        }
    };
}

macro_rules! link {
    (none) => {
        None
    };
    ($to:ident, $partition:expr, $item:expr) => {
        Some(Link {
            to: Kind::$to,
            partition: $partition,
            item: $item,
        })
    };
}

kinds! {
    in_workspace {
        /// A workspace's own record.
        Workspace = 1,
        /// A bounded counter, such as the number of active agents.
        Counter = 2,
        /// The head of a log: how many entries it has, and so the workspace's revision.
        LogHead = 3,
        /// A user's role in a workspace, by user.
        Member = 4,
        /// An agent's configuration, by `agent_id`.
        Agent = 5,
        /// An agent's last status report, by `agent_id`.
        Status = 6,
        /// Links an API key to its workspace, by key.
        WorkspaceApiKey = 7,
        /// A sealed provider credential, by provider.
        ProviderKey = 8,
        /// An entry of a log, by its number.
        LogEntry = 9,
        /// The content of an agent at one of its versions, by `agent_id` and number.
        AgentVersion = 10,
        /// A change of an agent's record that made no version, by `agent_id` and number.
        AgentTouch = 11,
        /// The labels of an agent, by `agent_id`.
        AgentLabels = 12,
        /// A webhook's configuration, by its identifier.
        Webhook = 13,
        /// The progress of a webhook's deliveries, by the webhook's identifier.
        WebhookState = 14,
        /// A recent attempt to deliver to a webhook, by webhook and time.
        WebhookDelivery = 15,
        /// A set of agents, by its name.
        Set = 16,
        /// The set that an agent belongs to, by `agent_id`.
        SetMember = 17,
        /// A model call that has ended, by its identifier, which grows with time.
        UsageCall = 18,
        /// The sum over the calls of one hour or day and one group, by that time and an identifier of its own.
        UsageSum = 19,
        /// A budget, by what it covers and its period.
        Budget = 20,
        /// What was spent and reserved of a budget in one period, by budget and period.
        BudgetAccount = 21,
    }
    global {
        /// An API key, in a partition of its own.
        ApiKey = 32 => (WorkspaceApiKey, KeyPart::Item, KeyPart::Fixed("")),
        /// When an API key was last used, in the key's partition.
        KeyUse = 33 => (WorkspaceApiKey, KeyPart::Item, KeyPart::Fixed("")),
        /// A user's membership in a workspace, in the user's partition, by workspace.
        Membership = 34 => (Member, KeyPart::Item, KeyPart::Workspace),
        /// Links a sealed provider credential to its workspace, in the partition `provider-keys`, by workspace and
        /// provider.
        SealedKey = 35 => (ProviderKey, KeyPart::Fixed("provider-keys"), KeyPart::WorkspaceAndItem),
        /// A browser session, in the partition `browser-sessions`, by the hash of its cookie.
        BrowserSession = 36 => (none),
        /// A login code that was not used yet, in the partition `login-codes`, by its hash.
        LoginCode = 37 => (none),
        /// A deleted workspace whose records are being removed, in the partition `removals`, by workspace.
        Removal = 38 => (none),
        /// Links a webhook to its workspace, in the partition `webhooks`, by the webhook's identifier.
        WebhookPlace = 39 => (Webhook, KeyPart::Fixed("webhooks"), KeyPart::Item),
        /// A workspace in the list of all of them, in the partition `workspaces`, by workspace.
        WorkspacePlace = 40 => (Workspace, KeyPart::Fixed("workspaces"), KeyPart::Workspace),
        /// What is known of a user, in the partition `users`, by user: the claims of the last sign-in, and whether an
        /// operator has removed the user.
        User = 41 => (none),
        /// A fact about the whole store, in the partition `store`.
        Meta = 63 => (none),
    }
}

impl Kind {
    /// Whether a store can [track](super::Store::track) the changes of records of this kind: those that are read
    /// together and change one by one.
    ///
    /// ```
    /// use agentcfg_core::store::Kind;
    /// assert!(Kind::Status.is_tracked() && !Kind::Agent.is_tracked());
    /// ```
    pub const fn is_tracked(self) -> bool {
        matches!(self, Self::Status)
    }

    /// Whether the values of its records are numbers, which a commit increments, and not JSON objects.
    ///
    /// ```
    /// use agentcfg_core::store::Kind;
    /// assert!(Kind::LogHead.is_number() && !Kind::LogEntry.is_number());
    /// ```
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Counter | Self::LogHead)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::{Key, PartitionKind};

    #[test]
    fn links_lead_from_a_workspace_out_of_it() {
        for kind in Kind::ALL {
            let Some(link) = kind.link() else { continue };
            assert_eq!(kind.partition_kind(), PartitionKind::Global, "{kind:?}");
            assert_eq!(link.to.partition_kind(), PartitionKind::Workspace, "{kind:?}");
        }
    }

    #[test]
    fn the_key_of_a_linked_record_follows_from_the_one_that_it_belongs_to() {
        let workspace = WorkspaceId::new(uuid::Uuid::from_u128(7));
        let linked = |kind, item: &str| Key::in_workspace(workspace, kind, item).linked();
        assert_eq!(
            linked(Kind::WorkspaceApiKey, "k1"),
            [Key::global("k1", Kind::ApiKey, ""), Key::global("k1", Kind::KeyUse, "")]
        );
        let membership = Key::global("ada", Kind::Membership, workspace.to_string());
        assert_eq!(membership.workspace(), Some(workspace));
        assert_eq!(linked(Kind::Member, "ada"), [membership]);
        let sealed = Key::global("provider-keys", Kind::SealedKey, format!("{workspace}/openai"));
        assert_eq!(sealed.workspace(), Some(workspace));
        assert_eq!(linked(Kind::ProviderKey, "openai"), [sealed]);
        assert_eq!(
            linked(Kind::Webhook, "w1"),
            [Key::global("webhooks", Kind::WebhookPlace, "w1")]
        );
        let place = Key::global("workspaces", Kind::WorkspacePlace, workspace.to_string());
        assert_eq!(place.workspace(), Some(workspace));
        assert_eq!(linked(Kind::Workspace, ""), [place]);
        assert!(linked(Kind::Agent, "writer").is_empty());
        assert!(Key::epoch().linked().is_empty());
        assert_eq!(Key::epoch().workspace(), None);
    }
}
