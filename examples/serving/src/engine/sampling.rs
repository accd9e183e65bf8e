//! From the workers' candidates to one token for each request: where the shards of the vocabulary meet.

use std::collections::BTreeMap;

use crate::protocol::{Sample, StepOutput, Token};

/// The best candidate of all workers for each request; the lower token if two are equal.
pub(super) fn best_samples<'a>(
    outputs: impl Iterator<Item = &'a StepOutput>,
) -> BTreeMap<String, Token> {
    let mut best: BTreeMap<String, &Sample> = BTreeMap::new();
    for sample in outputs.flat_map(|output| &output.samples) {
        best.entry(sample.request_id.clone())
            .and_modify(|known| {
                if (sample.score, known.token) > (known.score, sample.token) {
                    *known = sample;
                }
            })
            .or_insert(sample);
    }
    let best = best.into_iter();
    best.map(|(id, sample)| (id, sample.token)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(samples: &[(&str, Token, f32)]) -> StepOutput {
        let sample = |&(id, token, score): &(&str, Token, f32)| Sample {
            request_id: id.into(),
            token,
            score,
        };
        StepOutput {
            step: 1,
            samples: samples.iter().map(sample).collect(),
        }
    }

    #[test]
    fn the_best_token_of_all_workers_wins_in_any_order() {
        let low = output(&[("a", 3, 0.5), ("b", 4, 0.9), ("c", 5, 0.1)]);
        let high = output(&[("a", 300, 0.7), ("b", 301, 0.2), ("c", 302, 0.1)]);
        let expected = BTreeMap::from([
            ("a".to_owned(), 300),
            ("b".to_owned(), 4),
            ("c".to_owned(), 5),
        ]);
        assert_eq!(best_samples([&low, &high].into_iter()), expected);
        assert_eq!(best_samples([&high, &low].into_iter()), expected);
    }
}
