//! Both parties over a channel: exact against a plain join, refusals, and scripted cheaters, each caught.

use super::*;
use crate::oprf::tags::tests::{Trap, trapped};
use crate::oprf::tags::{Published, TagFile, TagsError, Terms, publish};
use rfc9497::ServerKey;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use tacit_crypto::group::{Points, Scalars};
use tacit_net::testing::{duel, paced};
use tacit_net::{Channel, LinkModel, Party, SessionId, memory};
use tacit_store::sealed::FileKey;
use tempfile::TempDir;

type Tags = TagFile<Cursor<Vec<u8>>>;

struct Large {
    bytes: Vec<u8>,
    published: Published,
}

impl Large {
    fn new(elements: &[[u8; 8]], lifetime: u64) -> Self {
        let terms = Terms { lifetime, per_client: lifetime, key: "test".into() };
        let mut out = Cursor::new(Vec::new());
        let threads = NonZeroUsize::new(2).unwrap();
        let published =
            publish(&mut out, elements, terms, threads, &mut Prg::from_os(), &mut |_| ()).unwrap();
        Large { bytes: out.into_inner(), published }
    }

    fn tags(&self) -> Tags {
        TagFile::open(Cursor::new(self.bytes.clone())).unwrap()
    }

    fn private(&self) -> (TempDir, Mutex<Private>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.oprf");
        let seal = FileKey::from_bytes(&[7; 32]).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        private::create(&mut file, &self.published, &seal, &mut Prg::from_os()).unwrap();
        let private = Private::open(&path, &seal).unwrap();
        (folder, Mutex::new(private))
    }
}

fn set(numbers: impl IntoIterator<Item = u64>) -> Vec<[u8; 8]> {
    numbers.into_iter().map(u64::to_le_bytes).collect()
}

/// 700 elements, for the cheaters.
fn large() -> &'static Large {
    static LARGE: OnceLock<Large> = OnceLock::new();
    LARGE.get_or_init(|| Large::new(&set(0..700), 1 << 12))
}

/// The client, up to the end of its session.
fn asked(channel: &mut Channel, file: &mut Tags, elements: &[[u8; 8]]) -> Result<Zeroizing<Vec<u128>>> {
    file.checked()?;
    let (publication, digest) = (file.publication().clone(), *file.digest());
    query(channel, &mut Prg::from_os(), &publication, &digest, elements, &mut |_| ())
}

/// The client, up to the matches.
fn client(channel: &mut Channel, mut file: Tags, elements: &[[u8; 8]]) -> Result<Vec<u32>> {
    let tags = asked(channel, &mut file, elements)?;
    Ok(matches(&file.contains(&tags)?))
}

fn plain_join(small: &[[u8; 8]], large: &[[u8; 8]]) -> Vec<u32> {
    let large: std::collections::HashSet<_> = large.iter().collect();
    (0..).zip(small).filter(|(_, x)| large.contains(x)).map(|(at, _)| at).collect()
}

#[test]
fn the_result_is_the_plain_join() {
    let hundred_thousand = set((0..100_000).map(|i| 3 * i));
    let cases = [
        (set([]), set([])),
        (set([]), set(0..10)),
        (set(0..10), set([])),
        (set([5]), set([5])),
        (set([5]), set([6])),
        (set(0..CHUNK as u64), set(100..900)),
        (set(0..CHUNK as u64 + 1), set(100..900)),
        (set(0..1000), hundred_thousand),
    ];
    for (small, large) in cases {
        let published = Large::new(&large, 4096);
        let (_folder, private) = published.private();
        let (served, found) = memory::run(
            |channel| serve(channel, &mut Prg::from_os(), &private, &[1; 32], u64::MAX, &mut |_| ()),
            |channel| client(channel, published.tags(), &small),
        );
        assert_eq!(served.unwrap(), small.len() as u64);
        assert_eq!(private.lock().unwrap().answered(), small.len() as u64);
        assert_eq!(found.unwrap(), plain_join(&small, &large), "{} × {}", small.len(), large.len());
    }
}

