//! Kernels with pages larger than 4 KiB, as on arm64 servers: a ring is laid out for the kernel that it is created on and can be read on any.
//!
//! The preloaded library of `faults.rs` reports another page size to the process, and fails mappings that such a kernel would refuse.

use crate::host;
use e2e::host_support::{Host, HostRecording, library, ring_files, scratch};
use std::path::Path;

const PAGES: [usize; 2] = [16 << 10, 64 << 10];

fn host_with_pages(bytes: usize, dir: &Path, arguments: &[&str]) -> Host {
    let host = host(dir, arguments).variable("LD_PRELOAD", library("libfaults.so"));
    host.variable("SA_TEST_PAGE_BYTES", bytes.to_string())
}

#[test]
fn slots_are_recovered_and_a_fork_is_noticed_on_any_page_size() {
    for page_bytes in PAGES {
        let dir = scratch();
        // There are more threads than can get a large ring, and at the kill all their events are only in the ring.
        let arguments = ["threads-then-killed", "40", "20"];
        let host = host_with_pages(page_bytes, dir.path(), &arguments);
        let _killed = host.run().was_killed();
        let ring = std::fs::read(&ring_files(dir.path())[0]).unwrap();
        assert_eq!(ring[12..16], (page_bytes as u32).to_ne_bytes());
        let found = HostRecording::accounted(dir.path(), 800);
        assert_eq!(found.header_values("page_bytes"), [page_bytes.to_string()]);
        assert_eq!(found.recorded(), 800, "page size {page_bytes}");
        // The kernel clears a page in the child of a fork.
        let dir = scratch();
        let mut host = host_with_pages(page_bytes, dir.path(), &["script"]).start();
        host.ask("spans before 500");
        host.ask("fork, spans child 500");
        host.ask("spans after 500");
        let _forked = host.end().quiet();
        let found = HostRecording::in_dir(dir.path());
        found.assert_exactly(&[("before", 500), ("child", 500), ("after", 500)]);
        let pages = found.header_values("page_bytes");
        assert_eq!(pages, vec![page_bytes.to_string(); 2]);
    }
}
