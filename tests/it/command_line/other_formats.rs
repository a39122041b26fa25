//! Store files of other builds: each command refuses one of another format, names the build that made it, and changes
//! nothing.

use std::fs;

use agentcfg_tests::harness::{Server, run};

/// The bytes of a store file as a build with another format would have made it: each sector of the head has these
/// fields.
fn of_format(mut file: Vec<u8>, format: u32, build: &str) -> Vec<u8> {
    for slot in [0, 2 * 4096] {
        for sector in file[slot..slot + 4096].chunks_exact_mut(512) {
            sector[8..12].copy_from_slice(&format.to_be_bytes());
            sector[12..44].fill(0);
            sector[12..12 + build.len()].copy_from_slice(build.as_bytes());
            let checksum = crc32fast::hash(&sector[..508]);
            sector[508..].copy_from_slice(&checksum.to_be_bytes());
        }
    }
    file
}

#[test]
fn a_store_of_another_format_is_refused_by_each_command() {
    let server = Server::builder().start();
    server.stop();
    let (data, path) = (server.data().to_str().unwrap(), server.data().join("store.redb"));
    let whole = fs::read(&path).unwrap();
    let out = server.data().with_extension("backup");
    let out = out.to_str().unwrap();
    for (format, build, expected) in [
        (1, "", "made by a build of agentcfg before 0.1.0 with format 1;"),
        (900, "7.1.0", "made by agentcfg 7.1.0 with format 900;"),
    ] {
        let file = of_format(whole.clone(), format, build);
        fs::write(&path, &file).unwrap();
        for command in [
            vec!["serve", "--listen", "127.0.0.1:0", "--data", data],
            vec!["check", "--data", data],
            vec!["backup", "--data", data, "--out", out],
        ] {
            run(&command).failed_with(&[expected, "run that build"]);
            assert!(fs::read(&path).unwrap() == file, "{command:?} changed the file");
        }
    }
    fs::write(&path, whole).unwrap();
    run(["check", "--data", data]).succeeded();
}
