//! `sa-profile snapshot`: a run that records, copied aside.

use crate::host::Host;
use crate::run;

#[test]
fn a_run_that_records_is_copied_aside() {
    let place = tempfile::tempdir().unwrap();
    let (directory, out) = (place.path().join("run"), place.path().join("out"));
    std::fs::create_dir(&directory).unwrap();
    let host = Host::start(&directory, "engine", false);
    let name = out.to_string_lossy().into_owned();
    let words = ["snapshot", &directory.to_string_lossy(), &name].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = crate::command(&words).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(
        String::from_utf8_lossy(&done.stdout).contains("1 fragments"),
        "{done:?}"
    );
    let again = crate::command(&words).output().unwrap();
    assert_eq!(
        again.status.code(),
        Some(2),
        "what is there already is not written over: {again:?}"
    );
    host.end();
    let status = run(&["status", "--json"], &out);
    assert!(status.stdout.contains("engine"), "{}", status.stdout);
}