/// What the publisher sees of a client's pace, and the client of the publisher's, is the same whatever is asked
/// and whatever of it was published: nothing, a part, all.
#[test]
fn queries_show_nothing_but_their_number() {
    let views = [set(5000..5300), set((0..300).map(|i| 5 * i)), set(0..300)].map(|small| {
        let (_folder, private) = large().private();
        let (_, _, paces) = paced(
            work::clock,
            |channel| {
                let prg = &mut Prg::from_os();
                serve(channel, prg, &private, &[1; 32], u64::MAX, &mut |_| ()).unwrap()
            },
            |channel| asked(channel, &mut large().tags(), &small).unwrap(),
        );
        paces
    });
    assert!(views[0].iter().all(|pace| pace.len() > 3), "work is noted");
    assert!(views[0] == views[1] && views[1] == views[2]);
}

/// A publisher that gives one key a block of its own, with answers and proofs all right.
struct Trapper {
    bytes: Vec<u8>,
    key: ServerKey,
}

impl Trapper {
    fn new(target: u64, trap: Trap) -> Self {
        let key = ServerKey::generate(&mut Prg::from_os());
        Trapper { bytes: trapped(&key, &target.to_le_bytes(), trap), key }
    }

    fn open(&self) -> Result<Tags> {
        TagFile::open(Cursor::new(self.bytes.clone()))
    }

    /// Answers, and returns how many queries there were.
    fn serve(&self, channel: &mut Channel) -> Result<usize> {
        let queries = greet(channel, self.open()?.digest(), 0)? as usize;
        channel.send(&[ANSWERED])?;
        channel.send_u64(1 << 12)?;
        channel.flush()?;
        for start in (0..queries).step_by(CHUNK) {
            let mut blinded = vec![[0; 32]; CHUNK.min(queries - start)];
            channel.recv(blinded.as_flattened_mut())?;
            let answer = honest(&blinded, &self.key, &mut Prg::from_os());
            channel.send(answer.elements.as_flattened())?;
            channel.send(&answer.proof)?;
            channel.flush()?;
        }
        Ok(queries)
    }
}

const TRAPPED: u64 = 70;

/// The block of one key cannot be read, or has a byte behind its tags: no query is made, whether the key is
/// asked for or not.
///
/// proof: tags 2.7
#[test]
fn a_block_that_is_damaged_for_one_key_alone_ends_the_run_before_any_query() {
    for trap in [Trap::Broken, Trap::Padded(1), Trap::Padded(300)] {
        let publisher = Trapper::new(TRAPPED, trap);
        for asks in [set(TRAPPED - 3..TRAPPED + 3), set(5000..5006)] {
            let (served, said) = memory::run(
                |channel| publisher.serve(channel),
                |channel| client(channel, publisher.open().unwrap(), &asks),
            );
            assert!(matches!(said, Err(Error::Tags(TagsError::Damaged { .. }))), "{trap:?}: {said:?}");
            assert!(served.is_err(), "{trap:?}: {served:?}");
        }
    }
    let publisher = Trapper::new(TRAPPED, Trap::Padded(1 << 20));
    assert!(matches!(publisher.open(), Err(Error::Tags(TagsError::Damaged { .. }))));
}

