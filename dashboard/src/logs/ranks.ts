/** Ranks as a person writes them: `0-3,7`. Pure. */

const MOST = 65_536;

/** Null where the text is no such list; an empty text takes all ranks and gives an empty set. */
export function parseRanks(text: string): ReadonlySet<number> | null {
  const found = new Set<number>();
  for (const part of text.split(",").map((one) => one.trim())) {
    if (part === "") continue;
    const ends = /^(\d{1,5})(?:\s*-\s*(\d{1,5}))?$/.exec(part);
    if (!ends) return null;
    const first = Number(ends[1]);
    const last = ends[2] === undefined ? first : Number(ends[2]);
    if (last < first || last >= MOST) return null;
    for (let rank = first; rank <= last; rank += 1) found.add(rank);
  }
  return found;
}
