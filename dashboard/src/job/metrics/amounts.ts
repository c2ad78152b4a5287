/** Numbers of metrics as a person reads them. Pure. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function bytes(value: number): string {
  let left = value;
  let unit = 0;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${Number(left.toPrecision(3))} ${UNITS[unit]}`;
}

export function amount(name: string, value: number): string {
  if (name.endsWith("Bytes")) return bytes(value) + (/^(received|sent)/.test(name) ? "/s" : "");
  if (name.endsWith("Percent")) return `${Math.round(value)} %`;
  return String(Number(value.toPrecision(4)));
}
