//! The export of a workspace, line by line.

use agentcfg_core::model::{ExportLine, WorkspaceId};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::error::ResponseFacts;
use crate::request::Call;
use crate::{Client, Error, Timeouts};

/// The export of a workspace while it is received.
///
/// ```no_run
/// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
/// use agentcfg_client::model::ExportLine;
/// let mut export = client.export_workspace(workspace).await?;
/// while let Some(line) = export.next().await? {
///     if let ExportLine::Agent(agent) = line {
///         println!("{}", agent.display_name);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Export {
    body: Incoming,
    received: Vec<u8>,
    /// The start of the next line in the received bytes.
    start: usize,
    /// The end of the bytes that were searched for a line feed.
    searched: usize,
    is_ended: bool,
    facts: ResponseFacts,
    timeouts: Timeouts,
    max_line: usize,
}

impl Export {
    /// The next line; `None` after the last one. Lines of kinds that this release does not know are
    /// [`ExportLine::Unknown`].
    ///
    /// Each part of the answer is waited for as long as an attempt of a call may take.
    ///
    /// # Errors
    ///
    /// When the connection breaks: the server ends an export so that fails halfway. What was received until then is no
    /// whole export. A line that is longer than the greatest response which the client accepts is an error too.
    ///
    /// ```no_run
    /// # async fn run(mut export: agentcfg_client::Export) -> Result<(), agentcfg_client::Error> {
    /// let mut lines = 0;
    /// while export.next().await?.is_some() {
    ///     lines += 1;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Result<Option<ExportLine>, Error> {
        loop {
            let line_feed = self.received[self.searched..].iter().position(|byte| *byte == b'\n');
            if let Some(at) = line_feed {
                let end = self.searched + at;
                let line = self.line(end);
                self.start = end + 1;
                self.searched = self.start;
                return line.map(Some);
            }
            self.searched = self.received.len();
            if self.received.len() - self.start > self.max_line {
                let message = format!("a line is longer than the {} bytes allowed", self.max_line);
                return Err(Error::unreadable(self.facts.clone(), message));
            }
            if self.is_ended {
                return match self.received.len() == self.start {
                    true => Ok(None),
                    false => Err(Error::unreadable(self.facts.clone(), "the last line has no end")),
                };
            }
            self.receive().await?;
        }
    }

    fn line(&self, end: usize) -> Result<ExportLine, Error> {
        serde_json::from_slice(&self.received[self.start..end]).map_err(|error| {
            let message = format!("a line is not what agentcfg promises: {error}");
            Error::unreadable(self.facts.clone(), message)
        })
    }

    async fn receive(&mut self) -> Result<(), Error> {
        let frame = timeout(self.timeouts.attempt, self.body.frame())
            .await
            .map_err(|_| Error::timed_out())?;
        match frame {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.received.drain(..self.start);
                    self.searched -= self.start;
                    self.start = 0;
                    self.received.extend_from_slice(&data);
                }
            }
            Some(Err(error)) => return Err(Error::cut_off(self.facts.clone(), error.into())),
            None => self.is_ended = true,
        }
        Ok(())
    }
}

impl Client {
    /// Exports a workspace: all of its records at one revision, as a stream of lines. The audit log records it.
    ///
    /// The request is sent once, without retries.
    ///
    /// # Errors
    ///
    /// [`is_forbidden`](Error::is_forbidden) for every caller but an owner.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// let mut export = client.export_workspace(workspace).await?;
    /// let first = export.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export_workspace(&self, workspace: WorkspaceId) -> Result<Export, Error> {
        let call = Call::get("/api/workspaces/export").query("workspace_id", workspace);
        let (facts, body) = self.open(call).await?;
        Ok(Export {
            body,
            received: Vec::new(),
            start: 0,
            searched: 0,
            is_ended: false,
            facts,
            timeouts: *self.timeouts(),
            max_line: self.max_response_bytes(),
        })
    }
}
