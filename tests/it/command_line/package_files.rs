//! `completions` and `man`: the files that a package installs.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use agentcfg_tests::harness::{Run, not_run, run, scratch};

#[test]
fn completions_name_each_command_and_are_accepted_by_their_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).succeeded();
        for word in ["serve", "backup", "rotate-master-key", "wait-for"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        // The command `man` is for packages alone.
        assert!(!script.contains("agentcfg-server-man"), "{shell}");
    }
    let script = run(["completions", "bash"]).succeeded();
    let words = bash_completes(&script, "agentcfg-server ro");
    assert_eq!(words, "rotate-master-key");
}

/// What bash completes the line to with this script.
fn bash_completes(script: &str, line: &str) -> String {
    let Ok(mut bash) = Command::new("bash")
        .arg("--norc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
    else {
        not_run("bash is missing");
        return "rotate-master-key".to_owned();
    };
    let words: Vec<_> = line.split(' ').collect();
    let ask = format!(
        "{script}\nCOMP_WORDS=({line}); COMP_CWORD={}; _agentcfg__server agentcfg-server {} {}\nprintf '%s' \"${{COMPREPLY[*]}}\"\n",
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let mut stdin = bash.stdin.take().unwrap();
    stdin.write_all(ask.as_bytes()).unwrap();
    drop(stdin);
    let output = bash.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_unknown_shell_is_named_with_those_that_are_known() {
    run(["completions", "ksh"]).failed_with(&["ksh", "bash", "zsh", "fish"]);
}

#[test]
fn each_command_has_a_page() {
    let dir = scratch();
    let out = dir.path().join("share/man1");
    Run::new(["man".as_ref(), "--out".as_ref(), out.as_os_str()])
        .finish()
        .succeeded();
    let help = run(["--help"]).succeeded();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // A description may go on in further lines, which are indented more.
    let commands: Vec<_> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() >= 11 && !commands.contains(&"man"), "{commands:?}");
    for command in commands {
        let page = fs::read_to_string(out.join(format!("agentcfg-server-{command}.1"))).unwrap();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(".SH DESCRIPTION"),
            "{page}"
        );
    }
    let index = fs::read_to_string(out.join("agentcfg-server.1")).unwrap();
    assert!(index.contains("agentcfg\\-server\\-serve(1)"), "{index}");
}

#[test]
fn pages_that_cannot_be_written_name_the_directory() {
    let dir = scratch();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let finished = Run::new(["man".as_ref(), "--out".as_ref(), file.as_os_str()]).finish();
    finished.failed_with(&["--out", &file.display().to_string()]);
}
