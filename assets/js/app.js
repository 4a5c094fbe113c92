/** The state of the page, and the only ways to change it. */
import { digestOfData, readForm, readIndex, readPart } from './data.js';
import { subject, contradictions } from './decisions.js';
import { announce } from './dom.js';
import { openStorage, readDrafts, writeDrafts } from './drafts.js';
import { metas } from './hunks.js';
import { blockersOf, derive, makeModel, withDraft, withoutStrays } from './layers.js';
import { decisionWords } from './words.js';

/** @typedef {import('./types.js').Decision} Decision */
/** @typedef {import('./types.js').Form} Form */

/** @type {{form: {payload_b64: string, signature: string}, payload: Form}|null} */
let form = null;

export const app = {
  index: /** @type {import('./types.js').Index} */ (/** @type {any} */ (null)),
  model: /** @type {import('./layers.js').Model} */ (/** @type {any} */ (null)),
  derived: /** @type {import('./layers.js').Derived} */ (/** @type {any} */ (null)),
  /** @type {import('./types.js').Blocker[]} */
  blockers: [],
  /** @type {Decision[]} */
  drafts: [],
  reviewer: '',
  /** The drafts as they were when they were last saved. */
  saved: '[]',
  /** Whether drafts outlive the page. */
  kept: true,
  /** Why nothing can be decided; empty when it can. */
  locked: 'The page is being checked.',
  damaged: false,
  /** The row that is shown: an item, `ambiguous`, `unplanned` or `accepted`. */
  row: '',
  /** The segment that the reader is at; -1 for none. */
  current: -1,
  /** Lines of the current segment that were picked, counted from 1. @type {[number, number]|null} */
  picked: null,
  /** Which rows show the difference since approval. @type {Set<string>} */
  since: new Set(),
  digest: '',
  seen: new Uint8Array(0),
};

/** @typedef {'drafts'|'row'|'current'|'seen'|'locked'} Topic */
/** @type {Map<Topic, (() => void)[]>} */
const listeners = new Map();

/** @param {Topic[]} topics @param {() => void} act */
export function on(topics, act) {
  for (const topic of topics) listeners.set(topic, [...(listeners.get(topic) ?? []), act]);
}

/** @param {Topic} topic */
export function tell(topic) {
  for (const act of listeners.get(topic) ?? []) act();
}

/** The form of this page. */
export const pageForm = () => form;

/** @param {number} segment */
export const isSeen = (segment) => app.seen[segment] === 1;

function refresh() {
  app.derived = derive(app.model, app.drafts);
  app.blockers = blockersOf(app.model, app.derived);
}

/** Reads the page's data. Throws when it can not be read. */
export async function load() {
  app.index = await readIndex();
  app.model = makeModel(app.index);
  app.seen = new Uint8Array(app.index.n_segments);
  for (const item of app.index.items) if (item.approval === 'stale' && item.since) app.since.add(item.id);
  refresh();
}

/** Holds the data against the form; only then can anything be decided. */
export async function check() {
  let digest = '';
  try {
    form = readForm();
    digest = await digestOfData();
    app.digest = digest;
    if (form && form.payload.data_digest !== digest) app.damaged = true;
  } catch {
    app.damaged = true;
  }
  if (app.damaged) app.locked = 'This page is damaged: its data is not what its form names. Nothing can be decided with it.';
  else if (app.index.read_only) app.locked = app.index.read_only;
  else if (!form) app.locked = 'This page carries no approval form.';
  else app.locked = '';
  if (!app.damaged) restore();
  tell('locked');
  tell('drafts');
}

function restore() {
  const stored = readDrafts(openStorage(), app.digest, app.index.n_segments);
  for (const segment of stored.seen) app.seen[segment] = 1;
  if (app.locked === '') {
    app.drafts = stored.decisions;
    app.reviewer = stored.reviewer;
    app.saved = stored.saved || '[]';
    refresh();
    if (app.drafts.length) announce(`${app.drafts.length} drafts from before are back`);
  }
}

