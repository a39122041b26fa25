//! Where problems are: conflicts in the persona, and keys that are not known.

use std::path::Path;

use super::super::{Markers, read};

fn refused(file: &str) -> Vec<String> {
    let problems = read(Path::new("writer.md"), file.as_bytes(), Markers::Refuse).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_conflict_in_the_persona_is_a_problem_at_its_line() {
    let file = "---\ndisplay_name: W\n---\nYou write.\n<<<<<<< HEAD\nMuch.\n=======\nLittle.\n>>>>>>> topic\n";
    for file in [file.to_owned(), file.replace('\n', "\r\n")] {
        let found = refused(&file);
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = "writer.md:5:1: a conflict is not resolved: keep one of the two sides";
        assert!(found[0].starts_with(expected), "{found:?}");
        assert!(found[0].contains("--allow-conflict-markers"), "{found:?}");
        assert!(read(Path::new("writer.md"), file.as_bytes(), Markers::Allow).is_ok());
    }
    // In front matter they are never meant, and a file that both sides have added is one conflict.
    for (file, at) in [("---\na: b\n||||||| base\n---\n", 3), ("<<<<<<< HEAD\n---\na: b\n", 1)] {
        for markers in [Markers::Refuse, Markers::Allow] {
            let problems = read(Path::new("writer.md"), file.as_bytes(), markers).unwrap_err();
            let expected = format!("writer.md:{at}:1: a conflict is not resolved");
            assert!(problems[0].to_string().starts_with(&expected), "{problems:?}");
        }
    }
}

#[test]
fn a_conflict_and_other_problems_come_in_the_order_of_the_lines() {
    let found = refused("---\ndisplay_name: W\ncolour: x\n---\n<<<<<<< HEAD\n");
    assert!(found[0].starts_with("writer.md:3:9: colour is not"), "{found:?}");
    assert!(found[1].starts_with("writer.md:5:1: a conflict"), "{found:?}");
}

#[test]
fn an_unknown_key_is_at_its_own_line_whatever_its_value_is() {
    let file = "---\ndisplay_name: W\ntools:\n  - Read\n  - Write\nnotes: |\n  Two\n  lines\nmore:\n\n  deep:\n    a: 1\n\
                folded: >-\n\n  text\nflow: [a,\n  b]\nlater:\n  word\n---\n";
    let expected = [
        "writer.md:3:1: tools is",
        "writer.md:6:",
        "writer.md:9:1: more is",
        "writer.md:13:",
        "writer.md:16:7: flow is",
        "writer.md:18:1: later is",
    ];
    let found = refused(file);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found} {expected}");
    }
}

#[test]
fn a_name_is_a_display_name_elsewhere() {
    let found = refused("---\nname: Writer\ndisplay_name: W\n---\n");
    assert_eq!(
        found,
        ["writer.md:2:7: name is not a known field (did you mean display_name?)"]
    );
}
