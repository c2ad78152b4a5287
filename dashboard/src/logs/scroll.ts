/**
 * Places of rows in a list of any length. Browsers cannot draw an element higher than some millions
 * of pixels, so the height that is scrolled (`physical`) is bounded, and a long list's own height
 * (`whole`) is mapped to it: small moves are taken as they are, large ones in proportion. Pure.
 */
export const ROW = 20;
/** Firefox refuses elements higher than some 17 million pixels. */
export const MOST_PIXELS = 8_000_000;

/** What rows that are opened take besides one row's height, in the order of their indexes. */
export interface Opened {
  readonly index: number;
  readonly extra: number;
}

export function wholeHeight(rows: number, opened: readonly Opened[]): number {
  return rows * ROW + opened.reduce((sum, one) => sum + one.extra, 0);
}

export function physicalHeight(whole: number): number {
  return Math.min(whole, MOST_PIXELS);
}

export function topOf(index: number, opened: readonly Opened[]): number {
  let top = index * ROW;
  for (const one of opened) if (one.index < index) top += one.extra;
  return top;
}

/** The row at a place of the list. */
export function rowAt(place: number, opened: readonly Opened[]): number {
  let extra = 0;
  for (const one of opened) {
    const bottom = (one.index + 1) * ROW + extra + one.extra;
    if (bottom > place) {
      const top = one.index * ROW + extra;
      return place >= top ? one.index : Math.max(0, Math.floor((place - extra) / ROW));
    }
    extra += one.extra;
  }
  return Math.max(0, Math.floor((place - extra) / ROW));
}

export interface Position {
  /** where the list is, in its own pixels */
  readonly place: number;
  /** where the browser is, in those that it scrolls */
  readonly scrolled: number;
}

export interface Extent {
  readonly whole: number;
  readonly view: number;
}

/** After the browser scrolled to `scrolled`. */
export function moved(before: Position, scrolled: number, extent: Extent): Position {
  const most = Math.max(0, extent.whole - extent.view);
  const physicalMost = Math.max(0, physicalHeight(extent.whole) - extent.view);
  if (scrolled <= 0) return { place: 0, scrolled };
  if (scrolled >= physicalMost - 1) return { place: most, scrolled };
  const by = scrolled - before.scrolled;
  const place =
    most === physicalMost
      ? scrolled
      : Math.abs(by) < extent.view * 2
        ? before.place + by
        : (scrolled / physicalMost) * most;
  return { place: Math.min(Math.max(place, 0), most), scrolled };
}

/** Where the browser is to scroll so that the list is at `place`. */
export function positionOf(place: number, extent: Extent): Position {
  const most = Math.max(0, extent.whole - extent.view);
  const physicalMost = Math.max(0, physicalHeight(extent.whole) - extent.view);
  const bounded = Math.min(Math.max(place, 0), most);
  const scrolled = most === 0 ? 0 : (bounded / most) * physicalMost;
  return { place: bounded, scrolled: Math.round(scrolled) };
}
