/** Starts the page: data, panes, keys, and the place that the address names. */
import { app, check, load, tell } from './app.js';
import { goToSegment, showRow, startCode, stepChange } from './code.js';
import { openKeys, startDialogs } from './dialogs.js';
import { $, el } from './dom.js';
import { rowNames, startPlan } from './plan.js';
import { startPanes } from './panes.js';
import { startPrint } from './print.js';
import { openSearch, startSearch } from './search.js';
import { approve, startStrip } from './strip.js';
import { requestChange, startTalk } from './talk.js';

/** @param {1|-1} step */
function stepRow(step) {
  const rows = rowNames();
  const next = rows[rows.indexOf(app.row) + step];
  if (next) showRow(next);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  const isText = target.matches('input, textarea, select, [contenteditable]');
  if (event.key === 'Escape' && isText && !target.closest('dialog')) {
    $('code').focus();
    return;
  }
  if (isText || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const acts = new Map([
    ['j', () => stepChange(1)], ['k', () => stepChange(-1)], ['n', () => stepRow(1)], ['p', () => stepRow(-1)],
    ['a', approve], ['r', requestChange], ['?', openKeys], ['/', openSearch],
  ]);
  const act = acts.get(event.key);
  if (!act) return;
  event.preventDefault();
  act();
}

/** Goes to the place that the address names: `#P2`, `#unplanned`, `#s12`. */
async function goToHash() {
  const name = location.hash.slice(1);
  const segment = /^s(\d{1,9})$/.exec(name);
  if (segment && Number(segment[1]) < app.index.n_segments) await goToSegment(Number(segment[1]));
  else await showRow(rowNames().includes(name) ? name : firstRow());
}

/** Where reviewing begins: the first item that is not approved. */
function firstRow() {
  const item = app.index.items.find((one) => one.approval !== 'approved') ?? app.index.items[0];
  return item?.id ?? 'unplanned';
}

async function start() {
  $('script').remove();
  try {
    await load();
  } catch {
    const main = el('main', 'plainpage', el('h1', '', 'This page is damaged'), el('p', '', 'Its data can not be read. Make it again with: codeboost render'));
    document.body.replaceChildren(main);
    return;
  }
  $('plain')?.remove();
  $('app').hidden = false;
  startPanes();
  startDialogs();
  startCode();
  startPlan();
  startTalk();
  startStrip();
  startSearch();
  startPrint();
  await goToHash();
  tell('drafts');
  tell('locked');
  performance.mark('interactive');
  addEventListener('keydown', onKey);
  addEventListener('hashchange', goToHash);
  await check();
  $('app').dataset.checked = 'yes';
  tell('locked');
  performance.mark('checked');
}

start();
