//! Lines that a unified diff adds and removes, file by file. A library that reads such diffs would
//! be larger than what is here.

use miette::{Result, miette};

/// What is changed in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// The file, below the root of its source.
    pub file: String,
    /// Lines that are there now and were not, empty ones and comments included.
    pub added: u64,
    /// Lines that were there.
    pub removed: u64,
}

impl Changed {
    /// Returns true for the kinds of files that Figure 3 of vlk counts: *.c, *.h, *.S and Makefile.
    pub fn is_counted(&self) -> bool {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        name == "Makefile" || [".c", ".h", ".S"].iter().any(|kind| name.ends_with(kind))
    }
}

/// Lines of a hunk that are still to come, before and after the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rest {
    before: u64,
    after: u64,
}

/// Reads a unified diff. What stands around its hunks is skipped.
///
/// # Errors
/// When a hunk has not the lines that its head says, or no file: the first such line is named.
pub fn read(diff: &str) -> Result<Vec<Changed>> {
    let mut found: Vec<Changed> = Vec::new();
    let (mut before, mut rest) = ("", Rest { before: 0, after: 0 });
    for (number, line) in (1..).zip(diff.lines()) {
        let wrong = |what: &str| miette!("line {number} of the patch: {what}: `{line}`");
        if rest != (Rest { before: 0, after: 0 }) {
            let changed = found.last_mut().ok_or_else(|| wrong("a hunk of no file"))?;
            rest = rest
                .without(line, changed)
                .ok_or_else(|| wrong("the hunk is another one than its head says"))?;
        } else if let Some(file) = line.strip_prefix("--- ") {
            before = file;
        } else if let Some(after) = line.strip_prefix("+++ ") {
            let file = name(if after.starts_with("/dev/null") { before } else { after });
            found.push(Changed { file, ..Changed::default() });
        } else if line.starts_with("@@ ") {
            if found.is_empty() {
                return Err(wrong("a hunk of no file"));
            }
            rest = Rest::of(line).ok_or_else(|| wrong("no head of a hunk"))?;
        } else if !found.is_empty() && line.starts_with([' ', '+', '-']) {
            return Err(wrong("the hunk is longer than its head says"));
        }
    }
    match rest {
        Rest { before: 0, after: 0 } => Ok(found),
        _ => Err(miette!("the patch ends within a hunk")),
    }
}

/// Returns the file in `a/FILE`, and a tab and the time behind it.
fn name(path: &str) -> String {
    let path = path.split('\t').next().unwrap_or_default();
    path.split_once('/').map_or(path, |(_, file)| file).to_owned()
}

impl Rest {
    /// Reads `@@ -1,7 +1,9 @@`; a number that is left out is 1.
    fn of(head: &str) -> Option<Self> {
        let mut words = head.split(' ').skip(1);
        let mut lines = |sign| {
            let range = words.next()?.strip_prefix(sign)?;
            range.split_once(',').map_or(Some(1), |(_, lines)| lines.parse().ok())
        };
        Some(Self { before: lines('-')?, after: lines('+')? })
    }

    /// Returns what is left behind `line`, which is counted; none if it does not belong here.
    fn without(self, line: &str, changed: &mut Changed) -> Option<Self> {
        let Self { mut before, mut after } = self;
        match line.bytes().next() {
            Some(b'+') => (after, changed.added) = (after.checked_sub(1)?, changed.added + 1),
            Some(b'-') => (before, changed.removed) = (before.checked_sub(1)?, changed.removed + 1),
            // Some programs leave the blank of an empty line out.
            Some(b' ') | None => (before, after) = (before.checked_sub(1)?, after.checked_sub(1)?),
            // "No newline at end of file".
            Some(b'\\') => {}
            Some(_) => return None,
        }
        Some(Self { before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "\
What it is for, and
--- is no file here

--- a/kernel/smp.c\t2026-01-01
+++ b/kernel/smp.c\t2026-01-02
@@ -1,4 +1,5 @@ void f(void)
 one
--- two
+++ two
+

 four
@@ -9 +10,2 @@
-nine
+nine
+ten
\\ No newline at end of file
--- /dev/null
+++ b/arch/Makefile
@@ -0,0 +1 @@
+all
--- a/Kconfig
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
";

    fn changed(file: &str, added: u64, removed: u64) -> Changed {
        Changed { file: file.into(), added, removed }
    }

    #[test]
    fn lines_are_counted_where_hunks_have_them() {
        let expected = [
            changed("kernel/smp.c", 4, 2),
            changed("arch/Makefile", 1, 0),
            changed("Kconfig", 0, 2),
        ];
        assert_eq!(read(DIFF).unwrap(), expected);
    }

    #[test]
    fn a_hunk_that_is_damaged_is_refused() {
        for (from, to, line) in [
            ("+ten\n", "+ten\n+eleven\n", "line 17 "),
            ("+ten\n", "", "line 17 "),
            ("@@ -9 +10,2 @@", "@@ -9 10,2 @@", "line 13 "),
            ("-a\n-b\n", "-a\n", "ends"),
            (" one\n", "one\n", "line 7 "),
        ] {
            let error = read(&DIFF.replacen(from, to, 1));
            let text = format!("{error:?}");
            assert!(error.is_err() && text.contains(line), "{to}: {text}");
        }
        assert!(read("@@ -1 +1 @@\n-a\n+b\n").is_err(), "a hunk of no file");
    }

    #[test]
    fn the_papers_kinds_of_files_are_counted() {
        for (file, is_counted) in [
            ("kernel/smp.c", true),
            ("asm/preempt.h", true),
            ("entry.S", true),
            ("kernel/Makefile", true),
            ("Makefile.lib", false),
            ("Kconfig", false),
            ("a.rs", false),
        ] {
            assert_eq!(changed(file, 1, 0).is_counted(), is_counted, "{file}");
        }
    }
}