/// From the last answer to the end of its session a client works at nothing that depends on what it asked for,
/// though a look-up right then would show it.
///
/// proof: tags 2.7
#[test]
fn a_publisher_does_not_see_by_the_pace_whether_its_key_was_asked_for() {
    let asks = [set(0..300), set(5000..5300)];
    let views = |looks_up: bool| {
        let publisher = Trapper::new(TRAPPED, Trap::Valid);
        asks.clone().map(|asks| {
            let (served, found, [_, pace]) = paced(
                work::clock,
                |channel| publisher.serve(channel).unwrap(),
                |channel| {
                    let found = match looks_up {
                        false => asked(channel, &mut publisher.open().unwrap(), &asks).map(|_| None),
                        true => client(channel, publisher.open().unwrap(), &asks).map(Some),
                    };
                    found.unwrap()
                },
            );
            assert_eq!(served, 300);
            (found, pace)
        })
    };
    let [(_, one), (_, other)] = views(false);
    assert!(one.len() > 3 && one == other);
    // For either as many blocks may be read by chance, so more than one publisher is asked.
    let is_noted = (0..12).any(|_| {
        let [(found, one), (nothing, other)] = views(true);
        assert_eq!((found, nothing), (Some(vec![TRAPPED as u32]), Some(vec![])));
        one != other
    });
    assert!(is_noted, "the look-up is noted");
}

#[test]
fn a_query_costs_64_bytes_and_what_is_sent_depends_on_the_number_alone() {
    let sizes = [set(0..1024), set(5000..6024)].map(|small| {
        let (_folder, private) = large().private();
        let (_, stats) = memory::run(
            |channel| serve(channel, &mut Prg::from_os(), &private, &[1; 32], u64::MAX, &mut |_| ()).unwrap(),
            |channel| {
                client(channel, large().tags(), &small).unwrap();
                channel.stats()
            },
        );
        (stats.bytes_sent, stats.bytes_received, stats.messages_sent, stats.messages_received)
    });
    assert_eq!(sizes[0], sizes[1]);
    let bytes = sizes[0].0 + sizes[0].1;
    assert!((65_536..100_000).contains(&bytes), "{bytes} bytes");
}

/// proof: tags 2.3
#[test]
fn more_queries_than_are_left_are_refused_on_both_sides_and_not_answered() {
    let published = Large::new(&set(0..3), 300);
    let (_folder, private) = published.private();
    let ask = |client_id: u8, n: u64| {
        let small = set(0..n);
        memory::run(
            |channel| serve(channel, &mut Prg::from_os(), &private, &[client_id; 32], u64::MAX, &mut |_| ()),
            |channel| client(channel, published.tags(), &small),
        )
    };
    let (served, found) = ask(1, 290);
    assert_eq!((served.unwrap(), found.unwrap()), (290, vec![0, 1, 2]));
    let (served, found) = ask(1, 11);
    for said in [served.map(|_| ()), found.map(|_| ())] {
        assert!(matches!(said, Err(Error::TooManyQueries { asked: 11, left: 10 })), "{said:?}");
    }
    // The second has all of its own, and is told no number of what the first has asked.
    let (served, found) = ask(2, 11);
    for said in [served.map(|_| ()), found.map(|_| ())] {
        assert!(matches!(said, Err(Error::Outlived { asked: 11 })), "{said:?}");
    }
    let (served, found) = ask(2, 10);
    assert_eq!((served.unwrap(), found.unwrap()), (10, vec![0, 1, 2]));
}

/// proof: tags 2.2
#[test]
fn another_publication_or_two_clients_are_told_apart() {
    let other = Large::new(&set(0..700), 1 << 12);
    let (_folder, private) = other.private();
    let (served, found) = memory::run(
        |channel| serve(channel, &mut Prg::from_os(), &private, &[1; 32], u64::MAX, &mut |_| ()),
        |channel| client(channel, large().tags(), &set(0..3)),
    );
    for said in [served.map(|_| ()), found.map(|_| ())] {
        assert!(matches!(said, Err(Error::Disagreement { .. })), "{said:?}");
    }
    assert_eq!(private.lock().unwrap().answered(), 0);
    let (a, b) = memory::run(
        |channel| client(channel, large().tags(), &set(0..3)),
        |channel| client(channel, large().tags(), &set(0..3)),
    );
    assert!(a.is_err() && b.is_err());
}

