//! What a stock Debian says at its console: that a user can log in, or has, and what the user's commands
//! answer. Those answer in lines that begin with `answer: `, which a user's shell is told to write
//! ([`SAY`]).

/// The command by which a shell gets the word `say`, which answers what stands behind it. The terminal echoes
/// what is typed, and this is no answer.
pub const SAY: &str = "say() { echo an''swer: \"$@\"; }";

/// What Debian has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebianProgress {
    /// How often it has asked for a name. The question itself stays unfinished; this is the line before it.
    pub logins: usize,
    /// How often it has greeted a user after the name.
    pub greetings: usize,
    /// What commands have answered.
    pub answers: Vec<String>,
}

impl DebianProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        // `/etc/issue`, in which agetty names the line.
        let asks = line.starts_with("Debian GNU/Linux ") && line.trim_end().ends_with(" ttyAMA0");
        self.logins += usize::from(asks);
        // `/etc/motd` ends so.
        self.greetings += usize::from(line.starts_with("permitted by applicable law."));
        if let Some((_, answer)) = line.split_once("answer: ") {
            self.answers.push(answer.trim_end().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_and_answers_are_told_and_echoes_are_not() {
        let mut said = DebianProgress::default();
        for line in [
            "[    0.000000] Linux version 6.1.0-56-arm64 (Debian GNU/Linux 12)",
            "",
            "Debian GNU/Linux 12 debian ttyAMA0",
            "",
            "debian login: root",
            "Debian GNU/Linux comes with ABSOLUTELY NO WARRANTY, to the extent",
            "permitted by applicable law.",
            "root@debian:~# say() { echo an''swer: \"$@\"; }",
            "root@debian:~# say $(hello)",
            "answer: Hello, world!",
        ] {
            said.hear(line);
        }
        assert_eq!((said.logins, said.greetings), (1, 1));
        assert_eq!(said.answers, ["Hello, world!"]);
    }
}
