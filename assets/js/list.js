/** A long list of which only what is near the viewport is in the document. */

/** Entries that are drawn and dropped together. */
export const BLOCK = 32;
const MARGIN = 500;
const CONTROLS = 'button, select, input, summary, textarea';

/**
 * @template T
 * @typedef {{
 *   draw: (entry: T, n: number) => HTMLElement,
 *   height: (entry: T) => number,
 *   key: (entry: T) => string,
 *   see: (first: number, last: number) => void,
 * }} Drawing
 */

/** @template T */
export class List {
  /**
   * @param {HTMLElement} scroller
   * @param {Drawing<T>} drawing `height` may be a guess: real heights are measured
   */
  constructor(scroller, drawing) {
    this.scroller = scroller;
    this.drawing = drawing;
    this.box = document.createElement('div');
    this.box.className = 'rows';
    scroller.append(this.box);
    /** @type {T[]} */
    this.entries = [];
    /** @type {number[]} */
    this.heights = [];
    /** @type {number[]} */
    this.tops = [0];
    /** @type {Map<number, HTMLElement>} */
    this.mounted = new Map();
    this.ticking = false;
    scroller.addEventListener('scroll', () => this.soon(), { passive: true });
    new ResizeObserver(() => {
      this.measure();
      this.soon();
    }).observe(scroller);
  }

  soon() {
    if (this.ticking) return;
    this.ticking = true;
    requestAnimationFrame(() => {
      this.ticking = false;
      this.paint();
    });
  }

  /** @param {T[]} entries @param {boolean} [keep] whether to stay where the reader is */
  set(entries, keep = false) {
    const anchor = keep ? this.anchor() : null, focus = this.focus();
    this.entries = entries;
    for (const node of this.mounted.values()) node.remove();
    this.mounted.clear();
    const n = Math.ceil(entries.length / BLOCK);
    this.heights = new Array(n);
    for (let b = 0; b < n; b++) {
      let height = 0;
      for (let i = b * BLOCK; i < Math.min(entries.length, (b + 1) * BLOCK); i++) height += this.drawing.height(entries[i]);
      this.heights[b] = height;
    }
    this.sum(0);
    if (!keep) this.scroller.scrollTop = 0;
    const place = anchor ? entries.findIndex((entry) => this.drawing.key(entry) === anchor.key) : -1;
    if (anchor && place >= 0) {
      for (let round = 0; round < 2; round++) {
        this.scroller.scrollTop = this.topOf(place) - anchor.offset;
        this.paint();
      }
    }
    this.paint();
    if (focus) this.refocus(entries.findIndex((entry) => this.drawing.key(entry) === focus.key), focus.nth);
  }

  /** The first entry in the viewport, and how far below its top it begins. */
  anchor() {
    if (this.entries.length === 0) return null;
    const top = this.scroller.scrollTop;
    let n = this.at(top) * BLOCK;
    while (n + 1 < this.entries.length && this.topOf(n + 1) <= top) n++;
    return { key: this.drawing.key(this.entries[n]), offset: this.topOf(n) - top };
  }

  /** Which control of which entry has the focus. */
  focus() {
    const active = document.activeElement;
    if (!active || active === this.scroller || !this.box.contains(active)) return null;
    for (const [b, block] of this.mounted) {
      const child = Array.prototype.findIndex.call(block.children, (one) => one.contains(active));
      if (child < 0) continue;
      const nth = Array.prototype.indexOf.call(block.children[child].querySelectorAll(CONTROLS), active);
      return { key: this.drawing.key(this.entries[b * BLOCK + child]), nth };
    }
    return null;
  }

  /** @param {number} n @param {number} nth */
  refocus(n, nth) {
    const controls = n < 0 ? null : this.node(n)?.querySelectorAll(CONTROLS);
    const control = controls?.[Math.min(nth, controls.length - 1)];
    /** @type {HTMLElement} */ (control ?? this.scroller).focus({ preventScroll: true });
  }

  /** @param {number} from */
  sum(from) {
    for (let b = from; b < this.heights.length; b++) this.tops[b + 1] = this.tops[b] + this.heights[b];
    this.tops.length = this.heights.length + 1;
    this.box.style.height = `${this.tops[this.heights.length]}px`;
    for (const [b, node] of this.mounted) if (b >= from) node.style.top = `${this.tops[b]}px`;
  }

