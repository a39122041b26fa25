//! Finds the members `usage` in a JSON text while it passes.

/// The longest `usage` that is kept. A longer one is none.
const LONGEST: usize = 64 << 10;

/// The longest name of a model that is kept.
const MODEL: usize = 256;

/// The longest name of a member that matters here.
const NAME: usize = 8;

/// Reads a JSON object byte by byte and keeps the object that is its member `usage`, or that of its member `response`
/// or `message`. All else is forgotten, so a text of any length takes the same memory. Of a text that is no JSON it
/// finds nothing, or something that is no report.
#[derive(Debug, Default)]
pub struct Finder {
    /// How many objects and arrays are open.
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The members that are being read at depth 1 and 2.
    members: [Member; 2],
    /// The name that is being read.
    name: Vec<u8>,
    in_name: bool,
    kept: Vec<u8>,
    /// The depth outside of the object that is being kept.
    keeping: Option<usize>,
    /// Whether `model` is looked for too. It is found once.
    wants_model: bool,
    /// The text of `model` that is being read.
    model: Vec<u8>,
    in_model: bool,
}

/// A member of an object at one of the outer depths.
#[derive(Debug, Default, Clone, Copy)]
struct Member {
    /// Whether the value around it is an object, and not an array.
    in_object: bool,
    /// Whether the next text is a name.
    at_name: bool,
    name: Name,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Name {
    #[default]
    Other,
    Usage,
    Model,
    /// One whose value has a `usage` of its own.
    Outer,
}

/// Where a `usage` was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the top of the text.
    Top,
    /// Within `response` or `message`.
    Within,
    /// The text of `model`, without its quotes, in either place.
    Model,
}

impl Finder {
    /// One at the beginning of a text, that looks for `model` too where it is wanted.
    pub fn new(wants_model: bool) -> Self {
        Self {
            wants_model,
            ..Self::default()
        }
    }

    /// Whether `model` is looked for still.
    pub fn wants_model(&self) -> bool {
        self.wants_model
    }

