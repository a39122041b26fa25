//! The certificate of the server: two PEM files, which are read again when they change.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use agentcfg_core::tls;
use rustls::InconsistentKeys;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::process::certificate_expiry::not_after;
use crate::process::config::Config;
use crate::process::files;
use crate::process::telemetry::Metrics;

/// How often the state of the files is checked.
const LOOK: Duration = Duration::from_secs(1);

/// The length of the longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Why the files of the certificate cannot be used, with the way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("{setting}: cannot read {}: {source}", .path.display())]
    Read {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has the wrong content.
    #[error("{setting}: {} must hold {expected} in PEM", .path.display())]
    Content {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the file must hold.
        expected: &'static str,
    },
    /// Other users can read the key.
    #[error("tls_key: {} is open to other users (mode {mode:03o}); run `chmod 600 {}`, and if another user may have read it, get a certificate for a new key", .path.display(), .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key is not that of the certificate.
    #[error("the key in tls_key ({}) is not that of the first certificate in tls_cert ({})", .key.display(), .cert.display())]
    Mismatch {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate or the key is damaged, or of a kind that is not supported.
    #[error("the certificate in tls_cert ({}) and the key in tls_key ({}) cannot be used: {source}", .cert.display(), .key.display())]
    Unusable {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        source: rustls::Error,
    },
}

/// The two files.
#[derive(Debug, Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

impl Files {
    fn load(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        let Self { cert, key } = self;
        let content = |setting, path: &Path, expected| CertificateError::Content {
            setting,
            path: path.to_owned(),
            expected,
        };
        let text = read("tls_cert", cert, |_| Ok(()))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| content("tls_cert", cert, "a certificate and those of its issuers"))?;
        let text = Zeroizing::new(read("tls_key", key, |found| is_private(key, found))?);
        let private = PrivateKeyDer::from_pem_slice(&text);
        let private = private.map_err(|_| content("tls_key", key, "a private key without a password"))?;
        let pair = tls::provider().and_then(|provider| CertifiedKey::from_der(chain, private, &provider));
        pair.map(Arc::new).map_err(|source| match source {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CertificateError::Mismatch {
                cert: cert.clone(),
                key: key.clone(),
            },
            source => CertificateError::Unusable {
                cert: cert.clone(),
                key: key.clone(),
                source,
            },
        })
    }

    /// The state of both files. It changes when either file is replaced or written.
    fn stamp(&self) -> [Option<Stamp>; 2] {
        [&self.cert, &self.key].map(|path| fs::metadata(path).ok().map(|found| Stamp::of(&found)))
    }
}

