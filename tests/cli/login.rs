//! Signing in, and what becomes of secrets.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use agentcfg_tests::harness::{Server, Studio, command_binary};
use serde_json::json;

use crate::fixture::{Desk, said_by};

#[test]
fn a_login_keeps_the_credential_in_a_file_that_others_cannot_read() {
    let desk = Desk::open();
    let login = format!("login --url {}", desk.studio.server.url());
    let done = desk
        .bare(&login)
        .stdin(format!("{}\n", desk.credential))
        .finish()
        .exited(0);
    said_by(done, &["Signed in to http://127.0.0.1:"]);
    let file = desk.path("config/agentcfg/credentials.toml");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&desk.path("config/agentcfg")), 0o700);

    desk.studio.create("writer", &json!({})).expect(201);
    let listed = desk.bare("agents list").finish().succeeded();
    assert!(listed.contains("writer"), "{listed}");
    let whoami = desk.bare("whoami").finish().succeeded();
    assert!(
        whoami.contains("scope admin") && whoami.contains("from `agentcfg login`"),
        "{whoami}"
    );
    // The environment wins.
    let other = Desk::open();
    let listed = desk
        .run("agents list --output json")
        .env("AGENTCFG_API_KEY", &other.credential)
        .finish();
    assert_eq!(listed.succeeded().trim(), "[]");
    // A second login replaces the file, and its mode stays.
    desk.bare(&login).stdin(&other.credential).finish().exited(0);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(desk.bare("agents list --output json").finish().succeeded().trim(), "[]");

    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    said_by(
        desk.bare("whoami").finish().exited(0),
        &["other users can read", "chmod 600"],
    );
    desk.bare("logout").finish().exited(0);
    assert!(!file.exists());
    desk.bare("logout").finish().exited(0);
    said_by(
        desk.bare("agents list").finish().exited(3),
        &["you are not signed in", "agentcfg login"],
    );
}

#[test]
fn a_login_that_fails_keeps_what_was_there() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    desk.bare(&format!("login --url {url}"))
        .stdin(&desk.credential)
        .finish()
        .exited(0);
    let wrong = desk.credential.replace("svc_test_", "svc_live_");
    said_by(
        desk.bare("login").stdin(wrong).finish().exited(3),
        &["one of another server"],
    );
    desk.bare("login").stdin("\n").finish().exited(3);
    desk.bare("login").finish().exited(3);
    desk.bare("login --url ftp://host").stdin("x").finish().exited(1);
    said_by(
        desk.bare("login --url http://127.0.0.1:1")
            .stdin("svc_test_x")
            .finish()
            .exited(1),
        &["http://127.0.0.1:1 (from --url)", "agentcfg-server dev"],
    );
    desk.bare("whoami").finish().exited(0);
}

#[test]
fn a_login_whose_file_cannot_be_written_says_so_and_no_more() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    let login = desk
        .bare(&format!("login --url {url}"))
        .env("HOME", "/proc")
        .env("XDG_CONFIG_HOME", "/proc");
    let said = login.stdin(&desk.credential).finish().exited(1);
    said_by(said, &["was not saved", "AGENTCFG_URL and AGENTCFG_API_KEY"]);
}

#[test]
fn a_stored_key_is_never_sent_to_another_server() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    desk.bare(&format!("login --url {url}"))
        .stdin(&desk.credential)
        .finish()
        .exited(0);
    let other = desk
        .bare("whoami")
        .env("AGENTCFG_URL", "http://127.0.0.1:1")
        .finish()
        .exited(3);
    said_by(other, &["AGENTCFG_URL names another server than http://127.0.0.1:"]);
    let with_password = desk.bare("whoami").env("AGENTCFG_URL", "http://user:pass@host");
    assert!(!with_password.finish().exited(3).stderr.contains("pass@"));
    desk.bare("whoami")
        .env("AGENTCFG_URL", format!("{url}/"))
        .finish()
        .exited(0);
}

#[test]
fn a_user_of_several_workspaces_names_one() {
    let studio = Studio::open();
    let sibling = studio.sibling();
    let mut desk = Desk::at(studio);
    desk.credential = desk.studio.owner.clone();
    let sibling = sibling.id.to_string();
    said_by(
        desk.run("agents list").finish().exited(1),
        &["several workspaces", &sibling, "--workspace ID"],
    );
    desk.ok(&format!(
        "agents create writer --display-name Writer --workspace {sibling}"
    ));
    let listed = desk
        .run("agents list")
        .env("AGENTCFG_WORKSPACE", &sibling)
        .finish()
        .succeeded();
    assert!(listed.contains("writer"), "{listed}");
    desk.fails("agents list --workspace x", 1, &["workspace must be a UUID"]);
}

