//! Certificates of tests, made with the program `openssl`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Makes `NAME.crt` and `NAME.key` in this directory, signed by itself or by an authority that was made there before.
/// `CN=NAME` is its subject, and `extensions` are those of `openssl req -addext`. Returns `false` without the program.
///
/// # Panics
///
/// When the program fails.
#[track_caller]
pub fn certificate(place: &Path, name: &str, authority: Option<&str>, extensions: &[&str]) -> bool {
    let file = |name: &str, end: &str| place.join(format!("{name}.{end}"));
    let mut command = Command::new("openssl");
    command
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}")]);
    for extension in extensions {
        command.args(["-addext", extension]);
    }
    if let Some(authority) = authority {
        command.arg("-CA").arg(file(authority, "crt"));
        command.arg("-CAkey").arg(file(authority, "key"));
    }
    command.arg("-keyout").arg(file(name, "key"));
    command.arg("-out").arg(file(name, "crt"));
    match command.output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) if error.kind() == ErrorKind::NotFound => return false,
        Err(error) => panic!("openssl: {error}"),
    }
    let readable = fs::Permissions::from_mode(0o644);
    fs::set_permissions(file(name, "crt"), readable).expect("the mode of a certificate");
    true
}
