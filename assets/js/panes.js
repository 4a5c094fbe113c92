/** Panes: widths, hiding, one at a time where the window is narrow; and the theme. */
import { announce, $ } from './dom.js';
import { openStorage } from './drafts.js';

const KEY = 'codeboost panes';
/** @type {{plan?: number, talk?: number, noPlan?: boolean, noTalk?: boolean, theme?: string}} */
let look = {};

function keepLook() {
  try {
    openStorage()?.setItem(KEY, JSON.stringify(look));
  } catch {
    // A look that is not kept is no loss.
  }
}

function readLook() {
  try {
    const value = JSON.parse(openStorage()?.getItem(KEY) ?? '{}');
    if (typeof value === 'object' && value !== null) look = value;
  } catch {
    look = {};
  }
}

const LIMITS = { plan: [160, 420], talk: [280, 560] };

function applyLook() {
  const panes = $('panes');
  for (const name of /** @type {const} */ (['plan', 'talk'])) {
    const width = Number(look[name]);
    const [low, high] = LIMITS[name];
    if (width >= low && width <= high) panes.style.setProperty(`--${name}-width`, `${width}px`);
    else panes.style.removeProperty(`--${name}-width`);
    const divider = $(`divide-${name}`);
    divider.setAttribute('aria-valuemin', String(low));
    divider.setAttribute('aria-valuemax', String(high));
    divider.setAttribute('aria-valuenow', String(Math.round($(name).getBoundingClientRect().width)));
  }
  panes.classList.toggle('no-plan', look.noPlan === true);
  panes.classList.toggle('no-talk', look.noTalk === true);
  if (look.theme === 'light' || look.theme === 'dark') document.documentElement.dataset.theme = look.theme;
  else delete document.documentElement.dataset.theme;
}

/** @param {'plan'|'talk'} name @param {number} width */
function resize(name, width) {
  const [low, high] = LIMITS[name];
  // Pulled nearly shut, a pane closes; its divider opens it again.
  look[name === 'plan' ? 'noPlan' : 'noTalk'] = width < low - 60;
  look[name] = Math.max(low, Math.min(high, Math.round(width)));
  applyLook();
  keepLook();
}

/** @param {'plan'|'talk'} name @param {1|-1} sign */
function makeDivider(name, sign) {
  const divider = $(`divide-${name}`);
  divider.title = 'Drag, or use the arrow keys; Enter or a double click hides and shows the pane';
  const hidden = name === 'plan' ? 'noPlan' : 'noTalk';
  const toggle = () => {
    look[hidden] = !look[hidden];
    applyLook();
    keepLook();
    announce(look[hidden] ? 'Pane hidden; Enter on the divider shows it' : 'Pane shown');
  };
  divider.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    divider.setPointerCapture(event.pointerId);
    const start = event.clientX, width = look[hidden] ? 0 : $(name).getBoundingClientRect().width;
    const move = (/** @type {PointerEvent} */ to) => resize(name, width + sign * (to.clientX - start));
    divider.addEventListener('pointermove', move);
    divider.addEventListener('pointerup', () => divider.removeEventListener('pointermove', move), { once: true });
  });
  divider.addEventListener('dblclick', toggle);
  divider.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const [low, high] = LIMITS[name];
    const width = $(name).getBoundingClientRect().width;
    const step = event.key === 'ArrowRight' ? 20 : event.key === 'ArrowLeft' ? -20 : 0;
    if (step) resize(name, Math.max(low, width + sign * step));
    else if (event.key === 'Home') resize(name, low);
    else if (event.key === 'End') resize(name, high);
    else if (event.key === 'Enter') toggle();
    else return;
    event.preventDefault();
  });
}

/** Shows a pane where not all fit. @param {string} name */
export function showPane(name) {
  $('panes').dataset.pane = name;
  for (const one of $('switcher').querySelectorAll('button')) one.setAttribute('aria-pressed', String(one.dataset.pane === name));
}

/** Builds the panes. */
export function startPanes() {
  readLook();
  makeDivider('plan', 1);
  makeDivider('talk', -1);
  applyLook();
  showPane('code');
  for (const one of $('switcher').querySelectorAll('button')) one.addEventListener('click', () => showPane(one.dataset.pane));
  document.addEventListener('pane', (event) => {
    const name = /** @type {CustomEvent} */ (event).detail;
    if (name === 'hide-talk') {
      if (matchMedia('(max-width: 1439px)').matches) showPane('code');
      else {
        look.noTalk = true;
        announce('Conversation hidden; the divider at the right edge shows it');
      }
    } else {
      showPane(name);
      if (name === 'talk') look.noTalk = false;
    }
    applyLook();
    keepLook();
  });
  $('theme').addEventListener('click', () => {
    const isLight = look.theme ? look.theme === 'light' : matchMedia('(prefers-color-scheme: light)').matches;
    look.theme = isLight ? 'dark' : 'light';
    applyLook();
    keepLook();
    announce(`${isLight ? 'Dark' : 'Light'} theme`);
  });
  addEventListener('resize', applyLook);
}
