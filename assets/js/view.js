/** What the code pane shows: the parts of a row, each read and laid out when it comes near. */
import { app } from './app.js';
import { readPart, readSince } from './data.js';
import { collect, metas, posOf } from './hunks.js';

/** @typedef {import('./hunks.js').Lines} Lines */
/** @typedef {import('./hunks.js').ViewFile} ViewFile */
/** @typedef {import('./types.js').SegmentMeta} SegmentMeta */
/** @typedef {import('./types.js').Block} Block */
/**
 * One thing in the list: what it is, and what it is about.
 *
 * @typedef {{t: string, f?: ViewFile, h?: Lines, i?: number, j?: number, seg?: number,
 *   words?: string, from?: number, to?: number, since?: any, left?: number, later?: boolean}} Entry
 */
/**
 * A stretch of the view: the hunks that begin from `from` on and before `to`, as `posOf` counts.
 * `reads`: rows and parts with what it shows. The rest is there once it was read.
 *
 * @typedef {{
 *   from: number, to: number, reads: [number, number][], lines: number, guess: number,
 *   blocks: Block[], files: ViewFile[], metas: Map<number, SegmentMeta>,
 *   entries: Entry[]|null, places: Map<number, Entry>, reading: Promise<void>|null
 * }} Section
 */

/** What is shown now. */
export const view = {
  /** @type {Section[]} */
  sections: [],
  /** Those with the row's code, also where the difference since an approval is shown. @type {Section[]} */
  code: [],
  /** Segments in the order in which they stand. @type {number[]} */
  order: [],
  /** Whether a segment belongs to what is shown. @type {(segment: number) => boolean} */
  has: () => false,
  /** Width of a line number. */
  digits: 3,
};

/** Files that the reader folded or opened, against what is usual. @type {Map<number, boolean>} */
export const folds = new Map();
/** Unchanged lines the reader asked for. @type {Map<number, import('./types.js').Whole>} */
export const wholes = new Map();
/** Files, and differences since an approval, of which all lines are shown. @type {Set<string>} */
export const expanded = new Set();
/** How many lines at each end of a gap between hunks: file and the hunk below it. @type {Map<string, number>} */
export const nears = new Map();
/** How lines are laid out. */
export const layout = { split: false };

/** @param {number} file */
export const isFolded = (file) => folds.get(file) ?? Boolean(app.index.files[file].generated);

/** Whether a segment belongs to what a row shows. @param {string} row @returns {(segment: number) => boolean} */
function wantedBy(row) {
  const { derived, model } = app;
  if (row === 'accepted') {
    const all = new Set(derived.accepted);
    return (segment) => all.has(segment);
  }
  const state = derived.items.get(row);
  if (state) {
    const all = new Set(state.segments);
    return (segment) => all.has(segment);
  }
  const number = model.rowNumber.get(row);
  // What was decided here stays in view; what was decided before stands where it went.
  return (segment) => {
    const choice = derived.choices.get(segment);
    return model.rowOf[segment] === number && (!choice || choice.draft !== null);
  };
}

/** The row's segments as its view counts them. @param {string} row */
export function segmentsShownBy(row) {
  const state = app.derived.items.get(row);
  if (state) return state.segments;
  if (row === 'accepted') return app.derived.accepted;
  return app.model.segmentsOf(row).filter(wantedBy(row));
}

/** Segments of a file in this view. @param {number} file */
export function idsOf(file) {
  const out = [];
  for (let id = file ? app.index.files[file - 1].end : 0; id < app.index.files[file].end; id++) if (view.has(id)) out.push(id);
  return out;
}

/** @param {Partial<Section>} more @returns {Section} */
const section = (more) => ({
  from: 0, to: 0, reads: [], lines: 0, guess: 0, blocks: [], files: [], metas: new Map(), entries: null, places: new Map(), reading: null, ...more,
});

/**
 * Begins another view; nothing of it is read but the difference since an approval.
 *
 * @param {string} row
 */
