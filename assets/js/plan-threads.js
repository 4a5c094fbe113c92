/** Review threads: under the block that they are about, with drafts, and the way to write one. */
import { MAX_TEXT } from './decisions.js';
import { $, announce, bdi, because, button, el, say } from './dom.js';
import { draftPlan, onChange, plan, threadsNow, undoPlan } from './plan-state.js';
import { count } from './words.js';

const MAX_QUOTE = 500;

/** Every block of the document. @returns {any[]} */
export const blocks = () => Array.from(document.querySelectorAll('#doc .block[data-block]'));

/** First and last line of a block. @param {any} block @returns {[number, number]} */
const linesOf = (block) => /** @type {any} */ (block.dataset.block.split('-').map(Number));

/** The composer that is open, and what it writes. @type {{block: any, quote: string, thread: string|null, lines: [number, number]|null}|null} */
let writing = null;
/** What was typed there. */
let typed = '';

/** @param {any} thread */
const blockOf = (thread) => blocks().findLast((block) => linesOf(block)[0] <= thread.lines[0]) ?? blocks()[0];

/** What is selected inside the document, as a quote and the blocks it touches. */
function selection() {
  const chosen = getSelection();
  if (!chosen || chosen.isCollapsed || chosen.rangeCount === 0) return null;
  const range = chosen.getRangeAt(0);
  const touched = blocks().filter((block) => range.intersectsNode(block.querySelector('.text') ?? block));
  const quote = [...chosen.toString().trim()].slice(0, MAX_QUOTE).join('').trim();
  if (touched.length === 0 || quote === '') return null;
  const first = linesOf(touched[0])[0], last = linesOf(touched[touched.length - 1])[1];
  return { block: touched[touched.length - 1], quote, lines: /** @type {[number, number]} */ ([first, last]) };
}

/** Opens the composer for a comment on a block, or on what is selected in it. @param {any} [block] */
export function startComment(block) {
  if (plan.locked || plan.index.too_large) {
    announce(plan.locked || 'This plan is too large for comments: its text has more than 256 KiB.');
    return;
  }
  const chosen = selection();
  if (chosen && (!block || chosen.block === block)) writing = { ...chosen, thread: null };
  else if (block) writing = { block, quote: '', thread: null, lines: linesOf(block) };
  else {
    announce('Select some text or focus a part of the plan first.');
    return;
  }
  typed = '';
  drawThreads();
  $('compose')?.focus();
}

/** @param {any} thread */
function startReply(thread) {
  writing = { block: null, quote: '', thread: thread.thread, lines: null };
  typed = '';
  drawThreads();
  $('compose')?.focus();
}

function stopWriting() {
  writing = null;
  drawThreads();
}

/** @param {any} thread the thread that is answered; null for a new one */
function composer(thread) {
  const box = el('form', 'compose');
  const text = el('textarea');
  text.id = 'compose';
  text.rows = 3;
  text.value = typed;
  const label = el('label', 'vh', thread ? 'Your reply' : 'Your comment');
  label.htmlFor = 'compose';
  const left = el('span', 'muted grow');
  const measure = () => {
    typed = text.value;
    const over = [...typed].length - MAX_TEXT;
    left.textContent = over > 0 ? `${count(over, 'character')} too many` : '';
  };
  text.addEventListener('input', measure);
  measure();
  const send = () => {
    if (typed.trim() === '' || [...typed].length > MAX_TEXT) {
      announce(typed.trim() === '' ? 'Write something first.' : 'The text is too long.');
      return;
    }
    const body = typed.trim();
    const was = /** @type {any} */ (writing);
    writing = null;
    if (thread) draftPlan({ type: 'plan_reply', snapshot: thread.snapshot, thread: thread.thread, body });
    else {
      draftPlan({
        type: 'plan_comment', snapshot: plan.index.snapshot, lines: was.lines,
        ...(was.quote ? { quote: was.quote } : {}), thread: crypto.randomUUID(), body,
      });
    }
  };
  text.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      send();
    } else if (event.key === 'Escape') stopWriting();
  });
  box.addEventListener('submit', (/** @type {Event} */ event) => {
    event.preventDefault();
    send();
  });
  const submit = el('button', 'plain small', thread ? 'Draft reply' : 'Draft comment');
  submit.type = 'submit';
  if (!thread && writing?.quote) box.append(el('blockquote', '', bdi(writing.quote)));
  box.append(label, text, el('div', 'acts', left, button('quiet small', 'Cancel', stopWriting), submit));
  return box;
}

