//! Where this machine is in its networks, for people who tell their partner.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Somewhere in the world (addresses for documentation) and in the usual private networks: towards each of them the
/// system chooses the address that it would send from. Nothing is sent.
const ROUTES_ASKED: [SocketAddr; 5] = [
    towards(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
    towards(IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1))),
    towards(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
    towards(IpAddr::V4(Ipv4Addr::new(172, 16, 0, 1))),
    towards(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))),
];

const fn towards(address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, 9)
}

/// The addresses of this machine that others in its networks may reach, the most usual first; none where it has no
/// network.
pub(crate) fn of_this_machine() -> Vec<IpAddr> {
    let mut found = Vec::new();
    for address in ROUTES_ASKED.into_iter().filter_map(from) {
        if is_of_a_network(address) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// The address that this machine would send from.
fn from(towards: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match towards {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(towards).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// Whether others can use it: neither this machine's own, nor one of a single link, which needs the link's name.
fn is_of_a_network(address: IpAddr) -> bool {
    let is_of_a_link = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_loopback() && !address.is_unspecified() && !is_of_a_link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_else_can_use_is_none() {
        for (address, is) in [
            ("127.0.0.1", false),
            ("::1", false),
            ("0.0.0.0", false),
            ("169.254.7.7", false),
            ("fe80::1", false),
            ("192.168.1.5", true),
            ("203.0.113.9", true),
            ("fd00::5", true),
        ] {
            assert_eq!(is_of_a_network(address.parse().unwrap()), is, "{address}");
        }
    }

    #[test]
    fn the_addresses_are_this_machine_s_own_and_each_is_there_once() {
        let found = of_this_machine();
        for address in &found {
            assert!(UdpSocket::bind((*address, 0)).is_ok(), "{address} is another machine's");
            assert_eq!(found.iter().filter(|other| *other == address).count(), 1);
        }
    }

    #[test]
    fn towards_this_machine_it_sends_from_itself() {
        assert_eq!(from("127.0.0.1:9".parse().unwrap()), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
