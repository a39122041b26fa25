//! Prints the public items of a crate, one a line, from the JSON of rustdoc that the argument names.

use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("the argument is a JSON file of rustdoc")?;
    let items = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let mut output = std::io::stdout().lock();
    for item in items.items() {
        writeln!(output, "{item}")?;
    }
    Ok(())
}
