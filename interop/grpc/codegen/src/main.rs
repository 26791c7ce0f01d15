//! Generates the Rust code of a proto file with tonic's generator, without protoc:
//! `cargo run -- FILE.proto DIRECTORY`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [proto, directory] = arguments.as_slice() else {
        return Err("usage: codegen FILE.proto DIRECTORY".into());
    };
    let folder = Path::new(proto).parent().ok_or("the file has no folder")?;
    let files = protox::compile([proto], [folder])?;
    tonic_prost_build::configure().out_dir(directory).build_transport(false).compile_fds(files)?;
    Ok(())
}
