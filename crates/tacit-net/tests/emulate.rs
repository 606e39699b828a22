//! The link emulator against arithmetic: within 2 %, over memory and over TCP.
//!
//! A machine under load wakes threads late and never early, so each figure is the least of several attempts,
//! more of them as long as all came late, and no attempt may be early. For the same reason this is a binary of its
//! own, which runs when the others have ended.

use std::time::{Duration, Instant};
use tacit_net::{
    Agreement, Channel, Limits, LinkModel, Listener, Options, Protection, SessionId, connect, memory,
};

/// Framing of a message that fits a frame.
const FRAME: usize = 4;
const TOLERANCE: f64 = 0.02;
const ATTEMPTS: usize = 8;
const ROUNDS: usize = 10;

fn channels(model: LinkModel, tcp: bool) -> (Channel, Channel) {
    if !tcp {
        return memory::pair_over(model, Limits::default(), SessionId([0; 32]));
    }
    let options = move |role, peer| {
        let mut options = Options::new(Agreement::new("emulation", role, peer), Protection::Plaintext);
        options.link = model;
        options
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || connect(&address, &options("b", "a")).unwrap());
    let session = listener.accept(&options("a", "b")).unwrap();
    (session.into_channels().remove(0), other.join().unwrap().into_channels().remove(0))
}

/// Times `run` on the first party, several times, beside `peer` on the second.
fn times(
    model: LinkModel,
    tcp: bool,
    run: &(impl Fn(&mut Channel) + Send + Sync),
    peer: &(impl Fn(&mut Channel) + Send + Sync),
) -> Vec<Duration> {
    let (a, b) = channels(model, tcp);
    let (times, ()) = memory::join(
        a,
        b,
        |channel| {
            let mut times = Vec::new();
            for _ in 0..ATTEMPTS {
                // Both start together, with the link idle.
                channel.send_u64(0).unwrap();
                channel.recv_u64().unwrap();
                std::thread::sleep(Duration::from_millis(5));
                let start = Instant::now();
                run(channel);
                times.push(start.elapsed());
            }
            times
        },
        |channel| {
            for _ in 0..ATTEMPTS {
                channel.recv_u64().unwrap();
                channel.send_u64(0).unwrap();
                channel.flush().unwrap();
                peer(channel);
            }
        },
    );
    times
}

/// Compares the least of several runs of `run` on the first party with `expected`.
fn compare(
    model: LinkModel,
    tcp: bool,
    what: &str,
    expected: Duration,
    run: impl Fn(&mut Channel) + Send + Sync,
    peer: impl Fn(&mut Channel) + Send + Sync,
) {
    let carrier = if tcp { "TCP" } else { "memory" };
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        least = least.min(times(model, tcp, &run, &peer).into_iter().min().unwrap());
        assert!(
            least >= expected.mul_f64(0.999),
            "{what} over {model} on {carrier}: {least:?} for {expected:?}"
        );
        if least <= expected.mul_f64(1.0 + TOLERANCE) {
            println!("{what} over {model} on {carrier}: expected {expected:?}, {least:?}");
            return;
        }
    }
    panic!("{what} over {model} on {carrier}: {least:?} for {expected:?}");
}

fn transfer(model: LinkModel, tcp: bool, size: usize) {
    let frames = size.div_ceil(tacit_net::MAX_FRAME).max(1);
    let there = model.transfer(size + frames * FRAME) + model.delay();
    let back = model.transfer(8 + FRAME) + model.delay();
    compare(
        model,
        tcp,
        &format!("{size} bytes"),
        there + back,
        move |channel| {
            channel.send(&vec![1; size]).unwrap();
            channel.recv_u64().unwrap();
        },
        move |channel| {
            channel.recv(&mut vec![0; size]).unwrap();
            channel.send_u64(0).unwrap();
            channel.flush().unwrap();
        },
    );
}

#[test]
fn transfer_times_match_arithmetic() {
    for tcp in [false, true] {
        for (link, size) in [("100/5", 100_000), ("100/5", 2 << 20), ("50/20", 65_536), ("1000/10", 8 << 20)]
        {
            transfer(link.parse().unwrap(), tcp, size);
        }
    }
}

#[test]
fn round_trips_match_arithmetic() {
    const ROUNDS: u32 = 4;
    for tcp in [false, true] {
        for link in ["wan", "10/12"] {
            let model: LinkModel = link.parse().unwrap();
            let expected = (model.transfer(8 + FRAME) + model.delay()) * 2 * ROUNDS;
            let ping = |channel: &mut Channel| {
                for _ in 0..ROUNDS {
                    channel.send_u64(1).unwrap();
                    channel.recv_u64().unwrap();
                }
            };
            let pong = |channel: &mut Channel| {
                for _ in 0..ROUNDS {
                    channel.recv_u64().unwrap();
                    channel.send_u64(1).unwrap();
                }
                channel.flush().unwrap();
            };
            compare(model, tcp, "4 round trips", expected, ping, pong);
        }
    }
}

#[test]
fn both_directions_have_the_full_rate() {
    const SIZE: usize = 1 << 20;
    let model: LinkModel = "200/10".parse().unwrap();
    let exchange = |channel: &mut Channel| {
        channel.send(&vec![1; SIZE]).unwrap();
        channel.recv(&mut vec![0; SIZE]).unwrap();
    };
    let expected = model.transfer(SIZE + FRAME) + model.delay();
    for tcp in [false, true] {
        let shared = (0..ROUNDS).all(|_| {
            // The peer starts one delay earlier, when its greeting leaves; what this side sends comes back
            // last.
            let (a, b) = channels(model, tcp);
            let start = Instant::now();
            memory::join(a, b, exchange, exchange);
            let took = start.elapsed();
            assert!(took >= expected.mul_f64(0.999), "{took:?} for {expected:?}");
            took >= model.transfer(2 * SIZE)
        });
        assert!(!shared, "the directions share the rate");
    }
}

#[test]
fn the_channels_of_a_session_share_the_rate() {
    const SIZE: usize = 1 << 20;
    let model: LinkModel = "200/10".parse().unwrap();
    let options = move |role, peer| {
        let mut options = Options::new(Agreement::new("emulation", role, peer), Protection::Plaintext);
        (options.link, options.channels) = (model, 2);
        options
    };
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || connect(&address, &options("b", "a")).unwrap().into_channels());
    let senders = listener.accept(&options("a", "b")).unwrap().into_channels();
    let receivers = other.join().unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for mut channel in senders {
            scope.spawn(move || {
                channel.send(&vec![1; SIZE]).unwrap();
                channel.flush().unwrap();
            });
        }
        for mut channel in receivers {
            scope.spawn(move || channel.recv(&mut vec![0; SIZE]).unwrap());
        }
    });
    let expected = model.transfer(2 * (SIZE + FRAME)) + model.delay();
    assert!(start.elapsed() >= expected.mul_f64(0.999), "{:?} for {expected:?}", start.elapsed());
}

#[test]
fn links_parse_and_print() {
    for name in ["loopback", "lan", "wan", "50/50", "12.5/0.25"] {
        assert_eq!(name.parse::<LinkModel>().unwrap().to_string(), name);
    }
    assert_eq!("100/40".parse::<LinkModel>().unwrap(), LinkModel::WAN);
    for wrong in ["", "fast", "10", "0/5", "-1/5", "10/-1", "nan/1", "inf/1", "10/nan", "10/1e9"] {
        assert!(wrong.parse::<LinkModel>().is_err(), "{wrong}");
    }
}
