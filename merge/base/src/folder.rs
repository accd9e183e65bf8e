//! Folders by descriptor: what is found, read and written below a folder that was opened once stays in it, whatever its names lead to by then.
//!
//! Only what the user named may be a link. Below that none is followed.

use crate::access::{Access, Reach};
use crate::file_status::FileId;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, chmodat, chownat, fstat, linkat,
    mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Bytes read of a file to find its header and first anchor.
const FRONT_BYTES: u64 = 1 << 16;

/// An open folder.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    mode: u32,
    owner: u32,
    reach: Reach,
}

/// A name in an open folder.
#[derive(Clone, Debug)]
pub struct Place {
    folder: Folder,
    path: PathBuf,
}

/// An entry of a folder.
pub struct Entry {
    /// What it is called there.
    pub name: OsString,
    /// Whether it is a folder itself.
    pub is_folder: bool,
}

impl Folder {
    /// Opens the folder that the user named; a link to one is the user's choice.
    ///
    /// # Errors
    /// If there is no folder that may be searched.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let named = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let fd = openat(CWD, named, folder_flags(), Mode::empty())?;
        Folder::of(fd, path.to_owned(), Reach::ALL)
    }

    /// Opens a folder in this one; a link is none.
    ///
    /// # Errors
    /// If there is none, or a link.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = name.as_ref();
        let flags = folder_flags() | OFlags::NOFOLLOW;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        Folder::of(fd, self.path.join(name), self.reach)
    }

    /// Opens a folder at a path below the one that the user named; no link is followed between them.
    ///
    /// # Errors
    /// If there is no such folder, it can only be reached through a link, or it is not below `named`.
    pub fn open_below(named: &Path, path: &Path) -> io::Result<Folder> {
        let mut folder = Folder::open(named)?;
        let below = path.strip_prefix(named).map_err(io::Error::other)?;
        for component in below.components() {
            if component != Component::CurDir {
                folder = folder.folder(component)?;
            }
        }
        Ok(folder)
    }

    /// Makes a folder in this one and opens it. It is for those who may use another one.
    ///
    /// # Errors
    /// If the name is taken, or nothing may be made here.
    pub fn make_folder(&self, name: &str, other: &Folder) -> io::Result<Folder> {
        mkdirat(&self.fd, name, Mode::from_raw_mode(0o700))?;
        let folder = self.folder(name)?;
        folder.be_for(other)?;
        Ok(folder)
    }

    /// Gives it the mode of another one, and, by root, that one's owner; what it has from the folder above, as a shared group's bit, stays.
    ///
    /// # Errors
    /// If its mode may not be changed.
    pub fn be_for(&self, other: &Folder) -> io::Result<()> {
        if geteuid().is_root() {
            let (owner, group) = (Uid::from_raw(other.owner), None::<Gid>);
            // Where the kernel refuses that, it stays root's.
            let _ = chownat(&self.fd, ".", Some(owner), group, AtFlags::empty());
        }
        let mode = Mode::from_raw_mode(other.mode & 0o777 | self.mode & 0o7000);
        Ok(chmodat(&self.fd, ".", mode, AtFlags::empty())?)
    }

    fn of(fd: OwnedFd, path: PathBuf, above: Reach) -> io::Result<Folder> {
        let status = fstat(&fd)?;
        Ok(Folder {
            fd: Arc::new(fd),
            path,
            mode: status.st_mode,
            owner: status.st_uid,
            reach: above.through(status.st_mode),
        })
    }

    /// A file in it.
    pub fn place(&self, name: impl AsRef<OsStr>) -> Place {
        Place {
            folder: self.clone(),
            path: self.path.join(name.as_ref()),
        }
    }

    /// Makes a file in it that has no name.
    ///
    /// # Errors
    /// If nothing may be made here, or the file system knows no files without a name.
    pub fn create_unnamed(&self, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(access.first_mode());
        let file = openat(&self.fd, ".", flags, mode)?.into();
        access.give(&file)?;
        Ok(file)
    }

    /// What is in it.
    ///
    /// # Errors
    /// If it may not be listed.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&self.fd, ".", flags, Mode::empty())?;
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let kind = match entry.file_type() {
                // Not every file system says.
                FileType::Unknown => self.place(&name).status().map(|status| kind(&status)),
                kind => Ok(kind),
            };
            if name != "." && name != ".." {
                let is_folder = kind? == FileType::Directory;
                entries.push(Entry { name, is_folder });
            }
        }
        Ok(entries)
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who comes as far as here.
    pub fn reach(&self) -> Reach {
        self.reach
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// To come to what lies in a folder takes the right to search it, not to list it.
fn folder_flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

impl Place {
    /// The file at a path that the user named. What leads to its folder may be links.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn named(path: &Path) -> io::Result<Place> {
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        Ok(folder.place(path.file_name().unwrap_or_default()))
    }

    /// Its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// What it is called in its folder.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Its path, as words.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another name in the same folder.
    pub fn beside(&self, name: impl AsRef<OsStr>) -> Place {
        self.folder.place(name)
    }

    /// Opens it; `follow` tells whether it may be a link.
    ///
    /// # Errors
    /// If there is no such file, it may not be opened, or is a link that may not be followed.
    pub fn open(&self, flags: OFlags, follow: bool) -> io::Result<File> {
        let no_follow = match follow {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        let flags = flags | no_follow | OFlags::CLOEXEC;
        Ok(openat(&self.folder, self.name(), flags, Mode::empty())?.into())
    }

    /// Makes a file of this name, which must be free.
    ///
    /// # Errors
    /// If the name is taken, or nothing may be made here.
    pub fn create(&self, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(access.first_mode());
        let file = openat(&self.folder, self.name(), flags, mode)?.into();
        if let Err(error) = access.give(&file) {
            let _ = self.remove(); // the first error is the one to tell
            return Err(error);
        }
        Ok(file)
    }

    /// Opens a regular file for reading; `follow` tells whether it may be a link.
    ///
    /// # Errors
    /// If there is none, or it may not be read.
    pub fn open_regular(&self, follow: bool) -> io::Result<File> {
        // O_NONBLOCK: opening a FIFO must not wait for its writer.
        let file = self.open(OFlags::RDONLY | OFlags::NONBLOCK, follow)?;
        if !file.metadata()?.is_file() {
            let why = "not a regular file";
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        Ok(file)
    }

    /// The first bytes of a regular file. Nothing else is read, and nothing is waited for.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn read_front(&self, follow: bool) -> io::Result<Vec<u8>> {
        let mut front = Vec::new();
        let file = self.open_regular(follow)?;
        file.take(FRONT_BYTES).read_to_end(&mut front)?;
        Ok(front)
    }

    /// What is there; of a link the link itself.
    ///
    /// # Errors
    /// If nothing is there.
    pub fn status(&self) -> io::Result<Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(statat(&self.folder, self.name(), flags)?)
    }

    /// Whether a link is there.
    pub fn is_link(&self) -> bool {
        self.status()
            .is_ok_and(|status| kind(&status) == FileType::Symlink)
    }

    /// Whether anything is there, be it a link to nowhere.
    pub fn exists(&self) -> bool {
        self.status().is_ok()
    }

    /// Which file is at the end of the links that may start here.
    ///
    /// # Errors
    /// If nothing is there.
    pub fn led_to(&self) -> io::Result<FileId> {
        let status = statat(&self.folder, self.name(), AtFlags::empty())?;
        Ok(FileId::of_status(&status))
    }

    /// Removes it; of a link the link itself.
    ///
    /// # Errors
    /// If nothing is there, or it may not be removed.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, self.name(), AtFlags::empty())?)
    }

    /// Gives it the name of another file, in that one's place.
    ///
    /// # Errors
    /// If nothing is there, or it may not be renamed.
    pub fn rename(&self, to: &Place) -> io::Result<()> {
        Ok(renameat(&self.folder, self.name(), &to.folder, to.name())?)
    }

    /// Gives it a second name, which must be free; a link is not followed.
    ///
    /// # Errors
    /// If the name is taken, or the file system has no second names.
    pub fn link(&self, to: &Place) -> io::Result<()> {
        let flags = AtFlags::empty();
        let (from, name) = (&self.folder, self.name());
        Ok(linkat(from, name, &to.folder, to.name(), flags)?)
    }

    /// Gives this name, which must be free, to the file at `path`, a link in `/proc` to a descriptor.
    ///
    /// # Errors
    /// If the name is taken, or the file may have none.
    pub fn link_descriptor(&self, path: &Path) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_FOLLOW;
        linkat(CWD, path, &self.folder, self.name(), flags)
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.path == other.path
    }
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        self.path.cmp(&other.path)
    }
}
