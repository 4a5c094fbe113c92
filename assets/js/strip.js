/** What stands above the panes: progress, blockers, banners, and the bar of the item. */
import { app, draft, isSeen, on, undo } from './app.js';
import { goToSegment, nextUnseen, showRow } from './code.js';
import { openBlockers, openMerge, openReject, openAnswer } from './dialogs.js';
import { $, announce, bdi, because, button, el, say } from './dom.js';
import { hindrances } from './layers.js';
import { requestsWords } from './talk.js';
import { nthOf, segmentsShownBy } from './view.js';
import { STATES, count, rowName } from './words.js';

/** Approves the item that is shown, or says what is missing. */
export function approve() {
  const state = app.derived.items.get(app.row);
  if (!state) {
    announce(`${rowName(app.row)} is no item: assign or accept its changes.`);
    return;
  }
  const reason = whyNot();
  if (reason) {
    announce(reason);
    return;
  }
  draft({ type: state.segments.length ? 'approve' : 'confirm_no_change', item: app.row });
}

/** Why the item that is shown can not be approved now; empty when it can. */
function whyNot() {
  const state = app.derived.items.get(app.row);
  if (!state) return '';
  if (app.locked) return app.locked;
  if (state.state === 'approved') return state.drafted ? `${app.row} is approved in your drafts.` : `${app.row} is approved already.`;
  const missing = hindrances(app.derived, app.row, isSeen);
  return missing.length ? `Before ${app.row} can be approved: ${missing.map((one) => one.words).join(', ')}.` : '';
}

function drawItemBar() {
  const state = app.derived.items.get(app.row);
  const title = $('item-title'), look = $('item-state'), approve_ = $('approve'), withdraw = $('withdraw');
  $('item-id').textContent = state ? app.row : '';
  title.replaceChildren();
  if (state) say(title, state.item.title);
  else title.textContent = rowName(app.row);
  look.replaceChildren();
  approve_.hidden = !state;
  withdraw.hidden = true;
  if (state) {
    const { icon, word, tone } = STATES.get(state.state) ?? { icon: '', word: '', tone: '' };
    look.append(el('span', tone, `${icon} ${word}`));
    if (state.drafted) look.append(el('span', 'drafted muted', 'drafted'));
    if (state.pending) look.append(el('span', 'chip', count(state.pending, 'pending change')));
    approve_.textContent = state.state === 'approved' ? 'Approved' : state.segments.length ? `Approve ${app.row}` : 'Confirm no change needed';
    because(approve_, whyNot());
    const drafted = app.derived.itemDraft(app.row);
    if (drafted) {
      withdraw.hidden = false;
      withdraw.textContent = 'Undo';
      because(withdraw, '');
    } else if (state.item.approval !== 'unreviewed') {
      withdraw.hidden = false;
      withdraw.textContent = 'Withdraw approval';
      because(withdraw, app.locked);
    }
  }
  const hasSince = typeof state?.item.since === 'number';
  $('since-switch').hidden = !hasSince;
  $('show-since').setAttribute('aria-pressed', String(app.since.has(app.row)));
  $('show-full').setAttribute('aria-pressed', String(!app.since.has(app.row)));
  drawPlace();
}

function drawPlace() {
  const n = segmentsShownBy(app.row).length;
  const at = nthOf(app.current);
  $('nth').textContent = app.since.has(app.row) ? 'Since approval' : n === 0 ? 'No changes' : at ? `Change ${at} of ${n}` : count(n, 'change');
  const unseen = segmentsShownBy(app.row).filter((segment) => !isSeen(segment)).length;
  const button_ = $('unseen');
  button_.hidden = n === 0;
  const icon = el('span', '', unseen ? '↓' : '✓');
  icon.setAttribute('aria-hidden', 'true');
  button_.replaceChildren(...(unseen ? [`${unseen} not seen`, el('span', 'vh', ', go to the next change that was not')] : ['All seen']), icon);
  because(button_, unseen ? '' : 'Each change of this row was in view.');
  const approve_ = $('approve');
  because(approve_, whyNot());
}

function drawStrip() {
  const { index, derived, blockers } = app;
  const total = index.items.length;
  const progress = $('progress');
  progress.replaceChildren();
  const meter = el('span', 'meter', el('i'), el('i'));
  meter.setAttribute('aria-hidden', 'true');
  meter.children[0].style.width = `${derived.nApproved / Math.max(1, total) * 100}%`;
  meter.children[1].style.width = `${derived.nDrafted / Math.max(1, total) * 100}%`;
  const words = el('span', '', `${derived.nApproved} of ${total} approved`);
  if (derived.nDrafted) words.append(', ', el('span', 'drafted', `${derived.nDrafted} drafted`));
  progress.append(meter, words);
  const save = $('save');
  save.textContent = app.drafts.length ? `Save decisions (${app.drafts.length})…` : 'Save decisions…';
  because(save, app.locked || (app.drafts.length ? '' : 'Nothing is drafted yet.'));
  because($('load'), app.locked);
  const main = $('main-button');
  const merge = index.forge === 'github' ? 'Merge PR' : 'Merge';
  main.className = blockers.length ? 'main blocked' : 'main';
  if (derived.merge) main.textContent = 'Merge drafted';
  else main.textContent = blockers.length ? count(blockers.length, 'blocker') : merge;
  because(main, blockers.length || derived.merge ? '' : app.locked);
  const requests = derived.requests.length + derived.draftedRequests.length;
  const send = $('send');
  send.hidden = requests === 0;
  send.textContent = derived.reject ? 'Sending drafted' : `${requestsWords(requests)}…`;
  because(send, app.locked);
}

