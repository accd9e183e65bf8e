//! Settling a dead process's fragment: what its ring held is appended as blocks, then the ring goes (FORMAT.md §4).
//!
//! Only for a process of this boot and pid namespace that is dead, only on regular files of our own, no link is followed, and any
//! failure leaves the ring where it is. Two who settle at once write the same positions, which a reader takes once.

use crate::fragment::{FileId, Fragment};
use crate::line::parse;
use crate::recording::{Assembly, Recording};
use crate::ring::Ring;
use sa_recorder::format::{BlockHeader, END_RECORD, FragmentHeader, Metadata, block_sum};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Settles a recording if nobody owns it; tells whether its ring is gone. `last_ns` is the time of its last event.
pub(crate) fn settle(recording: &Recording, assembly: &Assembly, last_ns: i64) -> bool {
    let (Some(header), Some((ring, ring_id)), Some(ring_path)) =
        (recording.header(), &recording.ring, &recording.ring_path)
    else {
        return false;
    };
    let Some(fragment) = recording.fragments.last() else {
        return false;
    };
    if !ring.bad_slots.is_empty() || !is_dead_here(header) {
        return false;
    }
    let Some(blocks) = blocks(header, ring, assembly, last_ns) else {
        return false;
    };
    append(fragment, &blocks).is_ok() && remove_ring(ring_path, *ring_id).is_ok()
}

/// Whether the process ran under this boot and pid namespace and does not any more.
fn is_dead_here(header: &FragmentHeader) -> bool {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino());
    // Another /proc than our own namespace's would call everybody dead.
    let proc_is_ours = fs::read_link("/proc/self")
        .is_ok_and(|own| own == Path::new(&std::process::id().to_string()));
    let is_here =
        boot.trim() == header.boot_id && namespace.is_ok_and(|inode| inode == header.pid_ns);
    is_here && proc_is_ours && !is_alive(header.pid, header.start_time)
}

/// Whether a process of this pid and start time still runs; a zombie does not, unless other threads of it do.
fn is_alive(pid: u32, start_time: u64) -> bool {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    // The name stands in parentheses and may hold anything.
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return true;
    };
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let (Some(state), Some(started)) = (fields.first(), fields.get(19)) else {
        return true;
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    started_at(started) == Some(start_time) && (!matches!(*state, "Z" | "X") || threads > 1)
}

/// A start time from `/proc` in clock ticks, as the initial time namespace would show it.
fn started_at(ticks: &str) -> Option<u64> {
    let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let mut fields = offsets
        .lines()
        .find(|line| line.starts_with("boottime"))
        .into_iter()
        .flat_map(|line| line.split_whitespace().skip(1))
        .filter_map(|field| field.parse::<i64>().ok());
    let (seconds, ns) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    let offset = seconds * 100 + ns / 10_000_000;
    u64::try_from(ticks.parse::<i64>().ok()? - offset).ok()
}

/// The blocks to append, each with its header; `None` if the ring holds anything that is no event.
fn blocks(
    header: &FragmentHeader,
    ring: &Ring,
    assembly: &Assembly,
    last_ns: i64,
) -> Option<Vec<Vec<u8>>> {
    let first = ring.slots.iter().find(|slot| slot.slot == 0)?;
    let mut blocks = Vec::new();
    // The bytes of slot 0 that reach its head share a block with what follows them.
    let (mut last_from, mut last_body) = (first.head, Vec::new());
    for (index, parts) in &assembly.tail {
        let slot = ring.slots.get(*index)?;
        for part in parts {
            let bytes = slot.bytes.get(part.start..part.end)?;
            if !bytes
                .split(|byte| *byte == b'\n')
                .all(|line| line.is_empty() || parse(line).is_ok())
            {
                return None;
            }
            let from = slot.from + part.start as u64;
            if slot.slot == 0 && part.end == slot.bytes.len() {
                (last_from, last_body) = (from, bytes.to_vec());
            } else {
                blocks.push(block(header.pid, (slot.slot, slot.generation), from, bytes));
            }
        }
    }
    if !assembly.beyond_ring {
        last_body.extend_from_slice(&assembly.open_lines);
        let end = serde_json::json!({ "monotonic_ns": last_ns.max(0) });
        serde_json::to_writer(&mut last_body, &Metadata::new(header.pid, END_RECORD, end)).ok()?;
        last_body.push(b'\n');
    }
    if !last_body.is_empty() {
        blocks.push(block(
            header.pid,
            (0, first.generation),
            last_from,
            &last_body,
        ));
    }
    Some(blocks)
}

fn block(pid: u32, (slot, generation): (u32, u32), from: u64, bytes: &[u8]) -> Vec<u8> {
    let sum = block_sum(slot, generation, from, bytes);
    let mut block = Vec::with_capacity(bytes.len() + 160);
    BlockHeader {
        slot,
        generation,
        from,
        len: bytes.len() as u64,
        sum,
    }
    .write(pid, &mut block);
    block.extend_from_slice(bytes);
    block
}

fn append(fragment: &Fragment, blocks: &[Vec<u8>]) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let mut file = File::options()
        .append(true)
        .custom_flags(flags)
        .open(&fragment.path)?;
    let metadata = file.metadata()?;
    if !is_ours(&metadata) || FileId::of(&metadata) != fragment.id {
        return Err(io::Error::other("not the fragment that was read"));
    }
    // Whoever holds the lock writes the same; holding it spares the reader the repetition.
    let _ = file.try_lock();
    if fragment
        .content
        .bytes()
        .last()
        .is_some_and(|byte| *byte != b'\n')
    {
        file.write_all(b"\n")?;
    }
    for block in blocks {
        file.write_all(block)?;
    }
    file.sync_all()
}

