//! Reading values: JSON, with comments too, YAML and TOML.

use std::path::Path;

use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, ast};

use super::source_tree::{Entry, Node, Value};
use crate::agent_file::fault_places::number;
use crate::agent_file::yaml::{self, Yaml};
use crate::agent_file::{Place, Problem};

/// The greatest depth of a value. A definition has less.
const MAX_DEPTH: usize = 64;

/// Reads JSON; comments and commas after the last value are allowed.
pub fn from_json(file: &Path, text: &str) -> Result<Node, Problem> {
    let options = ParseOptions {
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
        ..ParseOptions::default()
    };
    let mut places = Places::new(text);
    let parsed = jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        let message = format!("must be valid JSON: {}", error.kind());
        Problem::new(file, places.place(error.range().start), message)
    })?;
    match parsed.value {
        Some(value) => of_json(file, value, &mut places, 0),
        None => Err(Problem::of(file, "must be valid JSON: there is no value")),
    }
}

fn of_json(file: &Path, value: ast::Value<'_>, places: &mut Places<'_>, depth: usize) -> Result<Node, Problem> {
    let place = places.place(value.range().start);
    too_deep(file, place, depth)?;
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Value::Text(literal.value.into_owned()),
        ast::Value::Array(array) => {
            let items = array.elements.into_iter();
            Value::List(
                items
                    .map(|item| of_json(file, item, places, depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        ast::Value::Object(object) => {
            let mut entries = Vec::new();
            for property in object.properties {
                let place = places.place(property.range.start);
                let key = property.name.into_string();
                let node = of_json(file, property.value, places, depth + 1)?;
                entries.push(Entry { key, place, node });
            }
            refuse_repeated(file, &entries)?;
            Value::Map(entries)
        }
    };
    Ok(Node { place, value })
}

/// Removes the line feed at the end of the last scalar.
fn end_with_text(last: Option<&mut Node>) {
    match last.map(|node| &mut node.value) {
        Some(Value::Text(text)) if text.ends_with('\n') => {
            text.pop();
        }
        Some(Value::List(items)) => end_with_text(items.last_mut()),
        Some(Value::Map(entries)) => end_with_text(entries.last_mut().map(|entry| &mut entry.node)),
        _ => {}
    }
}

/// What the scalars without quotes are.
#[derive(Debug, Clone, Copy)]
pub enum Scalars {
    /// Those of YAML 1.2.
    Core,
    /// Those of YAML 1.1, such as `yes`, `1_000` and `010`, but for the values of these keys, which are texts.
    Old(&'static [&'static str]),
}

/// Reads a text of YAML whose first line is this one of the file. Aliases are resolved, and a warning names the first.
pub fn from_shared_yaml(
    file: &Path,
    text: &str,
    (first_line, scalars): (usize, Scalars),
    warnings: &mut Vec<Problem>,
) -> Result<Vec<Entry>, Problem> {
    let (entries, notes) = yaml::parse_shared(text, first_line)
        .map_err(|malformed| Problem::new(file, malformed.place, malformed.message))?;
    if let Some(place) = notes.shared {
        let message = "aliases and << of YAML are replaced by what they stand for";
        warnings.push(Problem::new(file, place, message));
    }
    for node in notes.before_comments {
        let (place, is_absent) = (node.place, node.is_absent());
        let message = match of_yaml(file, node, scalars, &mut Vec::new())?.value {
            Value::Null if is_absent => {
                "the value is empty, as # begins a comment: put a value that begins so into quotes"
            }
            Value::Text(_) => "the text ends before the #, which begins a comment: put a text with # into quotes",
            _ => continue,
        };
        warnings.push(Problem::new(file, place, message));
    }
    let mut entries = of_entries(file, entries, scalars, warnings)?;
    end_as_text(text, &mut entries);
    Ok(entries)
}

/// A block that ends with the text has no line feed at its end, but from the parser.
fn end_as_text(text: &str, entries: &mut [Entry]) {
    if !text.ends_with(['\n', '"', '\'']) {
        end_with_text(entries.last_mut().map(|entry| &mut entry.node));
    }
}

fn of_entries(
    file: &Path,
    entries: Vec<yaml::Entry>,
    scalars: Scalars,
    warnings: &mut Vec<Problem>,
) -> Result<Vec<Entry>, Problem> {
    let of_entry = |entry: yaml::Entry| {
        let scalars = match scalars {
            Scalars::Old(texts) if texts.contains(&entry.key.as_str()) => Scalars::Core,
            scalars => scalars,
        };
        Ok(Entry {
            key: entry.key,
            place: entry.place,
            node: of_yaml(file, entry.node, scalars, warnings)?,
        })
    };
    let entries: Vec<_> = entries.into_iter().map(of_entry).collect::<Result<_, _>>()?;
    refuse_repeated(file, &entries)?;
    Ok(entries)
}

fn of_yaml(file: &Path, node: yaml::Node, scalars: Scalars, warnings: &mut Vec<Problem>) -> Result<Node, Problem> {
    let value = match node.value {
        Yaml::Scalar { text, is_plain: false } => Value::Text(text),
        Yaml::Scalar { text, is_plain: true } => match text.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            // Other writings of a number, such as 0x1f or 007, are kept as texts, but for those of YAML 1.1 where that
            // is read.
            _ if matches!(scalars, Scalars::Old(_)) => old_scalar(text),
            _ => match number(&text).filter(|number| *number == text) {
                Some(number) => Value::Number(number),
                None => {
                    if is_of_other_base(&text) {
                        let message = format!("the number {text} is kept as a text: write it as a decimal number");
                        warnings.push(Problem::new(file, node.place, message));
                    }
                    Value::Text(text)
                }
            },
        },
        Yaml::List(items) => Value::List(
            items
                .into_iter()
                .map(|item| of_yaml(file, item, scalars, warnings))
                .collect::<Result<_, _>>()?,
        ),
        Yaml::Map(entries) => Value::Map(of_entries(file, entries, scalars, warnings)?),
    };
    Ok(Node::at(node.place, value))
}

/// Whether a scalar without quotes is a hexadecimal or octal integer of YAML 1.2.
fn is_of_other_base(text: &str) -> bool {
    let has_digits = |digits: &str, radix: u32| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    text.strip_prefix("0x").is_some_and(|digits| has_digits(digits, 16))
        || text.strip_prefix("0o").is_some_and(|digits| has_digits(digits, 8))
}

/// A scalar without quotes by the rules of YAML 1.1, as PyYAML reads it. Numbers are written as those of JSON.
fn old_scalar(text: String) -> Value {
    match text.as_str() {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => return Value::Bool(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => return Value::Bool(false),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let plain = digits.replace('_', "");
    let has_digits = |digits: &str, radix: u32| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let integer = match (
        plain.strip_prefix("0x"),
        plain.strip_prefix("0b"),
        plain.strip_prefix('0'),
    ) {
        (Some(digits), ..) if has_digits(digits, 16) => u64::from_str_radix(digits, 16).ok(),
        (_, Some(digits), _) if has_digits(digits, 2) => u64::from_str_radix(digits, 2).ok(),
        (.., Some(digits)) if has_digits(digits, 8) => u64::from_str_radix(digits, 8).ok(),
        _ => base_60(&plain),
    };
    // A fraction may begin with its point, but not after a sign.
    let plain = match plain.strip_prefix('.') {
        Some(rest) if digits == text && rest.starts_with(|c: char| c.is_ascii_digit()) => format!("0{plain}"),
        _ => plain,
    };
    let begins = plain.starts_with(|c: char| c.is_ascii_digit()) && !digits.starts_with('_');
    let is_decimal = begins && has_digits(&plain, 10) && (plain == "0" || !plain.starts_with('0'));
    let number = match integer {
        Some(integer) => Some(integer.to_string()),
        None if is_decimal => Some(plain),
        // A fraction has its point, and an exponent its sign.
        None if begins
            && plain.contains('.')
            && (!plain.contains(['e', 'E']) || plain.contains("e+") || plain.contains("e-")) =>
        {
            number(&plain)
        }
        None => None,
    };
    match number {
        Some(number) => Value::Number(format!("{sign}{number}")),
        None => Value::Text(text),
    }
}

/// The number to the base 60 that such a text is: `12:30` is 750.
fn base_60(text: &str) -> Option<u64> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parts = text.split(':');
    let first = parts
        .next()
        .filter(|first| first.chars().all(is_digit) && !first.starts_with('0'))?;
    let mut number: u64 = first.parse().ok()?;
    let mut has_parts = false;
    for part in parts {
        let digits = (1..=2).contains(&part.len()) && part.chars().all(is_digit);
        let part = part.parse().ok().filter(|part| digits && *part < 60)?;
        number = number.checked_mul(60)?.checked_add(part)?;
        has_parts = true;
    }
    has_parts.then_some(number)
}

/// Reads TOML. Numbers that JSON cannot write in the same way are named in warnings.
pub fn from_toml(file: &Path, text: &str, warnings: &mut Vec<Problem>) -> Result<Vec<Entry>, Problem> {
    let mut places = Places::new(text);
    let table = toml::de::DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("must be valid TOML: {}", error.message());
        Problem::new(file, places.place(at), message)
    })?;
    of_table(file, table.into_inner(), &mut places, 0, warnings)
}

