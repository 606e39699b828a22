//! What WMK17 writes on the wire, keeps in files and returns, with fixed seeds, against a recorded baseline.
//!
//! How many tables go before P2's opening follows from the machine's pace; here either all go or none. To
//! take the baseline anew: the test's message holds all lines of `tests/wmk17.digests`.

use super::scripts::Hasty;
use super::*;
use tacit_net::Channel;

use crate::wire;

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

/// The inputs of both parties.
fn inputs(job: &Job<'_>) -> [BitVec; 2] {
    let widths = job.function.shape().inputs;
    [0, 1].map(|i| BitVec::random(widths[i] as usize, &mut prg(7 + i as u128)))
}

fn bytes(output: Option<BitVec>) -> Vec<u8> {
    output.map_or_else(Vec::new, |output| output.as_bytes().to_vec())
}

fn garbler(channel: &mut Channel, prg: &mut Prg) -> Garbler<tacit_ot::extension::kos::KosSender> {
    Garbler::setup(channel, &*tacit_ot::base::default(), prg).unwrap()
}

fn evaluator(channel: &mut Channel, prg: &mut Prg) -> Evaluator<tacit_ot::extension::kos::KosReceiver> {
    Evaluator::setup(channel, &*tacit_ot::base::default(), prg).unwrap()
}

fn single(name: &str, job: &Job<'_>, early: bool) -> String {
    let [x, y] = inputs(job);
    let order = if early { "early" } else { "late" };
    wire::line(
        &format!("wmk17 {name} {} {:?} {order}", job.copies.name(), job.output_to),
        |channel| {
            let (mut prg, mut script) = (prg(1), Hasty { early });
            let mut garbler = garbler(channel, &mut prg);
            let output = scripted(&mut script, || garbler.run(channel, job, &x, &mut prg));
            Ok(bytes(output.unwrap()))
        },
        |channel| {
            let mut prg = prg(2);
            Ok(bytes(evaluator(channel, &mut prg).run(channel, job, &y, &mut prg).unwrap()))
        },
    )
}

fn halves(name: &str, job: &Job<'_>) -> String {
    let ([x, y], dir) = (inputs(job), tempfile::tempdir().unwrap());
    let path = |side: u8| dir.path().join(side.to_string());
    let file = |side: u8| std::fs::File::create(path(side)).unwrap();
    let name = format!("wmk17 {name} {} {:?}", job.copies.name(), job.output_to);
    let offline = wire::line(
        &format!("{name} offline"),
        |channel| {
            let mut prg = prg(3);
            let mut party = garbler(channel, &mut prg);
            party.prepare_state(channel, job, None, &key(), &mut file(1), &mut prg).unwrap();
            Ok(std::fs::read(path(1)).unwrap())
        },
        |channel| {
            let mut prg = prg(4);
            let mut party = evaluator(channel, &mut prg);
            party.prepare_state(channel, job, None, &key(), &mut file(2), &mut prg).unwrap();
            Ok(std::fs::read(path(2)).unwrap())
        },
    );
    let run = |channel: &mut Channel, side: u8, input: &BitVec| {
        let state = State::open(&path(side), &key()).unwrap();
        bytes(state.run(channel, job, input, &mut prg(4 + u128::from(side))).unwrap())
    };
    let online = wire::line(
        &format!("{name} online"),
        |channel| Ok(run(channel, 1, &x)),
        |channel| Ok(run(channel, 2, &y)),
    );
    offline + &online
}

#[test]
fn wire_files_and_outputs_are_as_recorded() {
    let mut lines = String::new();
    for (name, output_to) in [
        ("add8", OutputTo::Evaluator),
        ("add8", OutputTo::Garbler),
        ("add8", OutputTo::Both),
        ("aes128", OutputTo::Both),
    ] {
        let (_, prepared) = prepared(name);
        for copies in Copies::ALL {
            let job = Job { copies, ..Job::new(&prepared, output_to) };
            lines += &single(name, &job, false);
            // All tables of AES-128 are more than P2 keeps, unless they are combined.
            if name == "add8" || copies.coded() {
                lines += &single(name, &job, true);
            }
            lines += &halves(name, &job);
        }
    }
    // Too many tables for P1 to hold: it garbles them twice.
    let (_, sha1) = prepared("sha1");
    for copies in [Copies::STANDARD, Copies::CODED] {
        lines += &single("sha1", &Job { copies, ..Job::new(&sha1, OutputTo::Evaluator) }, false);
    }
    let recorded = include_str!("../../../tests/wmk17.digests");
    assert!(lines == recorded, "the wire, the files or the outputs changed; all lines now:\n{lines}");
}
