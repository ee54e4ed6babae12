//! Colours: on a page they follow the reader's light or dark setting; a file of its own has
//! the light ones written out, since programs that draw SVG do not know variables.

use maud::Markup;

/// The page's style sheet, which begins with the light colours.
pub(super) const PAGE_STYLE: &str = include_str!("style.css");
/// How drawings look, in the page's colours.
pub(super) const DRAWING_STYLE: &str = include_str!("drawing.css");

/// Returns the `svg` element `drawing` as a file; `None` for what is none, such as the remark
/// that nothing was measured.
#[must_use]
pub fn file(drawing: &Markup) -> Option<String> {
    let (tag, content) = drawing.0.strip_prefix("<svg ")?.split_once('>')?;
    let style = written_out(DRAWING_STYLE, PAGE_STYLE);
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {tag}><style>\
         svg{{background:#fff;font:12px system-ui,sans-serif}}\n{style}</style>{content}"
    ))
}

/// Replaces each variable in `style` by the first value that `colors` gives it.
fn written_out(style: &str, colors: &str) -> String {
    let mut parts = style.split("var(");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(')').unwrap_or((part, ""));
        let value = colors.split_once(&format!("{name}:")).map_or("", |(_, after)| after);
        text += value.split(';').next().unwrap_or_default().trim();
        text += rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::html;

    #[test]
    fn a_file_keeps_the_drawing_and_has_its_colours_written_out() {
        let drawing = html! { svg viewBox="0 0 9 9" { circle.s0 r="3" {} } };
        let file = file(&drawing).unwrap();
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">"));
        assert!(file.contains(".s0 { fill: #2f7ebc; stroke: #2f7ebc; }"), "{file}");
        assert!(
            !file.contains("var(")
                && file.ends_with("<circle class=\"s0\" r=\"3\"></circle></svg>")
        );
        assert_eq!(super::file(&html! { p { "Nothing was measured." } }), None);
    }
}
