// The parts of the protobuf wire format that the trace processor's RPC needs.

/** Encodes a non-negative integer. */
function varint(value) {
  const out = [];
  for (let rest = BigInt(value); ;) {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    if (!rest) return Buffer.from([...out, low]);
    out.push(low | 0x80);
  }
}

/** Decodes the integer at `at`. Returns it and the offset after it. */
function readVarint(bytes, at) {
  for (let value = 0n, shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    if (byte === undefined) throw new Error('a message ends inside a number');
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [value, at];
  }
}

export const uintField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);

export function bytesField(field, data) {
  const bytes = Buffer.isBuffer(data) ? data : Buffer.from(data);
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}

/** Yields [field number, value] of one message: a BigInt for a varint, bytes for everything else. */
export function* fields(bytes) {
  for (let at = 0; at < bytes.length;) {
    let tag;
    let size;
    [tag, at] = readVarint(bytes, at);
    const [field, wire] = [Number(tag >> 3n), Number(tag & 7n)];
    if (wire === 0) {
      let value;
      [value, at] = readVarint(bytes, at);
      yield [field, value];
      continue;
    }
    if (wire === 1) size = 8;
    else if (wire === 5) size = 4;
    else if (wire === 2) {
      [size, at] = readVarint(bytes, at);
      size = Number(size);
    } else throw new Error(`unknown wire type ${wire}`);
    yield [field, bytes.subarray(at, at + size)];
    at += size;
  }
}

/** Returns the numbers of a packed repeated field. */
export function packed(bytes) {
  const out = [];
  for (let at = 0; at < bytes.length;) {
    let value;
    [value, at] = readVarint(bytes, at);
    out.push(value);
  }
  return out;
}
