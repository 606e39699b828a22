//! Cheating givers and askers, scripted.

use super::*;
use crate::vole_psi::Finish;
use tacit_net::memory;
use tacit_ot::base;

type Set = Vec<[u8; 8]>;

fn set(range: std::ops::Range<u64>) -> Set {
    range.map(u64::to_le_bytes).collect()
}

/// One row an element, in two columns.
fn table(set: &Set) -> Table {
    let mut table = Table::new(["name", "city"]).unwrap();
    for (i, element) in (0u32..).zip(set) {
        let name = format!("name {}", u64::from_le_bytes(*element));
        table.push(i, [Some(name.as_bytes()), (i % 3 > 0).then_some(b"x".as_slice())]).unwrap();
    }
    table
}

fn asker(channel: &mut Channel, set: &Set, columns: &[&str]) -> Result<Received> {
    let base = base::default();
    let (learns, security) = (Learns::Me, Security::Malicious);
    let options =
        Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
    let side = Side::Asks(columns);
    let gained = run(channel, &mut Prg::from_os(), set, side, &options, &mut |_, _, _| ())?;
    Ok(gained.received.unwrap())
}

fn names(received: &Received) -> Vec<(u32, Vec<u8>)> {
    received.matches.iter().map(|found| (found.element, found.rows[0][0].clone().unwrap())).collect()
}

/// What a giver of `theirs` holds when it is about to send its ciphertexts, with their layout.
struct Sending<'r, 'a> {
    rest: Finish<'r, 'a>,
    tags: Tags,
    sealed: Vec<Vec<u8>>,
    length: usize,
}

/// Elements 0 to 39 ask for "name" of a giver of 30 to 59, which announces `answer` of the honest layout, and
/// sends what `script` does.
fn against_giver(
    answer: impl FnOnce(&mut Layout) + Send,
    script: impl FnOnce(Sending<'_, '_>) + Send,
) -> Result<Received> {
    let (mine, theirs) = (set(0..40), set(30..60));
    let (received, ()) = memory::run(
        |channel| asker(channel, &mine, &["name"]),
        |channel| {
            let base = base::default();
            let (learns, security) = (Learns::Peer, Security::Malicious);
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let mut prg = Prg::from_os();
            let hello = Hello::new(MAGIC, theirs.len(), &options);
            let peer = hello.exchange(channel, NAME, &options).unwrap();
            let request = channel.recv_sized(MAX_REQUEST).unwrap();
            let honest = Layout { widths: vec![8], rows: 1 };
            let mut said = honest.clone();
            answer(&mut said);
            let numbers = [said.rows].into_iter().chain(said.widths.iter().copied());
            let message: Vec<u8> = numbers.flat_map(|number| (number as u64).to_le_bytes()).collect();
            channel.send_sized(&message).unwrap();
            channel.flush().unwrap();
            if said.is_too_large() || said.widths.len() != 1 || said.rows == 0 {
                return;
            }
            let mut accepted = [0];
            channel.recv(&mut accepted).unwrap();
            if accepted != [1] {
                return;
            }
            let terms = [&request[..], &message].concat();
            let purpose = Purpose { domain: DOMAIN, terms: &terms, second_half: true, runs_log2: 0 };
            let progress = &mut |_, _, _| ();
            let mut party =
                Run::start_for(channel, &mut prg, &theirs, &options, progress, [hello, peer], false, purpose)
                    .unwrap();
            let sums = party.send().unwrap();
            let (rest, tags) = party.tags(sums).unwrap();
            let (table, sealer) = (table(&theirs), Sealer::new(STREAM));
            let seal = |element: u32| {
                let mut sealed = vec![0; honest.sealed()];
                let text = honest.sealed() - MARK;
                honest.fill(|row, column| table.cell(row, column), &[0], &[element], &mut sealed[..text]);
                let element = element as usize;
                sealer.seal(&tags.proofs[element..][..1], &mut [&mut sealed]);
                sealed
            };
            let sealed = tags.elements.iter().map(|element| seal(*element)).collect();
            script(Sending { rest, tags, sealed, length: honest.sealed() });
        },
    );
    received
}

