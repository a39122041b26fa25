use std::sync::atomic::{AtomicU8, Ordering};

use proptest::prelude::*;

use super::*;
use crate::clock::SystemEntropy;

fn workspace(n: u128) -> WorkspaceId {
    WorkspaceId::new(uuid::Uuid::from_u128(n))
}

fn key(byte: u8) -> MasterKey {
    format!("{byte:02x}").repeat(32).parse().unwrap()
}

fn vault(bytes: &[u8]) -> Vault {
    Vault::new(bytes.iter().copied().map(key).collect()).unwrap()
}

fn credential(text: &str) -> ProviderCredential {
    ProviderCredential::new(text).unwrap()
}

/// Entropy that counts up, so that the nonces are distinct and known.
struct Counting(AtomicU8);

impl Entropy for Counting {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), EntropyError> {
        buffer.fill(self.0.fetch_add(1, Ordering::Relaxed));
        Ok(())
    }
}

struct Dry;

impl Entropy for Dry {
    fn fill(&self, _: &mut [u8]) -> Result<(), EntropyError> {
        Err(EntropyError("dry".into()))
    }
}

fn any_credential() -> impl Strategy<Value = String> {
    "[!-~]{1,500}"
}

proptest! {
    #[test]
    fn a_sealed_text_opens(text in any_credential(), id in any::<u128>(), provider in proptest::sample::select(&[Provider::ANTHROPIC, Provider::OPENAI][..])) {
        let vault = vault(&[1, 2]);
        let sealed = vault.seal(workspace(id), provider, &credential(&text), &SystemEntropy).unwrap();
        let read_back: Sealed = sealed.to_string().parse().unwrap();
        let opened = vault.open(workspace(id), provider, &read_back).unwrap();
        prop_assert_eq!(opened.expose(), text);
    }

    #[test]
    fn any_flipped_bit_is_refused(text in any_credential(), at in any::<prop::sample::Index>()) {
        let vault = vault(&[1]);
        let sealed = vault.seal(workspace(1), Provider::OPENAI, &credential(&text), &SystemEntropy).unwrap();
        let mut bytes = sealed.as_bytes().to_vec();
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let changed = Sealed::from_bytes(bytes).unwrap();
        prop_assert!(vault.open(workspace(1), Provider::OPENAI, &changed).is_err(), "bit {}", bit);
    }

    #[test]
    fn another_workspace_is_refused(text in any_credential(), a in any::<u128>(), b in any::<u128>()) {
        prop_assume!(a != b);
        let vault = vault(&[1]);
        let sealed = vault.seal(workspace(a), Provider::OPENAI, &credential(&text), &SystemEntropy).unwrap();
        let refused = OpenError::Refused(key(1).id());
        prop_assert_eq!(vault.open(workspace(b), Provider::OPENAI, &sealed).unwrap_err(), refused);
        prop_assert_eq!(vault.open(workspace(a), Provider::ANTHROPIC, &sealed).unwrap_err(), refused);
    }

    #[test]
    fn opening_arbitrary_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(sealed) = Sealed::from_bytes(bytes) {
            prop_assert!(vault(&[1]).open(workspace(1), Provider::OPENAI, &sealed).is_err());
        }
    }

    #[test]
    fn parsing_an_arbitrary_master_key_never_panics(text in "\\PC{0,70}") {
        let _ = text.parse::<MasterKey>();
        let _ = text.parse::<KeyId>();
        let _ = text.parse::<Sealed>();
    }
}

#[test]
fn every_flipped_bit_and_every_truncation_is_refused() {
    let vault = vault(&[1]);
    let sealed = vault
        .seal(workspace(1), Provider::OPENAI, &credential("sk-canary"), &SystemEntropy)
        .unwrap();
    let bytes = sealed.as_bytes();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = Sealed::from_bytes(changed).unwrap();
        assert!(
            vault.open(workspace(1), Provider::OPENAI, &changed).is_err(),
            "bit {bit}"
        );
    }
    for length in 0..bytes.len() {
        let cut = Sealed::from_bytes(bytes[..length].to_vec());
        assert!(
            cut.is_err() || vault.open(workspace(1), Provider::OPENAI, &cut.unwrap()).is_err(),
            "cut at {length}"
        );
    }
    let longer = Sealed::from_bytes([bytes, &[0]].concat()).unwrap();
    assert!(vault.open(workspace(1), Provider::OPENAI, &longer).is_err());
}

#[test]
fn the_first_key_seals_and_all_open() {
    let (old, new) = (vault(&[1]), vault(&[2, 1]));
    let place = (workspace(1), Provider::ANTHROPIC);
    let before = old.seal(place.0, place.1, &credential("a"), &SystemEntropy).unwrap();
    let after = new.seal(place.0, place.1, &credential("b"), &SystemEntropy).unwrap();
    assert_eq!(before.key_id(), key(1).id());
    assert_eq!(after.key_id(), key(2).id());
    assert_eq!(new.open(place.0, place.1, &before).unwrap().expose(), "a");
    assert_eq!(new.open(place.0, place.1, &after).unwrap().expose(), "b");
    assert_eq!(
        old.open(place.0, place.1, &after).unwrap_err(),
        OpenError::UnknownKey(key(2).id())
    );
    assert_eq!(new.key_ids().collect::<Vec<_>>(), [key(2).id(), key(1).id()]);
}

