//! Estimates when the newest data on a connection arrived. While the event loop is busy it reads no data, so only the kernel knows.
//!
//! The kernel counts the time since then in ticks of 1 to 10 ms. If the times of its ticks are known, the count shows during which tick the data
//! arrived. Within that tick, the event loop's thread must have been awake, and the connection's previous answer complete. The
//! estimate is the middle of the remaining range.

use super::awake::{Awake, Thread};
use super::clock::{Kernel, tick_length_ns};
use super::silence::tcp_silence;
use super::ticks::Ticks;

/// Maximum plausible time for which data can be unread. A larger count is ignored.
const MAX_UNREAD_NS: i64 = 600_000_000_000;
/// Maximum time from a thread's wake-up until it runs.
const MAX_WAKE_UP_NS: i64 = 1_000_000;

/// Arrival time of data, by the monotonic clock, and its uncertainty.
#[derive(Debug, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) ns: i64,
    pub(crate) uncertainty_ns: i64,
}

/// State of a connection with unread data, from the kernel.
pub(crate) struct Unread {
    pub(crate) now_ns: i64,
    /// Time of the last tick, if it is known.
    pub(crate) tick_ns: Option<i64>,
    /// Length of a tick.
    pub(crate) length_ns: i64,
    /// Time since the newest data arrived, in whole ticks.
    pub(crate) unread_ns: i64,
}

/// State of the reading thread, and delays of ticks.
#[derive(Default)]
pub(crate) struct Reader {
    /// Maximum time for which the thread has been awake.
    pub(crate) awake_ns: i64,
    /// Time of the connection's last answer, or 0 if there was none.
    pub(crate) answered_ns: i64,
    /// Maximum delay of ticks.
    pub(crate) late_ns: i64,
    /// Average delay of ticks.
    pub(crate) lag_ns: i64,
}

/// Returns the best estimate of when the newest data on a connection arrived. `unread` is the kernel's state of the connection, and `reader` describes the
/// thread that reads it.
pub(crate) fn estimate_arrival(unread: &Unread, reader: &Reader) -> Arrival {
    let (now_ns, length_ns) = (unread.now_ns, unread.length_ns);
    if unread.unread_ns > MAX_UNREAD_NS || length_ns <= 0 {
        return at(now_ns, 0);
    }
    let ticks = whole_ticks(unread.unread_ns, length_ns);
    let Some(tick_ns) = unread.tick_ns else {
        // A count of one tick usually means that hardly any time has passed.
        let ago_ns = if ticks > 1 { ticks * length_ns } else { 0 };
        return at(now_ns - ago_ns, length_ns);
    };
    let mut began_ns = tick_ns - ticks * length_ns;
    let ended_ns = now_ns.min(began_ns + length_ns);
    let woke_ns = now_ns - reader.awake_ns;
    // Otherwise the thread slept although there was unread data, for example while it waited for a lock. Its wake-up then says nothing about the data.
    if woke_ns <= ended_ns + MAX_WAKE_UP_NS {
        began_ns = began_ns.max(woke_ns.min(ended_ns));
    }
    // Otherwise the client did not wait for the answer.
    if reader.answered_ns <= ended_ns {
        began_ns = began_ns.max(reader.answered_ns);
    }
    // Data that arrives while the next tick is late counts for the tick before. Data since the last tick may have arrived just now.
    let latest_ns = match ticks {
        0 => now_ns,
        _ => now_ns.min(ended_ns + reader.late_ns),
    };
    let best_ns = latest_ns.min(i64::midpoint(began_ns, ended_ns) + reader.lag_ns);
    at(best_ns, (latest_ns - best_ns).max(best_ns - began_ns))
}

fn at(ns: i64, uncertainty_ns: i64) -> Arrival {
    Arrival { ns, uncertainty_ns }
}

