//! What lies in a buffer of MSPTI: records behind one another, of 4-byte fields and 8-byte fields without a gap between them.

use crate::types::*;
use std::mem::{offset_of, size_of};

/// Declares records: their fields at the offsets that the vendor's header gives them, and their sizes, which are multiples of 8.
macro_rules! records {
    ($($(#[$doc:meta])* $name:ident = $kind:path, $size:literal bytes { $($(#[$note:meta])* $field:ident: $type:ty = $offset:literal,)* [$padding:literal] })*) => {
        $(
            $(#[$doc])*
            #[repr(C, packed)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// Which kind of record it is.
                pub kind: msptiActivityKind,
                $($(#[$note])* pub $field: $type,)*
                /// Nothing.
                pub padding: [u8; $padding],
            }

            const _: () = assert!(size_of::<$name>() == $size);
            $(const _: () = assert!(offset_of!($name, $field) == $offset);)*

            impl $name {
                /// The kind of such records.
                pub const KIND: msptiActivityKind = $kind;

                /// The record at the start of `bytes`, if it is one and all of it is there.
                pub fn read(bytes: &[u8]) -> Option<Self> {
                    if kind(bytes) != Some(Self::KIND) || bytes.len() < size_of::<Self>() {
                        return None;
                    }
                    // SAFETY: as many bytes are there, and each pattern of them is a value.
                    Some(unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
                }
            }
        )*
    };
}

records! {
    /// A kernel that has run.
    msptiActivityKernel = MSPTI_ACTIVITY_KIND_KERNEL, 56 bytes {
        /// When it began, in ns since 1970; 0 if that is not known.
        start: u64 = 4,
        /// When it ended.
        end: u64 = 12,
        /// The device.
        device_id: u32 = 20,
        /// The stream; in a replay perhaps one of the graph's own.
        stream_id: u32 = 24,
        /// That of the launch. In a replay the one of the capture, so it comes again with each replay.
        correlation_id: u64 = 28,
        /// Its type. It stays valid, as all texts of records do.
        type_name: *const c_char = 36,
        /// Its name.
        name: *const c_char = 44,
        [4]
    }
    /// A collective that has run.
    msptiActivityCommunication = MSPTI_ACTIVITY_KIND_COMMUNICATION, 72 bytes {
        /// The type of its elements.
        data_type: c_int = 4,
        /// How many elements.
        count: u64 = 8,
        /// The device.
        device_id: u32 = 16,
        /// The stream of its last task.
        stream_id: u32 = 20,
        /// When it began, in ns since 1970.
        start: u64 = 24,
        /// When it ended.
        end: u64 = 32,
        /// The algorithm.
        algorithm: *const c_char = 40,
        /// Its name.
        name: *const c_char = 48,
        /// The communicator's.
        comm_name: *const c_char = 56,
        /// That of the call. In a replay the one of the capture, so it comes again with each replay.
        correlation_id: u64 = 64,
        [0]
    }
}

/// The kind of the record at the start of `bytes`, if that much is there.
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

    /// Puts a record so many bytes behind an aligned place, and calls with its bytes.
    fn with_record<R>(gap: usize, act: impl FnOnce(&[u8]) -> R) -> R {
        let mut place = [MaybeUninit::<u64>::zeroed(); 8];
        let at = place
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_add(gap)
            .cast::<msptiActivityKernel>();
        // SAFETY: 64 bytes are there, and at most 63 are reached.
        unsafe { at.write_unaligned(KERNEL) };
        // SAFETY: as above; all its bytes have values.
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
            // SAFETY: the name is a string of C that lives for ever.
            let name = unsafe { CStr::from_ptr(read.name) };
            assert_eq!(name, c"MatMulV2");
        }
    }

    #[test]
    fn a_record_that_is_cut_short_or_of_another_kind_is_none() {
        with_record(0, |bytes| {
            for length in 0..bytes.len() {
                assert!(msptiActivityKernel::read(&bytes[..length]).is_none());
            }
            assert!(msptiActivityCommunication::read(bytes).is_none());
        });
        assert_eq!((kind(&[2, 0, 0]), kind(&[])), (None, None));
    }
}
