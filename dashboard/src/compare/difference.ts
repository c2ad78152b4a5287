/** Where objects differ, field by field. Pure. */

export interface Row {
  /** `spec.mpiReplicaSpecs.Worker.replicas` */
  readonly field: string;
  /** one for each object; undefined where it has no such field */
  readonly values: readonly (string | undefined)[];
  readonly differs: boolean;
}

const DEEPEST = 40;

/** What differs first, each part in the order of the fields. */
export function differences(objects: readonly unknown[]): Row[] {
  const flat = objects.map((one) => flattened(one));
  const fields = new Set(flat.flatMap((one) => [...one.keys()]));
  const rows = [...fields].map((field) => {
    const values = flat.map((one) => one.get(field));
    return { field, values, differs: values.some((one) => one !== values[0]) };
  });
  rows.sort((a, b) => a.field.localeCompare(b.field, "en", { numeric: true }));
  return [...rows.filter((one) => one.differs), ...rows.filter((one) => !one.differs)];
}

/** Each leaf under its path; items of lists by their name where they have one, else by number. */
export function flattened(value: unknown): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (one: unknown, path: string, depth: number) => {
    const inner = depth < DEEPEST && typeof one === "object" && one !== null;
    if (inner && Array.isArray(one) && one.some((item) => typeof item === "object")) {
      for (const [index, item] of one.entries())
        walk(item, `${path}[${nameOf(item, index)}]`, depth + 1);
    } else if (inner && !Array.isArray(one) && Object.keys(one).length > 0) {
      for (const [name, item] of Object.entries(one)) {
        walk(item, path ? `${path}.${name}` : name, depth + 1);
      }
    } else if (one !== undefined) {
      found.set(path, typeof one === "string" ? one : JSON.stringify(one));
    }
  };
  walk(value, "", 0);
  return found;
}

function nameOf(item: unknown, index: number): string {
  const name = (item as { name?: unknown } | null)?.name;
  return typeof name === "string" ? name : String(index);
}
