/** Changed files of one view: the hunks of its segments, with every line's number and owner. */

/** @typedef {import('./types.js').Block} Block */
/** @typedef {import('./types.js').BlockFile} BlockFile */
/** @typedef {import('./types.js').Hunk} Hunk */
/** @typedef {import('./types.js').SegmentMeta} SegmentMeta */

/**
 * A hunk taken apart, or a stretch of one that is cut. Arrays have one entry per line. `before` and
 * `after`: lines of the first segment before it, and of the last after it.
 *
 * @typedef {{
 *   first: number, before: number, after: number, pos: number, n: number, kinds: string,
 *   segments: Int32Array, olds: Int32Array, news: Int32Array, texts: (string|undefined)[],
 *   runs: (string|undefined)[], words: Map<number, string>, unended: Set<number>,
 *   context: string, ids: number[]
 * }} Lines
 */

/** A number by which a line of a segment stands before or after others. @param {number} segment @param {number} line counted from 0 */
export const posOf = (segment, line) => segment * 2 ** 22 + line;

/** Gives each file of a block its hunks, and each hunk its lines. @param {Block} block */
export function deal(block) {
  const texts = block.text.split('\n'), runs = block.runs ? block.runs.split('\n') : null;
  const steps = block.steps.split('|'), here = new Map(block.here);
  const cuts = new Map(block.cuts?.map(([hunk, before, after]) => [hunk, { before, after }]));
  const unended = new Set(block.unended), words = new Map(), marks = block.words.split('\n');
  let line = 0;
  block.word_lines.forEach((step, n) => words.set(line += step, marks[n]));
  const contexts = new Map();
  let place = 0;
  block.contexts.forEach((text, n) => contexts.set(place += block.context_hunks[n], text));
  let number = 0, at = 0, next = 0;
  for (const file of block.files) {
    let old = 1, head = 1, context = '';
    file.hunks = [];
    for (let n = 0; n < file.n; n++, number++) {
      let kinds = '';
      const counts = [];
      for (const [, sign, length] of steps[number].matchAll(/([=+-])(\d*)/g)) {
        kinds += (sign === '=' ? ' ' : sign).repeat(Number(length || 1));
        if (sign !== '=') counts.push(Number(length || 1));
      }
      const cut = cuts.get(number) ?? { before: 0, after: 0 }, first = next + block.skips[number];
      next = first + counts.length - (cut.after ? 1 : 0);
      head += block.gaps[number];
      old += block.gaps[number] + block.shifts[number];
      context = contexts.get(number) ?? context;
      const hunk = /** @type {Hunk} */ ({
        old, new: head, kinds, first, ...cut, counts, context, here: here.get(number),
        words: [], unended: [], texts: [], runs: null,
      });
      for (const kind of kinds) {
        if (kind !== '+') old++;
        if (kind !== '-') head++;
      }
      const begin = at;
      for (const [from, count] of hunk.here ?? [[0, kinds.length]]) {
        for (let i = from; i < from + count; i++, at++) {
          const marked = words.get(at);
          if (marked) hunk.words.push([i, marked]);
          if (unended.has(at)) hunk.unended.push(i);
        }
      }
      hunk.texts = texts.slice(begin, at);
      hunk.runs = runs && runs.slice(begin, at);
      file.hunks.push(hunk);
    }
  }
}

/** @param {Hunk} hunk @returns {Lines} */
export function expand(hunk) {
  const n = hunk.kinds.length;
  const segments = new Int32Array(n).fill(-1), olds = new Int32Array(n), news = new Int32Array(n);
  let old = hunk.old, head = hunk.new, segment = -1, left = 0;
  for (let i = 0; i < n; i++) {
    const kind = hunk.kinds[i];
    if (kind !== ' ') {
      if (left === 0) left = hunk.counts[++segment];
      left--;
      segments[i] = hunk.first + segment;
    }
    if (kind !== '+') olds[i] = old++;
    if (kind !== '-') news[i] = head++;
  }
  let texts = hunk.texts, runs = hunk.runs ?? [];
  if (hunk.here) {
    texts = new Array(n);
    runs = new Array(n);
    let at = 0;
    for (const [begin, count] of hunk.here) {
      for (let i = begin; i < begin + count; i++, at++) {
        texts[i] = hunk.texts[at];
        if (hunk.runs) runs[i] = hunk.runs[at];
      }
    }
  }
  return {
    first: hunk.first, before: hunk.before, after: hunk.after, pos: posOf(hunk.first, hunk.before),
    n, kinds: hunk.kinds, segments, olds, news, texts, runs,
    words: new Map(hunk.words), unended: new Set(hunk.unended), context: hunk.context,
    ids: hunk.counts.map((_, i) => hunk.first + i),
  };
}

