//! The difference of two texts, as steps that make the second one of the first.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// The length of the blocks that are looked for, in bytes. A shorter equal part is not found, and saves little.
const BLOCK: usize = 16;

/// The steps from one text to another.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Edit(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    /// Adds a part of the first text: where it begins, and its length, in bytes.
    Copy(usize, usize),
    /// Adds this text.
    Insert(String),
}

impl Edit {
    /// The steps from `old` to `new`. The time grows with the lengths alone, however different the texts are.
    pub(super) fn between(old: &str, new: &str) -> Self {
        let start = common_start(old, new);
        let end = common_end(&old[start..], &new[start..]);
        let mut edit = Self::default();
        edit.copy(0, start);
        edit.find_blocks(&old[start..old.len() - end], &new[start..new.len() - end], start);
        edit.copy(old.len() - end, end);
        edit
    }

    /// The text that the steps make of `old`; `None` when they are not of this text.
    pub(super) fn apply(&self, old: &str) -> Option<String> {
        let mut new = String::with_capacity(old.len());
        for step in &self.0 {
            match step {
                Step::Insert(text) => new.push_str(text),
                Step::Copy(from, length) => new.push_str(old.get(*from..from.checked_add(*length)?)?),
            }
        }
        Some(new)
    }

    /// Copies what blocks of `old`, which begins at `offset` of the first text, have in common with `new`.
    fn find_blocks(&mut self, old: &str, new: &str, offset: usize) {
        let mut blocks: HashMap<&[u8], usize, RandomState> = HashMap::default();
        for (number, block) in old.as_bytes().chunks_exact(BLOCK).enumerate() {
            blocks.entry(block).or_insert(number * BLOCK);
        }
        let (mut done, mut at) = (0, 0);
        while let Some(block) = new.as_bytes().get(at..at + BLOCK) {
            let Some(found) = blocks.get(block) else {
                at += 1;
                continue;
            };
            // The equal part around the block, in whole characters.
            let before = common_end(&old[..floor(old, *found)], &new[done..floor(new, at)]);
            let (from, first) = (floor(old, *found) - before, floor(new, at) - before);
            let length = common_start(&old[from..], &new[first..]);
            if length < BLOCK {
                at += 1;
                continue;
            }
            self.insert(&new[done..first]);
            self.copy(offset + from, length);
            done = first + length;
            at = done;
        }
        self.insert(&new[done..]);
    }

    fn copy(&mut self, from: usize, length: usize) {
        if length > 0 {
            self.0.push(Step::Copy(from, length));
        }
    }

    fn insert(&mut self, text: &str) {
        if !text.is_empty() {
            self.0.push(Step::Insert(text.to_owned()));
        }
    }
}

/// The start of the character at a place.
fn floor(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The length of the longest common start, in whole characters.
fn common_start(a: &str, b: &str) -> usize {
    let equal = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let is_end = |at: &usize| a.is_char_boundary(*at) && b.is_char_boundary(*at);
    (0..=equal).rev().find(is_end).unwrap_or(0)
}

/// The length of the longest common end, in whole characters.
fn common_end(a: &str, b: &str) -> usize {
    let equal = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let is_start = |length: &usize| a.is_char_boundary(a.len() - length) && b.is_char_boundary(b.len() - length);
    (0..=equal).rev().find(is_start).unwrap_or(0)
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
        assert_eq!(steps("Be very brief.", "Be quite brief."), r#"[[0,3],"quite",[7,7]]"#);
        assert_eq!(steps("same", "same"), "[[0,4]]");
        assert_eq!(steps("", "new"), r#"["new"]"#);
        assert_eq!(steps("old", ""), "[]");
        // The two letters share their first byte.
        assert_eq!(steps("aäb", "aöb"), r#"[[0,1],"ö",[3,1]]"#);
    }

    #[test]
    fn changes_far_apart_cost_what_is_around_them() {
        let words = |changed: &[(usize, &str)]| -> String {
            let word = |number: usize| match changed.iter().find(|(place, _)| *place == number) {
                Some((_, word)) => format!("{word} "),
                None => format!("word{} ", number * 7919 % 1000),
            };
            (0..800).map(word).collect()
        };
        let (old, new) = (words(&[]), words(&[(3, "first"), (400, "second"), (790, "third")]));
        assert!(steps(&old, &new).len() < 200);
        // So does a part that was moved.
        let (head, tail) = old.split_at(old.len() / 2);
        assert!(steps(&old, &[tail, head].concat()).len() < 200);
    }

    #[test]
    fn steps_beyond_another_text_make_none() {
        let edit = Edit::between("Be very brief.", "Be brief.");
        for other in ["", "Be", "ääääääää"] {
            assert_eq!(edit.apply(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn the_steps_make_the_second_text(
            old in "([a-cä😀]{0,20}[.,]){0,40}",
            new in "([a-cä😀]{0,20}[.,]){0,40}",
            places in proptest::collection::vec((any::<prop::sample::Index>(), "[a-cä]{0,3}"), 0..5),
        ) {
            steps(&old, &new);
            let mut edited: Vec<char> = old.chars().collect();
            for (place, text) in places {
                let at = place.index(edited.len() + 1);
                edited.splice(at..edited.len().min(at + 2), text.chars());
            }
            steps(&old, &edited.into_iter().collect::<String>());
        }
    }
}
