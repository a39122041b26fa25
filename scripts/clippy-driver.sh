#!/bin/bash
# The compiler for the crates of the workspace, as RUSTC_WORKSPACE_WRAPPER: one pass of clippy both checks and compiles. A
# warning is an error. It is bash, because dash drops variables of cargo whose names have a hyphen.
exec clippy-driver "$@" -D warnings
