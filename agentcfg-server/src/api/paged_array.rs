//! A long array whose elements come in pages: a short one is one text, and a long one is written when its client takes
//! it.

use std::{io, vec};

use agentcfg_core::model::{AuditEntry, AuditSummary, LabelMoves};
use agentcfg_core::service::{AuditPages, LabelHistory};
use agentcfg_core::{AgentCfg, Caller, Error};
use serde::Serialize;

use super::answer::{LongList, Written};
use super::call::{Call, PATIENCE};
use crate::http::byte_budget::{HeldBytes, holder};
use crate::http::errors::Failure;
use crate::http::pull_body::{NextPiece, PullBody};
use crate::http::response::Reply;
use crate::http::{BodyError, Disconnect};

/// The length from which an array is streamed: an element can have megabytes.
const LONG: usize = 1 << 20;

/// The bytes of a page that are written in place, in a fraction of a millisecond. A page with more goes on on the
/// blocking pool.
const IN_PLACE: usize = 64 << 10;

/// The pages of an array.
pub trait Pages: Send + 'static {
    /// An element.
    type Row: Serialize + Send + 'static;

    /// The next page; `None` after the last one.
    fn next_page(&mut self) -> impl Future<Output = Result<Option<Vec<Self::Row>>, Error>> + Send;
}

impl Pages for AuditPages {
    type Row = AuditEntry;

    async fn next_page(&mut self) -> Result<Option<Vec<AuditEntry>>, Error> {
        self.next().await
    }
}

impl Pages for LabelHistory {
    type Row = LabelMoves;

    async fn next_page(&mut self) -> Result<Option<Vec<LabelMoves>>, Error> {
        self.next().await
    }
}

/// The pages of an audit log without the values.
pub struct Summaries(pub AuditPages);

impl Pages for Summaries {
    type Row = AuditSummary;

    async fn next_page(&mut self) -> Result<Option<Vec<AuditSummary>>, Error> {
        let page = self.0.next().await?;
        Ok(page.map(|page| page.into_iter().map(AuditSummary::from).collect()))
    }
}

/// Answers with all pages as one array, which the document describes as one of `T`.
///
/// # Errors
///
/// Errors of the first pages, and 503 when too many long answers wait for their clients.
pub async fn answer<P: Pages, T>(call: &Call<'_>, pages: P) -> Result<Written<LongList<T>>, Failure> {
    let written = PagedArray {
        service: call.service.clone(),
        caller: call.caller.clone(),
        pages,
        text: vec![b'['],
        is_empty: true,
        disconnect: call.disconnect.clone(),
        share: None,
    };
    written.begin(call).await
}

/// An array, written page by page.
struct PagedArray<P> {
    service: AgentCfg,
    caller: Caller,
    pages: P,
    /// The text that was written and not sent yet.
    text: Vec<u8>,
    is_empty: bool,
    disconnect: Disconnect,
    /// What a streamed array counts as.
    share: Option<HeldBytes>,
}

impl<P: Pages> PagedArray<P> {
    /// The answer. A long one is written when the client takes it.
    async fn begin<T>(mut self, call: &Call<'_>) -> Result<Written<LongList<T>>, Failure> {
        let caller = holder(call.caller);
        call.answers.check_streamed(&caller, 0)?;
        let _begun = call.service.begin_streamed_answer(call.caller).await?;
        loop {
            // Others may have taken the room meanwhile.
            call.answers.check_streamed(&caller, self.text.len())?;
            let Some(page) = self.pages.next_page().await? else {
                return Ok(Reply::made(self.end()).into());
            };
            let rest = self.add_first(page).map_err(Failure::internal)?;
            call.answers.check_streamed(&caller, self.text.len())?;
            self.add_rest(rest).await.map_err(Failure::internal)?;
            if self.text.len() > LONG {
                self.share = Some(call.answers.streamed(caller, self.text.len())?);
                return Ok(Reply::streamed_json(PullBody::new(Some(self), next)).into());
            }
        }
    }

    /// Writes the first rows of a page, as many as do not hold up others. Returns the rest.
    fn add_first(&mut self, page: Vec<P::Row>) -> serde_json::Result<vec::IntoIter<P::Row>> {
        let end = self.text.len() + IN_PLACE;
        let mut rows = page.into_iter();
        while self.text.len() < end
            && let Some(row) = rows.next()
        {
            if !std::mem::take(&mut self.is_empty) {
                self.text.push(b',');
            }
            serde_json::to_writer(&mut self.text, &row)?;
        }
        Ok(rows)
    }

    /// Writes the other rows of a page, on the blocking pool.
    async fn add_rest(&mut self, rows: vec::IntoIter<P::Row>) -> io::Result<()> {
        if rows.len() == 0 {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.text);
        let write = move || {
            for row in rows {
                text.push(b',');
                serde_json::to_writer(&mut text, &row)?;
            }
            Ok::<_, serde_json::Error>(text)
        };
        self.text = tokio::task::spawn_blocking(write).await??;
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }
}