export async function beginView(row) {
  const { index, model, derived } = app;
  const has = wantedBy(row);
  const since = app.since.has(row) ? await readSince(index.items.findIndex((item) => item.id === row)) : null;
  const own = model.rowNumber.get(row) ?? -1;
  const state = derived.items.get(row);
  /** @type {Map<number, Set<number>>} */
  const chosen = new Map();
  if (own >= 0) chosen.set(own, new Set(index.parts[own].keys()));
  for (const segment of state ? state.assigned : row === 'accepted' ? derived.accepted : []) {
    for (const [other, part] of model.partsOf(segment)) chosen.set(other, (chosen.get(other) ?? new Set()).add(part));
  }
  const spans = /** @type {{row: number, part: number, from: number, to: number}[]} */ ([]);
  for (const [number, parts] of chosen) {
    for (const part of parts) {
      const next = index.parts[number][part + 1];
      spans.push({ row: number, part, from: beginOf(number, part), to: next ? posOf(next[0], next[1]) : Infinity });
    }
  }
  const begins = [...new Set(spans.map((one) => one.from))].sort((a, b) => a - b);
  const sections = begins.map((from, n) => {
    const to = begins[n + 1] ?? Infinity;
    const reads = spans.filter((one) => one.from < to && one.to > from);
    const sizes = reads.filter((one) => one.from >= from).map((one) => index.parts[one.row][one.part]);
    const sum = (/** @type {(size: number[]) => number} */ of) => sizes.reduce((total, size) => total + of(size), 0);
    return section({
      from, to, reads: reads.map((one) => [one.row, one.part]), lines: sum((size) => size[2]),
      guess: sum((size) => (size[2] - size[4]) * 20 + size[3] * 30),
    });
  });
  return () => {
    view.has = has;
    view.order = since ? [] : segmentsShownBy(row).filter((segment) => has(segment)).sort((a, b) => a - b);
    view.digits = String(Math.max(99, ...[...chosen.keys()].map((number) => index.most[number]))).length;
    view.code = view.order.length || since ? sections : [];
    const body = since ? [section({ entries: laySince(since) })] : view.order.length ? sections : [];
    view.sections = [section({ entries: [{ t: 'head' }] }), ...body, section({ entries: [{ t: 'end' }], from: Infinity, to: Infinity })];
  };
}

/** @param {number} row @param {number} part */
const beginOf = (row, part) => posOf(app.index.parts[row][part][0], app.index.parts[row][part][1]);

/** The section with a line of a segment. @param {number} segment @param {number} [line] */
export const sectionOf = (segment, line = 0) => view.sections.find((one) => one.from <= posOf(segment, line) && posOf(segment, line) < one.to);

/** @param {number} segment @returns {SegmentMeta} */
export const metaIn = (segment) => sectionOf(segment)?.metas.get(segment) ?? { id: segment };

/** The place of a segment in the view, from 1; 0 where it is not in it. @param {number} segment */
export function nthOf(segment) {
  let low = 0, high = view.order.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.order[middle] < segment) low = middle + 1;
    else high = middle;
  }
  return view.order[low] === segment ? low + 1 : 0;
}

/** Reads and lays out a section. @param {Section} one */
export function readSection(one) {
  one.reading ??= (async () => {
    const { rowOf } = app.model, { has } = view;
    one.blocks = await Promise.all(one.reads.map(([row, part]) => readPart(row, part)));
    one.blocks.forEach((block, n) => {
      for (const [id, meta] of metas(block, (id) => rowOf[id] === one.reads[n][0])) one.metas.set(id, meta);
    });
    one.files = collect(one.blocks, has, one.from, one.to);
    lay(one);
  })();
  return one.reading;
}

/** Forgets what was read of a section. @param {Section} one */
export const leaveSection = (one) => Object.assign(one, { blocks: [], files: [], metas: new Map(), entries: null, places: new Map(), reading: null });

