//! What a person at a terminal sees and is asked.

use agentcfg_tests::harness::{Finished, Run, command_binary, not_run};
use serde_json::json;

use crate::fixture::Desk;

/// Runs a line of the shell on a terminal of 60 columns, with these keys pressed. The outputs come together, as on a
/// screen.
fn on_terminal(desk: &Desk, line: &str, keys: &str) -> Option<Finished> {
    if !Run::new(["--version"])
        .binary("script")
        .try_finish()
        .is_ok_and(|found| found.status.success())
    {
        not_run("script is missing; install it with: apt-get install bsdutils");
        return None;
    }
    let line =
        format!("stty rows 24 cols 60; {line}").replace("agentcfg ", &format!("{} ", command_binary().display()));
    let run = Run::new(["--quiet", "--return", "--command", &line, "/dev/null"]).binary("script");
    let run = run
        .in_dir(desk.path("."))
        .env("XDG_CONFIG_HOME", desk.path("config"))
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh");
    let run = run
        .env("AGENTCFG_URL", desk.studio.server.url())
        .env("AGENTCFG_API_KEY", &desk.credential);
    Some(run.stdin(keys).finish())
}

fn desk() -> Desk {
    let desk = Desk::open();
    let fields = json!({"display_name": "A name that is much too long for a narrow terminal", "model": "gpt-5"});
    desk.studio.create("writer", &fields).expect(201);
    desk.write("agents/writer.md", "---\ndisplay_name: Writer\n---\n");
    desk
}

