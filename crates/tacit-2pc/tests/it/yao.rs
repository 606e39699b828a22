//! Yao's protocol over a real OT: what the parties learn equals the plain function; disagreement and bad
//! labels are refused.

use tacit_2pc::circuit::{
    Builder, Circuit, Integer, Program, Repeat, Shape, Uint, evaluate, evaluate_words, named,
};
use tacit_2pc::semi_honest::{
    evaluate as yao_evaluate, evaluate_program, garble as yao_garble, garble_program, garbler_bytes,
};
use tacit_2pc::{Error, OutputTo, Owner, Prepared};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, memory};
use tacit_ot::CotSender;
use tacit_ot::base;
use tacit_ot::extension::iknp::{IknpReceiver, IknpSender};

type Outputs = tacit_2pc::Result<Option<Vec<Vec<BitVec>>>>;

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn sender(channel: &mut Channel) -> IknpSender {
    IknpSender::setup(channel, &*base::default(), &mut prg(1)).unwrap()
}

fn receiver(channel: &mut Channel) -> IknpReceiver {
    IknpReceiver::setup(channel, &*base::default(), &mut prg(2)).unwrap()
}

fn run(
    function: &Prepared,
    garbler: &[Vec<BitVec>],
    evaluator: &[Vec<BitVec>],
    to: OutputTo,
) -> (Outputs, Outputs) {
    memory::run(
        |channel| {
            let mut cot = sender(channel);
            yao_garble(channel, &mut cot, function, garbler, to, &mut prg(3))
        },
        |channel| {
            let mut cot = receiver(channel);
            yao_evaluate(channel, &mut cot, function, evaluator, to)
        },
    )
}

fn random_rows(function: &Prepared, owner: Owner, rows: usize, prg: &mut Prg) -> Vec<Vec<BitVec>> {
    let shape = function.circuit().shape();
    let widths: Vec<u32> =
        (0..shape.inputs.len()).filter(|&i| function.owners()[i] == owner).map(|i| shape.inputs[i]).collect();
    (0..rows).map(|_| widths.iter().map(|&w| BitVec::random(w as usize, prg)).collect()).collect()
}

fn plain(function: &Prepared, garbler: &[BitVec], evaluator: &[BitVec]) -> Vec<BitVec> {
    let (mut g, mut e) = (garbler.iter(), evaluator.iter());
    let inputs: Vec<BitVec> = function
        .owners()
        .iter()
        .map(|owner| if *owner == Owner::Garbler { g.next() } else { e.next() }.unwrap().clone())
        .collect();
    evaluate(function.circuit(), &inputs)
}

#[test]
fn every_built_in_function_gives_the_plain_result() {
    let mut prg = prg(10);
    for (stem, ..) in named::list() {
        let name = match stem {
            "modexp" => "modexp8",
            "mulwide" => "mulwide24",
            name => name,
        };
        let function = Prepared::from_function(&named::find(name).unwrap()).unwrap();
        let g = random_rows(&function, Owner::Garbler, 1, &mut prg);
        let e = random_rows(&function, Owner::Evaluator, 1, &mut prg);
        let (at_garbler, at_evaluator) = run(&function, &g, &e, OutputTo::Both);
        let expected = vec![plain(&function, &g[0], &e[0])];
        assert!(at_garbler.unwrap() == Some(expected.clone()), "{name} at the garbler");
        assert!(at_evaluator.unwrap() == Some(expected), "{name} at the evaluator");
    }
}

#[test]
fn rows_in_any_number_and_outputs_to_either_side() {
    let mut prg = prg(11);
    let function = Prepared::from_function(&named::find("add16").unwrap()).unwrap();
    for rows in [0, 1, 2, 15, 16, 17, 33, 100] {
        for to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let g = random_rows(&function, Owner::Garbler, rows, &mut prg);
            let e = random_rows(&function, Owner::Evaluator, rows, &mut prg);
            let expected: Vec<_> = g.iter().zip(&e).map(|(g, e)| plain(&function, g, e)).collect();
            let (at_garbler, at_evaluator) = run(&function, &g, &e, to);
            assert!(at_garbler.unwrap() == to.garbler().then(|| expected.clone()), "{rows} rows, {to:?}");
            assert!(at_evaluator.unwrap() == to.evaluator().then_some(expected), "{rows} rows, {to:?}");
        }
    }
}

