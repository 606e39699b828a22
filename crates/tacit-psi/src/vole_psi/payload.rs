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
//! 1. The asker sends the names of the columns, the giver the width of each and the number of rows a key.
//!    Salt, hash functions and commitment bind both messages.
//! 2. VOLE-PSI up to the tags, with the asker as receiver. Ho(x, …) gives 256 bits: half of it is the tag,
//!    the other half the row's key, so that neither tells anything of the other.
//! 3. Behind its tags, and in their order, the giver sends for each element a ciphertext of one length: the
//!    rows' cells, each filled up to its column's width, under a stream that BLAKE3 makes of the key, and a
//!    mark of 16 bytes that authenticates it under the stream's first block (`sealing`).
//! 4. The asker opens those at the positions of its matches.
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

use super::sealing::{MARK, Sealer, TEXTS_AT_ONCE};
use super::{Hello, Outcome, Parameters, Proof, Purpose, Run, Tags};
use crate::paxos::{Learns, MAX_ELEMENTS, Options, Progress};
use crate::{Error, Result};
use tacit_crypto::Prg;
use tacit_net::{Channel, Party};
use tacit_ot::Security;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "payload";
const MAGIC: [u8; 16] = *b"tacit-psi give-4";
const DOMAIN: &str = "tacit-psi payload v2";
/// What the streams of rows that go with tags are made of, and those of rows that go back.
const STREAM: &str = "tacit-psi payload v2 stream";
const STREAM_BACK: &str = "tacit-psi payload v2 stream back";
/// Columns that a request names, at most.
pub const MAX_COLUMNS: usize = 1024;
/// Bytes of a request, at most: each name with two bytes in front.
pub(crate) const MAX_REQUEST: usize = 1 << 16;
/// Bytes that are sent for one element, at most.
pub const MAX_SEALED: usize = 1 << 20;
/// Widths are multiples of this, so that they tell less of the longest cell.
const WIDTH_STEP: usize = 8;
/// Bytes sent, or received, at a time, about.
const PIECE: usize = 1 << 16;

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
            return Err(Error::Usage("a column to give is named twice: name it once"));
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
                    let length = length.ok_or(Error::Usage("a cell to give is longer than a mebibyte"))?;
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

/// A matching element and the peer's rows of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Match {
    /// The element, an index into this side's set.
    pub element: u32,
    /// The peer's rows, one unless it gives all of a key; cells in the order asked for, `None` for a null.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

impl core::fmt::Debug for Match {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Match([secret])")
    }
}

/// What a run gave to the side that asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Matches by ascending element.
    pub matches: Vec<Match>,
    /// Elements whose tag was among the peer's and whose cells did not open: the peer cheated. They count
    /// as no matches. The peer must not learn this number, for it can make it depend on single elements.
    pub unopened: u64,
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

/// How the cells of a key are laid out, the same for all keys.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Layout {
    widths: Vec<usize>,
    rows: usize,
}

impl Layout {
    /// Bytes of a row: whether there is one, and each cell's length and bytes.
    fn row(&self) -> usize {
        1 + self.widths.iter().map(|width| 4 + width).sum::<usize>()
    }

    /// Bytes of a ciphertext with its mark.
    fn sealed(&self) -> usize {
        self.rows * self.row() + MARK
    }

    fn is_too_large(&self) -> bool {
        let row = self.widths.iter().try_fold(1usize, |sum, width| sum.checked_add(width.checked_add(4)?));
        let sealed = row.and_then(|row| row.checked_mul(self.rows));
        sealed.is_none_or(|sealed| sealed > MAX_SEALED - MARK)
    }

