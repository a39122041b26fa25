#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agentcfg_fuzz_targets::run("mcp", input));
