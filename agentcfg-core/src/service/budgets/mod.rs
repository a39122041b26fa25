//! Budgets: limits of what model calls may cost.
//!
//! What a period has spent, and what each process holds of the rest, is one record: the account of the budget. A call
//! reserves what it can cost at most from the [`Slice`](slice::Slice) of its process, so that it needs no round trip of
//! its own; its end replaces the reservation by the cost. The sum of what is spent and held never exceeds the limit, so
//! no call does either, however many processes there are and whenever one is killed. What a killed process held stays
//! counted until it is settled.

mod cache;
mod end_order;
mod exchange;
mod manage;
mod period;
mod reservation;
mod reserve;
mod settle;
mod slice;
mod spent_before;
#[cfg(test)]
mod tests;

pub(super) use cache::{Budgets, KnownBudgets};
pub(super) use exchange::BudgetReport;
pub(super) use reservation::EndedCost;
pub use reservation::Reservation;
pub use reserve::{CostBound, InputTokens, OutputCap};
