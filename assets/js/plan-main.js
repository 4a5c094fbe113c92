/** Starts the page of a plan. */
import { open, startDialog } from './dialog.js';
import { $, el } from './dom.js';
import { startDecide } from './plan-decide.js';
import { checkPlan, isPlanUnsaved, keepPlan, loadPlan, redraw } from './plan-state.js';
import { focusedBlock, startComment, startThreads, stepThread } from './plan-threads.js';

function openPlanKeys() {
  const keys = el('dl', 'keys');
  const list = [['Shift+C', 'Comment on the selected text or the focused part'], ['Shift+J', 'Next thread'], ['Shift+K', 'Previous thread'],
    ['Ctrl+Enter', 'Draft what is written'], ['?', 'Show all keys'], ['Esc', 'Leave a text field or close']];
  for (const [key, words] of list) keys.append(el('dt', '', el('kbd', '', key)), el('dd', '', words));
  open('Keys', [keys]);
}

/** @param {KeyboardEvent} event */
function onPlanKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.matches('input, textarea, select') || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const acts = new Map([
    ['C', () => startComment(focusedBlock())], ['J', () => stepThread(1)], ['K', () => stepThread(-1)], ['?', openPlanKeys],
  ]);
  const act = acts.get(event.key);
  if (!act) return;
  event.preventDefault();
  act();
}

async function startPlanPage() {
  $('script').remove();
  try {
    loadPlan();
  } catch {
    $('banners').append(el('div', 'banner bad', el('p', '', 'This page is damaged: its data can not be read. Make it again with: codeboost plan render')));
    return;
  }
  startDialog([$('dialog')]);
  startThreads();
  startDecide();
  redraw();
  $('open-keys').addEventListener('click', openPlanKeys);
  addEventListener('keydown', onPlanKey);
  addEventListener('beforeunload', (event) => {
    keepPlan();
    if (isPlanUnsaved()) event.preventDefault();
  });
  addEventListener('pagehide', keepPlan);
  await checkPlan();
  $('planapp').dataset.checked = 'yes';
  redraw();
}

startPlanPage();
