//! From the OpenAPI document to Markdown.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::schema::{limits, referred, type_of};
use super::spaced_json;
use crate::api::openapi::json_tree::JsonTree;

/// What is encoded in the URL of an example: all but the characters that a path or a query can have.
const IN_URLS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':');

/// The file in which the lines keep the cookie of a session.
const COOKIES: &str = "cookies.txt";
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The API as one text: each group with its operations, then the failures and the types.
pub(super) fn reference(document: &Value) -> String {
    let mut text = Text::default();
    let info = document.get("info");
    let said = |name: &str| info.map(|info| info.text(name)).unwrap_or_default();
    text.line(&format!("# {} {}", said("title"), said("version")));
    text.paragraph(said("description"));
    text.paragraph(
        "This text is also at [docs.md](docs.md), as a page at [docs](docs), and as an OpenAPI document at \
         [openapi.json](openapi.json). In the examples `SERVER_URL` is where the server is, such as \
         `http://127.0.0.1:7420`, `API_KEY` or `SESSION_TOKEN` the credential, and `WORKSPACE_ID` the workspace.",
    );
    text.line("## Credentials");
    let bearer = document.resolve("#/components/securitySchemes/bearer");
    text.paragraph(bearer.map(|bearer| bearer.text("description")).unwrap_or_default());

    for tag in tags(document) {
        text.line(&format!("## {}", tag.text("name")));
        text.paragraph(tag.text("description"));
        for operation in operations(document).filter(|operation| operation.is_of(tag.text("name"))) {
            operation.describe(document, &mut text);
        }
    }
    describe_failures(document, &mut text);
    describe_types(document, &mut text);
    text.0
}

/// The index of the documentation for language models, as llmstxt.org describes it.
pub(super) fn index(document: &Value) -> String {
    let mut text = Text::default();
    let info = document.get("info");
    let said = |name: &str| info.map(|info| info.text(name)).unwrap_or_default();
    text.line(&format!("# {}", said("title")));
    text.line(&format!("> {}", said("summary")));
    text.paragraph(
        "A REST API. Requests and answers are JSON, failures are `{\"error\": \"…\"}`. Send `Authorization: Bearer \
         <credential>` with an API key or a session token. Links are relative to this file.",
    );
    text.line("## Documentation");
    text.item(
        "docs.md",
        "API reference",
        "every operation with its parameters, fields, limits, answers and a curl line",
    );
    text.item("openapi.json", "OpenAPI document", "the same for generators of clients");
    text.item("docs", "API reference as a page", "the same for people");
    text.line("");
    text.line("## Tools");
    text.item(
        "mcp",
        "MCP endpoint",
        "`POST`, Model Context Protocol by Streamable HTTP: agents as tools, resources and prompts",
    );
    text.line("");
    text.line("## Topics");
    for tag in tags(document) {
        let name = tag.text("name");
        text.item(
            &format!("docs.md#{}", slug(name)),
            name,
            tag.text("description").trim_end_matches('.'),
        );
    }
    text.0
}

/// The fragment that leads to a heading, as the usual renderers of Markdown make it.
pub(super) fn slug(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

/// A Markdown text that grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// A line with an empty one after it.
    fn line(&mut self, text: &str) {
        self.raw(text);
        if !text.is_empty() {
            self.raw("");
        }
    }

    /// A text of one or more paragraphs.
    fn paragraph(&mut self, text: &str) {
        self.line(text.trim_end());
    }

    /// An item of a list of links.
    fn item(&mut self, target: &str, title: &str, text: &str) {
        self.raw(&format!("- [{title}]({target}): {text}"));
    }

    fn code(&mut self, language: &str, code: &str) {
        self.raw(&format!("```{language}"));
        self.raw(code);
        self.line("```");
    }

    /// A table. A column whose cells are all empty is left out.
    fn table<const N: usize>(&mut self, head: [&str; N], rows: &[[String; N]]) {
        let kept: Vec<usize> = (0..N)
            .filter(|column| rows.iter().any(|row| !row[*column].is_empty()))
            .collect();
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        self.raw(&line(kept.iter().map(|column| head[*column].to_owned()).collect()));
        self.raw(&line(kept.iter().map(|_| "---".to_owned()).collect()));
        for row in rows {
            let cell = |column: &usize| row[*column].replace('|', "\\|").replace('\n', " ");
            self.raw(&line(kept.iter().map(cell).collect()));
        }
        self.raw("");
    }
}

