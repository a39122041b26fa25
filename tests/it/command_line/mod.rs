//! The command line: each command, and each mistake with its cause and a remedy.

mod backup;
mod check;
mod check_config;
mod compact;
mod dev;
mod file_permissions;
mod flags;
mod healthcheck;
mod locked_directory;
mod operator_mistakes;
mod other_formats;
mod package_files;
mod refused_starts;
mod serve;
mod service_manager;
mod settings;
mod token;
