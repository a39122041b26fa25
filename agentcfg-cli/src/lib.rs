//! The command `agentcfg`: agents, versions, labels and keys from the command line, and agents as files in git.
//!
//! The library is the command without its `main`: [`run`] is all that it offers.

// `args` is the command line, `commands` runs it with the typed client, `agent_file` is the format of agents' files,
// `file` reads and writes them and their directory, `import` has the formats of other tools, `merge` combines two
// changes of one agent, `signals` is what an interruption removes, `session` and `credentials` choose the server and
// the key, and `output`, `terminal`, `usage` and `failure` are what the user sees.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

// The fuzz targets read files with it.
#[doc(hidden)]
pub mod agent_file;
mod args;
mod commands;
mod credentials;
mod failure;
mod file;
mod import;
mod merge;
mod output;
mod session;
mod signals;
mod terminal;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Arguments;
use crate::commands::Context;
use crate::failure::{Code, CommandFailure};

/// Runs the command line of this process, and returns its exit code.
///
/// # Examples
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     agentcfg_cli::run()
/// }
/// ```
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage::report(&error).into(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the runtime does not start: {error}");
            return Code::Error.into();
        }
    };
    let mut context = Context::new(&arguments.global);
    let is_directory = arguments.command.is_of_directory();
    let code = match runtime.block_on(commands::run(arguments.command, &mut context)) {
        Ok(code) => code,
        Err(failure) => {
            if !matches!(failure, CommandFailure::OutputClosed) {
                context.report(&failure);
            }
            match is_directory {
                true => failure.code_of_directory(),
                false => failure.code(),
            }
        }
    };
    // A thread that still reads standard input must not keep the process.
    runtime.shutdown_background();
    code.into()
}