/** @type {any} */
let keepTimer = 0;

/** Keeps drafts and what was seen, soon. */
export function keep() {
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keepNow, 300);
}

export function keepNow() {
  clearTimeout(keepTimer);
  if (!app.digest || app.damaged) return;
  const seen = [];
  for (let segment = 0; segment < app.seen.length; segment++) if (app.seen[segment]) seen.push(segment);
  app.kept = writeDrafts(openStorage(), app.digest, {
    decisions: app.drafts, seen, reviewer: app.reviewer, saved: app.saved,
  });
}

/** Whether there are drafts that no file holds. */
export const isUnsaved = () => app.drafts.length > 0 && JSON.stringify(app.drafts) !== app.saved;

/** @param {Decision[]} drafts */
export function setDrafts(drafts) {
  app.drafts = drafts;
  refresh();
  keep();
  tell('drafts');
}

/**
 * Drafts a decision; returns whether it was taken.
 *
 * @param {{type: string, [field: string]: any}} decision
 */
export function draft(decision) {
  if (app.locked) {
    announce(app.locked);
    return false;
  }
  const whole = /** @type {Decision} */ ({ id: crypto.randomUUID(), ...decision });
  const { drafts, dropped } = withDraft(app.model, app.drafts, whole, subject);
  setDrafts(drafts);
  const more = dropped.length ? `. Taken back: ${dropped.map(decisionWords).join(', ')}` : '';
  announce(`Drafted: ${decisionWords(whole)}${more}`);
  return true;
}

/** Takes drafts back. @param {(d: Decision) => boolean} test @param {string} [words] */
export function undo(test, words) {
  const gone = app.drafts.filter(test);
  if (gone.length === 0) return;
  let rest = app.drafts.filter((d) => !test(d));
  // An approval drafted after an assignment covered what was assigned then.
  const items = new Set(gone.filter((d) => d.type === 'assign' || d.type === 'unresolve' || d.type === 'accept').flatMap((d) => {
    const recorded = app.index.choices.find((one) => one.segment === d.segment)?.item;
    return [d.item, recorded].filter(Boolean);
  }));
  rest = rest.filter((d) => !((d.type === 'approve' || d.type === 'confirm_no_change')
    && (items.has(d.item) || [...(app.model.dependencies.get(d.item) ?? [])].some((id) => items.has(id)))));
  // An acknowledgement is what an approval or acceptance stands on.
  for (const d of gone.filter((one) => one.type === 'acknowledge')) {
    const row = app.model.rowNameOf(d.segment);
    const owner = app.derived.choices.get(d.segment)?.item ?? row;
    rest = rest.filter((one) => !((one.type === 'approve' && one.item === owner) || (one.type === 'accept' && one.segment === d.segment)));
  }
  setDrafts(withoutStrays(app.model, rest));
  announce(words ?? `Taken back: ${gone.map(decisionWords).join(', ')}`);
}

/** Marks a segment as shown in full. @param {number} segment */
export function see(segment) {
  if (app.seen[segment]) return;
  app.seen[segment] = 1;
  if (!seeing) {
    seeing = true;
    requestAnimationFrame(() => {
      seeing = false;
      tell('seen');
    });
  }
  keep();
}
let seeing = false;

/** What was shown, by row of the link, as the decisions file has it. */
export function shown() {
  /** @type {{[row: string]: 'all'|number[]}} */
  const out = {};
  for (const row of app.index.rows) {
    const ids = app.model.segmentsOf(row.row).filter(isSeen);
    if (ids.length > 0) out[row.row] = ids.length === row.changes ? 'all' : ids;
  }
  return out;
}

/** Pairs of drafts that can not stand in one file. */
export const clashes = () => contradictions(app.drafts);

/** What a segment says beyond its lines. @param {number} segment */
export async function metaOf(segment) {
  const [[row, part]] = app.model.partsOf(segment);
  const block = await readPart(row, part);
  return metas(block, (id) => app.model.rowOf[id] === row).get(segment) ?? { id: segment };
}
