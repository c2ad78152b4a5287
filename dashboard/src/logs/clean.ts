/** What programs print for terminals, as plain text. Linear in the length of the line. */

// CSI (colours, cursor), OSC (titles, links; ended by BEL or ST), and escapes of two characters.
const CSI = "[0-?]*[ -/]*[@-~]";
const OSC = String.raw`\][^\u0007\u001b]*(?:\u0007|\u001b\\)?`;
const ESCAPES = new RegExp(
  String.raw`\u001b(?:\[${CSI}|${OSC}|[@-Z\\^_]|[()#][0-9A-Za-z])?|\u009b${CSI}`,
  "g",
);
const CONTROLS = /(?!\t)\p{Cc}/gu;
const SPECIAL = /(?!\t)\p{Cc}/u;

/** Without escape sequences; of a progress bar that was drawn over itself, what was left standing. */
export function clean(text: string): string {
  if (!SPECIAL.test(text)) return text;
  const plain = text.replace(ESCAPES, "");
  return lastDrawn(plain).replace(CONTROLS, "");
}

/** A carriage return begins the line anew: the last drawing that has any text counts. */
function lastDrawn(text: string): string {
  if (!text.includes("\r")) return text;
  let end = text.length;
  while (end > 0) {
    const start = text.lastIndexOf("\r", end - 1);
    const part = text.slice(start + 1, end);
    if (part.trim() !== "") return part;
    if (start < 0) break;
    end = start;
  }
  return "";
}

// A bar as tqdm and others draw it, each drawing a line of its own in the log of a pod.
const BAR = /\d{1,3}(?:\.\d+)?%\s?\|/;
const NUMBERS = /\d+(?:[.:]\d+)*/g;

/**
 * What two drawings of one progress bar have in common; empty where the line is no bar. Lines with
 * the same sketch from one rank, one after the other, are shown as the last of them.
 */
export function barSketch(text: string): string {
  if (!text.includes("%")) return "";
  const found = BAR.exec(text.slice(0, 200));
  return found === null ? "" : `bar:${text.slice(0, found.index).replace(NUMBERS, "#")}`;
}
