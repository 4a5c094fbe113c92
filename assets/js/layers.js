/**
 * Two layers: what is recorded came with the page, what is drafted was decided in it and counts
 * only after `codeboost apply`. Everything shown about states is worked out here from both.
 */
import { count } from './words.js';

/** @typedef {import('./types.js').Index} Index */
/** @typedef {import('./types.js').Decision} Decision */
/** @typedef {import('./types.js').Item} Item */

/** What each segment shares with others. @param {[string[], number[]][]} groups segments as distances @param {number} n number of segments */
function ungroup(groups, n) {
  const group = new Uint32Array(n);
  groups.forEach(([, steps], place) => {
    let segment = 0;
    for (const step of steps) group[segment += step] = place + 1;
  });
  return { get: (/** @type {number} */ segment) => (group[segment] ? groups[group[segment] - 1][0] : undefined) };
}

/**
 * The parts of the index in the shape in which they are asked for.
 *
 * @param {Index} index
 */
export function makeModel(index) {
  const rowOf = new Uint16Array(index.n_segments);
  let at = 0;
  for (let i = 0; i < index.segment_rows.length; i += 2) {
    rowOf.fill(index.segment_rows[i], at, at += index.segment_rows[i + 1]);
  }
  const rowNumber = new Map(index.rows.map((row, n) => [row.row, n]));
  const items = new Map(index.items.map((item) => [item.id, item]));
  const must = ungroup(index.must_acknowledge, index.n_segments), owners = ungroup(index.ambiguous_owners, index.n_segments);
  /** @type {Map<string, Set<string>>} */
  const dependencies = new Map();
  for (const item of index.items) {
    const all = new Set(item.depends_on);
    for (const id of item.depends_on) for (const more of dependencies.get(id) ?? []) all.add(more);
    dependencies.set(item.id, all);
  }
  const declared = new Map(index.items.map((item) =>
    [item.id, new Set(item.files.flatMap((file) => [file.path, file.renamed_from ?? file.path]))]));
  /** @param {number} segment */
  const fileOf = (segment) => {
    let low = 0, high = index.files.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (index.files[middle].end > segment) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  /** @type {number[][]} */
  const byRow = index.rows.map(() => []);
  rowOf.forEach((row, segment) => byRow[row].push(segment));
  /** Segments of a row, in order. @param {string} row */
  const segmentsOf = (row) => byRow[rowNumber.get(row) ?? -1] ?? [];
  /** The parts of its row that a segment is in: row and parts. @param {number} segment @returns {[number, number][]} */
  const partsOf = (segment) => {
    const row = rowOf[segment], parts = index.parts[row];
    let low = 0, high = parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (parts[middle][0] < segment || (parts[middle][0] === segment && parts[middle][1] === 0)) low = middle;
      else high = middle - 1;
    }
    const out = /** @type {[number, number][]} */ ([[row, low]]);
    for (let part = low + 1; part < parts.length && parts[part][0] === segment; part++) out.push([row, part]);
    return out;
  };
  return {
    index, rowOf, rowNumber, items, must, owners, dependencies, segmentsOf, fileOf, partsOf,
    ambiguous: segmentsOf('ambiguous'),
    unplanned: segmentsOf('unplanned'),
    /** @param {number} segment */
    rowNameOf: (segment) => index.rows[rowOf[segment]]?.row ?? 'unplanned',
    /** Whether an item declares all paths of a segment's file. @param {number} segment @param {string} item */
    declares: (segment, item) => {
      const { path, old_path } = index.files[fileOf(segment)], paths = declared.get(item);
      return Boolean(paths?.has(path) && paths.has(old_path ?? path));
    },
  };
}
/** @typedef {ReturnType<typeof makeModel>} Model */

/**
 * What is known about one item with drafts counted.
 *
 * @typedef {{
 *   item: Item, state: string, drafted: boolean, reasons: {words: string, drafted: boolean, reason: import('./types.js').Reason|null}[],
 *   segments: number[], assigned: number[], openAmbiguous: number[], unacknowledged: [number, string][],
 *   out: number[], pending: number, questions: number
 * }} ItemState
 */