#[test]
fn a_new_key_alone_is_on_standard_output() {
    let mut desk = Desk::open();
    desk.fails(
        "keys create nightly --scope read",
        3,
        &["session token", "Sign in as a user"],
    );
    desk.credential = desk.studio.owner.clone();
    let workspace = desk.studio.id.to_string();
    let create = format!("keys create nightly --scope read --expires-at 2099-01-01T00:00:00Z --workspace {workspace}");
    let created = desk.run(&create).finish().exited(0);
    let key = created.stdout.strip_suffix('\n').unwrap();
    assert!(
        key.starts_with("svc_test_") && !key.contains(char::is_whitespace),
        "{created:?}"
    );
    assert!(!created.stderr.contains(key));
    let listed = desk
        .run("agents list --output json")
        .env("AGENTCFG_API_KEY", key)
        .finish()
        .succeeded();
    assert_eq!(listed.trim(), "[]");

    let id = &key["svc_test_".len()..][..20];
    let rotated = desk.run(&format!("keys rotate {id}")).finish().exited(0).stdout;
    desk.run("whoami").env("AGENTCFG_API_KEY", key).finish().exited(3);
    let rotated = rotated.trim();
    desk.run("whoami").env("AGENTCFG_API_KEY", rotated).finish().exited(0);
    // The key itself, in place of its identifier, is not sent and not repeated.
    for command in ["keys revoke --yes", "keys rotate"] {
        let identifier = &rotated["svc_test_".len()..][..20];
        let refused = desk.fails(&format!("{command} {rotated}"), 64, &["nothing was sent", identifier]);
        assert!(!format!("{:?}", refused.stderr).contains(rotated), "{refused:?}");
    }
    desk.run("whoami").env("AGENTCFG_API_KEY", rotated).finish().exited(0);
    let revoke = format!("keys revoke {} --yes", &rotated["svc_test_".len()..][..20]);
    desk.ok(&revoke);
    desk.run("whoami").env("AGENTCFG_API_KEY", rotated).finish().exited(3);
    desk.fails(&revoke, 4, &["error"]);
    let json: serde_json::Value = serde_json::from_str(&desk.ok(&format!("{create} --output json"))).unwrap();
    assert!(json["key"].as_str().unwrap().starts_with("svc_test_"));
    let list = desk.ok(&format!("keys list --workspace {workspace}"));
    assert!(list.contains("nightly") && !list.contains("svc_"), "{list}");
}

#[test]
fn a_key_that_cannot_be_printed_is_named_for_its_revocation() {
    let mut desk = Desk::open();
    desk.credential = desk.studio.owner.clone();
    for (arguments, to) in [("", "/dev/full"), (" --output json", "/dev/full"), ("", "closed")] {
        let mut create = Command::new(command_binary());
        create
            .args(
                format!(
                    "keys create nightly --scope read --workspace {}{arguments}",
                    desk.studio.id
                )
                .split(' '),
            )
            .env("XDG_CONFIG_HOME", desk.path("config"))
            .env("AGENTCFG_URL", desk.studio.server.url())
            .env("AGENTCFG_API_KEY", &desk.credential);
        let stdout = match to {
            "closed" => Stdio::from(std::io::pipe().unwrap().1),
            path => Stdio::from(fs::File::options().write(true).open(path).unwrap()),
        };
        let done = create.stdin(Stdio::null()).stdout(stdout).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{said}");
        let (_, rest) = said.split_once("agentcfg keys revoke ").unwrap();
        let id = &rest[..20];
        assert!(
            said.contains(&format!("error: the key {id} exists, and could not be printed")),
            "{said}"
        );
        desk.ok(&format!("keys revoke {id} --yes"));
    }
}

#[test]
fn no_failure_shows_the_credential() {
    let desk = Desk::open();
    let mut canaries = vec![desk.credential.clone(), desk.studio.owner.clone()];
    canaries.push(desk.credential.replace("svc_test_", "svc_live_"));
    for canary in &canaries {
        for line in [
            "whoami",
            "agents get nope",
            "keys create x --scope admin",
            "plan nowhere",
            "label set a b 1",
            "watch --after x",
        ] {
            let run = desk.run(line).env("AGENTCFG_API_KEY", canary);
            let finished = run.env("RUST_BACKTRACE", "1").env("RUST_LOG", "trace").finish();
            assert!(!format!("{finished:?}").contains(canary.as_str()), "{line}");
        }
        for url in [
            "http://127.0.0.1:1",
            "https://127.0.0.1:1",
            "nonsense",
            "http://user:pass@host",
        ] {
            let finished = desk
                .run("agents list")
                .env("AGENTCFG_URL", url)
                .env("AGENTCFG_API_KEY", canary)
                .finish();
            let said = format!("{finished:?}");
            assert!(
                !finished.status.success() && !said.contains(canary.as_str()) && !said.contains("user:pass"),
                "{said}"
            );
        }
        // In the wrong place: it is in the line of the shell, and must not be in a log too.
        for arguments in [
            &["login", canary][..],
            &[canary],
            &["agents", "get", "writer", canary],
            &["agents", "list", canary],
        ] {
            let finished = desk.bare_with(arguments).finish().exited(64);
            assert!(!finished.stderr.contains(canary.as_str()), "{}", finished.stderr);
            assert!(
                finished.stderr.contains("never from the command line"),
                "{}",
                finished.stderr
            );
        }
        desk.bare("login")
            .stdin(canary)
            .env("AGENTCFG_URL", desk.studio.server.url())
            .finish();
        let opaque = desk.bare("login dGhlIG9wYXF1ZQ").finish().exited(64);
        assert!(!opaque.stderr.contains("dGhl"), "{}", opaque.stderr);
        let broken = desk.path("config/agentcfg/credentials.toml");
        fs::create_dir_all(broken.parent().unwrap()).unwrap();
        fs::write(&broken, format!("url = \"x\"\napi_key = {canary}\n")).unwrap();
        let finished = desk.bare("whoami").finish().exited(1);
        assert!(!finished.stderr.contains(canary.as_str()), "{}", finished.stderr);
        fs::remove_file(broken).unwrap();
    }
}

