#!/usr/bin/env bash
# rustdoc that takes unstable options. The variable is set for it alone, so that no dependency is compiled again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
