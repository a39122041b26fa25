//! What survives: a crash, a stop, and what was in flight.

mod crash;
mod stop;
