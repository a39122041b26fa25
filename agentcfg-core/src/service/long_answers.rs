//! How many long answers are made at the same time.
//!
//! A list of the past or a page of changes is made whole, from pieces that are read one after the other. Unbounded,
//! many requests at once would each hold a half-made answer, and keep all processors from short requests. So where
//! answers are counted, few long ones are made at once: at most `MAX_CONCURRENT`, and one less than there are processors.
//! Each first takes its share of the caller's budget; waiting requests hold nothing.

use std::fmt::Debug;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use super::fair_permits::{FairPermits, Permit};
use super::{AgentCfg, Caller};
use crate::error::Error;

/// The most long answers that are made at once, half of them for one caller.
const MAX_CONCURRENT: usize = 3;

/// How many long answers are made at once on this machine: one processor is left to short requests, where there are two.
fn concurrent() -> usize {
    let processors = available_parallelism().map_or(1, NonZero::get);
    (processors - 1).clamp(1, MAX_CONCURRENT)
}

/// What counts the answers that are held for callers, such as those that clients have not read; see
/// [`AgentCfg::with_answer_budget`].
///
/// ```
/// use agentcfg_core::service::AnswerBudget;
/// use agentcfg_core::{Caller, Error};
///
/// /// A budget without a limit.
/// #[derive(Debug)]
/// struct Unlimited;
///
/// impl AnswerBudget for Unlimited {
///     fn begin(&self, _: &Caller) -> Result<Box<dyn Send + Sync>, Error> {
///         Ok(Box::new(()))
///     }
/// }
/// ```
pub trait AnswerBudget: Debug + Send + Sync {
    /// Takes a share for a long answer to this caller, whose length is not known yet. The share is held until the
    /// answer is made, that is until the returned value is dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooManyRequests`](crate::ErrorKind::TooManyRequests) when the caller holds as much as it may,
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) when all callers together do.
    fn begin(&self, caller: &Caller) -> Result<Box<dyn Send + Sync>, Error>;
}

/// The budget of answers, and the places in which long ones are made.
#[derive(Debug)]
pub(super) struct LongAnswers {
    budget: Arc<dyn AnswerBudget>,
    places: Arc<FairPermits<String>>,
}

/// The right to make a long answer, as long as it is held; see [`AgentCfg::begin_streamed_answer`].
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
/// # fn main() -> Outcome { run(async |service, ada, _studio| {
/// let begun = service.begin_streamed_answer(&ada).await?;
/// assert_eq!(format!("{begun:?}"), "LongAnswer { .. }");
/// # Ok(()) }) }
/// ```
#[derive(Default)]
#[must_use]
pub struct LongAnswer {
    // Given back in this order: the next answer in the place finds the share free.
    _share: Option<Box<dyn Send + Sync>>,
    _place: Option<Permit<String>>,
}

impl Debug for LongAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LongAnswer").finish_non_exhaustive()
    }
}

impl AgentCfg {
    /// The same service with a budget of answers. A long answer, such as a list of the past, takes a share before it is
    /// read, and few are made at the same time.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agentcfg_core::service::AnswerBudget;
    /// use agentcfg_core::AgentCfg;
    /// fn bounded(service: &AgentCfg, budget: Arc<dyn AnswerBudget>) -> AgentCfg {
    ///     service.with_answer_budget(budget)
    /// }
    /// ```
    #[must_use]
    pub fn with_answer_budget(&self, budget: Arc<dyn AnswerBudget>) -> Self {
        let places = FairPermits::of(concurrent());
        Self {
            answers: Some(Arc::new(LongAnswers { budget, places })),
            ..self.clone()
        }
    }

    /// Begins a long answer that is made whole: takes its share of the budget, and waits for a place in which it is
    /// made. What is returned is held until the answer is made. No other long answer may be begun meanwhile: it would
    /// wait for a place while it has one.
    ///
    /// # Errors
    ///
    /// The errors of [`AnswerBudget::begin`].
    pub(super) async fn begin_answer(&self, caller: &Caller) -> Result<LongAnswer, Error> {
        let begun = self.begin_streamed_answer(caller).await?;
        // The share is not taken before: what a request that waits had taken, another one could use.
        let share = self.answers.as_ref().map(|answers| answers.budget.begin(caller));
        Ok(LongAnswer {
            _share: share.transpose()?,
            ..begun
        })
    }

    /// Begins a long answer whose pieces are counted as they are sent, so that it takes no share here: waits for the
    /// place alone, in which a piece is made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal), which does not happen.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctests/studio.rs"));
    /// # fn main() -> Outcome { run(async |service, ada, studio| {
    /// let begun = service.begin_streamed_answer(&ada).await?;
    /// let mut pages = service.audit_pages(&ada, studio, &AuditFilter::default()).await?;
    /// assert!(pages.next().await?.is_some());
    /// drop(begun);
    /// # Ok(()) }) }
    /// ```
    pub async fn begin_streamed_answer(&self, caller: &Caller) -> Result<LongAnswer, Error> {
        let Some(answers) = &self.answers else {
            return Ok(LongAnswer::default());
        };
        Ok(LongAnswer {
            _place: Some(Arc::clone(&answers.places).permit(caller.actor().id).await?),
            _share: None,
        })
    }
}
