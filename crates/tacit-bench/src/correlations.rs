//! `tacit bench vole`, `tacit bench ot --of P` and `tacit bench triples`: whole jobs, each from nothing, base OTs
//! included. There is no setup apart.

use super::measure::{Runs, Side, measure_phases};
use super::record::check_memory;
use super::{Common, Subject};
use crate::Context;
use tacit::crypto::Block;
use tacit::job::triples::{self, By, Kind as Triple};
use tacit::job::vole::{self, Field, Inputs, Job, Kind, Role};
use tacit::net::{Agreement, Channel};
use tacit::plan::{self, Choice, Machine};
use tacit::{Error, Result, ot};
use tacit_console::options::Security;

/// Vector oblivious linear evaluation: w = v + u·Δ over a field.
#[derive(clap::Args)]
pub(crate) struct VoleArgs {
    /// The field: gf128, gf4, gf16, gf256, p61 or p128
    #[arg(long, value_name = "FIELD", default_value = "gf128")]
    field: String,
    /// Against which peer to protect; without it, malicious where the field's protocol is
    #[arg(long, value_enum)]
    security: Option<Security>,
    /// Correlations in a run
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    count: u64,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Beaver triples: shares of a, b and c = a·b.
#[derive(clap::Args)]
pub(crate) struct TriplesArgs {
    /// What they are of: bits, words or field
    #[arg(long, value_name = "KIND", default_value = "bits")]
    kind: String,
    /// With --kind field, the field: gf128, p61 or p128
    #[arg(long, value_name = "FIELD")]
    field: Option<String>,
    /// Against which peer to protect; words and fields are semi-honest only, and bits have MACs against a malicious one
    #[arg(long, value_enum, default_value = "malicious")]
    security: Security,
    /// With --security semi-honest, the OT extension: auto, iknp, kos, softspoken, ferret, ferret-uni or silent
    #[arg(long, value_name = "P", default_value = "auto")]
    protocol: String,
    /// Triples in a run
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    count: u64,
    /// The base OT
    #[arg(long, value_name = "NAME")]
    base_ot: Option<String>,
    /// What the other party of this benchmark picked for `auto`
    #[arg(long, hide = true, value_name = "P")]
    picked: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// The fields of a record beside those of every benchmark: bits of security against computing, and, where a check
/// may fail to catch a cheater, against that; and this machine's cores.
fn beside(statistical: bool) -> fn(f64, &Side) -> Vec<(&'static str, f64)> {
    fn cores() -> (&'static str, f64) {
        ("cores", std::thread::available_parallelism().map_or(1, |n| n.get()) as f64)
    }
    const BITS: (&str, f64) = ("security_bits", 128.0);
    match statistical {
        true => |_, _| vec![BITS, ("statistical_bits", 40.0), cores()],
        false => |_, _| vec![BITS, cores()],
    }
}

/// Measures `run` over all channels, each time from nothing.
fn whole(
    common: &Common,
    context: &Context,
    subject: &Subject,
    agreement: Agreement,
    run: impl Fn(&mut [Channel]) -> Result<()>,
) -> Result<()> {
    let runs = Runs { repeat: common.repeat.into(), fresh: true };
    common.run(context, subject, agreement, |channels| {
        let setup = |channels: &mut [Channel], _: Vec<()>| {
            run(channels)?;
            channels.iter_mut().try_for_each(Channel::flush)?;
            Ok(Vec::new())
        };
        measure_phases(channels, runs, setup, |_, (), _, _| Ok(()))
    })
}

/// Keeps nothing.
struct Nowhere;

impl vole::Sink for Nowhere {
    fn sent(&mut self, _: Option<Block>, _: &[Block]) -> Result<()> {
        Ok(())
    }

    fn received(&mut self, _: Inputs<'_>, _: &[Block]) -> Result<()> {
        Ok(())
    }
}

impl triples::Sink for Nowhere {
    fn delta(&mut self, _: Block) -> Result<()> {
        Ok(())
    }

    fn shares(&mut self, _: [&[u8]; 3]) -> Result<()> {
        Ok(())
    }

