//! Peak memory of one ROTed transfer, both ends: heap and stack, in bytes.
//!
//! The heap is counted by the `dhat` allocator. The stack is bracketed: the transfer runs in threads of
//! shrinking stacks, each in a process of its own, until one overflows; the thread's guard and start-up count
//! against us.

use std::process::Command;
use tacit_crypto::Block;
use tacit_crypto::ring::XofBlocks;
use tacit_roted::roted::{Choices, Mode, Receiver, Sender};
use tacit_roted::set::{self, Set};
use tacit_roted::{Instance, Role};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// One transfer between two ends in one process, as a device would run either of them.
#[inline(never)]
fn transfer<const N: usize, const K: usize>(set: &Set<N, K>) {
    let (mut ours, mut theirs) = (XofBlocks::new(&[1; 32]), XofBlocks::new(&[2; 32]));
    let for_sender = Instance::new(set, "peak", b"one", Role::Sender);
    let for_receiver = Instance::new(set, "peak", b"one", Role::Receiver);
    let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
    let receiver = Receiver::offer(&for_receiver, Choices::Random, 1, &mut theirs, &mut m1);
    let sender = Sender::answer(&for_sender, Mode::Random, 1, &m1, &mut ours, &mut m2).expect("honest");
    let mut received = [Block::ZERO];
    let bits = receiver.open(&for_receiver, &m2, &mut theirs, &mut received, &mut m3).expect("honest");
    let mut sent = [[Block::ZERO; 2]];
    sender.finish(&for_sender, &m3, &mut sent).expect("honest");
    assert!(received[0] == sent[0][bits[0] as usize], "the ends disagree");
}

fn run(name: &str) {
    match name {
        "module" => transfer(&set::MODULE),
        "large" => transfer(&set::LARGE),
        _ => transfer(&set::PAPER),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let (Some(name), Some(stack)) = (arguments.next(), arguments.next()) {
        let stack = stack.parse().expect("a stack size");
        let thread = std::thread::Builder::new().stack_size(stack).spawn(move || run(&name));
        thread.expect("a thread").join().expect("the transfer");
        return;
    }
    for name in ["module", "paper", "large"] {
        let heap = {
            let _profiler = dhat::Profiler::builder().testing().build();
            run(name);
            dhat::HeapStats::get().max_bytes
        };
        let fits = |stack: usize| {
            let me = std::env::current_exe().expect("this program");
            let status = Command::new(me)
                .args([name, &stack.to_string()])
                .stderr(std::process::Stdio::null())
                .status();
            status.expect("a child").success()
        };
        let (mut low, mut high) = (16 << 10, 256 << 10);
        while high - low > 4096 {
            let middle = (low + high) / 2 / 4096 * 4096;
            if fits(middle) { high = middle } else { low = middle }
        }
        println!("{name}: heap {heap} + stack at most {high} = {} KiB", (heap + high).div_ceil(1024));
    }
}