/**
 * One file of a view.
 *
 * @typedef {{file: number, source: BlockFile, card: number, hunks: Lines[]}} ViewFile
 */

/**
 * The files of a view: what `blocks` hold of the segments that `wanted` names, in order.
 *
 * @param {Block[]} blocks
 * @param {(segment: number) => boolean} wanted
 * @param {number} [from] where hunks begin that are taken, as `posOf` counts
 * @param {number} [to] the end of that
 * @returns {ViewFile[]}
 */
export function collect(blocks, wanted, from = 0, to = Infinity) {
  const isIn = (/** @type {number} */ pos) => pos >= from && pos < to;
  /** @type {Map<number, {source: BlockFile, card: number, hunks: Map<number, Lines>}>} */
  const files = new Map();
  for (const block of blocks) {
    for (const source of block.files) {
      const card = source.card !== undefined && wanted(source.card) && isIn(posOf(source.card, 0)) ? source.card : -1;
      const hunks = [];
      for (const hunk of source.hunks) {
        if (!isIn(posOf(hunk.first, hunk.before)) || !hunk.counts.some((_, i) => wanted(hunk.first + i))) continue;
        hunks.push(expand(hunk));
      }
      if (card < 0 && hunks.length === 0) continue;
      const known = files.get(source.file);
      if (!known) {
        files.set(source.file, { source, card, hunks: new Map(hunks.map((one) => [one.pos, one])) });
        continue;
      }
      if (card >= 0) {
        known.card = card;
        known.source = source;
      }
      for (const one of hunks) known.hunks.set(one.pos, merge(known.hunks.get(one.pos), one));
    }
  }
  return [...files].sort((a, b) => a[0] - b[0]).map(([file, { source, card, hunks }]) => ({
    file, source, card, hunks: [...hunks.values()].sort((a, b) => a.pos - b.pos),
  }));
}

/** Two rows may hold different parts of one hunk. @param {Lines|undefined} a @param {Lines} b @returns {Lines} */
function merge(a, b) {
  if (!a) return b;
  for (let i = 0; i < a.n; i++) {
    if (a.texts[i] === undefined) {
      a.texts[i] = b.texts[i];
      a.runs[i] = b.runs[i];
      const words = b.words.get(i);
      if (words) a.words.set(i, words);
      if (b.unended.has(i)) a.unended.add(i);
    }
  }
  return a;
}

/**
 * What is known of each segment of a block beyond its lines.
 *
 * @param {Block} block
 * @param {(segment: number) => boolean} isOwn whether a segment belongs to the block's row
 * @returns {Map<number, SegmentMeta>}
 */
export function metas(block, isOwn) {
  const { said, says } = block, copies = new Map(block.copies?.map(([nth, copy, of]) => [nth, [copy, of]]));
  const out = new Map();
  let at = 0, left = 0, last = -1;
  for (const file of block.files) {
    const ids = file.card === undefined ? [] : [file.card];
    for (const hunk of file.hunks) hunk.counts.forEach((_, i) => ids.push(hunk.first + i));
    for (const id of ids) {
      // A segment that is cut comes again.
      if (!isOwn(id) || id === last) continue;
      last = id;
      if (left === 0) left = says[2 * at++ + 1];
      left--;
      const copy = copies.get(out.size);
      out.set(id, { ...said[says[2 * at - 2]], id, ...(copy && { copy }) });
    }
  }
  return out;
}

/** The lines of one segment in a hunk: first place and count. @param {Lines} lines @param {number} segment @returns {[number, number]} */
export function placeOf(lines, segment) {
  const begin = lines.segments.indexOf(segment);
  let end = begin;
  while (end < lines.n && lines.segments[end] === segment) end++;
  return [begin, end - begin];
}

/**
 * Where a segment stands that a hunk has lines of: first place and count there, lines of it before
 * the hunk, and its lines in all.
 *
 * @param {Lines} lines @param {number} segment
 */
export function spanOf(lines, segment) {
  const [begin, n] = placeOf(lines, segment);
  const before = segment === lines.first ? lines.before : 0;
  return { begin, n, before, total: before + n + (segment === lines.ids[lines.ids.length - 1] ? lines.after : 0) };
}
