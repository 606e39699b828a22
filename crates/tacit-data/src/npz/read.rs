//! Arrays out of an archive of NumPy's.

use crate::fault::{Error, Result, guarded};
use crate::file_id::open_fault;
use crate::machine::available_memory;
use npyz::{DType, NpyFile, Order, TypeChar};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use tacit_crypto::text::shown;
use zeroize::{Zeroize, Zeroizing};

/// The elements of an array in its order, the last axis fastest; overwritten when dropped.
pub enum Elements {
    /// Of unsigned bytes, and of truth values.
    U8(Zeroizing<Vec<u8>>),
    /// Of unsigned 64-bit numbers.
    U64(Zeroizing<Vec<u64>>),
    /// Of byte strings (`|S`): each as long as its own bytes, without the zeros behind them.
    Strings(Vec<Zeroizing<Vec<u8>>>),
}

/// An array of an archive.
pub struct Loaded {
    /// The lengths of the axes, slowest first.
    pub shape: Vec<u64>,
    /// What it holds.
    pub elements: Elements,
}

/// Axes of an array, at most.
const MOST_AXES: usize = 2;

/// Reads arrays out of the archive at `path`: those of `names`, in this order, as far as it has them.
///
/// Errors: no file, not an archive of arrays, or an array of a type that is none of [`Elements`].
pub fn read(path: &Path, names: &[&str]) -> Result<Vec<Option<Loaded>>> {
    let refused = |what: String| Error::Archive { path: path.to_owned(), what };
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(path.to_owned()),
        _ => Error::Unreadable { path: path.to_owned(), source: open_fault(path, error) },
    })?;
    let mut archive = guarded(|| zip::ZipArchive::new(BufReader::new(file)))
        .map_err(|_| refused("not a complete NumPy archive (.npz)".to_owned()))?;
    let load = |name: &&str| {
        let Some(at) = archive.index_for_name(&format!("{name}.npy")) else { return Ok(None) };
        let loaded = guarded(|| {
            let mut entry = archive.by_index(at).map_err(|error| error.to_string())?;
            let size = entry.size();
            if available_memory().is_some_and(|available| size > available / 3) {
                return Err(format!("it has {} MiB, more than fits into memory", size >> 20));
            }
            // To the end, where its checksum is compared.
            let mut bytes = Zeroizing::new(Vec::with_capacity(size as usize));
            let read = entry.by_ref().take(size + 1).read_to_end(&mut bytes).map_err(damaged)?;
            if read as u64 == size { array(&bytes) } else { Err(damaged(())) }
        });
        let said = |what: String| refused(format!("its array `{}`: {what}", shown(name)));
        loaded.map(Some).map_err(said)
    };
    names.iter().map(load).collect()
}

fn damaged<E>(_: E) -> String {
    "not a complete NumPy array".to_owned()
}

/// The array in these bytes, and nothing behind it.
fn array(bytes: &[u8]) -> std::result::Result<Loaded, String> {
    let mut rest = bytes;
    let array = NpyFile::new(&mut rest).map_err(damaged)?;
    let shape = array.shape().to_vec();
    if shape.len() > MOST_AXES {
        return Err(format!("at most {MOST_AXES} axes are supported"));
    }
    if array.order() == Order::Fortran && shape.len() > 1 {
        return Err("its columns are first; save numpy.ascontiguousarray of it".to_owned());
    }
    let unfit =
        "uint8, bool, uint64 or bytes (S) are supported; convert it, as with astype('uint8')".to_owned();
    let DType::Plain(kind) = array.dtype() else { return Err(unfit) };
    let each = kind.num_bytes().filter(|each| *each > 0).ok_or_else(|| unfit.clone())? as u64;
    // What is announced must be there before room for it is taken, and nothing more.
    let header = header_of(bytes).ok_or_else(|| damaged(()))?;
    let announced = shape.iter().try_fold(each, |bytes, axis| bytes.checked_mul(*axis));
    if announced != Some((bytes.len() - header) as u64) {
        return Err(damaged(()));
    }
    let elements = match (kind.type_char(), each) {
        (TypeChar::Bool, 1) => {
            let mut bits = array.into_vec::<bool>().map_err(damaged)?;
            let bytes = Zeroizing::new(bits.iter().map(|bit| u8::from(*bit)).collect());
            bits.zeroize();
            Elements::U8(bytes)
        }
        (TypeChar::Uint, 1) => Elements::U8(Zeroizing::new(array.into_vec().map_err(damaged)?)),
        (TypeChar::Uint, 8) => Elements::U64(Zeroizing::new(array.into_vec().map_err(damaged)?)),
        (TypeChar::ByteStr, _) => {
            let rows = array.into_vec::<Vec<u8>>().map_err(damaged)?;
            Elements::Strings(rows.into_iter().map(trimmed).collect())
        }
        _ => return Err(unfit),
    };
    Ok(Loaded { shape, elements })
}

