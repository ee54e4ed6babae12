//! Which path is the longest: what was executed, in the order in which it was.
//!
//! Paths share their beginnings, so they are kept as lists that point to what came before.

use std::rc::Rc;

/// The end of a path.
pub type Trail<S> = Option<Rc<Link<S>>>;

/// The last part of a path, and the trail to it.
#[derive(Debug)]
pub enum Link<S> {
    /// A step.
    Step(Trail<S>, S),
    /// A cycle that is repeated.
    Times(Trail<S>, u64, Trail<S>),
    /// Another trail.
    Then(Trail<S>, Trail<S>),
}

/// Appends a step.
pub fn step<S>(before: &Trail<S>, step: S) -> Trail<S> {
    Some(Rc::new(Link::Step(before.clone(), step)))
}

/// Appends a cycle that is repeated.
pub fn times<S>(before: &Trail<S>, count: u64, cycle: &Trail<S>) -> Trail<S> {
    match (count, cycle) {
        (0, _) | (_, None) => before.clone(),
        _ => Some(Rc::new(Link::Times(before.clone(), count, cycle.clone()))),
    }
}

/// Appends another trail.
pub fn then<S>(before: &Trail<S>, after: &Trail<S>) -> Trail<S> {
    match (before, after) {
        (None, only) | (only, None) => only.clone(),
        _ => Some(Rc::new(Link::Then(before.clone(), after.clone()))),
    }
}

/// Visits each step from the first to the last, with how often it is done in all.
pub fn walk<S>(trail: &Trail<S>, visit: &mut impl FnMut(&S, u64)) {
    walk_times(trail, 1, visit);
}

fn walk_times<S>(trail: &Trail<S>, factor: u64, visit: &mut impl FnMut(&S, u64)) {
    // The list is as long as the path, so recursion is for what is inside only.
    let mut links = Vec::new();
    let mut at = trail;
    while let Some(link) = at {
        links.push(link);
        let (Link::Step(before, _) | Link::Times(before, ..) | Link::Then(before, _)) = &**link;
        at = before;
    }
    for link in links.into_iter().rev() {
        match &**link {
            Link::Step(_, step) => visit(step, factor),
            Link::Times(_, count, cycle) => walk_times(cycle, factor * count, visit),
            Link::Then(_, after) => walk_times(after, factor, visit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_in_order_and_as_often_as_they_are_done() {
        let cycle = step(&step(&None, 'b'), 'c');
        let inner = times(&step(&None, 'x'), 3, &cycle);
        let path = then(&times(&step(&None, 'a'), 2, &inner), &step(&None, 'z'));
        let mut seen = Vec::new();
        walk(&path, &mut |&step, times| seen.push((step, times)));
        assert_eq!(seen, [('a', 1), ('x', 2), ('b', 6), ('c', 6), ('z', 1)]);
        assert!(times::<char>(&None, 0, &cycle).is_none());
    }
}
