//! Folders that are held open by a descriptor. Files are found, read and written relative to it, so they stay in that folder even if its path is replaced
//! meanwhile.
//!
//! Only a path that the user named may be a symbolic link. Links below it are not followed.

use crate::access::{Access, FolderAccess};
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

/// Number of bytes read from the beginning of a file to find its header and first anchor.
const FRONT_BYTES: u64 = 1 << 16;

/// An open folder.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
    mode: u32,
    owner: u32,
    access: FolderAccess,
}

/// A name in an open folder.
#[derive(Clone, Debug)]
pub struct FileLocation {
    folder: Folder,
    path: PathBuf,
}

/// An entry of a folder.
pub struct Entry {
    /// Name in the folder.
    pub name: OsString,
    /// True if the entry is a folder.
    pub is_folder: bool,
}

impl Folder {
    /// Opens a folder that the user named. The path may be a link.
    ///
    /// # Errors
    /// If there is no such folder, or it may not be searched.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let named = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let fd = openat(CWD, named, folder_flags(), Mode::empty())?;
        Folder::from_fd(fd, path.to_owned(), FolderAccess::ALL)
    }

    /// Opens a folder in this one. Links are not followed.
    ///
    /// # Errors
    /// If there is no such folder, or it is a link.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let name = name.as_ref();
        let flags = folder_flags() | OFlags::NOFOLLOW;
        let fd = openat(&self.fd, name, flags, Mode::empty())?;
        Folder::from_fd(fd, self.path.join(name), self.access)
    }

    /// Opens a folder at a path below the one that the user named, without following links between them.
    ///
    /// # Errors
    /// If there is no such folder, a link leads to it, or it is not below `named`.
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

    /// Creates a folder in this one, with the permissions of `other`, and opens it.
    ///
    /// # Errors
    /// If the name is taken, or no folder may be created here.
    pub fn create_folder(&self, name: &str, other: &Folder) -> io::Result<Folder> {
        mkdirat(&self.fd, name, Mode::from_raw_mode(0o700))?;
        let folder = self.folder(name)?;
        folder.copy_permissions_from(other)?;
        Ok(folder)
    }

    /// Sets the permissions to those of `other`. If root calls this, the owner becomes that of `other`, too. Bits inherited from the parent folder, such as
    /// set-group-id, stay.
    ///
    /// # Errors
    /// If the mode may not be changed.
    pub fn copy_permissions_from(&self, other: &Folder) -> io::Result<()> {
        if geteuid().is_root() {
            let (owner, group) = (Uid::from_raw(other.owner), None::<Gid>);
            // If the kernel refuses this, the folder still belongs to root.
            let _ = chownat(&self.fd, ".", Some(owner), group, AtFlags::empty());
        }
        let mode = Mode::from_raw_mode(other.mode & 0o777 | self.mode & 0o7000);
        Ok(chmodat(&self.fd, ".", mode, AtFlags::empty())?)
    }

    fn from_fd(fd: OwnedFd, path: PathBuf, parent: FolderAccess) -> io::Result<Folder> {
        let status = fstat(&fd)?;
        Ok(Folder {
            fd: Arc::new(fd),
            path,
            mode: status.st_mode,
            owner: status.st_uid,
            access: parent.in_folder(status.st_mode),
        })
    }

    /// Returns the place of a file in this folder.
    pub fn place(&self, name: impl AsRef<OsStr>) -> FileLocation {
        FileLocation {
            folder: self.clone(),
            path: self.path.join(name.as_ref()),
        }
    }

    /// Creates a file without a name in this folder.
    ///
    /// # Errors
    /// If no file may be created here, or the file system does not support files without a name.
    pub fn create_unnamed(&self, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(access.initial_mode());
        let file = openat(&self.fd, ".", flags, mode)?.into();
        access.apply_to(&file)?;
        Ok(file)
    }

    /// Lists the entries of this folder.
    ///
    /// # Errors
    /// If the folder may not be listed.
    pub fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&self.fd, ".", flags, Mode::empty())?;
        for entry in Dir::new(listed)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let kind = match entry.file_type() {
                // Some file systems do not report the type of an entry.
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

    /// Returns the path that the folder was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the permission bits that are effective in this folder.
    pub fn access(&self) -> FolderAccess {
        self.access
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns flags to open a folder. With `O_PATH`, search permission is enough. Read permission, which would allow listing it, is not needed.
fn folder_flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

impl FileLocation {
    /// Opens the folder of a path that the user named, and returns the place of the file in it. The path of the folder may contain links.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn named(path: &Path) -> io::Result<FileLocation> {
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        Ok(folder.place(path.file_name().unwrap_or_default()))
    }

    /// Returns the folder of the file.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the name of the file in its folder.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Returns the path of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the location of the file called `name` in the same folder.
    pub fn sibling(&self, name: impl AsRef<OsStr>) -> FileLocation {
        self.folder.place(name)
    }

    /// Opens the file. With `follow`, it may be a link.
    ///
    /// # Errors
    /// If there is no such file, it may not be opened, or it is a link and `follow` is false.
    pub fn open(&self, flags: OFlags, follow: bool) -> io::Result<File> {
        let no_follow = match follow {
            true => OFlags::empty(),
            false => OFlags::NOFOLLOW,
        };
        let flags = flags | no_follow | OFlags::CLOEXEC;
        Ok(openat(&self.folder, self.name(), flags, Mode::empty())?.into())
    }

    /// Creates a file of this name, which must not exist.
    ///
    /// # Errors
    /// If the name is taken, or no file may be created here.
    pub fn create(&self, access: Access) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(access.initial_mode());
        let file = openat(&self.folder, self.name(), flags, mode)?.into();
        if let Err(error) = access.apply_to(&file) {
            let _ = self.remove(); // The first error is the one to report.
            return Err(error);
        }
        Ok(file)
    }

    /// Opens a regular file for reading. With `follow`, it may be a link.
    ///
    /// # Errors
    /// If there is no regular file of this name, or it may not be read.
    pub fn open_regular(&self, follow: bool) -> io::Result<File> {
        // O_NONBLOCK: opening a FIFO must not wait for its writer.
        let file = self.open(OFlags::RDONLY | OFlags::NONBLOCK, follow)?;
        if !file.metadata()?.is_file() {
            let why = "not a regular file";
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        Ok(file)
    }

    /// Reads the first bytes of a regular file. Never blocks on a FIFO or device.
    ///
    /// # Errors
    /// If there is no regular file of this name, or it cannot be read.
    pub fn read_front(&self, follow: bool) -> io::Result<Vec<u8>> {
        let mut front = Vec::new();
        let file = self.open_regular(follow)?;
        file.take(FRONT_BYTES).read_to_end(&mut front)?;
        Ok(front)
    }

    /// Returns the status of the file. A link is not followed.
    ///
    /// # Errors
    /// If there is no file of this name.
    pub fn status(&self) -> io::Result<Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(statat(&self.folder, self.name(), flags)?)
    }

    /// Returns true if the name is a link.
    pub fn is_link(&self) -> bool {
        self.status()
            .is_ok_and(|status| kind(&status) == FileType::Symlink)
    }

    /// Returns true if the name exists. It may be a dangling link.
    pub fn exists(&self) -> bool {
        self.status().is_ok()
    }

    /// Returns the id of the file, after following links.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn target_id(&self) -> io::Result<FileId> {
        let status = statat(&self.folder, self.name(), AtFlags::empty())?;
        Ok(FileId::from_stat(&status))
    }

    /// Removes the file. A link is not followed.
    ///
    /// # Errors
    /// If there is no file of this name, or it may not be removed.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, self.name(), AtFlags::empty())?)
    }

    /// Renames the file, and replaces any file of the new name.
    ///
    /// # Errors
    /// If there is no file of this name, or it may not be renamed.
    pub fn rename(&self, to: &FileLocation) -> io::Result<()> {
        Ok(renameat(&self.folder, self.name(), &to.folder, to.name())?)
    }

    /// Adds a hard link to the file under a name that must not exist. A symbolic link is not followed.
    ///
    /// # Errors
    /// If the name is taken, or the file system does not support hard links.
    pub fn link(&self, to: &FileLocation) -> io::Result<()> {
        let flags = AtFlags::empty();
        let (from, name) = (&self.folder, self.name());
        Ok(linkat(from, name, &to.folder, to.name(), flags)?)
    }

    /// Gives an open file this name, which must not exist. `path` is the link to its descriptor in `/proc`.
    ///
    /// # Errors
    /// If the name is taken, or the file cannot be linked.
    pub fn link_descriptor(&self, path: &Path) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_FOLLOW;
        linkat(CWD, path, &self.folder, self.name(), flags)
    }
}

impl PartialEq for FileLocation {
    fn eq(&self, other: &FileLocation) -> bool {
        self.path == other.path
    }
}

impl Eq for FileLocation {}

impl PartialOrd for FileLocation {
    fn partial_cmp(&self, other: &FileLocation) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FileLocation {
    fn cmp(&self, other: &FileLocation) -> Ordering {
        self.path.cmp(&other.path)
    }
}
