//! Reasons why requests ended: a few texts that many requests share.

use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of distinct reasons. All further ones become `other`.
const MOST: usize = 1_024;

/// Texts by number. Number 0 means no reason.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    numbers: HashMap<String, u32>,
    texts: Vec<Arc<str>>,
}

impl Reasons {
    /// Returns the number of a finish reason. A new reason is added, or becomes `other` if there are too many.
    pub(crate) fn number(&mut self, reason: String) -> u32 {
        if let Some(number) = self.numbers.get(&reason) {
            return *number;
        }
        let reason = match self.texts.len() < MOST {
            true => reason,
            false => "other".to_owned(),
        };
        let texts = &mut self.texts;
        *self.numbers.entry(reason).or_insert_with_key(|reason| {
            texts.push(reason.as_str().into());
            u32::try_from(texts.len()).unwrap_or(0)
        })
    }

    /// Adds the finish reasons of a chunk. Returns the numbers that they have here, indexed by the chunk's numbers.
    pub(crate) fn merge(&mut self, chunk: Reasons) -> Vec<u32> {
        let texts = chunk.texts.iter();
        let numbers = texts.map(|text| self.number(text.to_string()));
        std::iter::once(0).chain(numbers).collect()
    }

    /// Returns the text of the finish reason with this number. Returns `None` for 0, which means no reason, and for
    /// unknown numbers.
    pub(crate) fn text(&self, number: u32) -> Option<Arc<str>> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.texts.get(place).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_reasons_become_other() {
        let mut reasons = Reasons::default();
        let numbers: Vec<u32> = (0..2_000)
            .map(|nth| reasons.number(format!("r{nth}")))
            .collect();
        assert_eq!((numbers[0], numbers[1_023]), (1, 1_024));
        assert_eq!(&*reasons.text(1_024).unwrap(), "r1023");
        assert!(numbers[1_024..].iter().all(|number| *number == 1_025));
        assert_eq!(&*reasons.text(1_025).unwrap(), "other");
        assert_eq!(reasons.text(0), None);
        let mut all = Reasons::default();
        all.number("r1".to_owned());
        assert_eq!(all.merge(reasons)[..4], [0, 2, 1, 3]);
    }
}
