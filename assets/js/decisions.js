/** Decisions: their shapes, the file that carries them, and what a file from elsewhere is worth. */

/** @typedef {import('./types.js').Decision} Decision */
/** @typedef {import('./types.js').DecisionsFile} DecisionsFile */
/** @typedef {import('./types.js').Form} Form */

export const MAX_TEXT = 4000;
const MAX_FILE_BYTES = 4 * 1024 * 1024;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @type {Map<string, (value: any) => boolean>} */
const FIELDS = new Map([
  ['item', (value) => /^P[1-9][0-9]{0,2}$/.test(value)],
  ['segment', (value) => Number.isSafeInteger(value) && value >= 0],
  ['from', (value) => Number.isSafeInteger(value) && value >= 1],
  ['to', (value) => Number.isSafeInteger(value) && value >= 1],
  ['key', (value) => /^sha256:[0-9a-f]{64}$/.test(value)],
  ['tag', (value) => /^[a-z-]+$/.test(value)],
  ['request', (value) => UUID.test(value)],
  ['problem', (value) => UUID.test(value)],
  ['finding', (value) => UUID.test(value)],
  ['thread', (value) => UUID.test(value)],
  ['suggestion', (value) => UUID.test(value)],
  ['snapshot', (value) => /^sha256:[0-9a-f]{64}$/.test(value)],
  ['lines', (value) => Array.isArray(value) && value.length === 2 && value.every((n) => Number.isSafeInteger(n) && n >= 1) && value[0] <= value[1]],
  ['revision', (value) => Number.isSafeInteger(value) && value >= 1],
  ['question', (value) => Number.isSafeInteger(value) && value >= 1],
  ['argv', (value) => Array.isArray(value) && value.every((one) => Array.isArray(one) && one.every((arg) => typeof arg === 'string'))],
  ['confirm_open_threads', (value) => typeof value === 'boolean'],
  ['confirm_open_questions', (value) => typeof value === 'boolean'],
]);

/** Fields of each type; those after `?` may be absent. @type {Map<string, string>} */
const TYPES = new Map([
  ['approve', 'item'], ['confirm_no_change', 'item'], ['withdraw', 'item'],
  ['assign', 'segment key item'], ['accept', 'segment key'], ['unresolve', 'segment key'],
  ['acknowledge', 'segment key tag'],
  ['request_change', 'item text ? segment key from to'], ['ask', 'item text ? segment key from to'],
  ['withdraw_request', 'request'],
  ['problem', 'problem state text'], ['finding', 'finding state text'],
  ['reject', 'summary'], ['merge', ''],
  ['resolve_state', 'state action ? cause text'],
  ['plan_comment', 'snapshot lines thread body ? quote'], ['plan_reply', 'snapshot thread body'],
  ['plan_resolve', 'snapshot thread'], ['plan_reopen', 'snapshot thread'],
  ['plan_approve', 'revision argv confirm_open_threads confirm_open_questions'],
  ['answer_question', 'question text'],
  ['apply_suggestion', 'suggestion'], ['dismiss_suggestion', 'suggestion'],
]);

/**
 * Why a value is no decision that this page knows; empty when it is one.
 *
 * @param {any} value
 * @returns {string}
 */
export function fault(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object';
  if (typeof value.id !== 'string' || !UUID.test(value.id)) return 'its id is not a UUID';
  const fields = TYPES.get(value.type);
  if (fields === undefined) return `unknown type ${JSON.stringify(value.type)}`;
  const [required, optional = ''] = fields.split('?').map((list) => list.trim());
  const names = required.split(' ').filter(Boolean), more = optional.split(' ').filter(Boolean);
  for (const name of names) if (!Object.hasOwn(value, name)) return `${name} is missing`;
  for (const [name, content] of Object.entries(value)) {
    if (name === 'id' || name === 'type') continue;
    if (!names.includes(name) && !more.includes(name)) return `unknown field ${JSON.stringify(name)}`;
    const check = FIELDS.get(name) ?? ((text) => typeof text === 'string');
    if (!check(content)) return `${name} has the wrong form`;
  }
  if (Object.hasOwn(value, 'segment') && !Object.hasOwn(value, 'key')) return 'key is missing';
  return '';
}

/** What a decision settles: a later one about the same thing replaces an earlier. @param {Decision} d */
export function subject(d) {
  switch (d.type) {
    case 'approve': case 'confirm_no_change': case 'withdraw': return `item ${d.item}`;
    case 'assign': case 'accept': case 'unresolve': return `choice ${d.segment}`;
    case 'acknowledge': return `tag ${d.segment} ${d.tag}`;
    case 'withdraw_request': return `request ${d.request}`;
    case 'problem': return `problem ${d.problem}`;
    case 'finding': return `finding ${d.finding}`;
    case 'reject': case 'merge': return 'end';
    case 'resolve_state': return 'state';
    case 'plan_resolve': case 'plan_reopen': return `thread ${d.thread}`;
    case 'answer_question': return `question ${d.question}`;
    case 'dismiss_suggestion': return `suggestion ${d.suggestion}`;
    // Both make or fix the revision, and one file holds one of them.
    case 'apply_suggestion': case 'plan_approve': return 'revision';
    default: return `id ${d.id}`;
  }
}

/**
 * Pairs that may not stand in one file.
 *
 * @param {Decision[]} decisions
 * @returns {[Decision, Decision, string][]}
 */
