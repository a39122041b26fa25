//! A raw value from any layer, and its conversion to the types of settings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::DeValue;

/// A value from a layer. The environment and the command line have text; TOML has types.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Toml(&'a DeValue<'a>),
}

impl Value<'_> {
    pub(super) fn address(&self) -> Result<SocketAddr, String> {
        self.string()
            .and_then(|s| s.parse().ok())
            .ok_or_else(|| self.must_be(ADDRESS))
    }

    pub(super) fn optional_address(&self) -> Result<Option<SocketAddr>, String> {
        match self.string() {
            Some("") => Ok(None),
            _ => self.address().map(Some),
        }
    }

    pub(super) fn path(&self) -> Result<PathBuf, String> {
        match self.string() {
            Some(text) if is_of_home(text.as_ref()) => Err(self.must_be(WITHOUT_HOME)),
            _ => self.text("a path", |s| !s.is_empty()).map(PathBuf::from),
        }
    }

    pub(super) fn text(&self, rule: &str, valid: fn(&str) -> bool) -> Result<String, String> {
        self.string()
            .filter(|s| valid(s))
            .map(str::to_owned)
            .ok_or_else(|| self.must_be(rule))
    }

    /// A text of parts with commas between them, or their array in TOML.
    pub(super) fn joined(&self, rule: &str, valid: fn(&str) -> bool) -> Result<String, String> {
        let text = match self {
            Self::Toml(DeValue::Array(items)) => {
                let items: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
                items.map(|items| items.join(","))
            }
            _ => self.string().map(str::to_owned),
        };
        text.filter(|text| valid(text)).ok_or_else(|| self.must_be(rule))
    }

    /// An array in TOML; separated by commas elsewhere, where empty text is the empty list.
    pub(super) fn list(&self, rule: &str, valid: fn(&str) -> bool) -> Result<Vec<String>, String> {
        let items: Option<Vec<&str>> = match self {
            Self::Text(text) if text.trim().is_empty() => Some(Vec::new()),
            Self::Text(text) => Some(text.split(',').map(str::trim).collect()),
            Self::Toml(DeValue::Array(items)) => items.iter().map(|item| item.get_ref().as_str()).collect(),
            Self::Toml(_) => None,
        };
        let rule = match self {
            Self::Toml(DeValue::String(text)) => format!("a list of {rule}, written as [{text:?}]"),
            Self::Text(text) if is_quoted_array(text) => {
                return Err(self.must_be(&format!("a list of {rule}, without brackets and quotes")));
            }
            _ => format!("a list of {rule}"),
        };
        let items = items.ok_or_else(|| self.must_be(&rule))?;
        match items.iter().find(|item| !valid(item)) {
            Some(item) => Err(Self::Text(item).must_be(&rule)),
            None => Ok(items.into_iter().map(str::to_owned).collect()),
        }
    }

    /// An array in TOML; separated by commas, spaces or line ends elsewhere.
    pub(super) fn words(&self) -> Option<Vec<String>> {
        let is_gap = |c: char| c == ',' || c.is_whitespace();
        match self {
            Self::Text(text) => Some(
                text.split(is_gap)
                    .filter(|s| !s.is_empty())
                    .map(str::to_owned)
                    .collect(),
            ),
            Self::Toml(DeValue::Array(items)) => items
                .iter()
                .map(|item| item.get_ref().as_str().map(str::to_owned))
                .collect(),
            Self::Toml(_) => None,
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, String> {
        match self {
            Self::Toml(value) => value.as_bool(),
            Self::Text("true") => Some(true),
            Self::Text("false") => Some(false),
            Self::Text(_) => None,
        }
        .ok_or_else(|| self.must_be(&format!("true or false{}", self.without_quotes())))
    }

    /// The reminder that quotes in TOML make a text of a number or a truth value.
    fn without_quotes(&self) -> &'static str {
        match self {
            Self::Toml(DeValue::String(_)) => ", without quotes",
            _ => "",
        }
    }

    pub(super) fn integer<T: TryFrom<u64>>(&self, min: u64, max: u64) -> Result<T, String> {
        let digits = match self {
            Self::Text(text) => Some((text.to_string(), 10)),
            Self::Toml(value) => value.as_integer().map(|i| (i.as_str().replace('_', ""), i.radix())),
        };
        digits
            .and_then(|(digits, radix)| u64::from_str_radix(&digits, radix).ok())
            .filter(|n| (min..=max).contains(n))
            .and_then(|n| T::try_from(n).ok())
            .ok_or_else(|| self.must_be(&format!("a whole number from {min} to {max}{}", self.without_quotes())))
    }

    pub(super) fn seconds(&self, min: u64, max: u64) -> Result<Duration, String> {
        self.integer(min, max).map(Duration::from_secs).map_err(|_| {
            let rule = format!("a whole number of seconds from {min} to {max}{}", self.without_quotes());
            self.must_be(&rule)
        })
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let named = self
            .string()
            .and_then(|text| choices.iter().find(|(name, _)| *name == text));
        named.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.must_be(&format!("one of {}", names.join(", ")))
        })
    }

    fn string(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Toml(value) => value.as_str(),
        }
    }

    fn must_be(&self, rule: &str) -> String {
        format!("must be {rule}, got {}", self.shown())
    }

    /// The value for a message; long text is cut.
    fn shown(&self) -> String {
        const LONGEST: usize = 60;
        match (self, self.string()) {
            (_, Some(text)) if text.chars().count() > LONGEST => {
                format!("{:?}…", text.chars().take(LONGEST).collect::<String>())
            }
            (_, Some(text)) => format!("{text:?}"),
            (Self::Toml(DeValue::Integer(number)), None) => number.as_str().to_owned(),
            (Self::Toml(DeValue::Float(number)), None) => number.as_str().to_owned(),
            (Self::Toml(DeValue::Boolean(value)), None) => value.to_string(),
            (Self::Toml(DeValue::Array(_)), None) => "an array".to_owned(),
            (Self::Toml(DeValue::Table(_)), None) => "a table".to_owned(),
            _ => "a value of another type".to_owned(),
        }
    }
}

/// Whether a text is an array as in TOML or JSON, which is written with commas alone outside of the file.
fn is_quoted_array(text: &str) -> bool {
    let inside = text.trim().strip_prefix('[').map(str::trim_start);
    inside.is_some_and(|inside| inside.starts_with(['"', '\'']))
}

/// The rule for paths that begin with `~`.
pub(super) const WITHOUT_HOME: &str = "the whole path, since only a shell knows what ~ stands for";

/// Whether a path begins with `~`, which the server would take for the name of a folder.
pub(in crate::process) fn is_of_home(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(b"~")
}

const ADDRESS: &str = "an IP address and a port, such as 127.0.0.1:7420 or [::]:7420";
