//! `tacit bench psi --protocol oprf`: queries against a file of tags that was made beforehand.
//!
//! The first process makes the files and answers, its copy asks. Of the file's tags only those that are found
//! are of elements; the others are decoys, as nobody without the key can tell the one from the other, and
//! computing them takes minutes.

use super::{Args, Reveal, set};
use crate::measure::{Runs, measure_phases};
use crate::{Context, Subject};
use std::fs::File;
use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use tacit::crypto::Prg;
use tacit::crypto::text::counted;
use tacit::net::{Agreement, Channel};
use tacit::psi::oprf;
use tacit::psi::oprf::private::{self, Private};
use tacit::psi::oprf::tags::{self, TagFile, Terms};
use tacit::sealed::FileKey;
use tacit::{Error, Result, Security};

/// The most tags: what the makers' memory has room for, 16 bytes each.
pub(super) const MOST: u64 = 1 << 28;
const TAGS: &str = "bench.tags";
const PRIVATE: &str = "bench.oprf";

fn fault(e: std::io::Error) -> Error {
    Error::Other(format!("a file in the folder for temporary files: {e}"))
}

fn key() -> Result<FileKey> {
    Ok(FileKey::from_bytes(&[7; 32]).map_err(tacit::psi::Error::from)?)
}

/// What a party holds before anything is measured.
enum Role {
    Serves(Box<Mutex<Private>>),
    Asks(TagFile<File>),
}

pub(super) fn run(args: Args, context: &Context) -> Result<()> {
    if args.reveal != Reveal::Rows {
        return Err(Error::Usage("oprf reveals only rows; use vole".into()));
    }
    if Security::from(args.security) != Security::Malicious || args.base_ot.is_some() {
        return Err(Error::Usage("oprf is malicious and has no base OT; leave both options out".into()));
    }
    let found = args.count.div_ceil(2);
    if args.tags < found {
        return Err(Error::Usage("--tags is less than the half of --count that is to be found".into()));
    }
    super::super::record::check_memory("this benchmark", 16 * args.tags)?;
    let (queries, mut common) = (set(args.count, true), args.common.clone());
    let mut folder = None;
    let role = match &args.tags_in {
        Some(folder) => {
            let mut file = TagFile::open(File::open(folder.join(TAGS)).map_err(fault)?)?;
            file.checked()?;
            Role::Asks(file)
        }
        None => {
            let folder = folder.insert(tempfile::tempdir().map_err(fault)?);
            common.tell = ["--tags-in".into(), folder.path().to_string_lossy().into_owned()].into();
            make(folder.path(), &args, &queries[..found as usize])?;
            Role::Serves(Box::new(Mutex::new(Private::open(&folder.path().join(PRIVATE), &key()?)?)))
        }
    };
    let subject = Subject {
        name: "psi",
        protocol: oprf::NAME.into(),
        security: Some(Security::Malicious),
        kind: format!("set in {}", counted(args.tags, "tag")),
        count: args.count,
        more: |_, _| Vec::new(),
    };
    let repeat = args.common.repeat.into();
    // There is one lane, so nobody waits for it.
    let role = Mutex::new(role);
    let once = |_: usize, prg: &mut Prg, channel: &mut Channel, inputs: &mut dyn FnMut()| {
        inputs();
        let mut role = role.lock().map_err(|_| Error::Other("the run before ended unexpectedly".into()))?;
        match &mut *role {
            Role::Serves(private) => {
                oprf::serve(channel, prg, private, &private::client(None), u64::MAX, &mut |_| ())?;
            }
            Role::Asks(file) => {
                let (publication, digest) = (file.publication().clone(), *file.digest());
                let tags = oprf::query(channel, prg, &publication, &digest, &queries, &mut |_| ())?;
                let matches = oprf::matches(&file.contains(&tags)?);
                if !matches.iter().copied().eq(0..found as u32) {
                    return Err(Error::Other(format!("a wrong result: {}", counted(matches.len(), "match"))));
                }
            }
        }
        Ok(())
    };
    common.run(context, &subject, Agreement::new("bench", "party", "party"), |channels| {
        let prg = crate::measure::by_lane(|_, _| Ok(Prg::from_os()));
        measure_phases(channels, Runs { repeat, fresh: false }, prg, once)
    })
}

/// Publishes the elements that are to be found among decoys.
fn make(folder: &Path, args: &Args, elements: &[[u8; 32]]) -> Result<()> {
    let lifetime = args.count * (u64::from(args.common.repeat) + 1);
    let terms = Terms { lifetime, per_client: lifetime, key: String::new() };
    let mut prg = Prg::from_os();
    let mut out = BufWriter::new(File::create(folder.join(TAGS)).map_err(fault)?);
    let decoys = args.tags - elements.len() as u64;
    let published =
        tags::publish_among(&mut out, elements, decoys, terms, NonZeroUsize::MIN, &mut prg, &mut |_| ())?;
    out.into_inner().map_err(|e| fault(e.into_error()))?;
    let mut private = File::create(folder.join(PRIVATE)).map_err(fault)?;
    private::create(&mut private, &published, &key()?, &mut prg)?;
    Ok(())
}
