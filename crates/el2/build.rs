//! Links the hypervisor as a static position-independent executable at 0; the
//! host moves it to where the board has room when it packs a system.

fn main() {
    let directory = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    println!("cargo:rerun-if-changed=link.ld");
    for argument in [
        &format!("-T{directory}/link.ld"),
        "-pie",
        "--no-dynamic-linker",
        "--gc-sections",
        "-znotext",
        "-zmax-page-size=4096",
        "-znorelro",
        "--hash-style=gnu",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
