//! The faults of a value, all at once.

use std::fmt;

use super::MAX_PERSONA_PROMPT;

/// One broken rule.
///
/// `Display` joins the two, as in `role must be at most 100 characters, got 101`.
///
/// ```
/// use agentcfg_core::validate::Invalid;
/// let invalid = Invalid::new("capabilities[2]", "must not be blank");
/// assert_eq!(invalid.faults()[0].to_string(), "capabilities[2] must not be blank");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    field: String,
    rule: String,
}

/// The prefix of a fault's field that is the name of an entry.
const NAME: &str = "the name of ";

impl Fault {
    /// The place of the fault in the value: [`field`](Self::field), but where that speaks of the name of an entry, the
    /// entry alone.
    ///
    /// ```
    /// use agentcfg_core::validate::Invalid;
    /// let invalid = Invalid::new("the name of parameters.tone", "must be at most 50 characters");
    /// assert_eq!(invalid.faults()[0].place(), "parameters.tone");
    /// ```
    pub fn place(&self) -> &str {
        self.field.strip_prefix(NAME).unwrap_or(&self.field)
    }

    /// The field, or the place within it, such as `capabilities[2]`.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// let invalid = NewWorkspace::new(String::new()).validate().unwrap_err();
    /// assert_eq!(invalid.faults()[0].field(), "name");
    /// ```
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The rule that is broken, such as `must not be blank`.
    ///
    /// ```
    /// use agentcfg_core::model::NewWorkspace;
    /// let invalid = NewWorkspace::new(String::new()).validate().unwrap_err();
    /// assert_eq!(invalid.faults()[0].rule(), "must be 1 to 100 characters, got 0");
    /// ```
    pub fn rule(&self) -> &str {
        &self.rule
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.rule)
    }
}

/// The error of an invalid value: at least one [`Fault`].
///
/// `Display` joins the faults by `; `.
///
/// ```
/// use agentcfg_core::model::NewWorkspace;
/// let invalid = NewWorkspace::new(" ").validate().unwrap_err();
/// let faults: Vec<(&str, &str)> = invalid.faults().iter().map(|fault| (fault.field(), fault.rule())).collect();
/// assert_eq!(faults, [("name", "must not be blank")]);
/// assert_eq!(invalid.to_string(), "name must not be blank");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    faults: Vec<Fault>,
    /// How many further faults were counted and not kept.
    more: usize,
}

impl Invalid {
    /// One fault of one field.
    ///
    /// ```
    /// use agentcfg_core::validate::Invalid;
    /// let invalid = Invalid::new("expires_at", "must be in the future");
    /// assert_eq!(invalid.to_string(), "expires_at must be in the future");
    /// ```
    pub fn new(field: impl fmt::Display, rule: impl fmt::Display) -> Self {
        let mut faults = Faults::default();
        faults.push(field, rule);
        Self {
            faults: faults.kept,
            more: faults.more,
        }
    }

    /// Every fault, in the order of the fields; of a value with more than 1,000 faults the first 1,000.
    ///
    /// ```
    /// use agentcfg_core::model::NewAgent;
    /// let invalid = NewAgent::from_json(b"{}").unwrap_err();
    /// let fields: Vec<&str> = invalid.faults().iter().map(|fault| fault.field()).collect();
    /// assert_eq!(fields, ["workspace_id", "agent_id", "display_name"]);
    /// ```
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The greatest number of faults, more than all known fields of a body can have. A body of a megabyte can have
        /// a hundred thousand unknown fields, and a message with all of them would help no reader.
        const SHOWN: usize = 500;
        for (i, fault) in self.faults.iter().take(SHOWN).enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        match self.faults.len().saturating_sub(SHOWN) + self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for Invalid {}

/// Collects faults.
///
/// ```
/// use agentcfg_core::validate::Faults;
/// let mut faults = Faults::default();
/// faults.push("limit", "must be an integer");
/// assert_eq!(faults.into_result().unwrap_err().to_string(), "limit must be an integer");
/// ```
#[derive(Debug)]
pub struct Faults {
    kept: Vec<Fault>,
    more: usize,
    /// The greatest number of faults to keep.
    room: usize,
    /// How many faults are of a limit that a stored value may exceed.
    conditional: usize,
    /// The greatest length of a persona.
    max_persona: u32,
}

/// The greatest number of faults that are kept of a whole value. A long body can have millions.
const KEPT: usize = 1000;

impl Default for Faults {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            more: 0,
            room: KEPT,
            conditional: 0,
            max_persona: MAX_PERSONA_PROMPT,
        }
    }
}

