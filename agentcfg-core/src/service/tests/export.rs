//! Which records an export contains.

use std::collections::BTreeSet;

use crate::model::ExportLine;
use crate::store::Kind;

/// The kind of the export lines that show the records of a kind, or why none does. A new kind of record does not
/// compile until it is here.
fn shown_as(kind: Kind) -> Result<&'static str, &'static str> {
    match kind {
        Kind::Workspace => Ok("workspace"),
        Kind::Member | Kind::User => Ok("member"),
        Kind::Agent => Ok("agent"),
        Kind::AgentVersion => Ok("version"),
        Kind::AgentLabels => Ok("label"),
        Kind::Set => Ok("set"),
        Kind::Status => Ok("status"),
        Kind::WorkspaceApiKey | Kind::ApiKey | Kind::KeyUse => Ok("api_key"),
        Kind::ProviderKey => Ok("provider_key"),
        Kind::Webhook | Kind::WebhookState => Ok("webhook"),
        Kind::LogEntry => Ok("audit"),
        Kind::UsageSum => Ok("usage"),
        Kind::Budget | Kind::BudgetAccount => Ok("budget"),
        Kind::UsageCall => Err("it is kept for a limited time only"),
        Kind::Counter
        | Kind::LogHead
        | Kind::SetMember
        | Kind::Membership
        | Kind::WebhookPlace
        | Kind::WorkspacePlace => Err("it follows from other records"),
        Kind::AgentTouch => Err("its change is in the audit log"),
        Kind::WebhookDelivery => Err("it is kept for a short time only"),
        Kind::SealedKey => Err("it is a secret"),
        Kind::BrowserSession | Kind::LoginCode => Err("it belongs to a user"),
        Kind::Removal | Kind::Meta => Err("it belongs to the store"),
    }
}

#[test]
fn each_kind_of_record_is_in_an_export_or_left_out_for_a_reason() {
    let shown: BTreeSet<_> = Kind::ALL.into_iter().filter_map(|kind| shown_as(kind).ok()).collect();
    assert_eq!(shown, ExportLine::KINDS.iter().copied().collect());
}
