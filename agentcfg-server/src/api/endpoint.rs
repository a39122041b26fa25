//! What an endpoint is: its route, its description, what it reads, what it answers, and its function.
//!
//! All of that is one `impl` block under [`super::endpoints`]. Routing, the check of the credential, the methods of
//! `Allow` and of CORS, the labels of metrics and the OpenAPI document follow from it.

use std::pin::Pin;

use agentcfg_core::AgentCfg;
use agentcfg_core::validate::Faults;

use crate::api::answer::{Answer, AnswerDoc};
use crate::api::call::{Body, Call, Content, Parameter, ParameterDoc, Received};
use crate::api::route::{Needs, Route};
use crate::http::Leaving;
use crate::http::errors::Failure;
use crate::http::response::Reply;

/// An endpoint that needs a credential.
///
/// ```ignore
/// /// `PUT /api/agents/status`
/// pub struct Report;
///
/// impl Endpoint for Report {
///     const ROUTE: Route = Route::put("/api/agents/status", Needs::Permission(Permission::TasksUpdate));
///     const DOC: Doc = Doc::new("reportAgentStatus", AGENT_STATUS, "Report what an agent is doing", "Replaces …");
///     type Input = (AgentId, WorkspaceIdOptional);
///     type Body = StatusReport;
///     type Answer = Json<AgentStatus>;
///
///     async fn run(call: &Call<'_>, (agent, workspace): Values<'_, Self>, report: StatusReport) -> Result<Self::Answer, Failure> {
///         Ok(Json(call.service.report_status(call.caller, workspace, agent, report).await?))
///     }
/// }
/// ```
pub trait Endpoint: Sized + 'static {
    /// Where it is, and what a request for it must bring.
    const ROUTE: Route;

    /// What the OpenAPI document says of it beyond what follows from the rest.
    const DOC: Doc;

    /// The parameters, a tuple. What is not listed cannot be read.
    type Input: Input;

    /// The body, `()` for none.
    type Body: Body;

    /// The answer: its type decides status, header fields and schema.
    type Answer: Answer;

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// What the core refused.
    fn run(
        call: &Call<'_>,
        input: Values<'_, Self>,
        body: Self::Body,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// The values of an endpoint's parameters.
pub type Values<'a, E> = <<E as Endpoint>::Input as Input>::Values<'a>;

/// An endpoint that checks membership and role before it receives the body, because the body may be long.
///
/// Its row is made by [`Definition::guarded`]. [`Endpoint::run`] decides again, on the state when the body has arrived.
pub trait Guarded: Endpoint {
    /// Checks the caller, who has a credential with the permission that the route needs.
    ///
    /// # Errors
    ///
    /// 403 without the membership or the role.
    fn guard(call: &Call<'_>, input: Values<'_, Self>) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// An endpoint that is answered without a credential. It is a `GET` and reads nothing of the request.
pub trait OpenEndpoint: 'static {
    /// The path.
    const PATH: &'static str;

    /// What the OpenAPI document says of it beyond what follows from the rest.
    const DOC: Doc;

    /// The answer.
    type Answer: Answer;

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// What the core refused.
    fn run(service: &AgentCfg, leaving: &Leaving) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// The description of an endpoint for people.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// The `operationId`.
    pub id: &'static str,
    /// The group that it is shown in.
    pub tag: Tag,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What it does, in Markdown. What a credential must be able to do is added from the route.
    pub description: &'static str,
    /// What the successful answer is, in a sentence.
    pub answer: &'static str,
    /// Examples of bodies that it takes.
    pub bodies: &'static [Example],
    /// Examples of successful answers.
    pub answers: &'static [Example],
    /// Statuses of failures beyond those that follow from the route, the parameters and the body.
    pub failures: &'static [u16],
    /// Paths below the prefix of the route that are described as operations of their own.
    pub paths: &'static [KnownPath],
}

/// A path that an endpoint with a prefix serves. Generators of clients encode the slashes of a parameter, so that a
/// known path is an operation without one.
#[derive(Debug, Clone, Copy)]
pub struct KnownPath {
    /// What follows the prefix.
    pub rest: &'static str,
    /// The `operationId`.
    pub id: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// What it does, in Markdown.
    pub description: &'static str,
    /// An example of a body, as JSON.
    pub body: &'static str,
}

/// A group of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: &'static str,
    /// What the group is about.
    pub description: &'static str,
}

/// A named example, written as JSON. What an example of an answer leaves out is as in the example of its schema.
#[derive(Debug, Clone, Copy)]
pub struct Example(pub &'static str, pub &'static str);

impl Doc {
    /// A description without examples.
    pub const fn new(id: &'static str, tag: Tag, summary: &'static str, description: &'static str) -> Self {
        Self {
            id,
            tag,
            summary,
            description,
            answer: "",
            bodies: &[],
            answers: &[],
            failures: &[],
            paths: &[],
        }
    }

    /// Describes paths below the prefix of the route as operations of their own.
    #[must_use]
    pub const fn paths(self, paths: &'static [KnownPath]) -> Self {
        Self { paths, ..self }
    }

    /// Says what the successful answer is, with examples.
    #[must_use]
    pub const fn answer(self, answer: &'static str, answers: &'static [Example]) -> Self {
        Self {
            answer,
            answers,
            ..self
        }
    }

    /// Shows bodies that it takes.
    #[must_use]
    pub const fn bodies(self, bodies: &'static [Example]) -> Self {
        Self { bodies, ..self }
    }

