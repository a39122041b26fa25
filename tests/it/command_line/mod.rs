//! The command line: each command, and each mistake with its cause and a remedy.

mod advice;
mod backup;
mod check;
mod dev;
mod flags;
mod held;
mod installed;
mod other_formats;
mod rights;
mod serve;
mod service_manager;
mod settings;
mod token;
