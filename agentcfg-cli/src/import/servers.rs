//! MCP servers by their names, and what each tool calls their members.

use super::definition::refusal_of;
use super::source_tree::{Entry, Node, Value, find, put};

/// What a tool reads of a server.
#[derive(Debug, PartialEq)]
pub struct Tool {
    pub members: &'static [&'static str],
    /// The values of `type`; none where it is not read.
    types: &'static [&'static str],
    /// The types of a program and of a URL, where the tool needs one.
    program: Option<&'static str>,
    remote: Option<&'static str>,
    /// Whether variables are named in members of their own, and are no part of a text.
    names_variables: bool,
}

pub const CLAUDE: Tool = Tool {
    members: &[
        "command",
        "args",
        "env",
        "url",
        "headers",
        "headersHelper",
        "oauth",
        "timeout",
        "alwaysLoad",
    ],
    types: &["stdio", "http", "streamable-http", "sse", "ws"],
    program: None,
    remote: Some("http"),
    names_variables: false,
};

pub const COPILOT: Tool = Tool {
    members: &[
        "command", "args", "env", "envFile", "cwd", "url", "headers", "tools", "timeout", "sandbox",
    ],
    types: &["local", "stdio", "http", "sse"],
    program: Some("local"),
    remote: Some("http"),
    names_variables: false,
};

pub const CODEX: Tool = Tool {
    members: &[
        "command",
        "args",
        "env",
        "env_vars",
        "cwd",
        "url",
        "bearer_token_env_var",
        "http_headers",
        "env_http_headers",
        "enabled_tools",
        "disabled_tools",
        "enabled",
        "required",
        "scopes",
        "startup_timeout_sec",
        "startup_timeout_ms",
        "tool_timeout_sec",
    ],
    types: &[],
    program: None,
    remote: None,
    names_variables: true,
};

/// What the values of `type` say of a server.
#[derive(PartialEq)]
enum Transport {
    Program,
    Http,
    Other,
}

fn transport(kind: &str) -> Transport {
    match kind {
        "stdio" | "local" => Transport::Program,
        "http" | "streamable-http" | "url" | "remote" => Transport::Http,
        _ => Transport::Other,
    }
}

/// A server as the members that a tool reads.
struct Translated<'a> {
    tool: &'a Tool,
    members: Vec<Entry>,
    /// The paths of what the tool does not read.
    lost: Vec<String>,
}

impl Tool {
    /// The entries of a definition's servers by their names, and the paths of what the tool does not read. A server
    /// that is as the source had it is written as there, and so are the members that the source had in it.
    pub fn entries(&self, servers: &Node, original: Option<&Node>) -> Option<(Vec<Entry>, Vec<String>)> {
        let before: Vec<&Entry> = original.map(maps).unwrap_or_default().into_iter().flatten().collect();
        let (mut entries, mut lost) = (Vec::new(), Vec::new());
        for node in servers.as_list()? {
            let name = node.text_of("name")?;
            let before = before.iter().find(|entry| entry.key == name);
            let written = match before {
                Some(entry) if server(entry) == *node => entry.node.clone(),
                _ => {
                    let own = before.map(|entry| entry.node.entries()).unwrap_or_default();
                    let translated = self.translated(node.entries(), own);
                    lost.extend(translated.lost.iter().map(|path| format!("{name}.{path}")));
                    Node::map(translated.members)
                }
            };
            entries.push(Entry::new(name, written));
        }
        Some((entries, lost))
    }

    fn translated(&self, members: &[Entry], own: &[Entry]) -> Translated<'_> {
        let mut translated = Translated {
            tool: self,
            members: Vec::new(),
            lost: Vec::new(),
        };
        let is_own = |key: &str| find(own, key).is_some();
        if !is_own("type") {
            translated.add_type(members);
        }
        for entry in members.iter().filter(|entry| entry.key != "name") {
            match entry.key.as_str() {
                key if is_own(key) => put(&mut translated.members, key, entry.node.clone()),
                "type" => {}
                _ => translated.add(entry),
            }
        }
        translated
    }
}

