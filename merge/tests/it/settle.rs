//! A merge settles the files of dead processes of this machine, and no others.

use crate::damaged_rings::PID;
use crate::invocation::{RunDir, trace_merge};
use crate::trace::assert_same;
use crate::usage::mkfifo;
use crate::written_over::plain;
use format_oracle::writer::line::stream;
use format_oracle::writer::ring::sign;
use format_oracle::writer::{Open, Process, Ring, Slot};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

const OTHER_BOOT: &str = "0b1f7a3e-6c1d-4c55-9a37-1f7f4f9d2c11";

/// Returns a killed process's fragment and ring. `here` places it in this boot and pid namespace.
pub(crate) fn killed(here: bool) -> RunDir {
    killed_in(here, here)
}

/// Returns the same, with this boot and this pid namespace chosen separately.
pub(crate) fn killed_in(this_boot: bool, this_namespace: bool) -> RunDir {
    let process = Process {
        start_time: 1,
        ..Process::with_ring(PID)
    };
    let on = process.main_thread();
    let mut fragment = process.fragment();
    let zero = fragment.block(0, 0, &stream(&[process.anchor(1_000_000)]));
    let next = fragment.block(1, 0, &stream(&[on.span(1_000_000, 5, "flushed", "")]));
    let mut text = String::from_utf8(fragment.bytes).unwrap();
    if this_boot {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        text = text.replace(OTHER_BOOT, boot.trim());
    }
    if this_namespace {
        let inode = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
        text = text.replace("\"pid_ns\":402653,", &format!("\"pid_ns\":{inode},"));
    }
    fragment.bytes = text.into_bytes();
    let dir = RunDir::new();
    fragment.write_here(&dir.fragments());
    let slot = Slot {
        stream: stream(&[on.span(2_000_000, 5, "tail", "")]),
        open: vec![Open::named(3_000_000, "open")],
        ..Slot::flushed(PID, next)
    };
    let mut ring = Ring::with_thread(&process, slot);
    ring.slots[0] = Slot::flushed(0, zero);
    ring.write_here(&dir.fragments());
    dir
}

fn files(dir: &RunDir) -> (Vec<u8>, bool) {
    let path = |end| dir.fragments().join(format!("trace.{PID}.{end}"));
    (std::fs::read(path("jsonl")).unwrap(), path("ring").exists())
}

/// Without a ring it is unknown whether spans were open when a process died.
#[test]
fn issue_19_the_end_of_a_process_without_a_ring_is_unknown() {
    let end = |dir: &RunDir| dir.merge().report.0["processes"][0]["end"].clone();
    let dir = killed(true);
    std::fs::remove_file(dir.fragments().join(format!("trace.{PID}.ring"))).unwrap();
    assert_eq!(end(&dir), "unknown");
    assert_eq!(end(&killed(true)), "killed");
}

#[test]
fn a_settled_fragment_follows_the_format() {
    let dir = killed(true);
    let (before, _) = files(&dir);
    dir.merge();
    let (after, has_ring) = files(&dir);
    assert!(after.starts_with(&before) && !has_ring);
    let expected = crate::oracle::read(&dir.fragments());
    let again = dir.merge().trace.comparable();
    assert_same(&expected.events, &again, "what was settled");
    assert_eq!((expected.unfinished, expected.damage), (1, Vec::new()));
}

/// Makes process `pid` the owner of the killed process's files.
fn set_owner(dir: &RunDir, pid: u32) {
    let (fragment, _) = files(dir);
    let text = String::from_utf8(fragment).unwrap();
    let text = text.replace(
        &format!("\"pid\":{PID},\"start_time\":1,"),
        &format!("\"pid\":{pid},\"start_time\":{},", start_time(pid)),
    );
    dir.put(&PID.to_string(), text.as_bytes());
    let ring = dir.fragments().join(format!("trace.{PID}.ring"));
    let mut bytes = std::fs::read(&ring).unwrap();
    bytes[24..28].copy_from_slice(&pid.to_ne_bytes());
    sign(&mut bytes);
    std::fs::write(&ring, bytes).unwrap();
}

#[test]
fn a_live_process_is_not_settled() {
    let alive = killed(true);
    set_owner(&alive, std::process::id());
    let before = files(&alive);
    assert_eq!(alive.merge().trace.names(), ["flushed", "open", "tail"]);
    assert_eq!(files(&alive), before);
}

/// Adds a line to slot 1 of the ring, as its process would.
fn record_more(dir: &RunDir) {
    let path = dir.fragments().join(format!("trace.{PID}.ring"));
    let mut bytes = std::fs::read(&path).unwrap();
    let at = Ring::new(&Process::with_ring(PID)).slot_offset(1);
    let state = u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
    let head = usize::try_from(state >> 16).unwrap();
    let on = Process::new(PID).main_thread();
    let line = stream(&[on.span(2_500_000, 5, "late", "")]);
    bytes[at + 4096 + head..][..line.len()].copy_from_slice(&line);
    let state = format_oracle::reader::checked_state(1, 0, (head + line.len()) as u64, 1);
    bytes[at..at + 8].copy_from_slice(&state.to_ne_bytes());
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn a_process_that_dies_while_its_run_is_merged_loses_nothing() {
    let dir = killed(true);
    let pipe = dir.path().join("pipe");
    mkfifo(&pipe);
    let mut victim = Command::new("sleep").arg("600").spawn().unwrap();
    set_owner(&dir, victim.id());
    // Another process has more spans than a pipe holds.
    dir.put("90", &plain(20_000));
    let mut merge = trace_merge();
    let merge = merge.args(["-q", "-o"]).args([&pipe, dir.path()]);
    let mut merge = merge.spawn().unwrap();
    let mut output = std::fs::File::open(&pipe).unwrap();
    output.read_exact(&mut [0]).unwrap();
    // Everything is read now, and the merge waits for room in the pipe.
    record_more(&dir);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let before = files(&dir);
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert!(merge.wait().unwrap().success());
    assert!(files(&dir) == before, "what it had not seen is kept");
    for round in 0..2 {
        let merged = dir.merge();
        let mut names = merged.trace.names();
        names.retain(|name| *name != "plain");
        let of_victim = ["flushed", "late", "open", "tail"];
        assert_eq!(names, of_victim, "round {round}");
        assert_eq!(merged.report.number("damage_total"), 0, "round {round}");
        assert!(!files(&dir).1, "round {round}: settled");
    }
}

/// Returns the start of a process in clock ticks since boot. Another program reads it, because an
/// emulator reports a wrong start of the own process.
fn start_time(pid: u32) -> u64 {
    let mut cat = Command::new("cat");
    let output = cat.arg(format!("/proc/{pid}/stat")).output().unwrap();
    let stat = String::from_utf8(output.stdout).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().nth(19).unwrap().parse().unwrap()
}
