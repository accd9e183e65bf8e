// Reduces PNG pictures to few colours, so that the files in docs/ are small.
import zlib from 'node:zlib';

const COLOURS = 128;
const MAGIC = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Returns the pixels of a PNG that Chromium wrote (8 bits per channel, not interlaced), as numbers 0xRRGGBB. */
function pixels(png) {
  const parts = [];
  let [width, height, channels] = [0, 0, 0];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const [type, body] = [png.toString('latin1', at + 4, at + 8), png.subarray(at + 8, at + 8 + png.readUInt32BE(at))];
    if (type === 'IHDR') [width, height, channels] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    if (type === 'IDAT') parts.push(body);
  }
  const [bytes, line] = [zlib.inflateSync(Buffer.concat(parts)), width * channels];
  const found = new Uint32Array(width * height);
  let above = Buffer.alloc(line);
  for (let y = 0; y < height; y++) {
    const filter = bytes[y * (line + 1)];
    const row = bytes.subarray(y * (line + 1) + 1, (y + 1) * (line + 1));
    for (let x = 0; x < line; x++) {
      const [left, up, corner] = [x < channels ? 0 : row[x - channels], above[x], x < channels ? 0 : above[x - channels]];
      row[x] += [0, left, up, (left + up) >> 1, nearest(left, up, corner)][filter];
    }
    for (let x = 0; x < width; x++) found[y * width + x] = row.readUIntBE(x * channels, 3);
    above = row;
  }
  return { width, height, found };
}

/** Returns the neighbour that is closest to the value that all three predict (the Paeth filter of PNG). */
function nearest(left, up, corner) {
  const [a, b, c] = [left, up, corner].map((one) => Math.abs(left + up - corner - one));
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  const edges = Buffer.alloc(8);
  edges.writeUInt32BE(body.length, 0);
  edges.writeUInt32BE(crc32(named), 4);
  return Buffer.concat([edges.subarray(0, 4), named, edges.subarray(4)]);
}

/** Returns the checksum of a chunk. `zlib.crc32` needs node 20.15. */
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 && 0xedb88320);
  }
  return ~crc >>> 0;
}

/** Returns the same picture with only its most frequent colours. Other pixels get the nearest of them. */
export function withFewColours(png) {
  const { width, height, found } = pixels(png);
  const times = new Map();
  for (const colour of found) times.set(colour, (times.get(colour) ?? 0) + 1);
  const channels = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const distance = (a, b) => channels(a).reduce((sum, value, nth) => sum + (value - channels(b)[nth]) ** 2, 0);
  const palette = [];
  for (const [colour] of [...times].sort((a, b) => b[1] - a[1])) {
    if (palette.length < COLOURS && palette.every((other) => distance(colour, other) > 60)) palette.push(colour);
  }
  const numbers = new Map([...times.keys()].map((colour) => [colour, palette.reduce((best, other, nth) => (distance(colour, other) < distance(colour, palette[best]) ? nth : best), 0)]));
  const rows = Buffer.alloc(height * (width + 1)); // each row begins with filter 0
  for (let at = 0; at < found.length; at++) rows[at + Math.floor(at / width) + 1] = numbers.get(found[at]);
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8); // 8 bits, a palette
  const body = zlib.deflateSync(rows, { level: 9, memLevel: 9 });
  return Buffer.concat([MAGIC, chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap(channels))), chunk('IDAT', body), chunk('IEND', Buffer.alloc(0))]);
}
