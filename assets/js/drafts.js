/** Drafts of this page in the browser's own storage, where any other page on disk may alter them. */
import { fault } from './decisions.js';

/** @typedef {import('./types.js').Decision} Decision */

/** @typedef {{decisions: Decision[], seen: number[], reviewer: string, saved: string}} Stored */

/** @param {string} digest */
const keyFor = (digest) => `codeboost drafts ${digest}`;

/**
 * Reads what was kept; whatever has not the form of a draft is left out.
 *
 * @param {Storage|null} storage
 * @param {string} digest digest of the page's data
 * @param {number} nSegments
 * @returns {Stored}
 */
export function readDrafts(storage, digest, nSegments) {
  /** @type {Stored} */
  const empty = { decisions: [], seen: [], reviewer: '', saved: '' };
  let value;
  try {
    value = JSON.parse(storage?.getItem(keyFor(digest)) ?? 'null');
  } catch {
    return empty;
  }
  if (typeof value !== 'object' || value === null) return empty;
  const list = (/** @type {any} */ one) => (Array.isArray(one) ? one : []);
  const ids = new Set();
  return {
    decisions: list(value.decisions).filter((one) => {
      if (fault(one) || ids.has(one.id) || (one.segment ?? 0) >= nSegments) return false;
      ids.add(one.id);
      return true;
    }),
    seen: list(value.seen).filter((one) => Number.isSafeInteger(one) && one >= 0 && one < nSegments),
    reviewer: typeof value.reviewer === 'string' ? value.reviewer.slice(0, 200) : '',
    saved: typeof value.saved === 'string' ? value.saved : '',
  };
}

/**
 * Keeps drafts; returns whether they were kept.
 *
 * @param {Storage|null} storage
 * @param {string} digest
 * @param {Stored} stored
 */
export function writeDrafts(storage, digest, stored) {
  try {
    storage?.setItem(keyFor(digest), JSON.stringify(stored));
    return storage !== null;
  } catch {
    return false;
  }
}

/** The browser's storage, where it gives one. @returns {Storage|null} */
export function openStorage() {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
