/** The data in the page: read, unpacked, and held against the digest in the form. */
import { deal } from './hunks.js';
import { fromBase64, sha256 } from './text.js';

/** @typedef {import('./types.js').Index} Index */
/** @typedef {import('./types.js').Block} Block */
/** @typedef {import('./types.js').Form} Form */

/** @param {string} id */
const textOf = (id) => document.getElementById(id)?.textContent ?? null;

/** @param {string} text base64 of deflated text */
async function unpack(text) {
  const stream = new Blob([/** @type {BlobPart} */ (fromBase64(text))]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Response(stream).text();
}

/** Blocks that were read lately; old ones are read again when they are needed. @type {Map<string, any>} */
const recent = new Map();
const MAX_RECENT = 6;

/** The data of one element. @param {string} id @param {(value: any) => void} [prepare] */
async function read(id, prepare = () => {}) {
  const known = recent.get(id);
  if (known !== undefined) {
    recent.delete(id);
    recent.set(id, known);
    return known;
  }
  const text = textOf(id);
  if (text === null) return null;
  const value = JSON.parse(await unpack(text));
  prepare(value);
  recent.set(id, value);
  if (recent.size > MAX_RECENT) recent.delete(/** @type {string} */ (recent.keys().next().value));
  return value;
}

/** An index that is not packed. @returns {any} */
export const readPlain = () => JSON.parse(textOf('index') ?? '');

/** @returns {Promise<Index>} */
export const readIndex = async () => JSON.parse(await unpack(textOf('index') ?? ''));

/** @param {number} row place in the index @param {number} part its number @returns {Promise<Block>} */
export const readPart = (row, part) => read(`row${row}-${part}`, deal);

/** @param {number} item place in the plan @returns {Promise<import('./types.js').SinceFile[]>} */
export const readSince = async (item) => (await read(`since${item}`)) ?? [];

/** @param {number} file @returns {Promise<import('./types.js').Whole|null>} */
export const readWhole = (file) => read(`whole${file}`);

/** @param {number} n @returns {{url: string, width: number, height: number}|null} */
export function readImage(n) {
  const found = /^(image\/(?:png|jpeg|gif|webp)) (\d+) (\d+) ([A-Za-z0-9+/=]+)$/.exec(textOf(`image${n}`) ?? '');
  return found && { url: `data:${found[1]};base64,${found[4]}`, width: Number(found[2]), height: Number(found[3]) };
}

/** Digest of the data that is in the page now. */
export async function digestOfData() {
  const list = [], encoder = new TextEncoder();
  for (const node of document.querySelectorAll('script.data')) {
    list.push(`${node.id}\n${await sha256(encoder.encode(node.textContent ?? ''))}\n`);
  }
  return sha256(encoder.encode(list.join('')));
}

/** The form as it stands in the page, and its payload. @returns {{form: {payload_b64: string, signature: string}, payload: Form}|null} */
export function readForm() {
  const text = textOf('form');
  if (text === null) return null;
  const form = JSON.parse(text);
  return { form, payload: JSON.parse(new TextDecoder().decode(fromBase64(form.payload_b64))) };
}
