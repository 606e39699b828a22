//! Matches with the peer's columns: [VOLE-PSI](super) whose sender seals chosen cells of each row under a key
//! that only a holder of the row's element can compute.
//!
//! - Source: steps and bounds of [VOLE-PSI](super); labelled intersection by masking with a second output of
//!   the oblivious function is folklore.
//! - Realises, with the protocol's own security: the *asking* side learns which of its elements the *giving*
//!   side has, and the asked columns of their rows; the giver learns neither. Both learn the sizes of the
//!   sets, the columns' names and widths and the number of rows a key. The giver sends no column but those
//!   that its own [`Table`] names: any other request ends both sides before a secret moves.
//! - Rounds: those of VOLE-PSI and one more for the request and its answer. Bytes: for each element of the
//!   giver's 16, and for each of its rows 1 and 4 a column and the columns' widths.
//!
//! # Steps
//!
//! 1. The asker sends the names of the columns, the giver the width of each and the number of rows a key, and
//!    the asker whether it takes as much ([`Bounds`]). Salt, hash functions and commitment bind the first two.
//! 2. VOLE-PSI up to the tags, with the asker as receiver. Ho(x, …) gives 256 bits: half of it is the tag,
//!    the other half the row's key, so that neither tells anything of the other.
//! 3. Behind its tags, and in their order, the giver sends for each element a ciphertext of one length: the
//!    rows' cells, each filled up to its column's width, under a stream that BLAKE3 makes of the key, and a
//!    mark of 16 bytes that authenticates it under the stream's first block (`sealing`).
//! 4. The asker keeps those at the positions of its matches, by moves that are the same whatever matches, and
//!    opens them after the last message: a giver that watched its pace would else see which rows opened, and
//!    better the wider it makes them.
//! 5. Where both ask and give ([`Side::Exchanges`]), the receiver sends back the positions of what it opened,
//!    and its own rows of these elements, sealed under a second stream of the same keys. Their marks are the
//!    proofs that it has the elements: the sender ends the run where one does not fit. Requests and answers
//!    go both ways at once, and all four messages are bound.
//!
//! # What a cheater can do
//!
//! - A giver may put any cells into its own rows, as it may put any rows into its file.
//! - A giver may send a ciphertext that does not open. The asker then takes the row for *no match*, says how
//!   many there were ([`Received::unopened`]) and goes on: the same as if the giver had not had the row. An
//!   abort there would tell the giver that the asker has this very element, so the count must not reach the
//!   giver either.
//! - Where both ask and give, a receiver may keep matches to itself, as in an intersection that both learn,
//!   and so get rows for which it gives none; it cannot make the sender take an element for common that it
//!   has not itself. A row of the sender's that does not open is no match there, and none goes back for it.
//! - An asker may have encoded more elements than it announced, up to
//!   [`Parameters::encodable`](super::Parameters::encodable), and gets the cells of those too.
//! - Without the key a ciphertext is noise: for rows that are no matches the asker learns lengths alone,
//!   which are equal.

use super::kept::Kept;
use super::layout::Layout;
pub use super::layout::{Match, Received};
pub use super::sealing::MAX_SEALED;
use super::sealing::{MARK, STREAM, STREAM_BACK, Sealer, at_once};
use super::{Hello, Outcome, Parameters, Purpose, Run, Tags};
use crate::matching::Pair;
use crate::paxos::{Learns, MAX_ELEMENTS, Options, Progress};
use crate::{Error, Result, work};
use tacit_crypto::Prg;
use tacit_net::{Channel, Party};
use tacit_ot::Security;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "payload";
const MAGIC: [u8; 16] = *b"tacit-psi give-7";
pub(super) const DOMAIN: &str = "tacit-psi payload v3";
/// Columns that a request names, at most.
pub const MAX_COLUMNS: usize = 1024;
/// Bytes of a request, at most: each name with two bytes in front.
pub(crate) const MAX_REQUEST: usize = 1 << 16;
/// Widths are multiples of this, so that they tell less of the longest cell.
const WIDTH_STEP: usize = 8;
/// What happens where several rows to give have one key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Duplicates {
    /// It is an error.
    Refuse,
    /// The first row is given.
    First,
    /// All rows are given: the greatest number of rows a key is announced, and every ciphertext has room
    /// for as many.
    All,
}

