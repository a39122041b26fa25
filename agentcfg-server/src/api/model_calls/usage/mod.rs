//! The usage of model calls: which paths report it, how it is asked for, and how it is read out of the
//! answer while that passes.

mod answer;
mod extra_chunk;
mod finder;
mod metered;
mod output_cap;
mod path;
mod reported;
mod request;
mod traced;

pub use metered::{Measured, MeteredCall, Metering};
pub use path::UsagePath;
pub use request::MeteredBody;
