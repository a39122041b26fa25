//! The error of a call and its classification.

mod constructors;

use std::fmt;
use std::time::Duration;

use agentcfg_core::model::Tag;

use crate::RateLimit;
use crate::attempt_outcome::AttemptOutcome;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a call failed.
///
/// [`Error::message`] is the server's own message. `Display` adds the status and the request
/// identifier, which finds the entry in the server's log. An error never contains a credential.
///
/// ```no_run
/// # use agentcfg_client::{Client, model::NewAgent};
/// # async fn run(client: Client, agent: NewAgent) -> Result<(), agentcfg_client::Error> {
/// match client.create_agent(&agent).await {
///     Ok(agent) => println!("created {}", agent.value.id),
///     Err(error) if error.is_conflict() => println!("exists already"),
///     Err(error) if error.is_plan_limit() => println!("the plan is full: {}", error.message()),
///     Err(error) if error.may_have_been_applied() => println!("list the agents before trying again"),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    outcome: AttemptOutcome,
    message: String,
    maybe_applied: bool,
    timed_out: bool,
    by_proxy: bool,
    is_foreign: bool,
    facts: ResponseFacts,
    source: Option<BoxError>,
}

/// Metadata from the head of a response.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseFacts {
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) rate_limit: Option<RateLimit>,
    /// Boxed, because few answers have any, and the facts move with each.
    pub(crate) refusal: Option<Box<RefusalFacts>>,
}

/// What the head of a refusal says about its reason.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RefusalFacts {
    pub(crate) fault_fields: Vec<String>,
    pub(crate) current_tag: Option<Tag>,
}

/// The phase in which a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing was sent: the settings or the arguments do not make a valid request.
    Input,
    /// No connection could be made.
    Connect,
    /// The connection broke, or no response arrived in time.
    Exchange,
    /// A response arrived that this client cannot decode.
    Answer,
    /// A response arrived without the record that was asked for.
    Absent,
    /// A response arrived with a status other than success.
    Status,
}