/// The rows that a side gives, in the columns that it names and no others.
pub struct Table {
    columns: Vec<String>,
    /// The least width of each column.
    widths: Vec<usize>,
    /// The fewest rows that every ciphertext has room for.
    least_rows: usize,
    /// The element of each row.
    elements: Vec<u32>,
    /// Each row's cells: where one starts and its length; none for a null.
    cells: Vec<Option<(usize, u32)>>,
    bytes: Zeroizing<Vec<u8>>,
}

impl Table {
    /// A table with these columns and no rows. [`Error::Usage`] where a name stands twice.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Result<Self> {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        if columns.iter().enumerate().any(|(i, name)| columns[..i].contains(name)) {
            return Err(Error::Usage("a column to send is named twice; name it once"));
        }
        let widths = vec![0; columns.len()];
        Ok(Table {
            columns,
            widths,
            least_rows: 1,
            elements: Vec::new(),
            cells: Vec::new(),
            bytes: Zeroizing::new(Vec::new()),
        })
    }

    /// Adds a row of element `element`, an index into the set; `cells` in the columns' order, `None` for a
    /// null. [`Error::Usage`] unless there is one cell a column.
    pub fn push<'c>(
        &mut self,
        element: u32,
        cells: impl IntoIterator<Item = Option<&'c [u8]>>,
    ) -> Result<()> {
        let before = self.cells.len();
        for cell in cells {
            let start = self.bytes.len();
            self.cells.push(match cell {
                Some(cell) => {
                    let length = u32::try_from(cell.len()).ok().filter(|length| *length < MAX_SEALED as u32);
                    let length =
                        length.ok_or(Error::Usage("a cell to send is longer than 1 MiB; shorten it"))?;
                    self.bytes.extend_from_slice(cell);
                    Some((start, length))
                }
                None => None,
            });
        }
        if self.cells.len() - before != self.columns.len() {
            self.cells.truncate(before);
            return Err(Error::Usage("a row to give has one cell for each column"));
        }
        self.elements.push(element);
        Ok(())
    }

    /// Makes a column at least so many bytes wide, so that its width tells nothing of its cells.
    pub fn widen(&mut self, column: &str, width: usize) -> Result<()> {
        let at = self.columns.iter().position(|name| name == column);
        let at = at.ok_or(Error::Usage("no column to give has this name"))?;
        self.widths[at] = self.widths[at].max(width);
        Ok(())
    }

    /// Makes room for at least so many rows a key, so that the room tells nothing of the rows given here.
    pub fn make_room(&mut self, rows: usize) {
        self.least_rows = self.least_rows.max(rows);
    }

    /// The given rows of each of `count` elements.
    fn rows(&self, count: usize, duplicates: Duplicates) -> Result<Given> {
        let mut starts = vec![0u32; count + 1];
        for element in &self.elements {
            let of = starts.get_mut(*element as usize + 1);
            let of = of.ok_or(Error::Usage("a row to give is of an element that the set does not have"))?;
            match duplicates {
                Duplicates::Refuse if *of > 0 => {
                    return Err(Error::DuplicateRow);
                }
                Duplicates::First => *of = 1,
                _ => *of += 1,
            }
        }
        (1..=count).for_each(|element| starts[element] += starts[element - 1]);
        let mut rows = vec![0; starts[count] as usize];
        let mut next = starts.clone();
        for (row, element) in (0u32..).zip(&self.elements) {
            let element = *element as usize;
            if next[element] < starts[element + 1] {
                rows[next[element] as usize] = row;
                next[element] += 1;
            }
        }
        Ok(Given { starts, rows })
    }

    /// The bytes that all columns take for each of `count` elements, as they are sent. Errors as
    /// [`run`] has them of duplicates.
    pub fn bytes_a_key(&self, count: usize, duplicates: Duplicates) -> Result<u64> {
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        let layout = self.layout(&self.rows(count, duplicates)?, &columns);
        Ok(if layout.is_too_large() { u64::MAX } else { layout.sealed() as u64 })
    }

    fn layout(&self, given: &Given, columns: &[usize]) -> Layout {
        let width = |column: &usize| {
            let longest = given.rows.iter().filter_map(|row| self.cell(*row, *column)).map(<[u8]>::len).max();
            longest.unwrap_or(0).max(self.widths[*column]).next_multiple_of(WIDTH_STEP)
        };
        let rows = given.most().max(self.least_rows);
        Layout { widths: columns.iter().map(width).collect(), rows }
    }

    fn cell(&self, row: u32, column: usize) -> Option<&[u8]> {
        let (start, length) = self.cells[row as usize * self.columns.len() + column]?;
        Some(&self.bytes[start..start + length as usize])
    }
}

