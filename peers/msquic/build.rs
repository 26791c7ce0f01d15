//! Lets the program find the shared library of msquic in its own folder.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN");
}
