//! One value of a dataset.

use serde_json::Value;

/// A value, or that there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// It was not measured, or makes no sense here.
    Missing,
    /// A name.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// So many.
    Count(u64),
    /// A number.
    Real(f64),
    /// Several numbers, such as the times of single runs.
    List(Vec<f64>),
}

impl Cell {
    /// Returns the number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(crate::quantity::real(*count)),
            Self::Real(value) if value.is_finite() => Some(*value),
            _ => None,
        }
    }

    /// Returns the value for a field of a CSV file. What is missing is empty.
    pub(super) fn field(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Text(text) => text.clone(),
            Self::Flag(yes) => yes.to_string(),
            Self::Count(count) => count.to_string(),
            Self::Real(value) if !value.is_finite() => String::new(),
            Self::Real(value) => value.to_string(),
            Self::List(values) => {
                values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl From<&Cell> for Value {
    fn from(cell: &Cell) -> Self {
        match cell {
            Cell::Missing => Self::Null,
            Cell::Text(text) => text.as_str().into(),
            Cell::Flag(yes) => (*yes).into(),
            Cell::Count(count) => (*count).into(),
            Cell::Real(value) => (*value).into(),
            Cell::List(values) => values.as_slice().into(),
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Says what becomes of a value of each type.
macro_rules! cells {
    ($($from:ty: $value:ident => $cell:expr;)*) => {
        $(impl From<$from> for Cell {
            fn from($value: $from) -> Self {
                $cell
            }
        })*
    };
}

cells! {
    &str: text => Self::Text(text.into());
    String: text => Self::Text(text);
    f64: value => Self::Real(value);
    u64: count => Self::Count(count);
    u32: count => Self::Count(count.into());
    usize: count => Self::Count(count as u64);
    Vec<f64>: values => Self::List(values);
}
