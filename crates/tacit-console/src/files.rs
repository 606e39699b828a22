//! Checks before a run that its outputs can be written and replace no file that is needed.

use crate::os;
use crate::output::{Output, Target, name};
use std::fs;
use std::path::{Path, PathBuf};
use tacit::data::file_id::FileId;
use tacit::data::place;
use tacit::data::table::covers;
use tacit::net::durable::folder_of;
use tacit::{Error, Result};

/// What becomes of the file that an option names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Written; an older one is replaced if `--overwrite` is given.
    Result,
    /// Written; holds a secret or serves once, so an older one never goes.
    Secret,
    /// As `Secret`, with a public half beside it that ends in .pub.
    KeyPair,
    /// A folder that the command writes files into, and checks itself.
    Folder,
}

/// A file, and the option that named it.
pub struct Named {
    option: String,
    path: PathBuf,
}

impl Named {
    /// The file that `option` names.
    pub fn new(option: &str, path: &Path) -> Self {
        Named { option: option.to_owned(), path: path.to_owned() }
    }

    /// Whether it is standard output.
    pub fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }
}

/// Refuses, before anything is done, outputs that would replace a file of the same command line, or what
/// stands at their place, or that cannot be written. True if an output goes to standard output.
pub fn check_outputs(outputs: &[(Named, Kind)], inputs: &[Named]) -> Result<bool> {
    let mut places: Vec<(&Named, Place)> = Vec::new();
    let mut all = Vec::new();
    for (named, kind) in outputs {
        all.push((named, named.path.clone(), *kind));
        let public = named.path.with_extension("pub");
        // Where the two would be one, the command says so.
        if *kind == Kind::KeyPair && public != named.path {
            all.push((named, public, Kind::Result));
        }
    }
    // Which files are one comes first: an output that is an input exists, but that is not what is wrong with
    // it.
    for (named, path, _) in &all {
        let place = Place::of(path)?;
        for input in inputs {
            let same = match &place {
                Place::Object(path) => *path == input.path,
                place => identity(&input.path).is_some_and(|file| *place == Place::File(file)),
            };
            if same {
                return Err(one_file(named, input, path));
            }
            if input.option == TABLE && would_be_part(path, &input.path) {
                return Err(Error::Input(format!(
                    "{}: is in {}, the directory or pattern of {TABLE}, and the next run would read it as a \
                     part of the table; choose another directory",
                    name(path),
                    name(&input.path)
                )));
            }
        }
        if let Some((other, _)) = places.iter().find(|(_, other)| place != Place::Anywhere && *other == place)
        {
            return Err(Error::Usage(format!(
                "{}: {} and {} name the same file; give them different ones",
                name(path),
                other.option,
                named.option
            )));
        }
        places.push((named, place));
    }
    let mut to_stdout = false;
    for (_, path, kind) in &all {
        Output::check(path, *kind != Kind::Result)?;
        to_stdout |= matches!(Target::of(path)?, Target::Stdout);
    }
    Ok(to_stdout)
}

/// The option that names tables, of which a folder's and a pattern's files are one.
const TABLE: &str = "--input";

/// Whether a file called `output` would be read as a part of the `table`.
fn would_be_part(output: &Path, table: &Path) -> bool {
    if place::is_remote(table) || place::is_remote(output) {
        return false;
    }
    let hidden = output.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(b"."));
    let aside = output.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(b"_"));
    if table.is_dir() {
        let folders = (FileId::at(table), FileId::at(folder_of(output)));
        return !hidden && !aside && matches!(folders, (Ok(one), Ok(other)) if one == other);
    }
    let whole = [output, table].map(std::path::absolute);
    matches!(whole, [Ok(output), Ok(table)] if covers(&table, &output))
}

fn one_file(named: &Named, other: &Named, path: &Path) -> Error {
    Error::Input(format!(
        "{}: {} and {} name the same file; choose another name for the output",
        name(path),
        named.option,
        other.option
    ))
}

/// Where an output would be, so far as it matters which files are one.
#[derive(PartialEq)]
enum Place {
    /// A file.
    File(FileId),
    /// An object in a store, by its address.
    Object(PathBuf),
    /// A new file: its folder and its name.
    New(FileId, std::ffi::OsString),
    /// A device, which takes the output of many.
    Anywhere,
}

impl Place {
    fn of(path: &Path) -> Result<Self> {
        let target = Target::of(path)?;
        if matches!(target, Target::Object) {
            return Ok(Place::Object(path.to_owned()));
        }
        if let Target::New(path) = &target {
            let folder = folder_of(path);
            let (Ok(folder), Some(file)) = (FileId::at(folder), path.file_name()) else {
                return Ok(Place::Anywhere);
            };
            return Ok(Place::New(folder, file.to_owned()));
        }
        Ok(target.identity().map_or(Place::Anywhere, Place::File))
    }
}

/// The identity of a file or a pipe to read; none of a device, which reading does not use up.
fn identity(path: &Path) -> Option<FileId> {
    let kind = fs::metadata(path).ok()?.file_type();
    (kind.is_file() || os::is_pipe(kind)).then(|| FileId::at(path).ok()).flatten()
}
