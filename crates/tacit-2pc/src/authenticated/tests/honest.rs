use super::*;
use crate::circuit::{Builder, Uint};

#[test]
fn functions_give_what_their_circuits_say_to_whom_they_should() {
    for (name, seed) in [("add8", 1), ("add8", 2), ("add32", 3)] {
        let function = prepared(name);
        let (inputs, outputs) = example(&function, seed);
        for output_to in [OutputTo::Garbler, OutputTo::Evaluator, OutputTo::Both] {
            let [one, two] = run(&function, output_to, &inputs, seed, [None, None]).map(Result::unwrap);
            assert_eq!(one, output_to.garbler().then(|| outputs.clone()), "{name} {output_to:?}");
            assert_eq!(two, output_to.evaluator().then(|| outputs.clone()), "{name} {output_to:?}");
        }
    }
}

#[test]
fn many_rows_run_over_one_session_and_take_fewer_bytes_than_alone() {
    let function = prepared("add8");
    let rows: Vec<([BitVec; 2], BitVec)> = (0..20).map(|seed| example(&function, seed)).collect();
    let side = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 1);
        let inputs: Vec<BitVec> =
            rows.iter().map(|(inputs, _)| inputs[(role == Owner::Evaluator) as usize].clone()).collect();
        let start = channel.stats().bytes_sent;
        let (mut done, mut first) = (0, None);
        for part in [&inputs[..1], &inputs[1..]] {
            let outputs =
                session.run_rows(channel, &function, OutputTo::Both, part, || done += 1).unwrap().unwrap();
            for (output, (_, expected)) in outputs.iter().zip(&rows[done - part.len()..]) {
                assert_eq!(output, expected);
            }
            first.get_or_insert(channel.stats().bytes_sent - start);
        }
        assert_eq!(done, 20);
        let one = first.unwrap();
        let rest = channel.stats().bytes_sent - start - one;
        assert!(rest < 3 * one, "19 rows take {rest} bytes, one {one}");
    };
    memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator));
}

#[test]
fn a_function_without_gates_or_without_a_partys_inputs_runs() {
    let mut builder = Builder::new();
    let (x, y): (Uint, Uint) = (builder.input(3), builder.input(3));
    let xor = builder.xor_bits(&x, &y);
    let circuit = builder.finish(&[xor, x]).unwrap();
    let function = Prepared::new(circuit, vec![Owner::Garbler; 2]).unwrap();
    let (inputs, outputs) = example(&function, 2);
    let results = run(&function, OutputTo::Both, &inputs, 2, [None, None]);
    for result in results {
        assert_eq!(result.unwrap(), Some(outputs.clone()));
    }
}
