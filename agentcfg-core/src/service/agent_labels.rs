//! The labels of one agent: as they were at the moment of a read, and changed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::records::{EntityKey, Stored, StoredLabel, StoredLabels, Transaction};
use crate::error::Error;
use crate::model::Label;
use crate::store::Check;

/// The labels of one agent, and the record that holds them.
pub(super) struct Labels {
    key: EntityKey<StoredLabels>,
    found: Option<Stored<StoredLabels>>,
    /// The versions before moves that are in the record and later than the moment of the read. The commit of a decision
    /// on them is refused.
    later: BTreeMap<Label, Option<u64>>,
}

/// Changed labels of an agent, and the record that they replace.
pub(super) struct Changed {
    before: Labels,
    after: StoredLabels,
}

impl Labels {
    /// Labels as they are in the record that was read.
    pub(super) fn of(key: EntityKey<StoredLabels>, found: Option<Stored<StoredLabels>>) -> Self {
        let later = BTreeMap::new();
        Self { key, found, later }
    }

    /// Takes back moves that the record has and that are later than the moment to be shown: by label, its version
    /// before.
    pub(super) fn take_back(&mut self, moved: BTreeMap<String, Option<u64>>) -> Result<(), Error> {
        for (label, before) in moved {
            self.later.insert(label.parse()?, before);
        }
        Ok(())
    }

    /// The labels that point at a version, in their order.
    pub(super) fn of_version(&self, version: u64) -> Vec<Label> {
        let all = self.versions();
        let labels = all.into_iter().filter(|(_, at)| *at == version);
        labels.map(|(label, _)| label.clone()).collect()
    }

    fn versions(&self) -> BTreeMap<&Label, u64> {
        let found = self.found.iter().flat_map(|found| &found.value.labels);
        let mut versions: BTreeMap<_, _> = found.map(|(label, found)| (label, found.version)).collect();
        for (label, before) in &self.later {
            match before {
                Some(version) => versions.insert(label, *version),
                None => versions.remove(label),
            };
        }
        versions
    }

    pub(super) fn label(&self, label: &Label) -> Option<&StoredLabel> {
        self.found.as_ref()?.value.labels.get(label)
    }

    pub(super) fn version(&self, label: &Label) -> Option<u64> {
        match self.later.get(label) {
            Some(before) => *before,
            None => self.label(label).map(|found| found.version),
        }
    }

    /// As [`Self::version`], where the reserved label is the current version.
    pub(super) fn version_of(&self, label: &Label, current: u64) -> Option<u64> {
        match label.is_latest() {
            true => Some(current),
            false => self.version(label),
        }
    }

    /// Whether a label points at one of these versions.
    pub(super) fn have_any_of(&self, versions: &RangeInclusive<u64>) -> bool {
        self.versions().values().any(|version| versions.contains(version))
    }

    /// The check that the labels are as they were read.
    pub(super) fn unchanged(&self) -> Check {
        self.key.unchanged(self.found.as_ref())
    }

    pub(super) fn count(&self) -> usize {
        self.versions().len()
    }

    pub(super) fn set(self, label: &Label, to: &StoredLabel) -> Changed {
        self.changed(|labels| {
            labels.labels.insert(label.clone(), to.clone());
        })
    }

    pub(super) fn without(self, label: &Label) -> Changed {
        self.changed(|labels| {
            labels.labels.remove(label);
        })
    }

    fn changed(self, change: impl FnOnce(&mut StoredLabels)) -> Changed {
        let mut after = self.found.as_ref().map(|found| found.value.clone()).unwrap_or_default();
        change(&mut after);
        Changed { before: self, after }
    }
}

impl Changed {
    /// Puts the labels, under the check that they are as they were read.
    pub(super) fn write(self, transaction: Transaction) -> Result<Transaction, Error> {
        let transaction = transaction.check(self.before.unchanged());
        let key = self.before.key;
        match self.after.labels.is_empty() {
            true => Ok(transaction.delete(key)),
            false => transaction.put(key, &self.after),
        }
    }
}
