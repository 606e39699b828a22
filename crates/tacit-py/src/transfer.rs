//! Correlations as NumPy arrays.

use crate::{fault, peer::Peer};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tacit::job::ot::{Job, Role, Sink, Source};
use tacit::job::triples as beaver;
use tacit::job::vole as correlations;
use tacit::ot::{Choices, Form, Kind, Layout, Messages, Own, Sent};
use tacit::plan::Choice;
use tacit_crypto::{BitVec, Block};
use zeroize::Zeroizing;

/// What a run makes, as it will lie in the arrays: blocks are two words, the low one first.
#[derive(Default)]
struct Kept {
    delta: Option<Block>,
    first: Vec<u64>,
    second: Vec<u64>,
    choices: Vec<u8>,
    /// How messages that are no blocks lie, and they as they travel.
    layout: Option<Layout>,
    rows: Zeroizing<Vec<u8>>,
}

fn words(block: Block) -> [u64; 2] {
    let number = block.to_u128();
    [number as u64, (number >> 64) as u64]
}

impl Sink for Kept {
    fn sent(&mut self, part: Sent<'_>) -> tacit::Result<()> {
        match part {
            Sent::Cot(delta, v) => {
                self.delta = Some(delta);
                self.first.extend(v.iter().flat_map(|&block| words(block)));
            }
            Sent::Pairs(pairs) => {
                self.first.extend(pairs.iter().flat_map(|pair| words(pair[0])));
                self.second.extend(pairs.iter().flat_map(|pair| words(pair[1])));
            }
            // The caller has them already.
            Sent::Own(_) => {}
        }
        Ok(())
    }

    fn received(&mut self, choices: &BitVec, messages: &[Block]) -> tacit::Result<()> {
        self.choices.extend(choices.iter().map(u8::from));
        self.first.extend(messages.iter().flat_map(|&block| words(block)));
        Ok(())
    }

    fn opens(&mut self, layout: Layout) -> tacit::Result<()> {
        self.layout = Some(layout).filter(|layout| *layout != Layout::BLOCKS);
        Ok(())
    }

    fn received_own(&mut self, choices: &BitVec, rows: &[u8]) -> tacit::Result<()> {
        self.choices.extend(choices.iter().map(u8::from));
        self.rows.extend_from_slice(rows);
        Ok(())
    }
}

impl Kept {
    /// The receiver's messages: blocks, bytes `[n, width]`, or a list of `bytes` or `str`.
    fn messages<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(layout) = self.layout else { return blocks(py, self.first) };
        messages(py, layout, &self.rows, self.choices.len())
    }
}

/// `count` messages as they travel: blocks `[n, 2]`, bytes `[n, width]`, or a list of `bytes` or `str`.
pub(crate) fn messages<'py>(
    py: Python<'py>,
    layout: Layout,
    rows: &[u8],
    count: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let each = rows.chunks(layout.width).map(|row| layout.message(row));
    Ok(match layout.form {
        Form::Blocks => {
            let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
            return blocks(py, rows.as_chunks::<8>().0.iter().map(number).collect());
        }
        Form::Bytes => PyArray1::from_slice(py, rows).reshape([count, layout.width])?.into_any(),
        Form::Text => PyList::new(py, each.map(String::from_utf8_lossy).collect::<Vec<_>>())?.into_any(),
        Form::Strings => {
            PyList::new(py, each.map(|row| PyBytes::new(py, row)).collect::<Vec<_>>())?.into_any()
        }
    })
}

/// An array of blocks, `[n, 2]`, that takes the vector over.
fn blocks<'py>(py: Python<'py>, words: Vec<u64>) -> PyResult<Bound<'py, PyAny>> {
    let rows = words.len() / 2;
    Ok(PyArray1::from_vec(py, words).reshape([rows, 2])?.into_any())
}

/// Messages of the sender's own: how they lie, and both of each pair as bytes one after the other, or a list of
/// both of each pair in turn.
pub(crate) fn own_messages(
    py: Python<'_>,
    form: &str,
    width: usize,
    data: &Bound<'_, PyAny>,
) -> PyResult<Messages> {
    let pairs = |strings: Vec<Zeroizing<Vec<u8>>>| {
        let mut pairs = Vec::with_capacity(strings.len() / 2);
        let mut strings = strings.into_iter();
        while let (Some(zero), Some(one)) = (strings.next(), strings.next()) {
            pairs.push([zero, one]);
        }
        pairs
    };
    let bytes = |text: String| Zeroizing::new(text.into_bytes());
    match form {
        "text" => {
            let strings: Vec<String> = data.extract()?;
            Ok(Messages::utf8(&pairs(strings.into_iter().map(bytes).collect())))
        }
        "strings" => {
            let strings: Vec<Vec<u8>> = data.extract()?;
            Ok(Messages::strings(&pairs(strings.into_iter().map(Zeroizing::new).collect())))
        }
        _ => {
            let rows = Zeroizing::new(data.extract::<Vec<u8>>()?);
            let made =
                if form == "blocks" { Messages::of_blocks(rows) } else { Messages::bytes(width, rows) };
            made.map_err(|error| fault::raise(py, &error))
        }
    }
}

