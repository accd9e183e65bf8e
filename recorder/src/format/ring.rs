//! Layout of the ring file (FORMAT.md §3): offsets and sizes in bytes.

/// First bytes of a ring file.
pub const MAGIC: [u8; 8] = *b"SAPRING1";
/// Offset of the u32 version.
pub const VERSION_AT: usize = 8;
/// Offset of the u32 page size.
pub const PAGE_BYTES_AT: usize = 12;
/// Offset of the u64 nonce.
pub const NONCE_AT: usize = 16;
/// Offset of the u32 pid.
pub const PID_AT: usize = 24;
/// Offset of the u32 number of slots in use.
pub const SLOTS_USED_AT: usize = 28;
/// Offset of the u32 offset of the site table.
pub const SITES_OFFSET_AT: usize = 32;
/// Offset of the u32 size of the site table.
pub const SITES_BYTES_AT: usize = 36;
/// Offset of the u32 count of bytes used of the site table.
pub const SITES_USED_AT: usize = 40;
/// Offset of the u32 offset of the lane table.
pub const LANES_OFFSET_AT: usize = 44;
/// Offset of the u32 number of entries in the lane table.
pub const LANES_COUNT_AT: usize = 48;
/// Offset of the u32 offset of the slot directory.
pub const DIRECTORY_OFFSET_AT: usize = 52;
/// Offset of the u32 number of entries the slot directory can hold.
pub const DIRECTORY_COUNT_AT: usize = 56;

/// Size of a slot directory entry: u64 offset, u32 ring size, u32 reserved.
pub const DIRECTORY_ENTRY_BYTES: usize = 16;

/// Offset in a slot of the u64 `head << 8 | depth`.
pub const SLOT_STATE_AT: usize = 0;
/// Offset in a slot of the u64 flushed position.
pub const SLOT_FLUSHED_AT: usize = 8;
/// Offset in a slot of the u32 tid.
pub const SLOT_TID_AT: usize = 16;
/// Offset in a slot of the u32 generation.
pub const SLOT_GENERATION_AT: usize = 20;
/// Offset in a slot of the open-span stack.
pub const SLOT_STACK_AT: usize = 64;
/// Least size of a slot's control part; the page size where that is larger.
pub const SLOT_CONTROL_BYTES: usize = 4096;

/// Entries of the open-span stack.
pub const STACK_DEPTH: usize = 32;
/// Size of an entry of the open-span stack and of the lane table.
pub const OPEN_ENTRY_BYTES: usize = 64;
/// Offset in an entry of the u64 start in ns.
pub const OPEN_START_AT: usize = 0;
/// Offset in an entry of the u32 site.
pub const OPEN_SITE_AT: usize = 8;
/// Offset in an entry of the u32 length of the name.
pub const OPEN_NAME_LEN_AT: usize = 12;
/// Offset of the name in a stack entry.
pub const STACK_NAME_AT: usize = 16;
/// Most name bytes in a stack entry.
pub const STACK_NAME_BYTES: usize = 48;
/// Offset in a lane entry of the u64 `closes_at`.
pub const LANE_CLOSES_AT: usize = 16;
/// Offset in a lane entry of the u32 closing slot.
pub const LANE_CLOSING_SLOT_AT: usize = 24;
/// Offset of the name in a lane entry.
pub const LANE_NAME_AT: usize = 32;
/// Most name bytes in a lane entry.
pub const LANE_NAME_BYTES: usize = 32;
