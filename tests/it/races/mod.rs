//! Concurrent requests over HTTP: rules that hold in every interleaving.

mod agents;
mod rights;