/// The rows that are given of each element.
#[derive(Default)]
struct Given {
    /// Where each element's rows start, and the last one's end.
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Given {
    fn of(&self, element: u32) -> &[u32] {
        let element = element as usize;
        &self.rows[self.starts[element] as usize..self.starts[element + 1] as usize]
    }

    /// The most rows of an element.
    fn most(&self) -> usize {
        self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }
}

/// This side's part.
#[derive(Clone, Copy)]
pub enum Side<'t> {
    /// Gets the columns of these names.
    Asks(&'t [&'t str]),
    /// Gives what it is asked for, if the table has it.
    Gives(&'t Table, Duplicates),
    /// Both, as the other side does, too: gets the columns of these names, and gives of the table.
    Exchanges(&'t [&'t str], &'t Table, Duplicates),
}

impl<'t> Side<'t> {
    fn asks(&self) -> Option<&'t [&'t str]> {
        match self {
            Side::Asks(columns) | Side::Exchanges(columns, ..) => Some(columns),
            Side::Gives(..) => None,
        }
    }

    fn gives(&self) -> Option<(&'t Table, Duplicates)> {
        match self {
            Side::Gives(table, duplicates) | Side::Exchanges(_, table, duplicates) => {
                Some((table, *duplicates))
            }
            Side::Asks(_) => None,
        }
    }
}

/// What a side that asks takes at most of a peer that gives, whatever that announces.
#[derive(Clone, Copy)]
pub struct Bounds<'b> {
    /// Bytes that the peer may send for each of its keys, all columns and rows together; at most
    /// [`MAX_SEALED`] in any case.
    pub key: u64,
    /// Bytes that this side may hold of rows that match.
    pub memory: u64,
    /// Is told what the peer announced, before this side accepts it.
    pub told: Option<&'b (dyn Fn(&Widths) + Sync)>,
}

/// [`Bounds::key`] unless said otherwise.
pub const USUAL_KEY: u64 = 1 << 16;

impl Default for Bounds<'_> {
    fn default() -> Self {
        Bounds { key: USUAL_KEY, memory: u64::MAX, told: None }
    }
}

/// How much a giver sends for each of its keys, as it announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Widths {
    /// Bytes for each of its keys.
    pub key: u64,
    /// Rows for which there is room.
    pub rows: u64,
    /// Bytes that this side will hold, until it opens what matches.
    pub held: u64,
}

/// What a run gave, rows that match still as they came.
pub struct Collected {
    kept: Option<Kept>,
    asked: bool,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// As [`Gained::sealed`].
    pub sealed: u64,
    peer_receives: bool,
}

impl Collected {
    /// Finds out which matches open, in a time that the number of matches does not change; a peer that is told
    /// more afterwards learns nothing from that. [`open`](Self::open) does it where it was not done.
    pub fn check(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.check();
        }
    }

    /// Which of this side's elements match and open, ascending; `None` to a side that did not ask. Found out in
    /// a time that the matches do not change.
    pub fn matches(&mut self, elements: usize) -> Option<Vec<u32>> {
        self.marks(elements).map(|marks| crate::matching::indices(&marks))
    }

    /// For each of `elements` of this side, 1 where it matches and opens, else 0; as [`matches`](Self::matches).
    pub fn marks(&mut self, elements: usize) -> Option<super::Marks> {
        self.check();
        match &self.kept {
            Some(kept) => Some(kept.marks(elements)),
            None => self.asked.then(|| Zeroizing::new(vec![0; elements])),
        }
    }

    /// The rows for a file, from which [`received_from`] reads them: as many bytes, made in as long, whatever
    /// matches, for at most so many matches; nothing to a side that did not ask.
    pub fn to_bytes(&mut self, most: usize) -> Option<Zeroizing<Vec<u8>>> {
        self.check();
        match &self.kept {
            Some(kept) => Some(kept.to_bytes(most)),
            None => self.asked.then(Zeroizing::default),
        }
    }

    /// Opens the rows. How long that takes depends on how many match: nothing may be said to the peer any more.
    pub fn open(self) -> Result<Gained> {
        let Collected { kept, asked, peer_elements, sealed, peer_receives } = self;
        let received = match kept {
            Some(kept) => Some(kept.open()),
            None => asked.then(Received::none),
        };
        Ok(Gained { received, peer_elements, sealed, peer_receives })
    }
}