fn name(desk: &Desk) -> String {
    desk.studio.list().json()[0]["display_name"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn an_apply_asks_after_it_has_shown_the_changes() {
    let desk = desk();
    let Some(refused) = on_terminal(&desk, "agentcfg apply agents", "n\n") else {
        return;
    };
    let refused = refused.exited(1);
    for said in [
        "update",
        "writer",
        "-> ",
        "Plan: 1 to update.",
        "Apply these changes? [y/N]",
        "nothing was changed",
    ] {
        assert!(refused.stdout.contains(said), "{said}: {refused:?}");
    }
    assert!(name(&desk).starts_with("A name"));
    on_terminal(&desk, "agentcfg apply agents", "y\n").unwrap().exited(0);
    assert_eq!(name(&desk), "Writer");
    // With JSON alone on standard output, the question comes after a summary.
    desk.studio
        .change("writer", &json!({"display_name": "Other"}))
        .expect(200);
    let refused = on_terminal(&desk, "agentcfg apply agents -o json > out", "n\n").unwrap();
    let said = refused.exited(1).stdout;
    assert!(said.contains("Plan: 1 to update.") && said.contains("[y/N]"), "{said}");
    assert_eq!((desk.read("out").as_str(), name(&desk).as_str()), ("", "Other"));
    // Without a question, and with nothing to read.
    desk.studio
        .change("writer", &json!({"display_name": "Other"}))
        .expect(200);
    on_terminal(&desk, "agentcfg apply agents --yes", "").unwrap().exited(0);
    assert_eq!(name(&desk), "Writer");
}

#[test]
fn a_deletion_asks() {
    let desk = desk();
    let Some(refused) = on_terminal(&desk, "agentcfg agents delete writer", "n\n") else {
        return;
    };
    assert!(refused.exited(1).stdout.contains("Delete writer (A name that is much"));
    assert_eq!(desk.studio.agent_ids(), ["writer"]);
    on_terminal(&desk, "agentcfg agents delete writer", "yes\n")
        .unwrap()
        .exited(0);
    assert!(desk.studio.agent_ids().is_empty());
}

#[test]
fn a_table_fits_the_terminal_and_has_colours_unless_they_are_unwanted() {
    let desk = desk();
    let Some(shown) = on_terminal(&desk, "agentcfg agents list", "") else {
        return;
    };
    let shown = shown.exited(0).stdout;
    assert!(shown.contains("\u{1b}[1mAGENT") && shown.contains('…'), "{shown:?}");
    let plain = on_terminal(&desk, "NO_COLOR=1 agentcfg agents list", "")
        .unwrap()
        .exited(0)
        .stdout;
    assert!(plain.contains("AGENT") && !plain.contains('\u{1b}'), "{plain:?}");
    for line in plain.lines() {
        assert!(line.trim_end().chars().count() <= 60, "{line:?}");
    }
    let piped = on_terminal(&desk, "agentcfg agents list | cat", "")
        .unwrap()
        .exited(0)
        .stdout;
    assert!(
        piped.contains("A name that is much too long for a narrow terminal"),
        "{piped:?}"
    );
}

#[test]
fn control_characters_of_a_text_do_not_reach_a_terminal() {
    let desk = desk();
    let persona = json!({"persona_prompt": "\u{1b}]0;title\u{7} \u{9b}2J\u{7f}"});
    desk.studio.change("writer", &persona).expect(200);
    for (line, said) in [
        ("agentcfg agents get writer", "\\u{1b}]0;title\\u{7} \\u{9b}2J\\u{7f}"),
        (
            "agentcfg agents get writer -o json",
            "\\u001b]0;title\\u0007 \\u009b2J\\u007f",
        ),
    ] {
        let Some(shown) = on_terminal(&desk, line, "") else {
            return;
        };
        let shown = shown.exited(0).stdout;
        assert!(shown.contains(said), "{shown:?}");
        let is_raw = |c: char| c.is_control() && !matches!(c, '\r' | '\n');
        assert!(!shown.contains(is_raw), "{shown:?}");
    }
}

#[test]
fn progress_is_for_terminals() {
    let desk = desk();
    let Some(shown) = on_terminal(&desk, "agentcfg plan agents", "") else {
        return;
    };
    assert!(shown.exited(2).stdout.contains("Comparing with the server"));
    assert!(!desk.run("plan agents").finish().exited(2).stderr.contains("Comparing"));
}

#[test]
fn a_login_asks_for_the_server_and_the_key() {
    let desk = desk();
    let keys = format!("{}\n{}\n", desk.studio.server.url(), desk.credential);
    let line = "unset AGENTCFG_URL AGENTCFG_API_KEY; agentcfg login && agentcfg agents list";
    let Some(done) = on_terminal(&desk, line, &keys) else {
        return;
    };
    let done = done.exited(0).stdout;
    // The keys are pressed, and shown by the terminal, before the command can turn that off.
    let (_, said) = done.split_once("Server [http://127.0.0.1:7420]").unwrap();
    assert!(
        said.contains("API key or session token: ") && said.contains("Signed in to"),
        "{done}"
    );
    assert!(said.contains("writer") && !said.contains(&desk.credential), "{done}");
}

#[test]
fn a_signal_at_the_hidden_prompt_leaves_a_terminal_that_echoes() {
    let desk = desk();
    if on_terminal(&desk, "true", "").is_none() {
        return;
    }
    // The signal is given once the prompt is there, and again until it has taken it. The shell survives it.
    let login = "trap : INT; unset AGENTCFG_API_KEY; sh -c \"echo \\$\\$ > pid; exec $AGENTCFG login\"; code=$?; \
        touch done; sleep 0.5; echo code $code; stty -a";
    for (signal, code) in [("printf '\\003'", 130), ("kill $(cat pid) >&2", 143)] {
        let keys = format!("until test -e done; do grep -q token: shown && {signal}; sleep 0.2; done");
        let line =
            format!("rm -f done; : > shown; ({keys}; sleep 3) | script --quiet --flush --command '{login}' shown");
        let run = Run::new(["-c", &line]).binary("sh").in_dir(desk.path("."));
        let run = run
            .env("AGENTCFG", command_binary())
            .env("AGENTCFG_URL", desk.studio.server.url())
            .env("XDG_CONFIG_HOME", desk.path("config"))
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh");
        let shown = run.finish().stdout;
        assert!(shown.contains(&format!("code {code}\r\n")), "{shown}");
        assert!(shown.contains(" echo ") && !shown.contains("-echo "), "{shown}");
    }
}
