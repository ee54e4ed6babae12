//! A drawing as a file of its own, with the colours that a page would give it.

use maud::Markup;

const STYLE: &str = "svg{background:#fff;font:12px system-ui,sans-serif}\
.grid{stroke:#e3e1dc}.label{fill:#68707a}.legend{fill:#22262b;font-size:13px}\
.hover{fill:transparent}.s0{fill:#2f7ebc;stroke:#2f7ebc}.s1{fill:#d0603a;stroke:#d0603a}\
.s2{fill:#4f9d55;stroke:#4f9d55}.s3{fill:#8a63b5;stroke:#8a63b5}\
.s4{fill:#b98a17;stroke:#b98a17}.s5{fill:#2d9c9c;stroke:#2d9c9c}.s6{fill:#b84d86;stroke:#b84d86}\
.s7{fill:#6f7a86;stroke:#6f7a86}.compared{stroke:#68707a;stroke-dasharray:5 4}\
.curve{fill:none;stroke-width:2;stroke-linejoin:round}\
.series{fill-opacity:.3;stroke-width:1.5;stroke-linejoin:round}\
.mark{stroke-width:1.2;stroke-dasharray:4 4;opacity:.8}";

/// The `svg` element `drawing` as a file; `None` for what is none, such as the remark
/// that nothing was measured.
#[must_use]
pub fn alone(drawing: &Markup) -> Option<String> {
    let (tag, content) = drawing.0.strip_prefix("<svg ")?.split_once('>')?;
    Some(format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {tag}><style>{STYLE}</style>{content}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::html;

    #[test]
    fn a_drawing_keeps_what_it_has_and_gets_colours() {
        let drawing = html! { svg viewBox="0 0 9 9" { circle.s0 r="3" {} } };
        let file = alone(&drawing).unwrap();
        assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">"));
        assert!(
            file.contains(".s0{") && file.ends_with("<circle class=\"s0\" r=\"3\"></circle></svg>")
        );
        assert_eq!(alone(&html! { p { "Nothing was measured." } }), None);
    }
}