fn tags(document: &Value) -> &[Value] {
    document.get("tags").map(Value::items).unwrap_or_default()
}

/// An operation and where it is.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    node: &'a Value,
}

/// All operations, in the order of the document.
fn operations(document: &Value) -> impl Iterator<Item = Operation<'_>> {
    let paths = document.get("paths").into_iter().flat_map(Value::members);
    paths.flat_map(|(path, item)| {
        let methods = item.members().filter(|(method, _)| METHODS.contains(method));
        methods.map(move |(method, node)| Operation { method, path, node })
    })
}

/// A component, where the node refers to one.
fn resolved<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    document.resolve(node.text("$ref")).unwrap_or(node)
}

impl<'a> Operation<'a> {
    fn is_of(&self, tag: &str) -> bool {
        let tags = self.node.get("tags").map(Value::items).unwrap_or_default();
        tags.iter().any(|name| name.as_str() == Some(tag))
    }

    fn parameters(&self, document: &'a Value) -> impl Iterator<Item = &'a Value> {
        let parameters = self.node.get("parameters").map(Value::items).unwrap_or_default();
        parameters.iter().map(move |parameter| resolved(document, parameter))
    }

    /// The JSON of the body, if there is one: its schema and its examples.
    fn body(&self) -> Option<&'a Value> {
        self.node.get("requestBody")?.get("content")?.get("application/json")
    }

    fn describe(&self, document: &Value, text: &mut Text) {
        text.line(&format!("### {}", self.node.text("summary")));
        text.line(&format!("`{} {}`", self.method.to_uppercase(), self.path));
        text.paragraph(self.node.text("description"));
        let rows: Vec<_> = self
            .parameters(document)
            .map(|parameter| parameter_row(document, parameter))
            .collect();
        if !rows.is_empty() {
            text.table(["parameter", "in", "required", "type", "limits", "meaning"], &rows);
        }
        if let Some(body) = self.body() {
            self.describe_body(document, body, text);
        }
        text.code("sh", &self.curl(document));
        self.describe_answers(text);
    }

    fn describe_body(&self, document: &Value, body: &Value, text: &mut Text) {
        let schema = body.get("schema").unwrap_or(body);
        let fields = resolved(document, schema);
        let own = self.node.get("requestBody").map(|body| body.text("description"));
        let said = [fields.text("description"), own.unwrap_or_default()];
        let said = said.into_iter().find(|said| !said.is_empty()).unwrap_or_default();
        text.paragraph(&format!("**Body**, JSON. {said}"));
        if fields.get("properties").is_some() {
            fields_table(document, fields, text);
        }
    }

    fn describe_answers(&self, text: &mut Text) {
        let answers = self.node.get("responses").into_iter().flat_map(Value::members);
        let (mut good, mut failures) = (Vec::new(), Vec::new());
        for (status, answer) in answers {
            if let Some(name) = referred(answer) {
                failures.push(format!("{status} [{name}](#failures)"));
                continue;
            }
            let content = answer.get("content").into_iter().flat_map(Value::members);
            let shown: Vec<_> = content.map(|(kind, content)| shown(kind, content)).collect();
            let headers = answer.get("headers").into_iter().flat_map(Value::members);
            let headers: Vec<_> = headers
                .map(|(name, _)| name)
                .filter(|name| !is_usual(name))
                .map(|name| format!("`{name}`"))
                .collect();
            good.push([
                status.to_owned(),
                answer.text("description").to_owned(),
                shown.join("; "),
                headers.join(", "),
            ]);
        }
        text.table(["status", "answer", "body", "header fields"], &good);
        text.paragraph(&format!("**Failures:** {}", failures.join(", ")));
        let content = self.node.get("responses").into_iter().flat_map(Value::members);
        let examples =
            content.filter_map(|(_, answer)| answer.get("content")?.get("application/json")?.get("examples"));
        if let Some(example) = examples
            .flat_map(Value::members)
            .next()
            .and_then(|(_, example)| example.get("value"))
        {
            text.code("json", &spaced_json::lines(example));
        }
    }