/// What a run gave.
pub struct Gained {
    /// What this side received, if it asked.
    pub received: Option<Received>,
    /// Elements of the peer's set, as announced.
    pub peer_elements: u64,
    /// Bytes that the peer sent for each of its elements, which no element's cells exceed; 0 where it gave
    /// none.
    pub sealed: u64,
    /// Whether the peer had the receiver's part.
    peer_receives: bool,
}

impl Gained {
    /// As [`tested_at_most`](super::tested_at_most): how many of this side's `own` elements a cheating peer
    /// can have tested.
    pub fn tested_at_most(&self, own: usize, log2_queries: f64) -> Result<u64> {
        let (peer_elements, peer_received) = (self.peer_elements, self.peer_receives);
        let outcome = Outcome { matches: None, peer_elements, peer_received, protocol: super::NAME };
        super::tested_at_most(&outcome, own, log2_queries)
    }
}

/// Intersects `elements` with the peer's set; the side that asks gets the asked columns of the matching rows.
///
/// `options.learns` is [`Learns::Me`] for the side that asks, [`Learns::Peer`] for the side that gives and
/// [`Learns::Both`] where each does both.
/// Errors: the caller's (as of [`run`](super::run); duplicates that were not
/// asked for; rows that take more than [`MAX_SEALED`] bytes a key), disagreement of the parties' options, a
/// request for a column that is not given, columns wider than [`Bounds::default`], the peer's cheating, or the
/// link's. The rows are opened after the last message of the run; where more is said to the peer afterwards,
/// take [`collect_one_of`].
pub fn run<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    side: Side<'_>,
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Gained> {
    let bounds = Bounds::default();
    collect_one_of(channel, prg, elements, side, &bounds, options, 0, progress)?.open()
}

/// The same as [`run`], for one of 2^`runs_log2` runs that together err or fail as rarely as one
/// ([`Parameters::one_of`]), and within these bounds; what it gave is opened by [`Collected::open`]. Both sides
/// say the same number of runs, and bind it to what they announce before. What each run announces beside the
/// sizes, widths and rows a key, [`Table::widen`] and [`Table::make_room`] make the same for all of them.
#[allow(clippy::too_many_arguments)] // Those of `run`, and two.
pub fn collect_one_of<E: AsRef<[u8]> + Sync>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    side: Side<'_>,
    bounds: &Bounds<'_>,
    options: &Options<'_>,
    runs_log2: u32,
    progress: &mut Progress<'_>,
) -> Result<Collected> {
    if options.security == Security::Malicious && options.base.security() != Security::Malicious {
        return Err(Error::Usage("malicious security needs a malicious base OT"));
    }
    let learns = match side {
        Side::Asks(_) => Learns::Me,
        Side::Gives(..) => Learns::Peer,
        Side::Exchanges(..) => Learns::Both,
    };
    if options.learns != learns {
        return Err(Error::Usage("columns of matches go to the side that asks for them, and to no other"));
    }
    if elements.len() > MAX_ELEMENTS {
        return Err(Error::TooManyElements { count: elements.len() as u64, allowed: MAX_ELEMENTS as u64 });
    }
    // What this side alone can have wrong comes before the first message.
    let request = side.asks().map(encode_request).transpose()?;
    let given = match side.gives() {
        Some((table, duplicates)) => Some(Giving { table, rows: table.rows(elements.len(), duplicates)? }),
        None => None,
    };
    let mine = Hello::new(MAGIC, elements.len(), options);
    let theirs = mine.exchange(channel, NAME, options)?;
    let peer_elements = theirs.elements;
    let matches = peer_elements.min(elements.len() as u64);
    let agreed = agree(channel, request.as_deref(), given, (bounds, matches))?;
    if elements.is_empty() || peer_elements == 0 {
        let asked = agreed.gets.is_some();
        return Ok(Collected { kept: None, asked, peer_elements, sealed: 0, peer_receives: false });
    }
    let purpose = Purpose { domain: DOMAIN, terms: &agreed.terms, second_half: true, runs_log2 };
    let receives = options.learns.receives(channel.party(), &[&mine, &theirs]);
    let mut party =
        Run::start_for(channel, prg, elements, options, progress, [mine, theirs], receives, purpose)?;
    let kept = if receives {
        let sums = party.receive()?;
        let (mut rest, tags) = party.tags(sums)?;
        let found = rest.compare(&tags)?;
        let no_columns = Error::Disagreement { protocol: NAME, what: "no columns were agreed on" };
        let layout = agreed.gets.clone().ok_or(no_columns)?;
        // proof: vole-psi 2.9
        let mut kept = Kept::receive(rest.channel, layout, rest.parameters.sender, &tags, found)?;
        if let Some(gives) = &agreed.gives {
            kept.check();
            gives.prove(rest.channel, &tags, &kept.opened())?;
        }
        Some(kept)
    } else {
        let sums = party.send()?;
        let (mut rest, tags) = party.tags(sums)?;
        rest.send_tags(&tags)?;
        if let Some(gives) = &agreed.gives {
            gives.seal(rest.channel, &Sealer::new(STREAM), &tags, tags.elements.iter().copied())?;
            rest.channel.flush()?;
        }
        let proven = |layout| open_proven(rest.channel, layout, rest.parameters, &tags);
        agreed.gets.clone().map(proven).transpose()?
    };
    let sealed = agreed.gets.as_ref().map_or(0, |layout| layout.sealed() as u64);
    let asked = agreed.gets.is_some();
    Ok(Collected { kept, asked, peer_elements, sealed, peer_receives: !receives })
}

