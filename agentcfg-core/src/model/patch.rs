//! One field of a partial update.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field of a partial update: left alone, cleared, or set.
///
/// ```
/// use agentcfg_core::model::Patch;
/// let mut role = Some("author".to_owned());
/// Patch::Absent.apply(&mut role);
/// assert_eq!(role.as_deref(), Some("author"));
/// Patch::Null.apply(&mut role);
/// assert_eq!(role, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Patch<T> {
    /// The field is not named and stays as it is.
    #[default]
    Absent,
    /// `null`: the field is cleared.
    Null,
    /// The field gets this value.
    Set(T),
}

impl<T> Patch<T> {
    /// Whether the field is left alone.
    ///
    /// ```
    /// use agentcfg_core::model::Patch;
    /// assert!(Patch::<String>::default().is_absent());
    /// assert!(!Patch::<String>::Null.is_absent());
    /// ```
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The new value, if there is one.
    ///
    /// ```
    /// use agentcfg_core::model::Patch;
    /// assert_eq!(Patch::Set(7).value(), Some(&7));
    /// assert_eq!(Patch::<i32>::Null.value(), None);
    /// ```
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }

    /// Changes a nullable field accordingly.
    ///
    /// ```
    /// use agentcfg_core::model::Patch;
    /// let mut role = None;
    /// Patch::Set("editor").apply(&mut role);
    /// assert_eq!(role, Some("editor"));
    /// ```
    pub fn apply(self, field: &mut Option<T>) {
        match self {
            Self::Absent => {}
            Self::Null => *field = None,
            Self::Set(value) => *field = Some(value),
        }
    }
}

/// Clears the field with `None` and sets it with `Some`.
impl<T> From<Option<T>> for Patch<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::Set)
    }
}

/// Serialises `Null` as `null`; skip `Absent` with [`Patch::is_absent`].
impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

/// Reads `null` as [`Patch::Null`]. A field that may be left out needs `#[serde(default)]`.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}