    /// A line that makes this request with what is required and the first example of a body.
    fn curl(&self, document: &Value) -> String {
        let mut path = self.path.to_owned();
        let mut query = Vec::new();
        // Where nothing is required, one of two parameters is: the workspace, or what leads to it.
        let workspace = match self.parameters(document).any(is_required_query) {
            true => "",
            false => "workspace_id",
        };
        for parameter in self.parameters(document) {
            let name = parameter.text("name");
            let Some(example) = example_of(document, parameter) else {
                continue;
            };
            match parameter.text("in") {
                "path" => path = path.replace(&format!("{{{name}}}"), &example),
                // A position is needed, be it by this parameter or by a header field.
                "query" if name == "after" => query.push("after=start".to_owned()),
                "query" if is_usual_query(parameter) || name == workspace => query.push(format!("{name}={example}")),
                _ => {}
            }
        }
        let query = if query.is_empty() {
            String::new()
        } else {
            format!("?{}", query.join("&"))
        };
        let mut line = String::from("curl");
        let body = self.body().and_then(|body| body.get("examples")?.members().next());
        let body = body.and_then(|(_, example)| example.get("value"));
        let usual = if body.is_some() { "post" } else { "get" };
        if self.method != usual {
            line.push_str(&format!(" -X {}", self.method.to_uppercase()));
        }
        line.push_str(&format!(" \"$SERVER_URL{path}{query}\""));
        match self.credential() {
            // The session of a cookie is ended by the cookie, and the server takes it for a change from its own pages
            // alone.
            Some(_) if self.sets_cookie() && self.method == "delete" => {
                line.push_str(&format!(" \\\n  -b {COOKIES} -H \"Sec-Fetch-Site: same-origin\""));
            }
            Some(credential) => line.push_str(&format!(" \\\n  -H \"Authorization: Bearer ${credential}\"")),
            None => {}
        }
        if self.sets_cookie() && self.method == "post" {
            line.push_str(&format!(" \\\n  -c {COOKIES}"));
        }
        if let Some(body) = body {
            line.push_str(&format!(" \\\n  --json '{}'", in_quotes(body)));
        }
        line
    }

    /// Whether an answer sets the cookie of a session, or removes it.
    fn sets_cookie(&self) -> bool {
        let mut answers = self.node.get("responses").into_iter().flat_map(Value::members);
        answers.any(|(_, answer)| {
            answer
                .get("headers")
                .is_some_and(|headers| headers.get("Set-Cookie").is_some())
        })
    }

    /// The variable that holds the credential of the line.
    fn credential(&self) -> Option<&'static str> {
        let accepted = self
            .node
            .get("x-accepted-credentials")
            .map(Value::items)
            .unwrap_or_default();
        let accepts = |kind| accepted.iter().any(|accepted| accepted.as_str() == Some(kind));
        match (accepts("api_key"), accepts("session")) {
            (true, _) => Some("API_KEY"),
            (false, true) => Some("SESSION_TOKEN"),
            (false, false) => None,
        }
    }
}

/// The example of a parameter, as it stands in a URL.
fn example_of(document: &Value, parameter: &Value) -> Option<String> {
    if parameter.text("name") == "workspace_id" {
        return Some("$WORKSPACE_ID".to_owned());
    }
    let schema = resolved(document, parameter.get("schema")?);
    let words = schema.get("enum").and_then(|words| words.items().first());
    let example = parameter.get("example").or(words)?;
    let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
    Some(utf8_percent_encode(&text, IN_URLS).to_string())
}

