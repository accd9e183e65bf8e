//! Settles the fragment of a dead process: the contents of its ring are appended as blocks, and then the ring is removed (FORMAT.md §4).
//!
//! The process must have run in this boot and pid namespace, and must have been dead before its ring was copied. The files must be regular files that
//! we own and must not have changed since they were read. No link is followed, and after any failure the ring is left in place. Two programs that
//! settle at once append the same positions, and a reader uses each position once.

use crate::base::file_status::FileId;
use crate::base::folder::FileLocation;
use crate::event::line::parse;
use crate::fragment::assembly::{Assembly, StreamKey};
use crate::fragment::exit::Exit;
use crate::fragment::file::Fragment;
use crate::fragment::recording::Recording;
use crate::fragment::ring::Ring;
use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::process::geteuid;
use sa_format::{BlockHeader, End, FragmentHeader, Record, block_sum};
use std::io::{self, Write};

/// What is known about the end of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnd<'a> {
    /// Time of its last event.
    pub last_ns: i64,
    /// How its process ended, if some process recorded that.
    pub exit: Option<&'a Exit>,
    /// True if the process was running when the recording was read.
    pub is_running: bool,
}

/// Settles a recording if its process is dead. Returns true if the ring was removed.
pub fn settle(recording: &Recording, assembly: &Assembly, known: ProcessEnd<'_>) -> bool {
    let (Some(header), Some((ring, ring_id)), Some(ring_place), Some(fragment)) = (
        recording.header(),
        &recording.ring,
        &recording.ring_place,
        recording.fragments.last(),
    ) else {
        return false;
    };
    let is_whole = ring.bad_slots.is_empty() && ring.bad_texts.is_empty();
    if !is_whole || !recording.was_dead {
        return false;
    }
    let Some(blocks) = blocks(header, ring, assembly, known) else {
        return false;
    };
    let is_unchanged = || is_unchanged(ring_place, *ring_id);
    is_unchanged()
        && append(fragment, &blocks).is_ok()
        && is_unchanged()
        && ring_place.remove().is_ok()
}

/// Returns the blocks that settling appends, each with its header; `None` if the ring contains anything other than events.
pub fn blocks(
    header: &FragmentHeader,
    ring: &Ring,
    assembly: &Assembly,
    known: ProcessEnd<'_>,
) -> Option<Vec<Vec<u8>>> {
    let first = ring.slots.iter().find(|slot| slot.slot == 0)?;
    let mut blocks = Vec::new();
    // If bytes of slot 0 are left up to its head, they share a block with the records that follow.
    let (mut last_from, mut last_body) = (first.head, Vec::new());
    for (index, parts) in &assembly.tail {
        let slot = ring.slots.get(*index)?;
        for part in parts {
            let bytes = slot.bytes.get(part.start..part.end)?;
            let mut lines = bytes.split(|byte| *byte == b'\n');
            if !lines.all(|line| line.is_empty() || parse(line).is_ok()) {
                return None;
            }
            let from = slot.from + part.start as u64;
            if slot.slot == 0 && part.end == slot.bytes.len() {
                (last_from, last_body) = (from, bytes.to_vec());
            } else {
                blocks.push(block(header.pid, slot.stream(), from, bytes));
            }
        }
    }
    if !assembly.beyond_ring {
        last_body.extend_from_slice(&assembly.loss_lines);
        last_body.extend_from_slice(&assembly.open_lines);
        let open = memchr::memchr_iter(b'\n', &assembly.open_lines).count();
        last_body.extend(end_line(header.pid, known, Some(open)));
    }
    if !last_body.is_empty() {
        blocks.push(block(header.pid, first.stream(), last_from, &last_body));
    }
    Some(blocks)
}

/// Formats the last record of a fragment, which says how its process ended or that it was running. `open` is the number of spans that were open, if
/// known.
pub(crate) fn end_line(pid: u32, known: ProcessEnd<'_>, open: Option<usize>) -> Vec<u8> {
    let end = End {
        monotonic_ns: u64::try_from(known.last_ns).unwrap_or(0),
        open: open.map(|open| open as u64),
        exit: known.exit.cloned(),
        running: known.is_running,
    };
    end.line(pid)
}

