//! Prints the LPN parameter sets of silent OT as JSON, for `tools/lpn-security`.

use tacit_crypto::lpn::LOCALITY;
use tacit_ot::silent::bcgikrs19::{Code, linear_weight};
use tacit_ot::silent::ferret::UniParams;
use tacit_ot::silent::ferret::{LEAST_SECURITY_BITS, Lanes, Params};

/// A set of Ferret's, whose matrix serves the `lanes` of one iteration of one stream.
fn primal(name: &str, noise: &str, [samples, k, t, lanes]: [usize; 4], claimed: u32) -> String {
    let paper = if claimed < LEAST_SECURITY_BITS { ", \"paper\": true" } else { "" };
    format!(
        "{{\"name\": \"{name}\", \"noise\": \"{noise}\", \"N\": {samples}, \"k\": {k}, \"t\": {t}, \
         \"locality\": {LOCALITY}, \"instances\": {lanes}, \"claimed\": {claimed}{paper}}}"
    )
}

/// The least noise at `smallest` and at the largest run; what is in between has more of one or the other.
/// Regular noise has blocks of 256 at least.
fn dual(name: &str, smallest: usize, t: usize, assumed: &str) -> impl Iterator<Item = String> {
    [smallest, 1 << 24].into_iter().map(move |n| {
        format!("{{\"name\": \"{name}, n = {n}\", \"N\": {}, \"n\": {n}, \"t\": {t}, {assumed}}}", 2 * n)
    })
}

const QUASI_CYCLIC: &str = "\"quasi_cyclic\": true";
const LINEAR: &str = "\"distance\": 0.2, \"accumulate\": 32";

fn main() {
    let mut sets: Vec<String> = Vec::new();
    for p in Params::ALL.into_iter().chain(Params::SHORT).chain(Params::PAPERS) {
        let numbers = [p.samples(), p.k, p.t, Lanes::Four.count()];
        sets.push(primal(&format!("ferret {}", p.name), "regular", numbers, p.security_bits));
    }
    for p in UniParams::ALL.into_iter().chain(UniParams::PAPERS) {
        let numbers = [p.samples(), p.k, p.t, p.lanes.count()];
        sets.push(primal(&format!("ferret-uni {}", p.name), "uniform", numbers, p.security_bits));
    }
    // The last tile of quasi-cyclic noise may lose its four positions; what is dealt keeps all.
    for (code, assumed, lost) in [(Code::QuasiCyclic, QUASI_CYCLIC, 4), (Code::Linear, LINEAR, 0)] {
        let (name, t) = (code.name(), code.weight());
        sets.extend(dual(&format!("silent {name}"), 128 * t, t - lost, assumed));
        let assumed = format!("{assumed}, \"noise\": \"uniform\"");
        sets.extend(dual(&format!("dealt {name}"), 2050, t, &assumed));
    }
    for q in [4, 16, 256] {
        let assumed = format!("{LINEAR}, \"field\": {q}");
        let t = linear_weight(q);
        sets.extend(dual(&format!("subfield {q}"), 128 * t, t, &assumed));
    }
    for (name, q) in [("2^61 - 1", (1 << 61) - 1), ("2^128 - 159", u128::MAX - 158)] {
        let (t, assumed) = (linear_weight(usize::MAX), format!("{LINEAR}, \"field\": {q}"));
        sets.extend(dual(&format!("vole {name}"), 128 * t, t, &assumed));
    }
    // 2^128 does not fit its type by one; the code's factors are values of the whole field.
    let assumed = format!("{LINEAR}, \"scaled\": true, \"field\": 340282366920938463463374607431768211456");
    let t = linear_weight(usize::MAX);
    sets.extend(dual("vole 2^128", 128 * t, t, &assumed));
    println!("[{}]", sets.join(",\n "));
}
