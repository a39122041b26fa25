//! When a certificate is valid: the one field of X.509 (RFC 5280) that is needed here.

use std::fmt;

use agentcfg_core::model::Timestamp;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The version, which the first version does not have.
const VERSION: u8 = 0xa0;

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    begin: Timestamp,
    end: Timestamp,
}

impl Validity {
    /// The validity of a certificate in DER; `None` if it cannot be read.
    pub(super) fn of(der: &[u8]) -> Option<Self> {
        let certificate = content(der, SEQUENCE)?.0;
        let mut fields = content(certificate, SEQUENCE)?.0;
        if fields.first() == Some(&VERSION) {
            fields = element(fields)?.2;
        }
        // The serial number, the algorithm of the signature, and the issuer.
        for _ in 0..3 {
            fields = element(fields)?.2;
        }
        let (begin, rest) = time(content(fields, SEQUENCE)?.0)?;
        let (end, _) = time(rest)?;
        Some(Self { begin, end })
    }

    /// The end, in seconds since 1970.
    pub(super) fn not_after(self) -> i64 {
        self.end.unix_millis() / 1000
    }

    pub(super) fn has(self, now: Timestamp) -> bool {
        (self.begin..=self.end).contains(&now)
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "valid from {} to {}", self.begin, self.end)
    }
}

/// The first element, which is a time, and what follows it.
fn time(der: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (kind, time, rest) = element(der)?;
    let text = std::str::from_utf8(time).ok()?;
    let text = match kind {
        // The years of two digits are those from 1950 on.
        UTC_TIME if text.get(..2)? >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let time = format!(
        "{}-{}-{}T{}:{}:{}",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, text.len())?
    );
    Some((time.parse().ok()?, rest))
}

/// The content of an element that must be of this kind, and what follows it.
fn content(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(der)?;
    (found == kind).then_some((content, rest))
}

/// The first element of DER: its kind, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        // A certificate is no longer than 16 MiB.
        length = (bytes.len() <= 3).then(|| bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))?;
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((kind, content, rest))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    fn der(pem: &str) -> Vec<u8> {
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_and_cut_ones_are_not() {
        let whole = der(include_str!("../outbound/tls/localhost.pem"));
        let validity = Validity::of(&whole).unwrap();
        let end = validity.not_after();
        assert!(end > 1_700_000_000, "{end}");
        assert!(validity.has(validity.begin) && validity.has(validity.end));
        assert!(!validity.has(validity.begin.plus_millis(-1)) && !validity.has(validity.end.plus_millis(1)));
        for length in 0..whole.len() {
            assert_eq!(Validity::of(&whole[..length]), None, "{length}");
        }
    }

    /// A certificate with nothing but what is read.
    fn with_end(kind: u8, time: &str) -> Vec<u8> {
        let element = |kind: u8, content: &[u8]| [&[kind, u8::try_from(content.len()).unwrap()], content].concat();
        let begin = element(UTC_TIME, b"200101000000Z");
        let validity = element(SEQUENCE, &[begin, element(kind, time.as_bytes())].concat());
        let empty = element(SEQUENCE, &[]);
        let fields = [
            element(VERSION, &[2, 1, 2]),
            element(2, &[1]),
            empty.clone(),
            empty,
            validity,
        ]
        .concat();
        element(SEQUENCE, &element(SEQUENCE, &fields))
    }

    #[test]
    fn both_forms_of_a_time_are_read() {
        for (kind, time, end) in [
            (UTC_TIME, "700101000010Z", Some(10)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20501301000000Z", None),
            (UTC_TIME, "5", None),
            (4, "20500101000000Z", None),
        ] {
            let found = Validity::of(&with_end(kind, time)).map(Validity::not_after);
            assert_eq!(found, end, "{time}");
        }
    }
}
