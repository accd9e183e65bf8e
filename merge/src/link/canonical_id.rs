//! Which ids stand for one request.

use super::cursor::Cursor;
use super::partition::Share;
use super::records::{Keyed, RequestKey, Root};
use crate::store::sorter::Sorted;
use std::io;

/// Ids that stand for another, and those that others stand for.
pub(super) type Roots<'a> = (&'a Sorted<Root>, &'a Sorted<RequestKey>);

/// The request that an id stands for with others, asked for in the order of ids.
pub(super) struct Leads<'a>(Option<(Cursor<'a, Root>, Cursor<'a, RequestKey>)>);

impl<'a> Leads<'a> {
    /// Those of a share of the ids.
    pub(super) fn new(roots: Option<Roots<'a>>, share: Share) -> io::Result<Self> {
        let Some((roots, heads)) = roots else {
            return Ok(Leads(None));
        };
        let by_id = Cursor::new(roots.read_from(|one| one.id < share.first())?)?;
        let heads = Cursor::new(heads.read_from(|one| one.0 < share.first())?)?;
        Ok(Leads(Some((by_id, heads))))
    }

    pub(super) fn of(&mut self, key: u64) -> io::Result<Option<u64>> {
        let Some((by_id, heads)) = &mut self.0 else {
            return Ok(None);
        };
        if let Some(root) = by_id.at(key)? {
            return Ok(Some(root.root));
        }
        Ok(heads.at(key)?.map(|head| head.key()))
    }
}
