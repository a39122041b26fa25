//! Official clients of the Model Context Protocol: `rmcp`, and `@modelcontextprotocol/client` on Node.js.

// Tests watch real processes in real time.
#![allow(clippy::disallowed_methods)]

mod rust;
mod typescript;
