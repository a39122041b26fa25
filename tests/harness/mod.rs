//! Tools of the end-to-end tests: the binary as a process, raw HTTP, and test workspaces.
//!
//! Start with [`Studio::open`]: a new workspace on a server that the tests of this process share.
//! Tests that need other settings, or that stop or kill their server, start one with
//! [`Server::builder`].

mod address;
mod binary;
mod certificate;
mod command;
mod database;
mod dice;
mod encode;
mod events;
mod http;
mod not_run;
mod of_run;
mod python;
mod response;
mod server;
mod spawn;
mod studio;
mod tokens;
mod wait;
mod wire;

pub use address::free_address;
pub use binary::{command_binary, example, run_end_to_end_suite, server_binary};
pub use certificate::certificate;
pub use command::{Finished, Run, run};
pub use database::{database_settings, use_database};
pub use dice::{Dice, setting};
pub use encode::{base64, base64url, hex};
pub use events::{Event, Events};
pub use http::Request;
pub use not_run::not_run;
pub use of_run::{end_with_run, of_run, process_name};
pub use python::python;
pub use response::{Response, message_of_provider};
pub use server::{Builder, Server};
pub use spawn::{NOBODY, dies_with_parent, scratch, spawn};
pub use studio::{Identity, Key, Studio, unique};
pub use tokens::{forged, hmac_signed, unsigned};
pub use wait::{at_once, eventually, until};
pub use wire::Wire;