/**
 * Works out the state of everything from the recorded and the drafted layer.
 *
 * @param {Model} model
 * @param {Decision[]} drafts
 */
export function derive(model, drafts) {
  const { index } = model;
  /** @type {Map<number, {item: string|null, by: string, draft: Decision|null}>} */
  const choices = new Map();
  for (const choice of index.choices) choices.set(choice.segment, { item: choice.item, by: choice.by, draft: null });
  const recorded = new Map(choices);
  /** @type {Map<string, Decision|null>} */
  const acknowledged = new Map(index.acknowledgements.map(([segment, tag]) => [`${segment} ${tag}`, null]));
  /** @type {Map<string, Decision>} */
  const bySubject = new Map();
  /** @type {Set<number>} */
  const unresolved = new Set();
  for (const d of drafts) {
    if (d.type === 'assign' || d.type === 'accept') choices.set(d.segment, { item: d.item ?? null, by: '', draft: d });
    else if (d.type === 'unresolve') {
      choices.delete(d.segment);
      unresolved.add(d.segment);
    } else if (d.type === 'acknowledge') acknowledged.set(`${d.segment} ${d.tag}`, d);
    else if (d.type === 'approve' || d.type === 'confirm_no_change' || d.type === 'withdraw') bySubject.set(`item ${d.item}`, d);
    else if (d.type === 'withdraw_request') bySubject.set(`request ${d.request}`, d);
    else if (d.type === 'problem') bySubject.set(`problem ${d.problem}`, d);
    else if (d.type === 'finding') bySubject.set(`finding ${d.finding}`, d);
    else if (d.type === 'merge' || d.type === 'reject' || d.type === 'resolve_state') bySubject.set(d.type, d);
  }
  // Items whose set of assigned segments is another one with the drafts.
  /** @type {Set<string>} */
  const reassigned = new Set();
  for (const segment of new Set([...recorded.keys(), ...choices.keys()])) {
    const before = recorded.get(segment)?.item ?? null, after = choices.get(segment)?.item ?? null;
    if (before === after) continue;
    if (before) reassigned.add(before);
    if (after) reassigned.add(after);
  }
  /** What must be acknowledged of a segment; an assignment is judged against its new item. @param {number} segment */
  const tagsOf = (segment) => {
    const tags = model.must.get(segment) ?? [], item = choices.get(segment)?.item;
    return item && !tags.includes('out-of-scope') && !model.declares(segment, item) ? [...tags, 'out-of-scope'] : tags;
  };
  /** @param {number} segment */
  const tagsLeft = (segment) => {
    const tags = tagsOf(segment);
    return acknowledged.size ? tags.filter((tag) => !acknowledged.has(`${segment} ${tag}`)) : tags;
  };
  const open = { ambiguous: model.ambiguous.filter((s) => !choices.has(s)), unplanned: model.unplanned.filter((s) => !choices.has(s)) };
  const accepted = [...choices].filter(([, choice]) => choice.item === null).map(([segment]) => segment).sort((a, b) => a - b);
  const isWithdrawn = (/** @type {string} */ id) => bySubject.has(`request ${id}`);
  const requests = index.notes.filter((note) => note.kind === 'request' && !isWithdrawn(note.id));
  const draftedRequests = drafts.filter((d) => d.type === 'request_change');

  /** @type {Map<string, ItemState>} */
  const items = new Map();
  for (const item of index.items) {
    const assigned = [...choices].filter(([, choice]) => choice.item === item.id).map(([segment]) => segment).sort((a, b) => a - b);
    const own = model.segmentsOf(item.id);
    const segments = assigned.length ? [...own, ...assigned].sort((a, b) => a - b) : own;
    const openAmbiguous = open.ambiguous.filter((segment) => model.owners.get(segment)?.includes(item.id));
    const decision = bySubject.get(`item ${item.id}`);
    let state = item.approval, drafted = false;
    /** @type {ItemState['reasons']} */
    const reasons = item.reasons.map((reason) => ({ words: reason.words, drafted: false, reason }));
    if (decision && decision.type !== 'withdraw') {
      state = 'approved';
      drafted = true;
    } else if (decision) {
      state = 'unreviewed';
      drafted = true;
    } else if (state !== 'unreviewed') {
      const add = (/** @type {string} */ words) => {
        reasons.push({ words, drafted: true, reason: null });
        if (state === 'approved') drafted = true;
        state = 'stale';
      };
      if (reassigned.has(item.id)) add('Your drafts change what is assigned to it');
      const by = [...(model.dependencies.get(item.id) ?? [])].find((id) => reassigned.has(id));
      if (by) add(`Depends on ${by}, which your drafts change`);
      if (openAmbiguous.some((segment) => unresolved.has(segment))) add('Your drafts reopen an ambiguous change of it');
    }
    items.set(item.id, {
      item, state, drafted, reasons, segments, assigned, openAmbiguous,
      unacknowledged: segments.flatMap((segment) => tagsLeft(segment).map((tag) => /** @type {[number, string]} */ ([segment, tag]))),
      out: segments.filter((segment) => tagsOf(segment).includes('out-of-scope')),
      pending: requests.filter((note) => note.item === item.id).length + draftedRequests.filter((d) => d.item === item.id).length,
      questions: drafts.filter((d) => d.type === 'ask' && d.item === item.id).length,
    });
  }
  const all = [...items.values()];
  return {
    choices, acknowledged, open, accepted, items, requests, draftedRequests, tagsOf, tagsLeft,
    merge: bySubject.get('merge'), reject: bySubject.get('reject'), answer: bySubject.get('resolve_state'),
    /** @param {string} id */
    withdrawalOf: (id) => bySubject.get(`request ${id}`),
    /** @param {string} id */
    problemDraft: (id) => bySubject.get(`problem ${id}`),
    /** @param {string} id */
    findingDraft: (id) => bySubject.get(`finding ${id}`),
    /** @param {string} id */
    itemDraft: (id) => bySubject.get(`item ${id}`),
    nApproved: all.filter((one) => one.state === 'approved' && !one.drafted).length,
    nDrafted: all.filter((one) => one.state === 'approved' && one.drafted).length,
  };
}
/** @typedef {ReturnType<typeof derive>} Derived */

