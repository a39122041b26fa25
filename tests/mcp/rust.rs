//! The official Rust client.

use agentcfg_tests::harness::Studio;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;

async fn connect(studio: &Studio<'_>, credential: &str, lifecycle: ClientLifecycleMode) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", studio.server.url()));
    let transport = StreamableHttpClientTransport::from_config(config.auth_header(credential));
    ().serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("{arguments}")
    };
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(params).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_lifecycle_reaches_the_tools() {
    // The client's HTTP library takes the provider of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let studio = Studio::open();
    let key = studio.key("admin").key;
    let modern = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    let automatic = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    for (number, lifecycle) in [ClientLifecycleMode::Initialize, modern, automatic]
        .into_iter()
        .enumerate()
    {
        let client = connect(&studio, &key, lifecycle).await;
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.len(), 15);
        let id = format!("writer-{number}");
        let new = json!({"agent_id": id, "display_name": "Writer", "persona_prompt": "You write."});
        let made = call(&client, "create_agent", new.clone()).await;
        assert_eq!(made.is_error, Some(false), "{made:?}");
        let etag = made.structured_content.as_ref().unwrap()["etag"].clone();
        let changed = call(
            &client,
            "update_agent",
            json!({"agent_id": id, "etag": etag, "role": "Author"}),
        )
        .await;
        assert_eq!(changed.structured_content.unwrap()["role"], "Author");
        let taken = call(&client, "create_agent", new).await;
        assert_eq!(taken.is_error, Some(true), "{taken:?}");

        let resources = client.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 1 + 2 * (number + 1));
        let uri = format!("agentcfg://agents/{id}/prompt");
        let read = client.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        assert!(format!("{read:?}").contains("You write."), "{read:?}");
        let prompts = client.list_all_prompts().await.unwrap();
        assert_eq!(prompts.len(), number + 1);
        let prompt = client.get_prompt(GetPromptRequestParams::new(id)).await.unwrap();
        assert!(format!("{prompt:?}").contains("You write."), "{prompt:?}");
        client.cancel().await.unwrap();
    }
}