fn is_ours(metadata: &fs::Metadata) -> bool {
    // The owner of our own /proc entry is our effective user.
    let user = fs::metadata("/proc/self").map(|own| own.uid());
    metadata.is_file() && metadata.nlink() == 1 && user.is_ok_and(|user| user == metadata.uid())
}

fn remove_ring(path: &Path, id: FileId) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if !is_ours(&metadata) || FileId::of(&metadata) != id {
        return Err(io::Error::other("not the ring that was read"));
    }
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::{Piece, split};
    use crate::fragment::RingFile;
    use crate::ring::{OpenSpan, Slot};
    use crate::sample::header;
    use std::path::PathBuf;

    const LINE: &str =
        "{\"ph\":\"i\",\"pid\":7,\"tid\":7,\"ts\":5.000,\"s\":\"t\",\"name\":\"a\",\"cat\":\"\"}\n";

    fn dead_header() -> FragmentHeader {
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("true runs");
        let pid = child.id();
        child.wait().expect("true ends");
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .unwrap()
            .trim()
            .to_owned();
        let pid_ns = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        FragmentHeader {
            boot_id,
            pid_ns,
            ..header(pid)
        }
    }

    /// A fragment with a header only, and a ring that holds `text` in slots 0 and 1 and an open span.
    fn recording(dir: &Path, header: &FragmentHeader, text: &str) -> Recording {
        let path = dir.join(format!("trace.{}.jsonl", header.pid));
        if !path.exists() {
            let record = Metadata::new(header.pid, "sa_fragment", header.clone());
            fs::write(&path, serde_json::to_string(&record).unwrap() + "\n").unwrap();
        }
        let ring_path = path.with_extension("ring");
        fs::write(&ring_path, "ring").unwrap();
        let id = FileId::of(&fs::metadata(&ring_path).unwrap());
        let label = r#""name":"step","cat":"w""#.to_owned();
        let open = vec![OpenSpan {
            tid: header.pid,
            start_ns: 4000,
            label,
        }];
        let slot = |slot| Slot {
            slot,
            head: text.len() as u64,
            bytes: text.into(),
            open: open.clone(),
            ..Slot::default()
        };
        let nonce = u64::from_str_radix(&header.nonce, 16).unwrap();
        let ring = Ring {
            nonce,
            pid: header.pid,
            slots: vec![slot(0), slot(1)],
            ..Ring::default()
        };
        let fragment = Fragment::open(&path, false).unwrap();
        Recording::new(
            vec![fragment],
            Some(ring_path),
            Some(RingFile::Read(ring, id)),
        )
    }

    fn settle_in(dir: &Path, header: &FragmentHeader, text: &str) -> (bool, PathBuf) {
        let recording = recording(dir, header, text);
        let pieces = vec![split(recording.fragments[0].content.bytes())];
        let assembly = recording.assemble(&pieces);
        (
            settle(&recording, &assembly, 9),
            recording.fragments[0].path.clone(),
        )
    }

    #[test]
    fn a_dead_process_is_settled_once() {
        let dir = tempfile::tempdir().unwrap();
        let header = dead_header();
        let (settled, path) = settle_in(dir.path(), &header, LINE);
        assert!(settled && !path.with_extension("ring").exists());
        let once = fs::read(&path).unwrap();
        let complete = split(&once)
            .iter()
            .filter(|(_, piece)| matches!(piece, Piece::Complete(_)))
            .count();
        assert_eq!(complete, 2);
        let text = String::from_utf8(once.clone()).unwrap();
        assert_eq!(text.matches(LINE).count(), 2);
        assert_eq!(text.matches(r#""unfinished":true"#).count(), 2);
        assert!(
            text.ends_with("\"name\":\"sa_end\",\"args\":{\"monotonic_ns\":9}}\n"),
            "{text}"
        );
        let (again, _) = settle_in(dir.path(), &header, LINE);
        assert!(again, "a ring that came back is removed");
        assert_eq!(
            fs::read(&path).unwrap(),
            once,
            "and nothing is written twice"
        );
    }

    #[test]
    fn the_living_foreign_and_damaged_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dead_header();
        let own_stat = fs::read_to_string("/proc/self/stat").unwrap();
        let started = own_stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_ascii_whitespace()
            .nth(19)
            .unwrap()
            .to_owned();
        let alive = FragmentHeader {
            pid: std::process::id(),
            start_time: started.parse().unwrap(),
            ..dead.clone()
        };
        let cases = [
            (alive, LINE),
            (
                FragmentHeader {
                    boot_id: "other".into(),
                    ..dead.clone()
                },
                LINE,
            ),
            (
                FragmentHeader {
                    pid_ns: 1,
                    ..dead.clone()
                },
                LINE,
            ),
            (dead, "garbage\n"),
        ];
        for (header, text) in cases {
            let dir = tempfile::tempdir_in(dir.path()).unwrap();
            let (settled, path) = settle_in(dir.path(), &header, text);
            assert!(
                !settled && path.with_extension("ring").exists(),
                "{header:?}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
        }
    }

    #[test]
    fn a_hard_link_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let header = dead_header();
        let recording = recording(dir.path(), &header, LINE);
        let path = recording.fragments[0].path.clone();
        fs::hard_link(&path, dir.path().join("other")).unwrap();
        let assembly = recording.assemble(&[split(recording.fragments[0].content.bytes())]);
        assert!(!settle(&recording, &assembly, 9));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    }
}