impl Faults {
    /// Collects the faults of a value that is read where the deployment limits personas to this length.
    pub(crate) fn within(max_persona: u32) -> Self {
        Self {
            max_persona,
            ..Self::default()
        }
    }

    /// The greatest length of a persona that the deployment allows.
    pub(crate) fn max_persona(&self) -> u32 {
        self.max_persona
    }

    /// Collects the faults of a part of the value, for [`Self::add_under`]. It keeps as many as there is room for here,
    /// so a body of many faulty parts costs no more than one of few.
    pub(crate) fn of_part(&self) -> Self {
        Self {
            room: self.room.saturating_sub(self.kept.len()),
            ..Self::within(self.max_persona)
        }
    }

    /// Whether the next fault is kept.
    pub(crate) fn has_room(&self) -> bool {
        self.kept.len() < self.room
    }

    /// Reports that a field breaks a rule.
    ///
    /// ```
    /// use agentcfg_core::validate::Faults;
    /// let (given, mut faults) = (7, Faults::default());
    /// if given > 5 {
    ///     faults.push("retries", format_args!("must be at most 5, got {given}"));
    /// }
    /// assert_eq!(faults.into_result().unwrap_err().to_string(), "retries must be at most 5, got 7");
    /// ```
    pub fn push(&mut self, field: impl fmt::Display, rule: impl fmt::Display) {
        if !self.has_room() {
            self.more += 1;
            return;
        }
        self.kept.push(Fault {
            field: field.to_string(),
            rule: rule.to_string(),
        });
    }

    /// Reports that a field exceeds a limit of the deployment, which a value that is stored already may do. Alone, such
    /// faults refuse nothing: the service decides when it knows what is stored.
    pub(crate) fn push_unless_stored(&mut self, field: impl fmt::Display, rule: impl fmt::Display) {
        self.conditional += 1;
        self.push(field, rule);
    }

    /// How many faults were reported that are faults whatever is stored.
    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.more - self.conditional
    }

    /// Adds the faults of a part of the value.
    pub(crate) fn add(&mut self, invalid: Invalid) {
        self.more += invalid.more;
        for fault in invalid.faults {
            self.push(fault.field, fault.rule);
        }
    }

    /// Adds the faults of an object within the value, at this place.
    pub(crate) fn add_under(&mut self, place: &dyn fmt::Display, faults: Faults) {
        self.more += faults.more;
        self.conditional += faults.conditional;
        for Fault { field, rule } in faults.kept {
            match field.strip_prefix(NAME) {
                Some(entry) => self.push(format_args!("{NAME}{place}.{entry}"), rule),
                None => self.push(format_args!("{place}.{field}"), rule),
            }
        }
    }

    /// `Ok` when there are no faults.
    ///
    /// # Errors
    ///
    /// All the faults, if there are any.
    ///
    /// ```
    /// use agentcfg_core::validate::Faults;
    /// assert_eq!(Faults::default().into_result(), Ok(()));
    /// ```
    pub fn into_result(self) -> Result<(), Invalid> {
        if self.count() == 0 {
            Ok(())
        } else {
            Err(Invalid {
                faults: self.kept,
                more: self.more,
            })
        }
    }
}

/// A name from a caller as it stands in a message and in the field of a [`Fault`]: printable and short.
///
/// ```
/// use agentcfg_core::validate::shown;
/// assert_eq!(shown("tone\n").to_string(), "tone\\n");
/// assert_eq!(shown(&"x".repeat(99)).to_string(), format!("{}…", "x".repeat(60)));
/// ```
pub fn shown(name: &str) -> impl fmt::Display {
    Shown(name)
}

/// A text from a caller in quotes, as it stands in a message: printable and short.
///
/// ```
/// use agentcfg_core::validate::quoted;
/// assert_eq!(quoted("tone\n").to_string(), r#""tone\n""#);
/// assert_eq!(quoted(&"x".repeat(99)).to_string(), format!("\"{}\"…", "x".repeat(60)));
/// ```
pub fn quoted(text: &str) -> impl fmt::Display {
    Quoted(text)
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// The greatest number of characters of a text in a message.
const LONGEST: usize = 60;

struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("\"\"");
        }
        let mut rest = self.0.chars();
        for character in rest.by_ref().take(LONGEST) {
            fmt::Display::fmt(&character.escape_debug(), f)?;
        }
        if rest.next().is_some() {
            f.write_str("…")?;
        }
        Ok(())
    }
}
