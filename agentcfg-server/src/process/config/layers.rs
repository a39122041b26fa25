//! Reads the layers of the configuration and merges them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use agentcfg_core::validate::nearest as nearest_name;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::flags::Flags;
use super::model_providers;
use super::otlp::{self, StandardVariables};
use super::settings::{Config, SETTINGS, Setting};
use super::toml_mistakes;
use super::value::{Value, WITHOUT_HOME, is_of_home};
use crate::process::files;

const PREFIX: &str = "AGENTCFG_";
const FILE_SUFFIX: &str = "_FILE";
/// What the variable of a managed credential begins with, in lower case and without the prefix. The id of the provider follows.
const PROVIDER_KEY: &str = "provider_api_key_";
/// What the variable ends in that names a file, in lower case.
const FILE: &str = "_file";
/// The variables of the command `agentcfg` and of `mcp-config`, without their prefix. A shell may have them beside the
/// settings of the server.
const OF_THE_CLIENT: [&str; 4] = ["API_KEY", "CA_FILE", "URL", "WORKSPACE"];

pub(super) fn load(flags: Flags, env: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Config, ConfigError> {
    let mut layers = Layers {
        config: Config::default(),
        given: BTreeMap::new(),
        problems: Vec::new(),
        has_providers: flags.config.is_some() || !flags.is_beside_server,
    };
    if let Some(path) = &flags.config {
        layers.file(path);
    }
    let env: Vec<_> = env.into_iter().collect();
    let standard = StandardVariables::of(&env);
    layers.environment(env);
    layers.flags(&flags);
    layers.standard(&standard);
    if layers.problems.is_empty() {
        layers.problems = layers.config.contradictions(&layers.given);
        layers.config.warn_of_unused(&flags, &layers.given);
    }
    if layers.problems.is_empty()
        && let Err(error) = layers.config.provider()
    {
        layers.problems = error.problems().to_vec();
    }
    if layers.problems.is_empty() {
        Ok(layers.config)
    } else {
        Err(ConfigError::new(layers.problems))
    }
}

/// Settings with the name and the place of each, for messages.
pub(super) type Given = BTreeMap<&'static str, String>;

struct Layers {
    config: Config,
    /// The settings that some layer names, with the name and the place that they have there.
    given: Given,
    problems: Vec<String>,
    /// Whether all providers of the server are known.
    has_providers: bool,
}

impl Layers {
    fn file(&mut self, path: &Path) {
        let shown = path.display();
        if is_of_home(path) {
            return self
                .problems
                .push(format!("--config: must be {WITHOUT_HOME}, got {shown}"));
        }
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.problems.push(format!("--config: cannot read {shown}: {error}")),
        };
        let table = match DeTable::parse(&text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let start = error.span().map_or(0, |span| span.start);
                let line = line_of(&text, start);
                let content = text.lines().nth(line - 1).unwrap_or_default();
                let message = match error.message() {
                    "duplicate key" => format!(
                        "duplicate key: {} is set twice; keep one line",
                        content.split('=').next().unwrap_or_default().trim()
                    ),
                    message => toml_mistakes::explain(content).unwrap_or_else(|| message.replace('\n', "; ")),
                };
                return self.problems.push(format!("{shown}:{line}: {message}"));
            }
        };
        let is_secret = |key: &str| Setting::find(key).is_some_and(|setting| setting.secret);
        if let Some((key, _)) = table.iter().find(|(key, _)| is_secret(key.get_ref())) {
            self.warn_if_open(key.get_ref(), path);
        }
        for (key, value) in &table {
            let name = key.get_ref().as_ref();
            let place = format!("{shown}:{}", line_of(&text, key.span().start));
            match Setting::find(name) {
                None if matches!(value.get_ref(), DeValue::Table(_)) => self.problems.push(format!(
                    "unknown setting {name} ({place}): [{name}] is a table, and settings are in none; write its keys above all tables, such as {}",
                    "listen = \"127.0.0.1:7420\""
                )),
                Some(setting) => self.set(setting, &Value::Toml(value.get_ref()), name, &place),
                None => self
                    .problems
                    .push(format!("unknown setting {name} ({place}){}", suggestion(name))),
            }
        }
    }

    fn environment(&mut self, env: impl IntoIterator<Item = (OsString, OsString)>) {
        // Sorted, so that messages do not depend on the order of the environment.
        let ours: BTreeMap<OsString, OsString> = env
            .into_iter()
            .filter(|(name, _)| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
            .collect();
        for (variable, value) in &ours {
            let Some(variable) = variable.to_str() else {
                self.problems
                    .push(format!("unknown environment variable {}", variable.display()));
                continue;
            };
            let key = &variable[PREFIX.len()..];
            let Some(name) = lower(key) else {
                self.problems.push(unknown_variable(variable, key));
                continue;
            };
            if let Some(setting) = Setting::find(&name) {
                self.variable(setting, variable, value);
            } else if let Some(setting) = name.strip_suffix(FILE).and_then(Setting::find).filter(|s| s.secret) {
                if ours.contains_key(OsStr::new(&setting.env())) {
                    self.problems
                        .push(format!("{} and {variable} are both set; keep one", setting.env()));
                } else {
                    self.secret_file(setting, variable, value);
                }
            } else if let Some(id) = name.strip_prefix(PROVIDER_KEY) {
                self.provider_key(id, variable, value);
            } else if !OF_THE_CLIENT.contains(&key) && !is_service_link(key) {
                self.problems.push(unknown_variable(variable, key));
            }
        }
    }

    /// A managed credential in a variable of its own, or in the file that the variable names.
    fn provider_key(&mut self, id: &str, variable: &str, value: &OsStr) {
        let providers = &self.config.providers;
        let named = |id: &str| model_providers::of_variable(providers, id);
        let of_file = id.strip_suffix(FILE).and_then(named);
        let (provider, is_file) = match (named(id), of_file) {
            (Some(provider), None) => (provider, false),
            (None, Some(provider)) => (provider, true),
            (Some(one), Some(other)) => {
                let problem = format!(
                    "{variable} (environment): may be the key for {one} and the file of the key for {other}; write both into provider_api_keys"
                );
                return self.problems.push(problem);
            }
            (None, None) if !self.has_providers => return,
            (None, None) => {
                let ids: Vec<_> = providers.iter().map(|provider| provider.id().to_string()).collect();
                let known = match ids.is_empty() {
                    true => "no provider: it stands in the file of --config".to_owned(),
                    false => ids.join(", "),
                };
                let problem = format!(
                    "{variable} (environment): is for no provider: there are openai and anthropic, and the setting providers lists {known}"
                );
                return self.problems.push(problem);
            }
        };
        let text = match (is_file, value.to_str()) {
            (true, _) => self.secret_text("provider_api_keys", variable, value),
            (false, Some(text)) => Some(text.to_owned()),
            (false, None) => return self.problems.push(format!("{variable} (environment): must be UTF-8")),
        };
        let Some(text) = text else { return };
        match model_providers::provider_key(provider, &text) {
            Ok(key)
                if self
                    .config
                    .provider_api_keys
                    .get(&provider)
                    .is_none_or(|other| *other == key) =>
            {
                self.config.provider_api_keys.insert(provider, key);
                let shown = format!("{variable} (environment)");
                self.given.insert("provider_api_keys", shown);
            }
            Ok(_) => self.problems.push(format!(
                "{variable} (environment): the key for {provider} is set in another place too; keep one"
            )),
            Err(fault) => self.problems.push(format!("{variable} (environment): {fault}")),
        }
    }

    fn variable(&mut self, setting: &Setting, variable: &str, value: &OsStr) {
        match value.to_str() {
            Some(text) if setting.secret && text.trim().is_empty() => {
                self.problems.push(empty_secret(variable, "environment"));
            }
            Some(text) => self.set(setting, &Value::Text(text), variable, "environment"),
            None => self.problems.push(format!("{variable} (environment): must be UTF-8")),
        }
    }

    fn secret_file(&mut self, setting: &Setting, variable: &str, path: &OsStr) {
        if let Some(text) = self.secret_text(setting.name, variable, path) {
            let place = format!("file {}", path.display());
            self.set(setting, &Value::Text(&text), variable, &place);
        }
    }

    /// The secret in the file that a variable names.
    fn secret_text(&mut self, secret: &str, variable: &str, path: &OsStr) -> Option<String> {
        if is_of_home(Path::new(path)) {
            let path = path.display();
            self.problems
                .push(format!("{variable} (environment): must be {WITHOUT_HOME}, got {path}"));
            return None;
        }
        match fs::read_to_string(path) {
            Ok(text) if text.trim().is_empty() => {
                self.problems
                    .push(empty_secret(variable, &format!("file {}", path.display())));
                None
            }
            // Editors and `echo` end a file with a newline, which is not part of the secret.
            Ok(text) => {
                self.warn_if_open(secret, Path::new(path));
                let text = text.strip_suffix('\n').unwrap_or(&text);
                Some(text.strip_suffix('\r').unwrap_or(text).to_owned())
            }
            Err(error) => {
                let path = path.display();
                self.problems.push(format!("{variable}: cannot read {path}: {error}"));
                None
            }
        }
    }

    /// Warns of a file with a secret that other users can read. It is not refused, because in a container all users may
    /// be one.
    fn warn_if_open(&mut self, secret: &str, path: &Path) {
        let Ok(found) = fs::metadata(path) else {
            return;
        };
        let mode = found.mode() & 0o777;
        if mode & files::rights_of_others(&found) != 0 {
            let path = path.display();
            self.config.warnings.push(format!(
                "{path} holds the secret {secret} and is open to other users (mode {mode:03o}); run `chmod 600 {path}`"
            ));
        }
    }

    fn flags(&mut self, flags: &Flags) {
        if let Some(path) = &flags.data {
            if path.as_os_str().is_empty() {
                self.problems
                    .push("--data (command line): must be a path, got \"\"".to_owned());
            } else if is_of_home(path) {
                let path = path.display();
                self.problems
                    .push(format!("--data (command line): must be {WITHOUT_HOME}, got {path}"));
            }
            self.config.data.clone_from(path);
            self.config.names_data = true;
        }
        if let (Some(text), Some(setting)) = (&flags.listen, Setting::find("listen")) {
            self.set(setting, &Value::Text(text), "--listen", "command line");
        }
        if let Some(seconds) = flags.wait_for {
            self.config.database_wait = std::time::Duration::from_secs(seconds.into());
        }
    }

    /// The standard variables of OpenTelemetry, for what no setting of this server says.
    fn standard(&mut self, variables: &StandardVariables) {
        let whole = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        if self.config.otlp_endpoint.is_none() && !variables.are_off() {
            match variables
                .first(&[whole])
                .map(|(_, url)| otlp::traces_url(&Value::Text(url)))
            {
                Some(Ok(url)) => self.config.otel.traces_url = url,
                Some(Err(fault)) => self.problems.push(format!("{whole} (environment): {fault}")),
                None => self.set_by(variables, "otlp_endpoint", &["OTEL_EXPORTER_OTLP_ENDPOINT"]),
            }
        }
        if self.config.otlp_endpoint.is_none() && self.config.otel.traces_url.is_none() {
            return;
        }
        if self.config.otlp_headers.is_none() {
            let names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
            self.set_by(variables, "otlp_headers", &names);
        }
        if self.config.otlp_protocol.is_none() {
            let names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
            self.set_by(variables, "otlp_protocol", &names);
        }
        match variables.resource() {
            Ok(resource) => self.config.otel.resource = resource,
            Err(name) => self.config.warnings.push(format!(
                "{name} is not used: it must be names and values such as deployment.environment.name=test,team=models"
            )),
        }
    }

    /// Sets a setting to the first of these variables that is there.
    fn set_by(&mut self, variables: &StandardVariables, setting: &str, names: &[&'static str]) {
        if let (Some((name, value)), Some(setting)) = (variables.first(names), Setting::find(setting)) {
            self.set(setting, &Value::Text(value), name, "environment");
        }
    }

    fn set(&mut self, setting: &Setting, value: &Value<'_>, name: &str, place: &str) {
        let before = self.config.clone();
        self.config.names_data |= setting.name == "data";
        match (setting.set)(&mut self.config, value) {
            Ok(()) if self.config == before => {}
            Ok(()) => drop(self.given.insert(setting.name, format!("{name} ({place})"))),
            Err(fault) => {
                let fault = setting.shown_fault(&fault);
                self.problems.push(format!("{name} ({place}): {fault}"));
            }
        }
    }
}

/// The fault of a secret that is set to nothing, as by a file whose writing has failed.
fn empty_secret(variable: &str, place: &str) -> String {
    format!("{variable} ({place}): must be the secret, and is empty: write the secret, or unset the variable")
}

/// The key of a variable in lower case, if it was all upper case.
fn lower(key: &str) -> Option<String> {
    (!key.bytes().any(|b| b.is_ascii_lowercase())).then(|| key.to_ascii_lowercase())
}

fn unknown_variable(variable: &str, key: &str) -> String {
    let name = key.to_ascii_lowercase();
    if let Some(setting) = name
        .strip_suffix(FILE)
        .and_then(Setting::find)
        .filter(|setting| !setting.secret)
    {
        return format!(
            "unknown environment variable {variable}: only secrets are read from files, set {}",
            setting.env()
        );
    }
    let nearest = nearest(&name).map(|setting| format!("; did you mean {}?", setting.env()));
    format!("unknown environment variable {variable}{}", nearest.unwrap_or_default())
}

fn suggestion(name: &str) -> String {
    nearest(name)
        .map(|setting| format!("; did you mean {}?", setting.name))
        .unwrap_or_default()
}

/// The setting that was probably meant.
fn nearest(name: &str) -> Option<&'static Setting> {
    let lowered = name.to_ascii_lowercase().replace('-', "_");
    let bare = lowered
        .strip_suffix(&FILE_SUFFIX.to_ascii_lowercase())
        .unwrap_or(&lowered);
    let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    nearest_name(bare, &names).and_then(Setting::find)
}

/// Whether a variable is one that Kubernetes sets in every container for a service that is named `agentcfg` or
/// `agentcfg-<something>`. Such a variable is not a mistyped setting.
fn is_service_link(key: &str) -> bool {
    let port_of = |marker: &str| key == &marker[1..] || key.ends_with(marker);
    if port_of("_SERVICE_HOST") || port_of("_SERVICE_PORT") || port_of("_PORT") {
        return true;
    }
    if key.starts_with("SERVICE_PORT_") || key.contains("_SERVICE_PORT_") {
        return true;
    }
    // PORT_<n>_TCP, and the same with _ADDR, _PORT or _PROTO.
    let Some((_, rest)) = key
        .split_once("PORT_")
        .filter(|(before, _)| before.is_empty() || before.ends_with('_'))
    else {
        return false;
    };
    let Some((number, protocol)) = rest.split_once('_') else {
        return false;
    };
    let protocol = ["_ADDR", "_PORT", "_PROTO"]
        .iter()
        .find_map(|end| protocol.strip_suffix(end))
        .unwrap_or(protocol);
    number.parse::<u16>().is_ok() && ["TCP", "UDP", "SCTP"].contains(&protocol)
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
}
