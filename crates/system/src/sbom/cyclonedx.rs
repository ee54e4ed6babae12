//! The part of CycloneDX 1.5 (ECMA-424) that is written, in the words of its JSON schema.

use serde::Serialize;

/// A bill of materials. It has no serial number and, without a given date, no time, so that the
/// same image has the same bill.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Bom {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) bom_format: &'static str,
    pub(super) spec_version: &'static str,
    pub(super) version: u32,
    pub(super) metadata: Metadata,
    pub(super) components: Vec<Component>,
    pub(super) dependencies: Vec<Dependency>,
}

/// What the bill is about, and which tool wrote it.
#[derive(Debug, Serialize)]
pub(super) struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
    pub(super) lifecycles: [Lifecycle; 1],
    pub(super) tools: Tools,
    pub(super) component: Component,
}

/// When in the life of a product the bill was written.
#[derive(Debug, Serialize)]
pub(super) struct Lifecycle {
    pub(super) phase: &'static str,
}

/// Tools that wrote the bill.
#[derive(Debug, Serialize)]
pub(super) struct Tools {
    pub(super) components: [Component; 1],
}

/// A thing that something is made of, or with.
#[derive(Debug, Default, Serialize)]
pub(super) struct Component {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(rename = "bom-ref")]
    pub(super) reference: String,
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// `required` in what is described, or `excluded` from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hashes: Vec<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) licenses: Vec<License>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpe: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) purl: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) properties: Vec<Property>,
}

/// A checksum.
#[derive(Debug, Serialize)]
pub(super) struct Hash {
    pub(super) alg: &'static str,
    pub(super) content: String,
}

impl Hash {
    /// Takes a SHA-256 in hexadecimal digits.
    pub(super) fn sha256(content: String) -> Self {
        Self { alg: "SHA-256", content }
    }
}

/// An SPDX expression.
#[derive(Debug, Serialize)]
pub(super) struct License {
    pub(super) expression: String,
}

/// What the schema has no field for.
#[derive(Debug, Serialize)]
pub(super) struct Property {
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// What a component needs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dependency {
    #[serde(rename = "ref")]
    pub(super) reference: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) depends_on: Vec<String>,
}
