//! The lists of ids that were read last: step after step serves the same requests, and the spans within a step name them again.

/// A list of fewer ids is read as fast as it is found again.
pub(crate) const LEAST: usize = 4;

/// A list, as it stands in lines, and what is known of its ids.
pub(crate) struct List<'a, T> {
    text: &'a [u8],
    /// How many ids it has, repeated ones included.
    pub(crate) len: usize,
    pub(crate) known: T,
}

/// The last two lists.
pub(crate) struct Lists<'a, T> {
    lists: [Option<List<'a, T>>; 2],
    /// Which of the two is the older one.
    older: usize,
}

impl<T> Default for Lists<'_, T> {
    fn default() -> Self {
        Lists {
            lists: [None, None],
            older: 0,
        }
    }
}

impl<'a, T> Lists<'a, T> {
    /// Which one of them the bytes begin with, and how long its text is.
    #[inline(always)]
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        let begins = |list: &Option<List<'_, T>>| {
            let text = list.as_ref().map(|list| list.text);
            text.is_some_and(|text| bytes.starts_with(text))
        };
        let number = self.lists.iter().position(begins)?;
        let text = self.lists[number].as_ref().map(|list| list.text)?;
        Some((number, text.len()))
    }

    pub(crate) fn get(&mut self, number: usize) -> Option<&mut List<'a, T>> {
        self.lists.get_mut(number)?.as_mut()
    }

    /// Keeps a list, and gives the one that is forgotten for it.
    pub(crate) fn keep(&mut self, text: &'a [u8], len: usize, known: T) -> Option<T> {
        let list = List { text, len, known };
        let forgotten = self.lists[self.older].replace(list);
        self.older ^= 1;
        forgotten.map(|list| list.known)
    }

    /// Forgets them all.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> {
        let lists = std::mem::take(&mut self.lists);
        lists.into_iter().flatten().map(|list| list.known)
    }
}
