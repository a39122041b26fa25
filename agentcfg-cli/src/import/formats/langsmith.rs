//! Prompts of LangSmith: commits with manifests, which are trees of constructors of LangChain. No constructor is run.

use super::super::convert::As;
use super::super::output_file::{File, NotHeld};
use super::super::source_tree::{Entry, Node, Value, find, put, take};
use super::super::table::To::{Definition, Field, Kept};
use super::super::table::{Format, Record};
use super::super::written::Written;
use super::super::{Reading, Source};
use super::json::{files, objects};
use crate::agent_file::{Place, Problem};

pub const FORMAT: Format = Format {
    word: "langsmith",
    rows: &[
        ("repo_handle", Field("display_name"), As::Text),
        ("description", Field("description"), As::Text),
        ("owner", Kept, As::Text),
        ("commit_hash", Kept, As::Text),
        ("$system", Field("persona_prompt"), As::Text),
        ("$model", Field("model"), As::Text),
        ("$schema", Definition("output_schema"), As::Any),
        ("manifest", Kept, As::Any),
        ("examples", Kept, As::Any),
    ],
    requires: &["manifest"],
    prefers_jsonc: false,
    files: &[".json"],
    directories: &[],
    home: None,
    unique: None,
    unversioned: &[],
    read,
    write,
};

/// Stands for the classes of models, such as `ChatOpenAI`, `AzureChatOpenAI` and `OpenAI`.
const CHAT: &str = "Chat";

/// What is taken out of a manifest: the key of the table, the class by the last part of its id, and the names of the
/// argument.
const TAKEN: [(&str, &[&str], &[&str]); 3] = [
    (
        "$system",
        &[
            "SystemMessagePromptTemplate",
            "SystemMessage",
            "PromptTemplate",
            "FewShotPromptTemplate",
        ],
        &["template", "prefix", "content"],
    ),
    ("$model", &["RunnableBinding", CHAT], &["model", "model_name"]),
    ("$schema", &["StructuredPrompt"], &["schema_"]),
];

fn read(source: &Source<'_>, reading: &mut Reading) {
    for object in objects(source, reading) {
        let is_manifest = class(&object).is_some();
        let mut entries = match is_manifest {
            true => vec![Entry::new("manifest", object.clone())],
            false => object.entries().to_vec(),
        };
        let Some(manifest) = entries
            .iter_mut()
            .find(|entry| entry.key == "manifest" && class(&entry.node).is_some())
        else {
            reading.skip(source, format!("line {}: no manifest of a prompt", object.place.line));
            continue;
        };
        if let Some((place, number)) = parts_of_system(&manifest.node) {
            let message =
                format!("the message of the system has {number} parts, of which the first text is the persona");
            reading.warnings.push(Problem::new(source.path, place, message));
        }
        let mut taken = Vec::new();
        for (key, classes, names) in TAKEN {
            let argument = argument(&mut manifest.node, classes, names, &|node| match key {
                "$system" => node.as_text().is_some(),
                _ => !matches!(node.value, Value::Null),
            });
            if let Some(slot) = argument {
                let marker = Node::at(slot.place, Value::Text(key.to_owned()));
                taken.push(Entry::new(key, std::mem::replace(slot, marker)));
            }
        }
        entries.extend(taken);
        let mut record = Record::new(source.path, object.place, entries, source.stem());
        // `-` stands for the owner of the key.
        let owner = object.text_of("owner").filter(|owner| *owner != "-");
        record.identity = owner.map(|owner| ("owner", owner.to_owned()));
        if is_manifest {
            record
                .beside
                .push(Entry::new("$bare", Node::at(object.place, Value::Bool(true))));
        }
        reading.records.push(record);
    }
}

/// Where a message of the system has several parts, and how many.
fn parts_of_system(node: &Node) -> Option<(Place, usize)> {
    if matches!(class(node), Some("SystemMessagePromptTemplate" | "SystemMessage")) {
        let arguments = node.get("kwargs")?.entries().iter();
        let mut lists = arguments.filter(|entry| matches!(&*entry.key, "prompt" | "content"));
        let parts = lists.find_map(|entry| Some((entry.place, entry.node.as_list()?.len())));
        return parts.filter(|(_, number)| *number > 1);
    }
    match &node.value {
        Value::List(items) => items.iter().find_map(parts_of_system),
        Value::Map(entries) => entries.iter().find_map(|entry| parts_of_system(&entry.node)),
        _ => None,
    }
}

/// The last part of the id of a constructor.
fn class(node: &Node) -> Option<&str> {
    let is_node = node.get("lc").is_some() && node.text_of("type").is_some();
    node.get("id").filter(|_| is_node)?.as_list()?.last()?.as_text()
}

