//! Answers in gzip, for clients that accept it.
//!
//! The coding is negotiated by `Accept-Encoding` (RFC 9110, section 12.5.3); a request without that field gets the
//! plain form. The list of a workspace and the description of the API are compressed once, and the compressed form is
//! shared.

mod pieces;
mod stream;

use std::io::Write;
use std::sync::Arc;
use std::thread;

use agentcfg_core::service::StatusPiece;
use bytes::Bytes;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderMap};
use tokio::sync::{OnceCell, Semaphore};

use self::pieces::Failed;
pub(in crate::http) use self::stream::GzipBody;

/// Shorter answers fit into one packet with their head, and are not compressed.
pub(super) const MIN_LENGTH: usize = 1 << 10;

/// Longer ones are compressed on the blocking pool, so that other requests of the same worker need not wait.
const MAX_INLINE: usize = 32 << 10;

/// The gzip level. A higher one makes a list a few per cent shorter and takes up to three times as long.
const LEVEL: flate2::Compression = flate2::Compression::new(3);

/// What the entity tag of a compressed form ends in, within its quotes: forms that differ in their bytes have different
/// strong entity tags (RFC 9110, section 8.8.3).
pub(crate) const IN_GZIP: &str = "-gzip";

/// Whether answers are compressed, with the state that compressions share. Clones share everything.
///
/// ```
/// use agentcfg_server::Compression;
/// let compression = Compression::on();
/// let shared = compression.clone();
/// ```
#[derive(Debug, Clone)]
pub struct Compression {
    compressor: Option<Arc<Compressor>>,
    /// The length from which a body is compressed for clients that accept gzip.
    pub(super) from_length: usize,
}

/// The state that compressions share.
#[derive(Debug)]
pub struct Compressor {
    /// How many answers are compressed on the blocking pool at a time.
    permits: Arc<Semaphore>,
    /// The description of the API, and its compressed form.
    document: OnceCell<(Bytes, Bytes)>,
}

impl Compression {
    /// Compresses answers for clients that accept gzip.
    ///
    /// ```
    /// use agentcfg_server::Compression;
    /// let compression = Compression::on();
    /// ```
    pub fn on() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let compressor = Compressor {
            permits: Arc::new(Semaphore::new(processors)),
            document: OnceCell::new(),
        };
        Self {
            compressor: Some(Arc::new(compressor)),
            from_length: MIN_LENGTH,
        }
    }

    /// Compresses nothing.
    ///
    /// ```
    /// use agentcfg_server::Compression;
    /// const NONE: Compression = Compression::off();
    /// ```
    pub const fn off() -> Self {
        Self {
            compressor: None,
            from_length: usize::MAX,
        }
    }

    /// Whether answers may be compressed.
    pub(crate) fn is_on(&self) -> bool {
        self.compressor.is_some()
    }

    /// The compressor; `None` when answers are not compressed.
    pub(super) fn compressor(&self) -> Option<&Compressor> {
        self.compressor.as_deref()
    }
}

impl Compressor {
    /// The description of the API in gzip, which is compressed once.
    pub(super) async fn document(&self, text: Bytes) -> Result<Bytes, Failed> {
        let compress = || self.compress(vec![text.clone()]);
        let make = || async { Ok::<_, Failed>((text.clone(), compress().await?)) };
        match self.document.get_or_try_init(make).await? {
            (plain, compressed) if *plain == text => Ok(compressed.clone()),
            // An app with other limits shares this state.
            _ => compress().await,
        }
    }

    /// The parts of a text in gzip, as one stream.
    pub(super) async fn compress(&self, parts: Vec<Bytes>) -> Result<Bytes, Failed> {
        let length = parts.iter().map(Bytes::len).sum();
        self.in_turn(length, move || gzip(&parts, LEVEL)).await
    }

    /// Compresses the pieces that were not compressed before, and joins all.
    pub(super) async fn compress_pieces(&self, pieces: Vec<StatusPiece>) -> Result<Bytes, Failed> {
        let new = pieces.iter().filter(|piece| !piece.has_form());
        let length = new.map(|piece| piece.text().len()).sum();
        self.in_turn(length, move || pieces::gzip(&pieces, LEVEL)).await
    }