/// A body between single quotes of a shell, with the workspace of the variable.
fn in_quotes(body: &Value) -> String {
    let own = body.text("workspace_id");
    let text = spaced_json::line(body).replace('\'', r"'\''");
    match own {
        "" => text,
        id => text.replacen(id, r#"'"$WORKSPACE_ID"'"#, 1),
    }
}

/// Header fields of every answer, which the introduction describes.
fn is_usual(name: &str) -> bool {
    name == "X-Request-Id" || name.starts_with("X-RateLimit-") || matches!(name, "Content-Encoding" | "Vary")
}

fn shown(kind: &str, content: &Value) -> String {
    let of = content.get("schema").map(type_of).unwrap_or_default();
    match kind {
        "application/json" => of,
        kind => format!("`{kind}`: {of}"),
    }
}

fn parameter_row(document: &Value, parameter: &Value) -> [String; 6] {
    let schema = parameter.get("schema").unwrap_or(parameter);
    [
        format!("`{}`", parameter.text("name")),
        parameter.text("in").to_owned(),
        is_required(parameter.get("required").is_some()),
        type_of(schema),
        limits(document, schema),
        parameter.text("description").to_owned(),
    ]
}

/// Whether most callers need the parameter: it is required, or its description says when it is not.
fn is_usual_query(parameter: &Value) -> bool {
    let description = parameter.get("description").and_then(Value::as_str);
    is_required_query(parameter) || description.is_some_and(|text| text.contains("It is required, unless"))
}

fn is_required_query(parameter: &Value) -> bool {
    parameter.text("in") == "query" && parameter.get("required").is_some()
}

fn is_required(is_required: bool) -> String {
    (if is_required { "yes" } else { "no" }).to_owned()
}

fn fields_table(document: &Value, schema: &Value, text: &mut Text) {
    let required = schema.get("required").map(Value::items).unwrap_or_default();
    let fields = schema.get("properties").into_iter().flat_map(Value::members);
    let rows: Vec<_> = fields
        .map(|(name, field)| {
            let target = resolved(document, field);
            let said = [field, target].map(|node| node.text("description"));
            [
                format!("`{name}`"),
                is_required(required.iter().any(|required| required.as_str() == Some(name))),
                type_of(field),
                limits(document, field),
                said.into_iter()
                    .find(|said| !said.is_empty())
                    .unwrap_or_default()
                    .to_owned(),
            ]
        })
        .collect();
    text.table(["field", "required", "type", "limits", "meaning"], &rows);
}

fn describe_failures(document: &Value, text: &mut Text) {
    text.line("## Failures");
    text.paragraph("Each has the body `{\"error\": \"…\"}`, whose text names what is wrong.");
    let mut statuses: BTreeMap<&str, &str> = BTreeMap::new();
    let unrouted = document.get("x-unrouted-responses");
    let answers = operations(document).filter_map(|operation| operation.node.get("responses"));
    for (status, answer) in answers.chain(unrouted).flat_map(Value::members) {
        statuses.extend(referred(answer).map(|name| (name, status)));
    }
    let components = document
        .resolve("#/components/responses")
        .into_iter()
        .flat_map(Value::members);
    let mut rows: Vec<_> = components
        .map(|(name, failure)| {
            let json = failure
                .get("content")
                .and_then(|content| content.get("application/json"));
            let examples = json.and_then(|json| json.get("examples"));
            let messages = examples.into_iter().flat_map(Value::members);
            let messages: Vec<_> = messages
                .filter_map(|(_, example)| Some(format!("`{}`", example.get("value")?.text("error"))))
                .collect();
            [
                statuses.get(name).copied().unwrap_or_default().to_owned(),
                name.to_owned(),
                failure.text("description").to_owned(),
                messages.join(", "),
            ]
        })
        .collect();
    rows.sort();
    text.table(["status", "name", "meaning", "messages, for example"], &rows);
}

/// The types, except those that are the body of an operation and nothing else: these are where the operation is.
fn describe_types(document: &Value, text: &mut Text) {
    text.line("## Types");
    let types = document.resolve("#/components/schemas");
    let bodies: Vec<_> = operations(document)
        .filter_map(|operation| referred(operation.body()?.get("schema")?))
        .collect();
    for (name, schema) in types.into_iter().flat_map(Value::members) {
        let is_used = types.is_some_and(|types| types.members().any(|(_, other)| uses(other, name)));
        if bodies.contains(&name) && !is_used {
            continue;
        }
        text.line(&format!("### {name}"));
        text.paragraph(schema.text("description"));
        if schema.get("properties").is_some() {
            fields_table(document, schema, text);
        } else if let Some(kinds) = schema.get("oneOf") {
            let rows: Vec<_> = kinds.items().iter().map(kind_row).collect();
            text.table(["kind", "record"], &rows);
        } else {
            let limits = limits(document, schema);
            let end = if limits.is_empty() {
                String::new()
            } else {
                format!(": {limits}")
            };
            text.paragraph(&format!("{}{end}", type_of(schema)));
        }
    }
}

/// A row for an object that has a `kind` and a `record`.
fn kind_row(kind: &Value) -> [String; 2] {
    let property = |name| kind.get("properties").and_then(|properties| properties.get(name));
    ["kind", "record"].map(|name| property(name).map(type_of).unwrap_or_default())
}

/// Whether a schema refers to a type, at any depth.
fn uses(node: &Value, name: &str) -> bool {
    referred(node) == Some(name)
        || node.items().iter().any(|item| uses(item, name))
        || node.members().any(|(_, value)| uses(value, name))
}
