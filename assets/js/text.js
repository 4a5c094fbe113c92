/** Untrusted text: how it is shown, and how its exact bytes come back. */

/** Announces a raw byte in the page's data; see `render/src/text.rs`. */
export const RAW = '\uFDD0';

/** Characters that are better known by a name than by their number. */
const NAMES = new Map([[0, 'NUL'], [7, 'BEL'], [8, 'BS'], [0x0A, 'LF'], [0x0D, 'CR'], [0x1B, 'ESC'], [0x7F, 'DEL'], [0xA0, 'NBSP'], [0xFEFF, 'BOM']]);
const SUSPECT = /[^\x20-\x7E\t]/;
const HIDDEN = /\uFDD0[\s\S]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\p{Cn}\p{Co}]|(?! )\p{Zs}/gu;

/** @param {string} c one character, or RAW and the one after it */
export function markOf(c) {
  if (c[0] === RAW && c.length > 1) {
    return c[1] === RAW ? '⟨U+FDD0⟩' : `⟨x${c.charCodeAt(1).toString(16).toUpperCase()}⟩`;
  }
  const code = c.codePointAt(0) ?? 0;
  const name = NAMES.get(code);
  return name ? `⟨${name}⟩` : `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/**
 * Cuts text into what is shown as it is and what needs a mark.
 *
 * @param {string} text
 * @param {boolean} [prose] line breaks and tabs are left alone in prose
 * @returns {{text: string, mark: boolean}[]}
 */
export function pieces(text, prose = false) {
  if (!SUSPECT.test(text)) return [{ text, mark: false }];
  const out = [];
  let at = 0;
  for (const found of text.matchAll(HIDDEN)) {
    const c = found[0];
    if (c === '\t' || (prose && c === '\n')) continue;
    if (found.index > at) out.push({ text: text.slice(at, found.index), mark: false });
    out.push({ text: c, mark: true });
    at = found.index + c.length;
  }
  if (at < text.length) out.push({ text: text.slice(at), mark: false });
  return out;
}

/** The text with every mark written out, for titles and labels. @param {string} text */
export const plain = (text) => pieces(text, true).map((piece) => (piece.mark ? markOf(piece.text) : piece.text)).join('');

/** What copying gives: marks become the characters they stand for. @param {string} c */
export const rawOf = (c) => (c[0] === RAW && c.length > 1 ? (c[1] === RAW ? RAW : '\uFFFD') : c);

/** The exact bytes that `text` stands for. @param {string} text @returns {Uint8Array} */
export function bytesOf(text) {
  if (!text.includes(RAW)) return new TextEncoder().encode(text);
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(/\uFDD0([\s\S])/g)) {
    parts.push(new TextEncoder().encode(text.slice(at, found.index)));
    parts.push(found[1] === RAW ? new TextEncoder().encode(RAW) : Uint8Array.of(found[1].charCodeAt(0)));
    at = found.index + 2;
  }
  parts.push(new TextEncoder().encode(text.slice(at)));
  return join(parts);
}

/** @param {Uint8Array[]} parts */
export function join(parts) {
  const out = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Standard base64. @param {Uint8Array} bytes */
export function toBase64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** @param {string} text @returns {Uint8Array} */
export const fromBase64 = (text) => {
  const { fromBase64: quick } = /** @type {any} */ (Uint8Array);
  return quick ? /** @type {Uint8Array} */ (quick.call(Uint8Array, text)) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
};

/** `sha256:` and hex. @param {Uint8Array} bytes */
export async function sha256(bytes) {
  const digest = await crypto.subtle.digest('SHA-256', /** @type {BufferSource} */ (bytes));
  return `sha256:${Array.from(new Uint8Array(digest), (b) => b.toString(16).padStart(2, '0')).join('')}`;
}

/**
 * Joins token classes and word marks into pieces of one line.
 *
 * @param {string} text
 * @param {string} classes as `push_classes` of `render/src/text.rs` writes them
 * @param {string} words
 * @returns {{text: string, kind: string, word: boolean}[]}
 */
export function tokens(text, classes, words) {
  const cuts = classes[0] === '!' ? [...steps(classes.slice(1))] : classed(text, classes), marks = [...steps(words)];
  const out = [];
  let at = 0, i = 0, j = 0;
  while (at < text.length) {
    while (i < cuts.length && cuts[i].end <= at) i++;
    while (j < marks.length && marks[j].end <= at) j++;
    const end = Math.min(cuts[i]?.end ?? text.length, marks[j]?.end ?? text.length, text.length);
    out.push({ text: text.slice(at, end), kind: cuts[i]?.kind ?? '.', word: marks[j]?.kind === 'w' });
    at = end;
  }
  return out;
}

/** Runs of tokens of one class; blanks go with what stands before them. @param {string} text @param {string} classes */
function classed(text, classes) {
  const out = /** @type {{end: number, kind: string}[]} */ ([]);
  if (!classes) return out;
  let n = 0;
  for (const { 0: token, index } of text.matchAll(/[A-Za-z0-9_]+|[^A-Za-z0-9_ \t]/gu)) {
    if (n === classes.length) break;
    const kind = classes[n++], last = out[out.length - 1];
    if (last?.kind === kind) last.end = index + token.length;
    else {
      if (last) last.end = index;
      else if (index > 0 && kind !== '.') out.push({ end: index, kind: '.' });
      out.push({ end: index + token.length, kind });
    }
  }
  return out;
}

/** @param {string} runs */
function* steps(runs) {
  let end = 0;
  for (const found of runs.matchAll(/([0-9A-Z]*)([a-z.])/g)) {
    end += found[1] ? parseInt(found[1], 36) : 1;
    yield { end, kind: found[2] };
  }
}
