/** Small helpers around the document. Text only ever enters it as text. */
import { markOf, pieces, plain } from './text.js';

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/**
 * Makes an element. Strings among the children may hold untrusted words, as a message can: what can
 * not be seen in them is written out. Text that is untrusted as a whole goes through `say`, which
 * sets its marks apart.
 *
 * @param {string} name
 * @param {string} [className]
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {any}
 */
export function el(name, className = '', ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  for (const child of children) if (child || child === '') node.append(typeof child === 'string' ? plain(child) : child);
  return node;
}

/** The copy of a template. @param {string} id @returns {any} */
export const copyOf = (id) => $(id).content.firstElementChild.cloneNode(true);

/** The part of a template's copy with that name. @param {any} node @param {string} name @returns {any} */
export const part = (node, name) => node.querySelector(`[data-part="${name}"]`);

/**
 * Appends untrusted text, with what can not be seen made visible.
 *
 * @param {any} parent
 * @param {string} text
 * @param {boolean} [prose]
 */
export function say(parent, text, prose = true) {
  for (const piece of pieces(text, prose)) {
    if (!piece.mark) {
      parent.append(piece.text);
      continue;
    }
    const mark = el('span', 'mk', markOf(piece.text));
    mark.dataset.c = piece.text;
    parent.append(mark);
  }
  return parent;
}

/** An element with untrusted text that can not reorder what is around it. @param {string} text @param {string} [className] */
export const bdi = (text, className = '') => say(el('bdi', className), text);

/**
 * Builds elements from a tree of untrusted Markdown.
 *
 * @param {any} parent
 * @param {any[]} nodes
 */
export function prose(parent, nodes) {
  const names = new Map([
    ['p', 'p'], ['h', 'h4'], ['ul', 'ul'], ['ol', 'ol'], ['li', 'li'], ['quote', 'blockquote'], ['pre', 'pre'],
    ['code', 'code'], ['em', 'em'], ['strong', 'strong'], ['del', 'del'], ['br', 'br'], ['hr', 'hr'],
    ['table', 'table'], ['tr', 'tr'], ['th', 'th'], ['td', 'td'], ['span', 'span'], ['link', 'span'],
  ]);
  for (const node of nodes) {
    if (typeof node === 'string') {
      say(parent, node);
    } else if (Array.isArray(node)) {
      const child = el(names.get(node[0]) ?? 'span', node[0] === 'link' ? 'url' : '');
      prose(child, node.slice(1));
      parent.append(child);
    }
  }
  return parent;
}

/** The text of a Markdown tree. @param {any[]} nodes @returns {string} */
export const proseText = (nodes) => nodes.map((node) => (typeof node === 'string' ? node : proseText(node.slice(1)))).join('');

/** A button. @param {string} className @param {string} words @param {(event: any) => void} act */
export function button(className, words, act) {
  const node = el('button', className, words);
  node.type = 'button';
  node.addEventListener('click', act);
  return node;
}

/**
 * Turns a control off with a reason, so that it can still be reached and read.
 *
 * @param {any} node
 * @param {string} reason empty turns it on
 */
export function because(node, reason) {
  if (reason) {
    node.setAttribute('aria-disabled', 'true');
    node.title = plain(reason);
  } else {
    node.removeAttribute('aria-disabled');
    node.removeAttribute('title');
  }
}

/** Says something to those who listen, and shows it for a moment. @param {string} words */
export function announce(words) {
  const toast = $('toast');
  // Hidden and shown again, it stands above a dialog that was opened since.
  if (toast.matches(':popover-open')) toast.hidePopover();
  toast.showPopover();
  toast.textContent = plain(words);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.hidePopover(), 4000);
}
/** @type {any} */
let toastTimer = 0;