/// What this side may give.
struct Giving<'t> {
    table: &'t Table,
    rows: Given,
}

/// What this side gives of it.
struct Gives<'t> {
    of: Giving<'t>,
    layout: Layout,
    /// The table's column for each one asked.
    columns: Vec<usize>,
}

/// What both sides know after step 1.
struct Agreed<'t> {
    gets: Option<Layout>,
    gives: Option<Gives<'t>>,
    /// All requests and answers, for the hash functions to bind.
    terms: Vec<u8>,
}

/// Step 1 of a side that asks by `request`, gives, or both.
fn agree<'t>(
    channel: &mut Channel,
    request: Option<&[u8]>,
    giving: Option<Giving<'t>>,
    within: (&Bounds<'_>, u64),
) -> Result<Agreed<'t>> {
    if let Some(request) = request {
        channel.send_sized(request)?;
        channel.flush()?;
    }
    let answered = giving.map(|giving| answer(channel, giving)).transpose();
    // A side that has refused hears the other's answer, too, so that neither finds the link cut.
    let gets = match (request, &answered) {
        (None, _) | (_, Err(Error::Net(_) | Error::Cheated { .. })) => None,
        (Some(request), _) => Some(take_answer(channel, request)),
    };
    let (gives, gets) = (answered?, gets.transpose()?);
    accept(channel, gets.as_ref().map(|(layout, _)| layout), gives.is_some(), within)?;
    Ok(match (gets, gives) {
        (Some((layout, gets)), Some((gives, given))) => {
            let first = channel.party() == Party::First;
            let [one, other] = if first { [&gets, &given] } else { [&given, &gets] };
            let terms = [&(one.len() as u64).to_le_bytes()[..], one, other].concat();
            Agreed { gets: Some(layout), gives: Some(gives), terms }
        }
        (gets, gives) => {
            let (gets, asked) = gets.unzip();
            let (gives, given) = gives.unzip();
            Agreed { gets, gives, terms: asked.or(given).unwrap_or_default() }
        }
    })
}