impl Sending<'_, '_> {
    /// Sends tags and ciphertexts.
    fn send(mut self) {
        self.rest.send_tags(&self.tags).unwrap();
        for sealed in &self.sealed {
            self.rest.channel.send(sealed).unwrap();
        }
        self.rest.channel.flush().unwrap();
    }

    /// Where the tag of the giver's element stands.
    fn position(&self, element: u32) -> usize {
        self.tags.elements.iter().position(|at| *at == element).unwrap()
    }

    /// Seals another text for an element.
    fn reseal(&mut self, element: u32, text: &[u8]) {
        let position = self.position(element);
        let sealed = &mut self.sealed[position];
        sealed[..text.len()].copy_from_slice(text);
        let element = element as usize;
        Sealer::new(STREAM).seal(&self.tags.proofs[element..][..1], &mut [sealed]);
    }
}

fn expected() -> Vec<(u32, Vec<u8>)> {
    (30..40).map(|i| (i, format!("name {i}").into_bytes())).collect()
}

#[test]
fn an_honest_script_gives_what_is_asked_for() {
    let received = against_giver(|_| (), |sending| sending.send()).unwrap();
    assert_eq!((names(&received), received.unopened), (expected(), 0));
    assert_eq!(received.matches[0].rows[0].len(), 1, "a column that was not asked for");
}

/// A ciphertext that is garbage on a common element is no match and no abort: the giver sees nothing of it,
/// and the asker is told. On any other element it is not even noticed.
/// proof: vole-psi 6.2
#[test]
fn garbage_is_no_match_and_no_abort() {
    for bit in [0, 7, 8 * 13, 8 * 28] {
        let received = against_giver(
            |_| (),
            |mut sending| {
                for element in [2, 25] {
                    let at = sending.position(element);
                    sending.sealed[at][bit / 8] ^= 1 << (bit % 8);
                }
                sending.send();
            },
        );
        let received = received.unwrap();
        let without: Vec<_> = expected().into_iter().filter(|(element, _)| *element != 32).collect();
        assert_eq!((names(&received), received.unopened), (without, 1), "bit {bit}");
    }
    let all = against_giver(
        |_| (),
        |mut sending| {
            sending.sealed.iter_mut().for_each(|sealed| Prg::from_os().fill_bytes(sealed));
            sending.send();
        },
    );
    let all = all.unwrap();
    assert_eq!((all.matches.len(), all.unopened), (0, 10));
}

#[test]
fn ciphertexts_of_other_rows_do_not_open() {
    let swapped = against_giver(
        |_| (),
        |mut sending| {
            let [a, b] = [1, 3].map(|element| sending.position(element));
            sending.sealed.swap(a, b);
            sending.send();
        },
    );
    let swapped = swapped.unwrap();
    assert_eq!((swapped.matches.len(), swapped.unopened), (8, 2));
}

/// What authenticates and is no row counts as garbage too: a length beyond the width, bytes behind the cell,
/// no row where one has cells, another kind of row.
#[test]
fn sealed_texts_that_are_no_rows_do_not_open() {
    // Presence, length, and eight bytes of a cell.
    let text = |present: u8, length: u32, filling: u8| {
        let mut text = vec![present];
        text.extend(length.to_le_bytes());
        text.extend([filling; 8]);
        text
    };
    for (text, opens) in [
        (text(1, 9, b'a'), true),
        (text(1, 0, 0), true),
        (text(0, 0, 0), true),
        (text(1, 10, b'a'), false),
        (text(1, u32::MAX, b'a'), false),
        (text(1, 8, b'a'), false),
        (text(1, 0, 1), false),
        (text(0, 9, b'a'), false),
        (text(2, 9, b'a'), false),
    ] {
        let received = against_giver(
            |_| (),
            |mut sending| {
                let cleared = vec![0; sending.length - MARK];
                sending.reseal(5, &cleared);
                let at = sending.position(5);
                sending.sealed[at].fill(0);
                sending.reseal(5, &text);
                sending.send();
            },
        );
        let received = received.unwrap();
        assert_eq!(received.unopened, !opens as u64, "{text:?}");
        assert_eq!(received.matches.len(), 9 + opens as usize, "{text:?}");
    }
}

