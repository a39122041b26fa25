//! LiteLLM's proxy before the same upstream, with the settings that its documentation names for production.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use crate::Failure;
use crate::process::{Server, free_address};

/// Starts LiteLLM with a worker for each core and one model, which callers name `gpt-5.5`. Its callers send this key.
/// `LITELLM` names the program where it is not on the path.
///
/// # Errors
///
/// If it is not installed or does not start.
pub fn start(upstream: SocketAddr, key: &str, directory: &Path) -> Result<Server, Failure> {
    let address = free_address()?;
    let config = directory.join("litellm.yaml");
    std::fs::write(&config, configuration(upstream, key))?;
    let program = std::env::var_os("LITELLM").unwrap_or_else(|| "litellm".into());
    let mut litellm = Command::new(program);
    litellm.arg("--config").arg(&config);
    litellm.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
    litellm.args(["--num_workers", &available_parallelism()?.to_string()]);
    litellm.env("LITELLM_MODE", "PRODUCTION").env("LITELLM_LOG", "ERROR");
    // The list of prices that it has, in place of one from the network.
    litellm.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    litellm
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    Server::start_at(&mut litellm, address).map_err(|error| {
        format!("LiteLLM is needed for comparison, as in `pip install 'litellm[proxy]'`: {error}").into()
    })
}

fn configuration(upstream: SocketAddr, key: &str) -> String {
    format!(
        "model_list:
  - model_name: gpt-5.5
    litellm_params:
      model: openai/gpt-5.5
      api_base: http://{upstream}/v1
      api_key: sk-bench-0123456789abcdef0123456789abcdef
general_settings:
  master_key: {key}
litellm_settings:
  set_verbose: false
  json_logs: true
  request_timeout: 600
  telemetry: false
"
    )
}
