use super::*;

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
