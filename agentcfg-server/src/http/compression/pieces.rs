//! Gzip of a text in pieces, each of which is compressed only once.
//!
//! A piece is compressed on its own and ends at a byte (RFC 1951, section 3.2.4), so the compressed pieces in a row are
//! one stream. The checksum of the whole follows from those of the pieces. When one piece of a long text changes, one
//! is compressed.

use std::sync::Arc;

use agentcfg_core::service::StatusPiece;
use bytes::Bytes;
use flate2::{Compress, Crc, FlushCompress, Status};

/// Why an answer could not be compressed: the server is shutting down.
pub(in crate::http) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The head of a gzip member without a name and a time (RFC 1952).
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// A last block without content.
const END: [u8; 2] = [0x03, 0x00];

/// A compressed piece.
#[derive(Clone)]
struct Packed(Arc<(Bytes, Crc)>);

/// The pieces in gzip, as parts of one stream. The pieces keep their compressed forms.
pub(super) fn gzip(pieces: &[StatusPiece], level: flate2::Compression) -> Result<Bytes, Failed> {
    let packed: Vec<Packed> = pieces
        .iter()
        .map(|piece| piece.form(|text| packed(text, level)))
        .collect::<Result<_, _>>()?;
    let length: usize = packed.iter().map(|piece| piece.0.0.len()).sum();
    let mut body = Vec::with_capacity(HEAD.len() + length + END.len() + 8);
    body.extend_from_slice(&HEAD);
    let mut whole = Crc::new();
    for Packed(piece) in &packed {
        let (bytes, crc) = &**piece;
        body.extend_from_slice(bytes);
        whole.combine(crc);
    }
    body.extend_from_slice(&END);
    body.extend_from_slice(&whole.sum().to_le_bytes());
    body.extend_from_slice(&whole.amount().to_le_bytes());
    Ok(body.into())
}

fn packed(text: &Bytes, level: flate2::Compression) -> Result<Packed, Failed> {
    let mut crc = Crc::new();
    crc.update(text);
    let mut compress = Compress::new(level, false);
    let mut bytes = Vec::with_capacity(text.len() / 4 + 64);
    loop {
        let read = usize::try_from(compress.total_in())?;
        let status = compress.compress_vec(&text[read..], &mut bytes, FlushCompress::Full)?;
        // Remaining capacity shows that the flush is complete.
        if bytes.len() < bytes.capacity() {
            break;
        }
        if status == Status::StreamEnd {
            return Err("a compressed piece ended early".into());
        }
        bytes.reserve(bytes.capacity());
    }
    bytes.shrink_to_fit();
    Ok(Packed(Arc::new((bytes.into(), crc))))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use agentcfg_core::AgentCfg;
    use agentcfg_core::model::{NewAgent, NewWorkspace, Plan, StatusReport};
    use agentcfg_core::store::MemoryStore;
    use flate2::read::GzDecoder;

    use super::*;

    fn unpacked(body: &Bytes) -> Vec<u8> {
        let mut text = Vec::new();
        // This reads one member alone, and checks its checksum and length.
        let mut decoder = GzDecoder::new(&**body);
        decoder.read_to_end(&mut text).unwrap();
        assert!(decoder.into_inner().is_empty());
        text
    }

    #[tokio::test]
    async fn pieces_are_one_stream_and_keep_their_forms() {
        let settings = agentcfg_core::Settings::default().default_plan(Plan::Enterprise);
        let service = AgentCfg::builder(MemoryStore::new())
            .settings(settings)
            .unwrap()
            .build();
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let studio = service.create_workspace(&ada, new).await.unwrap().id;
        let list = async || service.status_list(&ada, studio).await.unwrap();
        let empty = list().await;
        assert_eq!(unpacked(&gzip(empty.pieces(), super::super::LEVEL).unwrap()), b"[]");
        for number in 0..600 {
            let agent = NewAgent::new(
                studio,
                format!("agent-{number}").parse().unwrap(),
                format!("Agent {number}"),
            );
            service.create_agent(&ada, agent).await.unwrap();
        }
        let first = list().await;
        assert_eq!(first.pieces().len(), 3);
        assert_eq!(
            unpacked(&gzip(first.pieces(), super::super::LEVEL).unwrap()),
            first.json()
        );
        let report = StatusReport::working("T-1", "Draft the notes");
        service
            .report_status(&ada, Some(studio), "agent-300", report)
            .await
            .unwrap();
        let second = list().await;
        let has_form: Vec<bool> = second.pieces().iter().map(StatusPiece::has_form).collect();
        assert_eq!(has_form, [true, false, true]);
        assert_eq!(
            unpacked(&gzip(second.pieces(), super::super::LEVEL).unwrap()),
            second.json()
        );
        let form = |piece: &StatusPiece| piece.form(|_| Err::<Packed, _>("not made")).unwrap();
        assert!(Arc::ptr_eq(&form(&first.pieces()[0]).0, &form(&second.pieces()[0]).0));
    }

    #[test]
    fn a_text_that_cannot_be_compressed_is_complete() {
        // More bytes than the text has, so that the buffer grows.
        let mut state = 1_u32;
        let noise: Vec<u8> = (0..50_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let noise = Bytes::from(noise);
        let Packed(piece) = packed(&noise, super::super::LEVEL).unwrap();
        let mut body = [&HEAD[..], &piece.0, &END].concat();
        body.extend_from_slice(&piece.1.sum().to_le_bytes());
        body.extend_from_slice(&piece.1.amount().to_le_bytes());
        assert_eq!(unpacked(&body.into()), noise);
    }
}