/// Oblivious transfers; returns the arrays by the names that the command's archives have.
///
/// `messages` is a form, a width, and what [`own_messages`] takes; `choices` a byte of 0 or 1 each.
#[pyfunction]
#[pyo3(signature = (peer, role, count, *, kind="rot", protocol=None, messages=None, choices=None, max_message=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn ot<'py>(
    py: Python<'py>,
    peer: &Peer,
    role: &str,
    count: u64,
    kind: &str,
    protocol: Option<String>,
    messages: Option<(String, usize, Bound<'py, PyAny>)>,
    choices: Option<Vec<u8>>,
    max_message: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    // Before the peer is called: without NumPy nothing could be handed over.
    py.import("numpy")?;
    let role = match role {
        "sender" => Role::Sender,
        "receiver" => Role::Receiver,
        _ => return Err(fault::usage(py, "role is \"sender\" or \"receiver\"")),
    };
    let kind = match kind {
        "cot" => Kind::Cot,
        "rot" => Kind::Rot,
        "ot" => Kind::Ot,
        _ => {
            return Err(fault::usage(
                py,
                "kind is \"cot\" (correlated), \"rot\" (random) or \"ot\" (chosen)",
            ));
        }
    };
    let own = match (messages, choices) {
        (Some((form, width, data)), _) => Own::Messages(own_messages(py, &form, width, &data)?),
        (_, Some(choices)) => {
            let bools: Zeroizing<Vec<bool>> = Zeroizing::new(choices.iter().map(|byte| *byte != 0).collect());
            let most = max_message.unwrap_or(tacit::ot::MOST_MESSAGE);
            Own::Choices(Choices { bits: BitVec::from_bools(&bools), most })
        }
        _ if max_message.is_some_and(|most| most != tacit::ot::MOST_MESSAGE) => {
            let what = "max_message goes with choices: drawn choices take messages of 1 MiB at most";
            return Err(fault::usage(py, what));
        }
        _ => Own::Drawn,
    };
    let security = peer.security;
    let (kept, stats, name) = peer.run(py, progress, move |session, desk| {
        let choice = Choice { protocol: protocol.as_deref(), ..Choice::default() };
        let pick = session.choose_ot(kind, count, choice)?;
        let name = pick.protocol.name;
        let job = Job::new(role, kind, count, pick, security);
        let mut kept = Kept::default();
        let ran = session.run_own_ot(&job, Source::Protocol, &own, &mut kept, desk)?;
        Ok((kept, ran.stats, name))
    })?;
    let dict = fault::passed(py, &stats, None)?;
    dict.set_item("protocol", name)?;
    match (role, kind) {
        (Role::Sender, Kind::Cot) => {
            dict.set_item("delta", PyArray1::from_slice(py, &words(kept.delta.unwrap_or(Block::ZERO))))?;
            dict.set_item("v", blocks(py, kept.first)?)?;
        }
        // Messages that are no blocks are the caller's own.
        (Role::Sender, _) if kept.second.is_empty() && count > 0 => {}
        (Role::Sender, _) => {
            dict.set_item("m0", blocks(py, kept.first)?)?;
            dict.set_item("m1", blocks(py, kept.second)?)?;
        }
        (Role::Receiver, kind) => {
            dict.set_item("u", PyArray1::from_slice(py, &kept.choices))?;
            dict.set_item(if kind == Kind::Cot { "w" } else { "m" }, kept.messages(py)?)?;
        }
    }
    Ok(dict)
}

/// What a run of correlations makes: blocks are two words, the low one first.
#[derive(Default)]
struct Correlations {
    delta: Option<Block>,
    bytes: Vec<u8>,
    u: Vec<u64>,
    v: Vec<u64>,
}

impl correlations::Sink for Correlations {
    fn sent(&mut self, delta: Option<Block>, v: &[Block]) -> tacit::Result<()> {
        self.delta = self.delta.or(delta);
        self.v.extend(v.iter().flat_map(|&block| words(block)));
        Ok(())
    }

    fn received(&mut self, u: correlations::Inputs<'_>, w: &[Block]) -> tacit::Result<()> {
        match u {
            correlations::Inputs::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            correlations::Inputs::Blocks(blocks) => {
                self.u.extend(blocks.iter().flat_map(|&block| words(block)))
            }
        }
        self.v.extend(w.iter().flat_map(|&block| words(block)));
        Ok(())
    }
}