/// The end of step 1: who asked says whether it takes as much as the giver announced, for `matches` keys that
/// may be common at most.
fn accept(
    channel: &mut Channel,
    gets: Option<&Layout>,
    gives: bool,
    (bounds, matches): (&Bounds<'_>, u64),
) -> Result<()> {
    let verdict = gets.map(|layout| {
        let key = layout.sealed() as u64;
        let widths = Widths { key, rows: layout.rows as u64, held: Kept::memory(layout, matches) };
        if let Some(told) = bounds.told {
            told(&widths);
        }
        let allowed = bounds.key.min(MAX_SEALED as u64);
        if key > allowed {
            return Err(Error::PeerRowsTooWide { bytes: key, allowed });
        }
        if widths.held > bounds.memory {
            return Err(Error::Usage(
                "the peer's columns of all keys that may match take more memory than there is: ask for fewer columns, \
                 or split the file",
            ));
        }
        Ok(())
    });
    if let Some(verdict) = &verdict {
        channel.send(&[u8::from(verdict.is_ok())])?;
        channel.flush()?;
    }
    let mut theirs = [1];
    if gives {
        channel.recv(&mut theirs)?;
    }
    verdict.transpose()?;
    match theirs {
        [1] => Ok(()),
        [0] => Err(Error::Disagreement {
            protocol: NAME,
            what: "the peer accepts fewer bytes per key than the columns that it asked for have; have it ask for fewer, or raise its limit",
        }),
        _ => malformed("neither accepted nor refused the columns"),
    }
}

pub(super) fn encode_request(columns: &[&str]) -> Result<Vec<u8>> {
    if columns.is_empty() {
        return Err(Error::Usage("no column is asked for: name one, or ask for rows"));
    }
    let mut request = Vec::new();
    for (i, name) in columns.iter().enumerate() {
        if columns[..i].contains(name) {
            return Err(Error::Usage("a column is asked for twice: name it once"));
        }
        let length = u16::try_from(name.len()).map_err(|_| Error::Usage("a column's name is too long"))?;
        request.extend_from_slice(&length.to_le_bytes());
        request.extend_from_slice(name.as_bytes());
    }
    if columns.len() > MAX_COLUMNS || request.len() > MAX_REQUEST {
        return Err(Error::Usage("too many columns are asked for: at most 1,024, with 64 KiB of names"));
    }
    Ok(request)
}

fn malformed<T>(what: &'static str) -> Result<T> {
    Err(Error::Cheated { protocol: NAME, what })
}

/// The names in a request.
pub(super) fn decode_request(mut request: &[u8]) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    while !request.is_empty() {
        let name = request.split_first_chunk::<2>().and_then(|(length, rest)| {
            let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*length) as usize)?;
            Some((std::str::from_utf8(name).ok()?, rest))
        });
        let Some((name, rest)) = name else { return malformed("the request names no columns") };
        if names.contains(&name) || names.len() == MAX_COLUMNS {
            return malformed("the request names a column twice, or too many of them");
        }
        names.push(name);
        request = rest;
    }
    if names.is_empty() { malformed("the request names no columns") } else { Ok(names) }
}

/// That the peer does not give all of these columns.
fn not_given(asked: &[&str]) -> Error {
    Error::NotGiven { asked: asked.iter().map(|name| (*name).to_owned()).collect() }
}

/// The peer's answer to `request`: how it lays out its rows; and both messages.
fn take_answer(channel: &mut Channel, request: &[u8]) -> Result<(Layout, Vec<u8>)> {
    let asked = decode_request(request)?;
    let answer = channel.recv_sized(8 + 8 * MAX_COLUMNS)?;
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).unwrap_or(usize::MAX);
    let (numbers, rest) = answer.as_chunks::<8>();
    let Some((rows, widths)) = numbers.split_first().filter(|_| rest.is_empty()) else {
        return Err(not_given(&asked));
    };
    let layout = Layout { widths: widths.iter().map(number).collect(), rows: number(rows) };
    if layout.widths.is_empty() && layout.rows == 0 {
        return Err(Error::Disagreement {
            protocol: NAME,
            what: "the columns asked for have more than 1 MiB per key; ask for fewer",
        });
    }
    if layout.widths.len() != asked.len() || layout.rows == 0 || layout.is_too_large() {
        return malformed("it announced other columns than it was asked for, or rows without measure");
    }
    Ok((layout, [request, &answer].concat()))
}

/// Answers the peer's request; and both messages.
fn answer<'t>(channel: &mut Channel, of: Giving<'t>) -> Result<(Gives<'t>, Vec<u8>)> {
    let request = channel.recv_sized(MAX_REQUEST)?;
    let names = decode_request(&request)?;
    let Giving { table, rows: given } = &of;
    let place = |name: &&str| table.columns.iter().position(|own| own == name);
    let columns: Vec<usize> = names.iter().filter_map(place).collect();
    if let Some(asked) = names.iter().find(|name| place(name).is_none()) {
        channel.send_sized(&[])?;
        channel.flush()?;
        return Err(Error::AskedForMore { asked: (*asked).to_owned(), given: table.columns.clone() });
    }
    let layout = table.layout(given, &columns);
    if layout.is_too_large() {
        channel.send_sized(&0u64.to_le_bytes())?;
        channel.flush()?;
        return Err(Error::Usage(
            "the cells to send have more than 1 MiB per key; send fewer columns or rows",
        ));
    }
    let numbers = [layout.rows].into_iter().chain(layout.widths.iter().copied());
    let answer: Vec<u8> = numbers.flat_map(|number| (number as u64).to_le_bytes()).collect();
    channel.send_sized(&answer)?;
    channel.flush()?;
    let terms = [&request[..], &answer].concat();
    Ok((Gives { of, layout, columns }, terms))
}

