//! `tacit bench bounds`: the constants that the code uses and the bounds that it computes from them, for
//! `tools/bounds`, which computes the same in another way and holds the documents to it. Nothing is measured.

use crate::Context;
use serde_json::{Value, json};
use tacit::Result;
use tacit::Security::{self, Malicious, SemiHonest};
use tacit::job::psi::{ATTEMPTS, MAX_BUCKETS, OVERFLOW_BITS, bucket_places, runs_log2};
use tacit::psi::okvs::{Store, clustered};
use tacit::psi::vole_psi::{self, SMALL_SET};
use tacit::psi::{circuit, oprf, paxos, sorted};
use tacit::two_pc::authenticated::buckets::{LEAST, Level, STATISTICAL, WINDOW, rows_at_once};
use tacit::two_pc::wmk17::Copies;
use tacit::two_pc::wmk17::probe::{self, LABEL_MARGIN};
use tacit_crypto::{KAPPA, RHO};
use tacit_ot::bit_triples::GROUP;
use tacit_ot::extension::code::{LinearCode, MatrixCode};
use tacit_ot::extension::kos;
use tacit_ot::extension::softspoken::Groups;
use tacit_ot::silent::bcgikrs19::{Code, linear_weight};
use tacit_ot::silent::ferret::{LEAST_SECURITY_BITS, Params, UniParams};

/// The constants the code uses, and the bounds it computes from them
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Sizes of sets that the documents name.
const SIZES: [usize; 6] = [1, 10, 100, 1_000, 65_536, 1 << 20];
/// Numbers of hash calls, as powers of two.
const CALLS: [u32; 3] = [60, 80, 128];
/// Sessions of a job.
const SESSIONS: [usize; 4] = [1, 2, 16, 64];
/// Sets in buckets: keys a side, and buckets.
const IN_BUCKETS: [(u64, u64); 3] = [(100_000, 4), (20_000_000, 2), (1 << 24, 64)];

pub(crate) fn run(_: Args, context: &Context) -> Result<()> {
    let sessions = SESSIONS.map(session);
    let probes =
        [1, 8, 128, 232, 256].map(|k| json!({"rows": k, "columns": probe::width(k, RHO + LABEL_MARGIN)}));
    let bounds = json!({
        "authenticated": sessions,
        "probe": probes,
        "tested": tested()?,
        "errors": errors()?,
        "stores": stores()?,
        "buckets": in_buckets()?,
        "tags": tags(),
    });
    let object = json!({"constants": constants()?, "bounds": bounds});
    let text = serde_json::to_string_pretty(&object).map_err(|e| tacit::Error::Other(e.to_string()))?;
    context.result(&object, &text)
}

fn constants() -> Result<Value> {
    let code = MatrixCode::concatenated(64);
    let shape = paxos::Parameters::new(1, 1, Malicious)?;
    let copies = Copies::ALL.map(|copies| {
        json!({"name": copies.name(), "total": copies.total(), "evaluated": copies.evaluated(), "coded": copies.coded()})
    });
    Ok(json!({
        "kappa": KAPPA,
        "rho": RHO,
        "kos": {"columns": kos::SEEDS + 1},
        "softspoken": {
            "columns": kos::SEEDS,
            "depth": Groups::default().bits(),
            "groups": Groups::ALL.map(Groups::bits),
        },
        "bit_triples": {"group": GROUP},
        "oos": {"length": code.length(), "dimension": code.dimension(), "distance": code.distance()},
        "paxos": {"length": shape.code_length(), "dimension": shape.code_dimension()},
        "lpn": lpn(),
        "authenticated": {"bits": STATISTICAL, "window": WINDOW, "least": LEAST},
        "wmk17": {"copies": copies, "margin": LABEL_MARGIN},
        "buckets": {"attempts": ATTEMPTS, "overflow": OVERFLOW_BITS, "most": MAX_BUCKETS},
        "vole": {"small_set": SMALL_SET},
        "sorted": {"key_bits": sorted::KEY_BITS, "most": sorted::MAX_ELEMENTS},
    }))
}

fn lpn() -> Value {
    let ferret = Params::ALL.into_iter().chain(Params::SHORT);
    let uniform = UniParams::ALL.into_iter();
    let sets: Vec<Value> = ferret
        .map(|p| json!({"name": format!("ferret {}", p.name), "bits": p.security_bits, "noise": p.t}))
        .chain(uniform.map(
            |p| json!({"name": format!("ferret-uni {}", p.name), "bits": p.security_bits, "noise": p.t}),
        ))
        .collect();
    let linear = [2, 4, 16, usize::MAX].map(linear_weight);
    let weights = json!({"quasi-cyclic": Code::QuasiCyclic.weight(), "linear": linear});
    json!({"least": LEAST_SECURITY_BITS, "sets": sets, "weights": weights})
}

