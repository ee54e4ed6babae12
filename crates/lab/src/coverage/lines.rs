//! Lines that have code in a build that ships, and which of them were reached.

use super::image::{Line, Mapped};
use std::collections::BTreeMap;

/// A line of source, and whether it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file, from the project's root.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function that it stands in.
    pub function: String,
    /// An instruction of it was executed, in whatever image.
    pub reached: bool,
}

/// How many lines of something have code, and how many of these were reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The crate or file.
    pub name: String,
    /// Lines that have code.
    pub lines: u64,
    /// Those that were reached.
    pub reached: u64,
}

impl Share {
    /// Returns which part was reached, 0 to 1; of nothing, all.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.lines {
            0 => 1.0,
            lines => crate::quantity::real(self.reached) / crate::quantity::real(lines),
        }
    }
}

/// Finds the lines that have code in one of the images that ship. Each was reached if any image,
/// one of `others` too, has an instruction of it that was executed. What only others have, such as
/// checks, does not count.
#[must_use]
pub fn find(shipped: &[&Mapped], others: &[&Mapped]) -> Vec<Found> {
    let mut found: BTreeMap<&Line, Found> = BTreeMap::new();
    for image in shipped {
        for line in image.lines.keys() {
            found.entry(line).or_insert_with(|| Found {
                file: line.0.clone(),
                line: line.1,
                function: image.functions.get(line).cloned().unwrap_or_default(),
                reached: false,
            });
        }
    }
    for line in shipped.iter().chain(others).flat_map(|image| image.reached()) {
        if let Some(found) = found.get_mut(line) {
            found.reached = true;
        }
    }
    found.into_values().collect()
}

/// Adds lines up by what `name` makes of each one's file.
#[must_use]
pub fn shares(found: &[Found], name: impl Fn(&str) -> String) -> Vec<Share> {
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for one in found {
        let name = name(&one.file);
        let empty = || Share { name: name.clone(), ..Share::default() };
        let share = shares.entry(name.clone()).or_insert_with(empty);
        share.lines += 1;
        share.reached += u64::from(one.reached);
    }
    shares.into_values().collect()
}

/// Returns the crate that a file belongs to: the directory above its `src`.
#[must_use]
pub fn package(file: &str) -> String {
    file.split("/src/").next().unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(lines: &[(&str, u32, bool)]) -> Mapped {
        let lines =
            lines.iter().map(|(file, line, reached)| ((format!("crates/{file}"), *line), *reached));
        Mapped { lines: lines.collect(), ..Mapped::default() }
    }

    #[test]
    fn any_image_reaches_a_line_that_ships_and_checks_do_not_count() {
        let silent = image(&[("a/src/x.rs", 1, false), ("a/src/x.rs", 2, true)]);
        let tracing = image(&[("a/src/x.rs", 1, false), ("a/src/b/y.rs", 7, false)]);
        let checked =
            image(&[("a/src/x.rs", 1, true), ("c/src/lib.rs", 9, true), ("a/src/x.rs", 3, false)]);
        let found = find(&[&silent, &tracing], &[&checked]);
        let told: Vec<_> =
            found.iter().map(|one| (one.file.as_str(), one.line, one.reached)).collect();
        assert_eq!(
            told,
            [
                ("crates/a/src/b/y.rs", 7, false),
                ("crates/a/src/x.rs", 1, true),
                ("crates/a/src/x.rs", 2, true)
            ]
        );
        let by_crate = shares(&found, package);
        assert_eq!(by_crate, [Share { name: "crates/a".into(), lines: 3, reached: 2 }]);
        let by_file = shares(&found, str::to_owned);
        assert_eq!(by_file.iter().map(Share::share).collect::<Vec<_>>(), [0.0, 1.0]);
    }
}
