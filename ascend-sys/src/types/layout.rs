//! Structs that are passed to the functions, with the C layout of x86-64 and aarch64.

use super::*;

/// The common beginning of all MSPTI records.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct msptiActivity {
    /// The kind of the record.
    pub kind: msptiActivityKind,
}

/// An attribute of a launch. The type of `value` depends on `id`. Smaller types are at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtLaunchKernelAttr {
    /// The attribute.
    pub id: aclrtLaunchKernelAttrId,
    /// The attribute's value.
    pub value: [u32; 4],
}

/// The attributes of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtLaunchKernelCfg {
    /// Pointer to `num_attrs` attributes.
    pub attrs: *mut aclrtLaunchKernelAttr,
    /// Number of attributes.
    pub num_attrs: usize,
}

/// The positions of an argument's address and data within the arguments of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtPlaceHolderInfo {
    /// Offset of the address, in bytes.
    pub addr_offset: u32,
    /// Offset of the data, in bytes.
    pub data_offset: u32,
}

/// An option for loading a binary.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtBinaryLoadOption {
    /// The option.
    pub kind: c_int,
    /// The option's value.
    pub value: [u32; 4],
}

/// The options for loading a binary.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct aclrtBinaryLoadOptions {
    /// Pointer to `num_opt` options.
    pub options: *mut aclrtBinaryLoadOption,
    /// Number of options.
    pub num_opt: usize,
}

/// A kernel binary in the host's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rtDevBinary_t {
    /// The kind of binary.
    pub magic: u32,
    /// The binary's version.
    pub version: u32,
    /// The binary's contents.
    pub data: *const c_void,
    /// Size in bytes.
    pub length: u64,
}

/// The value of a stream's attribute. Smaller types are at its start.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct aclrtStreamAttrValue {
    /// The value as 32-bit words.
    pub words: [u32; 4],
}

/// The data with which the processes of a communicator find each other.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HcclRootInfo {
    /// Opaque data of HCCL.
    pub internal: [c_char; 4108],
}

/// One of the transfers of `HcclBatchSendRecv`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HcclSendRecvItem {
    /// The direction: send or receive.
    pub send_recv_type: HcclSendRecvType,
    /// Pointer to `count` elements.
    pub buf: *mut c_void,
    /// Number of elements.
    pub count: u64,
    /// Type of the elements.
    pub data_type: HcclDataType,
    /// The rank at the other end.
    pub remote_rank: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{align_of, offset_of, size_of};

    /// The expected sizes come from compiling the vendor's public headers on x86-64. The rules are the same on aarch64.
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
    fn fields_have_the_offsets_of_the_vendors_headers() {
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