#[test]
fn other_widths_than_announced_open_nothing() {
    let wider = against_giver(
        |layout| layout.widths[0] = 16,
        |mut sending| {
            // As many bytes as announced, cut by the honest width.
            sending
                .sealed
                .iter_mut()
                .for_each(|sealed| sealed.resize(Layout { widths: vec![16], rows: 1 }.sealed(), 0));
            sending.send();
        },
    );
    let wider = wider.unwrap();
    assert_eq!((wider.matches.len(), wider.unopened), (0, 10));
    let narrower = against_giver(|layout| layout.widths[0] = 0, |sending| sending.send()).unwrap();
    assert_eq!(narrower.matches.len(), 0);
    assert_eq!(narrower.unopened, 10);
}

#[test]
fn truncated_ciphertexts_are_the_link_s_fault() {
    for left in [0, 29] {
        let cut = against_giver(
            |_| (),
            |mut sending| {
                sending.sealed.truncate(left);
                sending.send();
            },
        );
        assert!(matches!(cut, Err(Error::Net(_))), "{cut:?}");
    }
}

#[test]
fn repeated_tags_and_layouts_without_measure_are_refused() {
    let repeated = against_giver(
        |_| (),
        |sending| {
            let mut sent: Vec<u128> = sending.tags.tags.iter().map(|tag| tag.to_u128()).collect();
            sent[7] = sent[6];
            let Finish { channel, parameters, .. } = &mut { sending.rest };
            let shift = 127 - parameters.prefix_bits();
            let mut bitmap = tacit_crypto::BitVec::zeros(parameters.format().bitmap_bits());
            for (i, tag) in sent.iter().enumerate() {
                bitmap.set(i + (tag >> 1 >> shift) as usize, true);
            }
            channel.send(bitmap.as_bytes()).unwrap();
            let rest = 128 - parameters.prefix_bits() - 8 * parameters.tag_bytes() as u32;
            for tag in sent {
                channel.send(&(tag >> rest).to_le_bytes()[..parameters.tag_bytes()]).unwrap();
            }
            channel.flush().unwrap();
        },
    );
    assert!(matches!(repeated, Err(Error::Cheated { .. })), "{repeated:?}");
    let layouts: [fn(&mut Layout); 5] = [
        |layout| layout.widths[0] = MAX_SEALED,
        |layout| layout.widths[0] = usize::MAX,
        |layout| layout.rows = usize::MAX,
        |layout| layout.widths.push(8),
        |layout| layout.rows = 0,
    ];
    for (i, layout) in layouts.into_iter().enumerate() {
        let refused = against_giver(layout, |_| unreachable!());
        assert!(matches!(refused, Err(Error::Cheated { protocol: NAME, .. })), "{i}: {refused:?}");
    }
}

#[test]
fn requests_that_name_no_columns_are_refused() {
    for request in
        [&[][..], &[5], &[1, 0], &[1, 0, 0xff], &[9, 0, b'n'], b"\x04\0name\x04\0name", &[0xff; 300]]
    {
        let (given, ()) = memory::run(
            |channel| {
                let (theirs, base) = (set(0..9), base::default());
                let (learns, security) = (Learns::Peer, Security::Malicious);
                let options =
                    Options { learns, security, min_peer_elements: 0, max_peer_elements: 9, base: &*base };
                let table = table(&theirs);
                let side = Side::Gives(&table, Duplicates::Refuse);
                run(channel, &mut Prg::from_os(), &theirs, side, &options, &mut |_, _, _| ()).map(|_| ())
            },
            |channel| {
                let base = base::default();
                let (learns, security) = (Learns::Me, Security::Malicious);
                let options =
                    Options { learns, security, min_peer_elements: 0, max_peer_elements: 9, base: &*base };
                Hello::new(MAGIC, 5, &options).exchange(channel, NAME, &options).unwrap();
                channel.send_sized(request).unwrap();
                channel.flush().unwrap();
            },
        );
        assert!(matches!(given, Err(Error::Cheated { protocol: NAME, .. })), "{request:?}: {given:?}");
    }
}

