//! Compresses the viewer of the API reference, so that the program has a third of its 5 MB, and browsers load no more.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "docs")]
    compress_viewer()?;
    Ok(())
}

#[cfg(feature = "docs")]
fn compress_viewer() -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;

    let script = scalar_api_reference::get_asset("scalar.js").ok_or("scalar_api_reference has no scalar.js")?;
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let file = std::fs::File::create(std::path::Path::new(&folder).join("viewer.js.gz"))?;
    let mut compressed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    compressed.write_all(&script)?;
    compressed.finish()?;
    Ok(())
}
