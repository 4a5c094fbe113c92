/** The state of a plan's page, and the only ways to change it. */
import { digestOfData, readForm, readPlain } from './data.js';
import { subject } from './decisions.js';
import { announce } from './dom.js';
import { openStorage, readDrafts, writeDrafts } from './drafts.js';
import { decisionWords } from './words.js';

/** @typedef {import('./types.js').Decision} Decision */
/** @typedef {import('./types.js').PlanThread} PlanThread */

/** @type {{form: {payload_b64: string, signature: string}, payload: import('./types.js').Form}|null} */
let signed = null;

export const plan = {
  index: /** @type {import('./types.js').PlanIndex} */ (/** @type {any} */ (null)),
  /** @type {Decision[]} */
  drafts: [],
  reviewer: '',
  /** The drafts as they were when they were last saved. */
  saved: '[]',
  kept: true,
  /** Why nothing can be decided; empty when it can. */
  locked: 'The page is being checked.',
  damaged: false,
  digest: '',
};

/** @type {(() => void)[]} */
const listeners = [];

/** @param {() => void} act */
export const onChange = (act) => { listeners.push(act); };

/** Draws all that depends on drafts. */
export const redraw = () => listeners.forEach((act) => act());

/** The form of this page. */
export const planForm = () => signed;

/** Reads the page's data. Throws when it can not be read. */
export function loadPlan() {
  plan.index = readPlain();
}

/** Holds the data against the form; only then can anything be decided. */
export async function checkPlan() {
  try {
    signed = readForm();
    plan.digest = await digestOfData();
    plan.damaged = signed !== null && signed.payload.data_digest !== plan.digest;
  } catch {
    plan.damaged = true;
  }
  if (plan.damaged) plan.locked = 'This page is damaged: its data is not what its form names. Nothing can be decided with it.';
  else plan.locked = plan.index.read_only ?? (signed ? '' : 'This page carries no approval form.');
  if (plan.locked === '') {
    const stored = readDrafts(openStorage(), plan.digest, 1);
    plan.drafts = stored.decisions.filter(fits);
    plan.reviewer = stored.reviewer;
    plan.saved = stored.saved || '[]';
    if (plan.drafts.length) announce(`${plan.drafts.length} drafts from before are back`);
  }
  redraw();
}

/** @type {any} */
let keepTimer = 0;

export function keepPlan() {
  clearTimeout(keepTimer);
  if (plan.locked) return;
  plan.kept = writeDrafts(openStorage(), plan.digest, { decisions: plan.drafts, seen: [], reviewer: plan.reviewer, saved: plan.saved });
}

/** Whether there are drafts that no file holds. */
export const isPlanUnsaved = () => plan.drafts.length > 0 && JSON.stringify(plan.drafts) !== plan.saved;

/** @param {Decision[]} drafts */
function setPlanDrafts(drafts) {
  plan.drafts = drafts;
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keepPlan, 300);
  redraw();
}

/** Whether a decision is about what this page shows. @param {Decision} d */
export function fits(d) {
  const { index } = plan;
  switch (d.type) {
    case 'plan_comment': return d.snapshot === index.snapshot && !index.too_large && !index.threads.some((one) => one.thread === d.thread);
    case 'plan_reply': case 'plan_resolve': case 'plan_reopen': return true;
    case 'plan_approve': return d.revision === index.revision && !index.approved;
    case 'answer_question': return d.question <= index.questions.length;
    case 'apply_suggestion': case 'dismiss_suggestion': return index.suggestions.some(([id, open]) => id === d.suggestion && open);
    default: return false;
  }
}

/**
 * Every thread with its drafts: recorded ones first.
 *
 * @returns {(PlanThread & {draft: boolean, drafted: Decision[], open: boolean})[]}
 */
export function threadsNow() {
  const { index, drafts } = plan;
  const made = drafts.filter((d) => d.type === 'plan_comment').map((d) => ({
    thread: d.thread, snapshot: d.snapshot, revision: `r${index.revision}`, lines: d.lines,
    quote: d.quote ?? null, context: null, said: [], resolved: false,
  }));
  return [...index.threads, ...made].map((one) => {
    const drafted = drafts.filter((d) => d.thread === one.thread);
    const last = drafted.findLast((d) => d.type === 'plan_resolve' || d.type === 'plan_reopen');
    const open = last ? last.type === 'plan_reopen' : !one.resolved;
    return { ...one, draft: drafted.some((d) => d.type === 'plan_comment'), drafted, open };
  });
}

/** What approving has to be confirmed with: open threads and open questions, drafts counted. */
export function openNow() {
  const answered = new Set(plan.drafts.filter((d) => d.type === 'answer_question').map((d) => d.question));
  return {
    threads: threadsNow().filter((one) => one.open).length,
    questions: plan.index.questions.filter((_, n) => !plan.index.answers[n] && !answered.has(n + 1)).length,
  };
}

/**
 * Drafts a decision; returns whether it was taken.
 *
 * @param {{type: string, [field: string]: any}} decision
 */
export function draftPlan(decision) {
  if (plan.locked) {
    announce(plan.locked);
    return false;
  }
  const whole = /** @type {Decision} */ ({ id: crypto.randomUUID(), ...decision });
  const about = subject(whole);
  const kept = plan.drafts.filter((d) => subject(d) !== about
    && !(whole.type === 'apply_suggestion' && d.type === 'dismiss_suggestion' && d.suggestion === whole.suggestion)
    && !(whole.type === 'dismiss_suggestion' && d.type === 'apply_suggestion' && d.suggestion === whole.suggestion));
  plan.drafts = [...kept, whole];
  const lost = dropUnconfirmed();
  setPlanDrafts(plan.drafts);
  announce(`Drafted: ${decisionWords(whole)}${lost ? '. Taken back: the approval, because what it confirmed is not all any more' : ''}`);
  return true;
}

/** Takes an approval back that does not confirm what is open now. */
function dropUnconfirmed() {
  const open = openNow();
  const before = plan.drafts.length;
  plan.drafts = plan.drafts.filter((d) => d.type !== 'plan_approve'
    || ((open.threads === 0 || d.confirm_open_threads) && (open.questions === 0 || d.confirm_open_questions)));
  return plan.drafts.length < before;
}

/** Takes drafts back. @param {(d: Decision) => boolean} test */
export function undoPlan(test) {
  const gone = plan.drafts.filter(test);
  if (gone.length === 0) return;
  // With its comment a drafted thread goes, and all that was drafted in it.
  const threads = new Set(gone.filter((d) => d.type === 'plan_comment').map((d) => d.thread));
  plan.drafts = plan.drafts.filter((d) => !test(d) && !threads.has(d.thread));
  dropUnconfirmed();
  setPlanDrafts(plan.drafts);
  announce(`Taken back: ${gone.map(decisionWords).join(', ')}`);
}

/** Takes the decisions of a file in; returns how many were. @param {Decision[]} decisions */
export function takeIn(decisions) {
  const known = new Set(plan.drafts.map((d) => d.id));
  let n = 0;
  for (const d of decisions) {
    if (known.has(d.id) || !fits(d)) continue;
    plan.drafts = [...plan.drafts.filter((one) => subject(one) !== subject(d)), d];
    n += 1;
  }
  dropUnconfirmed();
  setPlanDrafts(plan.drafts);
  return n;
}
