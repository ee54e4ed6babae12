//! `cassata new`.

use super::{check, description, say};
use crate::cli::New;
use crate::place;
use miette::{Result, miette};
use std::fs::{self, File};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use system::board::Board;
use system::outline::{Linux, Outline, Rtos};
use system::size;

/// Linux's command line with the project's initramfs, whose first process then gives a shell.
const SHELL: &str = "console=ttyAMA0 rdinit=/init quiet loglevel=4 cassata.run=shell";
/// And with another one.
const CONSOLE: &str = "console=ttyAMA0";

/// Writes a description, and says how to go on.
pub fn new(arguments: &New) -> Result<u8> {
    let path = &arguments.system;
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    let directory = directory.map_err(|error| cannot_write(path, &error))?;
    let mut stdin = io::stdin().lock();
    let asks = !arguments.defaults && stdin.is_terminal();
    let input = asks.then_some(&mut stdin as &mut dyn BufRead);
    let outline = outline(arguments, &directory, &mut Questions { input })?;
    let text = outline.text();
    let checked = description::load_text(path, &text)?;
    write(path, &text)?;
    say(check::overview(&checked).to_string().trim_end());
    let path = path.display();
    let next = match outline.linux_vms {
        0 => format!("  cassata run {path}   runs it"),
        _ => format!("  cassata run {path} --console linux   runs it, with Linux's console here"),
    };
    say(&next);
    Ok(0)
}

fn exists(path: &Path) -> miette::Report {
    miette!(help = "name another file, or remove that one", "{} is there already", path.display())
}

fn cannot_write(path: &Path, error: &io::Error) -> miette::Report {
    miette!("cannot write {}: {error}", path.display())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => cannot_write(path, &error),
    })?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // Half of it would pass for all.
        let _ = fs::remove_file(path);
        cannot_write(path, &error)
    })
}

/// Returns what a description is begun with: by option, by answer, or by default.
fn outline(given: &New, directory: &Path, questions: &mut Questions<'_>) -> Result<Outline> {
    let default = &Board::all()[0].kind;
    let question = Question::new("--board", "the board", default);
    let board = questions.ask(&question, &given.board, board)?;
    let pcpus = board.pcpu_mpidr.len();
    let cores = Question::new("--pcpus", "physical cores", "2");
    let pcpus = questions.ask(&cores, &given.pcpus, |text| whole(text, 1..=pcpus))?;
    let count = Question::new("--linux-vms", "VMs with Linux", "1");
    let linux_vms = questions.ask(&count, &given.linux_vms, |text| whole(text, 0..=pcpus))?;
    let least = usize::from(linux_vms == 0);
    let count = Question::new("--rtos-vms", "VMs with an RTOS", "1");
    let rtos_vms = questions.ask(&count, &given.rtos_vms, |text| whole(text, least..=pcpus))?;
    let mut outline = Outline {
        board,
        pcpus,
        linux_vms,
        linux: Linux::default(),
        rtos_vms,
        rtos: Rtos::default(),
        link: None,
    };
    let ends = linux_vms > 0 && rtos_vms > 0;
    for (option, is_given, is_of_use) in [
        ("--linux", given.linux.is_some(), linux_vms > 0),
        ("--initramfs", given.initramfs.is_some(), linux_vms > 0),
        ("--cmdline", given.cmdline.is_some(), linux_vms > 0),
        ("--linux-memory", given.linux_memory.is_some(), linux_vms > 0),
        ("--disk", given.disk.is_some(), linux_vms > 0),
        ("--network", given.network, linux_vms > 0),
        ("--rtos", given.rtos.is_some(), rtos_vms > 0),
        ("--rtos-memory", given.rtos_memory.is_some(), rtos_vms > 0),
        ("--rtos-pcpu", given.rtos_pcpu.is_some(), rtos_vms > 0),
        ("--policy", given.policy.is_some(), ends),
        ("--link", given.link.is_some(), linux_vms + rtos_vms > 1),
    ] {
        if is_given && !is_of_use {
            return Err(useless(option));
        }
    }
    if linux_vms > 0 {
        outline.linux = linux(given, board, directory, questions)?;
    }
    if rtos_vms > 0 {
        outline.rtos = rtos(given, board, pcpus, directory, questions)?;
    }
    if ends {
        // A policy moves vCPUs to a sibling's core, where another RTOS may come first.
        let default = if outline.leaves_room() { "on-demand" } else { "none" };
        let about = "what becomes of Linux's vCPU whose core an RTOS takes";
        let policy = Question::new("--policy", about, default);
        outline.linux.policy = questions.ask(&policy, &given.policy, any)?;
    }
    if linux_vms + rtos_vms > 1 {
        let about = "memory of a link between VMs, or none";
        let link = Question::new("--link", about, NO_LINK);
        outline.link = questions.ask(&link, &given.link, |text| match text {
            NO_LINK => Ok(None),
            _ => size::parse(text).map(Some),
        })?;
    }
    Ok(outline)
}