/// Sends the written text, and then the next page.
fn next<P: Pages>(written: Option<PagedArray<P>>) -> NextPiece<Option<PagedArray<P>>> {
    Box::pin(async move {
        let Some(mut written) = written else {
            return Ok(None);
        };
        if written.text.is_empty() {
            let PagedArray {
                service,
                caller,
                pages,
                disconnect,
                ..
            } = &mut written;
            // It is made in a place for long answers, as the first ones were. Between two pages others have it.
            let page = async {
                let begun = service.begin_streamed_answer(caller).await?;
                Ok((pages.next_page().await?, begun))
            };
            let Some(page) = disconnect.while_connected(PATIENCE, page).await else {
                return Err(BodyError::new("the client closed its side of the connection"));
            };
            let (page, _begun) = page.map_err(|error: Error| {
                tracing::warn!(?error, "an array was broken off");
                BodyError::new(error)
            })?;
            let Some(page) = page else {
                return Ok(Some((written.end().into(), None)));
            };
            let rest = written.add_first(page).map_err(BodyError::new)?;
            written.add_rest(rest).await.map_err(BodyError::new)?;
            if let Some(share) = &mut written.share {
                share.next_piece(written.text.len());
            }
        }
        let text = std::mem::take(&mut written.text);
        Ok(Some((text.into(), Some(written))))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll};

    use agentcfg_core::model::{AuditFilter, NewAgent, NewWorkspace};
    use agentcfg_core::store::{
        Batch, CommitError, Committed, Key, Kind, MemoryStore, Record, Scan, Scanned, Store, StoreError,
    };
    use http_body_util::BodyExt;
    use tokio::time::{Duration, Instant, timeout};

    use super::*;
    use crate::ByteBudget;
    use crate::http::WatchClient;

    /// A client that leaves. From then on the store of the test answers no read of a log.
    #[derive(Debug, Clone, Default)]
    struct Leaving(Arc<AtomicBool>);

    impl Leaving {
        fn has_left(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl WatchClient for Leaving {
        fn poll_disconnected(&self, _: &mut Context<'_>) -> Poll<()> {
            match self.has_left() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }
    }

    struct Stalling(MemoryStore, Leaving);

    #[async_trait::async_trait]
    impl Store for Stalling {
        fn inner(&self) -> Option<&dyn Store> {
            Some(&self.0)
        }

        async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
            self.0.get(keys).await
        }

        async fn scan(&self, scan: &Scan) -> Result<Scanned, StoreError> {
            if scan.kind == Kind::LogEntry && self.1.has_left() {
                pending::<()>().await;
            }
            self.0.scan(scan).await
        }

        async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
            self.0.commit(batch).await
        }
    }

    /// The audit log of 80 agents of about 20 KiB each, so that it is streamed in parts.
    async fn log_of(service: &AgentCfg, client: &Leaving) -> (Caller, PullBody<Option<PagedArray<AuditPages>>>) {
        let ada = service.trusted_user("ada").unwrap();
        let new = NewWorkspace::new("Studio");
        let studio = service.create_workspace(&ada, new).await.unwrap().id;
        for number in 0..80 {
            let agent_id = format!("a{number}").parse().unwrap();
            let new = NewAgent::new(studio, agent_id, "Writer").persona_prompt("\u{1f600}".repeat(5000));
            service.create_agent(&ada, new).await.unwrap();
        }
        let written = PagedArray {
            service: service.clone(),
            caller: ada.clone(),
            pages: service
                .audit_pages(&ada, studio, &AuditFilter::default())
                .await
                .unwrap(),
            text: vec![b'['],
            is_empty: true,
            disconnect: Disconnect::new(Arc::new(client.clone())),
            share: None,
        };
        (ada, PullBody::new(Some(written), next))
    }

    #[tokio::test(start_paused = true)]
    async fn a_streamed_page_ends_when_its_client_has_gone() {
        let client = Leaving::default();
        let service = AgentCfg::builder(Stalling(MemoryStore::new(), client.clone())).build();
        let (_, mut body) = log_of(&service, &client).await;
        let mut length = 0;
        while length <= LONG {
            length += body.frame().await.unwrap().unwrap().into_data().unwrap().len();
        }
        client.0.store(true, Ordering::SeqCst);
        let left = Instant::now();
        assert!(
            body.frame().await.unwrap().is_err(),
            "a broken page does not look whole"
        );
        assert_eq!(left.elapsed(), PATIENCE);
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_page_is_made_in_a_place_for_long_answers() {
        const A_WHILE: Duration = Duration::from_secs(1);

        let budget = ByteBudget::of_answers(64 << 20, 64 << 20);
        let service = AgentCfg::builder(MemoryStore::new())
            .build()
            .with_answer_budget(Arc::new(budget));
        let (ada, mut body) = log_of(&service, &Leaving::default()).await;
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "[");
        let mut places = Vec::new();
        while let Ok(place) = timeout(A_WHILE, service.begin_streamed_answer(&ada)).await {
            places.push(place.unwrap());
        }
        assert!(!places.is_empty());
        assert!(timeout(A_WHILE, body.frame()).await.is_err(), "all places are taken");
        drop(places);
        let more = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(more.starts_with(b"{"));
    }
}
