//! Hashes a file while it is read once from beginning to end.

use crate::fragment::file::Content;
use xxhash_rust::xxh3::Xxh3Default;

/// Distance between the hash and the reader. The hash is ahead, so that it never covers a change that the reader missed.
const AHEAD_BYTES: usize = 4 << 20;
/// Number of bytes after which pages that were read are released.
const RELEASED_BYTES: usize = 32 << 20;

/// Hashes a file's bytes just before they are read, and releases their pages afterwards.
pub(super) struct ContentSum<'a> {
    content: &'a Content,
    hasher: Xxh3Default,
    hashed: usize,
    released: usize,
}

impl<'a> ContentSum<'a> {
    /// Begins to hash a file's content, ahead of a reader that is at its beginning.
    pub(super) fn new(content: &'a Content) -> ContentSum<'a> {
        let mut sum = ContentSum {
            content,
            hasher: Xxh3Default::new(),
            hashed: 0,
            released: 0,
        };
        sum.hash_to(AHEAD_BYTES);
        sum
    }

    /// Hashes a file's whole content at once. If the result differs from an earlier `finish`, another program has changed the content since.
    pub(super) fn hash_all(content: &Content) -> u64 {
        let mut sum = ContentSum::new(content);
        let places = (0..content.bytes().len()).step_by(AHEAD_BYTES / 2);
        places.for_each(|at| sum.advance(at));
        sum.finish()
    }

    /// Hashes the bytes ahead of a reader that has advanced to offset `at`, and releases the memory pages that it has passed.
    pub(super) fn advance(&mut self, at: usize) {
        if at.saturating_add(AHEAD_BYTES / 2) > self.hashed {
            self.hash_to(at.saturating_add(AHEAD_BYTES));
        }
        if at - self.released > RELEASED_BYTES {
            self.content.release(self.released, at);
            self.released = at;
        }
    }

    /// Hashes the remaining bytes, releases the memory pages of the file, and returns the hash of the whole content.
    pub(super) fn finish(mut self) -> u64 {
        let len = self.content.bytes().len();
        self.hash_to(len);
        self.content.release(self.released, len);
        self.hasher.digest()
    }

    /// Hashes the bytes up to offset `to` that were not hashed before. Does nothing for content that is not watched, which other programs cannot
    /// change.
    fn hash_to(&mut self, to: usize) {
        let bytes = self.content.bytes();
        let to = to.min(bytes.len());
        if self.content.is_watched() && to > self.hashed {
            self.hasher.update(&bytes[self.hashed..to]);
            self.hashed = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// A change after the reader has passed a byte, and one just before it, both change the hash.
    #[test]
    fn a_byte_anywhere_changes_the_sum_and_appending_does_not() {
        let named = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(named.path(), vec![b'a'; 10 << 20]).unwrap();
        let content = Content::open_watched(File::open(named.path()).unwrap()).unwrap();
        let before = ContentSum::hash_all(&content);
        let file = File::options().write(true).open(named.path()).unwrap();
        file.write_all_at(b"more", 10 << 20).unwrap();
        assert_eq!(before, ContentSum::hash_all(&content));
        for at in [0, 3 << 20, 6 << 20, (10 << 20) - 1] {
            let mut sum = ContentSum::new(&content);
            (0..=at).step_by(1 << 20).for_each(|at| sum.advance(at));
            file.write_all_at(b"b", at as u64).unwrap();
            let changed = ContentSum::hash_all(&content);
            assert!(before != changed && sum.finish() != changed, "{at}");
            file.write_all_at(b"a", at as u64).unwrap();
            assert_eq!(before, ContentSum::hash_all(&content));
        }
    }
}
