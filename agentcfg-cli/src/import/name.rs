//! Identifiers of agents from the names in a source.

use agentcfg_core::validate::MAX_AGENT_ID;

/// An identifier from a name: small letters, digits, `-` and `_`, and at most 50 of them. Latin letters lose their
/// marks, letters of other scripts are spelled by their numbers, and all else becomes hyphens. One that is cut ends
/// with a number of the whole.
pub fn identifier(name: &str) -> String {
    let text: String = name.chars().flat_map(char::to_lowercase).map(spelled).collect();
    let words: Vec<&str> = text.split('-').filter(|word| !word.is_empty()).collect();
    let whole = words.join("-");
    if whole.len() <= MAX_AGENT_ID {
        return whole;
    }
    let end = format!("{:06x}", hash(&whole) & 0xff_ffff);
    let begin = &whole[..MAX_AGENT_ID - end.len() - 1];
    format!("{}-{end}", begin.trim_end_matches('-'))
}

/// A small letter or another character in the letters of an identifier.
fn spelled(c: char) -> String {
    let plain = match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'þ' => "th",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // A mark of its own belongs to the letter before it.
        '\u{300}'..='\u{36f}' => "",
        c if c.is_ascii_alphanumeric() || c == '_' => return c.to_string(),
        c if c.is_alphanumeric() => return format!("-u{:x}-", u32::from(c)),
        _ => "-",
    };
    plain.to_owned()
}

/// FNV-1a, which is the same on every machine.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_made_from_names() {
        for (name, id) in [
            ("Code Reviewer", "code-reviewer"),
            ("help/triage", "help-triage"),
            ("  --a__b--  ", "a__b"),
            ("写手", "u5199-u624b"),
            ("写手 AI", "u5199-u624b-ai"),
            ("代码审查 AI", "u4ee3-u7801-u5ba1-u67e5-ai"),
            ("Überprüfer", "uberprufer"),
            ("U\u{308}berpru\u{308}fer", "uberprufer"),
            ("Łódź ŒUVRE Straße", "lodz-oeuvre-strasse"),
            ("***", ""),
        ] {
            assert_eq!(identifier(name), id, "{name}");
        }
    }

    #[test]
    fn long_names_that_begin_alike_differ() {
        let long = "review of code ".repeat(10);
        let ids = [identifier(&long), identifier(&format!("{long} in Rust"))];
        assert_eq!(ids[0], "review-of-code-review-of-code-review-of-cod-7188e8");
        assert_ne!(ids[0], ids[1]);
        assert!(ids.iter().all(|id| id.len() == MAX_AGENT_ID), "{ids:?}");
        assert_eq!(identifier(&"a".repeat(50)), "a".repeat(50));
    }
}
