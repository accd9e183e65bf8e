//! The ring of a process: a file next to the fragment that survives a kill, or memory if no file is
//! possible. It provides the slots.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::ring::chain::{Chain, Link};
use crate::ring::counters::Counters;
use crate::ring::open_entry::{EntryName, OpenEntry};
use crate::ring::pending::Pending;
use crate::ring::slot::Slot;
use crate::ring::text_area::TextArea;
use crate::sys::fd::{self, Numbered};
use crate::sys::map::Map;
use crate::sys::memory::{collect_or_empty, out_of_memory, try_box};
use crate::sys::{page_bytes, wait};
use crate::text::site::Site;
use sa_format::RingKind;
use sa_format::loss::Cause;
use sa_format::ring as layout;

/// Offset in the header of the directory of the lanes' text areas.
const LANE_TEXTS_AT: usize = 3072;
const SITES_BYTES: usize = 32 << 10;
const LANES: usize = 1024;
/// Number of lanes in each chunk that is added when the lane table is full. A few more fit into its
/// last page.
const MORE_LANES: usize = 1024;
const MAX_SLOTS: usize = 2048;
/// Offset of the count table, in the rest of the header's page.
const COUNTS_AT: usize = 1024;
/// Number of entries in the count table: one for each cause by its number. No cause has number 0.
const COUNTS: usize = Cause::ALL.len() + 1;
/// Ring bytes of the process's own slot, and of threads once there are many.
const SMALL: usize = 64 << 10;
/// Ring bytes of the first threads.
const LARGE: usize = 256 << 10;
/// Number of threads that get large rings.
const LARGE_SLOTS: usize = 32;

/// The ring of this process.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) kind: RingKind,
    /// Distinguishes the rings in a process's life. Site numbers are valid within one epoch.
    pub(crate) epoch: u32,
    pub(crate) file: Numbered,
    header: Map,
    growth: Mutex<Growth>,
    /// True if the last attempt to lock `growth` timed out.
    is_stuck: AtomicBool,
    slots: Box<[AtomicPtr<Slot>]>,
    used: AtomicU32,
    /// Text areas, each for a group of lanes, created when the first lane of the group is used.
    /// `None` if there was no room.
    lane_texts: Box<[OnceLock<Option<Map>>]>,
    /// Number of bits in a lane's index within its group.
    group_bits: u32,
    /// Entries and texts of the lanes beyond the table.
    more_lanes: Chain,
}

#[derive(Debug)]
struct Growth {
    /// Offset in the file of the next slot.
    end: usize,
    /// Number of bytes in use in the site table.
    sites: usize,
    /// Slots whose thread has ended.
    free: Vec<&'static Slot>,
}

/// Offsets of the parts at the head of the file.
const SITES_AT: usize = layout::SLOT_CONTROL_BYTES;
const LANES_AT: usize = SITES_AT + SITES_BYTES;
const DIRECTORY_AT: usize = LANES_AT + LANES * layout::OPEN_ENTRY_BYTES;
const LOSSES_AT: usize = DIRECTORY_AT + MAX_SLOTS * layout::DIRECTORY_ENTRY_BYTES;
const HEAD_END: usize = LOSSES_AT + MAX_SLOTS * layout::LOSS_ENTRY_BYTES;

impl Ring {
    /// Creates a ring in a new, empty file: its header, its tables, and slot 0, which belongs to
    /// the process instead of a thread. `nonce` and `pid` identify the recorder to readers.
    pub(crate) fn new(
        file: OwnedFd,
        kind: RingKind,
        epoch: u32,
        nonce: u64,
        pid: u32,
    ) -> io::Result<Ring> {
        let end = HEAD_END.next_multiple_of(page_bytes());
        reserve(file.as_raw_fd(), kind, 0, end)?;
        let header = Map::shared(file.as_raw_fd(), 0, end)?;
        let id = fd::status(file.as_raw_fd())?.id;
        let slots = (0..MAX_SLOTS).map(|_| AtomicPtr::default());
        let lanes_of_group = lane_text_group_bytes() / layout::LANE_TEXT_BYTES;
        let lane_texts = (0..LANES / lanes_of_group).map(|_| OnceLock::new());
        let mut free = Vec::new(); // the end of a thread must not need memory
        let room = free.try_reserve_exact(MAX_SLOTS);
        room.map_err(|_| out_of_memory())?;
        let growth = Mutex::new(Growth {
            end,
            sites: 0,
            free,
        });
        let ring = Ring {
            kind,
            epoch,
            file: Numbered {
                number: fd::into_number(file),
                id,
            },
            header,
            growth,
            is_stuck: AtomicBool::new(false),
            slots: slots.collect(),
            used: AtomicU32::new(0),
            lane_texts: lane_texts.collect(),
            group_bits: lanes_of_group.trailing_zeros(),
            more_lanes: Chain::new(
                header,
                layout::MORE_LANES_AT,
                layout::MORE_LANES_SEED,
                lane_chunk_bytes(),
                layout::LANE_TEXT_BYTES,
            ),
        };
        ring.new_slot()?;
        ring.write_header(nonce, pid);
        Ok(ring)
    }

