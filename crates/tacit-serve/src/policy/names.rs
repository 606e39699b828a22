//! The names by which the ledger knows a policy's peers and sources, so that no spelling and no renaming
//! makes a new account.

use super::{Peer, Policy, Source};
use crate::ledger::{key_name, peer_name, place_name, source_name};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tacit::data::file_id::FileId;
use tacit::data::place;
use tacit::data::table::{covers, files_of};

impl Policy {
    /// The names of each peer: its label, and all keys that it has or had.
    pub(crate) fn names_of_peers(&self) -> Vec<Vec<String>> {
        let names = |(label, peer): (&String, &Peer)| {
            let mut names = vec![peer_name(label), key_name(&peer.account())];
            if let Peer::Keys(keys) = peer {
                names.extend(keys.all().iter().skip(1).map(|(key, _)| key_name(&key.fingerprint())));
            }
            names
        };
        self.peers.iter().map(names).collect()
    }

    /// The names of each source: its own, and its places, as they are written and as they are; and the places that
    /// are one file now, or have one among theirs, of those and of `known`, which the ledger has.
    pub(crate) fn names_of_sources(&self, known: &[String]) -> Vec<Vec<String>> {
        names_of(&self.sources, known)
    }
}

/// See [`Policy::names_of_sources`].
pub(super) fn names_of(sources: &BTreeMap<String, Source>, known: &[String]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut places: BTreeSet<String> = known.iter().cloned().collect();
    for (name, source) in sources {
        let mut names = vec![source_name(name), place_name(&source.place())];
        // A part of a table is accounted for with the whole.
        for input in &source.inputs {
            let place = place_name(&place::canonical(input));
            names.extend([place_name(&place::account(input)), place.clone()]);
            places.insert(place);
        }
        all.push(names);
    }
    let prefix = place_name("");
    let paths = places.iter().filter_map(|name| name.strip_prefix(&prefix).map(Path::new));
    let paths: Vec<&Path> = paths.filter(|path| path.is_absolute()).collect();
    let name_of = |path: &Path| place_name(&path.to_string_lossy());
    let mut files: BTreeMap<FileId, BTreeSet<String>> = BTreeMap::new();
    for path in &paths {
        // A run on a folder or a pattern can reveal rows of each of its files.
        for file in files_of(path).iter().filter_map(|file| file_of(file)) {
            files.entry(file).or_default().insert(name_of(path));
        }
        // Whether or not its files can be seen today.
        let parts = paths.iter().filter(|part| *part != path && covers(path, part));
        all.extend(parts.map(|part| vec![name_of(path), name_of(part)]));
    }
    all.extend(files.into_values().filter(|names| names.len() > 1).map(|names| names.into_iter().collect()));
    all
}

/// What all links to a file share.
fn file_of(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    FileId::at(path).ok()
}