/// One of so many sessions of authenticated garbling: its bits, and the sizes of buckets with the least window
/// that has each.
fn session(sessions: usize) -> Value {
    let level = Level::among(sessions);
    let mut sizes: Vec<Value> = Vec::new();
    let mut last = None;
    for buckets in LEAST..=WINDOW {
        let size = level.size(buckets);
        if last.replace(size) != Some(size) {
            sizes.push(
                json!({"from": buckets, "triples": size, "together": 1 + rows_at_once(buckets, false)}),
            );
        }
    }
    json!({"sessions": sessions, "bits": level.bits(), "message": level.message_bits(), "sizes": sizes})
}

/// How many keys a cheater tests against as many of ours, by protocol, part and hash calls.
fn tested() -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    for announced in SIZES {
        let vole = vole_psi::Parameters::new(announced, announced, Malicious)?;
        for calls in CALLS {
            let mut line = |protocol: &str, part: &str, slots: usize, tested: u64| {
                lines.push(json!({
                    "protocol": protocol, "part": part, "announced": announced, "calls": calls,
                    "slots": slots, "tested": tested,
                }));
            };
            let slots = paxos::Parameters::new(announced, announced, Malicious)?.shape().slots();
            line("paxos", "receives", slots, paxos::tested_at_most(announced, announced, calls.into())?);
            // Who makes as many calls as a value has bits finds any.
            if calls < vole.tag_bits() {
                line("vole", "receives", vole.shape().slots(), vole.encodable(calls.into()));
                line("vole", "sends", 0, vole.testable(calls.into()));
            }
            if calls < 128 && announced <= sorted::MAX_ELEMENTS {
                line("sorted", "either", 0, sorted::tested_at_most(announced as u64, calls));
            }
        }
    }
    Ok(lines)
}

/// log2 of the chance that an honest run errs or fails.
fn errors() -> Result<Vec<Value>> {
    let mut lines = Vec::new();
    let mut line = |protocol: &str, keys: usize, security: Security, log2: f64| {
        let security = tacit::security_name(security);
        lines.push(json!({"protocol": protocol, "keys": keys, "security": security, "log2": log2}));
    };
    for keys in (0..=24).step_by(2).map(|log2| 1 << log2).chain([4_095]) {
        for security in [Malicious, SemiHonest] {
            let parameters = paxos::Parameters::new(keys, keys, security)?;
            line("paxos", keys, security, parameters.statistical_error_log2());
            let parameters = vole_psi::Parameters::new(keys, keys, security)?;
            line("vole", keys, security, parameters.statistical_error_log2());
        }
        if keys <= circuit::MAX_ELEMENTS {
            line("circuit", keys, SemiHonest, circuit::failure_log2(keys, keys)?);
        }
    }
    Ok(lines)
}

fn stores() -> Result<Vec<Value>> {
    let of = |log2: u32| {
        let shape = clustered::Shape::for_keys(1 << log2)?;
        Ok(json!({
            "keys": 1u64 << log2, "bins": shape.bins(), "third": shape.third(), "dense": shape.dense(),
            "slots": shape.slots(), "log2": shape.failure_log2(),
        }))
    };
    (4..=28).step_by(2).map(of).collect()
}

/// Places of a bucket, and what a receiver tests in an attempt at one and in all of them.
fn in_buckets() -> Result<Vec<Value>> {
    let attempts = u64::from(ATTEMPTS);
    let of = |(keys, count): (u64, u64)| {
        let places = bucket_places(keys, count);
        let of_one =
            vole_psi::Parameters::one_of(places as usize, places as usize, Malicious, runs_log2(count))?;
        let tested = [60, 80].map(|calls| {
            let attempt = of_one.encodable(f64::from(calls));
            json!({"calls": calls, "attempt": attempt, "bucket": attempts * attempt, "run": count * attempts * attempt})
        });
        Ok(json!({
            "keys": keys, "buckets": count, "places": places, "slots": of_one.shape().slots(),
            "tested": tested, "log2": of_one.statistical_error_log2(),
        }))
    };
    IN_BUCKETS.into_iter().map(of).collect()
}

/// Bits of a published tag, for so many keys and queries in its file's life.
fn tags() -> Vec<Value> {
    let of = |(keys, queries)| json!({"keys": keys, "queries": queries, "bits": oprf::tags::tag_bits(keys, queries)});
    [(1 << 24, 1 << 30), (1 << 32, 1 << 40), (1, 1)].map(of).into()
}
