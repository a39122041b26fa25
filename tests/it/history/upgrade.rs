//! A data file of the last release without versions.

use std::io::Read;
use std::sync::Arc;

use agentcfg_core::store::redb::{RedbOptions, RedbStore};
use flate2::read::GzDecoder;

#[path = "../../upgrade/mod.rs"]
mod fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_data_file_from_before_versions_keeps_its_past() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let mut file = Vec::new();
    GzDecoder::new(fixture::REDB).read_to_end(&mut file).unwrap();
    std::fs::write(&path, file).unwrap();
    assert!(fixture::POSTGRES.starts_with("SET"));
    let store = RedbStore::open(&path, RedbOptions::default()).unwrap();
    fixture::check(Arc::new(store)).await;
}