/** Lays out the entries of a section that was read. @param {Section} one */
export function lay(one) {
  const entries = /** @type {Entry[]} */ ([]), places = one.places = new Map();
  // What is told of how a file goes on is about the row itself.
  const own = one.reads.findIndex(([row]) => app.index.rows[row].row === app.row);
  one.files.forEach((f) => {
    const isOwn = own >= 0 && one.blocks[own].files.includes(f.source);
    const later = isOwn && f.source.from !== undefined;
    entries.push({ t: 'file', f, later });
    if (isFolded(f.file)) {
      for (const id of new Set([...f.card >= 0 ? [f.card] : [], ...f.hunks.flatMap((h) => h.ids)])) {
        if (view.has(id)) places.set(id, entries[entries.length - 1]);
      }
      return;
    }
    if (f.card >= 0) {
      if (needsBar(one, f.card)) entries.push({ t: 'change', f, seg: f.card });
      const card = { t: 'card', f, seg: f.card };
      places.set(f.card, needsBar(one, f.card) ? entries[entries.length - 1] : card);
      entries.push(card);
    }
    layHunks(one, entries, f, later ? f.source.from ?? 1 : 1, isOwn && Boolean(f.source.more));
  });
  one.entries = entries;
}

/**
 * @param {Section} one @param {Entry[]} entries @param {ViewFile} f
 * @param {number} next line at head after the hunk before
 * @param {boolean} more whether the file goes on in the next section
 */
function layHunks(one, entries, f, next, more) {
  const whole = wholes.get(f.file);
  const { status } = app.index.files[f.file];
  let isAnyCut = false;
  f.hunks.forEach((h, n) => {
    const left = layUnchanged(entries, f, whole, next, h.news[0] || nextNew(h), `${h.pos}`, next === 1);
    const isWhole = h.before > 0 || ((status === 'added' || status === 'deleted') && h.ids.every(view.has));
    if (!isWhole) entries.push({ t: 'hunk', f, h, i: n, left });
    isAnyCut ||= !isWhole;
    let last = -1;
    for (let i = 0; i < h.n; i++) {
      const seg = h.segments[i];
      if (h.texts[i] === undefined) {
        const from = i;
        while (i + 1 < h.n && h.texts[i + 1] === undefined) i++;
        entries.push({ t: 'elided', f, h, from, to: i });
        last = -1;
        continue;
      }
      if (seg !== last) begin(one, entries, f, h, seg);
      last = seg;
      if (layout.split && seg < 0) {
        entries.push({ t: 'pair', f, h, i, j: i, seg });
        continue;
      }
      if (layout.split) {
        i = layPairs(one, entries, f, h, i);
        last = h.segments[i];
        continue;
      }
      entries.push({ t: 'line', f, h, i, seg });
      if (seg >= 0 && !one.places.has(seg) && view.has(seg)) one.places.set(seg, entries[entries.length - 1]);
    }
    next = nextNew(h, true);
  });
  if (more) return;
  const left = layUnchanged(entries, f, whole, next, Infinity, 'end', false);
  if (left && isAnyCut) entries.push({ t: 'tail', f, left });
}

/** Puts the bar above a segment that begins here and needs one. @param {Section} one @param {Entry[]} entries @param {ViewFile} f @param {Lines} h @param {number} seg */
function begin(one, entries, f, h, seg) {
  if (seg < 0 || one.places.has(seg) || !view.has(seg) || !needsBar(one, seg)) return;
  if (seg === h.first && h.before > 0) return;
  const bar = { t: 'change', f, h, seg };
  entries.push(bar);
  one.places.set(seg, bar);
}

/** The line number at head at the beginning, or after the end, of a hunk. @param {Lines} h @param {boolean} [end] */
function nextNew(h, end) {
  if (!end) {
    for (let i = 0; i < h.n; i++) if (h.news[i]) return h.news[i];
    return 1;
  }
  for (let i = h.n - 1; i >= 0; i--) if (h.news[i]) return h.news[i] + 1;
  return 1;
}

/** Names a gap between hunks. @param {ViewFile} f @param {string} below */
export const gapOf = (f, below) => `${f.file} ${below}`;