    /// Names statuses of failures that do not follow from the route, the parameters and the body.
    #[must_use]
    pub const fn failures(self, failures: &'static [u16]) -> Self {
        Self { failures, ..self }
    }
}

/// An endpoint as a row of the table of all.
///
/// ```
/// for endpoint in agentcfg_server::endpoints() {
///     println!("{} {}", endpoint.route.method, endpoint.route.path);
/// }
/// ```
#[derive(Debug)]
pub struct Definition {
    /// Where it is, and what a request for it must bring.
    pub route: Route,
    /// What the OpenAPI document says of it.
    pub doc: Doc,
    /// The parameters.
    pub parameters: &'static [ParameterDoc],
    /// The body.
    pub content: Content,
    /// The greatest length of the body in bytes.
    pub max_body: usize,
    /// The successful answer.
    pub answer: AnswerDoc,
    pub(super) run: Runner,
    /// What is checked after the query and before the body, where the endpoint is [`Guarded`].
    pub(super) guard: Option<Guard>,
}

/// How an endpoint checks the caller before the body.
pub(super) type Guard = for<'a> fn(&'a Call<'_>, &'a Received<'_>) -> Result<Boxed<'a, ()>, Failure>;

/// How an endpoint is run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runner {
    /// Without a credential.
    Open(for<'a> fn(&'a AgentCfg, &'a Leaving) -> Boxed<'a, Reply>),
    /// With a credential.
    Called(for<'a> fn(&'a Call<'_>, &'a Received<'_>) -> Result<Boxed<'a, Reply>, Failure>),
}

/// A future that is boxed, so that the future of a request is not as large as the largest of these.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

impl Definition {
    /// The row of an endpoint.
    pub const fn of<E: Endpoint>() -> Self {
        assert!(
            !matches!(E::ROUTE.needs, Needs::Nothing),
            "an endpoint without credential is an `OpenEndpoint`"
        );
        Self {
            route: E::ROUTE,
            doc: E::DOC,
            parameters: E::Input::DOCS,
            content: E::Body::CONTENT,
            max_body: E::Body::MAX_BYTES,
            answer: E::Answer::DOC,
            run: Runner::Called(begin::<E>),
            guard: None,
        }
    }

    /// Whether a parameter of this name is passed on as it is and not read.
    pub(super) fn passes(&self, name: &str) -> bool {
        matches!(self.content, Content::ModelCall) && self.parameters.iter().all(|parameter| parameter.name != name)
    }

    /// The row of an endpoint that checks membership and role before the body.
    pub const fn guarded<E: Guarded>() -> Self {
        Self {
            guard: Some(check::<E>),
            ..Self::of::<E>()
        }
    }

    /// The row of an endpoint that needs no credential.
    pub const fn open<E: OpenEndpoint>() -> Self {
        Self {
            route: Route::get(E::PATH, Needs::Nothing),
            doc: E::DOC,
            parameters: &[],
            content: Content::Nothing,
            max_body: 0,
            answer: E::Answer::DOC,
            run: Runner::Open(|service, leaving| Box::pin(async move { E::run(service, leaving).await?.into_reply() })),
            guard: None,
        }
    }
}

/// Reads what an endpoint declares, and begins to run it.
fn begin<'a, E: Endpoint>(call: &'a Call<'_>, received: &'a Received<'_>) -> Result<Boxed<'a, Reply>, Failure> {
    let input = E::Input::read(received)?;
    let body = E::Body::read(received)?;
    // Its future is made where it stays: moving that of a model call costs more than moving what it reads.
    Ok(Box::pin(async move { E::run(call, input, body).await?.into_reply() }))
}

/// Reads the parameters of an endpoint, before there is a body, and begins to check its caller.
fn check<'a, E: Guarded>(call: &'a Call<'_>, received: &'a Received<'_>) -> Result<Boxed<'a, ()>, Failure> {
    let input = E::Input::read(received)?;
    Ok(Box::pin(E::guard(call, input)))
}

/// All parameters of an endpoint: a tuple of [`Parameter`]s, read in order.
pub trait Input {
    /// A tuple of the values.
    type Values<'a>: Send;

    /// The descriptions.
    const DOCS: &'static [ParameterDoc];

    /// Reads all parameters.
    ///
    /// # Errors
    ///
    /// 400 where one is missing or breaks its rule.
    fn read<'a>(request: &'a Received<'_>) -> Result<Self::Values<'a>, Failure>;
}

macro_rules! input {
    ($($name:ident),*) => {
        impl<$($name: Parameter),*> Input for ($($name,)*) {
            type Values<'a> = ($($name::Value<'a>,)*);

            const DOCS: &'static [ParameterDoc] = &[$($name::DOC),*];

            #[allow(unused_mut, unused_variables, reason = "an endpoint may have no parameter")]
            fn read<'a>(request: &'a Received<'_>) -> Result<Self::Values<'a>, Failure> {
                let mut faults = Faults::default();
                let values = ($($name::read(request, &mut faults)?,)*);
                faults.into_result()?;
                Ok(values)
            }
        }
    };
}

input!();
input!(A);
input!(A, B);
input!(A, B, C);
input!(A, B, C, D);
input!(A, B, C, D, E);
input!(A, B, C, D, E, F);
input!(A, B, C, D, E, F, G);
input!(A, B, C, D, E, F, G, H);
input!(A, B, C, D, E, F, G, H, I);
input!(A, B, C, D, E, F, G, H, I, J);
input!(A, B, C, D, E, F, G, H, I, J, K);