/// An asker that tries all its keys on all ciphertexts opens its matches alone.
#[test]
fn an_asker_opens_nothing_but_its_matches() {
    let (mine, theirs) = (set(0..40), set(30..60));
    let (opened, _) = memory::run(
        |channel| {
            let base = base::default();
            let (learns, security) = (Learns::Me, Security::Malicious);
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let mut prg = Prg::from_os();
            let hello = Hello::new(MAGIC, mine.len(), &options);
            let peer = hello.exchange(channel, NAME, &options).unwrap();
            let request = encode_request(&["name"]).unwrap();
            let agreed = agree(channel, Some(&request), None, (&Bounds::default(), 40)).unwrap();
            let layout = agreed.gets.unwrap();
            let purpose = Purpose { domain: DOMAIN, terms: &agreed.terms, second_half: true, runs_log2: 0 };
            let (progress, hellos) = (&mut |_, _, _| (), [hello, peer]);
            let mut party =
                Run::start_for(channel, &mut prg, &mine, &options, progress, hellos, true, purpose).unwrap();
            let sums = party.receive().unwrap();
            let (mut rest, tags) = party.tags(sums).unwrap();
            let found = rest.compare(&tags).unwrap();
            let (sealer, mut opened) = (Sealer::new(STREAM), Vec::new());
            for position in 0..theirs.len() as u32 {
                let mut sealed = vec![0; layout.sealed()];
                rest.channel.recv(&mut sealed).unwrap();
                for element in 0..mine.len() {
                    let mut sealed = sealed.clone();
                    if sealer.open(&tags.proofs[element..][..1], &mut [&mut sealed])[0] {
                        opened.push([position, element as u32]);
                    }
                }
            }
            assert_eq!(opened, found.pairs());
            opened.len()
        },
        |channel| {
            let base = base::default();
            let (learns, security) = (Learns::Peer, Security::Malicious);
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let table = table(&theirs);
            let side = Side::Gives(&table, Duplicates::Refuse);
            run(channel, &mut Prg::from_os(), &theirs, side, &options, &mut |_, _, _| ()).unwrap();
        },
    );
    assert_eq!(opened, 10);
}

/// A receiver of elements 0 to 39 in an exchange with an honest side of 30 to 89, about to send rows back.
struct Returning {
    positions: Vec<u32>,
    sealed: Vec<Vec<u8>>,
    /// A position whose element it does not have.
    foreign: u32,
    length: usize,
}

