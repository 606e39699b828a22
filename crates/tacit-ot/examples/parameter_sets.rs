//! Prints the LPN parameter sets of silent OT as JSON, for `tools/lpn-security`.

use tacit_ot::silent::bcgikrs19::{Code, linear_weight};
use tacit_ot::silent::ferret::Params;
use tacit_ot::silent::ferret_uni::UniParams;

fn primal(name: &str, noise: &str, samples: usize, k: usize, t: usize, claimed: u32) -> String {
    format!(
        "{{\"name\": \"{name}\", \"noise\": \"{noise}\", \"N\": {samples}, \"k\": {k}, \"t\": {t}, \"claimed\": {claimed}}}"
    )
}

/// The least noise at `smallest` and at the largest run; what is in between has more of one or the other. Regular noise has
/// blocks of 256 at least.
fn dual(name: &str, smallest: usize, t: usize, assumed: &str) -> impl Iterator<Item = String> {
    [smallest, 1 << 24].into_iter().map(move |n| {
        format!("{{\"name\": \"{name}, n = {n}\", \"N\": {}, \"n\": {n}, \"t\": {t}, {assumed}}}", 2 * n)
    })
}

const QUASI_CYCLIC: &str = "\"quasi_cyclic\": true";
const LINEAR: &str = "\"distance\": 0.2";

fn main() {
    let mut sets: Vec<String> = Vec::new();
    for p in Params::ALL {
        sets.push(primal(&format!("ferret {}", p.name), "regular", p.samples(), p.k, p.t, p.security_bits));
    }
    for p in UniParams::ALL {
        let name = format!("ferret-uni {}", p.name);
        sets.push(primal(&name, "uniform", p.samples(), p.k, p.t, p.security_bits));
    }
    for (code, assumed) in [(Code::QuasiCyclic, QUASI_CYCLIC), (Code::Linear, LINEAR)] {
        let (name, t) = (code.name(), code.weight());
        sets.extend(dual(&format!("silent {name}"), 128 * t, t, assumed));
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
    println!("[{}]", sets.join(",\n "));
}
