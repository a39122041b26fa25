//! The commands, one file for each noun.

mod actors;
mod agents;
mod audit;
mod budgets;
mod context;
mod contexts;
mod directory;
mod edit;
mod export;
mod export_format;
mod export_versions;
mod hint;
mod import;
mod import_apply;
mod import_files;
mod import_history;
mod import_labels;
mod import_plan;
mod import_report;
mod importer;
mod keys;
mod labels;
mod login;
mod operator;
mod package_files;
mod plan;
mod prune;
mod status;
mod usage;
mod validate;
mod versions;
mod watch;

use crate::agent_file::Markers;
use crate::args::Command;
use crate::failure::{Code, Result};

pub use self::context::Context;

/// Runs a command.
pub async fn run(command: Command, context: &mut Context) -> Result<Code> {
    match command {
        Command::Login { url } => login::login(context, url).await,
        Command::Logout => login::logout(context),
        Command::Context(command) => contexts::run(context, command).await,
        Command::Whoami => login::whoami(context).await,
        Command::Agents(command) => agents::run(context, command).await,
        Command::Versions { agent, limit, before } => versions::list(context, &agent.agent, limit, before).await,
        Command::Diff { agent, from, to } => versions::diff(context, &agent.agent, &from, &to).await,
        Command::Rollback { agent, to, reason } => versions::roll_back(context, &agent.agent, &to, &reason).await,
        Command::Label(command) => labels::run(context, command).await,
        Command::Status => status::list(context).await,
        Command::Keys(command) => keys::run(context, command).await,
        Command::Operator(command) => operator::run(context, command).await,
        Command::Audit(filter) => audit::list(context, filter).await,
        Command::Usage(filter) => usage::list(context, filter).await,
        Command::Budgets(command) => budgets::run(context, command).await,
        Command::Watch(watch) => watch::run(context, watch).await,
        Command::Export {
            dir,
            format: Some(format),
            strict,
            from,
            allow_conflict_markers,
            overwrite,
            ..
        } => {
            let from = from
                .as_deref()
                .map(|from| (from, Markers::allowed_if(allow_conflict_markers)));
            let arguments = export_format::Arguments {
                format: &format,
                dir: &dir,
                from,
                strict,
                overwrite,
            };
            export_format::run(context, arguments).await
        }
        Command::Export { dir, set, prune, .. } => export::run(context, &dir, set.as_deref(), prune).await,
        Command::Import(arguments) => import::run(context, &arguments).await,
        Command::Plan(directory) => directory::plan(context, &directory).await,
        Command::Apply(arguments) if arguments.dry_run => directory::dry_run(context, &arguments).await,
        Command::Apply(arguments) => directory::apply(context, &arguments).await,
        Command::Validate { dir, conflicts } => validate::run(context, &dir, conflicts.markers()),
        Command::Completions { shell } => package_files::completions(context, shell),
        Command::Man { out } => package_files::manual(&out),
    }
}

impl Command {
    /// Whether the command works on a directory of files, with the exit codes 0, 1, 2 and 5 alone.
    pub fn is_of_directory(&self) -> bool {
        matches!(
            self,
            Self::Export { .. } | Self::Import(_) | Self::Plan(_) | Self::Apply(_) | Self::Validate { .. }
        )
    }
}
