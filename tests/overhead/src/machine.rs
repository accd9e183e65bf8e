//! The machine that a run was measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the rows above the tables.
pub(crate) fn description() -> Vec<Vec<String>> {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let program = std::env::current_exe().unwrap_or_default(); // the recorders' files are beside it
    let file_system = output("df", &["--output=fstype", &program.to_string_lossy()]);
    // Cargo names the folder after the profile.
    let profile = program.parent().and_then(Path::file_name);
    let profile = profile.unwrap_or_default().to_string_lossy();
    let compiler = format!("{}, profile {profile}", output("rustc", &["--version"]));
    let rows = [
        ("processor", processor()),
        ("kernel", output("uname", &["-r"])),
        ("file system", file_system),
        (
            "clock source",
            fs::read_to_string(clock).unwrap_or_default(),
        ),
        ("compiler", compiler),
        ("date", output("date", &["-u", "+%F"])),
    ];
    let row = |(name, value): (&str, String)| vec![name.to_owned(), value.trim().to_owned()];
    rows.map(row).into()
}

/// Returns the load averages over 1, 5 and 15 minutes.
pub(crate) fn load_average() -> String {
    let line = measure::process::load_average();
    line.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns true if the load average of the last minute is more than half of the cores: other programs ran.
pub(crate) fn is_busy(load_average: &str) -> bool {
    let last_minute = load_average.split(' ').next();
    let load: Option<f64> = last_minute.and_then(|load| load.parse().ok());
    load.is_some_and(|load| load > cores() as f64 / 2.0)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let model = fields.find(|(key, _)| key.trim() == "model name");
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    let is_virtual = cpuinfo.contains(" hypervisor ");
    let place = if is_virtual { ", virtual machine" } else { "" };
    format!("{model}, {} cores{place}", cores())
}

/// Returns the last line that a program prints.
fn output(program: &str, words: &[&str]) -> String {
    match Command::new(program).args(words).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().last().unwrap_or("unknown").to_owned()
        }
        Err(error) => format!("unknown ({program}: {error})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_busy_at_half_of_its_cores() {
        assert!(is_busy(&format!("{} 0.00 0.00", cores())));
        assert!(!is_busy("0.00 9999 9999"));
    }
}
