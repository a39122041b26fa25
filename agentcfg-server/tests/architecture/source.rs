//! The source of the crate as a graph of modules, as far as its text tells: paths are followed, macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module from the root of the crate.
pub type Module = Vec<String>;

/// One source file that is not only for tests.
pub struct File {
    /// Path below `src`.
    pub path: String,
    /// The module that it is.
    pub module: Module,
    /// Its words and signs, without comments, literals and inline tests.
    pub tokens: Vec<String>,
}

/// Every source file.
pub struct Source {
    pub files: Vec<File>,
    modules: BTreeSet<Module>,
    /// Where an item comes from that a module shows under its own name.
    shown: BTreeMap<(Module, String), Module>,
}

impl Source {
    /// Reads the files below a folder.
    pub fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        collect(src, src, &mut files);
        let texts = files.into_iter().map(|path| {
            let text = fs::read_to_string(src.join(&path)).unwrap();
            (path, text)
        });
        Self::of(texts)
    }

    /// Takes files as pairs of path and text.
    pub fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let files: Vec<File> = texts
            .into_iter()
            .map(|(path, text)| File {
                module: module(&path),
                tokens: without_tests(tokens(&text)),
                path,
            })
            .collect();
        let mut source = Self {
            modules: files.iter().map(|file| file.module.clone()).collect(),
            files,
            shown: BTreeMap::new(),
        };
        for file in &source.files {
            for (path, is_shown) in source.paths(file) {
                let (target, item) = (&path[..path.len() - 1], &path[path.len() - 1]);
                if is_shown && source.modules.contains(target) {
                    source
                        .shown
                        .insert((file.module.clone(), item.clone()), target.to_vec());
                }
            }
        }
        source
    }

    /// The same source without one file. Paths still lead through it.
    pub fn without(mut self, path: &str) -> Self {
        self.files.retain(|file| file.path != path);
        self
    }

    /// The modules that a file uses, itself left out. Showing an item of another module is no use of it.
    pub fn uses(&self, file: &File) -> BTreeSet<Module> {
        let uses = self.paths(file).into_iter().filter(|(_, is_shown)| !is_shown);
        uses.map(|(path, _)| self.resolve(&path))
            .filter(|module| *module != file.module && !module.is_empty())
            .collect()
    }

    /// The module that an absolute path leads to.
    fn resolve(&self, path: &[String]) -> Module {
        let mut module = Module::new();
        for word in path {
            let deeper = [&module[..], std::slice::from_ref(word)].concat();
            if self.modules.contains(&deeper) {
                module = deeper;
            } else {
                return match self.shown.get(&(module.clone(), word.clone())) {
                    Some(target) if *target != module => {
                        self.resolve(&[&target[..], std::slice::from_ref(word)].concat())
                    }
                    _ => module,
                };
            }
        }
        module
    }

    /// Every path of a file that leads into this crate, made absolute, and whether a `pub use` shows it to others.
    fn paths(&self, file: &File) -> Vec<(Vec<String>, bool)> {
        let mut found = Vec::new();
        let mut is_shown = false;
        let mut at = 0;
        while at < file.tokens.len() {
            let word = file.tokens[at].as_str();
            match word {
                "use" => is_shown = at > 0 && matches!(file.tokens[at - 1].as_str(), "pub" | ")"),
                ";" => is_shown = false,
                _ => {}
            }
            let child = [&file.module[..], &[word.to_owned()]].concat();
            let starts = matches!(word, "crate" | "super" | "self") || self.modules.contains(&child);
            let is_path = file.tokens.get(at + 1).is_some_and(|next| next == "::");
            let is_inner = at > 0 && file.tokens[at - 1] == "::";
            if starts && is_path && !is_inner {
                let mut paths = Vec::new();
                at = tree(&file.tokens, at, &[], &mut paths);
                let absolute = paths.into_iter().map(|path| (absolute(&file.module, &path), is_shown));
                found.extend(absolute.filter(|(path, _)| !path.is_empty()));
            } else {
                at += 1;
            }
        }
        found
    }
}