    /// Reads on, and calls `found` for each `usage` that ends here.
    pub fn read(&mut self, bytes: &[u8], found: &mut impl FnMut(Place, &[u8])) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if self.in_text && !self.is_escaped && !matches!(byte, b'"' | b'\\') {
                let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                self.take(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            }
            self.take(&rest[..1]);
            self.step(byte, found);
            rest = after;
        }
    }

    /// Keeps bytes of a name, or of a `usage`.
    fn take(&mut self, bytes: &[u8]) {
        if self.in_name && self.name.len() <= NAME {
            self.name.extend_from_slice(&bytes[..bytes.len().min(NAME + 1)]);
        }
        if self.in_model && self.model.len() <= MODEL {
            self.model.extend_from_slice(&bytes[..bytes.len().min(MODEL + 1)]);
        }
        if self.keeping.is_some() {
            if self.kept.len() + bytes.len() > LONGEST {
                self.keeping = None;
            } else {
                self.kept.extend_from_slice(bytes);
            }
        }
    }

    fn step(&mut self, byte: u8, found: &mut impl FnMut(Place, &[u8])) {
        if self.in_text {
            if self.is_escaped {
                self.is_escaped = false;
            } else if byte == b'\\' {
                self.is_escaped = true;
            } else {
                self.in_text = false;
                self.end_name();
                self.end_model(found);
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                let member = self.member();
                self.in_name = member.is_some_and(|member| member.in_object && member.at_name);
                self.name.clear();
                self.in_model = self.wants_model && !self.in_name && self.is_at_model();
            }
            b':' => self.set_at_name(false),
            b',' => self.set_at_name(true),
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(found),
            _ => {}
        }
    }

    /// The member that is being read, where it is at an outer depth.
    fn member(&mut self) -> Option<&mut Member> {
        self.members.get_mut(self.depth.wrapping_sub(1))
    }

    fn set_at_name(&mut self, at_name: bool) {
        if let Some(member) = self.member() {
            member.at_name = at_name;
        }
    }

    fn end_name(&mut self) {
        if !self.in_name {
            return;
        }
        self.in_name = false;
        // The closing quote was taken too.
        let name = match self.name.strip_suffix(b"\"") {
            Some(b"usage") => Name::Usage,
            Some(b"model") => Name::Model,
            Some(b"response" | b"message") => Name::Outer,
            _ => Name::Other,
        };
        if let Some(member) = self.member() {
            member.name = name;
        }
    }

    /// Whether the value that begins here is that of `model`.
    fn is_at_model(&self) -> bool {
        let [outer, inner] = &self.members;
        match self.depth {
            1 => outer.name == Name::Model,
            2 => outer.name == Name::Outer && inner.in_object && inner.name == Name::Model,
            _ => false,
        }
    }

    fn end_model(&mut self, found: &mut impl FnMut(Place, &[u8])) {
        if !std::mem::take(&mut self.in_model) {
            return;
        }
        // The closing quote was taken too, unless the text is too long to be a name.
        if let Some(model) = self.model.strip_suffix(b"\"") {
            self.wants_model = false;
            found(Place::Model, model);
        }
        self.model.clear();
    }

    fn open(&mut self, is_object: bool) {
        let names = self.members.map(|member| member.name);
        let is_usage = match self.depth {
            1 => names[0] == Name::Usage,
            2 => names[0] == Name::Outer && names[1] == Name::Usage,
            _ => false,
        };
        if is_usage && is_object && self.keeping.is_none() {
            self.kept.clear();
            self.kept.push(b'{');
            self.keeping = Some(self.depth);
        }
        self.depth += 1;
        if let Some(member) = self.member() {
            *member = Member {
                in_object: is_object,
                at_name: true,
                name: Name::Other,
            };
        }
    }

    fn close(&mut self, found: &mut impl FnMut(Place, &[u8])) {
        self.depth = self.depth.saturating_sub(1);
        if self.keeping == Some(self.depth) {
            self.keeping = None;
            let place = if self.depth == 1 { Place::Top } else { Place::Within };
            found(place, &self.kept);
            self.kept.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is found in a text that comes in pieces of this length.
    fn found(text: &str, piece: usize) -> Vec<(Place, String)> {
        let mut finder = Finder::default();
        let mut all = Vec::new();
        for bytes in text.as_bytes().chunks(piece) {
            finder.read(bytes, &mut |place, usage| {
                all.push((place, String::from_utf8(usage.to_vec()).unwrap()));
            });
        }
        all
    }

    #[test]
    fn usage_is_found_at_its_places_alone() {
        let cases: [(&str, &[(Place, &str)]); 10] = [
            (r#"{"usage":{"a":1}}"#, &[(Place::Top, r#"{"a":1}"#)]),
            (
                r#"{ "x" : ["usage", {"usage":{"no":1}}], "usage" : {"a":{"b":"}"}} , "y":"\"usage\""}"#,
                &[(Place::Top, r#"{"a":{"b":"}"}}"#)],
            ),
            (
                r#"{"type":"response.completed","response":{"output":[{"usage":{"no":1}}],"usage":{"a":1}}}"#,
                &[(Place::Within, r#"{"a":1}"#)],
            ),
            (
                r#"{"message":{"content":"{\"usage\":{}}","usage":{"a":1}},"usage":{"b":2}}"#,
                &[(Place::Within, r#"{"a":1}"#), (Place::Top, r#"{"b":2}"#)],
            ),
            (r#"{"usage":null}"#, &[]),
            (r#"{"usage":[{"a":1}]}"#, &[]),
            (r#"{"other":{"usage":{"a":1}}}"#, &[]),
            (r#"[{"usage":{"a":1}}]"#, &[]),
            (r#"{"response":[{"usage":{"a":1}}]}"#, &[]),
            ("no json }}]] \"", &[]),
        ];
        for (text, expected) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                let found = found(text, piece);
                let found: Vec<_> = found.iter().map(|(place, text)| (*place, text.as_str())).collect();
                assert_eq!(found, expected, "{text} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_model_is_found_once_where_it_is_wanted() {
        let long = format!(r#"{{"model":"{}"}}"#, "x".repeat(300));
        for (text, expected) in [
            (
                r#"{"id":"model","x":{"model":"no"},"model":"gpt-5.5","y":["model","z"]}"#,
                Some("gpt-5.5"),
            ),
            (
                r#"{"type":"message_start","message":{"model":"claude","usage":{"a":1}}}"#,
                Some("claude"),
            ),
            (
                r#"{"response":{"output":[{"model":"no"}],"model":"a"},"model":"b"}"#,
                Some("a"),
            ),
            (r#"{"model":["no"],"x":"no"}"#, None),
            (r#"{"model":null,"x":"no"}"#, None),
            (r#"["model","no"]"#, None),
            (&long, None),
        ] {
            for piece in [1, 3, 1000] {
                let mut finder = Finder::new(true);
                let mut models = Vec::new();
                for bytes in text.as_bytes().chunks(piece) {
                    finder.read(bytes, &mut |place, text| {
                        if place == Place::Model {
                            models.push(String::from_utf8(text.to_vec()).unwrap());
                        }
                    });
                }
                let models: Vec<_> = models.iter().map(String::as_str).collect();
                assert_eq!(
                    models,
                    expected.into_iter().collect::<Vec<_>>(),
                    "{text} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut finder = Finder::default();
        let mut count = 0;
        finder.read(br#"{"usage":{"a":""#, &mut |_, _| count += 1);
        for _ in 0..1000 {
            finder.read(&[b'x'; 1000], &mut |_, _| count += 1);
        }
        finder.read(br#""}}"#, &mut |_, _| count += 1);
        assert_eq!(count, 0);
        assert!(finder.kept.capacity() <= 2 * LONGEST && finder.name.capacity() < 100);
    }

    proptest! {
        #[test]
        fn any_object_around_it_does_not_hide_it(before in ".{0,40}", after in ".{0,40}", piece in 1_usize..20) {
            let text = serde_json::json!({ "a": before, "usage": { "text": after, "n": 1 }, "z": [after] }).to_string();
            let expected = serde_json::json!({ "text": after, "n": 1 }).to_string();
            // The order of the members of the value is that of the text.
            let all = found(&text, piece);
            prop_assert_eq!(all.len(), 1);
            let value: serde_json::Value = serde_json::from_str(&all[0].1).unwrap();
            prop_assert_eq!(value.to_string(), expected);
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut finder = Finder::default();
            finder.read(&bytes, &mut |_, _| {});
        }
    }
}
