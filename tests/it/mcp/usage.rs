//! The tool of usage.

use agentcfg_tests::harness::Studio;
use serde_json::json;

use super::done;
use super::tools::tools;

#[test]
fn usage_is_a_short_tool() {
    let studio = Studio::open();
    let key = studio.key("admin").key;
    let tools = tools(studio.server, &key);
    let tool = tools.iter().find(|tool| tool["name"] == "get_usage").unwrap();
    assert!(tool.to_string().len() <= 1024, "{} bytes", tool.to_string().len());
    let arguments = json!({"by": ["agent", "day"], "from": "2026-11-01T00:00:00Z", "top": 3});
    assert_eq!(done(studio.server, &key, "get_usage", &arguments)["rows"], json!([]));
}
