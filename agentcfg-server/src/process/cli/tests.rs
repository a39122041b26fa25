use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn help_has_the_description_of_each_command() {
    for command in Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        assert!(command.get_long_about().is_some(), "{}", command.get_name());
    }
}

#[test]
fn the_documented_lines_parse() {
    for line in [
        "agentcfg-server dev",
        "agentcfg-server dev --listen 127.0.0.1:0",
        "agentcfg-server serve",
        "agentcfg-server serve --config a.toml --data d --listen [::1]:0",
        "agentcfg-server token --user u",
        "agentcfg-server token --user u --data d --ttl 86400",
        "agentcfg-server login-link --user u",
        "agentcfg-server login-link --user u --data d --config a.toml",
        "agentcfg-server mcp-config claude-code",
        "agentcfg-server mcp-config vscode --config a.toml",
        "agentcfg-server dev --config a.toml",
        "agentcfg-server token --user u --config a.toml",
        "agentcfg-server backup --config a.toml --out f",
        "agentcfg-server restore --config a.toml --from f",
        "agentcfg-server check --config a.toml",
        "agentcfg-server migrate --config a.toml --from d --to postgres",
        "agentcfg-server rotate-master-key --config a.toml",
        "agentcfg-server backup --data d --out f",
        "agentcfg-server restore --from f --data d",
        "agentcfg-server restore --from f --data d --discard-provider-keys",
        "agentcfg-server check --data d",
        "agentcfg-server compact --data d",
        "agentcfg-server compact --config a.toml",
        "agentcfg-server backup --data d --compress --out -",
        "agentcfg-server restore --from - --data d",
        "agentcfg-server migrate --from d --to postgres://h/d",
        "agentcfg-server serve --wait-for 30",
        "agentcfg-server healthcheck",
        "agentcfg-server healthcheck --config a.toml --data d --listen 127.0.0.1:0",
        "agentcfg-server check-config --config a.toml --data d --listen 127.0.0.1:0",
        "agentcfg-server completions bash",
        "agentcfg-server completions zsh",
        "agentcfg-server completions fish",
        "agentcfg-server man --out d",
        "agentcfg-server rotate-master-key --data d",
        "agentcfg-server rotate-master-key --data d --config a.toml --drop-old",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
}

#[test]
fn a_token_lives_between_a_second_and_a_day() {
    let Ok(Cli {
        command: Command::Token(args),
    }) = parse("x token --user u")
    else {
        panic!("token")
    };
    assert_eq!(args.ttl, 3600);
    for ttl in ["0", "86401", "-1", "1h"] {
        assert!(parse(&format!("x token --user u --ttl {ttl}")).is_err(), "{ttl}");
    }
}

#[test]
fn required_arguments_are_required() {
    for line in [
        "x",
        "x token",
        "x login-link",
        "x mcp-config",
        "x mcp-config other",
        "x backup --data d",
        "x restore --data d",
        "x serve extra",
        "x completions",
        "x completions ksh",
        "x man",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_tilde_that_no_shell_has_expanded_is_refused() {
    for line in [
        "x backup --out ~/copy",
        "x backup --out=~",
        "x restore --from ~/copy",
        "x man --out ~/man",
        "x migrate --from ~/data --to postgres",
        "x migrate --from postgres --to ~/data",
    ] {
        let error = parse(line).unwrap_err().to_string();
        assert!(error.contains("write the whole path"), "{line}: {error}");
    }
    assert!(parse("x backup --out ./~copy").is_ok());
}