/// Converts a duration in ns to the nearest whole number of timer ticks of `length_ns` each. The Linux kernel counted the duration in ticks, but reported it
/// rounded down to milliseconds.
fn whole_ticks(ns: i64, length_ns: i64) -> i64 {
    let (ticks, rest_ns) = (ns / length_ns, ns % length_ns);
    ticks + i64::from(2 * rest_ns > length_ns || (2 * rest_ns == length_ns && ticks % 2 == 1))
}

/// Estimates when requests arrived, for the event loop's thread.
pub(crate) struct Arrivals<T> {
    ticks: Ticks<Kernel>,
    awake: Awake<T>,
}

impl<T: Thread> Arrivals<T> {
    pub(crate) fn new(thread: T) -> Arrivals<T> {
        Arrivals {
            ticks: Ticks::new(tick_length_ns(), Kernel),
            awake: Awake::new(thread),
        }
    }

    /// Estimates when the newest data on a connection arrived: never after `now_ns`, and most likely after `answered_ns`, when the last answer on this
    /// connection was sent. `descriptor` is the connection's socket.
    pub(crate) fn arrival(&mut self, descriptor: i32, now_ns: i64, answered_ns: i64) -> Arrival {
        let since = self.ticks.coarse_ns();
        let awake_ns = self.awake.max_awake_ns();
        let silence = tcp_silence(&Kernel, descriptor);
        let Some(unread_ms) = silence.unread_ms else {
            return at(now_ns, 0);
        };
        // The thread may have waited for a core since `now_ns` was read, and ticks may have passed.
        let tick_ns = self.ticks.last_ns(silence.coarse_ns, silence.asked_ns);
        self.ticks.observe_age(silence.coarse_ns, silence.asked_ns);
        let unread = Unread {
            now_ns,
            tick_ns,
            length_ns: self.ticks.length_ns(),
            unread_ns: i64::from(unread_ms) * 1_000_000,
        };
        let reader = Reader {
            awake_ns,
            answered_ns,
            late_ns: self.ticks.late_ns(),
            lag_ns: self.ticks.lag_ns(),
        };
        let found = estimate_arrival(&unread, &reader);
        self.ticks.end_work(since);
        found
    }

    /// Records that an HTTP answer is complete, because the next request on its connection may arrive at any time from now on.
    pub(crate) fn answered(&mut self) {
        self.awake.max_awake_ns();
    }

    /// Records that the event loop's thread starts to process the outputs of an engine step. Returns the value to pass to [`Arrivals::step_ended`], a reading
    /// of the coarse clock.
    pub(crate) fn step_began(&mut self) -> i64 {
        let since = self.ticks.coarse_ns();
        self.awake.check_for_sleep();
        since
    }

    /// Records that the event loop's thread has processed the outputs of an engine step. `since` is what [`Arrivals::step_began`] returned.
    pub(crate) fn step_ended(&mut self, since: i64) {
        self.ticks.end_frequent_work(since);
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "times of tests are small")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::thread;
    use std::time::Duration;

    use super::super::awake::ThisThread;
    use super::super::clock::Clocks;
    use super::*;

    /// Returns both ends of a connection: the client's and the server's.
    fn connect() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn send_request(mut client: &TcpStream) {
        client.write_all(b"GET / HTTP/1.1").unwrap();
    }

    fn read(mut server: &TcpStream) {
        assert!(server.read(&mut [0; 100]).unwrap() > 0);
    }

    /// Keeps the thread busy for this many ticks, as a period of work.
    fn work(arrivals: &mut Arrivals<ThisThread>, ticks: f64) {
        let since = arrivals.ticks.coarse_ns();
        wait(arrivals.ticks.length_ns(), ticks);
        arrivals.ticks.end_work(since);
    }

    /// Keeps a core busy for this many ticks.
    fn wait(length_ns: i64, ticks: f64) {
        let until_ns = Kernel.now_ns() + (ticks * length_ns as f64) as i64;
        while Kernel.now_ns() < until_ns {}
    }

