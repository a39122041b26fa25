//! nginx as a reverse proxy, configured as it usually is in front of an HTTP service.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::process::{Server, free_address};

/// Starts nginx before an upstream: one worker for each core, connections to the upstream kept open, no access log. Its
/// files are in this directory.
///
/// # Errors
///
/// If nginx is not installed or does not start.
pub fn start(upstream: SocketAddr, directory: &Path) -> Result<Server, Failure> {
    let address = free_address()?;
    let config = directory.join("nginx.conf");
    std::fs::write(&config, configuration(upstream, address, &directory.to_string_lossy()))?;
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(&config).arg("-p").arg(directory);
    nginx.args(["-e", "stderr", "-g", "daemon off;"]);
    Server::start_at(&mut nginx, address).map_err(|error| {
        format!("nginx is needed as the baseline, as in `apt-get install nginx-light`: {error}").into()
    })
}

fn configuration(upstream: SocketAddr, address: SocketAddr, directory: &str) -> String {
    format!(
        "worker_processes auto;
error_log stderr error;
pid {directory}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    scgi_temp_path {directory}/scgi;
    uwsgi_temp_path {directory}/uwsgi;
    upstream provider {{
        server {upstream};
        keepalive 128;
        keepalive_requests 100000000;
    }}
    server {{
        listen {address} backlog=1024;
        keepalive_requests 100000000;
        location / {{
            proxy_pass http://provider;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $host;
        }}
    }}
}}
"
    )
}
