//! Throughput and latency of a channel between two processes.
//!
//! `cargo run --release -p tacit-net --example channel_bench -- [plain|tls] [LINK] [MEBIBYTES] [REPEAT]`

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tacit_net::{
    Agreement, Channel, Identity, LinkModel, Listener, Options, Protection, PublicKey, Tls, connect,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of one send, as a protocol streams its tiles.
const TILE: usize = 1 << 20;
const PINGS: u32 = 2000;

fn options(kind: &str, link: &str, folder: &Path, own: &str, peer: &str) -> Outcome<Options> {
    let protection = match kind {
        "plain" => Protection::Plaintext,
        "tls" => {
            let identity = Identity::load(&folder.join(own).with_extension("key"))?;
            Protection::Tls(Tls::pinned(
                &identity,
                PublicKey::load(&folder.join(peer).with_extension("pub"))?,
            )?)
        }
        other => return Err(format!("`{other}`: give plain or tls").into()),
    };
    let mut options = Options::new(Agreement::new("channel bench", own, peer), protection);
    options.link = link.parse()?;
    Ok(options)
}

fn send_all(channel: &mut Channel, tiles: usize) -> Outcome<()> {
    let tile = vec![0x3c; TILE];
    for _ in 0..tiles {
        channel.send(&tile)?;
    }
    channel.flush()?;
    Ok(())
}

fn recv_all(channel: &mut Channel, tiles: usize) -> Outcome<()> {
    let mut tile = vec![0; TILE];
    for _ in 0..tiles {
        channel.recv(&mut tile)?;
    }
    Ok(())
}

/// Both directions at once: each side sends a tile, then takes one.
fn exchange(channel: &mut Channel, tiles: usize) -> Outcome<()> {
    let mut tile = vec![0x3c; TILE];
    for _ in 0..tiles {
        channel.send(&tile)?;
        channel.recv(&mut tile)?;
    }
    Ok(())
}

/// User and system time of this process.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn child(kind: &str, link: &str, folder: &Path, address: &str, tiles: usize, repeat: usize) -> Outcome<()> {
    let mut session = connect(address, &options(kind, link, folder, "bob", "alice")?)?;
    let channel = session.channel();
    for _ in 0..repeat {
        let start = cpu();
        recv_all(channel, tiles)?;
        channel.send_u64((cpu() - start).as_nanos() as u64)?;
        channel.recv_u64()?;
        exchange(channel, tiles)?;
    }
    for _ in 0..PINGS {
        let ping = channel.recv_u64()?;
        channel.send_u64(ping)?;
    }
    channel.flush()?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |index: usize, default: &str| arguments.get(index).cloned().unwrap_or(default.to_owned());
    let (kind, link) = (argument(1, "plain"), argument(2, "loopback"));
    let (tiles, repeat): (usize, usize) = (argument(3, "1024").parse()?, argument(4, "5").parse()?);
    if let (Some(folder), Some(address)) = (arguments.get(5), arguments.get(6)) {
        return child(&kind, &link, Path::new(folder), address, tiles, repeat);
    }
    let folder = tempfile::tempdir()?;
    for name in ["alice", "bob"] {
        Identity::generate()?.save(&folder.path().join(name).with_extension("key"), name)?;
    }
    let listener = Listener::bind("127.0.0.1:0")?;
    let mut peer = Command::new(std::env::current_exe()?)
        .args([&kind, &link, &tiles.to_string(), &repeat.to_string()])
        .args([folder.path().as_os_str(), listener.local_addr()?.to_string().as_ref()])
        .stdout(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    let mut session = listener.accept(&options(&kind, &link, folder.path(), "alice", "bob")?)?;
    let channel = session.channel();
    println!(
        "{kind}, {}: set up in {:.1} ms",
        link.parse::<LinkModel>()?,
        start.elapsed().as_secs_f64() * 1e3
    );

    let bytes = (tiles * TILE) as f64;
    let (mut one_way, mut both_ways, mut send_cpu, mut recv_cpu) = (vec![], vec![], vec![], vec![]);
    for _ in 0..repeat {
        let (start, busy) = (Instant::now(), cpu());
        send_all(channel, tiles)?;
        let spent = cpu() - busy;
        recv_cpu.push(channel.recv_u64()? as f64 / bytes);
        one_way.push(bytes / start.elapsed().as_secs_f64() / 1e9);
        send_cpu.push(spent.as_nanos() as f64 / bytes);
        let start = Instant::now();
        channel.send_u64(0)?;
        exchange(channel, tiles)?;
        both_ways.push(2.0 * bytes / start.elapsed().as_secs_f64() / 1e9);
    }
    println!("one way    {:6.2} GB/s (each: {one_way:.2?})", median(one_way.clone()));
    println!("both ways  {:6.2} GB/s in sum (each: {both_ways:.2?})", median(both_ways.clone()));
    println!(
        "CPU        {:6.3} ns a byte sent, {:.3} ns a byte received",
        median(send_cpu),
        median(recv_cpu)
    );

    let mut pings = Vec::new();
    for index in 0..PINGS {
        let start = Instant::now();
        channel.send_u64(index.into())?;
        channel.recv_u64()?;
        pings.push(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("round trip {:6.1} µs (median of {PINGS})", median(pings));
    drop(session);
    peer.wait()?;
    Ok(())
}
