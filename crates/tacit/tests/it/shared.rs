//! Functions of an intersection that neither side sees, between two sessions.

use tacit::job::psi::{Job, Learns, Place, Reveal, Then};
use tacit::two_pc::circuit::{Bit, Builder, Integer, Uint};
use tacit::{Result, Security, Session};

fn address() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

type Side<'a> =
    (&'a [u64], Option<&'a [i64]>, Learns, &'a (dyn Fn(&mut Builder, &[Place]) -> Vec<Uint> + Sync));

fn both(first: Side<'_>, second: Side<'_>) -> [Result<(Option<u64>, u64)>; 2] {
    with_word(first, second, true)
}

/// With both sides' word that numbers may come back to their owner, or without.
fn with_word(first: Side<'_>, second: Side<'_>, word: bool) -> [Result<(Option<u64>, u64)>; 2] {
    let address = address();
    let run = |session: Session, (keys, numbers, learns, then): Side<'_>| {
        let session = session.plaintext()?.security(Security::SemiHonest);
        let job =
            Job { reveal: Reveal::Shares, result_to_owner: word, ..Job::new(learns, Security::SemiHonest) };
        let keys: Vec<String> = keys.iter().map(u64::to_string).collect();
        let (outputs, peer) = session.run_shared(&job, &keys, numbers, then as &Then<'_>)?;
        let number =
            |bits: &tacit::crypto::BitVec| bits.iter().enumerate().map(|(i, bit)| u64::from(bit) << i).sum();
        Ok((outputs.map(|outputs| number(&outputs[0])), peer))
    };
    std::thread::scope(|scope| {
        let theirs = scope.spawn(|| run(Session::listen(&address), first));
        let ours = run(Session::connect(&address), second);
        [theirs.join().unwrap(), ours]
    })
}

/// How many common keys have a larger number on the first side.
fn ahead(b: &mut Builder, places: &[Place]) -> Vec<Uint> {
    let ahead: Vec<Bit> = places.iter().map(|at| b.lt(&at.numbers[1], &at.numbers[0])).collect();
    vec![b.count_ones(&ahead).resize(32)]
}

fn common(b: &mut Builder, places: &[Place]) -> Vec<Uint> {
    let all: Vec<Bit> = places.iter().map(|at| at.common).collect();
    vec![b.count_ones(&all).resize(32)]
}

#[test]
fn both_sides_numbers_meet_at_common_keys_alone() {
    // The table is the smaller set's, whichever side that is.
    for (a, b) in [(0..200, 150..400), (100..400, 0..130), (0..50, 0..50), (0..3, 7..9), (0..0, 0..5)] {
        let (a, b): (Vec<u64>, Vec<u64>) = (a.collect(), b.collect());
        let of_a = |key: u64| (key * 37 % 101) as i64 - 50;
        let of_b = |key: u64| (key * 53 % 103) as i64 - 50;
        let (x, y): (Vec<i64>, Vec<i64>) =
            (a.iter().map(|&key| of_a(key)).collect(), b.iter().map(|&key| of_b(key)).collect());
        let shared = a.iter().filter(|key| b.contains(key));
        let expected = shared.clone().filter(|&&key| of_a(key) > of_b(key)).count() as u64;
        let sides = both((&a, Some(&x), Learns::Both, &ahead), (&b, Some(&y), Learns::Both, &ahead));
        for side in sides {
            assert_eq!(side.unwrap().0, Some(expected));
        }
        // Without numbers, and to one side.
        let [first, second] = both((&a, None, Learns::Peer, &common), (&b, None, Learns::Me, &common));
        assert_eq!(first.unwrap().0, None);
        assert_eq!(second.unwrap().0, Some(shared.count() as u64));
    }
}

#[test]
fn two_functions_are_told_apart_before_anything_is_opened() {
    let keys: Vec<u64> = (0..20).collect();
    let numbers = vec![1; 20];
    let sides =
        both((&keys, Some(&numbers), Learns::Both, &ahead), (&keys, Some(&numbers), Learns::Both, &common));
    for side in sides {
        let error = side.unwrap_err().to_string();
        assert!(error.contains("different functions"), "{error}");
    }
}

/// The sum of the first side's numbers of common keys.
fn sum(b: &mut Builder, places: &[Place]) -> Vec<Uint> {
    let numbers: Vec<_> = places.iter().map(|at| at.numbers[0].clone()).collect();
    vec![b.sum(&numbers, 64).as_uint()]
}

/// Whoever chooses the numbers 1, 2, 4 … and gets their sum reads the intersection from it. An empty `give` does
/// not hide that numbers go in, and a side that is modified to put them in all the same adds zeros.
#[test]
fn numbers_do_not_come_back_to_their_owner_without_both_sides_word() {
    let (ours, theirs): (Vec<u64>, Vec<u64>) = ((0..20).collect(), (10..40).collect());
    let weights: Vec<i64> = (0..20).map(|i| 1 << i).collect();
    let refused = |side: Result<(Option<u64>, u64)>| {
        let error = side.unwrap_err().to_string();
        assert!(error.contains("is needed on both sides"), "{error}");
    };
    for learns in [Learns::Me, Learns::Both] {
        let converse = if learns == Learns::Me { Learns::Peer } else { Learns::Both };
        let [first, second] =
            with_word((&ours, Some(&weights), learns, &sum), (&theirs, None, converse, &sum), false);
        refused(first);
        assert!(second.is_err());
    }
    // To the other side alone they go without a word.
    let [first, second] =
        with_word((&ours, Some(&weights), Learns::Peer, &sum), (&theirs, None, Learns::Me, &sum), false);
    assert_eq!(first.unwrap().0, None);
    assert_eq!(second.unwrap().0, Some((10..20).map(|i| 1 << i).sum()));
    // With the word no more bits come out than the largest number has.
    let wide = |b: &mut Builder, places: &[Place]| {
        let numbers: Vec<_> = places.iter().map(|at| at.numbers[0].clone()).collect();
        vec![b.sum(&numbers, 65).as_uint()]
    };
    let sides = both((&ours, Some(&weights), Learns::Both, &wide), (&theirs, None, Learns::Both, &wide));
    for side in sides {
        let error = side.unwrap_err().to_string();
        assert!(error.contains("65 bits"), "{error}");
    }
}

#[test]
fn a_malicious_session_refuses() {
    let session = Session::connect("127.0.0.1:9").plaintext().unwrap();
    let job = Job { reveal: Reveal::Shares, ..Job::new(Learns::Both, Security::Malicious) };
    let error = session.run_shared(&job, &["a"], None, &common).unwrap_err().to_string();
    assert!(error.contains("follows the protocol"), "{error}");
}
