//! Times 128 ROTed transfers with the default set between two processes over loopback TCP, connection ready:
//! `cargo run --release -p tacit-ot --example roted_two_processes`

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Instant;
use tacit_crypto::{Block, Prg};
use tacit_net::tcp::TcpLink;
use tacit_net::{Channel, Party, SessionId};
use tacit_ot::base::roted::{ParameterSet, Receiver, Sender};
use tacit_ot::{RotReceiver, RotSender};

const COUNT: usize = 128;
const REPEAT: usize = 50;
const SESSION: SessionId = SessionId([3; 32]);

fn channel(stream: TcpStream, party: Party) -> Channel {
    Channel::new(Box::new(TcpLink::new(stream).expect("a link")), party, SESSION)
}

fn receive(port: &str) {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("the parent listens");
    let mut channel = channel(stream, Party::Second);
    let mut receiver = Receiver { set: ParameterSet::Module, prg: Prg::from_os() };
    for _ in 0..REPEAT {
        receiver.extend(&mut channel, &mut [Block::ZERO; COUNT]).expect("an honest sender");
        channel.recv_block().expect("the end of a round");
    }
}

fn main() {
    if let Some(port) = std::env::args().nth(1) {
        return receive(&port);
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let me = std::env::current_exe().expect("this program");
    let mut child = Command::new(me).arg(port).spawn().expect("a child");
    let mut channel = channel(listener.accept().expect("the child").0, Party::First);
    let mut sender = Sender { set: ParameterSet::Module, prg: Prg::from_os() };
    let mut times: Vec<f64> = (0..REPEAT)
        .map(|_| {
            let start = Instant::now();
            sender.extend(&mut channel, &mut [[Block::ZERO; 2]; COUNT]).expect("an honest receiver");
            let time = start.elapsed().as_secs_f64() * 1e3;
            channel.send_block(Block::ONES).and_then(|()| channel.flush()).expect("the child");
            time
        })
        .collect();
    assert!(child.wait().expect("the child").success());
    times.sort_by(f64::total_cmp);
    println!(
        "{COUNT} transfers between two processes: median {:.2} ms (min {:.2}, max {:.2})",
        times[REPEAT / 2],
        times[0],
        times[REPEAT - 1]
    );
}
