//! What `migrate` prints.

use std::process::Output;

#[track_caller]
pub fn succeeds(output: &Output, says: &str) {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && out.contains(says), "{out}{err}");
}

#[track_caller]
pub fn fails(output: &Output, says: &str) {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && err.contains(says), "{err}");
}