    fn write_header(&self, nonce: u64, pid: u32) {
        let small = |value: usize| u32::try_from(value).unwrap_or(0);
        for (at, value) in [
            (layout::VERSION_AT, sa_format::VERSION),
            (layout::PAGE_BYTES_AT, small(page_bytes())),
            (layout::PID_AT, pid),
            (layout::SITES_OFFSET_AT, small(SITES_AT)),
            (layout::SITES_BYTES_AT, small(SITES_BYTES)),
            (layout::LANES_OFFSET_AT, small(LANES_AT)),
            (layout::LANES_COUNT_AT, small(LANES)),
            (layout::DIRECTORY_OFFSET_AT, small(DIRECTORY_AT)),
            (layout::DIRECTORY_COUNT_AT, small(MAX_SLOTS)),
            (layout::LOSSES_OFFSET_AT, small(LOSSES_AT)),
            (layout::LOSSES_COUNT_AT, small(MAX_SLOTS)),
            (layout::COUNTS_OFFSET_AT, small(COUNTS_AT)),
            (layout::COUNTS_COUNT_AT, small(COUNTS)),
        ] {
            self.header.u32_at(at).store(value, Ordering::Relaxed);
        }
        let areas = layout::TextAreas {
            slot_bytes: small(slot_text_bytes()),
            lanes_offset: small(LANE_TEXTS_AT),
            lanes_count: small(self.lane_texts.len()),
            lane_bytes: small(layout::LANE_TEXT_BYTES),
        };
        self.header.copy_in(layout::TEXT_AREAS_AT, &areas.fields());
        let word = self.header.u64_at(layout::NONCE_AT);
        word.store(nonce, Ordering::Relaxed);
        let set = |at, sum| self.header.u32_at(at).store(sum, Ordering::Relaxed);
        let tables = std::array::from_fn(|at| self.header.byte(layout::LOSSES_OFFSET_AT + at));
        set(layout::TABLES_SUM_AT, layout::tables_sum(&tables));
        let mut header: [u8; layout::HEADER_BYTES] = std::array::from_fn(|at| self.header.byte(at));
        header[..layout::MAGIC.len()].copy_from_slice(&layout::MAGIC);
        set(layout::SUM_AT, layout::header_sum(&header));
        self.header.copy_in(0, &layout::MAGIC);
    }

    /// Returns the counts of losses that have no position in a slot, because they never became a
    /// line there. `pid` is the process id for the records that report them.
    pub(crate) fn counters(&self, pid: u32) -> Counters {
        Counters::new(self.header, COUNTS_AT, pid)
    }

