//! The model as JSON: whole nanoseconds, names instead of indices.

mod traffic;

use super::{Handler, Ns, Problem, Section, Segment, ServerKind, Service, System, Task, Vcpu};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_path_to_error::{Path, Segment as Step};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use traffic::TrafficJson;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SystemJson {
    #[serde(with = "ServerKindJson")]
    server: ServerKind,
    overrun: bool,
    #[serde(deserialize_with = "objects")]
    vcpus: Vec<VcpuJson>,
    #[serde(deserialize_with = "objects")]
    tasks: Vec<TaskJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "objects")]
    handlers: Vec<HandlerJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "objects")]
    traffic: Vec<TrafficJson>,
}

/// How JSON names [`ServerKind`], which is the scheduler's and knows nothing of serde.
#[derive(Deserialize, Serialize)]
#[serde(remote = "ServerKind", rename_all = "lowercase")]
enum ServerKindJson {
    Periodic,
    Deferrable,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct VcpuJson {
    id: String,
    pcpu: u32,
    #[serde(deserialize_with = "positive")]
    budget: Ns,
    #[serde(deserialize_with = "positive")]
    period: Ns,
    priority: i64,
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "nanoseconds")]
    offset: Ns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<OwnKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overrun: Option<bool>,
}

/// The kind of a vCPU's own server.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct OwnKind(#[serde(with = "ServerKindJson")] ServerKind);

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TaskJson {
    id: String,
    vcpu: String,
    #[serde(deserialize_with = "positive")]
    period: Ns,
    priority: i64,
    #[serde(deserialize_with = "objects")]
    segments: Vec<SegmentJson>,
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "nanoseconds")]
    offset: Ns,
    #[serde(default, skip_serializing_if = "is_zero", deserialize_with = "nanoseconds")]
    jitter: Ns,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct HandlerJson {
    id: String,
    vcpu: String,
    #[serde(deserialize_with = "positive")]
    period: Ns,
    #[serde(deserialize_with = "positive")]
    wcet: Ns,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SegmentJson {
    #[serde(deserialize_with = "positive")]
    wcet: Ns,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "resource")]
    gcs: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "resource")]
    lcs: Option<String>,
    /// Always refused; it is here so that the refusal can give a reason.
    #[serde(default, skip_serializing)]
    segments: Option<IgnoredAny>,
}

impl System {
    /// Reads and checks a system described as JSON.
    ///
    /// # Errors
    /// The first thing that is wrong with it: text that is no JSON, a key that
    /// is missing or unknown, or whatever [`System::check`] refuses.
    pub fn from_json(text: &str) -> Result<Self, Problem> {
        let mut json = serde_json::Deserializer::from_str(text);
        let Object(draft): Object<SystemJson> = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| {
                let place = place(error.path());
                refused(place, error.inner())
            })?;
        json.end().map_err(|error| refused(String::new(), &error))?;
        let system = draft.resolve()?;
        system.check()?;
        Ok(system)
    }

    /// The same as JSON, for a person to read and [`System::from_json`] to take.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings, integers and lists of them cannot fail to become JSON.
        serde_json::to_string_pretty(&SystemJson::describe(self)).unwrap_or_default()
    }
}

