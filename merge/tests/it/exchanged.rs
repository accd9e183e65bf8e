//! Links that another user exchanges with folders of a run while it is merged.

use crate::invocation::{RunDir, one_block};
use crate::settle::killed;
use format_oracle::writer::Process;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use trace_merge::{Error, Options, merge};

/// Number of merges. Before the fix, about one in a hundred followed the link.
const MERGES: usize = 200;

/// Writes fragments of a dozen processes, whose events all have this name.
fn fill(fragments: &Path, name: &str, first: u32) {
    for pid in first..first + 12 {
        let process = Process::new(pid);
        let span = process.main_thread().span(2_000_000, 5, name, "");
        one_block(&process, &[process.anchor(1_000_000), span]).write_here(fragments);
    }
}

/// Exchanges two names as fast as possible until `work` is done.
fn while_exchanging<T>(one: &Path, other: &Path, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        done
    })
}

/// Returns true if renames can exchange names here.
fn can_exchange(test: &str, folder: &Path) -> bool {
    let (one, other) = (folder.join("one"), folder.join("other"));
    fs::write(&one, "").unwrap();
    fs::write(&other, "").unwrap();
    let exchanged = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
    if let Err(error) = exchanged {
        eprintln!("SKIPPED {test}: no exchange of names: {error}");
    }
    exchanged.is_ok()
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    entries.map(|entry| read(entry.unwrap().path())).collect()
}

#[test]
fn issue_19_a_link_exchanged_for_the_fragments_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    if !can_exchange("issue_19_a_link_exchanged", folder.path()) {
        return;
    }
    // The run of another user, with a killed process whose ring must not be touched.
    let (run, theirs) = (RunDir::new(), killed(true));
    fill(&run.fragments(), "of_ours", 900);
    fill(&theirs.fragments(), "of_theirs", 700);
    let untouched = contents(&theirs.fragments());
    let link = run.path().join("link");
    symlink(theirs.fragments(), &link).unwrap();
    let options = Options {
        output: trace_merge::Output::File(folder.path().join("out.json")),
        threads: 1,
        ..Options::new([run.path().to_owned()])
    };
    let (mut whole, mut none) = (0, 0);
    while_exchanging(&run.fragments(), &link, || {
        for _ in 0..MERGES {
            let report = match merge(&options) {
                Ok(report) => report,
                Err(Error::NothingUsable(_)) => {
                    none += 1;
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let text = fs::read_to_string(report.output.path.unwrap()).unwrap();
            assert!(!text.contains("of_theirs") && !text.contains("flushed"));
            assert_eq!(text.matches("of_ours").count(), 12);
            whole += 1;
        }
    });
    assert!(whole > 0, "no merge found the fragments, {none} nothing");
    assert!(contents(&theirs.fragments()) == untouched);
}

#[test]
fn issue_19_a_trace_goes_to_the_run_of_its_events() {
    let folder = tempfile::tempdir().unwrap();
    if !can_exchange("issue_19_a_trace_goes_to_the_run", folder.path()) {
        return;
    }
    let runs = [(RunDir::new(), "of_one"), (RunDir::new(), "of_other")];
    let names = [folder.path().join("run"), folder.path().join("run-2")];
    for ((run, event), name) in runs.iter().zip(&names) {
        fill(&run.fragments(), event, 900);
        symlink(run.path(), name).unwrap();
    }
    let options = Options {
        threads: 1,
        ..Options::new([names[0].clone()])
    };
    while_exchanging(&names[0], &names[1], || {
        for round in 0..MERGES {
            merge(&options).unwrap();
            for (run, event) in &runs {
                let trace = fs::read_to_string(run.path().join("trace.json")).unwrap_or_default();
                let count = trace.matches(event).count();
                assert!(trace.is_empty() || count == 12, "round {round}: {event}");
            }
        }
    });
}

#[test]
fn issue_19_a_path_of_the_user_may_be_a_link() {
    let (run, links) = (RunDir::new(), tempfile::tempdir().unwrap());
    fill(&run.fragments(), "here", 900);
    let (folder, file) = (links.path().join("run"), links.path().join("one.jsonl"));
    symlink(run.path(), &folder).unwrap();
    symlink(run.fragments().join("trace.900.jsonl"), &file).unwrap();
    let events = |path: &Path| {
        let report = merge(&Options::new([path.to_owned()]));
        report.unwrap().events.total
    };
    assert_eq!(events(&folder), 12);
    assert_eq!(events(&folder.join("fragments")), 12);
    assert!(folder.is_symlink() && run.path().join("trace.json").exists());
    let named = Options {
        output: trace_merge::Output::File(links.path().join("out.json")),
        ..Options::new([file])
    };
    assert_eq!(merge(&named).unwrap().events.total, 1);
}