/// The answer by which there is no link.
const NO_LINK: &str = "none";

fn useless(option: &str) -> miette::Report {
    let help = "leave it out, or raise --linux-vms or --rtos-vms";
    miette!(help = help, "{option} is about VMs that the system has not")
}

/// Returns a file of the project's own guests, if it is there. Outside the project there is nothing to take
/// if nothing is named.
fn built(file: &str) -> Option<PathBuf> {
    let path = place::root().ok().map(|root| root.join("build/guests").join(file));
    path.filter(|path| path.is_file())
}

/// Returns that file as the default of a question.
fn own(file: &str) -> String {
    built(file).map(|path| path.display().to_string()).unwrap_or_default()
}

/// Returns true if that file is the chosen one.
fn is_own(file: &str, chosen: &Path) -> bool {
    built(file).is_some_and(|own| system::is_same_file(&own, chosen))
}

/// Returns the board of that name. Descriptions know no others, so a file of a board is none.
fn board(name: &str) -> Result<&'static Board, String> {
    let names =
        || Board::all().iter().map(|board| board.kind.as_str()).collect::<Vec<_>>().join(", ");
    Board::find(name).ok_or_else(|| format!("one of {}, and {name} is none", names()))
}

fn linux(
    given: &New,
    board: &Board,
    directory: &Path,
    questions: &mut Questions<'_>,
) -> Result<Linux> {
    let default = own("linux/Image");
    let kernel = Question::new("--linux", "Linux's kernel, an arm64 Image", &default);
    let kernel = questions.ask(&kernel, &shown(&given.linux), file)?;
    let default = match is_own("linux/Image", &kernel) {
        true => own("linux/initramfs.cpio.gz"),
        false => String::new(),
    };
    let initramfs = Question::new("--initramfs", "its initramfs, if it needs one", &default);
    let initramfs = questions.ask(&initramfs, &shown(&given.initramfs), file_or_none)?;
    let has_own =
        initramfs.as_ref().is_some_and(|chosen| is_own("linux/initramfs.cpio.gz", chosen));
    let cmdline =
        Question::new("--cmdline", "its command line", if has_own { SHELL } else { CONSOLE });
    let cmdline = questions.ask(&cmdline, &given.cmdline, any)?;
    let memory = Question::new("--linux-memory", "its memory", "512M");
    let memory = questions.ask(&memory, &given.linux_memory.map(size::show), size::parse)?;
    let [disk_slot, network_slot] = board.slots();
    for (option, is_given, slot) in
        [("--disk", given.disk.is_some(), disk_slot), ("--network", given.network, network_slot)]
    {
        if is_given && slot.is_none() {
            let help = "leave it out, or name another board";
            return Err(miette!(
                help = help,
                "{option}: board `{}` has no slot for it",
                board.kind
            ));
        }
    }
    let disk = Question::new("--disk", "a file that is the first Linux's disk, if it has one", "");
    let disk = match disk_slot {
        Some(_) => questions.ask(&disk, &shown(&given.disk), file_or_none)?,
        None => None,
    };
    let network = Question::new("--network", "whether the first Linux has a network", "no");
    let network = network_slot.is_some()
        && questions.ask(&network, &given.network.then_some("yes"), yes_or_no)?;
    Ok(Linux {
        kernel: near(&kernel, directory),
        initramfs: initramfs.map(|path| near(&path, directory)),
        cmdline,
        memory,
        policy: String::new(),
        disk: disk.map(|path| near(&path, directory)),
        network,
    })
}

fn rtos(
    given: &New,
    board: &Board,
    pcpus: usize,
    directory: &Path,
    questions: &mut Questions<'_>,
) -> Result<Rtos> {
    // Its port to the interrupt controller that the board gives guests.
    let built = if board.gic.is_v2() { "freertos-gicv2.elf" } else { "freertos.elf" };
    let default = own(built);
    let kernel = Question::new("--rtos", "the RTOS's kernel", &default);
    let kernel = questions.ask(&kernel, &shown(&given.rtos), file)?;
    let memory = Question::new("--rtos-memory", "its memory", "32M");
    let memory = questions.ask(&memory, &given.rtos_memory.map(size::show), size::parse)?;
    let last = (pcpus - 1).to_string();
    let pcpu = Question::new("--rtos-pcpu", "the pCPU on which the first one comes first", &last);
    let pcpu = questions.ask(&pcpu, &given.rtos_pcpu, |text| whole(text, 0..=pcpus - 1))?;
    let takes_link = is_own(built, &kernel);
    Ok(Rtos { kernel: near(&kernel, directory), takes_link, memory, pcpu })
}

