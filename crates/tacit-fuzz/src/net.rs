//! What strangers and peers say before a protocol begins, and key files.

use crate::{Target, first, place, text};
use tacit_net::{Identity, LinkModel, PublicKey, PublicKeys, address_of, calendar, fuzzing};

pub(crate) const NET_TARGETS: &[Target] = &[
    Target {
        name: "greeting",
        run: fuzzing::greeting,
        longest: 4096,
        words: &[b"TACIT\x00", b"psi", b"\xa7"],
    },
    Target { name: "terms", run: fuzzing::terms, longest: 4096, words: &[b"psi", b"reveal", b"rows"] },
    Target { name: "frames", run: frames, longest: 4096, words: &[b"\xd7", b"\xb7", b"\xa7"] },
    Target { name: "relay", run: fuzzing::relay, longest: 512, words: &[b"taken", b"!", b"1", b"2", b"."] },
    Target { name: "call", run: fuzzing::call, longest: 512, words: &[b"tacit relay 1\x0d\x0a\x00"] },
    Target {
        name: "proxy",
        run: fuzzing::proxy,
        longest: 9000,
        words: &[b"HTTP/1.1 200", b"\x0d\x0a\x0d\x0a"],
    },
    Target { name: "invitation", run: fuzzing::invitation, longest: 512, words: &[] },
    Target {
        name: "keys",
        run: keys,
        longest: 4096,
        words: &[b"tacit-ed25519", b"tacit-ed25519-private", b"successor"],
    },
    Target {
        name: "words",
        run: words,
        longest: 256,
        words: &[b"7-walnut-harbour", b"mbit", b"ms", b"[::1]:7700", b"2026-11-26"],
    },
];

/// A channel that is read as the first bytes say.
fn frames(bytes: &[u8]) {
    let (steps, rest) = bytes.split_at(bytes.len().min(8));
    let mut channel = fuzzing::hearing(rest, steps.first().map_or(1, |most| usize::from(*most) + 1));
    let mut read = 0;
    for step in steps.iter().cycle().take(64) {
        let done = match step % 6 {
            0 => channel.recv_u64().map(|_| 8),
            1 => {
                let mut out = vec![0; usize::from(*step)];
                channel.recv(&mut out).map(|()| out.len())
            }
            2 => channel.recv_sized(1 << 20).map(|out| out.len() + 8),
            3 => channel.has_come(usize::from(*step)).map(|_| 0),
            4 => channel.recv_block().map(|_| 16),
            _ => {
                channel.next_message();
                Ok(0)
            }
        };
        match done {
            Ok(bytes) => read += bytes,
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "an error of two lines");
                assert!(channel.recv_u64().is_err(), "a channel goes on after an error");
                break;
            }
        }
    }
    assert!(read <= rest.len(), "more was read than was sent");
}

/// Key files, public and private.
fn keys(bytes: &[u8]) {
    let Some(content) = text(bytes) else { return };
    fuzzing::public_keys(content);
    let path = place::file("some.key", bytes);
    let _ = (PublicKey::load(&path), PublicKeys::load(&path), PublicKeys::of_file(&path));
    if let Ok(identity) = Identity::load(&path) {
        assert!(Identity::load(&path).is_ok_and(|again| again.public() == identity.public()));
        assert!(PublicKey::load(&path).is_err(), "a private key passes for a public one");
    }
}

/// What people type: codes, links, addresses, days.
fn words(bytes: &[u8]) {
    let (kind, rest) = first(bytes);
    let Some(text) = text(rest) else { return };
    match kind % 4 {
        0 => {
            if let Ok(code) = text.parse::<tacit_net::invite::Code>() {
                let written = code.text();
                assert!(written.parse::<tacit_net::invite::Code>().is_ok_and(|again| again == code));
            }
        }
        1 => {
            let _ = text.parse::<LinkModel>();
        }
        2 => {
            let _ = address_of(text);
        }
        _ => {
            if let Some(day) = calendar::day_of(text) {
                assert_eq!(calendar::date(day), text);
            }
        }
    }
}

pub(crate) fn whole() -> Vec<(&'static str, Vec<u8>)> {
    let mut out = fuzzing::seeds();
    let somebody = Identity::of_secret("tacit 1 fuzzing", &[7; 32]).expect("a seed is a key");
    out.push(("keys", b"tacit-ed25519-private BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n".to_vec()));
    out.push(("keys", somebody.public().line("alice").into_bytes()));
    out.push((
        "frames",
        [&[0, 2, 4, 1, 3][..], &[0xd7, 20, 0, 0], &[4, 0, 0, 0, 0, 0, 0, 0], &[7; 12], &[0xb7, 0, 0, 0]]
            .concat(),
    ));
    out.push(("relay", b"...1".to_vec()));
    out.push(("relay", b".!\x05taken".to_vec()));
    out.push(("call", [&b"tacit relay 1\r\n\0"[..], &[1, 1], &[5; 32], &[6; 16], &[7; 64]].concat()));
    out.push(("proxy", b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec()));
    out.push(("proxy", b"HTTP/1.0 503 Busy\r\nServer: x\r\n\r\n".to_vec()));
    for typed in [
        &b"\x007-walnut-harbour"[..],
        b"\x01100mbit,20ms",
        b"\x02[::1]:7700",
        b"\x02alice.example:7700",
        b"\x032026-11-26",
    ] {
        out.push(("words", typed.to_vec()));
    }
    out
}
