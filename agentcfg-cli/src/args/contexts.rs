//! The command line of `agentcfg context`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Contexts {
    /// List the contexts. The one in use has a star.
    List,
    /// Show the server and the workspace of a context.
    Show {
        /// The context; the one in use if it is left out.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Use a context from now on.
    #[command(after_help = "\
Examples:
  agentcfg context use staging
  agentcfg context use default        # the server of `agentcfg login`
  agentcfg --context production whoami  # for one command alone")]
    Use {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Add a context, or replace it. The API key or session token is read from standard input. With --workspace, commands work in
    /// that workspace.
    #[command(after_help = "\
Examples:
  agentcfg context add staging --url https://staging.example.com
  agentcfg context add production --url https://agents.example.com < key.txt")]
    Add {
        /// 1 to 50 of a-z, 0-9, - and _.
        #[arg(value_name = "NAME")]
        name: String,
        /// The server, such as http://127.0.0.1:7420.
        #[arg(long, value_name = "URL")]
        url: String,
    },
    /// Forget a context.
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
}
