use super::*;

impl Record for (u32, u32) {}

#[test]
fn sorts_alike_in_memory_and_from_many_runs() {
    for (count, capacity) in [
        (0, 4),
        (3, 4),
        (5, 4),
        (9_000, 7),
        (9_000, 100_000),
        (1_100_000, 2_000_000),
    ] {
        let records: Vec<(u32, u32)> = (0..count)
            .map(|number: u32| (number.wrapping_mul(2_654_435_761) % 1000, number))
            .collect();
        let folder = std::env::temp_dir();
        let mut sorter = Sorter::with_capacity(vec![folder.as_path()], capacity);
        records
            .iter()
            .for_each(|record| sorter.push(*record).unwrap());
        let sorted = sorter.finish().unwrap();
        let mut expected = records;
        expected.sort_unstable();
        assert_eq!(sorted.len(), expected.len());
        assert!(*sorted == expected, "{count} records, {capacity} at a time");
    }
}

/// A key and a sum. Records with the same key are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sum(u32, u32);

impl Record for Sum {
    fn join(&mut self, next: &Self) -> bool {
        let same = self.0 == next.0;
        if same {
            self.1 += next.1;
        }
        same
    }
}

#[test]
fn joins_records_with_any_amount_of_memory() {
    let folders = [PathBuf::from("/nowhere"), std::env::temp_dir()];
    for bytes in [0, 64, 1000, 1 << 20] {
        let mut sorter = Sorter::in_any(&folders, bytes);
        let mut expected = std::collections::BTreeMap::new();
        for number in 0..5000_u32 {
            let (key, value) = (number.wrapping_mul(2_654_435_761) % 700, number % 100);
            *expected.entry(key).or_insert(0) += value;
            sorter.push(Sum(key, value)).unwrap();
        }
        let sorted = sorter.finish().unwrap();
        assert_eq!(matches!(sorted, Sorted::Memory(_)), bytes == 1 << 20);
        let mut found = Vec::new();
        sorted
            .each(|sum| {
                found.push((sum.0, sum.1));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}