#[test]
fn owners_in_any_order_and_parties_without_inputs() {
    let mut prg = prg(12);
    let circuit = || -> Circuit {
        let mut b = Builder::new();
        let x: Vec<Uint> = [8, 0, 8, 8].iter().map(|&w| b.input(w)).collect();
        let sum = b.add(&x[0], &x[2]);
        let out = b.mul(&sum, &x[3]);
        b.finish(&[out, Uint::constant(0x5a, 8)]).unwrap()
    };
    use Owner::{Evaluator as E, Garbler as G};
    for owners in [[G, E, G, E], [E, E, E, E], [G, G, G, G], [E, G, G, E]] {
        let function = Prepared::new(circuit(), owners.to_vec()).unwrap();
        let g = random_rows(&function, G, 3, &mut prg);
        let e = random_rows(&function, E, 3, &mut prg);
        let expected: Vec<_> = g.iter().zip(&e).map(|(g, e)| plain(&function, g, e)).collect();
        assert_eq!(expected[0][1].as_bytes(), [0x5a]);
        let (at_garbler, _) = run(&function, &g, &e, OutputTo::Garbler);
        assert!(at_garbler.unwrap() == Some(expected), "{owners:?}");
    }
    assert!(matches!(Prepared::new(circuit(), vec![G]), Err(Error::Usage { .. })));
}

#[test]
fn one_correlation_serves_many_executions() {
    let mut prg = prg(13);
    let function = Prepared::from_function(&named::find("mul8").unwrap()).unwrap();
    let g: Vec<_> = (0..5).map(|_| random_rows(&function, Owner::Garbler, 2, &mut prg)).collect();
    let e: Vec<_> = (0..5).map(|_| random_rows(&function, Owner::Evaluator, 2, &mut prg)).collect();
    let (_, got) = memory::run(
        |channel| {
            let mut cot = sender(channel);
            let mut prg = self::prg(14);
            for rows in &g {
                yao_garble(channel, &mut cot, &function, rows, OutputTo::Evaluator, &mut prg).unwrap();
            }
        },
        |channel| {
            let mut cot = receiver(channel);
            let mut one =
                |rows| yao_evaluate(channel, &mut cot, &function, rows, OutputTo::Evaluator).unwrap();
            e.iter().map(|rows| one(rows).unwrap()).collect::<Vec<_>>()
        },
    );
    for i in 0..5 {
        for row in 0..2 {
            assert!(got[i][row] == plain(&function, &g[i][row], &e[i][row]));
        }
    }
}

#[test]
fn many_rows_cost_no_more_rounds_than_one() {
    let function = Prepared::from_function(&named::find("add16").unwrap()).unwrap();
    let rounds = |rows: usize| {
        let g = random_rows(&function, Owner::Garbler, rows, &mut prg(15));
        let e = random_rows(&function, Owner::Evaluator, rows, &mut prg(16));
        let (at_garbler, at_evaluator) = memory::run(
            |channel| {
                let mut cot = sender(channel);
                yao_garble(channel, &mut cot, &function, &g, OutputTo::Both, &mut prg(3)).unwrap();
                channel.stats().rounds
            },
            |channel| {
                let mut cot = receiver(channel);
                yao_evaluate(channel, &mut cot, &function, &e, OutputTo::Both).unwrap();
                channel.stats().rounds
            },
        );
        (at_garbler, at_evaluator)
    };
    assert_eq!(rounds(200), rounds(1));
}

