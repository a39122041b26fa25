//! The parameters of versions, labels, the past and the audit log.

use agentcfg_core::model::{self, AsOf, Timestamp, VersionSelector};
use agentcfg_core::validate::{DEFAULT_LIMIT, Faults, Invalid};

use super::pages::limit;
use super::readers::{Moment, Number, NumberOrDefault, RequiredText, SmallNumber, Text, parameters};
use super::{moment, text};
use crate::api::call::{Parameter, ParameterDoc, Received, Shape};
use crate::http::errors::Failure;

/// The message for a change.
pub struct Message;

impl Parameter for Message {
    type Value<'a> = Option<model::Message>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "Message",
        "message",
        Shape::Field("AgentVersion", "message"),
        "Why the change is made, in at most 500 characters. It is kept in the audit entry, and with the version if the \
         change makes one.",
    )
    .example(r#""Shorter notes""#);

    fn read(request: &Received<'_>, faults: &mut Faults) -> Result<Option<model::Message>, Failure> {
        Ok(request.parsed(&Self::DOC, model::Message::try_from, faults))
    }
}

const fn number(
    component: &'static str,
    name: &'static str,
    minimum: u64,
    description: &'static str,
    example: &'static str,
) -> ParameterDoc {
    let shape = Shape::Number {
        minimum,
        maximum: None,
        default: None,
    };
    ParameterDoc::query(component, name, shape, description).example(example)
}

parameters! {
    /// A version by its number.
    VersionNumber: Number = number(
        "VersionNumber",
        "version",
        0,
        "The number of a version. One that the agent does not have is answered with 404.",
        "3",
    );

    /// A moment by the workspace's revision.
    Revision: Number = number(
        "Revision",
        "revision",
        1,
        "What was current at this revision of the workspace, which is the number of an audit entry. One that is not there \
         yet is refused. Not together with `at`.",
        "118",
    );

    /// The version before which a page of versions starts.
    BeforeVersion: Number = number("BeforeVersion", "before", 1, "Only versions with a smaller number.", "7");

    /// The revision before which a page of the history of a label starts.
    BeforeMove: Number = number("BeforeMove", "before", 1, "Only commits with a smaller revision.", "118");

    /// The revision before which a page of the audit log starts.
    BeforeRevision: Number = number("BeforeRevision", "before", 1, "Only entries with a smaller revision.", "118");

    /// A moment by its time.
    At: Moment = moment(
        "At",
        "at",
        "What was current at this time (RFC 3339), which is included; a time in the future means now. Not together with \
         `revision`.",
    );

    /// The start of a period.
    Since: Moment = moment("Since", "since", "Only entries from this time on (RFC 3339).");

    /// The start of a history of statuses.
    ChangedSince: Moment = moment(
        "ChangedSince",
        "since",
        "Only changes from this time on (RFC 3339). Left out, those of the last 24 hours.",
    );

    /// The end of a period.
    Until: Moment = moment("Until", "until", "Only entries before this time (RFC 3339).");

    /// A version by a label.
    SelectedLabel: Text = text(
        "SelectedLabel",
        "label",
        "The version that this label points at; `latest` is the current one. A label that the agent does not have is \
         answered with 404.",
        "\"production\"",
    );

    /// The label whose releases are listed.
    ReleasedLabel: Text = text(
        "ReleasedLabel",
        "label",
        "The label; `latest` releases the current versions. It is required, unless the API key is pinned to a \
         label.",
        "\"production\"",
    );

    /// The agent whose release is listed.
    ReleasedAgent: Text = text(
        "ReleasedAgent",
        "agent_id",
        "Lists the release of this agent alone.",
        "\"release-writer\"",
    );

    /// The agent whose moves are listed.
    MovedAgent: Text = text("MovedAgent", "agent_id", "Lists moves of this agent's label alone.", "\"release-writer\"");

    /// The agent whose changes of status are listed.
    ChangedAgent: Text = text("ChangedAgent", "agent_id", "Lists changes of this agent alone.", "\"release-writer\"");

    /// The only label to list.
    LabelFilter: Text = text("LabelFilter", "label", "Lists this label alone.", "\"production\"");

    /// The agent whose labels are listed.
    LabelledAgent: Text = text("LabelledAgent", "agent_id", "Lists labels of this agent alone.", "\"release-writer\"");

    /// The agent whose versions are compared.
    ComparedAgent: Text = text(
        "ComparedAgent",
        "agent_id",
        "The agent whose versions are compared. It is required, unless two labels are compared for all agents of the workspace \
         that `workspace_id` names. One that does not exist is answered with 404.",
        "\"release-writer\"",
    );

    /// The agent whose versions are listed.
    VersionsOf: Text = text(
        "VersionsOf",
        "agent_id",
        "The agent whose versions are listed. Left out, the current version of each active agent is, in the order of \
         the list of agents.",
        "\"release-writer\"",
    );

    /// The actor of audit entries.
    ActorFilter: Text = text(
        "ActorFilter",
        "actor",
        "Only entries of the actor with this identifier, of whatever type.",
        "\"user_71\"",
    );

    /// The action of audit entries.
    ActionFilter: Text = text(
        "ActionFilter",
        "action",
        "Only entries of this action, or of a family of actions such as `agent.*`. An unknown one selects \
         nothing.",
        "\"agent.*\"",
    );

    /// The type of the target of audit entries.
    TargetTypeFilter: Text = text(
        "TargetTypeFilter",
        "target_type",
        "Only entries whose target is of this type. An unknown one selects nothing.",
        "\"agent\"",
    );

    /// The target of audit entries.
    TargetIdFilter: Text = text(
        "TargetIdFilter",
        "target_id",
        "Only entries whose target has this identifier.",
        "\"release-writer\"",
    );

    /// The limit of a list of versions.
    VersionLimit: SmallNumber = limit(
        "VersionLimit",
        None,
        "Most versions to return: 100 of an agent where it is left out, and those of all agents without `agent_id`.",
    );

    /// The limit of the history of a label.
    MoveLimit: NumberOrDefault = limit("MoveLimit", Some(DEFAULT_LIMIT), "Most commits to return.");

    /// The label to act on.
    MovedLabel: RequiredText = ParameterDoc::query(
        "MovedLabel",
        "label",
        Shape::Field("AgentLabel", "label"),
        "The label. `latest` is reserved and refused here.",
    )
    .example("\"production\"")
    .required();
}

