//! The difference of two texts, as steps that make the second one of the first.

use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The length of a changed part, in bytes, up to which it is stored whole: a search for equal parts within it saves little.
const SMALL: usize = 64;

/// How many tokens of a changed part are compared at most. The time of a comparison grows with the square.
const MAX_TOKENS: usize = 500;

/// The steps from one text to another.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Edit(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    /// Copies as many bytes of the first text; a negative number leaves them out.
    Move(i64),
    /// Adds a text.
    Insert(String),
}

impl Edit {
    /// The steps from `old` to `new`.
    pub(super) fn between(old: &str, new: &str) -> Self {
        let start = common_start(old, new);
        let (old, new) = (&old[start..], &new[start..]);
        let end = common_end(old, new);
        let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
        let mut edit = Self::default();
        edit.copy(start);
        if old.len().min(new.len()) <= SMALL {
            edit.replace(old, new);
        } else {
            edit.compare(old, new);
        }
        edit.copy(end);
        edit
    }

    /// The text that the steps make of `old`; `None` when they are not of this text.
    pub(super) fn apply(&self, old: &str) -> Option<String> {
        let (mut new, mut rest) = (String::with_capacity(old.len()), old);
        for step in &self.0 {
            match step {
                Step::Insert(text) => new.push_str(text),
                Step::Move(count) => {
                    let (part, after) = rest.split_at_checked(usize::try_from(count.unsigned_abs()).ok()?)?;
                    if *count > 0 {
                        new.push_str(part);
                    }
                    rest = after;
                }
            }
        }
        rest.is_empty().then_some(new)
    }

    /// Compares the tokens of two different texts, where there are few enough.
    fn compare(&mut self, old: &str, new: &str) {
        let (before, after) = (tokens(old), tokens(new));
        if before.len().max(after.len()) > MAX_TOKENS {
            return self.replace(old, new);
        }
        for part in capture_diff_slices(Algorithm::Myers, &before, &after) {
            let length = |tokens: &[&str]| tokens.iter().map(|token| token.len()).sum::<usize>();
            match part {
                DiffOp::Equal { old_index, len, .. } => self.copy(length(&before[old_index..old_index + len])),
                other => {
                    self.leave_out(length(&before[other.old_range()]));
                    self.insert(&after[other.new_range()].concat());
                }
            }
        }
    }

    fn replace(&mut self, old: &str, new: &str) {
        self.leave_out(old.len());
        self.insert(new);
    }

    fn copy(&mut self, bytes: usize) {
        if bytes > 0 {
            self.0.push(Step::Move(i64::try_from(bytes).unwrap_or(i64::MAX)));
        }
    }

    fn leave_out(&mut self, bytes: usize) {
        if bytes > 0 {
            self.0
                .push(Step::Move(i64::try_from(bytes).map_or(i64::MIN, |bytes| -bytes)));
        }
    }

    fn insert(&mut self, text: &str) {
        if !text.is_empty() {
            self.0.push(Step::Insert(text.to_owned()));
        }
    }
}

/// The length of the longest common start, in whole characters.
fn common_start(a: &str, b: &str) -> usize {
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    // Equal bytes end within a character in both texts, or in neither.
    (0..=equal)
        .rev()
        .find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at))
        .unwrap_or(0)
}

/// The length of the longest common end, in whole characters.
fn common_end(a: &str, b: &str) -> usize {
    let equal = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let starts = |text: &str, length: usize| text.is_char_boundary(text.len() - length);
    (0..=equal)
        .rev()
        .find(|length| starts(a, *length) && starts(b, *length))
        .unwrap_or(0)
}

/// The parts of a JSON text, each up to the end of a sentence, of an entry or of a line, which is written `\n` there.
fn tokens(text: &str) -> Vec<&str> {
    text.split_inclusive(['.', ',', '\\']).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(old: &str, new: &str) -> String {
        let edit = Edit::between(old, new);
        assert_eq!(edit.apply(old).as_deref(), Some(new));
        serde_json::to_string(&edit).unwrap()
    }

    #[test]
    fn a_changed_word_costs_that_word() {
        assert_eq!(steps("Be very brief.", "Be quite brief."), r#"[3,-4,"quite",7]"#);
        assert_eq!(steps("same", "same"), "[4]");
        assert_eq!(steps("", "new"), r#"["new"]"#);
        assert_eq!(steps("old", ""), "[-3]");
        // The two letters share their first byte.
        assert_eq!(steps("aäb", "aöb"), r#"[1,-2,"ö",1]"#);
    }

    #[test]
    fn changes_far_apart_cost_their_sentences() {
        let sentence = |number: usize| format!("Rule {number} of the house is to answer in one sentence. ");
        let old: String = (0..100).map(sentence).collect();
        let new = old
            .replace("Rule 3 ", "Rule three ")
            .replace("Rule 90 ", "Rule ninety ");
        assert!(steps(&old, &new).len() < 400);
    }

    #[test]
    fn steps_of_another_text_make_none() {
        let edit = Edit::between("Be very brief.", "Be brief.");
        for other in ["", "Be", "Be very brief, please.", "äääääää"] {
            assert_eq!(edit.apply(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn the_steps_make_the_second_text(old in "([a-cä😀]{0,9}[.,\\\\]){0,40}", new in "([a-cä😀]{0,9}[.,\\\\]){0,40}") {
            steps(&old, &new);
        }
    }
}