function drawBanners() {
  const { index, derived } = app;
  const box = $('banners');
  box.replaceChildren();
  const banner = (/** @type {string} */ tone, /** @type {string} */ icon, /** @type {string} */ words, /** @type {any[]} */ ...acts) => {
    const node = el('div', `banner ${tone}`, icon && el('span', 'icon', icon), say(el('p'), words), ...acts);
    box.append(node);
    return node;
  };
  if (app.damaged) banner('bad', '✕', app.locked).setAttribute('role', 'alert');
  else if (app.locked && $('app').dataset.checked) banner('warn', '!', `Read only: ${app.locked}`);
  const { task } = index;
  if (task?.headline) {
    const acts = task.actions.map(([word, label], n) => {
      const isDrafted = derived.answer?.action === word;
      const node = button(n ? 'plain small' : 'main small', isDrafted ? `${label} (drafted)` : label, () => {
        if (isDrafted) undo((d) => d.type === 'resolve_state');
        else openAnswer(word, label);
      });
      because(node, app.locked);
      return node;
    });
    banner('warn', '!', task.headline, ...acts);
  }
  for (const notice of index.notices) banner('notice', '', notice);
  for (const notice of index.reviewers) banner('notice', '', notice);
  if (index.renames_skipped) banner('notice', '', 'There were too many files to look for renames with changed content: such a rename shows as one file deleted and one added.');
  if (!app.kept) banner('warn', '!', 'This browser does not keep drafts. Save them before you leave.');
  if (index.merge_steps.length) {
    const steps = el('ol', 'steps');
    steps.setAttribute('aria-label', 'Steps of the last merge');
    const looks = new Map([['done', ['✓', 'ok']], ['failed', ['✕', 'bad']], ['running', ['…', '']], ['waiting', ['…', 'warn']], ['skipped', ['–', 'neutral']]]);
    for (const step of index.merge_steps) {
      const [icon, tone] = looks.get(step.state) ?? ['', ''];
      const node = el('li', '', el('span', tone, icon), bdi(step.name), el('span', 'vh', step.state));
      if (step.seconds !== null) node.append(el('span', 'muted', step.seconds < 60 ? `${step.seconds} s` : `${Math.floor(step.seconds / 60)} min ${step.seconds % 60} s`));
      if (step.detail) node.append(bdi(step.detail, 'detail'));
      steps.append(node);
    }
    box.append(steps);
  }
}

/** Goes where a blocker is fixed. @param {import('./types.js').Target} target */
export function goToTarget(target) {
  if (!target) return;
  if (target.segment !== undefined) goToSegment(target.segment);
  else if (target.notes !== undefined) {
    showRow(target.notes);
    document.dispatchEvent(new CustomEvent('pane', { detail: 'talk' }));
  } else if (target.row !== undefined) showRow(target.row);
}

/** Builds the strip, the banners and the item bar. */
export function startStrip() {
  const { index } = app;
  $('repo').append(bdi(index.repository));
  const title = index.issue.title || index.summary;
  $('open-issue').append(`#${index.issue.number} `, bdi(title));
  const revision = $('revision');
  if (index.issue.pull_request) revision.append(bdi(index.issue.pull_request), ' · ');
  revision.append(`r${index.revision} · `, el('code', '', `${index.base.slice(0, 8)}..${index.head.slice(0, 8)}`));
  $('approve').addEventListener('click', approve);
  $('withdraw').addEventListener('click', () => {
    const drafted = app.derived.itemDraft(app.row);
    if (drafted) undo((d) => d.id === drafted.id);
    else draft({ type: 'withdraw', item: app.row });
  });
  $('main-button').addEventListener('click', () => {
    if (app.blockers.length) openBlockers(goToTarget);
    else if (app.locked) announce(app.locked);
    else openMerge();
  });
  $('send').addEventListener('click', () => {
    if (app.locked) announce(app.locked);
    else openReject();
  });
  on(['drafts', 'locked'], () => {
    drawStrip();
    drawBanners();
  });
  on(['drafts', 'row', 'locked'], drawItemBar);
  on(['current', 'seen'], drawPlace);
}

export { nextUnseen };
