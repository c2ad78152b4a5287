/** What the server says is wrong, sorted to the fields of the form. Pure. */

import type { Path } from "./json";

export interface Problem {
  /** as Kubernetes writes it; empty where it is about the whole */
  readonly field: string;
  /** the server's words, without the field */
  readonly text: string;
  readonly level: "error" | "warning";
}

const MOST = 100;
const FIELD = /^((?:spec|metadata|status|kind|apiVersion)(?:[.[][^\s:]*)?): /;

/** A sentence of the server: `spec.slotsPerWorker: Invalid value: 0: must be …; set it to …`. */
export function read(sentence: string, level: Problem["level"]): Problem {
  const found = FIELD.exec(sentence);
  const field = found?.[1] ?? "";
  return { field, text: sentence.slice(found?.[0].length ?? 0), level };
}

export interface Answer {
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

export const ofDryRun = (answer: Answer): Problem[] =>
  bounded([
    ...answer.refusals.map((one) => read(one, "error")),
    ...answer.warnings.map((one) => read(one, "warning")),
  ]);

export interface Refusal {
  readonly detail: string;
  readonly hint: string;
  readonly errors: readonly { readonly field: string; readonly message: string }[];
}

/** Of an answer that refuses the request as a whole. */
export function ofRefusal(problem: Refusal): Problem[] {
  if (problem.errors.length === 0) {
    const text = problem.hint ? `${problem.detail}. ${problem.hint}` : problem.detail;
    return [{ ...read(text, "error") }];
  }
  return bounded(
    problem.errors.map((one) => {
      const found = read(one.message, "error");
      return { ...found, field: found.field || one.field };
    }),
  );
}

const bounded = (found: Problem[]): Problem[] => {
  const seen = new Set<string>();
  return found
    .filter((one) => {
      const key = `${one.level} ${one.field} ${one.text}`;
      const fresh = !seen.has(key);
      seen.add(key);
      return fresh;
    })
    .slice(0, MOST);
};

/** Whether the problem is about this field or about something in it. */
export function isAbout(problem: Problem, field: string): boolean {
  const name = problem.field;
  return name === field || name.startsWith(`${field}.`) || name.startsWith(`${field}[`);
}

/** The parts of a field's name; what is in brackets is an index, or a key that has dots. */
export function pathOf(field: string): Path {
  const parts: (string | number)[] = [];
  for (const [, name, index, key] of field.matchAll(/([^.[\]]+)|\[(\d{1,6})\]|\[([^\]]*)\]/g)) {
    parts.push(index !== undefined ? Number(index) : (name ?? key ?? ""));
  }
  return parts;
}

export const STEPS = ["start", "basics", "program", "resources", "advanced", "review"] as const;
export type Step = (typeof STEPS)[number];

/** Which step shows a field; the review shows what no other does. */
export function stepOf(field: string): Step {
  const rules: [RegExp, Step][] = [
    [/^metadata\.(name|namespace|generateName)$/, "basics"],
    [/^spec\.runtimeRef/, "basics"],
    [/containers\[0\]\.(image|command|args)/, "program"],
    [/^spec\.trainer\.(image|command|args)/, "program"],
    [/containers\[0\]\.resources/, "resources"],
    [/^spec\.trainer\.(numNodes|numProcPerNode|resourcesPerNode)/, "resources"],
    [/^spec\.(slotsPerWorker|runLauncherAsWorker)/, "resources"],
    [/^spec\.mpiReplicaSpecs\.Worker\.replicas$/, "resources"],
    [/^spec\.(runPolicy|mpiImplementation|sshAuthMountPath|launcherCreationPolicy)/, "advanced"],
    [/(volumes|volumeMounts|env|envFrom|tolerations|nodeSelector|priorityClassName)/, "advanced"],
    [/^metadata\.(labels|annotations)/, "advanced"],
    [/^spec\.activeDeadlineSeconds/, "advanced"],
  ];
  return rules.find(([pattern]) => pattern.test(field))?.[1] ?? "review";
}