    /// Runs a compression of this length: in place if it is short.
    async fn in_turn(
        &self,
        length: usize,
        work: impl FnOnce() -> Result<Bytes, Failed> + Send + 'static,
    ) -> Result<Bytes, Failed> {
        if length <= MAX_INLINE {
            return work();
        }
        // Each compressor takes a few hundred KiB while it works, so their number is bounded.
        let permit = Arc::clone(&self.permits).acquire_owned().await?;
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await?
    }
}

fn gzip(parts: &[Bytes], level: flate2::Compression) -> Result<Bytes, Failed> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    for part in parts {
        encoder.write_all(part)?;
    }
    let mut body = encoder.finish()?;
    // The list may be kept for long, so it must hold no unused capacity, which would not be counted.
    body.shrink_to_fit();
    Ok(body.into())
}

/// The entity tag of the plain form, from that of any form; both without quotes.
pub(crate) fn plain_form(tag: &str) -> &str {
    tag.strip_suffix(IN_GZIP).unwrap_or(tag)
}

/// Whether a request prefers gzip to the plain form.
pub(crate) fn asks_for_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut other) = (None, None, None);
    for field in headers.get_all(header::ACCEPT_ENCODING) {
        for member in field.to_str().unwrap_or_default().split(',') {
            let (coding, parameters) = member.split_once(';').unwrap_or((member, ""));
            let coding = coding.trim();
            let is = |name| coding.eq_ignore_ascii_case(name);
            let slot = match coding {
                "*" => &mut other,
                _ if is("gzip") || is("x-gzip") => &mut gzip,
                _ if is("identity") => &mut identity,
                _ => continue,
            };
            *slot = (*slot).max(weight(parameters));
        }
    }
    // A coding that is not named has the weight of the asterisk. Without an asterisk, only the plain form is
    // acceptable.
    let wanted = gzip.or(other).unwrap_or(0);
    wanted > 0 && identity.or(other).is_none_or(|plain| plain <= wanted)
}

/// The weight among the parameters of a coding, in thousandths; `None` when it is not valid.
fn weight(parameters: &str) -> Option<u16> {
    let Some(value) = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    }) else {
        return Some(1000);
    };
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" if digits && fraction.len() <= 3 => Some(thousandths),
        "1" if digits && fraction.len() <= 3 && thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn asks(fields: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(field));
        }
        asks_for_gzip(&headers)
    }

    #[test]
    fn the_plain_form_has_the_tag_itself() {
        for tag in ["k3j9x0ab-w7-gzip", "k3j9x0ab-w7"] {
            assert_eq!(plain_form(tag), "k3j9x0ab-w7");
        }
    }

    #[test]
    fn gzip_is_for_clients_that_accept_it() {
        for fields in [
            &["gzip"][..],
            &["x-gzip"],
            &["GZip"],
            &["gzip, deflate, br, zstd"],
            &["deflate , gzip ; q=1.0"],
            &["br", "gzip"],
            &["*"],
            &["gzip;q=0.001"],
            &["gzip;Q=0.5;x=1, identity;q=0.5"],
            &["gzip;q=0.5, *;q=0"],
            &["identity;q=0, *"],
            &["br, *;q=0.1"],
            &["gzip;q=1."],
        ] {
            assert!(asks(fields), "{fields:?}");
        }
    }

    #[test]
    fn everybody_else_gets_the_plain_form() {
        for fields in [
            &[][..],
            &[""],
            &["identity"],
            &["br, deflate"],
            &["gzip;q=0"],
            &["gzip;q=0.000"],
            &["gzip; q=0, *"],
            &["*;q=0"],
            &["gzip;q=0.5, identity"],
            &["gzip;q=0.5, identity;q=0.501"],
            &["gzip;q=0.5, *;q=0.8"],
            // No form suits these, so the plain one is sent.
            &["identity;q=0"],
            &["*;q=0, br"],
            // These weights are invalid.
            &["gzip;q=2"],
            &["gzip;q=1.001"],
            &["gzip;q=0.1234"],
            &["gzip;q=-1"],
            &["gzip;q=.5"],
            &["gzip;q=0.+5"],
            &["gzip;q="],
            &["gzipx"],
        ] {
            assert!(!asks(fields), "{fields:?}");
        }
    }
}