/// Bytes in front of the elements, by the length that stands behind the version: of two bytes at first, of four
/// since.
fn header_of(bytes: &[u8]) -> Option<usize> {
    const VERSIONED: usize = 8;
    let (length, behind) = match bytes.get(6)? {
        1 => (u16::from_le_bytes(*bytes[VERSIONED..].first_chunk()?) as usize, VERSIONED + 2),
        _ => (u32::from_le_bytes(*bytes[VERSIONED..].first_chunk()?) as usize, VERSIONED + 4),
    };
    (length <= 1 << 16).then_some(behind + length).filter(|header| *header <= bytes.len())
}

/// Without the zeros that NumPy fills strings up with.
fn trimmed(mut bytes: Vec<u8>) -> Zeroizing<Vec<u8>> {
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(length);
    Zeroizing::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{Array, Element, Writer};
    use super::*;
    use std::io::{Cursor, Write};

    fn archive(arrays: &[(&'static str, Element, &[u64], &[u8])]) -> tempfile::NamedTempFile {
        let layout: Vec<Array> =
            arrays.iter().map(|(name, element, shape, _)| Array::new(name, *element, shape)).collect();
        let mut writer = Writer::new(Cursor::new(Vec::new()), &layout).unwrap();
        for (i, (.., bytes)) in arrays.iter().enumerate() {
            writer.append(i, bytes).unwrap();
        }
        stored(&writer.finish().unwrap().into_inner())
    }

    fn stored(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn what_is_written_is_read_and_what_is_missing_is_nothing() {
        let words: Vec<u8> = (0..48).collect();
        let file = archive(&[
            ("u", Element::U8, &[3], &[0, 1, 1]),
            ("m", Element::U64, &[3, 2], &words),
            ("s", Element::Bytes(4), &[3], b"ab\0\0cdef\0\0\0\0"),
        ]);
        let mut all = read(file.path(), &["m", "u", "none", "s"]).unwrap().into_iter();
        let mut next = || all.next().unwrap();
        let m = next().unwrap();
        assert_eq!(m.shape, [3, 2]);
        let Elements::U64(values) = &m.elements else { panic!("another type") };
        assert_eq!(values[1], u64::from_le_bytes(words[8..16].try_into().unwrap()));
        let u = next().unwrap();
        assert!(matches!(&u.elements, Elements::U8(bits) if bits[..] == [0, 1, 1]));
        assert!(next().is_none());
        let Elements::Strings(rows) = next().unwrap().elements else { panic!("another type") };
        assert_eq!(rows.iter().map(|row| row.as_slice()).collect::<Vec<_>>(), [&b"ab"[..], b"cdef", b""]);
    }

    #[test]
    fn what_is_no_array_is_refused() {
        let said = |file: &tempfile::NamedTempFile| read(file.path(), &["u"]).err().unwrap().to_string();
        assert!(said(&stored(b"u\n1\n")).contains("not a complete NumPy archive"));
        // More elements announced than there are.
        let file = archive(&[("u", Element::U8, &[3], &[0, 1, 1])]);
        let bytes = std::fs::read(file.path()).unwrap();
        let at = bytes.windows(4).position(|window| window == b"(3,)").unwrap();
        let mut longer = bytes.clone();
        longer[at..at + 4].copy_from_slice(b"(9,)");
        assert!(said(&stored(&longer)).contains("its array `u`: not a complete NumPy array"));
        // A bit that has changed, and bytes behind the elements.
        let data = bytes.windows(3).rposition(|window| window == [0, 1, 1]).unwrap();
        let mut flipped = bytes.clone();
        flipped[data] ^= 1;
        assert!(said(&stored(&flipped)).contains("its array `u`: not a complete NumPy array"));
        let mut shorter = bytes.clone();
        shorter[at..at + 4].copy_from_slice(b"(2,)");
        assert!(said(&stored(&shorter)).contains("its array `u`: not a complete NumPy array"));
        assert!(said(&archive(&[("u", Element::U8, &[1, 1, 1], &[1])])).contains("at most 2 axes"));
        assert!(said(&archive(&[("u", Element::Bytes(0), &[1 << 40], &[])])).contains("are supported"));
        let mut longest = bytes;
        let digits = b"(9999999999999999999,)";
        longest[at..at + digits.len()].copy_from_slice(digits);
        assert!(said(&stored(&longest)).contains("its array `u`"));
        assert!(matches!(read(Path::new("/no/such.npz"), &["u"]), Err(Error::NotFound(_))));
    }
}