impl Gives<'_> {
    /// Step 3: the ciphertexts of `elements`.
    fn seal(
        &self,
        channel: &mut Channel,
        sealer: &Sealer,
        tags: &Tags,
        elements: impl Iterator<Item = u32>,
    ) -> Result<()> {
        let length = self.layout.sealed();
        let at_once = at_once(length);
        let mut piece = Zeroizing::new(vec![0; at_once * length]);
        let mut keys = Zeroizing::new(Vec::with_capacity(at_once));
        let mut elements = elements.peekable();
        while elements.peek().is_some() {
            keys.clear();
            for (element, sealed) in elements.by_ref().take(at_once).zip(piece.chunks_exact_mut(length)) {
                keys.push(tags.proofs[element as usize]);
                let rows = self.of.rows.of(element);
                let cell = |row, column| self.of.table.cell(row, column);
                self.layout.fill(cell, &self.columns, rows, &mut sealed[..length - MARK]);
            }
            let piece = &mut piece[..keys.len() * length];
            sealer.seal(&keys, &mut piece.chunks_exact_mut(length).collect::<Vec<_>>());
            work::done(work::Kind::Sealed, piece.len());
            channel.send(piece)?;
        }
        Ok(())
    }

    /// Step 5: where the tags of `opened` stand, and their elements' rows, whose marks are proofs.
    fn prove(&self, channel: &mut Channel, tags: &Tags, opened: &[Pair]) -> Result<()> {
        channel.send_u64(opened.len() as u64)?;
        for [position, _] in opened {
            channel.send(&position.to_le_bytes())?;
        }
        self.seal(channel, &Sealer::new(STREAM_BACK), tags, opened.iter().map(|[_, element]| *element))?;
        Ok(channel.flush()?)
    }
}

/// Step 5 of the side that had sent tags.
fn open_proven(channel: &mut Channel, layout: Layout, parameters: Parameters, tags: &Tags) -> Result<Kept> {
    let most = parameters.sender.min(parameters.encodable(128.0) as usize) as u64;
    let count = channel.recv_u64()?;
    if count > most {
        return malformed("more matches than tags");
    }
    let mut pairs = Zeroizing::new(Vec::with_capacity(count as usize));
    let mut next = 0;
    for _ in 0..count {
        let mut position = [0; 4];
        channel.recv(&mut position)?;
        let position = u32::from_le_bytes(position);
        let Some(element) = tags.elements.get(position as usize).filter(|_| position >= next) else {
            return malformed("positions of matches do not ascend");
        };
        next = position + 1;
        pairs.push([position, *element]);
    }
    let (sealer, length) = (Sealer::new(STREAM_BACK), layout.sealed());
    let at_once = at_once(length);
    let mut piece = Zeroizing::new(vec![0; at_once.min(pairs.len()) * length]);
    let mut kept = Kept::proven(layout, &pairs)?;
    for pairs in pairs.chunks(at_once) {
        let piece = &mut piece[..pairs.len() * length];
        channel.recv(piece)?;
        let keys = pairs.iter().map(|[_, element]| tags.proofs[*element as usize]).collect::<Vec<_>>();
        let mut texts: Vec<_> = piece.chunks_exact_mut(length).collect();
        let fits = sealer.open(&Zeroizing::new(keys), &mut texts);
        // The other side knows what it sent, so an end here tells it nothing.
        // proof: vole-psi 2.10, 6.3
        if !kept.push(piece, fits.iter().all(|fits| *fits)) {
            return malformed("a match without proof, or with cells that are no rows");
        }
    }
    Ok(kept)
}

/// The rows of what [`Collected::to_bytes`] made; nothing where it is something else.
pub fn received_from(bytes: &[u8]) -> Option<Received> {
    if bytes.is_empty() { Some(Received::none()) } else { Kept::read(bytes) }
}

#[cfg(test)]
#[path = "payload_cheats.rs"]
mod cheats;
