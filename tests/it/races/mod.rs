//! Many at once over HTTP: rules that hold whoever is faster.

mod agents;
mod rights;