/**
 * Lines of the gap before a hunk, as far as the reader asked for them. Returns how many are left;
 * 1 when that is not known yet, and 0 when the page does not carry them.
 *
 * @param {Entry[]} entries @param {ViewFile} f @param {import('./types.js').Whole|undefined} whole
 * @param {number} from @param {number} to first line at head, and the one after the last
 * @param {string} below the hunk below the gap, or `end`
 * @param {boolean} isFirst whether nothing stands above the gap
 */
function layUnchanged(entries, f, whole, from, to, below, isFirst) {
  if (!whole) return app.index.files[f.file].whole && from < to ? 1 : 0;
  const lines = unchangedOf(whole).filter((one) => one.from >= from && one.from < to);
  const near = expanded.has(`${f.file}`) ? Infinity : nears.get(gapOf(f, below)) ?? 0;
  // Nothing stands above the first gap, and nothing below the last.
  const top = isFirst ? 0 : near, bottom = below === 'end' ? 0 : near;
  const isShown = (/** @type {number} */ n) => near === Infinity || n < top || n >= lines.length - bottom;
  lines.forEach((one, n) => isShown(n) && entries.push({ t: 'plain', f, words: one.text, from: one.from, to: one.old }));
  return lines.filter((_, n) => !isShown(n)).length;
}

/** @param {import('./types.js').Whole} whole */
function unchangedOf(whole) {
  const texts = whole.text.split('\n');
  let at = 0;
  return whole.ranges.flatMap(([from, n, old]) => texts.slice(at, at += n).map((text, i) => ({ text, from: from + i, old: old + i })));
}

/** Removed lines beside the added ones. Returns the last place it took. @param {Section} one @param {Entry[]} entries @param {ViewFile} f @param {Lines} h @param {number} i */
function layPairs(one, entries, f, h, i) {
  let middle = i;
  while (middle < h.n && h.kinds[middle] === '-' && h.texts[middle] !== undefined) middle++;
  let end = middle;
  while (end < h.n && h.kinds[end] === '+' && h.texts[end] !== undefined) end++;
  for (let n = 0; n < Math.max(middle - i, end - middle); n++) {
    const left = i + n < middle ? i + n : -1, right = middle + n < end ? middle + n : -1;
    const segs = [left, right].map((place) => (place < 0 ? -1 : h.segments[place]));
    for (const seg of segs) begin(one, entries, f, h, seg);
    const pair = { t: 'pair', f, h, i: left, j: right, seg: segs[0] < 0 ? segs[1] : segs[0] };
    entries.push(pair);
    for (const seg of segs) if (seg >= 0 && !one.places.has(seg) && view.has(seg)) one.places.set(seg, pair);
  }
  return end - 1;
}

/** @param {import('./types.js').SinceFile[]} since @returns {Entry[]} */
function laySince(since) {
  const entries = /** @type {Entry[]} */ ([{ t: 'same-all' }]);
  if (since.length) entries.pop();
  since.forEach((file, n) => {
    entries.push({ t: 'sincefile', since: file });
    const texts = file.text.split('\n');
    const near = new Uint8Array(texts.length);
    for (let i = 0; i < file.statuses.length; i++) {
      if (file.statuses[i] !== '=') near.fill(1, Math.max(0, i - 3), i + 4);
    }
    for (let i = 0; i < file.statuses.length; i++) {
      if (!near[i] && !expanded.has(`since ${n}`)) {
        const from = i;
        while (i + 1 < file.statuses.length && !near[i + 1]) i++;
        entries.push({ t: 'same', since: n, from, to: i });
        continue;
      }
      entries.push({ t: 'since', since: file, i, words: texts[i] });
    }
  });
  return entries;
}

/** Whether a segment has more to say than its lines. @param {Section} one @param {number} seg */
function needsBar(one, seg) {
  const meta = one.metas.get(seg), row = app.model.rowNameOf(seg);
  return Boolean(meta?.tags?.length || meta?.coarse) || app.derived.choices.has(seg) || row === 'ambiguous' || row === 'unplanned'
    || app.index.notes.some((note) => note.segment === seg) || app.drafts.some((d) => d.segment === seg);
}