#[test]
fn what_the_parties_disagree_on_is_refused_on_both_sides() {
    let prepared = |name: &str| Prepared::from_function(&named::find(name).unwrap()).unwrap();
    let (add, sub, wide) = (prepared("add16"), prepared("sub16"), prepared("add17"));
    let zero = |f: &Prepared, owner, rows| -> Vec<Vec<BitVec>> {
        let inputs = random_rows(f, owner, rows, &mut prg(0));
        inputs.iter().map(|row| row.iter().map(|i| BitVec::zeros(i.len())).collect()).collect()
    };
    let cases: [(&Prepared, &Prepared, usize, usize, OutputTo, OutputTo, &str); 4] = [
        (&add, &sub, 1, 1, OutputTo::Both, OutputTo::Both, "function"),
        (&add, &wide, 1, 1, OutputTo::Both, OutputTo::Both, "sizes"),
        (&add, &add, 1, 2, OutputTo::Both, OutputTo::Both, "sizes"),
        (&add, &add, 1, 1, OutputTo::Both, OutputTo::Garbler, "outputs"),
    ];
    for (at_g, at_e, rows_g, rows_e, to_g, to_e, word) in cases {
        let (g, e) = (zero(at_g, Owner::Garbler, rows_g), zero(at_e, Owner::Evaluator, rows_e));
        let (garbler, evaluator) = memory::run(
            |channel| {
                let mut cot = sender(channel);
                yao_garble(channel, &mut cot, at_g, &g, to_g, &mut prg(3))
            },
            |channel| {
                let mut cot = receiver(channel);
                yao_evaluate(channel, &mut cot, at_e, &e, to_e)
            },
        );
        for result in [garbler, evaluator] {
            let Err(Error::Mismatch { what, .. }) = result else { panic!("{word} passed") };
            assert!(what.contains(word), "{what}");
        }
    }
    // Two garblers.
    let g = zero(&add, Owner::Garbler, 1);
    let (first, second) = memory::run(
        |channel| {
            let mut cot = sender(channel);
            yao_garble(channel, &mut cot, &add, &g, OutputTo::Both, &mut prg(3))
        },
        |channel| {
            let _ = receiver(channel);
            struct Never;
            impl CotSender for Never {
                fn delta(&self) -> Block {
                    Block::ONE
                }
                fn extend(&mut self, _: &mut Channel, _: &mut [Block]) -> tacit_ot::Result<()> {
                    panic!("no OT before the terms are agreed")
                }
            }
            yao_garble(channel, &mut Never, &add, &g, OutputTo::Both, &mut prg(4))
        },
    );
    assert!(matches!(first, Err(Error::Mismatch { .. })) && matches!(second, Err(Error::Mismatch { .. })));
    // Inputs of other widths are refused before anything is sent.
    let wrong = [vec![BitVec::zeros(15)]];
    let (result, _) = memory::run(
        |channel| {
            let mut cot = sender(channel);
            let result = yao_garble(channel, &mut cot, &add, &wrong, OutputTo::Both, &mut prg(3));
            (result, channel.stats())
        },
        |channel| drop(receiver(channel)),
    );
    assert!(matches!(result.0, Err(Error::Usage { .. })));
}

#[test]
fn a_flipped_output_label_is_noticed_by_the_garbler() {
    // The evaluator follows the protocol but flips one bit of one label it returns.
    let function = Prepared::from_function(&named::find("millionaires8").unwrap()).unwrap();
    for flipped in 0..20 {
        let mut random = prg(20 + flipped);
        let g = random_rows(&function, Owner::Garbler, 1, &mut random);
        let e = random_rows(&function, Owner::Evaluator, 1, &mut random);
        let at = random.below(128);
        let (garbler, _) = memory::run(
            |channel| {
                let mut cot = sender(channel);
                yao_garble(channel, &mut cot, &function, &g, OutputTo::Garbler, &mut prg(3))
            },
            |channel| {
                let mut cot = receiver(channel);
                // One output bit to the garbler: 16 bytes, the last that the evaluator sends.
                let (mut inner, mut relay) = memory::pair_with(channel.session_id());
                std::thread::scope(|scope| {
                    let party = scope.spawn(|| {
                        let result = yao_evaluate(&mut inner, &mut cot, &function, &e, OutputTo::Garbler);
                        drop(inner);
                        result
                    });
                    relay_with_flip(channel, &mut relay, &function, at as usize);
                    party.join().unwrap().unwrap();
                });
            },
        );
        assert!(matches!(garbler, Err(Error::Cheated { .. })), "bit {at} flipped");
    }
}