/// What an honest client says to a server that answers each chunk by `script`, for 600 queries.
fn against(
    script: impl Fn(usize, &[Encoding], &ServerKey, &mut Prg) -> Evaluated + Send + Sync,
) -> Result<Vec<u32>> {
    let small = set(0..600);
    let ((), said) = duel(
        0,
        |channel| {
            let mut prg = Prg::from_os();
            let queries = greet(channel, &large().published.digest, 0).unwrap();
            channel.send(&[0]).unwrap();
            channel.send_u64(0).unwrap();
            channel.flush().unwrap();
            for (number, start) in (0..queries as usize).step_by(CHUNK).enumerate() {
                let mut blinded = vec![[0; 32]; CHUNK.min(queries as usize - start)];
                // A client that has noticed hangs up.
                if channel.recv(blinded.as_flattened_mut()).is_err() {
                    return;
                }
                let answer = script(number, &blinded, &large().published.key, &mut prg);
                let sent = channel
                    .send(answer.elements.as_flattened())
                    .and_then(|()| channel.send(&answer.proof))
                    .and_then(|()| channel.flush());
                if sent.is_err() {
                    return;
                }
            }
        },
        |channel| client(channel, large().tags(), &small),
    );
    said
}

/// What a cheating server makes of its honest answer to a chunk.
type Cheat = dyn Fn(&mut Evaluated, &[Encoding], &mut Prg) + Sync;

fn honest(blinded: &[Encoding], key: &ServerKey, prg: &mut Prg) -> Evaluated {
    Suite::new(Mode::Verifiable).evaluate(key, blinded, b"", prg).unwrap()
}

/// proof: tags 2.6
#[test]
fn servers_that_cheat_in_any_chunk_are_caught() {
    assert_eq!(against(|_, blinded, key, prg| honest(blinded, key, prg)).unwrap().len(), 600);
    // Where in the run the cheat is: the first, a middle and the last, shorter chunk.
    for bad in 0..3 {
        let cheats: [(&str, &Cheat); 7] = [
            ("a wrong proof", &|e, _, prg| prg.fill_bytes(&mut e.proof[..20])),
            ("a key for one query", &|e, blinded, prg| {
                let other = ServerKey::generate(prg);
                e.elements[7] = honest(&blinded[7..8], &other, prg).elements[0];
            }),
            ("a key for one chunk, proved", &|e, blinded, prg| {
                *e = honest(blinded, &ServerKey::generate(prg), prg);
            }),
            ("evaluations swapped", &|e, _, _| e.elements.swap(0, 80)),
            ("the identity", &|e, _, _| e.elements[3] = [0; 32]),
            ("no canonical encoding", &|e, _, _| e.elements[3] = [0xff; 32]),
            ("another element", &|e, _, prg| {
                e.elements[3] = Points::mul_base(&Scalars::random(1, prg)).encode()[0];
            }),
        ];
        for (name, cheat) in cheats {
            let said = against(|number, blinded, key, prg| {
                let mut answer = honest(blinded, key, prg);
                if number == bad {
                    cheat(&mut answer, blinded, prg);
                }
                answer
            });
            assert!(matches!(said, Err(Error::Cheated { .. })), "{name} in chunk {bad}: {said:?}");
        }
    }
    // The honest answer to another chunk, with its proof.
    let first = std::sync::Mutex::new(None);
    let said = against(|number, blinded, key, prg| {
        let answer = honest(blinded, key, prg);
        let mut first = first.lock().unwrap();
        match (number, &*first) {
            (1, Some(before)) => Evaluated::clone(before),
            _ => {
                *first = Some(answer.clone());
                answer
            }
        }
    });
    assert!(matches!(said, Err(Error::Cheated { .. })), "{said:?}");
}

