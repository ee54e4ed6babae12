//! Spans of which several may be at once, put side by side.

/// Shares spans out, so that no two of a lane overlap. Within a lane they are by beginning.
pub fn lanes<'a, T>(spans: &[&'a T], extent: impl Fn(&T) -> (u64, u64)) -> Vec<Vec<&'a T>> {
    let mut sorted = spans.to_vec();
    sorted.sort_by_key(|span| extent(span));
    let mut lanes: Vec<Vec<&T>> = Vec::new();
    for span in sorted {
        let begin = extent(span).0;
        let is_free = |lane: &&mut Vec<&T>| lane.last().is_none_or(|last| extent(last).1 <= begin);
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(span),
            None => lanes.push(vec![span]),
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_put_side_by_side() {
        let spans = [(5, 9), (0, 5), (3, 6), (6, 7), (9, 9)];
        let all: Vec<&(u64, u64)> = spans.iter().collect();
        let lanes = lanes(&all, |span| *span);
        assert_eq!(lanes, [vec![&(0, 5), &(5, 9), &(9, 9)], vec![&(3, 6), &(6, 7)]]);
    }
}
