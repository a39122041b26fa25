//! Readers of files.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use agentcfg_cli::agent_file::{self, Fields, Markers};
use agentcfg_core::store::redb::verify_backup;
use agentcfg_core::store::{Key, Kind, StoreError, envelope};
use agentcfg_server::process::{Config, Flags};

/// An agent's file. Places of problems are in the file, and a good file is written and read back as the same agent.
pub fn agent_file(input: &[u8]) {
    let path = Path::new("writer.md");
    let spec = match agent_file::read(path, input, Markers::Refuse) {
        Ok(spec) => spec,
        Err(problems) => {
            assert!(!problems.is_empty(), "a refusal names a problem");
            // A carriage return alone is a line end of YAML.
            let lines = 1 + input.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
            for problem in problems {
                assert!((1..=lines + 1).contains(&problem.place.line), "{problem}");
                assert!(
                    problem.place.column >= 1 && problem.place.column <= input.len() + 2,
                    "{problem}"
                );
            }
            return;
        }
    };
    let fields = Fields::of_spec(&spec).expect("an agent has fields");
    let file = agent_file::write(&spec.agent_id, &fields);
    let again = agent_file::read(path, file.as_bytes(), Markers::Refuse)
        .unwrap_or_else(|problems| panic!("{problems:?} in\n{file}"));
    let again = Fields::of_spec(&again).expect("an agent has fields");
    assert_eq!(fields, again);
    assert_eq!(
        file,
        agent_file::write(&spec.agent_id, &again),
        "the same agent has the same file"
    );
}

/// A backup, as it is and with a good checksum at its end.
pub fn backup(input: &[u8]) {
    let _ = verify_backup(input);
    // A checksum that fits lets the reader see what the mutation did to the records.
    if let Some(content) = input.len().checked_sub(4).map(|end| &input[..end]) {
        let mut sealed = content.to_vec();
        sealed.extend(crc32fast::hash(content).to_be_bytes());
        let _ = verify_backup(&sealed[..]);
    }
}

/// The envelope of a record: the first byte is the length of the key.
pub fn envelope(input: &[u8]) {
    let Some((length, rest)) = input.split_first() else {
        return;
    };
    let (key, bytes) = rest.split_at(usize::from(*length).min(rest.len()));
    match envelope::open(key, bytes) {
        Ok(record) => assert_eq!(envelope::seal(key, record.version, &record.value), bytes),
        Err(StoreError::Corrupt(message)) => assert!(message.len() < 4096 + 4 * key.len(), "{message}"),
        Err(_) => {}
    }
    if let Some(key) = Key::decode(key) {
        assert_eq!(Key::decode(&key.encode()), Some(key));
    }
    // The same bytes as a value that was sealed open again, and not with another byte at their end.
    let key = Key::global("store", Kind::Meta, "name").encode();
    let mut sealed = envelope::seal(&key, 7, bytes);
    let record = envelope::open(&key, &sealed).expect("what was sealed opens");
    assert_eq!(&*record.value, bytes);
    sealed.push(0);
    assert!(envelope::open(&key, &sealed).is_err());
}

/// A configuration file. A refusal has a message for each problem, and none is much longer than the file.
pub fn config_file(input: &[u8]) {
    let mut file = tempfile::NamedTempFile::new_in(directory()).expect("a temporary file");
    file.write_all(input).expect("a temporary file");
    let flags = Flags {
        config: Some(file.path().to_owned()),
        ..Flags::default()
    };
    if let Err(error) = Config::load(flags, std::iter::empty::<(OsString, OsString)>()) {
        assert!(!error.problems().is_empty());
        for problem in error.problems() {
            assert!(
                !problem.is_empty() && problem.len() < 8 * input.len() + 4096,
                "{problem}"
            );
        }
    }
}

/// A directory in memory, where there is one.
fn directory() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory } else { Path::new("/tmp") }
}