fn of_table(
    file: &Path,
    table: toml::de::DeTable<'_>,
    places: &mut Places<'_>,
    depth: usize,
    warnings: &mut Vec<Problem>,
) -> Result<Vec<Entry>, Problem> {
    let mut pairs: Vec<_> = table.into_iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    let mut entries = Vec::new();
    for (key, value) in pairs {
        let place = places.place(key.span().start);
        let node = of_toml(file, value, places, depth + 1, warnings)?;
        entries.push(Entry {
            key: key.into_inner().into_owned(),
            place,
            node,
        });
    }
    Ok(entries)
}

fn of_toml(
    file: &Path,
    value: toml::Spanned<toml::de::DeValue<'_>>,
    places: &mut Places<'_>,
    depth: usize,
    warnings: &mut Vec<Problem>,
) -> Result<Node, Problem> {
    use toml::de::DeValue;

    let place = places.place(value.span().start);
    too_deep(file, place, depth)?;
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Value::Number(number.as_str().replace(['_', '+'], "")),
        DeValue::Integer(number) => match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
            Ok(decimal) => {
                let message = format!("{number} is kept as the decimal number {decimal}");
                warnings.push(Problem::new(file, place, message));
                Value::Number(decimal.to_string())
            }
            Err(_) => Value::Text(number.to_string()),
        },
        DeValue::Float(float) => {
            let text = float.as_str().replace(['_', '+'], "");
            match number(&text) {
                Some(number) => Value::Number(number),
                None => {
                    warnings.push(Problem::new(
                        file,
                        place,
                        format!("{text} is no number of JSON, and is kept as a text"),
                    ));
                    Value::Text(text)
                }
            }
        }
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter();
            Value::List(
                items
                    .map(|item| of_toml(file, item, places, depth + 1, warnings))
                    .collect::<Result<_, _>>()?,
            )
        }
        DeValue::Table(table) => Value::Map(of_table(file, table, places, depth, warnings)?),
    };
    Ok(Node { place, value })
}