/** Codes of blockers in the order of the gate. */
const CODES = ['task', 'head', 'base', 'approval', 'ambiguous', 'unplanned', 'acknowledge', 'tests', 'problem', 'requests'];
/** Those that this page works out itself, so that drafts count, in the gate's words. */
const OWN_CODES = new Set(['approval', 'ambiguous', 'unplanned', 'acknowledge', 'problem', 'requests']);

/**
 * What still forbids the merge with drafts counted. Without drafts it is what the gate said.
 *
 * @param {Model} model
 * @param {Derived} derived
 * @returns {import('./types.js').Blocker[]}
 */
export function blockersOf(model, derived) {
  const { index } = model;
  /** @type {import('./types.js').Blocker[]} */
  const out = [];
  const states = [...derived.items.values()];
  const stale = states.filter((one) => one.state === 'stale');
  const unreviewed = states.filter((one) => one.state === 'unreviewed');
  const add = (/** @type {string} */ code, /** @type {string} */ words, /** @type {import('./types.js').Target} */ target) =>
    out.push({ code, words, target });
  if (stale.length) add('approval', `Review ${count(stale.length, 'stale item')}`, { row: stale[0].item.id });
  if (unreviewed.length) add('approval', `Review ${count(unreviewed.length, 'unreviewed item')}`, { row: unreviewed[0].item.id });
  for (const row of /** @type {const} */ (['ambiguous', 'unplanned'])) {
    const open = derived.open[row];
    if (open.length) add(row, `Resolve ${count(open.length, `${row} change`)}`, { segment: open[0] });
  }
  const left = [...derived.accepted, ...states.flatMap((one) => one.segments)].sort((a, b) => a - b)
    .flatMap((segment) => derived.tagsLeft(segment).map(() => segment));
  if (left.length) add('acknowledge', `Acknowledge ${count(left.length, 'warning')}`, { segment: left[0] });
  const problems = index.problems.filter((one) => one.state === 'open' && !derived.problemDraft(one.id));
  if (problems.length) add('problem', `Resolve ${count(problems.length, 'open problem')}`, { notes: problems[0].item });
  const pending = derived.requests.length + derived.draftedRequests.length;
  if (pending) {
    add('requests', `Send ${count(pending, 'pending change request')}`, { notes: derived.requests[0]?.item ?? derived.draftedRequests[0].item });
  }
  // Requests that were sent are recorded, and no draft changes that: they name no place here.
  out.push(...index.blockers.filter((one) => !OWN_CODES.has(one.code) || (one.code === 'requests' && one.target === null)));
  const rank = (/** @type {{code: string}} */ { code }) => (CODES.includes(code) ? CODES.indexOf(code) : CODES.length);
  return out.sort((a, b) => rank(a) - rank(b));
}

