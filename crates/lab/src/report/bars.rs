//! Figures against their goals: a bar each, and a line where the goal is.

use crate::quantity::number;
use maud::{Markup, html};

/// A figure that should not exceed its goal.
#[derive(Clone, Debug)]
pub struct Bar<'a> {
    /// What it is.
    pub name: &'a str,
    /// The figure; nothing when it could not be found.
    pub value: Option<f64>,
    /// The most it should be, greater than 0.
    pub goal: f64,
    /// Of both.
    pub unit: &'a str,
}

/// Draws `bars`, all to one scale.
#[must_use]
pub fn bars(bars: &[Bar]) -> Markup {
    let longest = bars.iter().map(|bar| bar.goal.max(bar.value.unwrap_or(0.0)));
    let scale = 100.0 / longest.fold(f64::MIN_POSITIVE, f64::max);
    let percent = |value: f64| format!("{:.2}%", value * scale);
    html! {
        div.bars { @for bar in bars {
            @let value = bar.value.unwrap_or(0.0);
            @let class = if bar.value.is_some_and(|v| v <= bar.goal) { "fill" } else { "fill over" };
            span { (bar.name) }
            div.track {
                div class=(class) style=(format!("width:{}", percent(value))) {}
                div.goal style=(format!("left:{}", percent(bar.goal))) {}
            }
            span.value {
                strong { (bar.value.map_or_else(|| "none".into(), number)) }
                " of at most " (number(bar.goal)) " " (bar.unit)
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_tells_when_it_is_over() {
        let bar = |value, goal| Bar { name: "x", value, goal, unit: "ns" };
        let page = bars(&[bar(Some(50.0), 100.0), bar(Some(200.0), 150.0), bar(None, 10.0)]);
        let page = page.into_string();
        for part in ["width:25.00%", "left:50.00%", "width:100.00%", "left:75.00%", "none"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert_eq!(page.matches("fill over").count(), 2, "what is missing meets no goal");
    }
}