    /// Writes the cells of `rows` into `out`, zeros behind each.
    fn fill(&self, table: &Table, columns: &[usize], rows: &[u32], out: &mut [u8]) {
        out.fill(0);
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(self.row())) {
            out[0] = 1;
            let mut at = 1;
            for (column, width) in columns.iter().zip(&self.widths) {
                if let Some(cell) = table.cell(*row, *column) {
                    // One more than the length, as zero stands for a null.
                    out[at..at + 4].copy_from_slice(&(cell.len() as u32 + 1).to_le_bytes());
                    out[at + 4..at + 4 + cell.len()].copy_from_slice(cell);
                }
                at += 4 + width;
            }
        }
    }

    /// Reads what [`fill`](Self::fill) wrote; `None` where it did not.
    fn read(&self, plain: &[u8]) -> Option<Vec<Vec<Option<Vec<u8>>>>> {
        let mut rows = Vec::new();
        let mut ended = false;
        for bytes in plain.chunks_exact(self.row()) {
            match bytes[0] {
                1 if !ended => {}
                0 if bytes.iter().all(|byte| *byte == 0) => {
                    ended = true;
                    continue;
                }
                _ => return None,
            }
            let mut cells = Vec::with_capacity(self.widths.len());
            let mut rest = &bytes[1..];
            for width in &self.widths {
                let (length, after) = rest.split_first_chunk::<4>()?;
                let (cell, after) = after.split_at_checked(*width)?;
                rest = after;
                let length = u32::from_le_bytes(*length) as usize;
                let (cell, filling) = cell.split_at_checked(length.saturating_sub(1))?;
                if filling.iter().any(|byte| *byte != 0) {
                    return None;
                }
                cells.push((length > 0).then(|| cell.to_vec()));
            }
            rows.push(cells);
        }
        Some(rows)
    }
}

/// Intersects `elements` with the peer's set; the side that asks gets the asked columns of the matching rows.
///
/// `options.learns` is [`Learns::Me`] for the side that asks, [`Learns::Peer`] for the side that gives and
/// [`Learns::Both`] where each does both.
/// Errors: the caller's (as of [`run`](super::run); duplicates that were not
/// asked for; rows that take more than [`MAX_SEALED`] bytes a key), disagreement of the parties' options, a
/// request for a column that is not given, the peer's cheating, or the link's.
pub fn run<E: AsRef<[u8]>>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    side: Side<'_>,
    options: &Options<'_>,
    progress: &mut Progress<'_>,
) -> Result<Gained> {
    run_one_of(channel, prg, elements, side, options, 0, progress)
}

