//! Kernels with larger pages than 4 KiB, as arm64 servers have them: the ring is laid out for the pages of the kernel it is made on, and read on any.
//!
//! The preloaded library `page-size` reports another page size to the process and refuses the mappings that such a kernel refuses.

use crate::host;
use e2e::host_support::{Found, Host, ring_files, scratch};
use std::path::Path;

const PAGES: [usize; 2] = [16 << 10, 64 << 10];

fn host_with_pages(bytes: usize, dir: &Path, arguments: &[&str]) -> Host {
    // Cargo builds it next to the tests because they depend on its package.
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("libpage_size.so");
    assert!(library.exists(), "{}", library.display());
    let host = host(dir, arguments).variable("LD_PRELOAD", &library);
    host.variable("SA_TEST_PAGE_BYTES", bytes.to_string())
}

/// The page sizes in the ring files of a run.
fn ring_pages(dir: &Path) -> Vec<usize> {
    let page = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        u32::from_ne_bytes(bytes[12..16].try_into().unwrap()) as usize
    };
    ring_files(dir).iter().map(page).collect()
}

/// More threads than get a large ring, all of them only in the ring at the kill.
#[test]
fn small_and_large_slots_are_recovered_on_any_page_size() {
    for page_bytes in PAGES {
        let dir = scratch();
        let arguments = ["threads-then-killed", "40", "20"];
        let host = host_with_pages(page_bytes, dir.path(), &arguments);
        let _killed = host.run().was_killed();
        assert_eq!(ring_pages(dir.path()), [page_bytes]);
        let found = Found::accounted(dir.path(), 800);
        assert_eq!(found.header_values("page_bytes"), [page_bytes.to_string()]);
        assert_eq!(found.recorded(), 800, "page size {page_bytes}");
    }
}

/// The page that the kernel wipes in the child of a fork.
#[test]
fn a_fork_is_noticed_on_any_page_size() {
    for page_bytes in PAGES {
        let dir = scratch();
        let host = host_with_pages(page_bytes, dir.path(), &["fork", "_exit", "500"]);
        let _forked = host.run().quiet();
        let found = Found::in_dir(dir.path());
        found.assert_exactly(&[("before", 500), ("child", 500), ("after", 500)]);
        let pages = found.header_values("page_bytes");
        assert_eq!(pages, vec![page_bytes.to_string(); 2]);
    }
}