fn file_or_none(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() { Ok(None) } else { file(text).map(Some) }
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("yes or no".into()),
    }
}

fn shown(path: &Option<PathBuf>) -> Option<String> {
    path.as_ref().map(|path| path.display().to_string())
}

fn whole(text: &str, range: RangeInclusive<usize>) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("a number from {} to {}", range.start(), range.end()))
}

fn file(text: &str) -> Result<PathBuf, String> {
    match Path::new(text).canonicalize() {
        _ if text.is_empty() => Err("a file".to_owned()),
        Ok(path) if path.is_file() => Ok(path),
        Ok(_) => Err(format!("a file, and {text} is none")),
        Err(error) => Err(format!("a file that can be read, and {text} is none: {error}")),
    }
}

fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// Returns `path` as one says it in `directory`; in full, if they have no directory in common.
fn near(path: &Path, directory: &Path) -> PathBuf {
    let both = || path.components().zip(directory.components());
    let common = both().take_while(|(one, other)| one == other).count();
    if common < 2 {
        return path.to_owned();
    }
    let up = directory.components().skip(common).map(|_| Path::new(".."));
    let down = path.components().skip(common).map(|part| Path::new(part.as_os_str()));
    up.chain(down).collect()
}

/// Something that a description needs to know.
struct Question<'a> {
    option: &'static str,
    about: &'static str,
    /// What it is if nothing is said.
    default: &'a str,
}

impl<'a> Question<'a> {
    fn new(option: &'static str, about: &'static str, default: &'a str) -> Self {
        Self { option, about, default }
    }
}

/// Where answers come from: nowhere without a terminal, and no longer after its end.
struct Questions<'a> {
    input: Option<&'a mut dyn BufRead>,
}

impl Questions<'_> {
    /// Returns what `read` makes of what is given, or of the answer, or of the default. An answer of
    /// which it makes nothing is asked for again.
    fn ask<T>(
        &mut self,
        question: &Question<'_>,
        given: &Option<impl ToString>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        let Question { option, about, default } = question;
        let wrong = |expected| {
            miette!(
                help = "`cassata new --help` says what it may be",
                "{option} must be {expected}"
            )
        };
        if let Some(given) = given {
            return read(&given.to_string()).map_err(wrong);
        }
        while let Some(input) = &mut self.input {
            eprint!("{about} [{default}]: ");
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                eprintln!();
                self.input = None;
                break;
            }
            let answer = line.trim();
            match read(if answer.is_empty() { default } else { answer }) {
                Ok(value) => return Ok(value),
                Err(expected) => eprintln!("  it must be {expected}"),
            }
        }
        read(default).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn answered(text: &str) -> Result<Vec<usize>> {
        let mut input = Cursor::new(text.to_owned());
        let mut questions = Questions { input: Some(&mut input) };
        let question = Question::new("--pcpus", "cores", "2");
        let ask = |_| questions.ask(&question, &None::<usize>, |text| whole(text, 1..=8));
        (0..3).map(ask).collect()
    }

    #[test]
    fn an_answer_is_asked_for_until_it_can_be_read_and_none_is_the_default() {
        assert_eq!(answered("9\nfour\n4\n\n 3 \n").unwrap(), [4, 2, 3]);
        assert_eq!(answered("5\n").unwrap(), [5, 2, 2], "the input ends");
    }

    #[test]
    fn what_is_given_is_not_asked_for_and_has_to_be_right() {
        let mut input = Cursor::new("4\n");
        let mut questions = Questions { input: Some(&mut input) };
        let question = Question::new("--pcpus", "cores", "2");
        let mut ask = |given| questions.ask(&question, &Some(given), |text| whole(text, 1..=8));
        assert_eq!(ask(3).unwrap(), 3);
        assert_eq!(ask(9).unwrap_err().to_string(), "--pcpus must be a number from 1 to 8");
        assert_eq!(input.position(), 0);
    }

    #[test]
    fn paths_are_said_as_the_description_needs_them() {
        let near = |path: &str, directory: &str| near(Path::new(path), Path::new(directory));
        assert_eq!(near("/a/b/c", "/a/b"), Path::new("c"));
        assert_eq!(near("/a/b/c", "/a/d/e"), Path::new("../../b/c"));
        assert_eq!(near("/b/c", "/a"), Path::new("/b/c"), "nothing in common but the root");
    }
}
