//! End-to-end tests of agentcfg; everything lives in the test binary `it`.
