// Asks Perfetto's own trace processor: node query.js DIRECTORY TRACE SQL...
//
// DIRECTORY has the trace processor as Perfetto's user interface ships it, for browsers:
// trace_processor*.wasm and engine_bundle.js, which loads it and hands it messages. This file is
// the little of a browser's worker that these need, and the messages
// (protos/perfetto/trace_processor/trace_processor.proto of Perfetto). Writes, for each query, a
// line of JSON: an array of rows, each an object.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [directory, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3;

// Protobuf: a field's number and wire type, then its value.
function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint(field << 3 | 2), varint(value.length), value]);

// Reads a varint at `place.at`, and goes behind it.
function read(buffer, place) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[place.at++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}
function* varints(buffer) {
  for (const place = { at: 0 }; place.at < buffer.length; ) yield read(buffer, place);
}
function* fields(buffer) {
  for (const place = { at: 0 }; place.at < buffer.length; ) {
    const key = Number(read(buffer, place));
    const size = { 1: 8, 5: 4 }[key & 7];
    if ((key & 7) === 0) {
      yield [key >> 3, read(buffer, place)];
    } else {
      const length = size ?? Number(read(buffer, place));
      yield [key >> 3, buffer.subarray(place.at, place.at += length)];
    }
  }
}

// The rows of a QueryResult, which comes in batches.
class Rows {
  names = [];
  cells = [];
  error = "";
  add(result) {
    for (const [field, value] of fields(result)) {
      if (field === 1) this.names.push(value.toString());
      if (field === 2) this.error = value.toString();
      if (field === 3) this.batch(value);
    }
  }
  batch(batch) {
    const part = new Map(fields(batch));
    const integers = varints(part.get(2) ?? Buffer.alloc(0));
    const floats = part.get(3) ?? Buffer.alloc(0);
    const strings = (part.get(5) ?? Buffer.alloc(0)).toString().split("\0");
    let [float, string] = [0, 0];
    for (const kind of part.get(1) ?? []) {
      if (kind === 2) this.cells.push(Number(BigInt.asIntN(64, integers.next().value)));
      else if (kind === 3) this.cells.push(floats.readDoubleLE(8 * float++));
      else if (kind === 4) this.cells.push(strings[string++]);
      else this.cells.push(null);
    }
  }
  all() {
    const width = this.names.length;
    const rows = [];
    for (let at = 0; width > 0 && at < this.cells.length; at += width) {
      rows.push(Object.fromEntries(this.names.map((name, of) => [name, this.cells[at + of]])));
    }
    return rows;
  }
}

// A synchronous download, which is how a worker gets the program.
class XMLHttpRequest {
  open(_method, url) {
    this.url = url;
  }
  send() {
    const file = fs.readFileSync(path.join(directory, path.basename(this.url)));
    this.status = 200;
    this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
  }
}

const worker = {
  XMLHttpRequest, TextDecoder, TextEncoder, URL, performance, setTimeout, clearTimeout,
  crypto: globalThis.crypto, atob, btoa, console: { log() {}, warn() {}, error() {}, info() {} },
  location: { href: "file:///" }, WorkerGlobalScope: class {}, importScripts() {},
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), worker);
// What it is handed must be of its own kind.
const own = vm.runInContext("(bytes) => new Uint8Array(bytes)", worker);

let heard = Buffer.alloc(0);
const port = { postMessage: (message) => { heard = Buffer.concat([heard, Buffer.from(message)]); } };
worker.onmessage({ data: port });

let sequence = 0;
// Sends a request, and returns the responses to it.
function ask(kind, ...more) {
  const message = Buffer.concat([number(1, sequence++), number(2, kind), ...more]);
  heard = Buffer.alloc(0);
  port.onmessage({ data: own(bytes(1, message)) });
  return [...fields(heard)].map(([, response]) => new Map(fields(response)));
}
setTimeout(() => {
  const file = fs.readFileSync(trace);
  const piece = 16 << 20;
  for (let at = 0; at < file.length; at += piece) {
    ask(APPEND, bytes(101, file.subarray(at, at + piece)));
  }
  ask(FINALIZE);
  for (const sql of queries) {
    const rows = new Rows();
    for (const response of ask(QUERY, bytes(103, bytes(1, Buffer.from(sql))))) {
      rows.add(response.get(203) ?? Buffer.alloc(0));
    }
    if (rows.error) {
      console.error(rows.error);
      process.exit(1);
    }
    console.log(JSON.stringify(rows.all()));
  }
}, 100);