/**
 * Why an item can not be approved now; empty when it can.
 *
 * @param {Derived} derived
 * @param {string} id
 * @param {(segment: number) => boolean} isSeen
 * @returns {{words: string, segment: number}[]}
 */
export function hindrances(derived, id, isSeen) {
  const state = derived.items.get(id);
  if (!state) return [];
  const out = [];
  const unseen = state.segments.filter((segment) => !isSeen(segment));
  if (unseen.length) out.push({ words: `${count(unseen.length, 'change')} not seen yet`, segment: unseen[0] });
  if (state.unacknowledged.length) {
    out.push({ words: `${count(state.unacknowledged.length, 'mark')} to acknowledge`, segment: state.unacknowledged[0][0] });
  }
  if (state.openAmbiguous.length) {
    out.push({ words: `${count(state.openAmbiguous.length, 'ambiguous change')} to assign or accept`, segment: state.openAmbiguous[0] });
  }
  return out;
}

/**
 * The drafts without acknowledgements of tags that their segments do not have with these drafts.
 *
 * @param {Model} model
 * @param {Decision[]} drafts
 */
export function withoutStrays(model, drafts) {
  const { tagsOf } = derive(model, drafts);
  return drafts.filter((one) => one.type !== 'acknowledge' || tagsOf(one.segment).includes(one.tag));
}

/**
 * Adds a draft. One about the same thing is replaced; what it makes untrue is taken back.
 *
 * @param {Model} model
 * @param {Decision[]} drafts
 * @param {Decision} d
 * @returns {{drafts: Decision[], dropped: Decision[]}}
 */
export function withDraft(model, drafts, d, subjectOf = (/** @type {Decision} */ one) => one.id) {
  const about = subjectOf(d);
  /** @type {Decision[]} */
  const dropped = [];
  // An assignment changes what its item is, so an approval drafted before it was for something else.
  /** @type {Set<string>} */
  const touched = new Set();
  if (d.type === 'assign' || d.type === 'accept' || d.type === 'unresolve') {
    const before = derive(model, drafts).choices.get(d.segment)?.item;
    for (const id of [before, d.item]) {
      if (!id || before === d.item) continue;
      touched.add(id);
      for (const [item, all] of model.dependencies) if (all.has(id)) touched.add(item);
    }
    for (const id of d.type === 'unresolve' ? model.owners.get(d.segment) ?? [] : []) touched.add(id);
  }
  const rest = drafts.filter((one) => {
    if (subjectOf(one) === about) return false;
    const isUndone = (one.type === 'approve' || one.type === 'confirm_no_change') && touched.has(one.item);
    const contradicts = (one.type === 'merge' && (d.type === 'request_change' || d.type === 'reject' || d.type === 'assign' || d.type === 'unresolve' || d.type === 'withdraw'))
      || (d.type === 'merge' && one.type === 'reject');
    if (isUndone || contradicts) dropped.push(one);
    return !isUndone && !contradicts;
  });
  return { drafts: withoutStrays(model, [...rest, d]), dropped };
}
