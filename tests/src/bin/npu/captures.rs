//! Graphs: captured without any hook seeing it, then replayed.

use crate::end;
use crate::session::Session;
use std::time::Duration;

/// Captures `count` additions, replays them three times, and tells what came of it.
pub(crate) fn captured(count: u64) {
    let session = Session::open(2);
    let number = session.number();
    let args = [number as u64, 1];
    // Slices of launches before are asked for while the capture goes on.
    for index in 0..20 {
        session.launch("matmul", 1, index, &[]);
    }
    let graph = session.capture(0, || {
        for index in 0..count {
            let code = session.launch("sim_add_one", 0, 100 + index, &args);
            let other = session.launch("matmul", 1, 1000 + index, &[]);
            std::thread::sleep(Duration::from_micros(300));
            println!("captured launch {index}: {code}, beside it: {other}");
        }
    });
    for _ in 0..3 {
        println!("replay {}", session.replay(graph, 0));
    }
    println!("synchronize {}", session.synchronize());
    println!("added {}", session.read(number));
    end(session);
}

/// Launches before, in and after captures of the same stream, in quick succession: events are used again at once.
pub(crate) fn in_between(count: u64) {
    let session = Session::open(1);
    let number = session.number();
    let args = [number as u64, 1];
    for round in 0..count {
        session.launch("matmul", 0, round, &[]);
        session.launch("add", 0, round, &[]);
        let graph = session.capture(0, || {
            session.launch("sim_add_one", 0, round, &args);
            session.launch("sim_add_one", 0, round, &args);
        });
        println!("replay {}", session.replay(graph, 0));
        session.launch("add", 0, round, &[]);
    }
    println!("synchronize {}", session.synchronize());
    println!("added {}", session.read(number));
    end(session);
}
