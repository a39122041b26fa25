//! Checking the stamps of a store.

use std::sync::Arc;

use super::{Marks, Stamp, Store};

/// Checks the stamps of one store: by its marks, or else by asking it.
pub(crate) enum Stamps {
    Compared(Marks),
    Asked(Arc<dyn Store>),
}

impl Stamps {
    pub(crate) fn of(store: &Arc<dyn Store>) -> Self {
        match store.marks() {
            Some(marks) => Self::Compared(marks.clone()),
            None => Self::Asked(Arc::clone(store)),
        }
    }

    /// See [`Store::is_current`].
    pub(crate) fn is_current(&self, stamp: Stamp) -> bool {
        match self {
            Self::Compared(marks) => marks.is_current(stamp),
            Self::Asked(store) => store.is_current(stamp),
        }
    }
}
