//! End-to-end tests over HTTP: a module for each subject.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod api;
mod authorisation;
mod browser;
mod command_line;
mod corner_cases;
mod documentation;
mod durability;
mod examples;
mod examples_page;
mod feed;
mod history;
mod mcp;
mod races;
mod secrets;
mod tls;