    fn tags(&mut self, _: [&[Block]; 3], _: [&[Block]; 3]) -> Result<()> {
        Ok(())
    }
}

/// Runs `tacit bench vole`.
pub(crate) fn vole(args: VoleArgs, context: &Context) -> Result<()> {
    let field = Field::named(&args.field).ok_or_else(|| {
        let names = Field::names().collect::<Vec<_>>().join(", ");
        Error::Parameter { name: "field", what: format!("one of {names}") }
    })?;
    let job = |security| Job { role: Role::Sender, kind: Kind::Vole(field), count: args.count, security };
    let security = match args.security {
        Some(security) => security.into(),
        None if job(tacit::Security::Malicious).check().is_ok() => tacit::Security::Malicious,
        None => tacit::Security::SemiHonest,
    };
    correlate("vole", job(security), args.base_ot.as_deref(), &args.common, context)
}

/// Measures a job of VOLE, or of 1-out-of-p transfers, which this party sends if it is the first.
pub(crate) fn correlate(
    name: &'static str,
    job: Job,
    base_ot: Option<&str>,
    common: &Common,
    context: &Context,
) -> Result<()> {
    job.check()?;
    if common.threads > 1 {
        let what = "VOLE and transfers of several messages have one connection".to_owned();
        return Err(Error::Parameter { name: "threads", what });
    }
    let mut common = common.clone();
    if let Some(base) = base_ot {
        common.variant = format!("base {base}");
    }
    let base = crate::base::base_ot(base_ot, job.security)?;
    check_memory("this benchmark", 2 * job.memory())?;
    let job = Job { role: if common.is_peer() { Role::Receiver } else { Role::Sender }, ..job };
    let subject = Subject {
        name,
        protocol: "silent-vole".into(),
        security: Some(job.security),
        kind: match job.kind {
            Kind::Vole(field) => field.name().to_owned(),
            Kind::OneOf(p) => format!("rot 1 of {p}"),
        },
        count: job.count,
        more: beside(false),
    };
    let agreement = job.agreement(&*base);
    whole(&common, context, &subject, agreement, |channels| job.run(channels, &*base, &mut Nowhere, &()))
}

/// Runs `tacit bench triples`.
pub(crate) fn triples(args: TriplesArgs, context: &Context) -> Result<()> {
    let kind = Triple::named(&args.kind, args.field.as_deref())?;
    let security: tacit::Security = args.security.into();
    let mut common = args.common.clone();
    let named = args.picked.as_deref().unwrap_or(&args.protocol);
    let protocol = Some(named).filter(|name| *name != "auto");
    let threads = usize::from(common.threads);
    triples::check(kind, security, protocol.filter(|_| args.picked.is_none()), threads)?;
    let by = match security {
        tacit::Security::Malicious => By::Authenticated,
        tacit::Security::SemiHonest => By::Transfers(pick(kind, &args, protocol, &mut common)?),
    };
    let job = triples::Job { kind, count: args.count, by };
    if let Some(base) = &args.base_ot {
        common.variant = format!("base {base}");
    }
    let base = crate::base::base_ot(args.base_ot.as_deref(), security)?;
    check_memory("this benchmark", 2 * job.memory(threads))?;
    let of = match kind.field() {
        Some(field) => format!("{} {}", kind.name(), field.name()),
        None => kind.name().to_owned(),
    };
    let subject = Subject {
        name: "triples",
        protocol: job.protocol().into(),
        security: Some(security),
        kind: of,
        count: job.count,
        more: beside(security == tacit::Security::Malicious),
    };
    let agreement = job.agreement(&*base);
    whole(&common, context, &subject, agreement, |channels| job.run(channels, &*base, &mut Nowhere, &()))
}

/// The OT extension. With `auto` one party picks it and tells the other.
fn pick(kind: Triple, args: &TriplesArgs, named: Option<&str>, common: &mut Common) -> Result<plan::Pick> {
    let request = plan::Request {
        count: args.count.saturating_mul(kind.ots()),
        kind: ot::Kind::Rot,
        security: tacit::Security::SemiHonest,
        threads: common.threads.into(),
        choice: Choice { protocol: named, ..Choice::default() },
    };
    let link = common.link().into();
    let name = match named {
        Some(name) => name,
        None => {
            let name = plan::pick(&request, &link, &Machine::measure())?.protocol.name;
            common.tell.extend(["--picked".to_owned(), name.to_owned()]);
            name
        }
    };
    let choice = Choice { protocol: Some(name), ..Choice::default() };
    // Both parties come to the same parameters, whatever each of them would measure.
    plan::pick(&plan::Request { choice, ..request }, &link, &Machine::REFERENCE)
}
