/** A long list of which only what is near the viewport is in the document, and is read at all. */

/** Entries that are drawn and dropped together. */
const BLOCK = 24;
/** Pixels beyond the viewport that are drawn, and that are read. */
const MARGIN = 500;
const AHEAD = 2500;
const CONTROLS = 'button, select, input, summary, textarea';

/**
 * A stretch of the list whose entries come and go together; `null` while they are not read. `guess`
 * is their height then.
 *
 * @template T
 * @typedef {{entries: T[]|null, guess: number}} Stretch
 */
/**
 * Some entries of a stretch, or all of one that is not read.
 *
 * @template T
 * @typedef {{stretch: Stretch<T>, entries: T[], height: number, node: HTMLElement|null}} Block
 */
/**
 * @template T
 * @typedef {{
 *   draw: (entry: T) => HTMLElement,
 *   height: (entry: T) => number,
 *   key: (entry: T) => string,
 *   see: (entries: T[]) => void,
 *   need: (stretch: any) => void,
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
    /** @type {Stretch<T>[]} */
    this.stretches = [];
    /** @type {Block<T>[]} */
    this.blocks = [];
    /** Where each block begins, and where the last ends. @type {number[]} */
    this.tops = [0];
    /** The block of an entry. @type {Map<T, Block<T>>} */
    this.home = new Map();
    /** @type {Set<Block<T>>} */
    this.mounted = new Set();
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

  /** @param {Stretch<T>[]} stretches @param {boolean} [keep] whether to stay where the reader is */
  set(stretches, keep = false) {
    const anchor = keep ? this.anchor() : null, focus = this.focus();
    for (const block of this.mounted) block.node?.remove();
    this.mounted.clear();
    this.home.clear();
    this.stretches = stretches;
    this.blocks = stretches.flatMap((stretch) => this.cut(stretch));
    this.sum(0);
    if (!keep) this.scroller.scrollTop = 0;
    const find = (/** @type {string} */ key) => [...this.home.keys()].find((entry) => this.drawing.key(entry) === key);
    const entry = anchor && find(anchor.key);
    if (anchor && entry) {
      for (let round = 0; round < 2; round++) {
        this.scroller.scrollTop = this.topOf(entry) - anchor.offset;
        this.paint();
      }
    }
    // What is in view comes first, the rest with the next frame.
    this.paint(0);
    this.soon();
    if (focus) this.refocus(find(focus.key), focus.nth);
  }

  /** The blocks of a stretch. @param {Stretch<T>} stretch @returns {Block<T>[]} */
  cut(stretch) {
    if (!stretch.entries) return [{ stretch, entries: [], height: stretch.guess, node: null }];
    const out = [];
    for (let n = 0; n < stretch.entries.length; n += BLOCK) {
      const entries = stretch.entries.slice(n, n + BLOCK);
      const block = { stretch, entries, height: entries.reduce((sum, entry) => sum + this.drawing.height(entry), 0), node: null };
      for (const entry of entries) this.home.set(entry, block);
      out.push(block);
    }
    return out;
  }

  /** Takes over that the entries of a stretch came or went. @param {Stretch<T>} stretch */
  change(stretch) {
    const first = this.blocks.findIndex((block) => block.stretch === stretch);
    if (first < 0) return;
    let n = 0;
    while (this.blocks[first + n]?.stretch === stretch) n++;
    const begin = this.tops[first], end = this.tops[first + n], top = this.scroller.scrollTop;
    if (!stretch.entries) stretch.guess = end - begin;
    for (const block of this.blocks.slice(first, first + n)) {
      this.unmount(block);
      for (const entry of block.entries) this.home.delete(entry);
    }
    const blocks = this.cut(stretch);
    this.blocks.splice(first, n, ...blocks);
    this.sum(first);
    const height = this.tops[first + blocks.length] - begin;
    if (end <= top) this.scroller.scrollTop = top + height - (end - begin);
    else if (begin < top) this.scroller.scrollTop = begin + (top - begin) / (end - begin) * height;
    this.paint();
  }

  /** The first entry in the viewport that is there, and how far below its top it begins. */
  anchor() {
    if (this.blocks.length === 0) return null;
    const top = this.scroller.scrollTop;
    const entries = this.blocks.slice(this.at(top)).find((block) => block.entries.length)?.entries;
    if (!entries) return null;
    let n = 0;
    while (n + 1 < entries.length && this.topOf(entries[n + 1]) <= top) n++;
    return { key: this.drawing.key(entries[n]), offset: this.topOf(entries[n]) - top };
  }

  /** Which control of which entry has the focus. */
  focus() {
    const active = document.activeElement;
    if (!active || active === this.scroller || !this.box.contains(active)) return null;
    const entry = this.entryOf(active), node = entry && this.node(entry);
    if (!entry || !node) return null;
    return { key: this.drawing.key(entry), nth: Array.prototype.indexOf.call(node.querySelectorAll(CONTROLS), active) };
  }

  /** @param {T|undefined} entry @param {number} nth */
  refocus(entry, nth) {
    const controls = entry && this.node(entry)?.querySelectorAll(CONTROLS);
    const control = controls?.[Math.min(nth, controls.length - 1)];
    /** @type {HTMLElement} */ (control ?? this.scroller).focus({ preventScroll: true });
  }

  /** @param {number} from */
  sum(from) {
    for (let b = from; b < this.blocks.length; b++) {
      this.tops[b + 1] = this.tops[b] + this.blocks[b].height;
      const { node } = this.blocks[b];
      if (node) node.style.top = `${this.tops[b]}px`;
    }
    this.tops.length = this.blocks.length + 1;
    this.box.style.height = `${this.tops[this.blocks.length]}px`;
  }

  /** The block at a height. @param {number} y */
  at(y) {
    let low = 0, high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] > y) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** @param {number} [margin] pixels beyond the viewport */
  paint(margin = MARGIN) {
    if (this.blocks.length === 0) return;
    for (let round = 0; round < 4; round++) {
      const top = this.scroller.scrollTop, bottom = top + this.scroller.clientHeight;
      const first = this.at(Math.max(0, top - margin)), last = this.at(bottom + margin);
      const near = new Set(this.blocks.slice(Math.max(0, first - 1), last + 2));
      for (const block of this.mounted) if (!near.has(block)) this.unmount(block);
      let isNew = false;
      for (let b = first; b <= last; b++) {
        const block = this.blocks[b];
        if (block.node || !block.stretch.entries) continue;
        isNew = true;
        this.mount(block, this.tops[b]);
      }
      if (!isNew || !this.measure()) break;
    }
    const top = this.scroller.scrollTop;
    const last = this.at(top + this.scroller.clientHeight + AHEAD);
    const missing = new Set(this.blocks.slice(this.at(Math.max(0, top - AHEAD)), last + 1).map((block) => block.stretch).filter((one) => !one.entries));
    for (const stretch of missing) this.drawing.need(stretch);
    this.look();
  }

  /** @param {Block<T>} block @param {number} top */
  mount(block, top) {
    const node = document.createElement('div');
    node.className = 'blk';
    node.style.top = `${top}px`;
    node.append(...block.entries.map((entry) => this.drawing.draw(entry)));
    block.node = node;
    this.mounted.add(block);
    this.box.append(node);
  }

  /** @param {Block<T>} block */
  unmount(block) {
    block.node?.remove();
    block.node = null;
    this.mounted.delete(block);
  }

  /** Replaces guesses by what the document says; returns whether anything moved. */
  measure() {
    let first = Infinity, shift = 0;
    const top = this.scroller.scrollTop;
    for (let b = 0; b < this.blocks.length; b++) {
      const block = this.blocks[b];
      if (!block.node) continue;
      const height = block.node.offsetHeight;
      if (height === block.height || height === 0) continue;
      if (this.tops[b] + block.height <= top) shift += height - block.height;
      block.height = height;
      first = Math.min(first, b);
    }
    if (first === Infinity) return false;
    this.sum(first);
    if (shift) this.scroller.scrollTop = top + shift;
    return true;
  }

  /** Whether any of a stretch is in the document. @param {Stretch<T>} stretch */
  isMounted(stretch) {
    return [...this.mounted].some((block) => block.stretch === stretch);
  }

  /** The element of an entry, if it is in the document. @param {T} entry @returns {HTMLElement|null} */
  node(entry) {
    const block = this.home.get(entry);
    return /** @type {HTMLElement|null} */ (block?.node?.children[block.entries.indexOf(entry)] ?? null);
  }

  /** The entry that an element belongs to. @param {Element} element @returns {T|null} */
  entryOf(element) {
    const child = element.closest('.blk > *');
    for (const block of child ? this.mounted : []) {
      if (block.node === child?.parentElement) return block.entries[Array.prototype.indexOf.call(block.node?.children, child)];
    }
    return null;
  }

  /** Where an entry begins. @param {T} entry */
  topOf(entry) {
    const block = this.home.get(entry), node = this.node(entry);
    if (!block) return 0;
    let y = this.tops[this.blocks.indexOf(block)];
    if (node) return y + node.offsetTop;
    for (const one of block.entries) {
      if (one === entry) break;
      y += this.drawing.height(one);
    }
    return y;
  }

  /** Brings an entry into view. @param {T} entry @param {number} [lead] pixels kept above it */
  show(entry, lead = 60) {
    for (let round = 0; round < 3; round++) {
      const y = this.topOf(entry);
      const top = this.scroller.scrollTop, height = this.scroller.clientHeight;
      if (round > 0 || y < top + lead / 2 || y > top + height * 0.7) this.scroller.scrollTop = Math.max(0, y - lead);
      else break;
      this.paint();
      if (Math.abs(this.topOf(entry) - y) < 1) break;
    }
    this.look();
  }

  /** Draws the entries again for which `test` holds. @param {(entry: T) => boolean} test */
  redraw(test) {
    const focus = this.focus();
    let isSame = true;
    for (const block of this.mounted) {
      block.entries.forEach((entry, n) => {
        if (!test(entry)) return;
        isSame = false;
        const old = /** @type {Element} */ (block.node?.children[n]), held = old.contains(document.activeElement);
        old.replaceWith(this.drawing.draw(entry));
        if (held && focus) this.refocus(entry, focus.nth);
      });
    }
    if (isSame) return;
    this.measure();
    this.soon();
  }

  /** Tells which entries are in the viewport. */
  look() {
    const top = this.scroller.scrollTop, bottom = top + this.scroller.clientHeight;
    /** @type {T[]} */
    const seen = [];
    for (let b = this.at(top); b < this.blocks.length && this.tops[b] < bottom; b++) {
      const { node, entries } = this.blocks[b], start = this.tops[b];
      if (!node) continue;
      const { children } = node;
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
      seen.push(...entries.slice(find(top), find(bottom - 1) + 1));
    }
    if (seen.length) this.drawing.see(seen);
  }
}
