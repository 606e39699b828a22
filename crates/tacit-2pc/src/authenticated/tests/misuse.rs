//! What is refused, and that nothing works after it.

use super::*;

/// Runs both sides, each with a function, a rule and a role of its own, and returns their errors.
fn errors(sides: [(&str, OutputTo, Owner); 2]) -> [String; 2] {
    let side = |channel: &mut Channel, (name, output_to, role): (&str, OutputTo, Owner), setup: Owner| {
        let function = prepared(name);
        let (inputs, _) = example(&function, 1);
        let mut session = session_as(channel, setup, role, 1);
        session
            .run(channel, &function, output_to, &inputs[(role == Owner::Evaluator) as usize])
            .unwrap_err()
            .to_string()
    };
    let [one, two] = sides;
    let (one, two) = memory::run(
        |channel| side(channel, one, Owner::Garbler),
        |channel| side(channel, two, Owner::Evaluator),
    );
    [one, two]
}

#[test]
fn parties_that_want_different_things_are_told_so_on_both_sides() {
    let (garbler, evaluator) = (Owner::Garbler, Owner::Evaluator);
    for (sides, words) in [
        ([("add8", OutputTo::Both, garbler), ("add16", OutputTo::Both, evaluator)], "numbers of gates"),
        ([("add8", OutputTo::Both, garbler), ("sub8", OutputTo::Both, evaluator)], "the function"),
        ([("add8", OutputTo::Both, garbler), ("add8", OutputTo::Garbler, evaluator)], "the outputs"),
        ([("add8", OutputTo::Both, garbler), ("add8", OutputTo::Both, garbler)], "who garbles"),
    ] {
        for error in errors(sides) {
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}

#[test]
fn a_preparation_serves_functions_of_its_size_and_inputs_of_their_width_alone() {
    let party = |channel: &mut Channel, role: Owner| {
        let (small, large) = (prepared("add8"), prepared("add16"));
        let mut session = session(channel, role, 1);
        let narrow = session.run(channel, &small, OutputTo::Both, &BitVec::zeros(7)).unwrap_err();
        let independent = session.independent(channel, Demand::of(&small)).unwrap();
        let error = independent.dependent(channel, &large, OutputTo::Both).err().unwrap();
        let ready = session.independent(channel, Demand::of(&small)).unwrap();
        let ready = ready.dependent(channel, &small, OutputTo::Both).unwrap();
        let wide = ready.online(channel, &BitVec::zeros(9)).unwrap_err();
        [narrow, error, wide].map(|error| matches!(error, Error::Usage { .. }))
    };
    let (one, two) =
        memory::run(|channel| party(channel, Owner::Garbler), |channel| party(channel, Owner::Evaluator));
    assert_eq!((one, two), ([true; 3], [true; 3]));
}

/// Nor does it begin again by itself: whoever wants another try needs another job.
///
/// proof: authenticated 6.5
#[test]
fn a_session_whose_peer_was_caught_serves_no_more() {
    struct Liar;
    impl Script for Liar {
        fn mac_digest(&mut self, digest: &mut [u8; 32]) {
            digest[0] ^= 1;
        }
    }
    let function = prepared("add8");
    let (inputs, _) = example(&function, 1);
    let party = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 1);
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let first = session.run(channel, &function, OutputTo::Both, input);
        (first, session.run(channel, &function, OutputTo::Both, input))
    };
    let (_, (first, second)) = memory::run(
        |channel| scripted(Some(Box::new(Liar)), || party(channel, Owner::Garbler)),
        |channel| party(channel, Owner::Evaluator),
    );
    assert!(matches!(first, Err(Error::Cheated { .. })), "{first:?}");
    assert!(matches!(second, Err(Error::Usage { .. })), "{second:?}");
}

/// Nor does anything else that was made with the Δ of a run in which the peer was caught.
#[test]
fn a_check_that_fails_in_one_phase_spends_what_the_session_made() {
    struct Late;
    impl Script for Late {
        fn gates_digest(&mut self, digest: &mut [u8; 32]) {
            digest[0] ^= 1;
        }
    }
    let function = prepared("add8");
    let (inputs, _) = example(&function, 1);
    let party = |channel: &mut Channel, role: Owner| {
        let mut session = session(channel, role, 1);
        let input = &inputs[(role == Owner::Evaluator) as usize];
        let mut made = || session.independent(channel, Demand::of(&function)).unwrap();
        let (one, two, three) = (made(), made(), made());
        let ready = two.dependent(channel, &function, OutputTo::Both).unwrap();
        let caught = one.dependent(channel, &function, OutputTo::Both).unwrap().online(channel, input);
        let after = [
            ready.online(channel, input).err(),
            three.dependent(channel, &function, OutputTo::Both).err(),
            session.independent(channel, Demand::of(&function)).err(),
        ];
        (caught, after)
    };
    let (_, (caught, after)) = memory::run(
        |channel| scripted(Some(Box::new(Late)), || party(channel, Owner::Garbler)),
        |channel| party(channel, Owner::Evaluator),
    );
    assert!(matches!(caught, Err(Error::Cheated { .. })), "{caught:?}");
    assert!(after.iter().all(|error| matches!(error, Some(Error::Usage { .. }))), "{after:?}");
}