export function contradictions(decisions) {
  /** @type {[Decision, Decision, string][]} */
  const out = [];
  const seen = new Map();
  for (const d of decisions) {
    const about = subject(d);
    const other = seen.get(about);
    if (other && other.id !== d.id) out.push([other, d, 'both decide about the same thing']);
    seen.set(about, d);
  }
  const merge = decisions.find((d) => d.type === 'merge');
  if (merge) {
    for (const d of decisions) {
      if (d.type === 'request_change' || (d.type === 'resolve_state' && d.action === 'cancel')) {
        out.push([merge, d, 'a merge leaves nothing to change or cancel']);
      }
    }
  }
  return out;
}

/**
 * The file, as `apply` reads it.
 *
 * @param {{payload_b64: string, signature: string}} form
 * @param {Decision[]} decisions
 * @param {{[row: string]: 'all'|number[]}} shown
 * @param {string} reviewer
 * @param {Date} now
 */
export function writeFile(form, decisions, shown, reviewer, now) {
  /** @type {DecisionsFile} */
  const file = {
    schema_version: 1,
    form: { payload_b64: form.payload_b64, signature: form.signature },
    saved_at: `${now.toISOString().slice(0, 19)}Z`,
    reviewer: reviewer.trim() === '' ? null : reviewer.trim(),
    shown,
    decisions,
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/**
 * Reads a decisions file.
 *
 * @param {string} text
 * @returns {{error: string}|{file: DecisionsFile, payload: Form, bad: {value: any, reason: string}[]}}
 */
export function readFile(text) {
  if (text.length > MAX_FILE_BYTES) return { error: 'The file is larger than 4 MiB.' };
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    return { error: 'The file is not JSON.' };
  }
  if (typeof file !== 'object' || file === null || file.schema_version !== 1) {
    return { error: 'The file is not a decisions file of version 1.' };
  }
  if (!Array.isArray(file.decisions) || typeof file.form?.payload_b64 !== 'string' || typeof file.form?.signature !== 'string') {
    return { error: 'The file holds no form or no list of decisions.' };
  }
  let payload;
  try {
    payload = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(file.form.payload_b64), (c) => c.charCodeAt(0))));
  } catch {
    return { error: 'The form in the file can not be read.' };
  }
  const good = [], bad = [];
  const ids = new Set();
  for (const value of file.decisions) {
    const reason = fault(value) || (ids.has(value.id) ? 'its id stands twice in the file' : '');
    if (reason) {
      bad.push({ value, reason });
    } else {
      ids.add(value.id);
      good.push(value);
    }
  }
  return { file: { ...file, decisions: good }, payload, bad };
}

/** The types on which others in a file rest, and which are therefore drafted first. */
const FIRST = ['withdraw', 'unresolve', 'assign', 'accept', 'acknowledge'];
const rank = (/** @type {Decision} */ d) => (FIRST.includes(d.type) ? FIRST.indexOf(d.type) : FIRST.length);

/**
 * Sorts the decisions of a file into those that are still true here and those that are not. What
 * is kept stands in an order in which it can be drafted.
 *
 * @param {Decision[]} decisions
 * @param {Form} then the form they were made on
 * @param {Form} now the form of this page
 * @param {{
 *   dependencies: (item: string) => string[],
 *   segmentOf: (key: string, item: string|undefined) => number|undefined,
 *   isOpen: (d: Decision, before: Decision[]) => boolean,
 * }} here what this page knows; `segmentOf` finds a segment by its key, `isOpen` says whether there
 *   is still something to decide after the decisions of the file that come before
 * @returns {{kept: Decision[], lost: {decision: Decision, reason: string}[]}}
 */
export function carry(decisions, then, now, here) {
  const same = then.data_digest === now.data_digest;
  /** @type {Decision[]} */
  const kept = [];
  /** @type {{decision: Decision, reason: string}[]} */
  const lost = [];
  const fingerprint = (/** @type {Form} */ form, /** @type {string} */ item) =>
    (Object.hasOwn(form.items ?? {}, item) ? form.items[item].fingerprint : null);
  for (const d of [...decisions].sort((a, b) => rank(a) - rank(b))) {
    const lose = (/** @type {string} */ reason) => lost.push({ decision: d, reason });
    if (d.item !== undefined && fingerprint(now, d.item) === null) {
      lose(`the plan has no item ${d.item}`);
      continue;
    }
    let result = d;
    if (d.key !== undefined) {
      const segment = here.segmentOf(d.key, d.item);
      if (segment === undefined) {
        lose('the change it is about is no longer there');
        continue;
      }
      result = { ...d, segment };
    }
    if (d.type === 'approve' || d.type === 'confirm_no_change') {
      const changed = [d.item, ...here.dependencies(d.item)]
        .find((item) => fingerprint(then, item) !== fingerprint(now, item));
      if (changed !== undefined) {
        lose(changed === d.item ? `${d.item} has changed since` : `${d.item} depends on ${changed}, which has changed since`);
        continue;
      }
    }
    if (!same && (d.type === 'merge' || d.type === 'reject')) {
      lose('it was made on another state of the review');
      continue;
    }
    if (!same && d.type === 'request_change' && then.revision !== now.revision) {
      lose(`it was made on revision ${then.revision} of the plan`);
      continue;
    }
    if (!here.isOpen(result, kept)) {
      lose('it was applied, or what it answers is no longer open');
      continue;
    }
    kept.push(result);
  }
  return { kept, lost };
}
