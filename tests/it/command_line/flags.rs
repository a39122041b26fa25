//! Command-line arguments, and the messages about invalid ones.

use std::net::TcpListener;

use agentcfg_tests::harness::{Run, run, scratch};

#[test]
fn without_a_command_the_help_is_printed() {
    let finished = run([""; 0]);
    assert!(!finished.status.success());
    for command in ["dev", "serve", "token", "backup", "restore", "check"] {
        assert!(finished.stderr.contains(command), "{finished:?}");
    }
}

#[test]
fn help_and_version_succeed_and_show_examples() {
    let help = run(["--help"]).succeeded();
    assert!(help.contains("AGENTCFG_<KEY>"), "{help}");
    assert!(run(["--version"]).succeeded().contains(env!("CARGO_PKG_VERSION")));
    for command in ["dev", "serve", "token", "backup", "restore", "check"] {
        let help = run([command, "--help"]).succeeded();
        assert!(
            help.contains(&format!("agentcfg-server {command}")),
            "an example: {help}"
        );
    }
}

#[test]
fn an_unknown_command_or_flag_is_named_with_a_suggestion() {
    run(["srve"]).failed_with(&["srve", "serve"]);
    run(["serve", "--lisen", "127.0.0.1:0"]).failed_with(&["--lisen", "--listen"]);
    run(["serve", "now"]).failed_with(&["now"]);
    run(["token", "--user", "u", "--admin"]).failed_with(&["--admin"]);
}

#[test]
fn a_missing_argument_is_named() {
    for (arguments, missing) in [
        (&["token"][..], "--user"),
        (&["token", "--user"], "--user"),
        (&["token", "--user", ""], "--user"),
        (&["backup", "--data", "x"], "--out"),
        (&["backup", "--out", "x"], "--data"),
        (&["restore", "--data", "x"], "--from"),
        (&["restore", "--from", "x"], "--data"),
        (&["check"], "--data"),
        (&["serve", "--data"], "--data"),
    ] {
        let dir = scratch();
        Run::new(arguments).in_dir(&dir).finish().failed_with(&[missing]);
        assert_eq!(
            std::fs::read_dir(&dir).unwrap().count(),
            0,
            "{arguments:?} left files behind"
        );
    }
}

#[test]
fn an_invalid_address_is_shown_with_a_valid_example() {
    for address in [
        "nonsense",
        "127.0.0.1",
        "127.0.0.1:99999",
        "256.0.0.1:1",
        "localhost:80",
        ":80",
        "",
    ] {
        let dir = scratch();
        let finished = Run::new(["serve", "--listen", address]).in_dir(&dir).finish();
        finished.failed_with(&["--listen", "127.0.0.1:7420", address]);
        assert!(
            !dir.path().join("agentcfg-data").exists(),
            "a mistake makes no data directory"
        );
    }
}

#[test]
fn a_port_in_use_is_named_with_a_remedy() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    for command in ["serve", "dev"] {
        let dir = scratch();
        let finished = Run::new([command, "--listen", &taken.to_string()])
            .in_dir(&dir)
            .finish();
        finished.failed_with(&[&taken.to_string(), "in use", "choose another", "--listen"]);
        assert!(
            !dir.path().join("agentcfg-data").exists(),
            "a mistake makes no data directory"
        );
    }
}

#[test]
fn an_address_that_is_not_local_is_named() {
    let dir = scratch();
    let finished = Run::new(["serve", "--listen", "192.0.2.1:7420"]).in_dir(&dir).finish();
    finished.failed_with(&["192.0.2.1:7420", "--listen"]);
}
