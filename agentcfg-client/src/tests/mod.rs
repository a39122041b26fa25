//! Tests against a scripted server.
