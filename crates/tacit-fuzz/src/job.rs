//! What a run's peers, gateways and checkpoints say.

use crate::{Target, first, place, text};
use tacit::job::psi::Reveal;
use tacit::job::psi::gateway::fuzzing as gateway;
use tacit_psi::vole_psi::fuzzing as psi;

pub(crate) const JOB_TARGETS: &[Target] = &[
    Target { name: "gateway-request", run: gateway::request, longest: 1024, words: &[] },
    Target { name: "gateway-reply", run: gateway::reply, longest: 1024, words: &[] },
    Target { name: "gateway-head", run: gateway::head, longest: 256, words: &[] },
    Target { name: "gateway-events", run: gateway::events, longest: 128, words: &[] },
    Target { name: "gateway-plan", run: planned, longest: 1024, words: &[] },
    Target { name: "gateway-state", run: state, longest: 2048, words: &[] },
    Target { name: "gateway-result", run: result, longest: 1024, words: &[] },
    Target { name: "checkpoint", run: checkpoint, longest: 1024, words: &[] },
    Target { name: "psi-request", run: psi::request, longest: 512, words: &[] },
    Target { name: "psi-rows", run: rows, longest: 512, words: &[] },
    Target { name: "psi-received", run: psi::received, longest: 1024, words: &[] },
    Target { name: "psi-tags", run: tags, longest: 1024, words: &[] },
    Target {
        name: "reveal",
        run: reveal,
        longest: 128,
        words: &[b"payload:", b"sum:", b"over:", b"mean:", b"\\,"],
    },
];

fn planned(bytes: &[u8]) {
    gateway::planned(bytes);
    gateway::layout(bytes);
}

/// Two bytes give the plan's length; the progress follows it.
fn state(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (plan, progress) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    gateway::state(&place::empty(), plan, progress);
}

fn result(bytes: &[u8]) {
    let Some((&[keys, places, columns], rest)) = bytes.split_first_chunk::<3>() else { return };
    let columns = (columns > 0).then_some(usize::from(columns));
    gateway::result(keys.min(places), places, columns, rest);
}

/// Two bytes give the lengths of plan and progress; the rows of a bucket follow.
fn checkpoint(bytes: &[u8]) {
    let Some((&[one, two], rest)) = bytes.split_first_chunk::<2>() else { return };
    let (plan, rest) = rest.split_at(rest.len().min(one.into()));
    let (progress, rows) = rest.split_at(rest.len().min(two.into()));
    gateway::checkpoint(&place::empty(), [plan, progress, rows]);
}

/// A byte says how many columns there are, and so many bytes how wide they are.
fn rows(bytes: &[u8]) {
    let (columns, rest) = first(bytes);
    let (widths, rest) = rest.split_at(rest.len().min(usize::from(columns % 8)));
    psi::rows(widths, 4, rest);
}

fn tags(bytes: &[u8]) {
    let Some((&[count, prefix, rest], bytes)) = bytes.split_first_chunk::<3>() else { return };
    let (prefix, rest) = (u32::from(prefix % 9), usize::from(rest % 16));
    if count > 0 && (1..=15).contains(&rest) {
        psi::tags(count.into(), prefix, rest, bytes);
    }
}

fn reveal(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(reveal) = text.parse::<Reveal>() {
        assert!(text.parse::<Reveal>().is_ok_and(|again| again == reveal));
    }
    let _ = tacit_data::keys::Named::parse(text);
    let _ = tacit_data::values::Column::parse(text);
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let mut out = Vec::new();
    for (name, bytes) in gateway::seeds() {
        match name {
            "request" => out.push(("gateway-request", bytes)),
            "reply" => out.push(("gateway-reply", bytes)),
            "head" => out.push(("gateway-head", bytes)),
            "events" => out.push(("gateway-events", bytes)),
            "state" => out.push(("gateway-state", bytes)),
            _ => out.push(("gateway-plan", bytes)),
        }
    }
    for (name, bytes) in psi::seeds() {
        match name {
            "request" => out.push(("psi-request", bytes)),
            "rows" => out.push(("psi-rows", bytes)),
            _ => {
                out.push(("gateway-result", [&[4, 8, 2, 0b1011][..], &bytes].concat()));
                out.push(("psi-received", bytes));
            }
        }
    }
    out.push(("gateway-result", vec![4, 8, 0, 0b1011]));
    out.push(("psi-tags", [&[4, 2, 15, 0b0101_0101][..], &[1; 15], &[2; 15], &[3; 15], &[4; 15]].concat()));
    let mut plan = vec![92, 7];
    plan.extend([1; 64]);
    plan.extend([100u64, 200, 4, 0].iter().flat_map(|number| number.to_le_bytes()));
    plan[0] = (plan.len() - 2) as u8;
    plan.extend([1, 0, 0, 1, 1, 0, 0]);
    plan.extend([5u64, u64::MAX].iter().flat_map(|number| number.to_le_bytes()));
    out.push(("checkpoint", plan));
    for typed in
        ["rows", "count", "sum:amount", "payload:name,amount", "over:5:amount", "max:a\\:b", "email:date"]
    {
        out.push(("reveal", typed.as_bytes().to_vec()));
    }
    out
}
