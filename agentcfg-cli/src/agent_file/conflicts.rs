//! Markers of a merge that is not resolved.
//!
//! Git writes them at the start of a line: `<<<<<<<`, `|||||||` (diff3), `=======` and `>>>>>>>`. Indented or quoted
//! ones are text. A line of `=======` alone may also be the underline of a Markdown heading.

/// The message for conflict markers that are left.
pub const UNRESOLVED: &str = "a conflict is not resolved: keep one of the two sides, and remove the lines of markers";

/// What to do about markers in a persona, where they may be meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Markers {
    #[default]
    Refuse,
    Allow,
}

impl Markers {
    pub fn allowed_if(is_allowed: bool) -> Self {
        if is_allowed { Self::Allow } else { Self::Refuse }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    Ours,
    Base,
    Middle,
    Theirs,
}

fn marker(line: &str) -> Option<Marker> {
    let line = line.trim_end_matches(['\n', '\r']);
    let (head, rest) = line.split_at_checked(7)?;
    let is_labelled = rest.is_empty() || rest.starts_with(' ');
    match head {
        "<<<<<<<" if is_labelled => Some(Marker::Ours),
        "|||||||" if is_labelled => Some(Marker::Base),
        "=======" if rest.trim_end().is_empty() => Some(Marker::Middle),
        ">>>>>>>" if is_labelled => Some(Marker::Theirs),
        _ => None,
    }
}

/// The first line of a text, counted from 0, that is a marker.
pub fn first_marker(text: &str) -> Option<usize> {
    text.split('\n').position(|line| marker(line).is_some())
}

/// The lines of a persona, counted from 0, where conflicts begin, and those of markers that belong to none.
pub fn conflicts_of_body(body: &str) -> Vec<usize> {
    let lines: Vec<&str> = body.split('\n').collect();
    let markers: Vec<(usize, Marker)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, marker(line)?)))
        .collect();
    let has_others = markers.iter().any(|(_, marker)| *marker != Marker::Middle);
    let underlines_a_text = |at: usize| at > 0 && !lines[at - 1].trim().is_empty();
    let mut is_open = false;
    let mut found = Vec::new();
    for (at, marker) in markers {
        let belongs = is_open && marker != Marker::Ours;
        let is_heading = marker == Marker::Middle && !has_others && underlines_a_text(at);
        if !belongs && !is_heading {
            found.push(at);
        }
        is_open = match marker {
            Marker::Ours => true,
            Marker::Theirs => false,
            Marker::Base | Marker::Middle => is_open,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_found_where_it_begins() {
        let git = "You write.\n<<<<<<< HEAD\nMuch.\n=======\nLittle.\n>>>>>>> topic\n";
        let diff3 = "<<<<<<< ours\na\n||||||| 1a2b3c\nb\n=======\nc\n>>>>>>> theirs\n\n<<<<<<<\na\n=======\n>>>>>>>";
        for (body, expected) in [(git, vec![1]), (diff3, vec![0, 8])] {
            assert_eq!(conflicts_of_body(body), expected, "{body}");
            assert_eq!(conflicts_of_body(&body.replace('\n', "\r\n")), expected, "{body}");
        }
    }

    #[test]
    fn what_is_left_of_a_conflict_is_found() {
        for (body, expected) in [
            ("a\n>>>>>>> topic\n", vec![1]),
            ("a\n=======\nb\n>>>>>>> topic\n", vec![1, 3]),
            ("<<<<<<< HEAD\na\n=======\n", vec![0]),
            ("a\n||||||| base\nb\n", vec![1]),
            ("=======\nb", vec![0]),
            ("a\n\n=======\nb", vec![2]),
            ("a\r\n\r\n=======\r\nb", vec![2]),
        ] {
            assert_eq!(conflicts_of_body(body), expected, "{body:?}");
        }
    }

    #[test]
    fn other_texts_have_no_conflict() {
        for body in [
            "Summary\n=======\nYou write.",
            "> <<<<<<< HEAD\n> =======\n> >>>>>>> topic",
            "  <<<<<<< HEAD\n\t=======\n    >>>>>>> topic",
            "`<<<<<<<` and \"=======\" are markers",
            "<<<<<<<HEAD\n========\n>>>>>>>>\n|||||||x\n======= of a kind",
            "<<<<<<\n======\n>>>>>>\n|||||| a",
            "é<<<<<<< HEAD",
            "",
        ] {
            assert_eq!(conflicts_of_body(body), Vec::<usize>::new(), "{body:?}");
        }
    }

    #[test]
    fn front_matter_has_its_first_marker() {
        assert_eq!(first_marker("a: b\n======= \nc: d\n"), Some(1));
        assert_eq!(first_marker("a: b\r\n||||||| base\r\n"), Some(1));
        assert_eq!(first_marker("a: b\n  <<<<<<< HEAD\n"), None);
    }
}
