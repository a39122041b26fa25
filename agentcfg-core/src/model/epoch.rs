//! The epoch of a store.

use std::fmt;
use std::str::FromStr;

use crate::body::serde_as_text;

/// How many characters an epoch has.
const LENGTH: usize = 8;

/// The characters of an epoch, which need no quotes in any header, URL or file name.
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The epoch of a store, which tells its versions from those of an earlier or copied store: 8 random characters of `0-9a-z`.
///
/// A store gets an epoch when it is made, and another one when it is made from a backup or moved from another engine.
/// Versions are counted on from there, so a number that was given out after the backup comes a second time, for another
/// state. The epoch tells the two apart.
///
/// ```
/// use agentcfg_core::model::Epoch;
/// let epoch: Epoch = "k3j9x0ab".parse()?;
/// assert_eq!(epoch.to_string(), "k3j9x0ab");
/// assert!("K3J9X0AB".parse::<Epoch>().is_err());
/// # Ok::<(), agentcfg_core::model::InvalidEpoch>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch([u8; LENGTH]);

/// A text that is no [`Epoch`].
///
/// ```
/// use agentcfg_core::model::{Epoch, InvalidEpoch};
/// assert_eq!("too long for one".parse::<Epoch>(), Err(InvalidEpoch));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an epoch is {LENGTH} characters of 0-9 and a-z")]
pub struct InvalidEpoch;

impl Epoch {
    /// The epoch of [`Tag::UNKNOWN`](super::Tag::UNKNOWN).
    pub(crate) const ZERO: Self = Self([b'0'; LENGTH]);

    /// The epoch for a random number.
    pub(crate) fn from_random(mut number: u64) -> Self {
        let mut text = [0; LENGTH];
        for character in &mut text {
            *character = ALPHABET[(number % 36) as usize];
            number /= 36;
        }
        Self(text)
    }

    /// The epoch's characters.
    ///
    /// ```
    /// use agentcfg_core::model::Epoch;
    /// assert_eq!("k3j9x0ab".parse::<Epoch>()?.as_str(), "k3j9x0ab");
    /// # Ok::<(), agentcfg_core::model::InvalidEpoch>(())
    /// ```
    pub fn as_str(&self) -> &str {
        // The constructors accept only characters of the alphabet, which are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Epoch {
    type Err = InvalidEpoch;

    fn from_str(text: &str) -> Result<Self, InvalidEpoch> {
        let characters = <[u8; LENGTH]>::try_from(text.as_bytes()).map_err(|_| InvalidEpoch)?;
        let known = characters.iter().all(|character| ALPHABET.contains(character));
        known.then_some(Self(characters)).ok_or(InvalidEpoch)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({self})")
    }
}

serde_as_text!(as_str Epoch);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_number_gives_an_epoch_that_reads_back() {
        for number in [0, 1, 35, 36, u64::MAX, 0x0123_4567_89ab_cdef] {
            let epoch = Epoch::from_random(number);
            assert_eq!(epoch.to_string().parse(), Ok(epoch));
            assert_eq!(
                serde_json::from_str::<Epoch>(&serde_json::to_string(&epoch).unwrap()).unwrap(),
                epoch
            );
        }
        assert_ne!(Epoch::from_random(1), Epoch::from_random(36));
    }

    #[test]
    fn other_texts_are_no_epochs() {
        for text in ["", "k3j9x0a", "k3j9x0abc", "k3j9x0aB", "k3j9x0a-", "k3j9x0ä"] {
            assert_eq!(text.parse::<Epoch>(), Err(InvalidEpoch), "{text}");
        }
    }
}
