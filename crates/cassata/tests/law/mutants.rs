//! Planted bugs fit the code into which they are planted.

use std::fs;
use std::path::Path;

/// Returns the hunks of the patches in `folder` that fit no place of their files, below `root`.
pub fn unfit(root: &Path, folder: &str) -> Vec<String> {
    let mut unfit = Vec::new();
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let patch = fs::read_to_string(&path).unwrap();
        for file in patch.split("\n--- a/").skip(1) {
            let (name, hunks) = file.split_once('\n').unwrap();
            let code = fs::read_to_string(root.join(name)).unwrap_or_default();
            for hunk in hunks.split("\n@@ ").skip(1) {
                let lines = hunk.lines().skip(1);
                let old = lines.filter(|line| line.starts_with([' ', '-']) || line.is_empty());
                let old: Vec<_> = old.map(|line| line.get(1..).unwrap_or("")).collect();
                if old.is_empty() || !code.contains(&old.join("\n")) {
                    unfit.push(format!(
                        "{}: {name} does not have\n{}",
                        path.display(),
                        old.join("\n")
                    ));
                }
            }
        }
    }
    unfit
}
