//! `mcp-config`: prints how to connect an AI client.

use std::process::ExitCode;

use serde_json::json;

use super::error::CommandError;
use super::healthcheck::served_on;
use super::stdout::print;
use crate::process::cli::{McpClient, McpConfigArgs};
use crate::process::config::{Config, Flags};

pub(super) fn run(args: &McpConfigArgs) -> Result<ExitCode, CommandError> {
    let config = Config::load(Flags::from(args), std::env::vars_os())?;
    print(&lines(args.client, &format!("{}/mcp", base(&config)?)))?;
    Ok(ExitCode::SUCCESS)
}

/// The URL of the server, whose port may be one that it has chosen.
fn base(config: &Config) -> Result<String, CommandError> {
    let address = match config.listen.port() {
        0 if config.public_url.is_none() => {
            served_on(config, "name the address with AGENTCFG_LISTEN, or set public_url")?
        }
        _ => config.listen,
    };
    Ok(config.base_url(address))
}

fn lines(client: McpClient, url: &str) -> String {
    match client {
        McpClient::ClaudeCode => format!(
            // In single quotes, so that the shell leaves the variable to the client, which replaces it in the project's
            // .mcp.json alone.
            "claude mcp add --scope project --transport http agentcfg {url} --header 'Authorization: Bearer ${{AGENTCFG_API_KEY}}'\n"
        ),
        McpClient::Cursor => {
            let headers = json!({"Authorization": "Bearer ${env:AGENTCFG_API_KEY}"});
            let servers = json!({"mcpServers": {"agentcfg": {"url": url, "headers": headers}}});
            format!("// ~/.cursor/mcp.json\n{servers:#}\n")
        }
        McpClient::Vscode => {
            let headers = json!({"Authorization": "Bearer ${input:agentcfg-key}"});
            let input = json!({
                "type": "promptString", "id": "agentcfg-key", "description": "API key of agentcfg", "password": true,
            });
            let servers = json!({
                "inputs": [input],
                "servers": {"agentcfg": {"type": "http", "url": url, "headers": headers}},
            });
            format!("// .vscode/mcp.json\n{servers:#}\n")
        }
        McpClient::Codex => format!(
            "# ~/.codex/config.toml\n[mcp_servers.agentcfg]\nurl = \"{url}\"\nbearer_token_env_var = \"AGENTCFG_API_KEY\"\n"
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use serde_json::Value;

    use super::*;
    use crate::process::datadir::{DataDir, TokenSource};

    const URL: &str = "https://agents.example.com/mcp";

    #[test]
    fn each_client_gets_the_url_and_no_key() {
        for client in McpClient::value_variants() {
            let lines = lines(*client, URL);
            assert!(lines.contains(URL) && !lines.contains("svc_"), "{lines}");
        }
    }

    #[test]
    fn no_port_is_printed_that_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            data: dir.path().to_owned(),
            ..Config::default()
        };
        let unknown = base(&config).unwrap_err().to_string();
        assert!(
            unknown.contains("AGENTCFG_LISTEN") && unknown.contains("public_url"),
            "{unknown}"
        );
        let mut lock = DataDir::open(dir.path()).unwrap().lock().unwrap();
        lock.announce("127.0.0.1:1234", TokenSource::Directory).unwrap();
        assert_eq!(base(&config).unwrap(), "http://127.0.0.1:1234");
        config.public_url = Some("https://agents.example.com".to_owned());
        assert_eq!(base(&config).unwrap(), "https://agents.example.com");
    }

    #[test]
    fn no_shell_replaces_the_variable_of_the_key() {
        let line = lines(McpClient::ClaudeCode, URL).replace("claude mcp add", "printf '%s|'");
        let shell = std::process::Command::new("sh")
            .args(["-c", &line])
            .env("AGENTCFG_API_KEY", "svc_live_secret")
            .output()
            .unwrap();
        let given = String::from_utf8(shell.stdout).unwrap();
        assert!(
            given.ends_with("|Authorization: Bearer ${AGENTCFG_API_KEY}|"),
            "{given}"
        );
    }

    #[test]
    fn files_can_be_read_by_their_clients() {
        for client in [McpClient::Cursor, McpClient::Vscode] {
            let lines = lines(client, URL);
            let (_, json) = lines.split_once('\n').unwrap();
            serde_json::from_str::<Value>(json).unwrap();
        }
        let codex: toml::Table = toml::from_str(&lines(McpClient::Codex, URL)).unwrap();
        assert_eq!(codex["mcp_servers"]["agentcfg"]["url"].as_str(), Some(URL));
    }
}
