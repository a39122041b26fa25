//! The command line: each command, and each mistake with its cause and a remedy.

mod backup;
mod check;
mod dev;
mod flags;
mod held;
mod rights;
mod serve;
mod settings;
mod token;
mod upgrade;