/// Correlations over a field, w = v + u·Δ (the sender holds Δ and v, the receiver u and w), or with `of` random OTs of
/// so many messages each.
#[pyfunction]
#[pyo3(signature = (peer, role, count, *, field="gf128", of=None, progress=None))]
pub(crate) fn vole<'py>(
    py: Python<'py>,
    peer: &Peer,
    role: &str,
    count: usize,
    field: &str,
    of: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    py.import("numpy")?;
    let role = match role {
        "sender" => Role::Sender,
        "receiver" => Role::Receiver,
        _ => return Err(fault::usage(py, "role is \"sender\" or \"receiver\"")),
    };
    let Some(field) = correlations::Field::named(field) else {
        let names = correlations::Field::names().collect::<Vec<_>>().join(", ");
        return Err(fault::usage(py, format!("field: one of {names}")));
    };
    if count.saturating_mul(of.unwrap_or(1)) > MOST_VOLE {
        return Err(fault::usage(py, format!("count: at most {MOST_VOLE} at a time")));
    }
    let kind = of.map_or(correlations::Kind::Vole(field), correlations::Kind::OneOf);
    let job = correlations::Job { role, kind, count: count as u64, security: peer.security };
    let (kept, stats) = peer.run(py, progress, move |session, desk| {
        let mut kept = Correlations::default();
        let ran = session.run_vole(&job, &mut kept, desk)?;
        Ok((kept, ran.stats))
    })?;
    let dict = fault::passed(py, &stats, None)?;
    let narrow = kind == correlations::Kind::Vole(correlations::Field::P61);
    let array = |words: Vec<u64>| -> PyResult<Bound<'py, PyAny>> {
        if narrow {
            return Ok(PyArray1::from_vec(py, words.into_iter().step_by(2).collect()).into_any());
        }
        match of.filter(|_| role == Role::Sender) {
            Some(p) => Ok(PyArray1::from_vec(py, words).reshape([count, p, 2])?.into_any()),
            None => blocks(py, words),
        }
    };
    if let Some(delta) = kept.delta {
        let delta = words(delta);
        dict.set_item("delta", PyArray1::from_slice(py, if narrow { &delta[..1] } else { &delta }))?;
    }
    if role == Role::Receiver {
        let bytes = of.is_some() || matches!(field, correlations::Field::Sub(_));
        dict.set_item(
            "u",
            if bytes { PyArray1::from_vec(py, kept.bytes).into_any() } else { array(kept.u)? },
        )?;
    }
    let name = match (of, role) {
        (Some(_), _) => "m",
        (None, Role::Sender) => "v",
        (None, Role::Receiver) => "w",
    };
    dict.set_item(name, array(kept.v)?)?;
    Ok(dict)
}

/// Values of one call of [`vole`] or [`triples`], at most.
const MOST_VOLE: usize = 1 << 24;

/// What a run of triples makes: elements as bytes, blocks as two words each, the low one first.
#[derive(Default)]
struct Triples {
    delta: Option<Block>,
    abc: [Zeroizing<Vec<u8>>; 3],
    macs: [Vec<u64>; 3],
    keys: [Vec<u64>; 3],
}

impl beaver::Sink for Triples {
    fn delta(&mut self, delta: Block) -> tacit::Result<()> {
        self.delta = Some(delta);
        Ok(())
    }

    fn shares(&mut self, abc: [&[u8]; 3]) -> tacit::Result<()> {
        self.abc.iter_mut().zip(abc).for_each(|(kept, bytes)| kept.extend_from_slice(bytes));
        Ok(())
    }

    fn tags(&mut self, macs: [&[Block]; 3], keys: [&[Block]; 3]) -> tacit::Result<()> {
        for (kept, all) in [(&mut self.macs, macs), (&mut self.keys, keys)] {
            for (kept, all) in kept.iter_mut().zip(all) {
                kept.extend(all.iter().flat_map(|&block| words(block)));
            }
        }
        Ok(())
    }
}

/// Shares of Beaver triples, by the names that the command's archives have.
#[pyfunction]
#[pyo3(signature = (peer, count, *, kind, field=None, protocol=None, progress=None))]
pub(crate) fn triples<'py>(
    py: Python<'py>,
    peer: &Peer,
    count: usize,
    kind: &str,
    field: Option<&str>,
    protocol: Option<String>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    py.import("numpy")?;
    let kind = beaver::Kind::named(kind, field).map_err(|error| fault::raise(py, &error))?;
    if count > MOST_VOLE {
        return Err(fault::usage(py, format!("count: at most {MOST_VOLE} at a time")));
    }
    let (kept, stats, name) = peer.run(py, progress, move |session, desk| {
        let job = session.choose_triples(kind, count as u64, protocol.as_deref())?;
        let mut kept = Triples::default();
        let ran = session.run_triples(&job, &mut kept, desk)?;
        Ok((kept, ran.stats, job.protocol()))
    })?;
    let dict = fault::passed(py, &stats, None)?;
    dict.set_item("protocol", name)?;
    if let Some(delta) = kept.delta {
        dict.set_item("delta", PyArray1::from_slice(py, &words(delta)))?;
    }
    for (name, bytes) in ["a", "b", "c"].into_iter().zip(&kept.abc) {
        let numbers = || bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let array = match kind.element_bytes() {
            1 => PyArray1::from_slice(py, bytes).into_any(),
            8 => PyArray1::from_vec(py, numbers()).into_any(),
            _ => blocks(py, numbers())?,
        };
        dict.set_item(name, array)?;
    }
    if kept.delta.is_some() {
        let names = ["mac_a", "mac_b", "mac_c", "key_a", "key_b", "key_c"];
        for (name, words) in names.into_iter().zip(kept.macs.into_iter().chain(kept.keys)) {
            dict.set_item(name, blocks(py, words)?)?;
        }
    }
    Ok(dict)
}
