//! The options of `agentcfg agents create` that set the fields of an agent: each field has one.

use std::path::PathBuf;

use agentcfg_client::model::{AgentConfig, ConfigField, FieldValues};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};

use crate::agent_file::Fields;

/// Options that are not named as their field: `--color` is taken, and an option that is repeated has a singular.
const NAMES: &[(&str, &str)] = &[
    ("color", "avatar-color"),
    ("capabilities", "capability"),
    ("parameters", "parameter"),
    (Fields::BODY, "persona-file"),
    ("definition", "definition-file"),
];

/// The fields that the command line gives.
#[derive(Debug)]
pub struct CreateFields(pub Vec<(&'static ConfigField, Given)>);

/// What an option gives.
#[derive(Debug)]
pub enum Given {
    /// A text or a word.
    Text(String),
    /// The file with a text.
    File(PathBuf),
    /// Texts, one for each time that the option is given.
    Texts(Vec<String>),
    /// Numbers as `NAME=NUMBER`, one for each time that the option is given.
    Numbers(Vec<String>),
    /// The file with a JSON object.
    Json(PathBuf),
}

/// The name of the option for a field.
fn name(field: &ConfigField) -> String {
    let own = NAMES.iter().find(|(name, _)| *name == field.name);
    own.map_or_else(|| field.name.replace('_', "-"), |(_, option)| (*option).to_owned())
}

/// The identifier of the option within the command, where `color` is the global option.
fn id(field: &ConfigField) -> String {
    format!("field.{}", field.name)
}

fn option(field: &ConfigField) -> Arg {
    let arg = Arg::new(id(field)).long(name(field));
    let about = field.about.trim_end_matches('.');
    if field.name == Fields::BODY {
        return arg
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!(
                "{about}, as the file has it, byte for byte; `-` is standard input"
            ));
    }
    match field.values {
        FieldValues::Words(words) => arg
            .value_name("WORD")
            .value_parser(PossibleValuesParser::new(words))
            .help(about.to_owned()),
        FieldValues::Texts { .. } => arg
            .value_name("TEXT")
            .action(ArgAction::Append)
            .help(format!("{about}. May be given more than once")),
        FieldValues::Numbers { .. } => arg
            .value_name("NAME=NUMBER")
            .action(ArgAction::Append)
            .help(format!("{about}. May be given more than once")),
        FieldValues::Object { .. } => arg
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!("{about}. The file has JSON; `-` is standard input")),
        _ => arg.value_name("TEXT").help(about.to_owned()),
    }
}

impl Args for CreateFields {
    fn augment_args(command: Command) -> Command {
        let fields = AgentConfig::fields();
        let group = ArgGroup::new("fields").multiple(true);
        command
            .args(fields.iter().map(option))
            .group(group.args(fields.iter().map(id)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for CreateFields {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |field: &ConfigField| {
            let id = &*id(field);
            let texts = || Some(matches.get_many(id)?.cloned().collect());
            match field.values {
                _ if field.name == Fields::BODY => matches.get_one(id).cloned().map(Given::File),
                FieldValues::Texts { .. } => texts().map(Given::Texts),
                FieldValues::Numbers { .. } => texts().map(Given::Numbers),
                FieldValues::Object { .. } => matches.get_one(id).cloned().map(Given::Json),
                _ => matches.get_one(id).cloned().map(Given::Text),
            }
        };
        let fields = AgentConfig::fields().iter();
        Ok(Self(fields.filter_map(|field| Some((field, given(field)?))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
