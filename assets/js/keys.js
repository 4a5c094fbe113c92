/** Keys of segments, made again from their content, so that the page need not carry them. */
import { placeOf } from './hunks.js';
import { bytesOf, join, sha256, toBase64 } from './text.js';

/** @typedef {import('./types.js').FileEntry} FileEntry */
/** @typedef {import('./types.js').Side} Side */

/** @param {string} text */
const b64 = (text) => toBase64(bytesOf(text));

/** Path at base, as the link has it. @param {FileEntry} file */
const oldPath = (file) => (file.status === 'added' ? null : file.old_path ?? file.path);

/** @param {FileEntry} file @param {string} kind @param {string|null} op @param {any} content @param {[number, number]} copy */
function makeKey(file, kind, op, content, [copy, copies]) {
  const old = oldPath(file);
  // The canonical form sorts keys; all values are ASCII, so this is it.
  const value = { content, copies, copy, kind, old_path: old === null ? null : b64(old), op, path: b64(file.path) };
  return sha256(new TextEncoder().encode(JSON.stringify(value)));
}

/**
 * @param {FileEntry} file
 * @param {import('./hunks.js').Lines[]} hunks all stretches with lines of it, in order
 * @param {number} segment
 * @param {[number, number]} copy
 * @returns {Promise<string>}
 */
export function textKey(file, hunks, segment, copy) {
  const parts = [];
  let op = '';
  for (const lines of hunks) {
    const [begin, n] = placeOf(lines, segment);
    op = lines.kinds[begin];
    for (let i = begin; i < begin + n; i++) {
      parts.push(bytesOf(lines.texts[i] ?? ''));
      if (!lines.unended.has(i)) parts.push(Uint8Array.of(10));
    }
  }
  return makeKey(file, 'text', op, toBase64(join(parts)), copy);
}

/**
 * @param {FileEntry} file
 * @param {string} change
 * @param {Side|null} before
 * @param {Side|null} after
 * @returns {Promise<string>}
 */
export function fileKey(file, change, before, after) {
  const withContent = /binary|symlink|submodule/.test(change);
  /** @param {Side|null} side */
  const side = (side) => side && (withContent
    ? { kind: side.kind, mode: side.mode, oid: side.oid }
    : { kind: side.kind, mode: side.mode });
  return makeKey(file, 'file', null, { change, new: side(after), old: side(before) }, [1, 1]);
}