  /** The block at a height. @param {number} y */
  at(y) {
    let low = 0, high = this.heights.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] > y) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  paint() {
    if (this.heights.length === 0) return;
    for (let round = 0; round < 4; round++) {
      const top = this.scroller.scrollTop, bottom = top + this.scroller.clientHeight;
      const first = this.at(Math.max(0, top - MARGIN)), last = this.at(bottom + MARGIN);
      for (const [b, node] of this.mounted) {
        if (b < first - 1 || b > last + 1) {
          node.remove();
          this.mounted.delete(b);
        }
      }
      let isNew = false;
      for (let b = first; b <= last; b++) {
        if (this.mounted.has(b)) continue;
        isNew = true;
        this.mount(b);
      }
      if (!isNew || !this.measure()) break;
    }
    this.look();
  }

  /** @param {number} b */
  mount(b) {
    const node = document.createElement('div');
    node.className = 'blk';
    node.style.top = `${this.tops[b]}px`;
    for (let i = b * BLOCK; i < Math.min(this.entries.length, (b + 1) * BLOCK); i++) {
      node.append(this.drawing.draw(this.entries[i], i));
    }
    this.mounted.set(b, node);
    this.box.append(node);
  }

  /** Replaces guesses by what the document says; returns whether anything moved. */
  measure() {
    let first = Infinity, shift = 0;
    const top = this.scroller.scrollTop;
    for (const [b, node] of this.mounted) {
      const height = node.offsetHeight;
      if (height === this.heights[b] || height === 0) continue;
      if (this.tops[b] + this.heights[b] <= top) shift += height - this.heights[b];
      this.heights[b] = height;
      first = Math.min(first, b);
    }
    if (first === Infinity) return false;
    this.sum(first);
    if (shift) this.scroller.scrollTop = top + shift;
    return true;
  }

  /** The element of an entry, if it is in the document. @param {number} n @returns {HTMLElement|null} */
  node(n) {
    const block = this.mounted.get(Math.floor(n / BLOCK));
    return /** @type {HTMLElement|null} */ (block?.children[n % BLOCK] ?? null);
  }

  /** Where an entry begins. @param {number} n */
  topOf(n) {
    const b = Math.floor(n / BLOCK), node = this.node(n);
    if (node) return this.tops[b] + node.offsetTop;
    let y = this.tops[b];
    for (let i = b * BLOCK; i < n; i++) y += this.drawing.height(this.entries[i]);
    return y;
  }

  /** Brings an entry into view. @param {number} n @param {number} [lead] pixels kept above it */
  show(n, lead = 60) {
    for (let round = 0; round < 3; round++) {
      const y = this.topOf(n);
      const top = this.scroller.scrollTop, height = this.scroller.clientHeight;
      if (round > 0 || y < top + lead / 2 || y > top + height * 0.7) this.scroller.scrollTop = Math.max(0, y - lead);
      else break;
      this.paint();
      if (Math.abs(this.topOf(n) - y) < 1) break;
    }
    this.look();
  }

  /** Draws the entries again for which `test` holds. @param {(entry: T) => boolean} test */
  redraw(test) {
    const focus = this.focus();
    let isSame = true;
    for (const [b, block] of this.mounted) {
      for (let i = b * BLOCK; i < Math.min(this.entries.length, (b + 1) * BLOCK); i++) {
        if (!test(this.entries[i])) continue;
        isSame = false;
        const old = block.children[i % BLOCK], held = old.contains(document.activeElement);
        old.replaceWith(this.drawing.draw(this.entries[i], i));
        if (held && focus) this.refocus(i, focus.nth);
      }
    }
    if (isSame) return;
    this.measure();
    this.soon();
  }

  /** Tells which entries are in the viewport. */
  look() {
    const top = this.scroller.scrollTop, bottom = top + this.scroller.clientHeight;
    let first = -1, last = -1;
    for (const [b, block] of [...this.mounted].sort((x, y) => x[0] - y[0])) {
      const start = this.tops[b];
      if (start + this.heights[b] <= top || start >= bottom) continue;
      const children = block.children;
      const find = (/** @type {number} */ y) => {
        let low = 0, high = children.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          const child = /** @type {HTMLElement} */ (children[middle]);
          if (start + child.offsetTop + child.offsetHeight > y) high = middle;
          else low = middle + 1;
        }
        return low;
      };
      if (first < 0) first = b * BLOCK + find(top);
      last = b * BLOCK + Math.min(children.length - 1, find(bottom - 1));
    }
    if (first >= 0) this.drawing.see(first, last);
  }
}