impl Translated<'_> {
    /// The type in the words of the tool.
    fn add_type(&mut self, members: &[Entry]) {
        let given = find(members, "type");
        let kind = given.and_then(Node::as_text);
        let found = match kind {
            Some(kind) => transport(kind),
            None if find(members, "url").is_some() => Transport::Http,
            None => Transport::Program,
        };
        let written = match (kind.filter(|kind| self.tool.types.contains(kind)), found) {
            (Some(kind), _) => Some(kind),
            (None, Transport::Program) => self.tool.program,
            (None, Transport::Http) => self.tool.remote,
            (None, Transport::Other) => None,
        };
        if let Some(kind) = written {
            self.members.push(Entry::new("type", Node::text(kind)));
        }
        let is_known = written.is_some() || kind.is_some_and(|kind| transport(kind) != Transport::Other);
        if given.is_some() && !is_known {
            self.lost.push("type".to_owned());
        }
    }

    fn reads(&self, key: &str) -> bool {
        self.tool.members.contains(&key)
    }

    fn add(&mut self, entry: &Entry) {
        let Entry { key, node, .. } = entry;
        let is_lost = match key.as_str() {
            "env" if self.tool.names_variables => return self.add_each(entry, Self::add_variable),
            key if self.reads(key) => {
                let node = self.in_its_words(node);
                match (find(&self.members, key).is_some_and(Node::is_map), node.is_map()) {
                    // Such as headers that came from members of another name.
                    (true, true) => node.entries().iter().for_each(|inner| self.put_in(key, inner.clone())),
                    _ => put(&mut self.members, key, node),
                }
                false
            }
            "headers" => return self.add_each(entry, Self::add_header),
            "http_headers" | "env_http_headers" if self.reads("headers") => {
                let is_named = key == "env_http_headers";
                return self.add_each(entry, |all, header| {
                    let value = header.node.as_text().filter(|_| is_named);
                    let node = value.map_or(header.node.clone(), |name| Node::text(format!("${{{name}}}")));
                    all.put_in("headers", Entry::new(&*header.key, node));
                    false
                });
            }
            "bearer_token_env_var" if self.reads("headers") => match node.as_text() {
                Some(name) => {
                    let bearer = Node::text(format!("Bearer ${{{name}}}"));
                    self.put_in("headers", Entry::new("Authorization", bearer));
                    false
                }
                None => true,
            },
            "env_vars" if self.reads("env") => {
                let names: Option<Vec<&str>> = node
                    .as_list()
                    .map(|names| names.iter().map(Node::as_text).collect())
                    .unwrap_or_default();
                for name in names.iter().flatten() {
                    self.put_in("env", Entry::new(*name, Node::text(format!("${{{name}}}"))));
                }
                names.is_none()
            }
            // All tools, which is what a tool takes that has no such member.
            "tools" if matches!(node.as_list(), Some([all]) if all.as_text() == Some("*")) => false,
            "tools" if self.reads("enabled_tools") => {
                put(&mut self.members, "enabled_tools", node.clone());
                false
            }
            "enabled_tools" if self.reads("tools") => {
                put(&mut self.members, "tools", node.clone());
                false
            }
            "enabled" => !matches!(node.value, Value::Bool(true)),
            _ => true,
        };
        if is_lost {
            self.lost.push(key.clone());
        }
    }

    /// Adds each member of a map. Those that `add` cannot add are lost, and so is what is no map.
    fn add_each(&mut self, entry: &Entry, add: impl Fn(&mut Self, &Entry) -> bool) {
        if !entry.node.is_map() {
            return self.lost.push(entry.key.clone());
        }
        for inner in entry.node.entries() {
            if add(self, inner) {
                self.lost.push(format!("{}.{}", entry.key, inner.key));
            }
        }
    }

    /// A header for a tool that has members for those of variables. Returns whether it has no place.
    fn add_header(&mut self, header: &Entry) -> bool {
        let Some(value) = header.node.as_text() else {
            return true;
        };
        let bearer = value.strip_prefix("Bearer ").and_then(variable);
        let is_authorization = header.key.eq_ignore_ascii_case("authorization");
        match (bearer.filter(|_| is_authorization), variable(value)) {
            (Some(name), _) => put(&mut self.members, "bearer_token_env_var", Node::text(name)),
            (None, Some(name)) => self.put_in("env_http_headers", Entry::new(&*header.key, Node::text(name))),
            (None, None) if value.contains("${") => return true,
            (None, None) => self.put_in("http_headers", header.clone()),
        }
        false
    }

    /// A variable of a program for a tool that passes variables on by their names.
    fn add_variable(&mut self, entry: &Entry) -> bool {
        match entry.node.as_text() {
            Some(text) if variable(text) == Some(&*entry.key) => {
                let name = Node::text(&*entry.key);
                let names = self.members.iter_mut().find(|member| member.key == "env_vars");
                match names.map(|names| &mut names.node.value) {
                    Some(Value::List(names)) => names.push(name),
                    _ => put(&mut self.members, "env_vars", Node::list(vec![name])),
                }
            }
            Some(text) if text.contains("${") => return true,
            _ => self.put_in("env", entry.clone()),
        }
        false
    }

    /// Puts a member into a map of the server.
    fn put_in(&mut self, key: &str, entry: Entry) {
        let mut members = Node::map(std::mem::take(&mut self.members));
        if let Some(inner) = members.map_at(key).and_then(Node::entries_mut) {
            put(inner, &entry.key, entry.node);
        }
        if let Some(entries) = members.entries_mut() {
            self.members = std::mem::take(entries);
        }
    }

    /// A value whose references to variables are those of the tool.
    fn in_its_words(&self, node: &Node) -> Node {
        let value = match &node.value {
            Value::Text(text) if *self.tool == CLAUDE => Value::Text(text.replace("${env:", "${")),
            Value::List(items) => Value::List(items.iter().map(|item| self.in_its_words(item)).collect()),
            Value::Map(entries) => {
                let inner = |entry: &Entry| Entry {
                    node: self.in_its_words(&entry.node),
                    ..entry.clone()
                };
                Value::Map(entries.iter().map(inner).collect())
            }
            value => value.clone(),
        };
        Node::at(node.place, value)
    }
}