impl SystemJson {
    /// Names become indices.
    fn resolve(self) -> Result<System, Problem> {
        let indices = self.vcpus.iter().enumerate().map(|(index, vcpu)| (vcpu.id.as_str(), index));
        let indices: HashMap<&str, usize> = indices.collect();
        let mut resources = Resources::default();
        let mut tasks = Vec::with_capacity(self.tasks.len());
        let vcpu_of = |place: String, name: &str| {
            indices.get(name).copied().ok_or_else(|| {
                let known = self.vcpus.iter().map(|vcpu| format!("`{}`", vcpu.id));
                let known = known.collect::<Vec<_>>().join(", ");
                let what = format!("there is no vCPU `{name}`");
                Problem::new(place, what, format!("known are {known}"))
            })
        };
        for (index, task) in self.tasks.into_iter().enumerate() {
            let vcpu = vcpu_of(format!("tasks[{index}].vcpu"), &task.vcpu)?;
            let section = |(number, segment): (usize, SegmentJson)| {
                let place = format!("tasks[{index}].segments[{number}]");
                segment.resolve(&place, vcpu, &mut resources)
            };
            let segments = task.segments.into_iter().enumerate().map(section);
            tasks.push(Task {
                id: task.id,
                vcpu,
                period_ns: task.period,
                priority: task.priority,
                segments: segments.collect::<Result<_, _>>()?,
                offset_ns: task.offset,
                jitter_ns: task.jitter,
            });
        }
        let handlers = self.handlers.into_iter().enumerate().map(|(index, handler)| {
            Ok(Handler {
                vcpu: vcpu_of(format!("handlers[{index}].vcpu"), &handler.vcpu)?,
                id: handler.id,
                period_ns: handler.period,
                wcet_ns: handler.wcet,
            })
        });
        let handlers = handlers.collect::<Result<_, _>>()?;
        let traffic = self.traffic.into_iter().enumerate();
        let traffic = traffic.map(|(index, one)| one.resolve(index, &indices));
        let traffic = traffic.collect::<Result<_, _>>()?;
        let services = self.vcpus.iter().map(|vcpu| Service {
            kind: vcpu.server.map_or(self.server, |own| own.0),
            overrun: vcpu.overrun.unwrap_or(self.overrun),
        });
        let services: Vec<_> = services.collect();
        let vcpus = self.vcpus.into_iter().map(|vcpu| Vcpu {
            id: vcpu.id,
            pcpu: vcpu.pcpu,
            budget_ns: vcpu.budget,
            period_ns: vcpu.period,
            priority: vcpu.priority,
            offset_ns: vcpu.offset,
        });
        let (server, overrun) = (self.server, self.overrun);
        let (vcpus, resources) = (vcpus.collect(), resources.names);
        let mut system = System { server, overrun, vcpus, tasks, handlers, resources, traffic };
        for (vcpu, service) in services.into_iter().enumerate() {
            system.set_service(vcpu, service);
        }
        Ok(system)
    }

    fn describe(system: &System) -> Self {
        let name = |resource: usize| Some(system.resources[resource].clone());
        let segment = |segment: &Segment| {
            let (gcs, lcs) = match segment.section {
                Section::Normal => (None, None),
                Section::Global(resource) => (name(resource), None),
                Section::Local(resource) => (None, name(resource)),
            };
            SegmentJson { wcet: segment.wcet_ns, gcs, lcs, segments: None }
        };
        let (server, overrun) = (system.server, system.overrun);
        let vcpus = system.vcpus.iter().enumerate().map(|(index, vcpu)| VcpuJson {
            id: vcpu.id.clone(),
            pcpu: vcpu.pcpu,
            budget: vcpu.budget_ns,
            period: vcpu.period_ns,
            priority: vcpu.priority,
            offset: vcpu.offset_ns,
            server: Some(system.service(index).kind).filter(|own| *own != server).map(OwnKind),
            overrun: Some(system.service(index).overrun).filter(|own| *own != overrun),
        });
        let tasks = system.tasks.iter().map(|task| TaskJson {
            id: task.id.clone(),
            vcpu: system.vcpus[task.vcpu].id.clone(),
            period: task.period_ns,
            priority: task.priority,
            segments: task.segments.iter().map(segment).collect(),
            offset: task.offset_ns,
            jitter: task.jitter_ns,
        });
        let handlers = system.handlers.iter().map(|handler| HandlerJson {
            id: handler.id.clone(),
            vcpu: system.vcpus[handler.vcpu].id.clone(),
            period: handler.period_ns,
            wcet: handler.wcet_ns,
        });
        let traffic = system.traffic.iter().map(|one| TrafficJson::describe(system, one));
        let (vcpus, tasks, handlers) = (vcpus.collect(), tasks.collect(), handlers.collect());
        Self { server, overrun, vcpus, tasks, handlers, traffic: traffic.collect() }
    }
}