/// The version that a comparison starts with.
pub struct DiffFrom;

impl Parameter for DiffFrom {
    type Value<'a> = VersionSelector<'a>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "DiffFrom",
        "from",
        Shape::Text,
        "A version, by its number or a label. One that the agent does not have is answered with 404.",
    )
    .required()
    .example("\"1\"");

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<VersionSelector<'a>, Failure> {
        Ok(VersionSelector::from_text(request.required(&Self::DOC)?))
    }
}

/// The version that a comparison ends with.
pub struct DiffTo;

impl Parameter for DiffTo {
    type Value<'a> = VersionSelector<'a>;

    const DOC: ParameterDoc = ParameterDoc::query(
        "DiffTo",
        "to",
        Shape::Text,
        "The other version, by its number or a label. Left out, it is the current one.",
    )
    .example("\"latest\"");

    fn read<'a>(request: &'a Received<'_>, _: &mut Faults) -> Result<VersionSelector<'a>, Failure> {
        let text = request.optional(&Self::DOC);
        Ok(text.map_or(VersionSelector::Current, VersionSelector::from_text))
    }
}

/// The moment that `at` or `revision` names.
///
/// # Errors
///
/// 400 where both are given.
pub fn as_of(at: Option<Timestamp>, revision: Option<u64>) -> Result<Option<AsOf>, Failure> {
    match (at, revision) {
        (None, None) => Ok(None),
        (Some(at), None) => Ok(Some(AsOf::At(at))),
        (None, Some(revision)) => Ok(Some(AsOf::Revision(revision))),
        (Some(_), Some(_)) => Err(together(&["at", "revision"])),
    }
}

/// The one selector of a version that is given; without one it is the current version.
///
/// # Errors
///
/// 400 where several are given.
pub fn selector<'a>(
    version: Option<u64>,
    label: Option<&'a str>,
    as_of: Option<AsOf>,
) -> Result<VersionSelector<'a>, Failure> {
    match (version, label, as_of) {
        (None, None, None) => Ok(VersionSelector::Current),
        (Some(version), None, None) => Ok(VersionSelector::Version(version)),
        (None, Some(label), None) => Ok(VersionSelector::Label(label)),
        (None, None, Some(AsOf::At(at))) => Ok(VersionSelector::At(at)),
        (None, None, Some(AsOf::Revision(revision))) => Ok(VersionSelector::Revision(revision)),
        _ => {
            let past = as_of.map(|as_of| match as_of {
                AsOf::At(_) => "at",
                AsOf::Revision(_) => "revision",
            });
            let given = [version.map(|_| "version"), label.map(|_| "label"), past];
            Err(together(&given.into_iter().flatten().collect::<Vec<_>>()))
        }
    }
}

/// The refusal of parameters of which one alone may be given.
fn together(names: &[&str]) -> Failure {
    let names = names.join(" and ");
    Invalid::new(
        format_args!("the query parameters {names}"),
        "must not be given together",
    )
    .into()
}
