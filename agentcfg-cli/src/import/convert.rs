//! What a value of a source is, and how it is written there.

use super::servers::{Tool, all_are_servers, servers_of, with_servers};
use super::source_tree::{Entry, Node, Value, put};

/// The kinds of values in the tables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum As {
    /// Any value, as it is.
    Any,
    /// An object, as it is.
    Object,
    /// Any value whose maps have an order that counts; it is kept as lists of maps with one key.
    Ordered,
    /// A text. A number, `yes` and the like are texts here.
    Text,
    /// A text, or a list of messages whose first is one of the system or the developer.
    Instructions,
    /// Texts in a list, or in one text between commas or spaces that are not in parentheses; written as one text.
    Words,
    /// The same, written as a list.
    WordList,
    /// A text, or an object whose member of this name is one. `inherit` is none.
    Model(&'static str),
    /// A list of objects whose `type` begins with one of these, where it is written.
    Objects(&'static [&'static str]),
    /// MCP servers by their names, written as a map.
    ServerMap(&'static Tool),
    /// The same, written as a list of maps.
    ServerList(&'static Tool),
}

/// The value for the agent; `None` where the source has something else.
pub fn value_in(kind: As, node: &Node) -> Option<Node> {
    let value = match kind {
        As::Any | As::Ordered if node.is_null() => return None,
        As::Any | As::Ordered => return Some(node.clone()),
        As::Object => return node.is_map().then(|| node.clone()),
        As::Objects(_) => {
            let items = node.as_list()?;
            return items.iter().all(Node::is_map).then(|| node.clone());
        }
        As::Text => Value::Text(node.scalar()?),
        As::Instructions => Value::Text(instructions(node)?),
        As::Words | As::WordList => Value::List(words(node)?),
        As::Model(member) => match &node.value {
            Value::Text(text) if text == "inherit" => return None,
            Value::Map(_) => Value::Text(node.text_of(member)?.to_owned()),
            Value::List(items) => Value::Text(items.first()?.as_text()?.to_owned()),
            _ => Value::Text(node.scalar()?),
        },
        As::ServerMap(_) | As::ServerList(_) => {
            let servers = servers_of(Some(node));
            if servers.is_empty() {
                return None;
            }
            Value::List(servers)
        }
    };
    Some(Node::at(node.place, value))
}

/// The value as the source has it; `None` where the format cannot hold it. An original shows the form that the source
/// had.
pub fn value_out(kind: As, node: &Node, original: Option<&Node>) -> Option<Node> {
    match kind {
        As::Any | As::Object | As::Ordered => Some(node.clone()),
        As::Text => node.as_text().map(Node::text),
        As::Instructions => {
            let text = node.as_text()?;
            let messages = original.filter(|original| original.as_list().is_some());
            Some(match messages {
                Some(messages) if instructions(messages).as_deref() == Some(text) => messages.clone(),
                Some(messages) => with_instructions(messages, Some(text)),
                None => Node::text(text),
            })
        }
        As::Objects(types) => {
            let is_known = |item: &Node| {
                item.text_of("type")
                    .is_some_and(|kind| types.iter().any(|one| kind.starts_with(one)))
            };
            // What the source had is written again, whatever its type.
            node.as_list()?.iter().all(is_known).then(|| node.clone())
        }
        As::Words => {
            let items: Option<Vec<_>> = node.as_list()?.iter().map(Node::as_text).collect();
            let items = items?;
            let is_word = |item: &&str| split(item).len() == 1;
            (!items.is_empty() && items.iter().all(is_word)).then(|| Node::text(items.join(", ")))
        }
        As::WordList => node
            .as_list()?
            .iter()
            .all(|item| item.as_text().is_some())
            .then(|| node.clone()),
        As::Model(member) => {
            let text = Node::text(node.as_text()?);
            let Some(mut changed) = original.cloned() else {
                return Some(text);
            };
            match &mut changed.value {
                Value::Map(entries) => put(entries, member, text),
                // The first model of a list counts; the others stay behind it.
                Value::List(models) => {
                    let others = models.iter().skip(1).filter(|model| **model != text).cloned();
                    *models = [text.clone()].into_iter().chain(others).collect();
                }
                _ => return Some(text),
            }
            Some(changed)
        }
        As::ServerMap(tool) => {
            let (servers, _) = tool.entries(node, original)?;
            Some(Node::map(with_servers(original.map(Node::entries), servers)))
        }
        As::ServerList(tool) if original.is_some_and(Node::is_map) => value_out(As::ServerMap(tool), node, original),
        As::ServerList(tool) => {
            let (mut servers, _) = tool.entries(node, original)?;
            let mut items: Vec<Node> = Vec::new();
            for item in original.and_then(Node::as_list).unwrap_or_default() {
                if !item.is_map() {
                    items.push(item.clone());
                    continue;
                }
                let is_of_item = |server: &Entry| item.get(&server.key).is_some();
                let (here, rest) = servers.into_iter().partition(is_of_item);
                servers = rest;
                let entries = with_servers(Some(item.entries()), here);
                items.extend((!entries.is_empty()).then(|| Node::map(entries)));
            }
            items.extend(servers.into_iter().map(|server| Node::map(vec![server])));
            Some(Node::list(items))
        }
    }
}

/// The paths in a value that the format cannot hold, though it can hold the value.
pub fn not_held(kind: As, node: &Node, original: Option<&Node>) -> Vec<String> {
    match kind {
        As::ServerMap(tool) | As::ServerList(tool) => {
            let translated = tool.entries(node, original);
            translated.map(|(_, lost)| lost).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Whether a value that is kept has nothing else in it than what went to its place: it is another form of that.
pub fn is_form(kind: As, node: &Node) -> bool {
    match kind {
        As::Words | As::WordList => value_in(kind, node).is_some(),
        As::ServerMap(_) | As::ServerList(_) => all_are_servers(node),
        _ => false,
    }
}

/// What stays of the value of a source when its part that has a place was taken away: other messages, and references to
/// servers.
pub fn rest(kind: As, original: &Node) -> Option<Node> {
    let rest = match kind {
        As::Instructions if original.as_list().is_some() => with_instructions(original, None),
        As::ServerMap(_) | As::ServerList(_) => value_out(kind, &Node::list(Vec::new()), Some(original))?,
        _ => return None,
    };
    let is_empty = rest.entries().is_empty() && rest.as_list().is_none_or(<[Node]>::is_empty);
    (!is_empty).then_some(rest)
}

/// Messages whose first one of the system or the developer has another text, or none of them.
fn with_instructions(messages: &Node, text: Option<&str>) -> Node {
    let mut messages = messages.as_list().unwrap_or_default().to_vec();
    let is_first = instructions(&Node::list(messages.clone())).is_some();
    match text {
        None if is_first => drop(messages.remove(0)),
        None => {}
        Some(text) if is_first => {
            if let Some(content) = messages[0].map_at("content") {
                match &mut content.value {
                    Value::List(parts) => {
                        if let Some(part) = parts.first_mut().and_then(Node::entries_mut) {
                            put(part, "text", Node::text(text));
                        }
                    }
                    _ => *content = Node::text(text),
                }
            }
        }
        Some(text) => {
            let members = [("type", "message"), ("role", "developer"), ("content", text)];
            let members = members.map(|(key, text)| Entry::new(key, Node::text(text)));
            messages.insert(0, Node::map(members.to_vec()));
        }
    }
    Node::list(messages)
}

/// What a user has to check about a value that tools read in different ways.
pub fn ambiguity(kind: As, entry: &Entry) -> Option<String> {
    let is_list = matches!(kind, As::Words | As::WordList);
    let text = entry.node.as_text().filter(|text| is_list && text.contains('('))?;
    let (key, number) = (&entry.key, split(text).len());
    Some(format!(
        "{key} is a text with parentheses and is read as {number} entries, split outside of them: write it as a list"
    ))
}

/// The value that is kept for a key: a scalar is a text where the table says so.
pub fn as_kept(kind: As, node: &Node) -> Option<Node> {
    match kind {
        As::Text => node.scalar().map(|text| Node::at(node.place, Value::Text(text))),
        As::Ordered => match &node.value {
            Value::Map(entries) if entries.is_empty() => None,
            // A list of the source has a list around it, so that it is not read as a map.
            Value::List(_) => Some(Node::at(node.place, Value::List(vec![node.clone()]))),
            Value::Map(entries) => {
                let one = |entry: &Entry| {
                    let node = as_kept(kind, &entry.node).unwrap_or_else(|| entry.node.clone());
                    Node::map(vec![Entry { node, ..entry.clone() }])
                };
                Some(Node::at(node.place, Value::List(entries.iter().map(one).collect())))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The value of the source of one that was kept.
pub fn of_kept(kind: As, node: Node) -> Node {
    let Some(items) = node.as_list().filter(|_| kind == As::Ordered) else {
        return node;
    };
    if let [inner] = items
        && inner.as_list().is_some()
    {
        return inner.clone();
    }
    if items.is_empty() || !items.iter().all(|item| item.entries().len() == 1) {
        return node;
    }
    let entries = items.iter().flat_map(Node::entries).cloned();
    let of_entry = |entry: Entry| Entry {
        node: of_kept(kind, entry.node),
        ..entry
    };
    Node::at(node.place, Value::Map(entries.map(of_entry).collect()))
}

/// The text of instructions, or of the first of their messages. Parts of one message stand on lines of their own.
fn instructions(node: &Node) -> Option<String> {
    let Some(messages) = node.as_list() else {
        return node.as_text().map(str::to_owned);
    };
    let first = messages.first()?;
    let is_system = matches!(first.text_of("role"), Some("system" | "developer"));
    let content = first.get("content").filter(|_| is_system)?;
    match content.as_list() {
        Some(parts) => {
            let texts: Option<Vec<_>> = parts.iter().map(|part| part.text_of("text")).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
        }
        None => content.as_text().map(str::to_owned),
    }
}

/// The texts of a list, or in a text.
fn words(node: &Node) -> Option<Vec<Node>> {
    match &node.value {
        Value::Text(text) => {
            let words = split(text).into_iter();
            Some(
                words
                    .map(|word| Node::at(node.place, Value::Text(word.to_owned())))
                    .collect(),
            )
        }
        Value::List(items) => items
            .iter()
            .map(|item| Some(Node::at(item.place, Value::Text(item.scalar()?))))
            .collect(),
        _ => None,
    }
}

/// Splits a text at its commas outside of parentheses, or at its spaces where it has no such comma.
pub fn split(text: &str) -> Vec<&str> {
    let by_comma = parts(text, |c| c == ',' || c == '\n');
    match by_comma.len() {
        0 | 1 => parts(text, char::is_whitespace),
        _ => by_comma,
    }
}

fn parts(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut depth = 0_usize;
    let separated = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(c)
    });
    separated.map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_split_outside_of_parentheses() {
        for (text, words) in [
            ("Agent(a, b), Read", vec!["Agent(a, b)", "Read"]),
            ("Bash(git add *) Read", vec!["Bash(git add *)", "Read"]),
            ("Read", vec!["Read"]),
            ("Bash(git commit *)", vec!["Bash(git commit *)"]),
            ("Bash(unclosed, Read", vec!["Bash(unclosed, Read"]),
        ] {
            assert_eq!(split(text), words, "{text}");
        }
    }
}
