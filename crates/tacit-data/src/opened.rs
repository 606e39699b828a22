//! What the names of a table lead to: files, folders and patterns of them, and several as one table.

use crate::columnar::{self, Format};
use crate::csv::{self, Options};
use crate::encoding;
use crate::excel;
use crate::fault::{Error, Result};
use crate::file_id::FileId;
use crate::input::{Input, KNOWN_BY, Packing};
use crate::json;
use crate::place;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A table whose columns are to be looked at.
#[allow(clippy::large_enum_variant)] // One a table.
pub(crate) enum Opened {
    /// In rows.
    Csv(Input),
    /// In columns.
    Columns(Box<columnar::Source>),
}

/// Opens the table at these names; several files are one table, in their order.
pub(crate) fn open(paths: &[PathBuf], options: &Options) -> Result<Opened> {
    all(paths, options, Input::open)
}

/// The same, every file pinned: see [`Input::open_pinned`].
pub(crate) fn open_pinned(paths: &[PathBuf], options: &Options) -> Result<Opened> {
    all(paths, options, Input::open_pinned)
}

fn all(paths: &[PathBuf], options: &Options, input: fn(&Path) -> Result<Input>) -> Result<Opened> {
    let files = listed(paths)?;
    if let [one] = files.as_slice() {
        return Ok(match single(one, options, input)? {
            Single::Columns(source) => Opened::Columns(source),
            Single::Csv(input) => Opened::Csv(input),
            Single::Json(input) => {
                let kept = json::to_columns(&[&input], options)?.pop().ok_or(Error::Empty(one.clone()))?;
                Opened::Columns(Box::new(columnar::Source::without_key(kept, Format::ArrowFile, options)?))
            }
        });
    }
    let singles = files.iter().map(|file| single(file, options, input)).collect::<Result<Vec<_>>>()?;
    let lines = singles.iter().filter_map(|single| match single {
        Single::Json(input) => Some(input),
        Single::Columns(_) | Single::Csv(_) => None,
    });
    let mut of_lines = json::to_columns(&lines.collect::<Vec<_>>(), options)?.into_iter();
    let mut sources = Vec::new();
    for single in singles {
        let kept = match single {
            Single::Columns(source) => {
                sources.push(*source);
                continue;
            }
            Single::Csv(input) => Some(csv::Source::from_input(input, *options)?.as_columns()?),
            Single::Json(_) => of_lines.next(),
        };
        let kept = kept.map(|kept| columnar::Source::without_key(kept, Format::ArrowFile, options));
        sources.extend(kept.transpose()?);
    }
    Ok(Opened::Columns(Box::new(columnar::Source::joined(sources)?)))
}

/// A file that may be one of several.
enum Single {
    Csv(Input),
    /// In JSON lines, of which all have the columns.
    Json(Input),
    Columns(Box<columnar::Source>),
}

fn single(path: &Path, options: &Options, input: fn(&Path) -> Result<Input>) -> Result<Single> {
    let (file, part) = place::sheet(path);
    let input = input(if place::is_remote(path) { path } else { file })?;
    let columns = |input, format| {
        let source = columnar::Source::without_key(input, format, options)?;
        Ok(Single::Columns(Box::new(source)))
    };
    let start = input.start()?;
    if let Some(kept) = of_workbook(&input, &start, part, options)? {
        return columns(kept, Format::ArrowFile);
    }
    if part.is_some() {
        return Err(Error::address(
            path,
            "the text after the # names a sheet, but the file is not a workbook",
        ));
    }
    match Format::of(&start) {
        Some(format) => columns(input, format),
        None => {
            let encoding = encoding::of(path, &start, options.encoding)?;
            let is_whole = start.len() < KNOWN_BY as usize;
            match json::is_lines(&encoding::beginning(&start, encoding), is_whole) {
                true => Ok(Single::Json(input)),
                false => Ok(Single::Csv(input)),
            }
        }
    }
}