/// The state of a file: it changes with each write and each replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    length: u64,
    mode: u32,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            place: (found.dev(), found.ino()),
            length: found.len(),
            mode: found.mode(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

fn read(
    setting: &'static str,
    path: &Path,
    check: impl FnOnce(&Metadata) -> Result<(), CertificateError>,
) -> Result<Vec<u8>, CertificateError> {
    let failed = |source| CertificateError::Read {
        setting,
        path: path.to_owned(),
        source,
    };
    // Checked before the open, because opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    let file = File::open(path).map_err(failed)?;
    check(&file.metadata().map_err(failed)?)?;
    let mut text = Vec::new();
    let length = file.take(LONGEST + 1).read_to_end(&mut text).map_err(failed)?;
    if length as u64 > LONGEST {
        return Err(failed(io::Error::other("it is longer than 1 MiB")));
    }
    Ok(text)
}

/// Only the owner may be able to read a key.
fn is_private(path: &Path, found: &Metadata) -> Result<(), CertificateError> {
    let mode = found.mode() & 0o777;
    if mode & files::rights_of_others(found) == 0 {
        return Ok(());
    }
    Err(CertificateError::Exposed {
        path: path.to_owned(),
        mode,
    })
}

/// The certificate that new connections get.
#[derive(Debug)]
pub struct Certificate {
    files: Files,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificate {
    /// Loads the certificate that the configuration names, if any.
    ///
    /// # Errors
    ///
    /// See [`CertificateError`].
    pub fn load(config: &Config) -> Result<Option<Arc<Self>>, CertificateError> {
        let (Some(cert), Some(key)) = (config.tls_cert.clone(), config.tls_key.clone()) else {
            return Ok(None);
        };
        let files = Files { cert, key };
        let current = RwLock::new(files.load()?);
        Ok(Some(Arc::new(Self { files, current })))
    }

    /// When the certificate in use expires, in seconds since 1970.
    pub(super) fn expiry(&self) -> Option<i64> {
        self.current()
            .cert
            .first()
            .and_then(|certificate| not_after(certificate))
    }

    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Reloads the files when they were renewed.
struct Renewal {
    certificate: Arc<Certificate>,
    /// The state of the files that the current certificate, or the last refusal, came from.
    known: [Option<Stamp>; 2],
    /// The state of the files at the last check.
    seen: [Option<Stamp>; 2],
}

/// The result of a check of the files.
#[derive(Debug)]
enum Looked {
    /// The files have not changed, or are still changing: two files cannot be replaced at once.
    Nothing,
    /// The files have the certificate that is in use.
    InUse,
    /// Their new certificate is in use now.
    Taken,
    /// The files cannot be used, and the old certificate stays in use.
    Refused(CertificateError),
}

impl Renewal {
    fn new(certificate: Arc<Certificate>) -> Self {
        // The files may have changed since they were read, so the first check reads them again.
        let known = [None; 2];
        let seen = certificate.files.stamp();
        Self {
            certificate,
            known,
            seen,
        }
    }

    fn look(&mut self) -> Looked {
        let now = self.certificate.files.stamp();
        let is_settled = now == std::mem::replace(&mut self.seen, now);
        if !is_settled || now == self.known {
            return Looked::Nothing;
        }
        self.known = now;
        match self.certificate.files.load() {
            Ok(pair) if pair.cert == self.certificate.current().cert => Looked::InUse,
            Ok(pair) => {
                *self.certificate.current.write().unwrap_or_else(PoisonError::into_inner) = pair;
                Looked::Taken
            }
            Err(error) => Looked::Refused(error),
        }
    }
}

/// Checks the files periodically until the server stops.
pub(super) async fn renew(certificate: Arc<Certificate>, metrics: Arc<Metrics>, stopped: impl Future<Output = ()>) {
    let mut renewal = Renewal::new(certificate);
    let work = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let looking = tokio::task::spawn_blocking(move || {
                let looked = renewal.look();
                (renewal, looked)
            });
            let looked;
            (renewal, looked) = match looking.await {
                Ok(both) => both,
                Err(error) => return tracing::error!(%error, "looking at the certificate failed, it is not renewed"),
            };
            match looked {
                Looked::Nothing => {}
                Looked::InUse => metrics.certificate_in_use(),
                Looked::Taken => {
                    metrics.certificate_taken();
                    tracing::info!("took up the renewed certificate");
                }
                Looked::Refused(error) => {
                    metrics.certificate_refused();
                    tracing::error!(%error, "the renewed certificate cannot be used, the one before it stays in use");
                }
            }
        }
    };
    tokio::select! {
        () = stopped => {}
        () = work => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const CERT: &str = include_str!("../outbound/tls/localhost.pem");
    const KEY: &str = include_str!("../outbound/tls/localhost.key");
    /// A certificate for another key.
    const OTHER: &str = include_str!("../outbound/tls/ca.pem");

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
        assert!(matches!(renewal.look(), Looked::InUse));
        assert!(matches!(renewal.look(), Looked::Nothing));
        let chain = format!("{CERT}{OTHER}");
        fixture.put("cert.pem", &chain);
        assert!(matches!(renewal.look(), Looked::Nothing));
        fixture.put("key.pem", KEY);
        assert!(matches!(renewal.look(), Looked::Nothing));
        assert_eq!(certificate.current().cert.len(), 1);
        assert!(matches!(renewal.look(), Looked::Taken));
        assert_eq!(certificate.current().cert.len(), 2);
        assert!(matches!(renewal.look(), Looked::Nothing));
    }

    #[test]
    fn refused_files_leave_the_certificate_and_are_reported_once() {
        let fixture = Fixture::new(CERT, KEY);
        let certificate = fixture.load().unwrap();
        let mut renewal = Renewal::new(Arc::clone(&certificate));
        renewal.look();
        fixture.put("cert.pem", OTHER);
        renewal.look();
        assert!(matches!(
            renewal.look(),
            Looked::Refused(CertificateError::Mismatch { .. })
        ));
        assert!(matches!(renewal.look(), Looked::Nothing));
        let expected: Vec<_> = CertificateDer::pem_slice_iter(CERT.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(certificate.current().cert, expected);
        fixture.put("cert.pem", CERT);
        renewal.look();
        assert!(matches!(renewal.look(), Looked::InUse));
        fs::remove_file(fixture.dir.path().join("cert.pem")).unwrap();
        renewal.look();
        assert!(matches!(renewal.look(), Looked::Refused(CertificateError::Read { .. })));
        fixture.put("cert.pem", &format!("{CERT}{OTHER}"));
        renewal.look();
        assert!(matches!(renewal.look(), Looked::Taken));
    }
}
