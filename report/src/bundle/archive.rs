//! A `.tar.gz` of a few files, in memory.
//!
//! The `tar` crate could do this, but all that is needed here is one header per file.

use flate2::{Compression, GzBuilder};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The comment in the gzip header that identifies a bundle.
const COMMENT: &str = "sa-profile bundle";
/// Bytes of the gzip header before the comment.
const GZIP_FRONT: usize = 10;
/// The flag of a comment, and the byte that contains it.
const HAS_COMMENT: (usize, u8) = (3, 0x10);
/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;
/// Bytes of the checksum in a header.
const SUM: std::ops::Range<usize> = 148..156;

/// A file in the archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: &'static str,
    /// A phrase that describes its contents.
    pub(crate) about: String,
    pub(crate) bytes: Vec<u8>,
}

/// Returns an archive of these files, all in the folder `folder`.
///
/// # Errors
/// If it cannot be compressed.
pub(crate) fn archive(folder: &str, members: &[Member]) -> io::Result<Vec<u8>> {
    let mut out = GzBuilder::new()
        .comment(COMMENT)
        .write(Vec::new(), Compression::default());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    for member in members {
        let name = format!("{folder}/{}", member.name);
        out.write_all(&header(&name, member.bytes.len(), now))?;
        out.write_all(&member.bytes)?;
        out.write_all(&vec![
            0;
            member.bytes.len().next_multiple_of(BLOCK)
                - member.bytes.len()
        ])?;
    }
    out.write_all(&[0; 2 * BLOCK])?;
    out.finish()
}

/// Returns true if these are the first bytes of an archive that this program wrote.
pub(crate) fn is_bundle(front: &[u8]) -> bool {
    let (at, flag) = HAS_COMMENT;
    let comment = front.get(GZIP_FRONT..).unwrap_or_default();
    front.get(at).is_some_and(|flags| flags & flag != 0)
        && comment.starts_with(format!("{COMMENT}\0").as_bytes())
}

/// Returns the tar header of a file, in the POSIX format (ustar). `name` has at most 100 bytes, `bytes` is the size of
/// the file, and `modified` is the time of its last change, in seconds since the Unix epoch.
fn header(name: &str, bytes: usize, modified: u64) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{bytes:011o}\0"));
    put(136, &format!("{modified:011o}\0"));
    put(SUM.start, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_was_archived() {
        let members = [("a.txt", 0), ("b.txt", 512), ("c.txt", 700)].map(|(name, bytes)| Member {
            name,
            about: String::new(),
            bytes: vec![b'x'; bytes],
        });
        let packed = archive("bundle", &members).unwrap();
        assert!(is_bundle(&packed) && !is_bundle(&packed[1..]));
        let mut tar = Command::new("tar")
            .args(["-tzvf", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&packed).unwrap();
        let output = tar.wait_with_output().unwrap();
        assert!(output.status.success());
        let listed = String::from_utf8(output.stdout).unwrap();
        for (line, end) in listed
            .lines()
            .zip(["bundle/a.txt", "bundle/b.txt", "bundle/c.txt"])
        {
            assert!(line.ends_with(end), "{listed}");
        }
        assert!(listed.contains(" 700 "), "{listed}");
    }
}