impl Error {
    /// The status of the response, if one arrived. There is none for a record that a list lacks.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(error) = client.ready().await {
    ///     println!("the server answered {:?}", error.status());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> Option<u16> {
        self.0.facts.status
    }

    /// A message for people: the server's own, if the response has one.
    ///
    /// ```
    /// use agentcfg_client::Client;
    /// let error = Client::builder("http://127.0.0.1:7420").api_key("").build().unwrap_err();
    /// assert_eq!(error.message(), "the API key is empty");
    /// ```
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The request identifier that the server assigned; it finds the entry in the server's log.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(error) = client.list_workspaces().await {
    ///     eprintln!("failed, see {:?} in the server's log", error.request_id());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.0.facts.request_id.as_deref()
    }

    /// The delay that the server asks for before the next request.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(error) = client.list_workspaces().await {
    ///     println!("try again after {:?}", error.retry_after().unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.facts.retry_after
    }

    /// The state of the rate limit as of this response.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// if let Err(error) = client.list_workspaces().await
    ///     && let Some(rate) = error.rate_limit()
    /// {
    ///     println!("the window ends at {}", rate.reset);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.0.facts.rate_limit
    }

    /// Whether the request breaks a rule (400).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::NewAgent;
    /// match client.create_agent(&NewAgent::new(workspace, "writer".parse()?, "")).await {
    ///     Err(error) if error.is_invalid() => println!("{}", error.message()),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_invalid(&self) -> bool {
        self.is(400)
    }

    /// The fields that break a rule (400), such as `display_name` and `capabilities[2]`: each once, in the order of the
    /// message. Empty where the server names none; of very many it names the first.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::NewAgent;
    /// if let Err(error) = client.create_agent(&NewAgent::new(workspace, "writer".parse()?, "")).await {
    ///     assert_eq!(error.fields(), ["display_name"]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fields(&self) -> &[String] {
        self.refusal().map(|refusal| &*refusal.fault_fields).unwrap_or_default()
    }

    /// The tag that the record has now, of a change whose condition is not met (412). The server names it to callers
    /// that may read the record.
    ///
    /// It is no reason to send the same change with this tag: that would overwrite what another writer has changed. It
    /// tells whether a copy that is known already is the current one.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::{AgentPatch, Precondition};
    /// let known = client.get_agent(workspace, "writer").await?;
    /// let condition = Precondition::matches(known.tag);
    /// if let Err(error) = client.update_agent(Some(workspace), "writer", &AgentPatch::default(), &condition).await {
    ///     assert_ne!(error.current_tag(), Some(known.tag));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn current_tag(&self) -> Option<Tag> {
        self.refusal().and_then(|refusal| refusal.current_tag)
    }

    fn refusal(&self) -> Option<&RefusalFacts> {
        self.0.facts.refusal.as_deref()
    }

    /// Whether the credential is missing, wrong, expired or revoked (401).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.list_workspaces().await {
    ///     Err(error) if error.is_unauthorized() => println!("the API key was revoked or has expired"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_unauthorized(&self) -> bool {
        self.is(401)
    }

    /// Whether the credential does not allow this (403).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// match client.list_api_keys(workspace).await {
    ///     Err(error) if error.is_forbidden() => println!("ask an admin of the workspace: {}", error.message()),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_forbidden(&self) -> bool {
        self.is(403)
    }

    /// Whether the record does not exist (404, or a list without it).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_client::model::Precondition;
    /// match client.delete_agent(None, "writer", &Precondition::None).await {
    ///     Err(error) if error.is_not_found() => println!("it was deleted already"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_not_found(&self) -> bool {
        self.is(404) || self.0.kind == Kind::Absent
    }

    /// Whether the request conflicts with the current state (409).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::NewAgent;
    /// match client.create_agent(&NewAgent::new(workspace, "writer".parse()?, "Writer")).await {
    ///     Err(error) if error.is_conflict() => println!("there is a writer already"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_conflict(&self) -> bool {
        self.is(409)
    }

    /// Whether the current version of the record does not meet the condition (412).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_client::model::{AgentPatch, Precondition, Tag};
    /// # let (tag, patch) = ("k3j9x0ab-a7".parse::<Tag>()?, AgentPatch::default());
    /// match client.update_agent(None, "writer", &patch, &Precondition::matches(tag)).await {
    ///     Err(error) if error.is_precondition_failed() => println!("read the agent again and decide again"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_precondition_failed(&self) -> bool {
        self.is(412)
    }

    /// Whether the position in the change feed is no longer one of the workspace (410): read the list again and go on
    /// from its cursor.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::After;
    /// match client.changes(workspace, After::Now).next().await {
    ///     Err(error) if error.is_gone() => println!("read the list again"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_gone(&self) -> bool {
        self.is(410)
    }

    /// Whether a limit of the plan or of the workspace is reached (422): of active agents, of labels, of webhooks, or
    /// of the agents of one promotion.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let workspace = "018f2d7c-0000-7000-8000-000000000001".parse()?;
    /// # use agentcfg_client::model::NewAgent;
    /// match client.create_agent(&NewAgent::new(workspace, "writer".parse()?, "Writer")).await {
    ///     Err(error) if error.is_plan_limit() => println!("delete an agent, or change the plan"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_plan_limit(&self) -> bool {
        self.is(422)
    }

    /// Whether the rate limit was reached (429).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.list_workspaces().await {
    ///     Err(error) if error.is_rate_limited() => println!("again after {:?}", error.retry_after()),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_rate_limited(&self) -> bool {
        self.is(429)
    }

    /// Whether the service, or a proxy in front of it, is temporarily unavailable (503).
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.ready().await {
    ///     Err(error) if error.is_unavailable() => println!("up, but without its storage"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_unavailable(&self) -> bool {
        self.is(503)
    }

    /// Whether a timeout expired: while connecting, for one attempt, or for the whole call.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.list_workspaces().await {
    ///     Err(error) if error.is_timeout() => println!("no answer within the time limits of this client"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_timeout(&self) -> bool {
        self.0.timed_out
    }

    /// Whether no connection could be made. In that case nothing was sent.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.healthy().await {
    ///     Err(error) if error.is_connect() => println!("no server at this address"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_connect(&self) -> bool {
        self.0.kind == Kind::Connect
    }

    /// Whether no connection could be made because of the proxy of [`Builder::proxy`](crate::Builder::proxy): it could
    /// not be reached, or refused. In that case nothing was sent to the server.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.healthy().await {
    ///     Err(error) if error.is_proxy() => println!("check the proxy: {error}"),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_proxy(&self) -> bool {
        self.0.by_proxy
    }

    /// Whether an answer with an error is not one of agentcfg, such as the page of a proxy in front of the server.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// match client.ready().await {
    ///     Err(error) if error.is_foreign() => println!("a proxy answered {:?}", error.status()),
    ///     other => other?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_foreign(&self) -> bool {
        self.0.is_foreign
    }

    /// Whether the server may have applied the requested change although the call failed.
    ///
    /// If so, read the record before you try again. It is `false` for reads, for requests that were
    /// never sent, and for responses that guarantee that nothing changed: 4xx, and a 503 of the server with
    /// `Retry-After`. It is `true` for a change whose response was lost, was another 5xx or could not be decoded.
    ///
    /// ```no_run
    /// # async fn run(client: agentcfg_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # use agentcfg_client::model::NewWorkspace;
    /// match client.create_workspace(&NewWorkspace::new("Studio")).await {
    ///     Err(error) if error.may_have_been_applied() => println!("list the workspaces before trying again"),
    ///     other => drop(other?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn may_have_been_applied(&self) -> bool {
        self.0.maybe_applied
    }

    fn is(&self, status: u16) -> bool {
        self.status() == Some(status)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        match (self.status(), self.request_id()) {
            (Some(status), Some(id)) => write!(f, " (status {status}, request {id})"),
            (Some(status), None) => write!(f, " (status {status})"),
            (None, Some(id)) => write!(f, " (request {id})"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        match &self.0.source {
            Some(source) => write!(f, ": {source:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
