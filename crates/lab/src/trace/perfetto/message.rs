//! The few of Perfetto's messages that a trace needs, by the numbers of their fields
//! (`protos/perfetto/trace/trace_packet.proto` and `track_event/*.proto` of Perfetto).

use prost::Message;

/// The file.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<Packet>,
}

/// One thing in it. All of ours are of one sequence, in which order matters.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<Event>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<Track>,
}

/// A line of the drawing.
#[derive(Clone, PartialEq, Message)]
pub struct Track {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(enumeration = "Ordering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// How the lines below a line are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Ordering {
    Unknown = 0,
    Explicit = 3,
}

/// Something on a line.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<Annotation>,
    #[prost(enumeration = "Type", optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Type {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// A figure beside an event.
#[derive(Clone, PartialEq, Message)]
pub struct Annotation {
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}
