//! Structs that cross the calls, laid out as in C on x86-64 and aarch64.

use super::*;

/// The front of any record of MSPTI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct msptiActivity {
    /// Which kind of record it is.
    pub kind: msptiActivityKind,
}

/// An attribute of a launch. What `value` holds depends on `id`; narrower types lie at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtLaunchKernelAttr {
    /// Which attribute.
    pub id: aclrtLaunchKernelAttrId,
    /// Its value.
    pub value: [u32; 4],
}

/// The attributes of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtLaunchKernelCfg {
    /// `num_attrs` attributes.
    pub attrs: *mut aclrtLaunchKernelAttr,
    /// How many.
    pub num_attrs: usize,
}

/// Where an argument's address and its data lie among the arguments of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtPlaceHolderInfo {
    /// Offset of the address, in bytes.
    pub addr_offset: u32,
    /// Offset of the data, in bytes.
    pub data_offset: u32,
}

/// An option of loading a binary.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtBinaryLoadOption {
    /// Which option.
    pub kind: c_int,
    /// Its value.
    pub value: [u32; 4],
}

/// The options of loading a binary.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtBinaryLoadOptions {
    /// `num_opt` options.
    pub options: *mut aclrtBinaryLoadOption,
    /// How many.
    pub num_opt: usize,
}

/// A binary in the host's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rtDevBinary_t {
    /// What it is for.
    pub magic: u32,
    /// Its version.
    pub version: u32,
    /// Where it is.
    pub data: *const c_void,
    /// Its size in bytes.
    pub length: u64,
}

/// The value of a stream's attribute; narrower types lie at its start.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtStreamAttrValue {
    /// The bytes, in words.
    pub words: [u32; 4],
}

/// What a communicator's processes find each other by.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HcclRootInfo {
    /// Only HCCL knows.
    pub internal: [c_char; 4108],
}

/// One of the transfers of `HcclBatchSendRecv`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HcclSendRecvItem {
    /// Sends or receives.
    pub send_recv_type: HcclSendRecvType,
    /// `count` elements.
    pub buf: *mut c_void,
    /// How many elements.
    pub count: u64,
    /// Their type.
    pub data_type: HcclDataType,
    /// The rank at the other end.
    pub remote_rank: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// The sizes were compiled from the vendor's public headers on x86-64; aarch64 has the same rules.
    #[test]
    fn structs_have_the_sizes_of_the_vendors_headers() {
        assert_eq!(size_of::<aclrtLaunchKernelAttr>(), 20);
        assert_eq!(size_of::<aclrtLaunchKernelCfg>(), 16);
        assert_eq!(size_of::<aclrtPlaceHolderInfo>(), 8);
        assert_eq!(size_of::<aclrtBinaryLoadOption>(), 20);
        assert_eq!(size_of::<aclrtBinaryLoadOptions>(), 16);
        assert_eq!(size_of::<aclrtStreamAttrValue>(), 16);
        assert_eq!(size_of::<HcclRootInfo>(), 4108);
        assert_eq!(size_of::<HcclSendRecvItem>(), 32);
    }

    #[test]
    fn fields_lie_where_the_vendors_headers_put_them() {
        assert_eq!(offset_of!(rtDevBinary_t, data), 8);
        assert_eq!(offset_of!(rtDevBinary_t, length), 16);
        assert_eq!(align_of::<aclrtLaunchKernelAttr>(), 4);
        assert_eq!(offset_of!(aclrtLaunchKernelAttr, value), 4);
        assert_eq!(offset_of!(aclrtPlaceHolderInfo, data_offset), 4);
        assert_eq!(offset_of!(aclrtLaunchKernelCfg, num_attrs), 8);
        assert_eq!(align_of::<aclrtStreamAttrValue>(), 8);
        assert_eq!(offset_of!(HcclSendRecvItem, buf), 8);
        assert_eq!(offset_of!(HcclSendRecvItem, remote_rank), 28);
    }
}
