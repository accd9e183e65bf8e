//! How many bytes a call moves.

use ascend_sys::types::*;

/// A batch of more items is not looked into.
const MAX_ITEMS: u32 = 4096;
/// The same for the sizes of copies. A swap of a KV cache has one for each block and layer.
const MAX_SIZES: usize = 1 << 16;

/// The bytes of `count` elements; 0 for a type not known here.
pub(crate) fn bytes(count: u64, data_type: HcclDataType) -> u64 {
    let each = hccl_element_bytes(data_type).unwrap_or(0);
    count.saturating_mul(each as u64)
}

/// The bytes that the items of a batch send and receive together.
pub(crate) fn bytes_of_items(items: *const HcclSendRecvItem, count: u32) -> u64 {
    if items.is_null() || count > MAX_ITEMS {
        return 0;
    }
    // SAFETY: the host hands `count` items to the real function, which reads them too.
    let items = unsafe { std::slice::from_raw_parts(items, count as usize) };
    items.iter().fold(0, |sum, item| {
        sum.saturating_add(bytes(item.count, item.data_type))
    })
}

/// The bytes of a batch of copies, from the list of their sizes; 0 where it is longer than anybody should wait for.
pub(crate) fn sum(sizes: *const usize, count: usize) -> u64 {
    if sizes.is_null() || count > MAX_SIZES {
        return 0;
    }
    (0..count).fold(0, |sum: u64, index| {
        // SAFETY: the host hands `count` sizes to the real function, which reads them too; it may have misaligned them.
        let size = unsafe { sizes.wrapping_add(index).read_unaligned() };
        sum.saturating_add(size as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_table() {
        for (count, data_type, expected) in [
            (3, HCCL_DATA_TYPE_INT8, 3),
            (3, HCCL_DATA_TYPE_BFP16, 6),
            (3, HCCL_DATA_TYPE_FP32, 12),
            (3, HCCL_DATA_TYPE_UINT64, 24),
            (3, HCCL_DATA_TYPE_INT128, 48),
            (3, 999, 0),
            (u64::MAX, HCCL_DATA_TYPE_FP64, u64::MAX),
        ] {
            assert_eq!(bytes(count, data_type), expected, "{data_type}");
        }
    }
}
