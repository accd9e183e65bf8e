//! The contents of an MSPTI buffer: consecutive records, each with 4-byte and 8-byte fields without gaps.

use crate::types::*;
use std::mem::{offset_of, size_of};

/// Declares records. The fields are at the offsets in the vendor's header, and the sizes are multiples of 8.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $kind:path, $size:literal bytes { $($(#[$note:meta])* $field:ident: $type:ty = $offset:literal,)* [$padding:literal] })*) => {
        $(
            $(#[$doc])*
            #[repr(C, packed)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// The kind of the record.
                pub kind: msptiActivityKind,
                $($(#[$note])* pub $field: $type,)*
                /// Unused bytes.
                pub padding: [u8; $padding],
            }

            const _: () = assert!(size_of::<$name>() == $size);
            $(const _: () = assert!(offset_of!($name, $field) == $offset);)*

            impl $name {
                /// The kind of these records.
                pub const KIND: msptiActivityKind = $kind;

                /// Copies the MSPTI record at the start of `bytes`, or returns `None` if it has another kind or is incomplete.
                pub fn read(bytes: &[u8]) -> Option<Self> {
                    if kind(bytes) != Some(Self::KIND) || bytes.len() < size_of::<Self>() {
                        return None;
                    }
                    // SAFETY: the length was checked, and every bit pattern is valid.
                    Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
                }
            }
        )*
    };
}

records! {
    /// A finished kernel.
    msptiActivityKernel = MSPTI_ACTIVITY_KIND_KERNEL, 56 bytes {
        /// Start time in ns since 1970, or 0 if it is unknown.
        start: u64 = 4,
        /// End time in ns since 1970.
        end: u64 = 12,
        /// The device.
        device_id: u32 = 20,
        /// The stream. In a replay it may be one of the graph's internal streams.
        stream_id: u32 = 24,
        /// The correlation id of the launch. In a replay it is the id from the capture, so every replay has the same id.
        correlation_id: u64 = 28,
        /// The kernel's type. Like all texts in records, it stays valid.
        type_name: *const c_char = 36,
        /// The kernel's name.
        name: *const c_char = 44,
        [4]
    }
    /// A finished collective.
    msptiActivityCommunication = MSPTI_ACTIVITY_KIND_COMMUNICATION, 72 bytes {
        /// The type of the elements.
        data_type: c_int = 4,
        /// The number of elements.
        count: u64 = 8,
        /// The device.
        device_id: u32 = 16,
        /// The stream of the last task.
        stream_id: u32 = 20,
        /// Start time in ns since 1970.
        start: u64 = 24,
        /// End time in ns since 1970.
        end: u64 = 32,
        /// The algorithm.
        algorithm: *const c_char = 40,
        /// The collective's name.
        name: *const c_char = 48,
        /// The communicator's name.
        comm_name: *const c_char = 56,
        /// The correlation id of the call. In a replay it is the id from the capture, so every replay has the same id.
        correlation_id: u64 = 64,
        [0]
    }
}

/// Returns the kind of the MSPTI record at the start of `bytes`, or `None` if there are too few bytes.
pub fn kind(bytes: &[u8]) -> Option<msptiActivityKind> {
    let kind = bytes.first_chunk()?;
    Some(msptiActivityKind::from_ne_bytes(*kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::mem::MaybeUninit;

    const KERNEL: msptiActivityKernel = msptiActivityKernel {
        kind: MSPTI_ACTIVITY_KIND_KERNEL,
        start: 0x0102_0304_0506_0708,
        end: u64::MAX,
        device_id: 3,
        stream_id: 9,
        correlation_id: 77,
        type_name: std::ptr::null(),
        name: c"MatMulV2".as_ptr(),
        padding: [0xff; 4],
    };

    /// Calls `act` with the bytes of a record that is `gap` bytes after an aligned address.
    fn with_record<R>(gap: usize, act: impl FnOnce(&[u8]) -> R) -> R {
        let mut memory = [MaybeUninit::<u64>::zeroed(); 8];
        let at = memory
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_add(gap)
            .cast::<msptiActivityKernel>();
        // SAFETY: the memory has 64 bytes, and at most 63 are used.
        unsafe { at.write_unaligned(KERNEL) };
        // SAFETY: as above, and all bytes are initialized.
        act(unsafe { std::slice::from_raw_parts(at.cast(), size_of::<msptiActivityKernel>()) })
    }

    #[test]
    fn a_record_is_read_at_any_alignment() {
        for gap in 0..8 {
            let read = with_record(gap, msptiActivityKernel::read).unwrap();
            assert_eq!(
                ({ read.start }, { read.end }),
                (0x0102_0304_0506_0708, u64::MAX)
            );
            assert_eq!(({ read.device_id }, { read.stream_id }), (3, 9));
            assert_eq!({ read.correlation_id }, 77);
            assert!({ read.type_name }.is_null());
            // SAFETY: the name is a static C string.
            let name = unsafe { CStr::from_ptr(read.name) };
            assert_eq!(name, c"MatMulV2");
        }
    }

    #[test]
    fn incomplete_records_and_records_of_another_kind_are_not_read() {
        with_record(0, |bytes| {
            for length in 0..bytes.len() {
                assert!(msptiActivityKernel::read(&bytes[..length]).is_none());
            }
            assert!(msptiActivityCommunication::read(bytes).is_none());
        });
        assert_eq!((kind(&[2, 0, 0]), kind(&[])), (None, None));
    }
}
