/** What every step of the wizard works on. */
import { createContext, useContext } from "react";
import type { Draft } from "./draft";
import { at, fieldName, isObject, type JsonObject, type Path } from "./model/json";
import * as mpijob from "./model/mpijob";
import type { Role } from "./model/pods";
import { isAbout, type Problem } from "./model/problems";
import * as trainjob from "./model/trainjob";
import type { Checked, RuntimeInfo, Upload } from "./server";

export interface Form {
  readonly draft: Draft;
  readonly manifest: JsonObject;
  readonly namespace: string;
  readonly type: (text: string) => void;
  readonly edit: (change: (manifest: JsonObject) => JsonObject) => void;
  /** Whether the backend is this machine, where jobs need no image. */
  readonly local: boolean;
  readonly checked: Checked;
  /** Answers to a submission, until the next change. */
  readonly refused: readonly Problem[];
  /** Fields that were left, or that a submission has shown to be wrong. */
  readonly seen: ReadonlySet<string>;
  readonly see: (field: string) => void;
  readonly seeAll: boolean;
  readonly files: readonly Upload[];
  readonly setFiles: (files: readonly Upload[]) => void;
  readonly runtimes: readonly RuntimeInfo[];
  readonly runtime: RuntimeInfo | null;
}

export const FormContext = createContext<Form | null>(null);

export function useForm(): Form {
  const found = useContext(FormContext);
  if (!found) throw new Error("useForm outside of the wizard");
  return found;
}

/** What is wrong with the fields at these paths, where the person has been there. */
export function useProblems(paths: readonly Path[]): Problem[] {
  const { checked, refused, seen, seeAll } = useForm();
  const names = paths.map(fieldName);
  if (!seeAll && !names.some((name) => seen.has(name))) {
    return checked.problems.filter((one) => one.level === "warning" && about(one, names));
  }
  return [...refused, ...checked.problems].filter((one) => about(one, names));
}

const about = (problem: Problem, names: readonly string[]): boolean =>
  names.some((name) => isAbout(problem, name));

export const isTrainJob = (manifest: JsonObject): boolean => manifest.kind === trainjob.KIND;

/** Views and changes of the job's pods, whatever kind it is. */
export interface Pods {
  view: <T>(look: (manifest: JsonObject, roles: readonly Role[]) => T) => T;
  change: (edit: (manifest: JsonObject, roles: readonly Role[]) => JsonObject) => void;
}

export function usePods(): Pods {
  const { manifest, edit, runtime } = useForm();
  if (isTrainJob(manifest))
    return {
      view: (look) => trainjob.inPods(manifest, runtime, look),
      change: (change) => edit((job) => trainjob.withPods(job, runtime, change)),
    };
  return {
    view: (look) => look(manifest, mpijob.roles(manifest)),
    change: (change) => edit((job) => change(job, mpijob.roles(job))),
  };
}

/** Whether the form has fields for it: what is no MPIJob or TrainJob is edited as YAML alone. */
export const showable = (manifest: JsonObject): boolean =>
  mpijob.fits(manifest) ||
  (manifest.kind === trainjob.KIND && isObject(at(manifest, ["spec"]) ?? {}));
