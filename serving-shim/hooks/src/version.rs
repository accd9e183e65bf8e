//! Versions of Python packages, ordered as PEP 440 orders them. Local parts (`+cpu`) are ignored, so that a bound applies to every build of a version.

/// A version. The order of the fields, and of the variants in them, is the order of versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    epoch: u64,
    release: Vec<u64>,
    stage: Stage,
    post: Option<u64>,
    development: Development,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// A development release of the final release, which comes before its first alpha.
    BeforeAlpha,
    Alpha(u64),
    Beta(u64),
    Candidate(u64),
    Final,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Development {
    Release(u64),
    Not,
}

impl Version {
    /// Parses a version, such as `0.9.1`, `0.15.0rc1` or `0.5.6.post2.dev3+g1a2b`. Returns `None` for other texts.
    pub(crate) fn parse(text: &str) -> Option<Version> {
        let lower = text.trim().to_ascii_lowercase();
        let public = lower.split('+').next()?.trim_start_matches('v');
        let (epoch, public) = public.split_once('!').unwrap_or(("0", public));
        let mut rest = Rest(public);
        let mut release = vec![rest.number()?];
        while let Some(number) = rest.after_dot() {
            release.push(number);
        }
        while release.last() == Some(&0) {
            release.pop(); // 1.0 is 1
        }
        let stage = rest.stage();
        let post = rest
            .labelled(&["post", "rev", "r"])
            .or_else(|| rest.after_hyphen());
        let development = rest.labelled(&["dev"]);
        if !rest.0.is_empty() {
            return None;
        }
        Some(Version {
            epoch: epoch.parse().ok()?,
            release,
            stage: stage.unwrap_or(match (post, development) {
                (None, Some(_)) => Stage::BeforeAlpha,
                _ => Stage::Final,
            }),
            post,
            development: development.map_or(Development::Not, Development::Release),
        })
    }
}

/// The part of a version that is not parsed yet.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn number(&mut self) -> Option<u64> {
        let end = self.0.find(|letter: char| !letter.is_ascii_digit());
        let (digits, others) = self.0.split_at(end.unwrap_or(self.0.len()));
        let number = digits.parse().ok()?;
        self.0 = others;
        Some(number)
    }

    fn after(&mut self, separator: char) -> Option<u64> {
        let mut others = Rest(self.0.strip_prefix(separator)?);
        let number = others.number()?;
        self.0 = others.0;
        Some(number)
    }

    fn after_dot(&mut self) -> Option<u64> {
        self.after('.')
    }

    fn after_hyphen(&mut self) -> Option<u64> {
        self.after('-')
    }

    /// Parses one of these labels and its number, which is 0 if it is missing. Separators around the label are optional.
    fn labelled(&mut self, labels: &[&str]) -> Option<u64> {
        const SEPARATORS: [char; 3] = ['.', '-', '_'];
        let bare = self.0.strip_prefix(SEPARATORS).unwrap_or(self.0);
        let label = labels.iter().find(|label| bare.starts_with(**label))?;
        let others = &bare[label.len()..];
        self.0 = others;
        let mut numbered = Rest(others.strip_prefix(SEPARATORS).unwrap_or(others));
        let number = numbered.number();
        if number.is_some() {
            self.0 = numbered.0;
        }
        Some(number.unwrap_or(0))
    }

    fn stage(&mut self) -> Option<Stage> {
        if let Some(number) = self.labelled(&["alpha", "a"]) {
            return Some(Stage::Alpha(number));
        }
        if let Some(number) = self.labelled(&["beta", "b"]) {
            return Some(Stage::Beta(number));
        }
        self.labelled(&["rc", "preview", "pre", "c"])
            .map(Stage::Candidate)
    }
}

/// Returns true if a version is within bounds, which belong to the range. Returns `None` if the version cannot be parsed.
///
/// Bounds are versions that were checked when their file was read. One that is not a version is ignored.
pub fn is_version_between(
    version: &str,
    least: Option<&str>,
    greatest: Option<&str>,
) -> Option<bool> {
    let version = Version::parse(version)?;
    let least = least.and_then(Version::parse);
    let greatest = greatest.and_then(Version::parse);
    Some(
        least.is_none_or(|least| least <= version)
            && greatest.is_none_or(|greatest| version <= greatest),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_pep_440_orders_them() {
        let ordered = [
            "0.9",
            "0.9.1.dev1",
            "0.9.1a1.dev3",
            "0.9.1a1",
            "0.9.1b2",
            "0.9.1rc1",
            "0.9.1rc1.post1",
            "0.9.1",
            "0.9.1.post1.dev2",
            "0.9.1.post1",
            "0.9.1.post2",
            "0.9.2",
            "0.10",
            "0.10.1",
            "1!0.1",
        ];
        let parsed: Vec<_> = ordered
            .iter()
            .map(|text| Version::parse(text).unwrap())
            .collect();
        for pair in parsed.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }

    #[test]
    fn one_version_may_be_written_in_several_ways() {
        for (one, other) in [
            ("1.0.0", "1"),
            ("v0.11.0+cpu", "0.11"),
            ("0.13.0-RC.1", "0.13.0rc1"),
            ("1.0-2", "1.0.post2"),
            ("1.0_rev2", "1.0.post2"),
            ("1.0preview", "1.0rc0"),
        ] {
            assert_eq!(Version::parse(one), Version::parse(other), "{one}");
            assert!(Version::parse(one).is_some());
        }
        for text in ["", "x", "1.x", "1..2", "1.0beta.x", "unknown"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn bounds_belong_to_the_range() {
        for (version, least, greatest, expected) in [
            ("0.9.1", Some("0.9.1"), Some("0.9.1"), Some(true)),
            ("0.33.2+cu129", None, Some("0.33"), Some(false)),
            ("0.33.0+cu129", None, Some("0.33"), Some(true)),
            ("0.9", Some("0.9.1"), None, Some(false)),
            ("unknown", Some("0.9.1"), None, None),
        ] {
            assert_eq!(
                is_version_between(version, least, greatest),
                expected,
                "{version}"
            );
        }
    }
}
