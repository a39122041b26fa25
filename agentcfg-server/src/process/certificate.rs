//! The certificate of the server: two PEM files, which are read again when they change.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use agentcfg_core::clock::{Clock, SystemClock};
use agentcfg_core::model::Timestamp;
use agentcfg_core::sync::{read_lock, write_lock};
use agentcfg_core::tls;
use rustls::InconsistentKeys;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::process::certificate_expiry::Validity;
use crate::process::config::Config;
use crate::process::files;
use crate::process::telemetry::Metrics;

/// How often the state of the files is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The length of the longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Why the files of the certificate cannot be used, with advice for the operator.
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
    /// The key is damaged, or of a kind that is not supported.
    #[error("tls_key: the key in {} is damaged, or of a kind that is not supported: it must be RSA with 2048 to 4096 bits, ECDSA on P-256 or P-384, or Ed25519", .path.display())]
    Key {
        /// The file.
        path: PathBuf,
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
        let unsupported = |_| CertificateError::Key { path: key.clone() };
        let pair = match tls::provider() {
            Ok(provider) => {
                let known = provider.key_provider.load_private_key(private.clone_key());
                known.map_err(unsupported)?;
                CertifiedKey::from_der(chain, private, &provider)
            }
            Err(error) => Err(error),
        };
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
        validity(&self.current()).map(Validity::not_after)
    }

    /// A warning of a certificate that clients refuse now, because it has expired or is not valid yet.
    pub(super) fn warning(&self) -> Option<String> {
        let now = SystemClock.now();
        let validity = validity(&self.current()).filter(|validity| !validity.has(now))?;
        let cert = self.files.cert.display();
        Some(format!(
            "the certificate in tls_cert ({cert}) is {validity}, and now it is {now}: clients refuse it"
        ))
    }

    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&read_lock(&self.current))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// When the first certificate of a chain, which is that of the server, is valid; `None` if that cannot be read.
fn validity(pair: &CertifiedKey) -> Option<Validity> {
    pair.cert.first().and_then(|certificate| Validity::of(certificate))
}

/// Whether clients take it now, as far as that depends on the time.
fn is_valid(pair: &CertifiedKey, now: Timestamp) -> bool {
    validity(pair).is_none_or(|validity| validity.has(now))
}

/// Reloads the files when they were renewed.
struct Renewal {
    certificate: Arc<Certificate>,
    /// The certificate in the files that is not valid now, while the one in use is.
    later: Option<Arc<CertifiedKey>>,
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
    /// Their new certificate is not valid now. The old one stays in use as long as it is.
    Kept(Validity),
}

impl Renewal {
    fn new(certificate: Arc<Certificate>) -> Self {
        // The files may have changed since they were read, so the first check reads them again.
        let known = [None; 2];
        let seen = certificate.files.stamp();
        Self {
            certificate,
            later: None,
            known,
            seen,
        }
    }

    fn look(&mut self, time: Timestamp) -> Looked {
        let now = self.certificate.files.stamp();
        let is_settled = now == std::mem::replace(&mut self.seen, now);
        if !is_settled {
            return Looked::Nothing;
        }
        let current = self.certificate.current();
        if now == self.known {
            let is_due = |later: &mut Arc<CertifiedKey>| is_valid(later, time) || !is_valid(&current, time);
            return match self.later.take_if(is_due) {
                Some(pair) => self.take(pair),
                None => Looked::Nothing,
            };
        }
        self.known = now;
        self.later = None;
        match self.certificate.files.load() {
            Ok(pair) if pair.cert == current.cert => Looked::InUse,
            Ok(pair) => match validity(&pair).filter(|validity| !validity.has(time) && is_valid(&current, time)) {
                Some(validity) => {
                    self.later = Some(pair);
                    Looked::Kept(validity)
                }
                None => self.take(pair),
            },
            Err(error) => Looked::Refused(error),
        }
    }

    fn take(&self, pair: Arc<CertifiedKey>) -> Looked {
        *write_lock(&self.certificate.current) = pair;
        Looked::Taken
    }
}

/// Checks the files periodically until the server stops.
pub(super) async fn renew(certificate: Arc<Certificate>, metrics: Arc<Metrics>, stopped: impl Future<Output = ()>) {
    let files = certificate.files.clone();
    let mut renewal = Renewal::new(Arc::clone(&certificate));
    let work = async {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let looking = tokio::task::spawn_blocking(move || {
                let looked = renewal.look(SystemClock.now());
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
                    if let Some(warning) = certificate.warning() {
                        tracing::warn!("{warning}");
                    }
                }
                Looked::Kept(validity) => {
                    metrics.certificate_refused();
                    tracing::warn!(
                        file = %files.cert.display(),
                        "the renewed certificate is {validity}, and now it is {}: the one before it stays in use while it is valid",
                        SystemClock.now()
                    );
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
mod tests;
