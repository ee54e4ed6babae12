//! The machine stays under control: stop and go, reset, debugger, signals.

use crate::board::{Board, eventually};
use serde_json::json;
use std::thread;
use std::time::Duration;
use vtime::options::Options;
use vtime::rate::ClockRate;

/// So many interrupts that the machine never comes to its end.
const FOR_EVER: u64 = 1 << 40;

/// Does `test` with cores in turns, as `./cassata` starts machines, and in
/// parallel.
fn in_both_modes(test: impl Fn(Options)) {
    for serial in [true, false] {
        test(Options { serial, ..Options::default() });
    }
}

/// Waits until virtual time is past what the statistics say now.
fn expect_progress(board: &Board) {
    eventually("a first statistics file", || board.has_statistics());
    let before = board.statistics().virtual_ns;
    eventually("virtual time goes on", || board.statistics().virtual_ns > before);
}

#[test]
fn time_stands_still_while_the_machine_is_stopped() {
    in_both_modes(|options| {
        let board = Board::start(4, FOR_EVER, options.clone(), &[]);
        let mut qmp = board.qmp();
        expect_progress(&board);
        for _ in 0..20 {
            qmp.execute("stop");
            assert_eq!(qmp.execute("query-status")["running"], false);
            qmp.execute("cont");
        }
        qmp.execute("stop");
        let next_statistics = || {
            let before = board.statistics().real_ns;
            eventually("new statistics", || board.statistics().real_ns > before);
            board.statistics()
        };
        next_statistics(); // may have been gathered before the stop
        let stopped = next_statistics();
        next_statistics();
        assert_eq!(board.statistics().virtual_ns, stopped.virtual_ns);
        assert_eq!(board.statistics().vcpus, stopped.vcpus);
        qmp.execute("cont");
        expect_progress(&board);
    });
}

#[test]
fn a_reset_starts_the_guest_again() {
    in_both_modes(|options| {
        let mut board = Board::start(4, 50, options.clone(), &["-no-shutdown"]);
        let mut qmp = board.qmp();
        for _ in 0..3 {
            board.lines_to("metronome: done");
            eventually("the machine is off", || {
                qmp.execute("query-status")["status"] == "shutdown"
            });
            qmp.execute("system_reset");
            qmp.execute("cont");
        }
        board.lines_to("metronome: done");
        qmp.execute("quit");
        assert!(board.wait().0.success());
    });
}

#[test]
fn a_reset_while_all_cores_run() {
    in_both_modes(|options| {
        let board = Board::start(4, FOR_EVER, options.clone(), &[]);
        let mut qmp = board.qmp();
        for _ in 0..5 {
            expect_progress(&board);
            qmp.execute("system_reset");
        }
        expect_progress(&board);
    });
}

#[test]
fn quit_ends_it_with_final_statistics() {
    in_both_modes(|options| {
        let mut board = Board::start(4, FOR_EVER, options.clone(), &[]);
        let mut qmp = board.qmp();
        expect_progress(&board);
        qmp.execute("quit");
        let (status, statistics) = board.wait();
        assert!(status.success());
        assert!(statistics.finished);
        assert_eq!(statistics.vcpus.len(), 4);
        assert!(statistics.vcpus.iter().all(|v| v.instructions > 0));
    });
}

#[test]
fn signals_end_it() {
    in_both_modes(|options| {
        for signal in ["INT", "TERM", "HUP"] {
            let mut board = Board::start(2, FOR_EVER, options.clone(), &[]);
            expect_progress(&board);
            board.signal(signal);
            let (status, statistics) = board.wait();
            assert!(status.success(), "{signal}: {status}");
            assert!(statistics.finished, "{signal}");
        }
    });
}

#[test]
fn a_machine_that_was_never_started_ends_too() {
    in_both_modes(|options| {
        let mut board = Board::start(4, FOR_EVER, options.clone(), &["-S"]);
        board.qmp().execute("query-status");
        board.signal("TERM");
        let (status, statistics) = board.wait();
        assert!(status.success());
        assert_eq!(statistics.vcpus.iter().map(|v| v.instructions).sum::<u64>(), 0);
    });
}

#[test]
fn the_debugger_stops_steps_and_continues() {
    in_both_modes(|options| {
        let board = Board::start(4, FOR_EVER, options.clone(), &[]);
        expect_progress(&board);
        let mut gdb = board.gdb();
        gdb.send("?");
        assert!(gdb.receive().starts_with('T'));
        let pc = |gdb: &mut crate::protocols::Gdb| {
            gdb.send("p20"); // register 32 is the program counter
            gdb.receive()
        };
        for _ in 0..10 {
            let before = pc(&mut gdb);
            gdb.send("s");
            assert!(gdb.receive().starts_with('T'));
            assert_ne!(pc(&mut gdb), before);
        }
        for _ in 0..5 {
            gdb.send("c");
            thread::sleep(Duration::from_millis(20)); // let it run; nothing depends on how far
            gdb.interrupt();
            assert!(gdb.receive().starts_with('T'));
        }
        gdb.send("D");
        assert_eq!(gdb.receive(), "OK");
        expect_progress(&board);
    });
}

#[test]
fn migration_ends_though_virtual_time_is_ahead_of_the_host() {
    in_both_modes(|options| {
        // At a thousandth of the usual rate, a second passes a thousand times
        // faster. Migration waits for the host in tenths of a second.
        let rate = ClockRate::from_mhz(1).unwrap();
        let board = Board::spin(Options { rate, quantum_ns: Options::MAX_QUANTUM_NS, ..options });
        eventually("virtual time is ahead", || {
            board.has_statistics() && board.statistics().virtual_ns > 5 * board.statistics().real_ns
        });
        let mut qmp = board.qmp();
        let slowly = json!({ "max-bandwidth": 1_000_000 });
        qmp.execute_with("migrate-set-parameters", &slowly);
        qmp.execute_with("migrate", &json!({ "uri": "exec:cat >/dev/null" }));
        eventually("migration ends", || qmp.execute("query-migrate")["status"] == "completed");
    });
}