/// Returns a block with its header.
pub(crate) fn block(pid: u32, (slot, generation): StreamKey, from: u64, bytes: &[u8]) -> Vec<u8> {
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
    let place = fragment.place().ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
    let mut file = place.open(flags, false)?;
    // Another holder of the lock appends the same data. The lock only avoids duplicates in the file, so failing to get it does no harm.
    let _ = file.try_lock();
    let (status, read) = (fstat(&file)?, fragment.content.bytes());
    let is_as_long = u64::try_from(status.st_size) == Ok(read.len() as u64);
    let is_as_read = is_as_long && FileId::from_stat(&status) == fragment.id;
    if !is_ours(&status) || !is_as_read {
        return Err(io::Error::other("not the fragment as it was read"));
    }
    if read.last().is_some_and(|byte| *byte != b'\n') {
        file.write_all(b"\n")?;
    }
    for block in blocks {
        file.write_all(block)?;
    }
    file.sync_all()
}

fn is_ours(status: &Stat) -> bool {
    let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
    is_file && status.st_nlink == 1 && status.st_uid == geteuid().as_raw()
}

/// Returns true if the ring's location still contains the file that was read.
fn is_unchanged(place: &FileLocation, id: FileId) -> bool {
    let status = place.status();
    status.is_ok_and(|status| is_ours(&status) && FileId::from_stat(&status) == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::blocks::split;
    use crate::fragment::file::RingFile;
    use crate::fragment::input::Input;
    use crate::fragment::ring::{OpenSpan, Slot};
    use crate::fragment::sample::header;
    use std::fs::{self, File};
    use std::path::Path;

    const LINE: &str =
        "{\"ph\":\"i\",\"pid\":7,\"tid\":7,\"ts\":5.000,\"s\":\"t\",\"name\":\"a\",\"cat\":\"\"}\n";

    /// Creates the fragment of a dead process, which has only a header, and a ring with `text` and an open span.
    fn recording(dir: &Path, text: &str) -> Recording {
        let path = dir.join("trace.7.jsonl");
        if !path.exists() {
            fs::write(&path, header(7).line(7)).unwrap();
        }
        let ring_path = path.with_extension("ring");
        fs::write(&ring_path, "ring").unwrap();
        let id = FileId::from_metadata(&fs::metadata(&ring_path).unwrap());
        let open = OpenSpan {
            label: r#""name":"step","cat":"w""#.to_owned(),
            ..OpenSpan::default()
        };
        let slot = Slot {
            head: text.len() as u64,
            bytes: text.into(),
            open: vec![open],
            ..Slot::default()
        };
        let ring = Ring {
            nonce: 7,
            pid: 7,
            slots: vec![slot],
            ..Ring::default()
        };
        let place = FileLocation::named(&path).unwrap();
        let fragment = Fragment::open(&Input::in_directory(place.clone())).unwrap();
        let ring_place = place.sibling(ring_path.file_name().unwrap());
        let ring = RingFile::Read(ring, id);
        Recording::new(vec![fragment], Some(ring_place), Some(ring), true)
    }

    /// Calls `change` on the files after they were read, and then settles. Returns if it settled, by how much the fragment grew, and if there still
    /// is a ring.
    fn settle_after(text: &str, change: impl Fn(&Path)) -> (bool, u64, bool) {
        let dir = tempfile::tempdir().unwrap();
        let recording = recording(dir.path(), text);
        let path = recording.fragments[0].path.clone();
        let assembly = recording.assemble(&[split(recording.fragments[0].content.bytes())]);
        change(&path);
        let len = fs::metadata(&path).unwrap().len();
        let settled = settle(&recording, &assembly, ProcessEnd::default());
        let grown = fs::metadata(&path).unwrap().len() - len;
        (settled, grown, path.with_extension("ring").exists())
    }

    #[test]
    fn what_is_damaged_or_changed_since_it_was_read_is_left_alone() {
        let (is_settled, grown, has_ring) = settle_after(LINE, |_| ());
        assert!(is_settled && grown > 0 && !has_ring);
        let damaged = settle_after("garbage\n", |_| ());
        assert_eq!(damaged, (false, 0, true), "a ring without whole lines");
        let ring = |path: &Path| path.with_extension("ring");
        type Change<'a> = &'a dyn Fn(&Path) -> io::Result<()>;
        let changes: [(&str, bool, Change<'_>); 4] = [
            ("a fragment that grew", true, &|path| {
                let mut file = File::options().append(true).open(path)?;
                file.write_all(LINE.as_bytes())
            }),
            ("no ring", false, &|path| fs::remove_file(ring(path))),
            ("another ring", true, &|path| {
                fs::write(path.with_extension("new"), "ring")?;
                fs::rename(path.with_extension("new"), ring(path))
            }),
            ("a fragment with another name", true, &|path| {
                fs::hard_link(path, path.with_extension("other"))
            }),
        ];
        for (what, has_ring, change) in changes {
            let found = settle_after(LINE, |path| change(path).unwrap());
            assert_eq!(found, (false, 0, has_ring), "{what}");
        }
    }
}
