//! The source of a crate as a graph of modules, as far as its text tells: paths are followed, macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The path of a module from the root of the crate.
pub type Module = Vec<String>;

/// One source file that is not only for tests.
pub struct File {
    /// Path below `src`.
    pub path: String,
    /// The module that it is.
    pub module: Module,
    /// Its words and signs, without literals and inline tests.
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
    /// Reads the files below a folder of the repository.
    pub fn read(folder: &str) -> Self {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
        let mut files = Vec::new();
        collect(&src, &src, &mut files);
        assert!(files.len() > 10, "{folder}");
        Self::of(files)
    }

    /// Takes files as pairs of path and text.
    pub fn of(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        let file = |(path, text): (String, String)| {
            let mut tokens = Vec::new();
            flatten(text.parse().unwrap(), &mut tokens);
            let module = module(&path);
            File { path, module, tokens }
        };
        let files: Vec<File> = texts.into_iter().map(file).collect();
        let modules = files.iter().map(|file| file.module.clone()).collect();
        let shown = BTreeMap::new();
        let mut source = Self { files, modules, shown };
        for file in &source.files {
            for (path, _) in source.paths(file).into_iter().filter(|(_, is_shown)| *is_shown) {
                if let Some((item, target)) = path.split_last().filter(|(_, it)| source.modules.contains(*it)) {
                    let name = (file.module.clone(), item.clone());
                    source.shown.insert(name, target.to_vec());
                }
            }
        }
        source
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
        let is_module = |depth: &usize| self.modules.contains(&path[..*depth]);
        let (module, rest) = path.split_at((0..=path.len()).rev().find(is_module).unwrap_or_default());
        let shown = rest
            .first()
            .and_then(|item| self.shown.get(&(module.to_vec(), item.clone())));
        match shown.filter(|target| *target != module) {
            Some(target) => self.resolve(&[target, rest].concat()),
            None => module.to_vec(),
        }
    }

    /// Every path of a file that leads into this crate, made absolute, and whether a `pub use` shows it to others.
    fn paths(&self, file: &File) -> Vec<(Module, bool)> {
        let mut found = Vec::new();
        let (mut is_shown, mut at) = (false, 0);
        let token = |at: usize| file.tokens.get(at).map_or("", String::as_str);
        while at < file.tokens.len() {
            match token(at) {
                "use" => is_shown = at > 0 && matches!(token(at - 1), "pub" | ")"),
                ";" => is_shown = false,
                _ => {}
            }
            let child = [&file.module[..], &[token(at).to_owned()]].concat();
            let is_inside = matches!(token(at), "crate" | "super" | "self") || self.modules.contains(&child);
            if is_inside && token(at + 1) == "::" && (at == 0 || token(at - 1) != "::") {
                let mut paths = Vec::new();
                at = branches(&file.tokens, at, &[], &mut paths);
                let absolute = paths.into_iter().map(|path| absolute(&file.module, &path));
                found.extend(absolute.filter(|path| !path.is_empty()).map(|path| (path, is_shown)));
            } else {
                at += 1;
            }
        }
        found
    }
}

fn collect(src: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if matches!(name, "tests" | "tests.rs" | "stub.rs") || name.ends_with("_tests.rs") {
            continue;
        }
        if path.is_dir() {
            collect(src, &path, files);
        } else if name.ends_with(".rs") {
            let below = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
            files.push((below, fs::read_to_string(&path).unwrap()));
        }
    }
}

fn module(path: &str) -> Module {
    let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    module.pop_if(|last| matches!(last.as_str(), "mod" | "lib"));
    module
}

fn absolute(from: &Module, path: &[String]) -> Module {
    let mut absolute = if path[0] == "crate" {
        Module::new()
    } else {
        from.clone()
    };
    for word in path {
        match word.as_str() {
            "crate" | "self" => {}
            "super" => drop(absolute.pop()),
            _ => absolute.push(word.clone()),
        }
    }
    absolute
}

/// Reads a path with all its branches, and gives the place behind it.
fn branches(tokens: &[String], mut at: usize, before: &[String], paths: &mut Vec<Module>) -> usize {
    let token = |at: usize| tokens.get(at).map_or("}", String::as_str);
    let mut path = before.to_vec();
    while token(at) != "{" {
        path.push(token(at).to_owned());
        at += 1;
        if token(at) != "::" {
            paths.push(path);
            return at;
        }
        at += 1;
    }
    at += 1;
    while token(at) != "}" {
        at = branches(tokens, at, &path, paths);
        // Another name that it gets here, and the comma.
        while !matches!(token(at), "}" | ",") {
            at += 1;
        }
        at += usize::from(token(at) == ",");
    }
    at + 1
}

/// Appends the words and signs, without literals and inline modules of tests.
fn flatten(stream: TokenStream, tokens: &mut Vec<String>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                if tokens.ends_with(&["mod".to_owned(), "tests".to_owned()]) {
                    continue;
                }
                let [open, close] = match group.delimiter() {
                    Delimiter::Parenthesis => ["(", ")"],
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    Delimiter::None => ["", ""],
                };
                tokens.push(open.to_owned());
                flatten(group.stream(), tokens);
                tokens.push(close.to_owned());
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' && tokens.last().is_some_and(|last| last == ":") => {
                tokens.pop();
                tokens.push("::".to_owned());
            }
            TokenTree::Literal(_) => {}
            other => tokens.push(other.to_string()),
        }
    }
}
