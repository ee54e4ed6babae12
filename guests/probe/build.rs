//! Links the probe at its fixed guest-physical address.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let is_high = std::env::var_os("CARGO_FEATURE_HIGH").is_some();
    let script = if is_high { "memory-high.ld" } else { "memory.ld" };
    println!("cargo:rustc-link-arg-bins=-T{directory}/{script}");
    // Comes with aarch64-rt, which adds its directory to the search path.
    println!("cargo:rustc-link-arg-bins=-Timage.ld");
    println!("cargo:rerun-if-changed={script}");
}
