//! The table of expected statuses, read from `expected.txt`.

use std::collections::HashMap;

const FILE: &str = include_str!("expected.txt");

/// The expected statuses.
pub(super) struct Table {
    /// The kinds of credentials, in the order of the columns.
    pub(super) credentials: Vec<&'static str>,
    rows: HashMap<(String, &'static str), Vec<u16>>,
}

impl Table {
    pub(super) fn has(&self, route: &str, place: &'static str) -> bool {
        self.rows.contains_key(&(route.to_owned(), place))
    }

    /// The routes that have lines.
    pub(super) fn routes(&self) -> impl Iterator<Item = &String> {
        self.rows.keys().map(|(route, _)| route)
    }

    #[track_caller]
    pub(super) fn get(&self, route: &str, place: &'static str, credential: &str) -> u16 {
        let row = self
            .rows
            .get(&(route.to_owned(), place))
            .unwrap_or_else(|| panic!("no line for {route} {place}"));
        let column = self.credentials.iter().position(|known| *known == credential);
        row[column.unwrap_or_else(|| panic!("no column for {credential}"))]
    }
}

/// Parses the file: a line of column names, then `METHOD path place` and a status for each column.
/// `-` stands for 401, the status of every invalid credential.
pub(super) fn expected() -> Table {
    let mut lines = FILE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let credentials: Vec<_> = lines.next().expect("a line of names").split_whitespace().collect();
    let mut rows = HashMap::new();
    for line in lines {
        let [method, path, place, cells @ ..] = &line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("no line of the table: {line}");
        };
        let status = |cell: &&str| {
            if *cell == "-" {
                401
            } else {
                cell.parse().expect("a status")
            }
        };
        let statuses: Vec<u16> = cells.iter().map(status).collect();
        assert_eq!(statuses.len(), credentials.len(), "{line}");
        let twice = rows.insert((format!("{method} {path}"), *place), statuses);
        assert!(twice.is_none(), "twice in the table: {line}");
    }
    Table { credentials, rows }
}