    /// Returns a slot (the ring area of one thread) for the calling thread: one whose thread has
    /// ended, or a new one.
    ///
    /// # Errors
    ///
    /// Returns `ETIMEDOUT` if the file system hangs, `ENOMEM` if there is not enough memory, and
    /// other errors if there are too many threads.
    pub(crate) fn acquire_slot(&self) -> io::Result<&'static Slot> {
        let free = self.lock_growth()?.free.pop();
        free.map_or_else(|| self.new_slot(), Ok)
    }

    /// Makes the slot of a thread that ends available to other threads. Lines in it that are not
    /// flushed yet stay until they are flushed.
    pub(crate) fn release_slot(&self, slot: &'static Slot) {
        if let Ok(mut growth) = self.lock_growth() {
            growth.free.push(slot);
        }
    }

    fn new_slot(&self) -> io::Result<&'static Slot> {
        let mut growth = self.lock_growth()?;
        let index = self.used.load(Ordering::Relaxed) as usize;
        let place = self
            .slots
            .get(index)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EAGAIN))?;
        let is_large = (1..=LARGE_SLOTS).contains(&index);
        let least = if is_large { LARGE } else { SMALL };
        let bytes = least.next_multiple_of(page_bytes()).next_power_of_two();
        let control_bytes = layout::SLOT_CONTROL_BYTES.next_multiple_of(page_bytes());
        let (start, front_bytes) = (growth.end, slot_text_bytes() + control_bytes);
        let in_file = self.grow(start, front_bytes + bytes);
        let maps = match in_file {
            Ok(()) => map_slot(self.file.number, start, front_bytes, bytes)?,
            Err(error) if index == 0 => return Err(error), // slot 0 reports losses, so it must be in the file
            Err(_) => map_memory_slot(front_bytes, bytes)?, // no room in the file: this thread's tail is not kill-safe
        };
        let slot = try_box(Slot::new(
            u32::try_from(index).unwrap_or(0),
            in_file.is_ok() && self.kind == RingKind::File,
            bytes as u64,
            maps,
            Pending::new(self.header, LOSSES_AT + index * layout::LOSS_ENTRY_BYTES),
        ));
        let slot = Box::leak(slot.inspect_err(|_| {
            maps.0.unmap();
            maps.1.unmap();
        })?);
        if in_file.is_ok() {
            growth.end = start + front_bytes + bytes;
            let offset = start + slot_text_bytes();
            self.add_to_directory(DIRECTORY_AT, index, offset, bytes);
        }
        place.store(slot, Ordering::Release);
        let used = u32::try_from(index + 1).unwrap_or(0);
        self.used.store(used, Ordering::Release);
        Ok(slot)
    }

    fn grow(&self, offset: usize, bytes: usize) -> io::Result<()> {
        self.file.status()?;
        reserve(self.file.number, self.kind, offset, bytes)
    }

    /// Stores in a directory of the ring file where a part begins and how long it is, so that
    /// readers find it. The directory is at offset `directory`, and the part gets the entry with
    /// index `number`. The part must be ready for use.
    fn add_to_directory(&self, directory: usize, number: usize, offset: usize, bytes: usize) {
        let at = directory + number * layout::DIRECTORY_ENTRY_BYTES;
        let (map, seed) = (self.header, u32::try_from(number).unwrap_or(0));
        Link { map, at }.store(seed, offset, bytes);
    }

    /// Returns all slots (ring areas of one thread each) created so far. Slot 0 is the first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &'static Slot> {
        let used = self.used.load(Ordering::Acquire) as usize;
        self.slots[..used].iter().filter_map(|slot| {
            // SAFETY: a non-null pointer came from `Box::leak`.
            unsafe { slot.load(Ordering::Acquire).as_ref() }
        })
    }

    /// Returns slot 0, which belongs to the process itself instead of a thread.
    pub(crate) fn own_slot(&self) -> &'static Slot {
        self.slots()
            .next()
            .expect("slot 0 is created with the ring")
    }

    /// Adds the text of a call site to the ring's site table, and stores its number there in the
    /// site. Returns that number, or 0 if the site cannot be added.
    #[cold]
    #[inline(never)]
    fn add_site(&self, site: &'static Site) -> u32 {
        let number = self.store_site(site.text().plain).unwrap_or(0);
        site.set_number(self.epoch, number);
        number
    }

    /// Appends the text of a call site (its name and category) to the ring's site table. Returns
    /// the site's number, which is the offset in the table plus 1, or `None` if the text cannot be
    /// stored.
    fn store_site(&self, text: &[u8]) -> Option<u32> {
        let mut growth = self.lock_growth().ok()?;
        let len = u16::try_from(text.len()).ok()?;
        let at = growth.sites;
        let end = at + 2 + text.len();
        if end > SITES_BYTES {
            return None;
        }
        self.header.copy_in(SITES_AT + at, &len.to_ne_bytes());
        self.header.copy_in(SITES_AT + at + 2, text);
        growth.sites = end;
        u32::try_from(at + 1).ok()
    }

    /// Returns the number that identifies a span's call site in the ring's site table, and adds the
    /// site to the table if necessary. If the span has no site, or its site cannot have a number,
    /// stores the span's name in its `entry` and returns 0. `place` is the offset of the name in
    /// the entry and its maximum length.
    #[inline(always)]
    pub(crate) fn site_number(
        &self,
        name: EntryName<'_>,
        entry: OpenEntry,
        place: (usize, usize),
    ) -> u32 {
        let text = match name {
            EntryName::Text(text) => text,
            EntryName::Site(site) => {
                let number = site.number(self.epoch);
                match number.unwrap_or_else(|| self.add_site(site)) {
                    0 => site.name(),
                    number => return number,
                }
            }
        };
        entry.set_name(text, place);
        0
    }

    /// Returns the text of a call site (its name and category) from the ring's site table. `number`
    /// is a result of [`Ring::site_number`]. Returns `None` for 0.
    pub(crate) fn site_text(&self, number: u32) -> Option<Vec<u8>> {
        let at = SITES_AT + (number as usize).checked_sub(1)?;
        let len = u16::from_ne_bytes([self.header.byte(at), self.header.byte(at + 1)]);
        let text = (0..usize::from(len)).map(|offset| self.header.byte(at + 2 + offset));
        Some(collect_or_empty(text))
    }

    /// Returns the ring entry for the open span of a lane (a virtual thread for async spans), or
    /// `None` if the file has no such entry. Lanes are counted from 0.
    #[inline(always)]
    pub(crate) fn lane_entry(&self, lane: u32) -> Option<OpenEntry> {
        let at = LANES_AT + lane as usize * layout::OPEN_ENTRY_BYTES;
        if (lane as usize) < LANES {
            Some(OpenEntry::new(self.header, at))
        } else {
            self.more_lanes.entry(lane as usize - LANES)
        }
    }

    /// Returns the ring entry of a lane like [`Ring::lane_entry`]. Extends the file first if it has
    /// no such entry. Returns `None` if that is not possible.
    #[inline(always)]
    pub(crate) fn lane_entry_or_add(&self, lane: u32) -> Option<OpenEntry> {
        let entry = self.lane_entry(lane);
        entry.or_else(|| self.add_lane_entry(lane))
    }

    #[cold]
    #[inline(never)]
    fn add_lane_entry(&self, lane: u32) -> Option<OpenEntry> {
        self.extend(&self.more_lanes, lane as usize - LANES);
        self.lane_entry(lane)
    }

    /// Extends the ring file so that a chain has an entry with index `nth`. Does nothing if that
    /// was already tried, or if it is not possible.
    #[cold]
    pub(crate) fn extend(&self, chain: &Chain, nth: usize) {
        if chain.is_decided(nth) {
            return; // avoids a lock for each span when the disk is full
        }
        if let Ok(mut growth) = self.lock_growth() {
            chain.extend_to(nth, |bytes| self.add_part(&mut growth, bytes));
        }
    }

    /// Extends the ring file by `bytes` bytes and maps them. Returns the mapping and its offset in
    /// the file, or `None` if that fails.
    fn add_part(&self, growth: &mut Growth, bytes: usize) -> Option<(Map, usize)> {
        let offset = growth.end;
        self.grow(offset, bytes).ok()?;
        let map = Map::shared(self.file.number, offset, bytes).ok()?;
        growth.end = offset + bytes;
        Some((map, offset))
    }

    /// Returns the text area of a lane, which holds the name and args of its open span. Creates the
    /// area when it is first used. Returns `None` if the file has no room for it.
    #[inline(always)]
    pub(crate) fn lane_text(&self, lane: u32) -> Option<TextArea> {
        let group = lane as usize >> self.group_bits;
        let Some(texts) = self.lane_texts.get(group) else {
            return self.more_lanes.text((lane as usize).checked_sub(LANES)?);
        };
        let map = match texts.get() {
            Some(map) => *map,
            None => self.add_lane_texts(group, texts),
        }?;
        let within = lane as usize - (group << self.group_bits);
        let at = within * layout::LANE_TEXT_BYTES;
        Some(TextArea::new(map.part(at, layout::LANE_TEXT_BYTES)))
    }

    /// Creates the text areas for the group of lanes with index `group`, and stores their mapping
    /// in `texts`. If another thread was faster, returns that thread's mapping. Returns `None` if
    /// there is no room.
    #[cold]
    fn add_lane_texts(&self, group: usize, texts: &OnceLock<Option<Map>>) -> Option<Map> {
        let mut growth = self.lock_growth().ok()?;
        let add = || {
            let (map, offset) = self.add_part(&mut growth, lane_text_group_bytes())?;
            self.add_to_directory(LANE_TEXTS_AT, group, offset, lane_text_group_bytes());
            Some(map)
        };
        *texts.get_or_init(add) // under the lock, so no thread waits here
    }

    /// Locks the state that is needed to extend the ring file. Returns an error if another thread
    /// holds the lock for too long, because it hangs in the file system. Then one thread waits in
    /// vain, and the others do not wait until the lock is free again.
    fn lock_growth(&self) -> io::Result<MutexGuard<'_, Growth>> {
        let growth = if self.is_stuck.load(Ordering::Relaxed) {
            wait::try_lock(&self.growth)
        } else {
            wait::lock(&self.growth)
        };
        self.is_stuck.store(growth.is_none(), Ordering::Relaxed);
        growth.ok_or_else(|| io::Error::from_raw_os_error(libc::ETIMEDOUT))
    }

    /// Returns every lane for which the ring has an entry, with that entry.
    pub(crate) fn lane_entries(&self) -> impl Iterator<Item = (u32, OpenEntry)> {
        (0..u32::try_from(LANES + self.more_lanes.len()).unwrap_or(0))
            .filter_map(|lane| Some((lane, self.lane_entry(lane)?)))
    }
}