/** @param {ReturnType<typeof threadsNow>[number]} thread @param {number} n its place, from 1 */
function card(thread, n) {
  const box = el('section', `thread${thread.open ? '' : ' is-done'}`);
  box.dataset.thread = thread.thread;
  box.tabIndex = -1;
  const state = thread.draft ? ['', 'Draft'] : thread.open ? ['warn', '! Open'] : ['ok', '✓ Resolved'];
  box.setAttribute('aria-label', `Thread ${n}, ${state[1].replace(/^. /, '').toLowerCase()}`);
  const where = thread.snapshot === plan.index.snapshot ? '' : `${thread.revision}, lines ${thread.lines[0]} to ${thread.lines[1]}`;
  const settled = thread.drafted.find((d) => d.type === 'plan_resolve' || d.type === 'plan_reopen');
  box.append(el('header', '', el('span', `chip ${state[0]}`, state[1]), settled && el('span', 'drafted muted', 'drafted'), bdi(where, 'muted')));
  if (thread.quote) box.append(el('blockquote', '', bdi(thread.quote)));
  else if (where && thread.context) box.append(say(el('blockquote', 'mono'), thread.context));
  for (const said of thread.said) box.append(el('div', 'said', bdi(said.by, 'muted'), say(el('p', 'prose'), said.text)));
  for (const d of thread.drafted) {
    if (d.body === undefined) continue;
    const undo = button('quiet small', 'Undo', () => undoPlan((one) => one.id === d.id));
    box.append(el('div', 'said is-draft', el('span', 'muted', 'You, drafted '), undo, say(el('p', 'prose'), d.body)));
  }
  if (writing?.thread === thread.thread) {
    box.append(composer(thread));
    return box;
  }
  const acts = el('div', 'acts');
  const reply = button('quiet small', 'Reply', () => startReply(thread));
  const settle = settled
    ? button('quiet small', 'Undo', () => undoPlan((d) => d.id === settled.id))
    : button('quiet small', thread.open ? 'Resolve' : 'Reopen', () => draftPlan({
      type: thread.open ? 'plan_resolve' : 'plan_reopen', snapshot: thread.snapshot, thread: thread.thread,
    }));
  for (const node of [reply, settle]) because(node, plan.locked);
  acts.append(reply, ...(thread.draft ? [] : [settle]));
  box.append(acts);
  return box;
}

/** Draws every thread under its block, those of earlier revisions at the end. */
function drawThreads() {
  const focus = document.activeElement?.closest('[data-thread]')?.getAttribute('data-thread');
  for (const old of document.querySelectorAll('#doc .thread, #doc form.compose')) old.remove();
  const earlier = $('earlier');
  earlier.hidden = true;
  /** @type {Map<any, any[]>} */
  const under = new Map();
  for (const [n, thread] of threadsNow().entries()) {
    if (thread.snapshot === plan.index.snapshot) {
      const block = blockOf(thread);
      under.set(block, [...(under.get(block) ?? []), card(thread, n + 1)]);
    } else {
      earlier.hidden = false;
      earlier.append(card(thread, n + 1));
    }
  }
  if (writing?.block) under.set(writing.block, [...(under.get(writing.block) ?? []), composer(null)]);
  for (const [block, cards] of under) block.after(...cards);
  if (focus) /** @type {any} */ (document.querySelector(`[data-thread="${CSS.escape(focus)}"]`))?.focus();
}

/** Goes to the next thread or the one before. @param {1|-1} step */
export function stepThread(step) {
  const all = Array.from(document.querySelectorAll('#doc .thread'));
  if (all.length === 0) {
    announce('There are no threads.');
    return;
  }
  const at = all.indexOf(/** @type {any} */ (document.activeElement?.closest('.thread')));
  const next = /** @type {any} */ (all[(at + step + all.length) % all.length]);
  next.focus();
  next.scrollIntoView({ block: 'center' });
}

/** The block that has the focus, or holds what has it. @returns {any} */
export const focusedBlock = () => document.activeElement?.closest('.block');

export function startThreads() {
  for (const block of blocks()) {
    const [first, last] = linesOf(block);
    block.tabIndex = 0;
    block.setAttribute('role', 'group');
    block.setAttribute('aria-label', first === last ? `Line ${first} of the plan` : `Lines ${first} to ${last} of the plan`);
    const add = button('quiet small comment', 'Comment', () => startComment(block));
    add.setAttribute('aria-label', `Comment on ${first === last ? `line ${first}` : `lines ${first} to ${last}`}`);
    // A click must not take the selection away that it is about.
    add.addEventListener('mousedown', (/** @type {Event} */ event) => event.preventDefault());
    block.append(add);
  }
  onChange(drawThreads);
}
