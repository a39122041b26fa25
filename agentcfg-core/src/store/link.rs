//! Records outside the partition of a workspace that belong to a record within: an index entry, or what it leads to.

use super::{Key, Kind, Partition};
use crate::model::WorkspaceId;

/// How the records of a kind belong to those of another one, from whose keys their own follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The kind that they belong to, in the partition of a workspace.
    pub(crate) to: Kind,
    /// The text of their partition.
    pub(crate) partition: Part,
    /// Their item.
    pub(crate) item: Part,
}

/// One part of a key, made of the key of the record that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The same text for all.
    Fixed(&'static str),
    /// The item.
    Item,
    /// The workspace.
    Workspace,
    /// The workspace, a slash and the item.
    WorkspaceAndItem,
}

impl Part {
    fn of(self, workspace: WorkspaceId, item: &str) -> String {
        match self {
            Self::Fixed(text) => text.to_owned(),
            Self::Item => item.to_owned(),
            Self::Workspace => workspace.to_string(),
            Self::WorkspaceAndItem => format!("{workspace}/{item}"),
        }
    }

    /// The workspace in a text that was made so, where it names one.
    #[cfg(any(test, feature = "redb"))]
    fn workspace(self, text: &str) -> Option<WorkspaceId> {
        match self {
            Self::Fixed(_) | Self::Item => None,
            Self::Workspace => text.parse().ok(),
            Self::WorkspaceAndItem => text.split_once('/')?.0.parse().ok(),
        }
    }
}

impl Kind {
    /// How the records of this kind belong to those of a workspace; `None` for those in its partition, and for those that belong
    /// to no workspace.
    pub(crate) const fn link(self) -> Option<Link> {
        let (to, partition, item) = match self {
            Self::ApiKey | Self::KeyUse => (Self::WorkspaceApiKey, Part::Item, Part::Fixed("")),
            Self::Membership => (Self::Member, Part::Item, Part::Workspace),
            Self::SealedKey => (Self::ProviderKey, Part::Fixed("provider-keys"), Part::WorkspaceAndItem),
            Self::WebhookPlace => (Self::Webhook, Part::Fixed("webhooks"), Part::Item),
            Self::BrowserSession | Self::LoginCode | Self::Removal | Self::Meta => return None,
            Self::Workspace
            | Self::Counter
            | Self::LogHead
            | Self::Member
            | Self::Agent
            | Self::Status
            | Self::WorkspaceApiKey
            | Self::ProviderKey
            | Self::LogEntry
            | Self::AgentVersion
            | Self::AgentTouch
            | Self::AgentLabels
            | Self::Webhook
            | Self::WebhookState
            | Self::WebhookDelivery
            | Self::Set
            | Self::SetMember => return None,
        };
        Some(Link { to, partition, item })
    }
}

impl Key {
    /// The keys outside the workspace's partition that belong to the record of this one.
    pub(crate) fn linked(&self) -> Vec<Self> {
        let Partition::Workspace(workspace) = self.partition() else {
            return Vec::new();
        };
        let linked = Kind::ALL.into_iter().filter_map(|kind| {
            let link = kind.link().filter(|link| link.to == self.kind())?;
            let [partition, item] = [link.partition, link.item].map(|part| part.of(*workspace, self.item()));
            Some(Self::global(partition, kind, item))
        });
        linked.collect()
    }

    /// The workspace whose record this is, or belongs to, as far as the key alone tells.
    #[cfg(any(test, feature = "redb"))]
    pub(crate) fn workspace(&self) -> Option<WorkspaceId> {
        match self.partition() {
            Partition::Workspace(workspace) => Some(*workspace),
            Partition::Global(_) => self.kind().link()?.item.workspace(self.item()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::PartitionKind;

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
        assert!(linked(Kind::Agent, "writer").is_empty());
        assert!(Key::epoch().linked().is_empty());
        assert_eq!(Key::epoch().workspace(), None);
    }
}