impl Drop for Ring {
    /// Unmaps the whole ring and closes its file. No thread is inside an event any more, and
    /// nothing else uses the recorder.
    fn drop(&mut self) {
        for place in &self.slots {
            let slot = place.swap(std::ptr::null_mut(), Ordering::AcqRel);
            if !slot.is_null() {
                // SAFETY: it came from `Box::leak`, and nothing uses it any more.
                unsafe { Box::from_raw(slot) }.unmap();
            }
        }
        for map in self.lane_texts.iter().filter_map(OnceLock::get).flatten() {
            map.unmap();
        }
        self.more_lanes.unmap();
        self.header.unmap();
        self.file.close();
    }
}

/// Reserves disk space for `bytes` bytes of the ring file from `offset` on, or makes the memory
/// that replaces the file that much longer.
fn reserve(file: RawFd, kind: RingKind, offset: usize, bytes: usize) -> io::Result<()> {
    match kind {
        RingKind::File => fd::allocate(file, offset, bytes),
        RingKind::Heap => fd::resize(file, offset + bytes),
    }
}

/// Returns the size in bytes of the text area that precedes each slot.
fn slot_text_bytes() -> usize {
    layout::SLOT_TEXT_BYTES.next_multiple_of(page_bytes())
}

/// Returns the size in bytes of the text areas for one group of lanes, which are created together.
fn lane_text_group_bytes() -> usize {
    (16 * layout::LANE_TEXT_BYTES).next_multiple_of(page_bytes())
}

