//! Which known word an unknown one is most like.

/// Returns the candidate that is most like `word`, if one is like it at all: at most
/// a third of its letters are wrong.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= candidate.len().max(word.len()).div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns a hint for an unknown word: the nearest known one, or all of them.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(word, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => {
            let all: Vec<_> = candidates.into_iter().map(|word| format!("`{word}`")).collect();
            format!("known here: {}", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_of_the_finger_only() {
        let keys = ["kernel", "memory", "vcpus"];
        assert_eq!(nearest("kernal", keys), Some("kernel"));
        assert_eq!(nearest("Memroy", keys), Some("memory"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(did_you_mean("x", keys), "known here: `kernel`, `memory`, `vcpus`");
    }
}
