//! Tests of the certificate, on files.

use std::os::unix::fs::PermissionsExt;

use super::*;

const CERT: &str = include_str!("../../outbound/tls/localhost.pem");
const KEY: &str = include_str!("../../outbound/tls/localhost.key");
/// A certificate for another key.
const OTHER: &str = include_str!("../../outbound/tls/ca.pem");

/// A time in the validity of these certificates.
fn now() -> Timestamp {
    SystemClock.now()
}

struct Fixture {
    dir: tempfile::TempDir,
    config: Config,
}

impl Fixture {
    fn new(cert: &str, key: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            tls_cert: Some(dir.path().join("cert.pem")),
            tls_key: Some(dir.path().join("key.pem")),
            ..Config::default()
        };
        let fixture = Self { dir, config };
        fixture.put("cert.pem", cert);
        fixture.put("key.pem", key);
        fixture
    }

    /// Replaces a file, so that its inode changes.
    fn put(&self, name: &str, text: &str) {
        let draft = self.dir.path().join("draft");
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(&draft, self.dir.path().join(name)).unwrap();
    }

    fn load(&self) -> Result<Arc<Certificate>, String> {
        let loaded = Certificate::load(&self.config).map_err(|error| error.to_string())?;
        Ok(loaded.unwrap())
    }

    #[track_caller]
    fn refused(&self, said: &[&str]) {
        let message = self.load().unwrap_err();
        assert!(said.iter().all(|said| message.contains(said)), "{message}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_reason() {
    assert!(Certificate::load(&Config::default()).unwrap().is_none());
    assert!(Fixture::new(CERT, KEY).load().is_ok());
    Fixture::new("nothing", KEY).refused(&["tls_cert", "cert.pem", "certificate", "PEM"]);
    Fixture::new(CERT, CERT).refused(&["tls_key", "key.pem", "private key"]);
    Fixture::new(OTHER, KEY).refused(&["tls_key", "key.pem", "is not that of", "cert.pem"]);
    let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    Fixture::new(damaged, KEY).refused(&["tls_cert", "cert.pem", "cannot be used"]);
    let fixture = Fixture::new(CERT, KEY);
    fs::remove_file(fixture.dir.path().join("key.pem")).unwrap();
    fixture.refused(&["tls_key", "key.pem", "cannot read"]);
    fs::create_dir(fixture.dir.path().join("key.pem")).unwrap();
    fixture.refused(&["tls_key", "no regular file"]);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let fixture = Fixture::new(CERT, KEY);
    let key = fixture.dir.path().join("key.pem");
    for mode in [0o640, 0o604, 0o644, 0o660] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        fixture.refused(&["tls_key", &format!("{mode:03o}"), "chmod 600"]);
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(fixture.load().is_ok());
}

#[test]
fn renewed_files_are_taken_once_they_do_not_change_any_more() {
    let fixture = Fixture::new(CERT, KEY);
    let certificate = fixture.load().unwrap();
    let mut renewal = Renewal::new(Arc::clone(&certificate));
    assert!(matches!(renewal.look(now()), Looked::InUse));
    assert!(matches!(renewal.look(now()), Looked::Nothing));
    let chain = format!("{CERT}{OTHER}");
    fixture.put("cert.pem", &chain);
    assert!(matches!(renewal.look(now()), Looked::Nothing));
    fixture.put("key.pem", KEY);
    assert!(matches!(renewal.look(now()), Looked::Nothing));
    assert_eq!(certificate.current().cert.len(), 1);
    assert!(matches!(renewal.look(now()), Looked::Taken));
    assert_eq!(certificate.current().cert.len(), 2);
    assert!(matches!(renewal.look(now()), Looked::Nothing));
}

#[test]
fn refused_files_leave_the_certificate_and_are_reported_once() {
    let fixture = Fixture::new(CERT, KEY);
    let certificate = fixture.load().unwrap();
    let mut renewal = Renewal::new(Arc::clone(&certificate));
    renewal.look(now());
    fixture.put("cert.pem", OTHER);
    renewal.look(now());
    assert!(matches!(
        renewal.look(now()),
        Looked::Refused(CertificateError::Mismatch { .. })
    ));
    assert!(matches!(renewal.look(now()), Looked::Nothing));
    let expected: Vec<_> = CertificateDer::pem_slice_iter(CERT.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(certificate.current().cert, expected);
    fixture.put("cert.pem", CERT);
    renewal.look(now());
    assert!(matches!(renewal.look(now()), Looked::InUse));
    fs::remove_file(fixture.dir.path().join("cert.pem")).unwrap();
    renewal.look(now());
    assert!(matches!(
        renewal.look(now()),
        Looked::Refused(CertificateError::Read { .. })
    ));
    fixture.put("cert.pem", &format!("{CERT}{OTHER}"));
    renewal.look(now());
    assert!(matches!(renewal.look(now()), Looked::Taken));
}

#[test]
fn a_renewed_certificate_that_is_not_valid_waits_until_it_is_or_the_old_one_ends() {
    const OTHER_KEY: &str = include_str!("tests/other.key");
    const EXPIRED: &str = include_str!("tests/expired.pem");
    const EARLY: &str = include_str!("tests/early.pem");
    for (renewed, due) in [(EARLY, "2120-01-01T00:00:01Z"), (EXPIRED, "2127-01-01T00:00:00Z")] {
        let fixture = Fixture::new(CERT, KEY);
        let certificate = fixture.load().unwrap();
        assert_eq!(certificate.warning(), None);
        let old = certificate.expiry();
        let mut renewal = Renewal::new(Arc::clone(&certificate));
        assert!(matches!(renewal.look(now()), Looked::InUse));
        fixture.put("cert.pem", renewed);
        fixture.put("key.pem", OTHER_KEY);
        assert!(matches!(renewal.look(now()), Looked::Nothing));
        assert!(matches!(renewal.look(now()), Looked::Kept(_)));
        assert!(matches!(renewal.look(now()), Looked::Nothing));
        assert_eq!(certificate.expiry(), old);
        assert!(matches!(renewal.look(due.parse().unwrap()), Looked::Taken));
        assert_ne!(certificate.expiry(), old);
    }
    for (cert, begin) in [(EXPIRED, "valid from 2020-01-01"), (EARLY, "valid from 2120-01-01")] {
        let warning = Fixture::new(cert, OTHER_KEY).load().unwrap().warning().unwrap();
        assert!(warning.contains("cert.pem") && warning.contains(begin), "{warning}");
    }
}

#[test]
fn a_key_of_another_kind_is_refused_with_the_rule() {
    Fixture::new(CERT, include_str!("tests/rsa1024.key")).refused(&["tls_key", "key.pem", "RSA with 2048"]);
}