/// The name in `${NAME}` or `${env:NAME}`, which is a whole text.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(is_of_name)).then_some(name)
}

/// The entries of a source with other servers: those that are no servers stay, and the order too.
pub fn with_servers(original: Option<&[Entry]>, mut servers: Vec<Entry>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for entry in original.unwrap_or_default() {
        match servers.iter().position(|server| server.key == entry.key) {
            Some(at) => entries.push(servers.remove(at)),
            None if is_server(entry) => {}
            None => entries.push(entry.clone()),
        }
    }
    entries.extend(servers);
    entries
}

/// The servers of a map by names, or of a list with such maps. Names alone refer to servers that are defined elsewhere.
pub fn servers_of(node: Option<&Node>) -> Vec<Node> {
    let servers = node.map(maps).unwrap_or_default().into_iter().flatten();
    servers.filter(|entry| is_server(entry)).map(server).collect()
}

/// Whether all that a value has are servers that the service takes.
pub fn all_are_servers(node: &Node) -> bool {
    let is_of_servers = |part: &Node| part.is_map() && part.entries().iter().all(is_server);
    match &node.value {
        Value::List(items) => items.iter().all(is_of_servers),
        _ => is_of_servers(node),
    }
}

/// Whether an entry is a server by its name that the service takes. A member `name` of it would be lost.
fn is_server(entry: &Entry) -> bool {
    is_named_server(entry) && refusal(entry).is_none()
}

fn is_named_server(entry: &Entry) -> bool {
    entry.node.is_map() && entry.node.get("name").is_none()
}

fn server(entry: &Entry) -> Node {
    let name = Entry::new("name", Node::text(&*entry.key));
    let members = [name].into_iter().chain(entry.node.entries().iter().cloned());
    Node::at(entry.place, Value::Map(members.collect()))
}

/// Why the service does not take a server.
fn refusal(entry: &Entry) -> Option<String> {
    refusal_of("mcp_servers", &Node::list(vec![server(entry)]))
}

/// The servers that the service does not take, each with the reason.
pub fn refused_servers(node: &Node) -> Vec<(&Entry, String)> {
    let entries = maps(node).into_iter().flatten();
    let refused = |entry| Some((entry, refusal(entry)?));
    entries
        .filter(|entry| is_named_server(entry))
        .filter_map(refused)
        .collect()
}

/// The maps of servers by their names.
fn maps(node: &Node) -> Vec<&[Entry]> {
    match &node.value {
        Value::List(items) => items.iter().map(Node::entries).collect(),
        _ => vec![node.entries()],
    }
}