/// proof: tags 2.5
#[test]
fn clients_that_send_no_elements_are_caught_and_their_queries_stay_counted() {
    let mut negative = [0xff; 32];
    (negative[0], negative[31]) = (0xec, 0x7f);
    for bad in [[0; 32], [0xff; 32], negative] {
        let (_folder, private) = large().private();
        let ((), said) = duel(
            0,
            |channel| {
                greet(channel, &large().published.digest, 2).unwrap();
                channel.recv(&mut [0]).unwrap();
                channel.recv_u64().unwrap();
                channel.send(&large().published.publication.public).unwrap();
                channel.send(&bad).unwrap();
                channel.flush().unwrap();
            },
            |channel| serve(channel, &mut Prg::from_os(), &private, &[1; 32], u64::MAX, &mut |_| ()),
        );
        assert!(matches!(said, Err(Error::Cheated { .. })), "{said:?}");
        assert_eq!(private.lock().unwrap().answered(), 2);
    }
}

#[test]
fn garbage_and_silence_end_in_an_error() {
    for garbage in [0, 1, HELLO, HELLO + 40] {
        let (_folder, private) = large().private();
        let ((), said) = duel(
            0,
            |channel| {
                channel.send(&vec![0xa5; garbage]).unwrap();
                channel.flush().unwrap();
            },
            |channel| {
                serve(channel, &mut Prg::from_os(), &private, &[1; 32], u64::MAX, &mut |_| ()).map(|_| ())
            },
        );
        assert!(said.is_err() && private.lock().unwrap().answered() == 0);
        let ((), said) = duel(
            0,
            |channel| {
                channel.send(&vec![0xa5; garbage]).unwrap();
                channel.flush().unwrap();
            },
            |channel| client(channel, large().tags(), &set(0..3)).map(|_| ()),
        );
        assert!(said.is_err());
    }
    // A verdict that is neither yes nor no.
    let ((), said) = duel(
        0,
        |channel| {
            greet(channel, &large().published.digest, 0).unwrap();
            channel.send(&[3]).unwrap();
            channel.send_u64(9).unwrap();
            channel.flush().unwrap();
        },
        |channel| client(channel, large().tags(), &set(0..3)),
    );
    assert!(matches!(said, Err(Error::Cheated { .. })), "{said:?}");
}

/// Seeded, every byte of the file of tags and of the wire is the same again; a change of either is one of the
/// version. The hashes are what the test prints when they differ.
#[test]
fn the_bytes_of_file_one_and_wire_two_are_the_same_again() {
    let prg = |seed| Prg::from_seed(tacit_crypto::Block::new(seed));
    let terms = Terms { lifetime: 1000, per_client: 1000, key: "test".into() };
    let mut out = Cursor::new(Vec::new());
    let published =
        publish(&mut out, &set(0..1000), terms, NonZeroUsize::MIN, &mut prg(1), &mut |_| ()).unwrap();
    let large = Large { bytes: out.into_inner(), published };
    let (_folder, private) = large.private();
    let (record_a, record_b) = (memory::Record::default(), memory::Record::default());
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let id = SessionId([9; 32]);
    let server = Channel::new(record_a.of(a), Party::First, id);
    let client = Channel::new(record_b.of(b), Party::Second, id);
    let publication = large.published.publication.clone();
    let small = set(900..1200);
    memory::join(
        server,
        client,
        |server| serve(server, &mut prg(2), &private, &[1; 32], u64::MAX, &mut |_| ()).unwrap(),
        |client| {
            query(client, &mut prg(3), &publication, &large.published.digest, &small, &mut |_| ()).unwrap()
        },
    );
    let hash = |parts: &[Vec<u8>]| blake3::hash(&parts.concat()).to_hex()[..16].to_owned();
    let frames = |record: &memory::Record| -> Vec<Vec<u8>> {
        record.frames().into_iter().map(|(_, bytes)| bytes).collect()
    };
    let found =
        [hash(std::slice::from_ref(&large.bytes)), hash(&frames(&record_b)), hash(&frames(&record_a))];
    assert_eq!(found, ["dc7eac853559c373", "17fd59becc479b91", "f1193dc4b23f8339"]);
}
