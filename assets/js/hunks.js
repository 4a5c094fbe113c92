/** Changed files of one view: the hunks of its segments, with every line's number and owner. */

/** @typedef {import('./types.js').Block} Block */
/** @typedef {import('./types.js').BlockFile} BlockFile */
/** @typedef {import('./types.js').Hunk} Hunk */
/** @typedef {import('./types.js').SegmentMeta} SegmentMeta */

/**
 * A hunk taken apart. Arrays have one entry per line.
 *
 * @typedef {{
 *   first: number, n: number, kinds: string, segments: Int32Array, olds: Int32Array,
 *   news: Int32Array, texts: (string|undefined)[], runs: (string|undefined)[],
 *   words: Map<number, string>, unended: Set<number>, contexts: Map<number, string>, ids: number[]
 * }} Lines
 */

/** Gives each hunk of a block its lines. @param {Block} block */
export function deal(block) {
  const texts = block.text.split('\n'), runs = block.runs ? block.runs.split('\n') : null;
  let at = 0;
  for (const file of block.files) {
    for (const hunk of file.hunks) {
      const n = hunk.here ? hunk.here.reduce((sum, [, count]) => sum + count, 0) : hunk.kinds.length;
      hunk.texts = texts.slice(at, at + n);
      hunk.runs = runs && runs.slice(at, at + n);
      at += n;
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
    first: hunk.first, n, kinds: hunk.kinds, segments, olds, news, texts, runs,
    words: new Map(hunk.words), unended: new Set(hunk.unended), contexts: new Map(hunk.contexts),
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
 * @returns {ViewFile[]}
 */
export function collect(blocks, wanted) {
  /** @type {Map<number, {source: BlockFile, card: number, hunks: Map<number, Lines>}>} */
  const files = new Map();
  for (const block of blocks) {
    for (const source of block.files) {
      const card = source.card !== undefined && wanted(source.card) ? source.card : -1;
      let context = '';
      const hunks = [];
      for (const hunk of source.hunks) {
        const begin = context;
        for (const [, text] of hunk.contexts) context = text;
        if (!hunk.counts.some((_, i) => wanted(hunk.first + i))) continue;
        const lines = expand(hunk);
        const place = lines.kinds.search(/[^ ]/);
        if (!lines.contexts.has(place)) lines.contexts.set(place, begin);
        hunks.push(lines);
      }
      if (card < 0 && hunks.length === 0) continue;
      const known = files.get(source.file);
      if (!known) {
        files.set(source.file, { source, card, hunks: new Map(hunks.map((one) => [one.first, one])) });
        continue;
      }
      if (card >= 0) {
        known.card = card;
        known.source = source;
      }
      for (const one of hunks) known.hunks.set(one.first, merge(known.hunks.get(one.first), one));
    }
  }
  return [...files].sort((a, b) => a[0] - b[0]).map(([file, { source, card, hunks }]) => ({
    file, source, card, hunks: [...hunks.values()].sort((a, b) => a.first - b.first),
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
 * What is known of each segment of a block beyond its lines; commits are filled in.
 *
 * @param {Block} block
 * @param {(segment: number) => boolean} isOwn whether a segment belongs to the block's row
 * @returns {Map<number, SegmentMeta>}
 */
export function metas(block, isOwn) {
  const given = new Map(block.segments.map((meta) => [meta.id, meta]));
  const out = new Map();
  /** @type {number[]} */
  let commits = [];
  for (const file of block.files) {
    const ids = file.card === undefined ? [] : [file.card];
    for (const hunk of file.hunks) hunk.counts.forEach((_, i) => ids.push(hunk.first + i));
    for (const id of ids) {
      if (!isOwn(id)) continue;
      const meta = given.get(id) ?? { id };
      commits = meta.commits ?? commits;
      out.set(id, { ...meta, commits });
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