#[test]
fn a_credential_with_a_line_break_is_taken_and_one_with_its_scheme_is_explained() {
    let desk = Desk::open();
    let with = |credential: String| desk.run("whoami").env("AGENTCFG_API_KEY", credential).finish();
    with(format!("{}\n", desk.credential)).exited(0);
    said_by(
        with(format!("Bearer {}", desk.credential)).exited(1),
        &["begins with the word Bearer", "alone"],
    );
    let (start, end) = desk.credential.split_at(20);
    said_by(with(format!("{start} {end}")).exited(1), &["white space within"]);
    said_by(
        with(" \n".to_owned()).exited(3),
        &["AGENTCFG_API_KEY has white space alone"],
    );
}

#[test]
fn a_wrong_url_is_told_from_a_server_that_is_down() {
    let desk = Desk::open();
    let url = desk.studio.server.url();
    let (_, address) = url.split_once("://").unwrap();
    for (given, code, said) in [
        (address.to_owned(), 1, "such as http://127.0.0.1:7420"),
        (format!("https://{address}"), 1, "its URL begins with http://"),
        (format!("{url}/api"), 4, "without /api"),
        ("http://127.0.0.1:1".to_owned(), 1, "Start a server there"),
    ] {
        let login = desk.bare(&format!("login --url {given}")).stdin(&desk.credential);
        said_by(login.finish().exited(code), &[said]);
    }
    // Commands say what the login says.
    let whoami = desk.run("whoami").env("AGENTCFG_URL", format!("{url}/api"));
    said_by(whoami.finish().exited(4), &["without /api"]);
    // A server that is none of agentcfg.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
        }
    });
    let said = format!("The server is {other} (from AGENTCFG_URL).");
    let whoami = desk.run("whoami").env("AGENTCFG_URL", &other);
    said_by(
        whoami.finish().exited(1),
        &[&said, "Another program than agentcfg-server"],
    );
    let login = desk.bare(&format!("login --url {other}")).stdin(&desk.credential);
    said_by(login.finish().exited(1), &["no agentcfg-server answers at"]);
    // A server whose certificate is of an authority that only the file names.
    let authority = include_str!("../../agentcfg-client/src/tests/tls/ca.pem");
    let certificate = include_str!("../../agentcfg-client/src/tests/tls/localhost.pem");
    let key = include_str!("../../agentcfg-client/src/tests/tls/localhost.key");
    let key = desk.write("key.pem", key);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::builder()
        .set("tls_cert", desk.write("cert.pem", certificate))
        .set("tls_key", key)
        .start();
    let whoami = || {
        desk.run("whoami")
            .env("AGENTCFG_URL", format!("https://{}", server.address()))
    };
    let untrusted = said_by(whoami().finish().exited(1), &["UnknownIssuer", "AGENTCFG_CA_FILE"]);
    assert!(!untrusted.stderr.contains("Start a server"), "{untrusted:?}");
    let trusted = whoami().env("AGENTCFG_CA_FILE", desk.write("authority.pem", authority));
    trusted.finish().exited(3);
    let no_certificate = desk.write("ca.pem", "nothing");
    let run = desk.run("whoami").env("AGENTCFG_CA_FILE", no_certificate);
    said_by(
        run.finish().exited(1),
        &["AGENTCFG_CA_FILE", "ca.pem", "no certificate"],
    );
}

#[test]
fn a_file_in_place_of_a_directory_is_named() {
    let desk = Desk::open();
    desk.write("plain", "x");
    desk.fails("export plain", 1, &["plain must be a directory"]);
    desk.fails("apply plain", 1, &["plain must be a directory"]);
    desk.fails(
        "watch --after start --limit 1 --cursor-file gone/cursor",
        1,
        &["the directory gone does not exist"],
    );
}
