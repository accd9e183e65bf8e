//! What comparing a recording with what its victim acknowledged came to: counts that add up over many victims.

use std::fmt;
use std::ops::AddAssign;

/// How what was read compares with what was acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Comparisons made.
    pub checks: u64,
    /// Spans acknowledged, and spans read.
    pub acknowledged: u64,
    /// Spans read, each counted once.
    pub read: u64,
    /// Acknowledged spans that were not read.
    pub lost: u64,
    /// Spans read more than once.
    pub doubled: u64,
    /// Spans whose contents are not what was written.
    pub torn: u64,
    /// Spans nobody can have recorded.
    pub invented: u64,
    /// Open spans shown where the victim says they are open.
    pub open: u64,
    /// Open spans that were missing, wrong or should not have been there.
    pub open_wrong: Vec<String>,
    /// Damage and losses the reader reported.
    pub damage: Vec<String>,
}

impl Verdict {
    /// Whether nothing at all is wrong.
    pub fn is_clean(&self) -> bool {
        self.lost + self.doubled + self.torn + self.invented == 0
            && self.open_wrong.is_empty()
            && self.damage.is_empty()
    }
}

impl AddAssign for Verdict {
    fn add_assign(&mut self, other: Verdict) {
        self.checks += other.checks;
        self.acknowledged += other.acknowledged;
        self.read += other.read;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.torn += other.torn;
        self.invented += other.invented;
        self.open += other.open;
        self.open_wrong.extend(other.open_wrong);
        self.damage.extend(other.damage);
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict {
            checks,
            acknowledged,
            read,
            lost,
            doubled,
            torn,
            invented,
            open,
            ..
        } = self;
        write!(
            out,
            "checks={checks} acknowledged={acknowledged} read={read} lost={lost} doubled={doubled} torn={torn} invented={invented} "
        )?;
        write!(
            out,
            "open_shown={open} open_wrong={} damage={}",
            self.open_wrong.len(),
            self.damage.len()
        )?;
        for line in self.open_wrong.iter().chain(&self.damage).take(8) {
            write!(out, "\n    {line}")?;
        }
        Ok(())
    }
}
