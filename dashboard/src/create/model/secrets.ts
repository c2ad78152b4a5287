/**
 * What may be kept in the browser between reloads: the job without what looks like a secret. Pure.
 *
 * Values of variables are left out where their name says that they are secret, and every text in
 * which something looks like a key, a token or a password. They are to be typed again.
 */

import { isList, isObject, type Json, type JsonObject } from "./json";

export const LEFT_OUT = "";

// A tokenizer is no token.
const NAME_OF_ONE =
  /pass(?:word|wd|phrase)?|secret|token(?!i[sz](?:e|ing|ation))|api[_-]?key|access[_-]?key|private[_-]?key|credential/i;
const LOOKS_LIKE_ONE = [
  /-----BEGIN [A-Z ]*-----/,
  /\b(?:bearer|basic)\s+[\w.~+/=-]{8,}/i,
  /\beyJ[\w-]{6,}\./,
  /\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b/,
  /\b(?:hf_|ghp_|gho_|github_pat_|sk-|xox[bap]-|glpat-)[A-Za-z0-9_-]{8,}/,
  /:\/\/[^/\s:@]+:[^/\s@]+@/,
  /(?:pass(?:word|wd|phrase)?|secret|token(?!i[sz](?:e|ing|ation))|api[_-]?key|access[_-]?key|private[_-]?key|credential)["']?\s*[:= ]\s*\S/i,
];
const LONGEST = 64 * 1024;

export interface Kept {
  readonly manifest: JsonObject;
  /** how many values were left out */
  readonly left: number;
}

export function withoutSecrets(manifest: JsonObject): Kept {
  let left = 0;
  const clean = (value: Json): Json => {
    if (isList(value)) {
      return value.map(clean);
    }
    if (typeof value === "string") {
      if (looksSecret(value)) {
        left += 1;
        return LEFT_OUT;
      }
      return value;
    }
    if (!isObject(value)) {
      return value;
    }
    const named = typeof value.name === "string" && NAME_OF_ONE.test(value.name);
    return Object.fromEntries(
      Object.entries(value).map(([key, one]): [string, Json] => {
        if (named && key === "value" && typeof one === "string" && one !== "") {
          left += 1;
          return [key, LEFT_OUT];
        }
        return [key, clean(one)];
      }),
    );
  };
  const made = clean(manifest);
  return { manifest: isObject(made) ? made : {}, left };
}

const looksSecret = (text: string): boolean =>
  text.length > LONGEST || LOOKS_LIKE_ONE.some((pattern) => pattern.test(text));

/** Whether the value of a variable of this name is a secret. */
export const namesASecret = (name: string): boolean => NAME_OF_ONE.test(name);