    #[test]
    fn an_arrival_is_known_although_the_data_was_read_later() {
        let mut arrivals = Arrivals::new(ThisThread);
        let (client, server) = connect();
        let before_ns = Kernel.now_ns();
        send_request(&client);
        let after_ns = Kernel.now_ns();
        thread::sleep(Duration::from_millis(300));
        let came = arrivals.arrival(server.as_raw_fd(), Kernel.now_ns(), 0);
        let expected = before_ns - 12_000_000..=after_ns + 12_000_000;
        assert!(expected.contains(&came.ns), "{came:?} {expected:?}");
        read(&server);
    }

    #[test]
    fn an_arrival_is_estimated_within_its_tick() {
        let ns = |ms: f64| (ms * 1e6).round() as i64;
        let tick = Some(100.0);
        for (now, tick, unread, awake, answered, expected, uncertainty) in [
            (103.0, tick, 0.0, 0.2, 0.0, 102.9, 0.1), // arrived in this tick and woke the reader
            (103.0, tick, 0.0, 2.0, 0.0, 102.0, 1.0), // in this tick, while the reader was busy
            (103.0, tick, 0.0, 50.0, 0.0, 101.5, 1.5),
            (100.5, tick, 4.0, 0.2, 0.0, 100.0, 0.0), // in the previous tick, which has just ended
            (100.5, tick, 4.0, 2.5, 0.0, 99.0, 1.0),
            (103.0, tick, 4.0, 50.0, 0.0, 98.0, 2.0), // in the previous tick; the reader has been busy since
            (103.0, tick, 4.0, 5.0, 0.0, 99.0, 1.0),
            (103.0, tick, 40.0, 50.0, 0.0, 62.0, 2.0),
            (103.0, tick, 40.0, 40.0, 0.0, 63.5, 0.5),
            (103.0, tick, 40.0, 1.0, 0.0, 62.0, 2.0), // the reader slept, but not because there was no data
            (103.0, tick, 0.0, 50.0, 102.0, 102.5, 0.5), // in this tick, after the last answer
            (103.0, tick, 4.0, 50.0, 99.0, 99.5, 0.5),
            (103.0, tick, 4.0, 50.0, 102.0, 98.0, 2.0), // the client did not wait for the answer
            (103.0, tick, 39.0, 50.0, 0.0, 62.0, 2.0),  // a millisecond was cut off
            (103.0, tick, 700_000_000.0, 50.0, 0.0, 103.0, 0.0), // not plausible
            (103.0, None, 4.0, 0.2, 0.0, 103.0, 4.0),   // the times of ticks are unknown
            (103.0, None, 8.0, 50.0, 0.0, 95.0, 4.0),
        ] {
            let unread = Unread {
                now_ns: ns(now),
                tick_ns: tick.map(ns),
                length_ns: 4_000_000,
                unread_ns: ns(unread),
            };
            let reader = Reader {
                awake_ns: ns(awake),
                answered_ns: ns(answered),
                ..Reader::default()
            };
            let found = estimate_arrival(&unread, &reader);
            assert_eq!(
                found,
                at(ns(expected), ns(uncertainty)),
                "{now} {awake} {answered}"
            );
        }
    }

    /// The thread reads requests at once, but loses its core between its own clock and the kernel's answer.
    #[test]
    fn a_reader_that_waits_for_a_core_estimates_no_arrival_too_early() {
        let mut arrivals = Arrivals::new(ThisThread);
        let (client, server) = connect();
        let length_ns = arrivals.ticks.length_ns();
        for turn in 0..40 {
            work(&mut arrivals, 1.3);
            let sent_ns = Kernel.now_ns();
            send_request(&client);
            let now_ns = Kernel.now_ns();
            wait(length_ns, 2.0); // as if another thread had the core
            let found = arrivals.arrival(server.as_raw_fd(), now_ns, 0);
            let latest_ns = found.ns + found.uncertainty_ns;
            assert!(turn < 20 || latest_ns >= sent_ns, "{found:?} {sent_ns}");
            read(&server);
        }
    }
}
