//! Who makes room where connections of unknown callers are bounded: the oldest of the address that holds most,
//! so whoever opens many drives out its own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// What counts as one address: whoever has one of IPv6 has 2^64 of them, so those that share 64 bits are one.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(own) => IpAddr::V6(Ipv6Addr::from_bits(own.to_bits() & !u128::from(u64::MAX))),
        own => own,
    }
}

/// Which of these connections, the oldest first, makes room for another; `None` where there are none.
pub fn makes_room(held: impl IntoIterator<Item = IpAddr>) -> Option<usize> {
    let held: Vec<IpAddr> = held.into_iter().map(network).collect();
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    held.iter().for_each(|of| *counts.entry(*of).or_default() += 1);
    let most = counts.values().copied().max();
    held.iter().position(|of| counts.get(of).copied() == most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_that_one_machine_has_count_as_one() {
        let of = |text: &str| network(address(text));
        assert_eq!(of("2001:db8:0:1::7"), of("2001:db8:0:1:ffff:1:2:3"));
        assert_ne!(of("2001:db8:0:1::7"), of("2001:db8:0:2::7"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[test]
    fn who_makes_room_is_the_oldest_of_the_address_that_holds_most() {
        let mut held: Vec<(u8, u32)> = vec![(9, 0), (1, 1), (5, 2), (1, 3), (5, 4)];
        let mut order = Vec::new();
        while let Some(at) = makes_room(held.iter().map(|one| IpAddr::from([192, 0, 2, one.0]))) {
            order.push(held.remove(at).1);
        }
        assert_eq!(order, [1, 2, 0, 3, 4]);
    }

    #[test]
    fn a_machine_with_many_addresses_drives_out_its_own() {
        // Two callers of one address came first, and a hundred addresses of one network call after them.
        let mut held = vec![address("192.0.2.1"), address("192.0.2.1")];
        held.extend(
            (0..100u128)
                .map(|at| IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8_0000_0001 << 64) | (at << 32) | 7))),
        );
        for _ in 0..98 {
            assert_eq!(makes_room(held.iter().copied()), Some(2));
            held.remove(2);
        }
        assert_eq!(makes_room([]), None);
    }
}
