//! Finds the blocks of all fragments, before their lines are read.

use crate::base::progress::Progress;
use crate::fragment::assembly::Assembly;
use crate::fragment::blocks::Piece;
use crate::fragment::file::{BlockSums, Fragment};
use crate::fragment::recording::Recording;
use crate::store::spill_vec::{List, Spill, Spilled, Writer};
use rayon::prelude::*;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Decides for all recordings which parts count. The results use files in one of the `folders` if they are large.
///
/// # Errors
/// Returns an error if a temporary file cannot be read back.
pub fn assemble_all(
    recordings: &[Recording],
    folders: &[PathBuf],
    progress: &Progress,
) -> io::Result<Vec<Assembly>> {
    let (lists, pieces) = split_all(recordings, folders, progress)?;
    let parts = Spill::new(folders);
    let assemble = |(recording, lists): (&Recording, &Vec<List>)| {
        let segment_pieces = |segment: usize| {
            let pieces = pieces.list(&lists[segment]);
            pieces.map(|(start, end, piece)| (start..end, piece))
        };
        recording.assemble_to(&parts, lists.len(), segment_pieces)
    };
    let assembled = recordings.par_iter().zip(&lists).map(assemble);
    let mut assemblies: Vec<Assembly> = assembled.collect();
    let parts = Arc::new(parts.finish()?);
    for assembly in &mut assemblies {
        assembly.parts = Some(Arc::clone(&parts));
    }
    Ok(assemblies)
}

/// Begin, end and kind of a piece.
type FiledPiece = (usize, usize, Piece);

/// Splits all fragments into pieces. Returns the lists of pieces by recording and fragment, and the storage that contains them.
fn split_all(
    recordings: &[Recording],
    folders: &[PathBuf],
    progress: &Progress,
) -> io::Result<(Vec<Vec<List>>, Spilled<FiledPiece>)> {
    let pieces = Spill::new(folders);
    let split = |fragment: &Fragment| {
        let mut writer = Writer::new(&pieces);
        let count = |len: usize| progress.add(len as u64, 0);
        let mut sums = BlockSums::default();
        fragment.pieces(count, |range, piece| {
            sums.add(&range, piece);
            writer.push((range.start, range.end, piece));
        });
        let _ = fragment.watch.blocks.set(sums.sum()); // only the first result is kept
        writer.end()
    };
    let split_recording =
        |recording: &Recording| recording.fragments.par_iter().map(split).collect();
    let lists = recordings.par_iter().map(split_recording).collect();
    Ok((lists, pieces.finish()?))
}
