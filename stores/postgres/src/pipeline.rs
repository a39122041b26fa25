//! Running statements: one at a time, or a whole transaction pipelined.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row, Statement};
use uuid::Uuid;

use super::options::Statements;

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Param {
    Uuid(Uuid),
    Text(String),
    Number(i64),
    Uuids(Vec<Uuid>),
    Texts(Vec<String>),
    Numbers(Vec<i64>),
}

impl Param {
    fn sql_type(&self) -> Type {
        match self {
            Self::Uuid(_) => Type::UUID,
            Self::Text(_) => Type::TEXT,
            Self::Number(_) => Type::INT8,
            Self::Uuids(_) => Type::UUID_ARRAY,
            Self::Texts(_) => Type::TEXT_ARRAY,
            Self::Numbers(_) => Type::INT8_ARRAY,
        }
    }

    pub(super) fn value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Uuid(value) => value,
            Self::Text(value) => value,
            Self::Number(value) => value,
            Self::Uuids(value) => value,
            Self::Texts(value) => value,
            Self::Numbers(value) => value,
        }
    }
}

/// A statement with its parameters.
#[derive(Debug, Clone)]
pub(super) struct Step<'a> {
    pub(super) sql: &'a str,
    pub(super) params: Vec<Param>,
}

impl Step<'_> {
    fn types(&self) -> Vec<Type> {
        self.params.iter().map(Param::sql_type).collect()
    }

    fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.params.iter().map(Param::value).collect()
    }

    fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.params
            .iter()
            .map(|param| (param.value(), param.sql_type()))
            .collect()
    }
}

/// The future of a statement's result.
type PendingRows<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'a>>;

/// Runs one statement: one round trip, and one more when a connection prepares it for the first time.
pub(super) async fn run(client: &Client, statements: Statements, step: &Step<'_>) -> Result<Vec<Row>, Error> {
    match statements {
        Statements::Prepared => {
            let statement = client.prepare_typed_cached(step.sql, &step.types()).await?;
            client.query(&statement, &step.values()).await
        }
        Statements::Unnamed => client.query_typed(step.sql, &step.typed()).await,
    }
}

/// How a pipelined transaction ended.
pub(super) enum PipelineOutcome {
    /// The database confirmed the commit; the rows of each step.
    Committed(Vec<Vec<Row>>),
    /// A step failed, so the transaction was not committed.
    Failed(Error),
    /// The answer to `COMMIT` is missing or is an error, so the outcome may be unknown.
    Unanswered(Error),
}

/// Pipelines a whole transaction: it sends all statements and then reads the answers, in one round trip
/// for any number of steps. After a failed step the database ignores the others and answers `COMMIT`
/// with a rollback.
pub(super) async fn pipeline(
    client: &Client,
    statements: Statements,
    begin: &str,
    steps: &[Step<'_>],
) -> Result<PipelineOutcome, Error> {
    let prepared = prepare(client, statements, steps).await?;
    let mut flight: Vec<PendingRows<'_>> = Vec::new();
    flight.push(Box::pin(simple(client, begin)));
    for (step, statement) in steps.iter().zip(&prepared) {
        flight.push(Box::pin(async move {
            match statement {
                Some(statement) => client.query(statement, &step.values()).await,
                None => client.query_typed(step.sql, &step.typed()).await,
            }
        }));
    }
    let mut answers: Vec<Option<Result<Vec<Row>, Error>>> = flight.iter().map(|_| None).collect();
    let (mut unsent, mut commit, mut verdict) = (false, None, None);
    let verdict = poll_fn(|context| {
        // The first poll of each future queues its messages on the connection. All first polls happen
        // within one poll of this future, so the messages are adjacent and the transaction is sent whole,
        // with its end, even if this future is dropped later.
        for (future, answer) in flight.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(result) = future.as_mut().poll(context)
            {
                *answer = Some(result);
            }
        }
        let commit = commit.get_or_insert_with(|| {
            // A statement that failed already at its first poll was not sent. `COMMIT` would commit the
            // transaction without it.
            unsent = answers.iter().any(|answer| matches!(answer, Some(Err(_))));
            Box::pin(simple(client, if unsent { "ROLLBACK" } else { "COMMIT" }))
        });
        if verdict.is_none()
            && let Poll::Ready(result) = commit.as_mut().poll(context)
        {
            verdict = Some(result);
        }
        match &verdict {
            Some(_) if answers.iter().all(Option::is_some) => verdict.take().map_or(Poll::Pending, Poll::Ready),
            _ => Poll::Pending,
        }
    })
    .await;
    let steps: Result<Vec<_>, Error> = answers.into_iter().flatten().collect();
    Ok(match (steps, verdict) {
        (Ok(mut rows), Ok(_)) => {
            rows.remove(0);
            PipelineOutcome::Committed(rows)
        }
        (Ok(_), Err(error)) => PipelineOutcome::Unanswered(error),
        (Err(error), _) if unsent || error.as_db_error().is_some() => PipelineOutcome::Failed(error),
        // The error is not an answer of the database, so the commit may have happened.
        (Err(error), _) => PipelineOutcome::Unanswered(error),
    })
}

async fn prepare(client: &Client, statements: Statements, steps: &[Step<'_>]) -> Result<Vec<Option<Statement>>, Error> {
    let mut prepared = Vec::with_capacity(steps.len());
    for step in steps {
        prepared.push(match statements {
            Statements::Prepared => Some(client.prepare_typed_cached(step.sql, &step.types()).await?),
            Statements::Unnamed => None,
        });
    }
    Ok(prepared)
}

async fn simple(client: &Client, sql: &str) -> Result<Vec<Row>, Error> {
    client.batch_execute(sql).await.map(|()| Vec::new())
}
