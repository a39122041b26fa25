//! Orders to a running server from the owner of its data directory, over a Unix socket in that directory.
//!
//! An order is a line; the version of the exchange is part of it:
//!
//! | order | answer |
//! |---|---|
//! | `backup 1` | a copy of the store |
//! | `compact 1` | lines that report progress |
//! | `rotate-master-key 1`, `rotate-master-key 1 drop-old` | lines that report progress |
//! | `login-link 1 USER` | a line with a link that signs this user in |
//!
//! The answer is a series of frames that ends with a count of all bytes, so that a broken transfer is detected.

mod client;
mod error;
mod frames;
mod order;
mod server;
mod socket;
#[cfg(test)]
mod tests;

pub use client::{request, request_backup};
pub use error::ControlError;
pub use order::Order;
pub use server::{Control, spawn};