/// Passes the messages of one run between a garbler and an evaluator, with one bit of the last label flipped.
fn relay_with_flip(garbler: &mut Channel, evaluator: &mut Channel, function: &Prepared, at: usize) {
    let mut pass = |from_evaluator: bool, bytes: usize, flip: Option<usize>| {
        let mut buffer = vec![0u8; bytes];
        let (from, to) =
            if from_evaluator { (&mut *evaluator, &mut *garbler) } else { (&mut *garbler, &mut *evaluator) };
        from.recv(&mut buffer).unwrap();
        if let Some(bit) = flip {
            buffer[bit / 8] ^= 1 << (bit % 8);
        }
        to.send(&buffer).unwrap();
        to.flush().unwrap();
    };
    pass(true, 49, None);
    pass(false, 49, None);
    let bits = function.circuit().shape().inputs[1] as usize;
    // IKNP: 127 columns of at least one block for up to 128 correlations; then the corrections.
    assert!(bits <= 128);
    pass(true, 127 * 16, None);
    pass(true, bits.div_ceil(8), None);
    let total = garbler_bytes(function, 1, OutputTo::Garbler) as usize - 49;
    pass(false, total, None);
    pass(true, 16, Some(at));
}

#[test]
fn the_bytes_told_beforehand_are_the_bytes_sent() {
    let function = Prepared::from_function(&named::find("aes128").unwrap()).unwrap();
    for rows in [1, 20] {
        let g = random_rows(&function, Owner::Garbler, rows, &mut prg(30));
        let e = random_rows(&function, Owner::Evaluator, rows, &mut prg(31));
        let (sent, _) = memory::run(
            |channel| {
                let mut cot = sender(channel);
                let before = channel.stats().bytes_sent;
                yao_garble(channel, &mut cot, &function, &g, OutputTo::Evaluator, &mut prg(3)).unwrap();
                channel.stats().bytes_sent - before
            },
            |channel| {
                let mut cot = receiver(channel);
                yao_evaluate(channel, &mut cot, &function, &e, OutputTo::Evaluator).unwrap();
            },
        );
        let told = garbler_bytes(&function, rows, OutputTo::Evaluator);
        assert!(sent >= told && sent < told + told / 100 + 256, "{rows} rows: told {told}, sent {sent}");
    }
}

fn powers(steps: u64) -> impl Program + Send {
    let shape = Shape { inputs: vec![32, 32], outputs: vec![32] };
    Repeat::new("powers", shape, steps, |b: &mut Builder, i, state: &[Uint], inputs: &[Uint]| {
        let product = b.mul(&state[0], &inputs[1]);
        vec![b.add(&product, &Uint::constant(i as i128, 32))]
    })
}

#[test]
fn programs_stream_through_the_protocol() {
    let owners = [Owner::Garbler, Owner::Evaluator];
    let mut random = prg(40);
    let (x, y) = (BitVec::random(32, &mut random), BitVec::random(32, &mut random));
    let words: Vec<[u64; 1]> = x.iter().chain(y.iter()).map(|b| [u64::from(b)]).collect();
    let run = |at_garbler: u64, at_evaluator: u64| {
        memory::run(
            |channel| {
                let mut cot = sender(channel);
                let inputs = std::slice::from_ref(&x);
                garble_program(
                    channel,
                    &mut cot,
                    powers(at_garbler),
                    &owners,
                    inputs,
                    OutputTo::Both,
                    &mut prg(3),
                )
            },
            |channel| {
                let mut cot = receiver(channel);
                let inputs = std::slice::from_ref(&y);
                evaluate_program(channel, &mut cot, powers(at_evaluator), &owners, inputs, OutputTo::Both)
            },
        )
    };
    let (a, b) = run(300, 300);
    let mut state = words;
    let circuit = {
        let mut builder = Builder::new();
        let (x, y, i) = (builder.input(32), builder.input(32), builder.input(32));
        let product = builder.mul(&x, &y);
        let out = builder.add(&product, &i);
        builder.finish(&[out]).unwrap()
    };
    for i in 0..300u64 {
        let mut inputs = state.clone();
        inputs.extend((0..32).map(|bit| [i >> bit & 1]));
        state.splice(..32, evaluate_words(&circuit, &inputs));
    }
    let expected = BitVec::from_bools(&state[..32].iter().map(|w| w[0] & 1 == 1).collect::<Vec<_>>());
    assert!(a.unwrap() == Some(vec![expected.clone()]));
    assert!(b.unwrap() == Some(vec![expected]));
    let (a, b) = run(3, 4);
    assert!(matches!(a, Err(Error::Mismatch { .. })) && matches!(b, Err(Error::Mismatch { .. })));
}
