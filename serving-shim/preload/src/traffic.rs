//! The number of bytes that a call moves.

use ascend_sys::types::*;

/// Maximum number of items in a batch that is read.
const MAX_ITEMS: u32 = 4096;
/// Maximum number of sizes in a batch of copies that is read. A swap of a KV cache has one size for each block and layer.
const MAX_SIZES: usize = 1 << 16;

/// Returns the size in bytes of `count` elements of a collective's data type, or 0 for an unknown type.
pub(crate) fn bytes(count: u64, data_type: HcclDataType) -> u64 {
    let each = hccl_element_bytes(data_type).unwrap_or(0);
    count.saturating_mul(each as u64)
}

/// Returns the number of bytes that all items of a batch of sends and receives move together, or 0 for a batch that is too long.
pub(crate) fn bytes_of_items(items: *const HcclSendRecvItem, count: u32) -> u64 {
    if items.is_null() || count > MAX_ITEMS {
        return 0;
    }
    // SAFETY: the host passes `count` items to the real function, which reads them too.
    let items = unsafe { std::slice::from_raw_parts(items, count as usize) };
    items.iter().fold(0, |sum, item| {
        sum.saturating_add(bytes(item.count, item.data_type))
    })
}

/// Returns the total number of bytes of a batch of copies, or 0 for a batch that is too long to add up.
pub(crate) fn total_bytes(sizes: *const usize, count: usize) -> u64 {
    if sizes.is_null() || count > MAX_SIZES {
        return 0;
    }
    (0..count).fold(0, |sum: u64, index| {
        // SAFETY: the host passes `count` sizes to the real function, which reads them too. They may be misaligned.
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
