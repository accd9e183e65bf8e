//! Options of a screen: its colours, and the run in the commands that it shows.

use anstyle::{AnsiColor, Style};

/// Options of a screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenOptions<'a> {
    /// True on a terminal that supports colours.
    pub is_styled: bool,
    /// Argument that names the run in commands on the screen, quoted for a shell. `None` if no argument can name it.
    pub run: Option<&'a str>,
}

impl ScreenOptions<'_> {
    pub(super) fn bold(self, text: &str) -> String {
        self.styled(Style::new().bold(), text)
    }

    pub(super) fn rule(self, text: &str) -> String {
        self.styled(AnsiColor::Cyan.on_default(), text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.styled(AnsiColor::Yellow.on_default().bold(), text)
    }

    fn styled(self, style: Style, text: &str) -> String {
        match self.is_styled {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}