/// The same as [`run`], for one of 2^`runs_log2` runs that together err or fail as rarely as one
/// ([`Parameters::one_of`]). Both sides say the same number, and bind it to what they announce before. What
/// each run announces beside the sizes, widths and rows a key, [`Table::widen`] and [`Table::make_room`] make
/// the same for all of them.
pub fn run_one_of<E: AsRef<[u8]>>(
    channel: &mut Channel,
    prg: &mut Prg,
    elements: &[E],
    side: Side<'_>,
    options: &Options<'_>,
    runs_log2: u32,
    progress: &mut Progress<'_>,
) -> Result<Gained> {
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
    let agreed = agree(channel, request.as_deref(), given)?;
    if elements.is_empty() || peer_elements == 0 {
        let received = agreed.gets.map(|_| Received { matches: Vec::new(), unopened: 0 });
        return Ok(Gained { received, peer_elements, sealed: 0, peer_receives: false });
    }
    let purpose = Purpose { domain: DOMAIN, terms: &agreed.terms, second_half: true, runs_log2 };
    let receives = options.learns.receives(channel.party(), &[&mine, &theirs]);
    let mut party =
        Run::start_for(channel, prg, elements, options, progress, [mine, theirs], receives, purpose)?;
    let received = if receives {
        let sums = party.receive()?;
        let (mut rest, tags) = party.tags(sums)?;
        let found = rest.compare(&tags)?;
        let layout = agreed.gets.as_ref().ok_or(NOT_GIVEN)?;
        let (received, opened) = open(rest.channel, layout, rest.parameters, &tags, &found)?;
        if let Some(gives) = &agreed.gives {
            gives.prove(rest.channel, &tags, &opened)?;
        }
        Some(received)
    } else {
        let sums = party.send()?;
        let (mut rest, tags) = party.tags(sums)?;
        rest.send_tags(&tags)?;
        if let Some(gives) = &agreed.gives {
            gives.seal(rest.channel, &Sealer::new(STREAM), &tags, tags.elements.iter().copied())?;
            rest.channel.flush()?;
        }
        match &agreed.gets {
            Some(layout) => Some(open_proven(rest.channel, layout, rest.parameters, &tags)?),
            None => None,
        }
    };
    let sealed = agreed.gets.as_ref().map_or(0, |layout| layout.sealed() as u64);
    Ok(Gained { received, peer_elements, sealed, peer_receives: !receives })
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

fn encode_request(columns: &[&str]) -> Result<Vec<u8>> {
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
fn decode_request(mut request: &[u8]) -> Result<Vec<&str>> {
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

const NOT_GIVEN: Error =
    Error::Disagreement { protocol: NAME, what: "a column is asked for that the other side does not give" };

/// The peer's answer to `request`: how it lays out its rows; and both messages.
fn take_answer(channel: &mut Channel, request: &[u8]) -> Result<(Layout, Vec<u8>)> {
    let columns = decode_request(request)?.len();
    let answer = channel.recv_sized(8 + 8 * MAX_COLUMNS)?;
    let number = |bytes: &[u8; 8]| usize::try_from(u64::from_le_bytes(*bytes)).unwrap_or(usize::MAX);
    let (numbers, rest) = answer.as_chunks::<8>();
    let Some((rows, widths)) = numbers.split_first().filter(|_| rest.is_empty()) else {
        return Err(NOT_GIVEN);
    };
    let layout = Layout { widths: widths.iter().map(number).collect(), rows: number(rows) };
    if layout.widths.is_empty() && layout.rows == 0 {
        return Err(Error::Disagreement {
            protocol: NAME,
            what: "the columns asked for take more than a mebibyte a key",
        });
    }
    if layout.widths.len() != columns || layout.rows == 0 || layout.is_too_large() {
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
    let Some(columns) = names.iter().map(place).collect::<Option<Vec<_>>>() else {
        channel.send_sized(&[])?;
        channel.flush()?;
        return Err(NOT_GIVEN);
    };
    let width = |column: &usize| {
        let longest = given.rows.iter().filter_map(|row| table.cell(*row, *column)).map(<[u8]>::len).max();
        longest.unwrap_or(0).max(table.widths[*column]).next_multiple_of(WIDTH_STEP)
    };
    let rows = given.most().max(table.least_rows);
    let layout = Layout { widths: columns.iter().map(width).collect(), rows };
    if layout.is_too_large() {
        channel.send_sized(&0u64.to_le_bytes())?;
        channel.flush()?;
        return Err(Error::Usage(
            "the cells to give take more than a mebibyte a key: give fewer columns or rows",
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
                self.layout.fill(self.of.table, &self.columns, rows, &mut sealed[..length - MARK]);
            }
            let piece = &mut piece[..keys.len() * length];
            sealer.seal(&keys, &mut piece.chunks_exact_mut(length).collect::<Vec<_>>());
            channel.send(piece)?;
        }
        Ok(())
    }

    /// Step 5: where the tags of `opened` stand, and their elements' rows, whose marks are proofs.
    fn prove(&self, channel: &mut Channel, tags: &Tags, opened: &[(u32, u32)]) -> Result<()> {
        channel.send_u64(opened.len() as u64)?;
        for (position, _) in opened {
            channel.send(&position.to_le_bytes())?;
        }
        self.seal(channel, &Sealer::new(STREAM_BACK), tags, opened.iter().map(|(_, element)| *element))?;
        Ok(channel.flush()?)
    }
}

/// Texts of a length that are sent, or received, at a time.
fn at_once(length: usize) -> usize {
    (PIECE / length).clamp(1, TEXTS_AT_ONCE)
}

/// Step 5 of the side that had sent tags.
fn open_proven(
    channel: &mut Channel,
    layout: &Layout,
    parameters: Parameters,
    tags: &Tags,
) -> Result<Received> {
    let most = parameters.sender.min(parameters.encodable(128.0) as usize) as u64;
    let count = channel.recv_u64()?;
    if count > most {
        return malformed("more matches than tags");
    }
    let mut elements = Zeroizing::new(Vec::with_capacity(count as usize));
    let mut next = 0;
    for _ in 0..count {
        let mut position = [0; 4];
        channel.recv(&mut position)?;
        let position = u32::from_le_bytes(position);
        let Some(element) = tags.elements.get(position as usize).filter(|_| position >= next) else {
            return malformed("positions of matches do not ascend");
        };
        next = position + 1;
        elements.push(*element);
    }
    let (sealer, length) = (Sealer::new(STREAM_BACK), layout.sealed());
    let at_once = at_once(length);
    let mut piece = Zeroizing::new(vec![0; at_once.min(elements.len()) * length]);
    let mut received = Received { matches: Vec::new(), unopened: 0 };
    for elements in elements.chunks(at_once) {
        let piece = &mut piece[..elements.len() * length];
        channel.recv(piece)?;
        let keys = elements.iter().map(|element| tags.proofs[*element as usize]).collect::<Vec<_>>();
        let mut texts: Vec<_> = piece.chunks_exact_mut(length).collect();
        let fits = sealer.open(&Zeroizing::new(keys), &mut texts);
        for ((element, text), fits) in elements.iter().zip(texts).zip(fits) {
            // The other side knows what it sent, so an end here tells it nothing.
            let Some(rows) = fits.then(|| layout.read(&text[..length - MARK])).flatten() else {
                return malformed("a match without proof, or with cells that are no rows");
            };
            received.matches.push(Match { element: *element, rows });
        }
    }
    received.matches.sort_unstable_by_key(|found| found.element);
    Ok(received)
}

/// Step 4: opens the ciphertexts at the positions `found`, each with its element, which ascend; and those of
/// `found` that opened.
fn open(
    channel: &mut Channel,
    layout: &Layout,
    parameters: Parameters,
    tags: &Tags,
    mut found: &[(u32, u32)],
) -> Result<(Received, Vec<(u32, u32)>)> {
    let sealer = Sealer::new(STREAM);
    let length = layout.sealed();
    let at_once = at_once(length);
    let mut piece = Zeroizing::new(vec![0; at_once.min(parameters.sender) * length]);
    let (mut received, mut opened) = (Received { matches: Vec::new(), unopened: 0 }, Vec::new());
    for first in (0..parameters.sender).step_by(at_once) {
        let here = at_once.min(parameters.sender - first);
        let piece = &mut piece[..here * length];
        channel.recv(piece)?;
        let (now, later) =
            found.split_at(found.partition_point(|(position, _)| (*position as usize) < first + here));
        found = later;
        let keys: Vec<Proof> = now.iter().map(|(_, element)| tags.proofs[*element as usize]).collect();
        let keys = Zeroizing::new(keys);
        let mut at = now.iter().map(|(position, _)| *position as usize - first).peekable();
        let sealed = piece.chunks_exact_mut(length).enumerate();
        let mut texts: Vec<_> = sealed.filter_map(|(i, text)| at.next_if_eq(&i).map(|_| text)).collect();
        let fits = sealer.open(&keys, &mut texts);
        for ((match_at, text), fits) in now.iter().zip(texts).zip(fits) {
            // A text that authenticates and is no rows is the giver's doing as well.
            match fits.then(|| layout.read(&text[..length - MARK])).flatten() {
                Some(rows) => {
                    received.matches.push(Match { element: match_at.1, rows });
                    opened.push(*match_at);
                }
                None => received.unopened += 1,
            }
        }
    }
    received.matches.sort_unstable_by_key(|found| found.element);
    Ok((received, opened))
}

#[cfg(test)]
#[path = "payload_cheats.rs"]
mod cheats;
