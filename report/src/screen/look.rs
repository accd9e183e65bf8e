//! Style of a screen: colours, and the commands that it names.

use anstyle::{AnsiColor, Style};

/// The style of a screen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// True on a terminal that shows colours.
    pub is_styled: bool,
    /// The run as one word of a shell, for commands that the screen names; `None` if no command can name it.
    pub run: Option<&'a str>,
}

impl Look<'_> {
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
