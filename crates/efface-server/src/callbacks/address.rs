//! Where callbacks may go: to hosts that the operator named, and to no address of the inside of a
//! network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::Scheme;

/// The longest URL that is taken.
const LONGEST_URL: usize = 2048;

/// A host that callbacks may go to: `HOST`, `HOST:PORT`, or with `https://` or `http://` before it.
/// Without a scheme it is HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackHost {
    is_secure: bool,
    host: String,
    port: u16,
}

impl CallbackHost {
    /// What an URL leads to; an error in words for one that no callback can go to.
    pub(crate) fn of_url(url: &Uri) -> Result<Self, &'static str> {
        let is_secure = match url.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err("it does not begin with https://"),
        };
        let authority = url.authority().ok_or("it names no host")?;
        // Names and passwords before the host are how one host is made to look like another.
        if authority.as_str().contains('@') {
            return Err("it holds a name or a password");
        }
        let port = url.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty() {
            return Err("it names no host");
        }
        Ok(Self {
            is_secure,
            host,
            port,
        })
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The name or address without brackets, as it is resolved.
    pub(crate) fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for CallbackHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        let url: Uri = whole
            .parse()
            .map_err(|_| format!("`{text}` is no host; an example is hooks.example.org:8443"))?;
        if url.path() != "/" && !url.path().is_empty() || url.query().is_some() {
            return Err(format!(
                "`{text}` is more than a host; callbacks name their own paths"
            ));
        }
        Self::of_url(&url).map_err(|fault| format!("`{text}` is no host: {fault}"))
    }
}

impl fmt::Display for CallbackHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// Reads the URL of a callback, which must lead to one of these hosts.
pub(crate) fn parse_url(
    text: &str,
    allowed: &[CallbackHost],
) -> Result<(Uri, CallbackHost), &'static str> {
    if text.len() > LONGEST_URL {
        return Err("it is longer than 2048 bytes");
    }
    let url: Uri = text.parse().map_err(|_| "it is no URL")?;
    let host = CallbackHost::of_url(&url)?;
    if !allowed.contains(&host) {
        return Err("its host is none that the server was told to send callbacks to");
    }
    Ok((url, host))
}

/// Whether an address is one of the open Internet. Everything that is set aside for anything else
/// is not.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match inner_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let set_aside = a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        // Carriers' own addresses, IETF protocols, relays of 6to4, and benchmarks.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !set_aside
}

/// The IPv4 address that an IPv6 address leads to: mapped, translated (NAT64) or tunnelled (6to4).
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let of = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(of(high, low))
        }
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Only 2000::/3 has been given out. Within it, 2001::/23 is for protocols (Teredo among them)
    // and two blocks are for books.
    let given_out = parts[0] & 0xe000 == 0x2000;
    let for_protocols = parts[0] == 0x2001 && parts[1] < 0x200;
    let for_books =
        (parts[0] == 0x2001 && parts[1] == 0xdb8) || (parts[0] == 0x3fff && parts[1] < 0x1000);
    given_out && !for_protocols && !for_books
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_inside_are_not_public() {
        let inside = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn urls_lead_to_hosts_that_were_named_and_to_nothing_that_looks_like_them() {
        let allowed: Vec<CallbackHost> = ["hooks.example.org", "http://10.0.0.7:8080"]
            .iter()
            .map(|host| host.parse().unwrap())
            .collect();
        for url in [
            "https://hooks.example.org/a?b=c",
            "https://HOOKS.example.org:443",
            "https://hooks.example.org./",
            "http://10.0.0.7:8080/x",
        ] {
            assert!(parse_url(url, &allowed).is_ok(), "{url}");
        }
        let refused = [
            "http://hooks.example.org/",
            "https://hooks.example.org:8443/",
            "https://hooks.example.org.evil.example/",
            "https://hooks.example.org@evil.example/",
            "https://user:word@hooks.example.org/",
            "https://evil.example/hooks.example.org",
            "https://evil.example#hooks.example.org",
            "ftp://hooks.example.org/",
            "file:///etc/passwd",
            "//hooks.example.org/",
            "hooks.example.org",
            "https://",
            "https://[::1]/",
            "http://10.0.0.7/",
            "http://0x0a000007:8080/",
            "https://hooks.example.org\\@evil.example/",
            "https://hooks.example.org\r\nHost: x/",
        ];
        for url in refused {
            assert!(parse_url(url, &allowed).is_err(), "{url}");
        }
        assert!("hooks.example.org/path".parse::<CallbackHost>().is_err());
        assert!("".parse::<CallbackHost>().is_err());
    }
}
