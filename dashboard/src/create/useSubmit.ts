/** Creating the job: once, however often it is asked for, and never at the cost of the form. */
import { useCallback, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { jobPath } from "../app/paths";
import { useToasts } from "../app/toasts";
import { words } from "../words";
import { forget } from "./draft";
import type { JsonObject } from "./model/json";
import type { Problem } from "./model/problems";
import { create, refusal, type Upload } from "./server";

export interface Submission {
  readonly busy: boolean;
  /** The last refusal; null where there was none. */
  readonly failure: unknown;
  /** The job that was refused: its words hold until it is changed. */
  readonly of: JsonObject | null;
  readonly submit: (
    namespace: string,
    manifest: JsonObject,
    files: readonly Upload[],
  ) => Promise<readonly Problem[] | null>;
}

export function useSubmit(): Submission {
  const running = useRef(false);
  const [state, setState] = useState<Pick<Submission, "busy" | "failure" | "of">>({
    busy: false,
    failure: null,
    of: null,
  });
  const navigate = useNavigate();
  const toasts = useToasts();
  const submit = useCallback<Submission["submit"]>(
    async (namespace, manifest, files) => {
      if (running.current) return null;
      running.current = true;
      setState({ busy: true, failure: null, of: null });
      try {
        const job = await create(namespace, manifest, files);
        forget();
        toasts.done(words.create.created(job.name));
        await navigate(jobPath(job));
        return null;
      } catch (failure) {
        setState({ busy: false, failure, of: manifest });
        return refusal(failure) ?? [];
      } finally {
        running.current = false;
      }
    },
    [navigate, toasts],
  );
  return { ...state, submit };
}
