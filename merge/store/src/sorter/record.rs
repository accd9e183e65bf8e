//! What is sorted.

/// Something of a fixed size that has an order.
pub trait Record: Ord + Copy + Send {
    /// Bytes of a stored record.
    const BYTES: usize;
    /// Appends these bytes.
    fn store(&self, out: &mut Vec<u8>);
    /// Reads what [`Record::store`] has written.
    fn load(bytes: &[u8]) -> Self;

    /// Takes in the one that comes next in the order, if the two are to be one; tells whether they are. The order must not change by it.
    fn join(&mut self, _next: &Self) -> bool {
        false
    }
}

/// The number of eight bytes at `at` in a stored record.
#[inline]
pub fn long_at(bytes: &[u8], at: usize) -> u64 {
    let long = bytes[at..].first_chunk().copied();
    long.map_or(0, u64::from_le_bytes)
}

/// The number of four bytes at `at` in a stored record.
#[inline]
pub fn word_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk().copied();
    word.map_or(0, u32::from_le_bytes)
}