/// Resources by name. A local one belongs to its vCPU: guests name theirs
/// without knowing of each other.
#[derive(Default)]
struct Resources {
    names: Vec<String>,
    global: HashMap<String, usize>,
    local: HashMap<(usize, String), usize>,
}

impl Resources {
    fn new_index(&mut self, name: &str) -> usize {
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    fn global(&mut self, name: &str) -> usize {
        let known = self.global.get(name).copied();
        known.unwrap_or_else(|| {
            let index = self.new_index(name);
            self.global.insert(name.to_owned(), index);
            index
        })
    }

    fn local(&mut self, vcpu: usize, name: &str) -> usize {
        let known = self.local.get(&(vcpu, name.to_owned())).copied();
        known.unwrap_or_else(|| {
            let index = self.new_index(name);
            self.local.insert((vcpu, name.to_owned()), index);
            index
        })
    }
}

impl SegmentJson {
    fn resolve(
        self,
        place: &str,
        vcpu: usize,
        resources: &mut Resources,
    ) -> Result<Segment, Problem> {
        let mend = "give each critical section a segment of its own; they do not nest";
        let section = match (self.gcs, self.lcs, self.segments) {
            (None, None, None) => Section::Normal,
            (Some(name), None, None) => Section::Global(resources.global(&name)),
            (None, Some(name), None) => Section::Local(resources.local(vcpu, &name)),
            (_, _, Some(_)) => {
                let what = "a critical section is nested in a segment: segments have no segments";
                return Err(Problem::new(place, what, mend));
            }
            (Some(gcs), Some(lcs), None) => {
                let what = format!("gcs `{gcs}` and lcs `{lcs}` are nested in one another");
                return Err(Problem::new(place, what, mend));
            }
        };
        Ok(Segment { wcet_ns: self.wcet, section })
    }
}

/// A path as one writes it: `tasks[0].segments[1].wcet`.
fn place(path: &Path) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Seq { index } => text.push_str(&format!("[{index}]")),
            Step::Map { key } => {
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(key);
            }
            Step::Enum { .. } | Step::Unknown => {}
        }
    }
    text
}

fn refused(place: String, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let where_in_text = format!(" at line {} column {}", error.line(), error.column());
    let what = text.strip_suffix(&where_in_text).unwrap_or(&text);
    // In words for readers without Rust.
    let what = what.replace("expected i64", "expected a whole number from -2^63 to 2^63 - 1");
    let what = what.replace("expected u64", "expected a whole number from 0 to 2^64 - 1");
    let what = what.replace("expected u32", "expected a whole number from 0 to 2^32 - 1");
    let place = if place.is_empty() { String::new() } else { format!("{place}, ") };
    let place = format!("{place}line {} column {}", error.line(), error.column());
    let mend = if error.is_data() {
        "`cassata help analyze` shows the format; times are whole nanoseconds"
    } else {
        "from there on the text is no JSON, or not what belongs there; `cassata help analyze` \
         shows the format"
    };
    Problem::new(place, what, mend)
}

/// What has names for its parts. A list of them in their order is refused, which
/// serde would take.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object, in braces")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

fn objects<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects: Vec<Object<T>> = Vec::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(object)| object).collect())
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands a reference
fn is_zero(time: &Ns) -> bool {
    *time == 0
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ns, D::Error> {
    deserializer.deserialize_any(Nanoseconds { least: 1 })
}

fn nanoseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ns, D::Error> {
    deserializer.deserialize_any(Nanoseconds { least: 0 })
}

struct Nanoseconds {
    least: Ns,
}

impl Visitor<'_> for Nanoseconds {
    type Value = Ns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number of nanoseconds from {} to 2^64 - 1", self.least)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Ns, E> {
        let fits = value >= self.least;
        fits.then_some(value).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Ns, E> {
        u64::try_from(value)
            .map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            .and_then(|value| self.visit_u64(value))
    }
}

fn resource<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_any(ResourceName).map(Some)
}

struct ResourceName;

impl Visitor<'_> for ResourceName {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of one resource; critical sections do not nest")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<String, E> {
        Ok(name.to_owned())
    }
}
