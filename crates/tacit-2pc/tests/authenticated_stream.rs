//! Authenticated garbling of a program longer than memory: right outputs, and a peak of memory that does not
//! grow with it. A binary of its own: the peak is the whole process's.

use tacit_2pc::authenticated::buckets::{self, Level};
use tacit_2pc::authenticated::{Demand, Session};
use tacit_2pc::circuit::{Program, Shape, iterate};
use tacit_2pc::{OutputTo, Owner};
use tacit_crypto::{BitVec, Prg};
use tacit_net::{LinkModel, memory};
use tacit_ot::base;

/// AND gates of the long run.
const GATES: u64 = if cfg!(feature = "long-tests") { 1_000_000_000 } else { 1_300_000 };
/// Kilobytes of memory that both parties, which are threads of one process here, may have together. Windows of
/// 433,334 gates hold two rows of triples at a time beside the sums, 42 MB a row and party, so that one check serves
/// both: with one row they held 400 MB, but from 423,689 gates on a window of one row a check needs buckets of four
/// in place of three, 11 bytes a gate. That is bought with this memory (`buckets::rows_at_once`).
const MOST: u64 = 440_000;

/// (x, y) ↦ (x·y, x + y) modulo 2^32, again and again.
fn products(steps: u64) -> impl Program + use<> {
    let shape = Shape { inputs: vec![32, 32], outputs: vec![32, 32] };
    iterate("products", shape, steps, |b, state, _| {
        vec![b.mul(&state[0], &state[1]), b.add(&state[0], &state[1])]
    })
}

/// Runs it between two threads; the AND gates.
fn run(steps: u64) -> u64 {
    let [x, y] = [0x1234_5677u32, 0x89ab_cdef];
    let one = Demand { ands: buckets::WINDOW, garbler_inputs: 32, evaluator_inputs: 32 };
    let config = one.ferret(&LinkModel::LOOPBACK, Level::ALONE);
    let party = |channel: &mut tacit_net::Channel, role: Owner, input: u32| {
        let mut prg = Prg::from_os();
        let mut session = Session::setup(channel, role, &*base::default(), config, &mut prg).unwrap();
        let input = BitVec::from_bytes(&input.to_le_bytes(), 32);
        let (owners, mut done) = ([Owner::Garbler, Owner::Evaluator], 0);
        let output = session
            .run_program(channel, products(steps), &owners, OutputTo::Both, &input, |ands| {
                assert!(ands - done <= buckets::WINDOW as u64, "a stretch of {} gates", ands - done);
                done = ands;
            })
            .unwrap();
        (output.unwrap().as_bytes().to_vec(), done)
    };
    let (one, two) = memory::run(
        |channel| party(channel, Owner::Garbler, x),
        |channel| party(channel, Owner::Evaluator, y),
    );
    let (x, y) = (0..steps).fold((x, y), |(x, y), _| (x.wrapping_mul(y), x.wrapping_add(y)));
    assert_eq!(one.0, [x.to_le_bytes(), y.to_le_bytes()].concat());
    assert_eq!(one, two);
    one.1
}

/// The most memory that this process ever had, in kilobytes, as the operating system says.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_program() {
    let per_step = run(100) / 100;
    let done = run(GATES / per_step);
    assert!(done > GATES - per_step, "{done} gates");
    #[cfg(target_os = "linux")]
    assert!(peak() < MOST, "{} kilobytes", peak());
}