fn too_deep(file: &Path, place: Place, depth: usize) -> Result<(), Problem> {
    match depth > MAX_DEPTH {
        true => Err(Problem::new(
            file,
            place,
            format!("must be at most {MAX_DEPTH} levels deep"),
        )),
        false => Ok(()),
    }
}

/// Refuses a key that appears twice, as every reader of the service does.
pub fn refuse_repeated(file: &Path, entries: &[Entry]) -> Result<(), Problem> {
    let mut lines = std::collections::HashMap::new();
    for entry in entries {
        if let Some(first) = lines.insert(entry.key.as_str(), entry.place.line) {
            let message = format!("{:?} must not appear more than once, see line {first}", entry.key);
            return Err(Problem::new(file, entry.place, message));
        }
    }
    Ok(())
}

/// Lines and columns of offsets that mostly grow, in one pass.
struct Places<'a> {
    text: &'a str,
    offset: usize,
    place: Place,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            place: Place::START,
        }
    }

    fn place(&mut self, offset: usize) -> Place {
        if offset < self.offset {
            (self.offset, self.place) = (0, Place::START);
        }
        let passed = self.text.get(self.offset..offset).unwrap_or_default();
        for c in passed.chars() {
            match c {
                '\n' => {
                    self.place = Place {
                        line: self.place.line + 1,
                        column: 1,
                    }
                }
                _ => self.place.column += 1,
            }
        }
        self.offset += passed.len();
        self.place
    }
}
