//! `agentcfg agents edit` with scripts as editors.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentcfg_tests::harness::Finished;
use serde_json::json;

use crate::fixture::{Desk, said_by};

const PERSONA: &str = "One.\nTwo.\nThree.\nFour.\nFive.";

fn desk() -> Desk {
    let desk = Desk::open();
    let fields = json!({"display_name": "Writer", "model": "gpt-5", "persona_prompt": PERSONA});
    desk.studio.create("writer", &fields).expect(201);
    desk
}

/// Edits the agent with a script. `$1` is the file.
fn edit(desk: &Desk, script: &str) -> Finished {
    let editor = desk.editor(script);
    desk.run("agents edit writer --message edited")
        .env("EDITOR", editor)
        .finish()
}

/// A command line that changes the agent as another client would, for use while the editor is open.
fn meanwhile(desk: &Desk, dir: &str, text: &str) -> String {
    desk.write(&format!("{dir}/writer.md"), text);
    let (command, path) = (agentcfg_tests::harness::command_binary().display(), desk.path(dir));
    format!("{command} apply {} >/dev/null 2>&1", path.display())
}

fn persona(desk: &Desk) -> String {
    desk.studio.list().json()[0]["persona_prompt"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn what_changed_is_sent_and_nothing_else() {
    let desk = desk();
    edit(&desk, "sed -i 's/gpt-5/gpt-6/; s/Two/2/' \"$1\"").exited(0);
    let agent = &desk.studio.list().json()[0];
    assert_eq!(agent["model"], "gpt-6");
    assert_eq!(persona(&desk), PERSONA.replace("Two", "2"));
    let entry = &desk.studio.audit()[0];
    let changed: Vec<_> = entry["changes"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| *name != "updated_at")
        .cloned()
        .collect();
    assert_eq!(changed, ["model", "persona_prompt"]);
    assert_eq!(entry["message"], "edited");
    // The file is gone.
    assert!(
        desk.names(".").iter().all(|name| !name.starts_with("agentcfg-")),
        "{:?}",
        desk.names(".")
    );
}

#[test]
fn an_edit_without_a_change_sends_nothing() {
    let desk = desk();
    let log = desk.studio.audit().len();
    let finished = edit(&desk, "touch \"$1\"").exited(0);
    said_by(finished, &["Nothing was changed"]);
    assert_eq!(desk.studio.audit().len(), log);
}

#[test]
fn changes_of_different_lines_are_merged() {
    let desk = desk();
    let theirs = format!(
        "---\ndisplay_name: Author\nmodel: gpt-5\n---\n{}\n",
        PERSONA.replace("Five", "5")
    );
    let other = meanwhile(&desk, "theirs", &theirs);
    let finished = edit(&desk, &format!("sed -i 's/One/1/; s/gpt-5/gpt-6/' \"$1\"\n{other}")).exited(0);
    said_by(finished, &["your edit was merged with version 2"]);
    let agent = &desk.studio.list().json()[0];
    assert_eq!(
        (&agent["display_name"], &agent["model"]),
        (&json!("Author"), &json!("gpt-6"))
    );
    assert_eq!(persona(&desk), "1.\nTwo.\nThree.\nFour.\n5.");
}

#[test]
fn lines_that_collide_come_back_with_markers_and_can_be_resolved() {
    let desk = desk();
    let theirs = format!(
        "---\ndisplay_name: Author\nmodel: gpt-5\n---\n{}\n",
        PERSONA.replace("One", "I")
    );
    let other = meanwhile(&desk, "theirs", &theirs);
    let seen = desk.path("seen.md").display().to_string();
    let script = format!(
        "if grep -q '<<<<<<<' \"$1\"; then cp \"$1\" {seen}\n\
         sed -i -e '/^<<<<<<</d' -e '/^=======$/,/^>>>>>>>/d' \"$1\"\n\
         else sed -i 's/One/1/; s/: Writer/: Scribe/' \"$1\"\n{other}\nfi"
    );
    edit(&desk, &script).exited(0);
    let agent = &desk.studio.list().json()[0];
    assert_eq!(agent["display_name"], "Scribe");
    assert_eq!(persona(&desk), PERSONA.replace("One", "1"));
    let seen = desk.read("seen.md");
    let field = "<<<<<<< your edit\ndisplay_name: Scribe\n=======\ndisplay_name: Author\n>>>>>>> version 2\n";
    let line = "<<<<<<< your edit\n1.\n=======\nI.\n>>>>>>> version 2\n";
    assert!(seen.contains(field) && seen.contains(line), "{seen}");
}

#[test]
fn a_separator_that_is_left_between_two_sides_is_a_conflict() {
    let desk = desk();
    let theirs = format!(
        "---\ndisplay_name: Writer\nmodel: gpt-5\n---\n{}\n",
        PERSONA.replace("One", "I")
    );
    let other = meanwhile(&desk, "theirs", &theirs);
    let script = format!(
        "if grep -q '<<<<<<<' \"$1\"; then sed -i -e '/^<<<<<<</d' -e '/^>>>>>>>/d' \"$1\"\n\
         else sed -i 's/One/1/' \"$1\"\n{other}\nfi"
    );
    let refused = edit(&desk, &script).exited(5);
    assert!(refused.stderr.contains("conflict"), "{refused:?}");
    assert!(kept(&refused).contains("1.\n=======\nI.\n"));
    assert_eq!(persona(&desk), PERSONA.replace("One", "I"));
}

/// The file that a failed edit says it keeps.
fn kept_file(finished: &Finished) -> PathBuf {
    let path = finished
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("Your text is kept in "));
    path.unwrap_or_else(|| panic!("no path: {finished:?}")).into()
}

fn kept(finished: &Finished) -> String {
    fs::read_to_string(kept_file(finished)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_text_is_for_its_user_alone_while_it_is_edited_and_when_it_is_kept() {
    let desk = desk();
    let modes = desk.path("modes").display().to_string();
    // Many editors write a new file in place of the old one.
    let editor = desk.editor(&format!(
        "stat -c %a \"${{1%/*}}\" \"$1\" >{modes}\nsed s/One/Mine/ \"$1\" >\"$1.new\"; mv \"$1.new\" \"$1\"; exit 3"
    ));
    for umask in ["000", "022", "077"] {
        let line = format!("umask {umask}; exec {} agents edit writer", command());
        let shell = desk.run_with(&["-c", &line]).binary("/bin/sh");
        let finished = shell.env("EDITOR", &editor).finish().exited(1);
        assert_eq!(desk.read("modes"), "700\n600\n", "umask {umask}");
        let file = kept_file(&finished);
        assert_eq!(mode(&file), 0o600, "umask {umask}");
        assert_eq!(mode(file.parent().unwrap()), 0o700, "umask {umask}");
    }
}

#[test]
fn the_text_is_kept_whatever_fails() {
    let desk = desk();
    let edited = "sed -i 's/One/Mine/' \"$1\"";
    for (script, code, said) in [
        (
            format!("{edited}; sed -i 's/^model/modell/' \"$1\""),
            1,
            "writer.md:5:9: modell is not a known field",
        ),
        (format!("{edited}; exit 3"), 1, "ended with exit status: 3"),
        (
            format!("{edited}; {} agents delete writer --yes >/dev/null", command()),
            4,
            "not found",
        ),
    ] {
        let finished = said_by(edit(&desk, &script).exited(code), &[said]);
        assert!(kept(&finished).contains("Mine."), "{finished:?}");
    }
    let finished = desk
        .run("agents edit writer")
        .env("EDITOR", "/no/such/editor")
        .finish()
        .exited(4);
    assert!(!finished.stderr.contains("kept"), "nothing was edited: {finished:?}");
    desk.studio.restore("writer").expect(200);
    let finished = desk
        .run("agents edit writer")
        .env("EDITOR", "/no/such/editor")
        .finish()
        .exited(1);
    let finished = said_by(finished, &["the editor /no/such/editor", "VISUAL or EDITOR"]);
    assert!(!finished.stderr.contains("kept"), "nothing was edited: {finished:?}");
    let before = desk.names(".").len();
    for script in ["exit 3", "rm \"$1\""] {
        let finished = edit(&desk, script).exited(1);
        assert!(!finished.stderr.contains("kept"), "there is no text: {finished:?}");
        assert!(
            script == "exit 3" || finished.stderr.contains("the editor has removed the file"),
            "{finished:?}"
        );
    }
    // The editor's script itself is one name.
    assert_eq!(desk.names(".").len(), before, "{:?}", desk.names("."));
    assert_eq!(persona(&desk), PERSONA);
}

fn command() -> String {
    agentcfg_tests::harness::command_binary().display().to_string()
}

#[test]
fn conflicts_that_are_left_are_not_sent() {
    let desk = desk();
    let theirs = format!(
        "---\ndisplay_name: Writer\nmodel: gpt-5\n---\n{}\n",
        PERSONA.replace("One", "I")
    );
    let other = meanwhile(&desk, "theirs", &theirs);
    let finished = edit(
        &desk,
        &format!("grep -q '<<<<<<<' \"$1\" || sed -i 's/One/1/' \"$1\"\n{other}"),
    )
    .exited(5);
    let finished = said_by(finished, &["writer.md:7:1: a conflict is not resolved"]);
    assert!(
        kept(&finished).contains("<<<<<<< your edit\n1.\n=======\nI.\n"),
        "{finished:?}"
    );
    assert_eq!(persona(&desk), PERSONA.replace("One", "I"));
}

#[test]
fn the_editor_may_have_arguments_and_visual_wins() {
    let desk = desk();
    let editor = desk.editor("test \"$1\" = '--wait for'; sed -i 's/gpt-5/gpt-7/' \"$2\"");
    let visual = format!("{} '--wait for'", editor.display());
    desk.run("agents edit writer")
        .env("VISUAL", visual)
        .env("EDITOR", "false")
        .finish()
        .exited(0);
    assert_eq!(desk.studio.list().json()[0]["model"], "gpt-7");
}