/// The first argument of one of these names, in the first constructor of one of these classes, that is accepted. The
/// template of a system message is within its prompt.
fn argument<'a>(
    node: &'a mut Node,
    classes: &[&str],
    names: &[&str],
    accepts: &dyn Fn(&Node) -> bool,
) -> Option<&'a mut Node> {
    let is_model =
        |class: &str| (class.contains(CHAT) || class.ends_with("OpenAI")) && !class.ends_with("PromptTemplate");
    let is_class = class(node).is_some_and(|class| {
        classes
            .iter()
            .any(|one| class == *one || (*one == CHAT && is_model(class)))
    });
    if class(node).is_some_and(|class| class.ends_with("MessagePromptTemplate") && !classes.contains(&class)) {
        return None;
    }
    if is_class {
        let has = |kwargs: &Node| names.iter().any(|name| kwargs.get(name).is_some_and(accepts));
        if node.get("kwargs").is_some_and(has) {
            let kwargs = node.entries_mut()?.iter_mut().find(|entry| entry.key == "kwargs")?;
            let is_named = |entry: &&mut Entry| names.contains(&entry.key.as_str()) && accepts(&entry.node);
            return kwargs
                .node
                .entries_mut()?
                .iter_mut()
                .find(is_named)
                .map(|entry| &mut entry.node);
        }
    }
    let inner: Vec<&mut Node> = match &mut node.value {
        Value::List(items) => items.iter_mut().collect(),
        // The template of an example is not that of the prompt.
        Value::Map(entries) => entries
            .iter_mut()
            .filter(|entry| entry.key != "example_prompt")
            .map(|entry| &mut entry.node)
            .collect(),
        _ => Vec::new(),
    };
    inner
        .into_iter()
        .find_map(|inner| argument(inner, classes, names, accepts))
}

fn write(agents: Vec<Written>, not_held: &mut NotHeld) -> Vec<File> {
    files(agents, |agent| {
        let mut entries = agent.entries.clone();
        for (key, classes, names) in TAKEN {
            if !put_back(&mut entries, key, classes, names) {
                let row = FORMAT.rows.iter().find(|(row, ..)| *row == key);
                not_held.extend(row.map(|(_, to, _)| (agent.agent_id.clone(), to.path())));
            }
        }
        match (agent.beside("$bare"), find(&entries, "manifest")) {
            (Some(_), Some(manifest)) => manifest.clone(),
            _ => Node::map(entries),
        }
    })
}

/// Puts a value back into the manifest, from which [`read`] took it. Returns whether the manifest has a place for it.
fn put_back(entries: &mut Vec<Entry>, key: &str, classes: &[&str], names: &[&str]) -> bool {
    let value = take(entries, key);
    let Some(manifest) = entries.iter_mut().find(|entry| entry.key == "manifest") else {
        return match (value, key) {
            (Some(text), "$system") => {
                put(entries, "manifest", prompt(text));
                true
            }
            (value, _) => value.is_none(),
        };
    };
    let is_marker = |node: &Node| node.as_text() == Some(key);
    let slot = argument(&mut manifest.node, classes, names, &is_marker);
    match (slot, value, key) {
        (Some(slot), Some(value), _) => *slot = value,
        // A template without text is one; a model or a schema that was taken away cannot be told.
        (Some(slot), None, "$system") => *slot = Node::text(""),
        (Some(slot), None, _) => {
            *slot = Node::at(slot.place, Value::Null);
            return false;
        }
        (None, value, _) => return value.is_none(),
    }
    true
}

/// The manifest of a prompt with one message of the system. Its template has no variables, so that braces stay as they
/// are.
fn prompt(text: Node) -> Node {
    let list = |items: &[&str]| Node::list(items.iter().map(|item| Node::text(*item)).collect());
    let constructor = |id: &[&str], kwargs: Vec<Entry>| {
        Node::map(vec![
            Entry::new("lc", Node::at(text.place, Value::Number("1".to_owned()))),
            Entry::new("type", Node::text("constructor")),
            Entry::new("id", list(id)),
            Entry::new("kwargs", Node::map(kwargs)),
        ])
    };
    let template = constructor(
        &["langchain_core", "prompts", "prompt", "PromptTemplate"],
        vec![
            Entry::new("input_variables", list(&[])),
            Entry::new("template", text.clone()),
            Entry::new("template_format", Node::text("mustache")),
        ],
    );
    let message = constructor(
        &["langchain_core", "prompts", "chat", "SystemMessagePromptTemplate"],
        vec![Entry::new("prompt", template)],
    );
    constructor(
        &["langchain_core", "prompts", "chat", "ChatPromptTemplate"],
        vec![
            Entry::new("input_variables", list(&[])),
            Entry::new("messages", Node::list(vec![message])),
        ],
    )
}
