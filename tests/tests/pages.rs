//! Kernels with larger pages than 4 KiB, as arm64 servers have them: the ring is laid out for the pages of the kernel it is made on, and read on any.
//!
//! The preloaded library `page-size` tells the process another page size and refuses the mappings that such a kernel refuses.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test says what it found, and fails where it stands"
)]

use e2e::autopsy::judge_both;
use e2e::chance::{Chance, rounds};
use e2e::host_support::{Found, Host, Merged, ring_files, scratch};
use e2e::order::{Ending, Order, Pattern};
use e2e::verdict::Verdict;
use e2e::victim::Victim;
use std::path::Path;
use std::time::Duration;

const HOST: &str = env!("CARGO_BIN_EXE_host");
const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const PAGES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

/// The variables that give a process pages of this size.
fn pages_of(bytes: usize) -> [(&'static str, String); 2] {
    // Cargo builds it beside the tests because they depend on its package.
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libpage_size.so");
    assert!(library.exists(), "{}", library.display());
    [
        ("LD_PRELOAD", library.display().to_string()),
        ("SA_TEST_PAGE_BYTES", bytes.to_string()),
    ]
}

fn host(page_bytes: usize, dir: &Path, arguments: &[&str]) -> Host {
    let host = Host::new(HOST).arguments(arguments).recorded_in(dir);
    let add = |host: Host, (name, value): (&str, String)| host.variable(name, value);
    pages_of(page_bytes).into_iter().fold(host, add)
}

/// The page sizes in the ring files of a run.
fn ring_pages(dir: &Path) -> Vec<usize> {
    let page = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        usize::try_from(u32::from_ne_bytes(bytes[12..16].try_into().unwrap())).unwrap()
    };
    ring_files(dir).iter().map(page).collect()
}

fn kill_many(page_bytes: usize, pattern: Pattern, threads: usize, count: usize) {
    let mut chance = Chance::new();
    let seed = chance.seed;
    let (mut second, mut merge) = (Verdict::default(), Verdict::default());
    for _ in 0..count {
        let ending = Ending::Never;
        let order = Order {
            threads,
            pattern,
            ending,
        };
        let variables = pages_of(page_bytes);
        let variables = variables
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let mut victim = Victim::start_with(VICTIM, order, &variables).unwrap();
        victim.wait_ready().unwrap();
        std::thread::sleep(chance.pause(Duration::from_millis(40)));
        victim.kill().unwrap();
        assert_eq!(ring_pages(&victim.directory()), [page_bytes]);
        let (read, merged) = judge_both(&victim);
        second += read;
        merge += merged;
    }
    println!(
        "PAGES {page_bytes} {pattern:?} kills={count} seed={seed}\n  second reader: {second}\n  merge: {merge}"
    );
    assert!(second.acknowledged > 0 && second.is_clean() && merge.is_clean());
}

#[test]
fn a_kill_at_full_speed_costs_nothing_on_any_page_size() {
    for page_bytes in PAGES {
        kill_many(page_bytes, Pattern::Flat, 4, rounds(4));
    }
}

#[test]
fn a_kill_shows_the_open_spans_on_any_page_size() {
    for page_bytes in PAGES {
        kill_many(page_bytes, Pattern::Nested, 2, rounds(4));
    }
}

/// More threads than get a large ring, all of them only in the ring at the kill.
#[test]
fn small_and_large_slots_are_recovered_on_any_page_size() {
    for page_bytes in PAGES {
        let dir = scratch();
        let _killed = host(page_bytes, dir.path(), &["threads-then-killed", "40", "20"])
            .run()
            .was_killed();
        assert_eq!(ring_pages(dir.path()), [page_bytes]);
        let found = Found::in_dir(dir.path());
        assert_eq!(found.header_values("page_bytes"), [page_bytes.to_string()]);
        found.assert_accounted(800);
        assert_eq!(found.recorded(), 800, "page size {page_bytes}");
        found.assert_merged(&Merged::newest(dir.path()));
    }
}

/// The page that the kernel wipes in the child of a fork.
#[test]
fn a_fork_is_noticed_on_any_page_size() {
    for page_bytes in PAGES {
        let dir = scratch();
        let _forked = host(page_bytes, dir.path(), &["fork", "_exit", "500"])
            .run()
            .quiet();
        let found = Found::in_dir(dir.path());
        found.assert_exactly(&[("before", 500), ("child", 500), ("after", 500)]);
        let pages = found.header_values("page_bytes");
        assert_eq!(pages, vec![page_bytes.to_string(); 2]);
    }
}