/// A digest of what is at these names, as a table that was opened has it.
pub(crate) fn digest(paths: &[PathBuf]) -> Result<[u8; 32]> {
    let files = listed(paths)?;
    let of = |path: &PathBuf| {
        let (file, _) = place::sheet(path);
        Input::open(if place::is_remote(path) { path } else { file })?.digest()
    };
    match files.as_slice() {
        [one] => of(one),
        several => columnar::digest_of_all(&several.iter().map(of).collect::<Result<Vec<_>>>()?),
    }
}

/// The table in a workbook, as an Arrow file; nothing if the input, which begins with `start`, is none.
fn of_workbook(input: &Input, start: &[u8], part: Option<&str>, options: &Options) -> Result<Option<Input>> {
    if input.packing() != Packing::Plain || input.is_answer() {
        return Ok(None);
    }
    let Some(kind) = excel::Kind::of(start, input)? else { return Ok(None) };
    let (kept, emptied) = excel::read(input, kind, part, options)?;
    Ok(Some(Input::kept(input.path(), kept, input.digest()?).of_workbook(emptied)))
}

/// The files that these names lead to.
pub(crate) fn listed(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let is_name = place::is_remote(path) || path == Path::new("-");
        if !is_name && path.is_dir() {
            files.extend(in_folder(path)?);
        } else if !is_name && is_pattern(path) {
            files.extend(matching(path)?);
        } else {
            files.push(path.clone());
        }
    }
    let mut seen = BTreeMap::new();
    for file in &files {
        if let Some(first) = identity(file).and_then(|identity| seen.insert(identity, file)) {
            return Err(Error::Twice { path: file.clone(), first: first.clone() });
        }
    }
    Ok(files)
}

/// What a file is by, however it is called: two names of one have the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Address(PathBuf),
    File(FileId, Option<String>),
}

/// The identity of a file, or of a sheet in it; none where it cannot be looked at, which who opens it says.
fn identity(path: &Path) -> Option<Identity> {
    if place::is_remote(path) || path == Path::new("-") {
        return Some(Identity::Address(path.to_owned()));
    }
    let (file, part) = place::sheet(path);
    Some(Identity::File(FileId::at(file).ok()?, part.map(str::to_owned)))
}

/// The files that this name leads to, without those that cannot be looked at.
pub(crate) fn seen(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        return entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    }
    match is_pattern(path) {
        true => found(path).map_or(Vec::new(), |found| found.flatten().collect()),
        false => vec![path.to_owned()],
    }
}

fn is_pattern(path: &Path) -> bool {
    !path.exists() && path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

/// Whether a pattern describes this name.
pub(crate) fn is_called(name: &Path, pattern: &Path) -> bool {
    let of = |pattern: &Path| glob::Pattern::new(pattern.to_str()?).ok();
    is_pattern(pattern) && of(pattern).is_some_and(|pattern| pattern.matches_path_with(name, RULES))
}

const RULES: glob::MatchOptions = glob::MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

fn found(pattern: &Path) -> Result<glob::Paths> {
    let text = pattern.to_str().unwrap_or_default();
    // What is no pattern is a name, of a file that is not there.
    glob::glob_with(text, RULES).map_err(|_| Error::NotFound(pattern.to_owned()))
}

/// The files of a folder by their names, but for hidden ones, those that begin with `_`, and empty ones.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |source| Error::Unreadable { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(['.', '_']) {
            continue;
        }
        let metadata = std::fs::metadata(&path).map_err(unreadable)?;
        if metadata.is_dir() {
            let what = "a subdirectory is not read; name its files, as in 'DIR/*/*.parquet'";
            return Err(Error::Folder { path, what });
        }
        if metadata.len() > 0 {
            files.push(path);
        }
    }
    files.sort_unstable();
    if files.is_empty() {
        return Err(Error::Folder { path: folder.to_owned(), what: "the directory has no table in it" });
    }
    Ok(files)
}

/// The files that a pattern describes, by their names.
fn matching(pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in found(pattern)? {
        let path = path.map_err(|error| Error::Unreadable {
            path: error.path().to_owned(),
            source: std::io::Error::from(error.error().kind()),
        })?;
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
            files.push(path);
        }
    }
    files.sort_unstable();
    if files.is_empty() { Err(Error::NotFound(pattern.to_owned())) } else { Ok(files) }
}