#[test]
fn a_check_value_identifies_its_key_and_is_not_a_provider_key() {
    let vault = vault(&[1, 2]);
    let check = vault.check_value(&SystemEntropy).unwrap();
    assert_eq!(vault.verify(&check), Ok(()));
    assert_eq!(super::tests::vault(&[2, 1]).verify(&check), Ok(()));
    assert_eq!(
        super::tests::vault(&[2]).verify(&check),
        Err(OpenError::UnknownKey(key(1).id()))
    );
    assert!(vault.open(workspace(0), Provider::OPENAI, &check).is_err());
    let sealed = vault
        .seal(workspace(0), Provider::OPENAI, &credential("x"), &SystemEntropy)
        .unwrap();
    assert!(vault.verify(&sealed).is_err());
}

#[test]
fn a_different_key_with_the_same_identifier_opens_nothing() {
    let vault = vault(&[1]);
    let sealed = vault
        .seal(workspace(1), Provider::OPENAI, &credential("x"), &SystemEntropy)
        .unwrap();
    let forged = MasterKey::with_id_of(key(9), key(1).id());
    let refused = Vault { keys: vec![forged] }.open(workspace(1), Provider::OPENAI, &sealed);
    assert_eq!(refused.unwrap_err(), OpenError::Refused(key(1).id()));
}

#[test]
fn a_newer_format_is_distinguished_from_damage() {
    let vault = vault(&[1]);
    let sealed = vault
        .seal(workspace(1), Provider::OPENAI, &credential("x"), &SystemEntropy)
        .unwrap();
    let mut bytes = sealed.as_bytes().to_vec();
    bytes[0] = 2;
    let newer = Sealed::from_bytes(bytes).unwrap();
    assert_eq!(
        vault.open(workspace(1), Provider::OPENAI, &newer).unwrap_err(),
        OpenError::TooNew(2)
    );
}

#[test]
fn each_nonce_is_fresh_randomness() {
    let vault = vault(&[1]);
    let entropy = Counting(AtomicU8::new(0));
    let seal = || {
        vault
            .seal(workspace(1), Provider::OPENAI, &credential("x"), &entropy)
            .unwrap()
    };
    let (a, b) = (seal(), seal());
    assert_eq!((a.nonce(), b.nonce()), ([0; 24], [1; 24]));
    assert!(
        vault
            .seal(workspace(1), Provider::OPENAI, &credential("x"), &Dry)
            .is_err()
    );
    assert!(MasterKey::generate(&Dry).is_err());
}

/// Every later release must open what an earlier release sealed.
#[test]
fn the_bytes_of_format_1_are_stable() {
    let vault = vault(&[7]);
    let entropy = Counting(AtomicU8::new(3));
    let workspace: WorkspaceId = "018f2d7c-0000-7000-8000-000000000001".parse().unwrap();
    let sealed = vault
        .seal(workspace, Provider::ANTHROPIC, &credential("sk-canary"), &entropy)
        .unwrap();
    assert_eq!(sealed.to_string(), GOLDEN);
    let golden: Sealed = GOLDEN.parse().unwrap();
    let opened = vault.open(workspace, Provider::ANTHROPIC, &golden).unwrap();
    assert_eq!(opened.expose(), "sk-canary");
}

const GOLDEN: &str = "AXfGg0+X13Q0AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMD921meBRPp4IOvzA42ZiMwUBxl9DKiMutiA==";

#[test]
fn master_keys_are_read_in_each_documented_form() {
    let key = key(0xfb);
    for text in [
        "fb".repeat(32),
        "FB".repeat(32),
        "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s=".into(),
        "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/s".into(),
        "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s=".into(),
        "-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_v7-_s".into(),
        key.expose_text().to_string(),
    ] {
        assert_eq!(text.parse::<MasterKey>().unwrap().id(), key.id(), "{text}");
    }
    for text in [
        String::new(),
        "fb".repeat(31),
        "fb".repeat(33),
        format!("{}zz", "fb".repeat(31)),
        "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7".into(),
        "+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/v7+/t".into(),
        " ".repeat(64),
    ] {
        let error = text.parse::<MasterKey>().unwrap_err().to_string();
        assert!(!error.contains("fb") && !error.contains("+/v7"), "{error}");
    }
}

#[test]
fn a_keyring_is_not_empty_and_has_no_duplicates() {
    assert_eq!(Vault::new(Vec::new()).unwrap_err(), InvalidKeyring::Empty);
    let twice = Vault::new(vec![key(1), key(2), key(1)]).unwrap_err();
    assert_eq!(twice, InvalidKeyring::Twice(key(1).id()));
}

#[test]
fn debug_output_and_errors_contain_no_secret() {
    let vault = vault(&[0xab]);
    let secret = credential("sk-canary");
    let sealed = vault
        .seal(workspace(1), Provider::OPENAI, &secret, &SystemEntropy)
        .unwrap();
    let shown = format!("{vault:?} {secret:?} {sealed:?} {:?} {}", key(0xab), sealed);
    for hidden in ["sk-canary", "abababab", "c2stY2FuYXJ5", "736b2d63616e617279"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

/// Fails to compile if a type that holds plaintext implements `Display` or `Serialize`: then the call
/// below would be ambiguous.
#[test]
fn plaintext_types_can_be_neither_printed_nor_serialised() {
    trait Unless<Marker> {
        fn holds() {}
    }
    struct Printed;
    struct Serialised;
    impl<T: ?Sized> Unless<()> for T {}
    impl<T: fmt::Display> Unless<Printed> for T {}
    impl<T: serde::Serialize> Unless<Serialised> for T {}
    <ProviderCredential as Unless<_>>::holds();
    <MasterKey as Unless<_>>::holds();
    <Vault as Unless<_>>::holds();
}
