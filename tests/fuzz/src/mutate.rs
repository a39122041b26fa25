//! A mutator of bytes without coverage: the same seed gives the same mutations.

use fastrand::Rng;

/// The longest input that a mutation makes.
pub const LONGEST: usize = 64 * 1024;

/// Texts with a meaning somewhere.
const TOKENS: &[&[u8]] = &[
    b"\r\n\r\n",
    b"\r\n",
    b"\n",
    b"\0",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"\xff",
    b"%00",
    b"%",
    b"%2f",
    b"../",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"[[[[[[[[",
    b"{\"a\":",
    b"1e999",
    b"-0",
    b"18446744073709551616",
    b"0.1",
    b"---\n",
    b"&a *a",
    b"!!str ",
    b": ",
    b"- ",
    b"? ",
    b"|+\n",
    b"Content-Length: ",
    b"Transfer-Encoding: chunked\r\n",
    b"Host: a\r\n",
    b"GET / HTTP/1.1\r\n",
    b"0\r\n\r\n",
    b"bearer ",
    b"svc_live_",
    b"eyJ",
    b"..",
    b"@",
    b"#",
    b"[::ffff:127.0.0.1]",
    b"127.1",
    b"0x7f000001",
    b"\xe2\x80\xae",
    b"https://",
    b":443",
    b"latest",
    b"now",
    b"=",
    b"&",
    b"+",
    b"\"\"\"",
    b"[[models]]\n",
];

/// A mutation of one of these inputs.
pub fn mutation(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = pick(corpus, rng).cloned().unwrap_or_default();
    for _ in 0..1 + rng.usize(..4) {
        change(&mut input, corpus, rng);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let place = rng.usize(..=input.len());
    let range = place..(place + rng.usize(..32)).min(input.len());
    match rng.u8(..10) {
        0 => {
            if let Some(byte) = input.get_mut(place) {
                *byte ^= 1 << rng.u8(..8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(place) {
                *byte = *pick(&[0, 1, b'0', b'9', b'"', b'\n', b' ', 0x7f, 0x80, 0xff], rng).unwrap_or(&0);
            }
        }
        2 => drop(input.drain(range)),
        3 => input.truncate(place),
        4 => insert(input, place, pick(TOKENS, rng).copied().unwrap_or_default()),
        5 => {
            let part = input[range].to_vec();
            insert(input, place, &part);
        }
        // A part again and again: time and memory that grow faster than the input show here.
        6 => {
            let part = input[range].to_vec();
            let most = LONGEST.saturating_sub(input.len()) / part.len().max(1);
            let times = 1 << rng.u32(..14);
            let times = rng.usize(..=most.min(times));
            insert(input, place, &part.repeat(times));
        }
        7 => insert(input, place, &[rng.u8(..)]),
        8 => {
            let other = pick(corpus, rng).cloned().unwrap_or_default();
            let from = rng.usize(..=other.len());
            input.truncate(place);
            input.extend_from_slice(&other[from..]);
        }
        _ => {
            let token = pick(TOKENS, rng).copied().unwrap_or_default();
            input.splice(range, token.iter().copied());
        }
    }
}

fn insert(input: &mut Vec<u8>, place: usize, bytes: &[u8]) {
    input.splice(place..place, bytes.iter().copied());
}

fn pick<'a, T>(from: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    if from.is_empty() {
        None
    } else {
        from.get(rng.usize(..from.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mutations_and_another_seed_others() {
        let corpus = [b"{\"a\": 1}".to_vec(), b"x".to_vec()];
        let mutations = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..200).map(|_| mutation(&corpus, &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(mutations(1), mutations(1));
        assert_ne!(mutations(1), mutations(2));
        assert!(mutations(1).iter().all(|input| input.len() <= LONGEST));
        assert!(mutations(1).iter().any(|input| input.len() > 1000), "some grow");
        assert!(mutations(3).iter().any(|input| !corpus.contains(input)));
    }
}
