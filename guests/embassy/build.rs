//! Links the guest at its fixed guest-physical address.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-link-arg-bins=-T{directory}/memory.ld");
    // Comes with aarch64-rt, which adds its directory to the search path.
    println!("cargo:rustc-link-arg-bins=-Timage.ld");
    println!("cargo:rerun-if-changed=memory.ld");
}
