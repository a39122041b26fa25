//! Which IP addresses belong to the public internet.
//!
//! Requests to URLs that users choose must not reach the network that the server runs in: loopback, private networks,
//! the metadata services of cloud providers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The blocks of IPv4 that are not globally reachable, as address and prefix length.
///
/// They are those of the IANA special-purpose registry, multicast, the reserved block, and one public address under
/// which a cloud provider answers for the host.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT, and Alibaba Cloud's metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's host services
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, and most metadata services
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, and Oracle Cloud's metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24),  // AS112
    (Ipv4Addr::new(192, 52, 193, 0), 24),  // automatic multicast tunnelling
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(192, 175, 48, 0), 24),  // AS112
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarks
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, and broadcast
];

/// The block of IPv6 from which global unicast addresses are assigned. Everything outside of it is refused:
/// unspecified, loopback, mapped and translated IPv4 (NAT64), unique local, link-local, site-local and multicast
/// addresses.
const GLOBAL_UNICAST: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The blocks within [`GLOBAL_UNICAST`] that are not public, or that contain an IPv4 address.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u32)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments: Teredo, benchmarks, ORCHID
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16), // the former 6bone
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

/// Whether an address belongs to the public internet. Addresses that only contain a public IPv4 address, such as mapped
/// ones, do not.
///
/// ```
/// use agentcfg_core::address::is_public;
/// assert!(is_public("93.184.215.14".parse()?));
/// assert!(!is_public("169.254.169.254".parse()?));
/// assert!(!is_public("::ffff:93.184.215.14".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4
            .iter()
            .any(|(block, length)| address.to_bits() >> (32 - length) == block.to_bits() >> (32 - length)),
        IpAddr::V6(address) => {
            let within = |&(block, length): &(Ipv6Addr, u32)| {
                address.to_bits() >> (128 - length) == block.to_bits() >> (128 - length)
            };
            within(&GLOBAL_UNICAST) && !NOT_PUBLIC_V6.iter().any(within)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_internet_are_public() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:80b::200e",
            "3ffd:ffff::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn all_other_addresses_are_not() {
        for text in [
            // unspecified and this network
            "0.0.0.0",
            "0.1.2.3",
            "::",
            // loopback
            "127.0.0.1",
            "127.255.255.254",
            "::1",
            // private
            "10.0.0.1",
            "10.255.255.255",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "192.168.255.255",
            "fc00::1",
            "fdff:ffff::1",
            // carrier-grade NAT
            "100.64.0.1",
            "100.127.255.255",
            // metadata services
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "192.0.0.192",
            "168.63.129.16",
            "fd00:ec2::254",
            // link-local and site-local
            "169.254.0.1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            // documentation and benchmarks
            "192.0.2.1",
            "198.51.100.255",
            "203.0.113.7",
            "198.18.0.1",
            "198.19.255.255",
            "2001:db8::1",
            "2001:2::1",
            "3fff::1",
            // multicast, reserved, broadcast
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "ff02::1",
            "ff0e::1",
            // IPv4 inside IPv6: mapped, compatible, translated, 6to4, Teredo
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "2001:0:7f00:1::1",
            "192.88.99.1",
            // discard-only, segment routing, the former 6bone
            "100::1",
            "5f00::1",
            "3ffe::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }
}
