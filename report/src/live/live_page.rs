//! The page that shows how a run stands, and asks again each second.

const FRAME: &str = include_str!("../../page/live.html");
const STYLE: &str = include_str!("../../page/page.css");
const SCRIPT: &str = include_str!("../../page/live.js");

/// The page, which needs nothing but `/stats` from where it came.
pub fn live_page() -> String {
    FRAME
        .replace("/* styles */", STYLE)
        .replace("/* scripts */", SCRIPT)
}