/// What the honest side makes of what `script` sends back.
fn against_exchanger(script: impl FnOnce(&mut u64, &mut Returning) + Send) -> Result<Received> {
    let (mine, theirs) = (set(0..40), set(30..90));
    let (learns, security) = (Learns::Both, Security::Malicious);
    let (_, received) = tacit_net::testing::duel(
        0,
        |channel| {
            let base = base::default();
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let mut prg = Prg::from_os();
            let hello = Hello::new(MAGIC, mine.len(), &options);
            let peer = hello.exchange(channel, NAME, &options).unwrap();
            let table = table(&mine);
            let rows = table.rows(mine.len(), Duplicates::Refuse).unwrap();
            let request = encode_request(&["name"]).unwrap();
            let agreed = agree(
                channel,
                Some(&request),
                Some(Giving { table: &table, rows }),
                (&Bounds::default(), 40),
            )
            .unwrap();
            let gives = agreed.gives.unwrap();
            let purpose = Purpose { domain: DOMAIN, terms: &agreed.terms, second_half: true, runs_log2: 0 };
            let progress = &mut |_, _, _| ();
            let mut party =
                Run::start_for(channel, &mut prg, &mine, &options, progress, [hello, peer], true, purpose)
                    .unwrap();
            let sums = party.receive().unwrap();
            let (mut rest, tags) = party.tags(sums).unwrap();
            let found = rest.compare(&tags).unwrap();
            let layout = agreed.gets.unwrap();
            let mut kept = Kept::receive(rest.channel, layout, rest.parameters.sender, &tags, found).unwrap();
            kept.check();
            let opened = kept.opened();
            assert_eq!(opened.len(), 10);
            let length = gives.layout.sealed();
            let seal = |[_, element]: &[u32; 2]| {
                let mut sealed = vec![0; length];
                let rows = gives.of.rows.of(*element);
                gives.layout.fill(
                    |row, column| table.cell(row, column),
                    &gives.columns,
                    rows,
                    &mut sealed[..length - MARK],
                );
                let key = &tags.proofs[*element as usize..][..1];
                Sealer::new(STREAM_BACK).seal(key, &mut [&mut sealed]);
                sealed
            };
            let positions: Vec<u32> = opened.iter().map(|[position, _]| *position).collect();
            let foreign = (0..60).find(|position| !positions.contains(position)).unwrap();
            let sealed = opened.iter().map(seal).collect();
            let (mut returning, mut count) = (Returning { positions, sealed, foreign, length }, 10);
            script(&mut count, &mut returning);
            rest.channel.send_u64(count).unwrap();
            for position in &returning.positions {
                rest.channel.send(&position.to_le_bytes()).unwrap();
            }
            returning.sealed.iter().for_each(|sealed| rest.channel.send(sealed).unwrap());
            rest.channel.flush().unwrap();
        },
        |channel| {
            let base = base::default();
            let options =
                Options { learns, security, min_peer_elements: 0, max_peer_elements: 1 << 20, base: &*base };
            let table = table(&theirs);
            let side = Side::Exchanges(&["city", "name"], &table, Duplicates::Refuse);
            let gained = run(channel, &mut Prg::from_os(), &theirs, side, &options, &mut |_, _, _| ())?;
            Ok(gained.received.unwrap())
        },
    );
    received
}

/// Of a hundred tries to pass an element that the receiver does not have for common, or other cells under a
/// mark, none succeeds: the bound is 2^-128 a try for cells of one block.
///
/// proof: vole-psi 2.10, 6.3
#[test]
fn a_receiver_cannot_return_rows_of_elements_that_it_does_not_have() {
    let honest = against_exchanger(|_, _| ()).unwrap();
    let elements: Vec<u32> = honest.matches.iter().map(|found| found.element).collect();
    assert_eq!(elements, (0..10).collect::<Vec<u32>>());
    assert_eq!(honest.matches[3].rows[0][1].as_deref(), Some(&b"name 33"[..]));
    let mut caught = 0;
    let tries: [fn(&mut u64, &mut Returning); 10] = [
        |_, back| back.positions[0] = back.foreign,
        |_, back| back.sealed[4][0] ^= 1,
        |_, back| *back.sealed[9].last_mut().unwrap() ^= 0x80,
        |_, back| back.sealed.swap(2, 3),
        |_, back| back.sealed[1] = vec![0; back.length],
        |_, back| back.positions[1] = back.positions[0],
        |_, back| back.positions.swap(0, 1),
        |_, back| back.positions[9] = u32::MAX,
        |count, _| *count = 61,
        |count, _| *count = u64::MAX,
    ];
    for attempt in tries {
        for _ in 0..10 {
            let result = against_exchanger(|count, back| {
                attempt(count, back);
                // A foreign position moves where the order wants it.
                if back.positions[0] == back.foreign {
                    let mut pairs: Vec<_> = back.positions.drain(..).zip(back.sealed.drain(..)).collect();
                    pairs.sort_by_key(|(position, _)| *position);
                    (back.positions, back.sealed) = pairs.into_iter().unzip();
                }
            });
            assert!(matches!(result, Err(Error::Cheated { protocol: NAME, .. })), "{result:?}");
            caught += 1;
        }
    }
    assert_eq!(caught, 100);
    // What the docs say it can do: keep matches to itself.
    let withheld = against_exchanger(|count, back| {
        *count = 4;
        back.positions.truncate(4);
        back.sealed.truncate(4);
    });
    assert_eq!(withheld.unwrap().matches.len(), 4);
    let cut = against_exchanger(|_, back| back.sealed.truncate(3));
    assert!(matches!(cut, Err(Error::Net(_))), "{cut:?}");
}