fn collect(src: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_for_tests = matches!(name, "tests" | "tests.rs" | "stub.rs") || name.ends_with("_tests.rs");
        if is_for_tests {
            continue;
        }
        if path.is_dir() {
            collect(src, &path, files);
        } else if name.ends_with(".rs") {
            files.push(path.strip_prefix(src).unwrap().to_str().unwrap().to_owned());
        }
    }
}

fn module(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let mut module: Module = path.split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
        module.pop();
    }
    module
}

fn absolute(from: &Module, path: &[String]) -> Vec<String> {
    let mut absolute = from.clone();
    let mut words = path.iter().peekable();
    match path[0].as_str() {
        "crate" => {
            absolute.clear();
            words.next();
        }
        "self" => {
            words.next();
        }
        _ => {}
    }
    while words.peek().is_some_and(|word| *word == "super") {
        absolute.pop();
        words.next();
    }
    absolute.extend(words.filter(|word| *word != "self").cloned());
    absolute
}

/// Reads a path with all its branches, and gives the place behind it.
fn tree(tokens: &[String], mut at: usize, before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token != "}") {
                    at = tree(tokens, at, &path, paths);
                    // Another name that it gets here, and the comma.
                    while tokens.get(at).is_some_and(|token| token != "}" && token != ",") {
                        at += 1;
                    }
                    if tokens.get(at).is_some_and(|token| token == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Some(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            None => break,
        }
        if tokens.get(at).is_none_or(|token| token != "::") {
            break;
        }
        at += 1;
    }
    paths.push(path);
    at
}

/// Leaves out inline modules of tests.
fn without_tests(mut tokens: Vec<String>) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    const HEAD: [&str; 3] = ["mod", "tests", "{"];
    let mut from = 0;
    while let Some(found) = tokens[from..].windows(MARK.len()).position(|window| window == MARK) {
        let start = from + found;
        let mut end = start + MARK.len();
        // Further attributes.
        while tokens.get(end).is_some_and(|token| token == "#") {
            end += 1 + tokens[end..].iter().take_while(|token| *token != "]").count();
        }
        from = start + 1;
        if !tokens[end..].starts_with(&HEAD.map(str::to_owned)) {
            continue;
        }
        end += HEAD.len();
        let mut depth = 1;
        while depth > 0 && end < tokens.len() {
            match tokens[end].as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            end += 1;
        }
        tokens.drain(start..end);
        from = start;
    }
    tokens
}

/// The words and signs of a text, without comments and literals.
pub fn tokens(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    while at < characters.len() {
        let rest = &characters[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().take_while(|c| **c != '\n').count(),
            ['/', '*', ..] => {
                let end = rest.windows(2).position(|pair| pair == ['*', '/']);
                at += end.map_or(rest.len(), |end| end + 2);
            }
            ['r', '"', ..] | ['r', '#', ..] if raw_string(rest).is_some() => at += raw_string(rest).unwrap(),
            ['"', ..] => {
                at += 1;
                while at < characters.len() && characters[at] != '"' {
                    at += if characters[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
            }
            ['\'', '\\', ..] => {
                at += 3;
                at += characters[at..].iter().take_while(|c| **c != '\'').count() + 1;
            }
            ['\'', _, '\'', ..] => at += 3,
            [':', ':', ..] => {
                tokens.push("::".to_owned());
                at += 2;
            }
            [first, ..] if is_word(*first) => {
                let word: String = rest.iter().take_while(|c| is_word(**c)).collect();
                at += word.chars().count();
                // The letter before a literal of bytes is a part of it.
                if !(matches!(word.as_str(), "b" | "br" | "c") && matches!(characters.get(at), Some('"' | '\''))) {
                    tokens.push(word);
                }
            }
            [blank, ..] if blank.is_whitespace() => at += 1,
            [sign, ..] => {
                tokens.push(sign.to_string());
                at += 1;
            }
            [] => {}
        }
    }
    tokens
}

/// The length of a raw string that begins here.
fn raw_string(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    let start = 1 + hashes;
    if rest.get(start) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let length = rest[start + 1..].windows(end.len()).position(|window| window == end)?;
    Some(start + 1 + length + end.len())
}