/// Returns the size in bytes of a chunk with the entries and texts of further lanes. Such chunks
/// are added to the ring file when the lane table, which has a fixed size, is full.
fn lane_chunk_bytes() -> usize {
    let bytes = MORE_LANES * (layout::OPEN_ENTRY_BYTES + layout::LANE_TEXT_BYTES);
    (layout::CHUNK_HEAD_BYTES + bytes).next_multiple_of(page_bytes())
}

/// Maps a slot that begins at `offset` of a file. Returns two mappings: the front (the slot's text
/// area and control part, `front_bytes` long), and the `bytes` ring bytes that hold its lines.
fn map_slot(
    file: RawFd,
    offset: usize,
    front_bytes: usize,
    bytes: usize,
) -> io::Result<(Map, Map)> {
    let front = Map::shared(file, offset, front_bytes)?;
    let ring =
        Map::shared_twice(file, offset + front_bytes, bytes).inspect_err(|_| front.unmap())?;
    Ok((front, ring))
}

/// Creates a slot in anonymous memory, for a ring file without room. Returns the same two mappings
/// as [`map_slot`].
fn map_memory_slot(front_bytes: usize, bytes: usize) -> io::Result<(Map, Map)> {
    let memory = fd::memory_file()?;
    fd::resize(memory.as_raw_fd(), front_bytes + bytes)?;
    map_slot(memory.as_raw_fd(), 0, front_bytes, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;

    #[test]
    fn a_thread_waits_once_for_a_file_that_cannot_grow() {
        let file = fd::memory_file().unwrap();
        let ring = Ring::new(file, RingKind::Heap, 1, 1, 1).unwrap();
        let held = ring.growth.lock().unwrap();
        let start_ns = clock::now_ns();
        let lane = u32::try_from(LANES).unwrap();
        assert!((0..20).all(|_| ring.lane_entry_or_add(lane).is_none()));
        assert!(clock::now_ns() - start_ns < 10 * wait::PATIENCE_NS);
        drop(held);
        assert!(ring.lane_entry_or_add(lane).is_some());
        assert!(!ring.is_stuck.load(Ordering::Relaxed));
    }
}
